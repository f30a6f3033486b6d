"""The files of the package that the page links to: the layers that it explains."""

from pathlib import Path

from bcn.layers import broadcast, relation

SOURCES = (Path(broadcast.__file__), Path(relation.__file__))
