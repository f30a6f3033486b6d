"""The models of the paper; names are those of its tables. Each module registers the rows of one data set."""

from bcn.models import scaled_mnist, stl10, sort_of_clevr, clevr  # isort: skip (the order of the tables)

__all__ = ["clevr", "scaled_mnist", "sort_of_clevr", "stl10"]
