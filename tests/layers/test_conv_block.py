"""The 3x3 block is convolution, ReLU, BatchNorm in the paper's order, for any stride and dilation."""

import pytest
import torch
import torch.nn.functional as F

from bcn.layers.baselines.conv_block import Block


@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (2, 2), (1, 3)])
@pytest.mark.parametrize("size", [(1, 1), (7, 4), (19, 19)])
def test_order_and_size(stride: int, dilation: int, size: tuple[int, int]) -> None:
    torch.manual_seed(0)
    block = Block(3, 5, stride=stride, dilation=dilation)
    image = torch.randn(4, 3, *size)
    hidden = F.conv2d(image, block.conv.weight, block.conv.bias, stride=stride, padding=dilation, dilation=dilation)
    hidden = hidden.clamp(min=0)
    expected = (hidden - hidden.mean((0, 2, 3), keepdim=True)) / (
        hidden.var((0, 2, 3), keepdim=True, correction=0) + block.norm.eps
    ).sqrt()
    torch.testing.assert_close(block(image), expected)
    assert expected.shape[2:] == tuple(-(-side // stride) for side in size)
    assert block(image).min() < 0  # BatchNorm comes last: its output is not cut off at zero
