"""What all figures share: matplotlib without a display, one style, and how they are written."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bcn.errors import BcnError, install_extra
from bcn.io import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#000000")
"""safe for colour-blind readers (Okabe and Ito)"""
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "bcn",
}


def canvas(rows: int = 1, columns: int = 1, *, size: tuple[float, float]) -> tuple["Figure", Any]:
    """A figure of `size` inches and its array of axes."""
    try:
        import matplotlib
    except ImportError as error:
        raise BcnError(f"figures need matplotlib: {install_extra('plot')}") from error
    matplotlib.use("agg")
    matplotlib.rcParams.update(_STYLE)
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False)
    return figure, axes


def plain_logarithmic(axis: Any) -> None:
    """An axis of y that is logarithmic, with 0.2 where matplotlib would write a power of ten; after plotting."""
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 4, 5, 6, 7, 8)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter("{x:g}")


def write(figure: "Figure", path: Path) -> Path:
    """Write a PNG or an SVG, as the ending says, without a date: the same figure is the same file."""
    from matplotlib import pyplot

    metadata = {".png": {"Software": None}, ".svg": {"Date": None}}
    if path.suffix not in metadata:
        raise BcnError(f"{path} is neither .png nor .svg: give a name that ends in one of them")
    with atomic_write(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], metadata=metadata[path.suffix])
    pyplot.close(figure)
    return path
