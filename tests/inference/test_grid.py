"""Where a position of a feature map lies on the image, against receptive fields that gradients measure."""

import numpy as np
import pytest
import torch
from torch import nn

from bcn import create_model, list_models
from bcn.inference.grid import cell_edges, stride_of
from bcn.models.registry import image_shape

WITH_BCN = [
    name
    for name, model in ((name, create_model(name)) for name in list_models())
    if getattr(model, "broadcast", None) is not None and hasattr(model, "features")
]


def receptive_fields(model: nn.Module, size: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    """(h, w, 2) the centre, y and x, of what each position sees, and whether all of it lies within the image.

    All weights are positive and nothing is subtracted, so that no gradient is lost.
    """
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.ones_(module.weight)
            if module.bias is not None:
                nn.init.ones_(module.bias)
    image = torch.ones(1, *size, dtype=torch.float64, requires_grad=True)
    features = model.double().eval().features(image)[0].sum(0)  # type: ignore[operator]
    rows, columns = features.shape
    centre, whole = np.zeros((rows, columns, 2)), np.zeros((rows, columns), bool)
    for row in {0, 1, rows // 2, rows - 1}:
        for column in {0, columns // 2, columns - 2, columns - 1}:
            (gradient,) = torch.autograd.grad(features[row, column], image, retain_graph=True)
            seen = gradient[0].sum(0).nonzero().numpy()
            centre[row, column] = (seen.min(0) + seen.max(0)) / 2
            whole[row, column] = seen.min() > 0 and (seen.max(0) < np.array(size[1:]) - 1).all()
    return centre, whole


@pytest.mark.parametrize("name", WITH_BCN)
def test_a_cell_is_around_the_centre_of_what_its_position_sees(name: str) -> None:
    channels, height, width = image_shape(name)
    height, width = height + 70, width + 53  # so large that inner positions see no edge, and not square
    centre, whole = receptive_fields(create_model(name), (channels, height, width))
    y_edges, x_edges = cell_edges(height, centre.shape[0]), cell_edges(width, centre.shape[1])
    assert whole.any()
    for row, column in np.argwhere(whole):
        y, x = centre[row, column] + 0.5  # the middle of a pixel
        for at, edges, position in ((y, y_edges, row), (x, x_edges, column)):
            assert (edges[position] + edges[position + 1]) / 2 == at


def test_cells_cover_the_image_whatever_its_size() -> None:
    for stride in (1, 2, 4, 8, 16):
        for pixels in range(stride, 200):
            positions = pixels
            for _ in range(stride.bit_length() - 1):
                positions = -(-positions // 2)  # as a 3x3 convolution with stride 2 gives them
            if positions > 1:
                assert stride_of(pixels, positions) == stride
            edges = cell_edges(pixels, positions)
            assert (edges[0], edges[-1], len(edges)) == (0, pixels, positions + 1)
            assert (np.diff(edges) > 0).all()
