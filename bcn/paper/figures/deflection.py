"""Figure 5: where random convolutions over coordinate planes answer strongly before anything is learned.

P planes, K kernels, H x W positions.
"""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from bcn.layers.coordinates import coordinate_planes
from bcn.paper.figures.style import canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SYSTEMS = {
    "x, y from the top left": ("xy", "top-left"),
    "x, y from the centre": ("xy", "centre"),
    "x, y, r from the centre": ("xyr", "centre"),
}


class Deflection(NamedTuple):
    response_HW: Tensor
    """mean over all kernels of the absolute output"""
    spread: float
    """standard deviation of the response over positions, divided by its mean: 0 where no place is preferred"""
    shift: float
    """how far the response's centre of mass lies from the map's centre, in units of half the side"""
    corner: float
    """share of the kernels whose maximum, which is what a BCN broadcasts, lies in a corner of the map"""


def deflection(
    planes: str, origin: str, *, size: int = 32, initialisations: int = 1000, kernels: int = 64, seed: int = 0
) -> Deflection:
    """The response of 1x1 convolutions with PyTorch's default initialisation (uniform, bias included)."""
    generator = torch.Generator().manual_seed(seed)
    planes_PHW = coordinate_planes(size, size, planes, origin)
    bound = len(planes) ** -0.5
    response_HW = torch.zeros(size, size)
    corners = (0, size - 1, size * (size - 1), size * size - 1)
    in_corner = 0.0
    for _ in range(initialisations):
        weight_KP = (2 * torch.rand(kernels, len(planes), generator=generator) - 1) * bound
        bias_K11 = (2 * torch.rand(kernels, 1, 1, generator=generator) - 1) * bound
        output_KHW = torch.einsum("kp,phw->khw", weight_KP, planes_PHW) + bias_K11
        response_HW += output_KHW.abs().mean(0) / initialisations
        maximum_K = output_KHW.flatten(1).argmax(1)
        in_corner += float(torch.isin(maximum_K, torch.tensor(corners)).float().mean()) / initialisations
    position_2HW = coordinate_planes(size, size, "xy")
    centre_2 = (position_2HW * response_HW).sum((1, 2)) / response_HW.sum()
    spread = response_HW.std() / response_HW.mean()
    return Deflection(response_HW, float(spread), float(centre_2.norm()), in_corner)


def draw(*, seed: int = 0) -> "Figure":
    figure, axes = canvas(1, 3, size=(8, 3.2))
    results = [deflection(*system, seed=seed) for system in SYSTEMS.values()]
    relative_HW = [result.response_HW / result.response_HW.mean() for result in results]
    low, high = (float(limit(torch.stack(relative_HW))) for limit in (torch.min, torch.max))
    for axis, name, result, response_HW in zip(axes[0], SYSTEMS, results, relative_HW, strict=True):
        image = axis.imshow(response_HW.numpy(), cmap="viridis", vmin=low, vmax=high)
        numbers = f"deflection {result.spread:.3f} (spread / mean)\ncentre of mass off by {result.shift:.3f}"
        axis.set_title(f"{name}\n{numbers}\n{result.corner:.0%} of the maxima in a corner")
        axis.set_axis_off()
    figure.colorbar(image, ax=list(axes[0]), shrink=0.8, label="mean |output| / its mean over the map")
    return figure
