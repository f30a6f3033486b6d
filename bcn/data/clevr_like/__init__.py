"""CLEVR: the published format, and scenes, programs, phrases and pictures of our own."""
