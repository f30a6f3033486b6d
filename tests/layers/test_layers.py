"""Each layer against a reference implementation written here: real `cat`, real `expand`, loops over pairs."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from bcn import BcnError, BroadcastConv, coordinate_planes
from bcn.layers.broadcast import SkipConv
from bcn.layers.pointwise import ConcatConv1x1
from bcn.layers.relation import MultiRelation, PairRelation

# ---------------------------------------------------------------------------------------------------------- the oracles


def planes_by_hand(height: int, width: int, planes: str, origin: str, dtype: torch.dtype) -> Tensor:
    step = 1 / max(max(height, width) - 1, 1)
    made = torch.empty(len(planes), height, width, dtype=torch.float64)
    for row in range(height):
        for column in range(width):
            if origin == "centre":
                x, y = (2 * column - width + 1) * step, (2 * row - height + 1) * step
            else:
                x, y = column * step, row * step
            for index, plane in enumerate(planes):
                made[index, row, column] = {"x": x, "y": y, "r": math.sqrt(x * x + y * y)}[plane]
    return made.to(dtype)


def stack(widths: list[int]) -> nn.ModuleList:
    return nn.ModuleList(nn.Conv2d(a, b, 1) for a, b in pairwise(widths))


def with_planes(map_BCHW: Tensor, planes: str, origin: str) -> Tensor:
    height, width = map_BCHW.shape[-2:]
    C = planes_by_hand(height, width, planes, origin, map_BCHW.dtype)
    return torch.cat([map_BCHW, C.expand(len(map_BCHW), *C.shape)], dim=1)


class ReferenceBroadcast(nn.Module):
    def __init__(
        self,
        channels: int,
        sizes: Sequence[int],
        *,
        planes: str = "xyr",
        origin: str = "centre",
        pool: str = "max",
        slope: float = 1.0,
    ) -> None:
        super().__init__()
        self.k = stack([channels + len(planes), *sizes])
        self.options, self.slope = (planes, origin, pool), slope

    def forward(self, map_BCHW: Tensor) -> Tensor:
        planes, origin, pool = self.options
        hidden = with_planes(map_BCHW, planes, origin)
        for conv in self.k[:-1]:
            hidden = conv(hidden).relu()
        hidden = self.k[-1](hidden)
        hidden = torch.where(hidden > 0, hidden, self.slope * hidden)
        if pool == "skip":
            return hidden
        hidden = hidden.amax((2, 3), keepdim=True) if pool == "max" else hidden.mean((2, 3), keepdim=True)
        return with_planes(hidden.expand(-1, -1, *map_BCHW.shape[2:]), planes, origin)


class ReferenceMulti(nn.Module):
    def __init__(
        self, channels: int, questions: int, sizes: Sequence[int], broadcast: Any, *, planes: str = "xyr"
    ) -> None:
        super().__init__()
        self.broadcast = broadcast
        vector = broadcast.k[-1].out_channels if broadcast else 0
        self.g = stack([channels + vector + len(planes) + questions, *sizes])
        self.planes = planes

    def forward(self, map_BCHW: Tensor, question_BQD: Tensor) -> Tensor:
        size, answers = map_BCHW.shape[2:], []
        for q in range(question_BQD.shape[1]):
            sources = [map_BCHW]
            if self.broadcast:
                sources.append(self.broadcast(map_BCHW)[:, : self.broadcast.k[-1].out_channels])
            hidden = with_planes(torch.cat(sources, 1), self.planes, "centre")
            asked = question_BQD[:, q, :, None, None].expand(-1, -1, *size)
            hidden = torch.cat([hidden, asked], 1)
            for conv in self.g:
                hidden = conv(hidden).relu()
            answers.append(hidden.sum((2, 3)))
        return torch.stack(answers, 1)


class ReferencePairs(nn.Module):
    def __init__(self, channels: int, questions: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.g = stack([2 * (channels + 3) + questions, *sizes])

    def forward(self, map_BCHW: Tensor, question_BQD: Tensor) -> Tensor:
        objects = with_planes(map_BCHW, "xyr", "centre").flatten(2)
        total = torch.zeros((), dtype=map_BCHW.dtype)
        for i in range(objects.shape[2]):
            for j in range(objects.shape[2]):
                pair = torch.cat([objects[:, :, i], objects[:, :, j]], 1)
                pair = pair[:, None].expand(-1, question_BQD.shape[1], -1)
                hidden = torch.cat([pair, question_BQD], 2).transpose(1, 2)[..., None]
                for conv in self.g:
                    hidden = conv(hidden).relu()
                total = total + hidden[..., 0].transpose(1, 2)
        return total


def agree(ours: nn.Module, reference: nn.Module, *inputs: Tensor, dtype: torch.dtype, leaves: int = 9) -> None:
    """Outputs and the gradients of the first inputs and all parameters agree; weights go both ways, strictly."""
    ours, reference = ours.to(dtype), reference.to(dtype)
    reference.load_state_dict(ours.state_dict(), strict=True)
    ours.load_state_dict(reference.state_dict(), strict=True)
    tolerance = {torch.float64: 1e-10, torch.float32: 1e-5}[dtype]
    results = []
    for module in (ours, reference):
        given = [x.to(dtype).clone().requires_grad_(i < leaves) for i, x in enumerate(inputs)]
        out = module(*given)
        weight = torch.linspace(0, 1, out.numel(), dtype=dtype).view(out.shape)
        parameters = [parameter for _, parameter in sorted(module.named_parameters())]
        grads = torch.autograd.grad((out * weight).sum(), [*given[:leaves], *parameters])
        results.append([out, *grads])
    for mine, theirs in zip(*results, strict=True):
        scale = theirs.abs().max().clamp(min=1)
        assert ((mine - theirs).abs().max() / scale).item() <= tolerance


settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


Size = tuple[int, int]
SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9))
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
PLANES = st.sampled_from(["xyr", "xy", "r", ""])
ORIGINS = st.sampled_from(["centre", "top-left"])


# ------------------------------------------------------------------------------------------------------ the coordinates


@given(SIZES, PLANES, ORIGINS)
def test_coordinate_planes_are_those_made_by_hand(size: Size, planes: str, origin: Any) -> None:
    height, width = size
    ours = coordinate_planes(height, width, planes, origin, dtype=torch.float64)
    assert torch.allclose(ours, planes_by_hand(height, width, planes, origin, torch.float64), rtol=0, atol=1e-15)


@given(st.integers(1, 200), st.integers(1, 200), st.sampled_from([torch.float32, torch.float16, torch.bfloat16]))
def test_coordinate_planes_are_symmetric_and_span_the_longer_side(height: int, width: int, dtype: torch.dtype) -> None:
    x, y, r = coordinate_planes(height, width, dtype=dtype)
    assert torch.equal(x, -x.flip(1))
    assert torch.equal(y, -y.flip(0))
    assert torch.equal(r, r.flip(0, 1))
    longest = max(height, width)
    assert max(x.max(), y.max()) == (1 if longest > 1 else 0)
    expected = (min(height, width) - 1) / max(longest - 1, 1)
    assert abs(min(x.max(), y.max()).item() - expected) <= torch.finfo(dtype).eps
    assert x.dtype == dtype


def test_planes_of_one_mode_do_not_leak_into_another() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        coordinate_planes(23, 29)
    assert type(coordinate_planes(23, 29)) is Tensor
    layer, image = BroadcastConv(4, (5,)), torch.rand(1, 4, 13, 17)
    with torch.inference_mode():
        layer(image)
    layer(image).sum().backward()


def test_coordinate_planes_are_not_in_the_state_dict() -> None:
    layer = BroadcastConv(4, (5,))
    before = set(layer.state_dict())
    layer(torch.rand(1, 4, 6, 6))
    assert set(layer.state_dict()) == before == {"k.0.weight", "k.0.bias"}


@pytest.mark.parametrize("bad", [{"planes": "xz"}, {"planes": "xx"}, {"origin": "middle"}])
def test_bad_planes_are_refused(bad: Any) -> None:
    with pytest.raises(BcnError, match="accepted"):
        coordinate_planes(3, 3, **bad)


# ---------------------------------------------------------------------------------------------------------- convolution


@DTYPES
@settings(max_examples=15)
@given(size=SIZES, images=st.integers(1, 3), last=st.booleans())
def test_concat_is_a_convolution_over_the_concatenation(
    dtype: torch.dtype, size: Size, images: int, last: bool
) -> None:
    ours = ConcatConv1x1((3, 5, 2), 4)

    class Reference(nn.Conv2d):
        def forward(self, image: Tensor, *others: Tensor) -> Tensor:
            vector, planes = others
            vector = vector[:, :, None, None].expand(-1, -1, *size)
            return super().forward(torch.cat([image, vector, planes.expand(images, -1, -1, -1)], 1))

    image = torch.randn(images, 3, *size)
    image = image.contiguous(memory_format=torch.channels_last) if last else image
    agree(ours, Reference(10, 4, 1), image, torch.randn(images, 5), torch.randn(2, *size), dtype=dtype)


@DTYPES
@settings(max_examples=25)
@given(size=SIZES, images=st.integers(1, 3), planes=PLANES, origin=ORIGINS, pool=st.sampled_from(["max", "average"]))
def test_broadcast_is_equation_1(
    dtype: torch.dtype, size: Size, images: int, planes: str, origin: Any, pool: str
) -> None:
    options: Any = {"planes": planes, "origin": origin, "pool": pool}
    ours, reference = BroadcastConv(4, (6, 5), **options), ReferenceBroadcast(4, (6, 5), **options)
    agree(ours, reference, torch.randn(images, 4, *size), dtype=dtype)


FINAL: dict[str, tuple[Any, float]] = {
    "linear": ({"final_relu": False}, 1.0),
    "relu": ({"final_relu": True}, 0.0),
    "leaky": ({"final_relu": True, "negative_slope": 0.1}, 0.1),
}


@DTYPES
@pytest.mark.parametrize("pool", ["max", "average"])
@pytest.mark.parametrize("sizes", [(32, 64, 32), (6, 5), (5,)])  # of the compiled loop, and of none
@pytest.mark.parametrize("final", FINAL)
def test_what_follows_the_last_convolution(dtype: torch.dtype, pool: Any, sizes: Sequence[int], final: str) -> None:
    options, slope = FINAL[final]
    ours = BroadcastConv(4, sizes, pool=pool, **options)
    reference = ReferenceBroadcast(4, sizes, pool=pool, slope=slope)
    agree(ours, reference, torch.randn(3, 4, 5, 6), dtype=dtype)
    agree(ours, reference, torch.randn(3, 4, 5, 6) - 9, dtype=dtype)  # where a ReLU would leave little


def test_a_dead_channel_gets_a_gradient_without_the_final_relu() -> None:
    for final_relu in (True, False):
        layer = BroadcastConv(4, (8, 8), final_relu=final_relu)
        last: Any = layer.k[-1]
        nn.init.constant_(last.bias, -99.0)
        layer.pooled(torch.rand(2, 4, 5, 5))[0].sum().backward()
        assert bool(last.weight.grad.any()) is not final_relu


def test_every_channel_has_a_place_without_the_final_relu_and_those_that_count_can_be_chosen() -> None:
    layer, image = BroadcastConv(4, (8, 8), final_relu=False), torch.rand(2, 4, 5, 6)
    last: Any = layer.k[-1]
    nn.init.constant_(last.bias, -99.0)
    assert layer.activation_map(image).sum((1, 2)).tolist() == [8, 8]
    position_BK, active_K = layer.pooled(image)[1], torch.arange(8) < 3
    counts = torch.stack([torch.bincount(position[:3], minlength=30) for position in position_BK]).view(2, 5, 6)
    assert torch.equal(layer.activation_map(image, active_K), counts.float())


@DTYPES
@pytest.mark.parametrize("planes", ["", "xyr"])
def test_skip_is_the_same_convolutions_without_pooling(dtype: torch.dtype, planes: str) -> None:
    reference = ReferenceBroadcast(4, (6, 5), planes=planes, pool="skip", slope=0.0)
    agree(SkipConv(4, (6, 5), planes=planes), reference, torch.randn(2, 4, 5, 3), dtype=dtype)


def test_positions_are_where_the_maxima_are() -> None:
    layer = BroadcastConv(4, (6, 32), final_relu=True).double()
    image = torch.randn(3, 4, 7, 5, dtype=torch.float64)
    vector, position = layer.pooled(image)
    hidden = SkipConv.forward(layer, image).flatten(2)
    assert torch.allclose(hidden.gather(2, position[..., None])[..., 0], vector, rtol=1e-12, atol=1e-12)
    assert torch.allclose(hidden.amax(2), vector, rtol=1e-12, atol=1e-12)
    found = layer.activation_map(image)
    for b in range(3):
        counts = torch.zeros(35)
        for k in range(32):
            if vector[b, k] > 0:
                counts[hidden[b, k].argmax()] += 1
        assert torch.equal(found[b].flatten(), counts)


def test_broadcast_refuses_bad_options() -> None:
    with pytest.raises(BcnError, match="'max' and 'average'"):
        BroadcastConv(3, pool="median")
    slopes: list[Any] = [
        {"negative_slope": -0.1, "final_relu": True},
        {"negative_slope": 2.0, "final_relu": True},
        {"negative_slope": 0.1, "final_relu": False},
    ]
    for bad in slopes:
        with pytest.raises(BcnError, match="from 0 to 1"):
            BroadcastConv(3, **bad)
    with pytest.raises(BcnError, match="at least one"):
        BroadcastConv(3, ())


# ------------------------------------------------------------------------------------------------------------ relations


@DTYPES
@settings(max_examples=20)
@given(
    size=SIZES,
    images=st.integers(1, 3),
    questions=st.integers(1, 4),
    depth=st.integers(1, 4),
    broadcast=st.booleans(),
    planes=PLANES,
    learned=st.booleans(),
)
def test_multi_relation_is_equation_4(
    dtype: torch.dtype,
    size: Size,
    images: int,
    questions: int,
    depth: int,
    broadcast: bool,
    planes: str,
    learned: bool,
) -> None:
    options: Any = {"planes": planes}
    ours = MultiRelation(
        3, 5, (6, 7, 4, 8)[:depth], broadcast=BroadcastConv(3, (4, 6), **options) if broadcast else None, **options
    )
    other = ReferenceBroadcast(3, (4, 6), **options) if broadcast else None
    reference = ReferenceMulti(3, 5, (6, 7, 4, 8)[:depth], other, **options)
    asked = torch.randint(0, 2, (images, questions, 5)).float() * torch.tensor([1, 1, 0, 0, 0])  # some are asked twice
    agree(ours, reference, torch.randn(images, 3, *size), asked, dtype=dtype, leaves=2 if learned else 1)


@DTYPES
@settings(max_examples=10)
@given(size=st.tuples(st.integers(1, 4), st.integers(1, 4)), images=st.integers(1, 3), questions=st.integers(1, 3))
def test_pair_relation_is_equation_2(dtype: torch.dtype, size: Size, images: int, questions: int) -> None:
    ours, reference = PairRelation(3, 5, (6, 7, 4)), ReferencePairs(3, 5, (6, 7, 4))
    agree(ours, reference, torch.randn(images, 3, *size), torch.randn(images, questions, 5), dtype=dtype)


@DTYPES
@pytest.mark.parametrize(
    ("images", "size", "questions"), [(2, (10, 10), 20), (3, (5, 5), 20), (40, (3, 3), 1), (1, (40, 33), 3)]
)
def test_multi_relation_at_sizes_that_cut_chunks_differently(
    dtype: torch.dtype, images: int, size: Size, questions: int
) -> None:
    ours = MultiRelation(4, 11, (16, 16), broadcast=BroadcastConv(4, (8, 8)))
    reference = ReferenceMulti(4, 11, (16, 16), ReferenceBroadcast(4, (8, 8)))
    agree(ours, reference, torch.randn(images, 4, *size), torch.randn(images, questions, 11), dtype=dtype)


def test_relations_without_a_question_are_equation_3() -> None:
    relation = MultiRelation(3, broadcast=BroadcastConv(3, (4,)), sizes=(6, 5)).double()
    reference = ReferenceMulti(3, 0, (6, 5), ReferenceBroadcast(3, (4,))).double()
    reference.load_state_dict(relation.state_dict())
    image = torch.randn(2, 3, 4, 4, dtype=torch.float64)
    assert torch.allclose(relation(image), reference(image, image.new_empty(2, 1, 0))[:, 0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("depth", [2, 3])
def test_gradcheck(depth: int) -> None:
    torch.manual_seed(depth)
    relation = MultiRelation(2, 3, (4, 3, 5)[:depth], broadcast=BroadcastConv(2, (4,))).double()
    inputs = (torch.randn(2, 2, 3, 2, dtype=torch.float64), torch.randn(2, 2, 3, dtype=torch.float64))
    parameters = dict(relation.named_parameters())

    def call(*tensors: Tensor) -> Any:
        values = dict(zip(parameters, tensors[2:], strict=True))
        return torch.func.functional_call(relation, values, tensors[:2])

    leaves = [x.detach().clone().requires_grad_() for x in (*inputs, *parameters.values())]
    assert torch.autograd.gradcheck(call, leaves)


@pytest.mark.parametrize(
    "relation", [MultiRelation(3, 5, broadcast=BroadcastConv(3, (8,)), planes=""), PairRelation(3, 5, planes="")]
)
def test_objects_may_be_permuted_with_their_coordinates(relation: Any) -> None:
    """Planes are given as channels, so that they move with the objects."""
    relation = relation.double()
    if isinstance(relation, MultiRelation):
        relation.broadcast.planes = ""
        relation.broadcast.k[0] = ConcatConv1x1((3, 0), 8).double()
    objects, question = torch.randn(2, 3, 12, dtype=torch.float64), torch.randn(2, 4, 5, dtype=torch.float64)
    shuffled = objects[:, :, torch.randperm(12)]
    first, second = (relation(x.view(2, 3, 3, 4), question) for x in (objects, shuffled))
    assert torch.allclose(first, second, rtol=1e-12, atol=1e-12)


def test_questions_of_the_wrong_shape_are_refused() -> None:
    relation = MultiRelation(3, 5, broadcast=None)
    for shape in [(2, 4), (3, 5), (2, 4, 4), (2, 1, 1, 5)]:
        with pytest.raises(BcnError, match=r"accepted for 2 images is \(2, 5\)"):
            relation(torch.rand(2, 3, 4, 4), torch.rand(*shape))


# ------------------------------------------------------------------------------------------ around the fused sum


def test_no_questions_give_no_answers() -> None:
    for layer in (MultiRelation(3, 5, (32, 32), broadcast=BroadcastConv(3, (8,))), PairRelation(3, 5, (32, 32, 32))):
        total = layer(torch.rand(2, 3, 4, 4), torch.rand(2, 0, 5))
        assert total.shape == (2, 0, 32)
        total.sum().backward()


def test_other_floats_are_related_too() -> None:
    relation = MultiRelation(3, 5, (32, 32), broadcast=BroadcastConv(3, (8,))).bfloat16()
    image, question = torch.rand(2, 3, 4, 4), torch.rand(2, 3, 5)
    out = relation(image.bfloat16(), question.bfloat16())
    assert torch.allclose(out.float(), relation.float()(image, question), rtol=0.1, atol=0.5)


def test_g_without_layers_is_refused() -> None:
    with pytest.raises(BcnError, match="at least one size"):
        PairRelation(3, 5, ())


@pytest.fixture
def relation() -> MultiRelation:
    torch.manual_seed(0)
    return MultiRelation(4, 6, (16, 16), broadcast=BroadcastConv(4, (8, 8)))


def test_compiles_and_exports(relation: MultiRelation) -> None:
    image, question = torch.randn(3, 4, 6, 6), torch.randn(3, 5, 6)
    expected = relation(image, question)
    torch._dynamo.reset()
    compiled = torch.compile(relation, backend="aot_eager", fullgraph=True)(image, question)
    assert torch.allclose(compiled, expected, rtol=1e-4, atol=1e-5)
    dynamic = {0: torch.export.Dim("images"), 2: torch.export.Dim("height"), 3: torch.export.Dim("width")}
    shapes = {"map_BCHW": dynamic, "question": {0: dynamic[0], 1: torch.export.Dim("questions")}}
    program = torch.export.export(relation, (image, question), dynamic_shapes=shapes)
    bigger = torch.randn(2, 4, 9, 11), torch.randn(2, 7, 6)
    assert torch.allclose(program.module()(*bigger), relation(*bigger), rtol=1e-4, atol=1e-5)


def test_autocast_computes_in_bfloat16(relation: MultiRelation) -> None:
    image, question = torch.randn(3, 4, 6, 6), torch.randn(3, 5, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = relation(image, question)
    out.float().sum().backward()
    assert torch.allclose(out.float(), relation(image, question), rtol=0.1, atol=0.5)
    assert all(p.grad is not None and p.grad.isfinite().all() for p in relation.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_cuda_agrees(relation: MultiRelation) -> None:
    image, question = torch.randn(3, 4, 6, 6), torch.randn(3, 5, 6)
    expected = relation(image, question)
    found = relation.cuda()(image.cuda(), question.cuda())
    assert torch.allclose(found.cpu(), expected, rtol=1e-3, atol=1e-3)
