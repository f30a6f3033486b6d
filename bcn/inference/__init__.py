"""Use a trained model: ask it, see what its BCN broadcasts, export it, release its weights with the package."""
