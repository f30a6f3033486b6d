"""The models of the paper; names are those of its tables."""
