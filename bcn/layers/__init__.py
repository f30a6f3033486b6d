"""The layers of the paper, one idea per file."""
