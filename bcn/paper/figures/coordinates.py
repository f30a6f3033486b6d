"""Figure 2: the coordinate planes of a map twice as wide as high."""

from typing import TYPE_CHECKING

from bcn.layers.coordinates import coordinate_planes
from bcn.paper.figures.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(height: int = 32, width: int = 64) -> "Figure":
    figure, axes = canvas(1, 3, size=(8, 2))
    for axis, name, plane in zip(axes[0], "xyr", coordinate_planes(height, width), strict=True):
        image = axis.imshow(plane.numpy(), cmap="gray", vmin=-1, vmax=max(1.0, float(plane.max())))
        low, high = float(plane.min()), float(plane.max())
        axis.set_title(f"$c_{name}$: {low:.2f} to {high:.2f}")
        axis.set_xticks([0, width - 1])
        axis.set_yticks([0, height - 1])
        axis.spines[:].set_visible(False)
    figure.colorbar(image, ax=list(axes[0]), shrink=0.8)
    return figure
