"""The models of the paper; names are those of its tables. Each module registers the rows of one data set."""

from bcn.models import scaled_mnist, sort_of_clevr, stl10

__all__ = ["scaled_mnist", "sort_of_clevr", "stl10"]
