"""Bilinear resampling against loops over pixels, and as what it must be at whole offsets."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bcn.layers.baselines.deformable import Deform, resample, resample_in_torch
from bcn.layers.fused.native import load_library

SIZES = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 6))


def by_loops(image: Tensor, dx: Tensor, dy: Tensor) -> Tensor:
    result = torch.zeros_like(image)
    height, width = image.shape[2:]
    for b, c, row, column in torch.cartesian_prod(*map(torch.arange, image.shape)).view(-1, 4).tolist():
        x = min(max(column + dx[b, c, row, column].item(), 0), width - 1)
        y = min(max(row + dy[b, c, row, column].item(), 0), height - 1)
        for near_row in {math.floor(y), math.ceil(y)}:
            for near_column in {math.floor(x), math.ceil(x)}:
                share = (1 - abs(y - near_row)) * (1 - abs(x - near_column))
                result[b, c, row, column] += share * image[b, c, near_row, near_column]
    return result


@settings(max_examples=40, deadline=None)
@given(size=SIZES, seed=st.integers(0, 1000))
def test_every_value_is_the_bilinear_one(size: tuple[int, ...], seed: int) -> None:
    torch.manual_seed(seed)
    image, dx, dy = torch.randn(3, *size, dtype=torch.float64).mul(2).unbind()
    offset, expected = torch.cat([dx, dy], dim=1), by_loops(image, dx, dy)
    torch.testing.assert_close(resample(image, offset), expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(resample(image.float(), offset.float()), expected.float(), rtol=0, atol=2e-5)


@settings(max_examples=30, deadline=None)
@given(size=SIZES, channels_last=st.booleans())
def test_a_new_layer_gives_back_the_map_itself(size: tuple[int, ...], channels_last: bool) -> None:
    image = torch.randn(size).mul(1e3)
    if channels_last:
        image = image.contiguous(memory_format=torch.channels_last)
    assert torch.equal(Deform(size[1])(image), image)


def test_whole_offsets_move_values_exactly_and_repeat_the_border() -> None:
    image = torch.randn(1, 2, 3, 4)
    dx, dy = torch.full_like(image, 1.0), torch.full_like(image, -2.0)
    moved = resample(image, torch.cat([dx, dy], dim=1))
    assert torch.equal(moved[:, :, 2, :3], image[:, :, 0, 1:])
    assert torch.equal(moved[:, :, :, 3], image[:, :, :1, 3].expand(-1, -1, 3))


def test_gradients() -> None:
    torch.manual_seed(0)
    image, offset = (torch.randn(1, c, 4, 5, dtype=torch.float64).mul(0.8).requires_grad_() for c in (2, 4))
    assert torch.autograd.gradcheck(resample, (image, offset))


compiled = pytest.mark.skipif(load_library("resample") is None, reason="the loop was not compiled")


@compiled
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("channels_last", [False, True])
def test_the_loop_in_c_has_the_gradients_of_torch(threads: int, channels_last: bool) -> None:
    torch.manual_seed(0)
    given = [torch.randn(5, c, 9, 7, dtype=torch.float64).mul(3) for c in (4, 8)]
    slope = torch.randn(5, 4, 9, 7)
    order = torch.channels_last if channels_last else torch.contiguous_format
    kinds = (torch.float64, torch.float32)
    exact, ours = ([x.to(kind, memory_format=order).requires_grad_() for x in given] for kind in kinds)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        found = torch.autograd.grad((resample(*ours) * slope).sum(), ours)
    finally:
        torch.set_num_threads(before)
    expected = torch.autograd.grad((resample_in_torch(*exact) * slope).sum(), exact)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs.float(), rtol=1e-4, atol=1e-4)


@compiled
def test_offsets_that_are_no_numbers_are_not_hidden() -> None:
    image, offset = torch.rand(1, 1, 3, 3), torch.zeros(1, 2, 3, 3)
    offset[0, 0, 1, 1] = torch.nan
    assert resample(image, offset).isnan().flatten().tolist() == [index == 4 for index in range(9)]


def test_offsets_are_per_channel_with_dx_first() -> None:
    layer = Deform(2)
    with torch.no_grad():
        layer.offset.weight[1, :, 1, 1] = torch.tensor([1.0, 0.0])  # dx of the second channel is the first channel
    image = torch.stack([torch.ones(3, 5), torch.arange(15.0).view(3, 5)])[None]
    moved = layer(image)
    assert torch.equal(moved[:, 0], image[:, 0])
    assert torch.equal(moved[:, 1, :, :4], image[:, 1, :, 1:])


@pytest.mark.parametrize("size", [(1, 1), (1, 9), (40, 3)])
def test_any_size(size: tuple[int, int]) -> None:
    layer = Deform(4)
    torch.nn.init.normal_(layer.offset.weight)
    image = torch.rand(2, 4, *size)
    moved = layer(image)
    assert moved.shape == image.shape
    assert moved.min() >= image.min()
    assert moved.max() <= image.max()
