"""clevr-like: scenes, questions and images like CLEVR's, made by this package, and what their scenes teach."""
