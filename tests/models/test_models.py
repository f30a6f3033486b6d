"""Over the registry: a new model is tested by being registered."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter

import bcn.layers.coordinates
from bcn import BcnError, coordinate_planes, create_model, list_models
from bcn.models.cost import on_meta
from bcn.models.reference import reference_model
from bcn.models.registry import image_shape
from bcn.paper.published import published_rows

MODELS = list_models()
RELATIONAL = [name for name in MODELS if hasattr(on_meta(name), "relation")]
IN_WORDS = [name for name in MODELS if hasattr(on_meta(name), "question_encoder") or name == "clevr/q-type"]
ASKED = [*RELATIONAL, *IN_WORDS]
STATES = [name for name in MODELS if name.endswith("-states")]
ONE_SIZE = ["sort-of-clevr/mlp", "sort-of-clevr/cce-mlp", "sort-of-clevr/coordconv-mlp", "clevr/cnn-lstm"]
DENSE = ["masks/unet", "masks/unet-bcn"]
ANY_SIZE = [name for name in MODELS if name not in ONE_SIZE + STATES]
BROADCASTING = ["scaled-mnist/bcn", "scaled-mnist/bcn-average-pool", "stl10/bcn", "stl10/resnet18-bcn"]
BROADCASTING += ["sort-of-clevr/multirn", "sort-of-clevr/multirn-h", "sort-of-clevr/multirn-states"]
BROADCASTING += ["scaled-mnist-blocks/bcn", "scaled-mnist-blocks/bcn-after-1", "scaled-mnist-blocks/bcn-after-3"]
BROADCASTING += ["stl10-blocks/bcn", "masks/unet-bcn", "boxes/centre-net-bcn"]
BROADCASTING += ["clevr/multirn", "clevr/multirn-h", "clevr/multirn-h-224"]
OF_OBJECTS = ["rn-original", "rn", "rn-h", "multirn-no-bcn", "multirn", "multirn-h", "multirn-rounds", "deep-sets"]
OF_OBJECTS += ["transformer", "set-transformer"]


def make(name: str, **arguments: Any) -> nn.Module:
    torch.manual_seed(0)
    return create_model(name, **arguments)


def inputs(name: str, model: Any, *, size: tuple[int, int] = (40, 33), images: int = 3) -> tuple[Tensor, ...]:
    """Random images, or objects and which of them are there; and where something is asked two questions about each."""
    torch.manual_seed(1)
    if name in STATES:
        mask = torch.arange(7) < torch.arange(7, 0, -3)[torch.arange(images) % 3, None]
        return torch.randn(images, 7, 10), mask, torch.randint(2, (images, 2, 11)).float()
    channels, *own = image_shape(name)
    image = torch.rand(images, channels, *(own if name in ONE_SIZE else size))
    if name in IN_WORDS:
        return image, torch.randint(1, 80, (images, 2, 5)) * (torch.arange(5) < torch.tensor([[5], [3]]))
    if not hasattr(model, "relation"):
        return (image,)
    return image, torch.randint(2, (images, 2, model.relation.question_dim)).float()


def double(args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Numbers in double precision; the indices of words stay as they are."""
    return tuple(tensor.double() if tensor.is_floating_point() else tensor for tensor in args)


def flat(outputs: Tensor | tuple[Tensor, ...]) -> Tensor:
    return outputs.flatten() if isinstance(outputs, Tensor) else torch.cat([output.flatten() for output in outputs])


def gradients(model: Any, args: tuple[Tensor, ...]) -> tuple[Tensor, dict[str, Tensor]]:
    """The outputs, and the gradients of a fixed mixture of them."""
    outputs = flat(model(*args))
    model.zero_grad()
    (outputs * torch.linspace(-1, 1, len(outputs), dtype=outputs.dtype)).sum().backward()
    return outputs.detach(), {name: parameter.grad for name, parameter in model.named_parameters()}


OF_NO_TABLE = ["multirn-rounds", "multirn-rounds-h"]
OF_NO_TABLE += ["transformer", "set-transformer", "film", "deep-sets", "coordconv-mlp"]
OF_NO_TABLE += ["rn-states", "mlp-states", "deep-sets-states", "multirn-states", "multirn-rounds-states"]
OF_NO_TABLE += ["film-states", "transformer-states", "set-transformer-states"]
OURS = {"sort-of-clevr": [f"sort-of-clevr/{row}" for row in OF_NO_TABLE]}
"""of no table of the paper"""


def test_the_names_are_the_rows_of_the_tables() -> None:
    for data in ("scaled-mnist", "stl10", "sort-of-clevr"):
        rows = published_rows(data.replace("-", "_")).items()
        ours = OURS.get(data, [])
        assert list_models(f"{data}/") == [f"{data}/{name}" for name, row in rows if not row.get("cited")] + ours


@pytest.mark.parametrize("name", MODELS)
def test_forward_and_backward_reach_every_parameter(name: str) -> None:
    model = make(name)
    args = inputs(name, model)
    outputs = model(*args)
    if name in DENSE:
        assert outputs.shape == (3, 40 * 33, 11)
    elif name.startswith("scaled-mnist"):
        assert [output.shape for output in outputs] == [(3, 10), (3, 2)]
    elif name.startswith("boxes"):
        assert [output.shape for output in outputs] == [(3, 10 * 9, 3), (3, 10 * 9, 4)]
    else:
        answers = 28 if name in IN_WORDS else 10
        assert outputs.shape == ((3, 2, answers) if name in ASKED else (3, answers))
    for parameter, gradient in gradients(model, args)[1].items():
        assert gradient is not None, f"{parameter} is unused"
        assert gradient.isfinite().all(), parameter
        assert gradient.any(), f"{parameter} has no influence"


@pytest.mark.parametrize("name", MODELS)
def test_evaluation_is_the_same_after_saving_and_loading(name: str, tmp_path: Path) -> None:
    model = make(name)
    args = inputs(name, model)
    model(*args)  # moves the running statistics
    save_file(model.state_dict(), tmp_path / "weights.safetensors")
    loaded = create_model(name)
    loaded.load_state_dict(load_file(tmp_path / "weights.safetensors"))
    assert torch.equal(flat(loaded.eval()(*args)), flat(model.eval()(*args)))


@pytest.mark.parametrize("name", ANY_SIZE)
def test_any_image_size(name: str) -> None:
    model = make(name).eval()
    for size in [(40, 40), (9, 61), (1, 1)]:
        outputs = flat(model(*inputs(name, model, size=size)))
        assert outputs.isfinite().all()
    model.to("meta")
    args = tuple(tensor.to("meta") for tensor in inputs(name, model, size=(256, 192)))
    of_places = {"masks": 3 * 256 * 192 * 11, "boxes": 3 * 64 * 48 * 7}.get(name.split("/")[0])
    assert flat(model(*args)).numel() == (of_places or outputs.numel())


@pytest.mark.parametrize("name", MODELS)
def test_compiles_in_one_graph(name: str) -> None:
    torch._dynamo.reset()
    model = make(name).eval()
    args = inputs(name, model)
    if name in ("clevr/cnn-lstm-sa", "clevr/rn"):  # objects that are much alike, 4,096 pairs: rounding would show
        model, args = model.double(), double(args)
    outputs, expected = gradients(model, args)
    counter = CompileCounter()
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    again, actual = gradients(compiled, args)
    assert counter.frame_count == 1
    torch.testing.assert_close(again, outputs, rtol=1e-4, atol=1e-4)
    for parameter in expected:
        scale = expected[parameter].abs().max().item()
        torch.testing.assert_close(actual[f"_orig_mod.{parameter}"], expected[parameter], rtol=0, atol=1e-4 * scale)


@pytest.mark.parametrize("name", ["sort-of-clevr/multirn", "scaled-mnist/bcn"])
def test_compiles_with_inductor(name: str) -> None:
    torch._dynamo.reset()
    model = make(name).eval()
    args = inputs(name, model)
    with torch.no_grad():
        torch.testing.assert_close(flat(torch.compile(model)(*args)), flat(model(*args)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_exports(name: str) -> None:
    model = make(name).eval()
    args = inputs(name, model)
    exported = torch.export.export(model, args).module()
    torch.testing.assert_close(flat(exported(*args)), flat(model(*args)), rtol=1e-4, atol=1e-4)


FREE = ["sort-of-clevr/multirn-h", "sort-of-clevr/rn", "sort-of-clevr/multirn-rounds", "scaled-mnist/bcn", "stl10/bcn"]


@pytest.mark.parametrize("name", FREE)
def test_exports_with_free_sizes(name: str) -> None:
    model = make(name).eval()
    free = torch.export.Dim.DYNAMIC
    shapes = [{0: free, 2: free, 3: free}, {0: free, 1: free}]
    args = inputs(name, model, size=(64, 48))
    exported = torch.export.export(model, args, dynamic_shapes=tuple(shapes[: len(args)])).module()
    others = inputs(name, model, size=(40, 73), images=5)
    torch.testing.assert_close(flat(exported(*others)), flat(model(*others)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_the_reference_agrees_and_shares_weights(name: str) -> None:
    model = make(name)
    reference = reference_model(model)
    assert list(reference.state_dict()) == list(model.state_dict())
    other = create_model(name)
    reference.load_state_dict(other.state_dict(), strict=True)
    model.load_state_dict(reference.state_dict(), strict=True)
    args = inputs(name, model)
    torch.testing.assert_close(flat(reference.eval()(*args)), flat(other.eval()(*args)), rtol=1e-5, atol=1e-5)

    args = double(args)
    outputs, expected = gradients(reference.double(), args)
    again, actual = gradients(model.eval().double(), args)
    torch.testing.assert_close(again, outputs, rtol=0, atol=1e-10)
    for parameter in expected:
        torch.testing.assert_close(actual[parameter], expected[parameter], rtol=1e-10, atol=1e-10)


def test_the_reference_has_none_of_the_fast_layers() -> None:
    model = make("sort-of-clevr/multirn")
    kinds = {type(module) for module in reference_model(model).modules()}
    assert not kinds & {type(model), type(model.relation), type(model.broadcast), type(model.relation.g[0])}


@pytest.mark.parametrize("name", ASKED)
def test_questions_asked_together_are_answered_as_alone(name: str) -> None:
    model = make(name).double().eval()
    *seen, question = double(inputs(name, model))
    together = model(*seen, question)
    for index in range(2):
        alone = model(*seen, question[:, index])
        assert alone.shape == together[:, index].shape
        torch.testing.assert_close(together[:, index], alone, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", RELATIONAL)
@pytest.mark.parametrize("shape", [(3, 10), (2, 11), (3, 2, 12), (11,)])
def test_questions_of_another_shape_are_refused(name: str, shape: tuple[int, ...]) -> None:
    model = on_meta(name)
    *seen, _ = inputs(name, model)
    with pytest.raises(BcnError, match="questions have the shape"):
        model(*(tensor.to("meta") for tensor in seen), torch.zeros(shape, device="meta"))


@pytest.mark.parametrize("row", ["mlp", "cce-mlp", "coordconv-mlp"])
def test_an_mlp_refuses_images_of_another_size(row: str) -> None:
    with pytest.raises(BcnError, match=r"\(5, 5\)"):
        create_model(f"sort-of-clevr/{row}")(torch.zeros(2, 3, 128, 128), torch.zeros(2, 11))


@pytest.mark.parametrize("row", OF_OBJECTS)
def test_the_order_of_objects_does_not_matter_but_their_places_do(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(f"sort-of-clevr/{row}").double().eval()
    image, question = (tensor.double() for tensor in inputs(f"sort-of-clevr/{row}", model))
    objects = model.features(image)
    height, width = objects.shape[2:]
    order = torch.randperm(height * width)

    def shuffled(map_CHW: Tensor) -> Tensor:
        return map_CHW.flatten(-2)[..., order].view_as(map_CHW)

    answer = model.relation(objects, question)
    without_places = model.relation(shuffled(objects), question)
    assert (without_places - answer).abs().max() > 1e-6

    def shuffled_planes(*args: Any, **kwargs: Any) -> Tensor:
        return shuffled(coordinate_planes(*args, **kwargs))

    monkeypatch.setattr(bcn.layers.coordinates, "_kept_planes", shuffled_planes)
    torch.testing.assert_close(model.relation(shuffled(objects), question), answer, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", ["scaled-mnist/baseline", "scaled-mnist/bcn", "stl10/baseline", "stl10/bcn"])
def test_with_a_bcn_every_output_position_sees_the_whole_image(name: str) -> None:
    """A bright spot anywhere has a gradient at every position of the last map, and without BCN only nearby."""
    model = make(name).eval()
    side, spots = 96, [(row, column) for row in range(8, 96, 16) for column in range(8, 96, 16)]
    image = torch.rand(len(spots), image_shape(name)[0], side, side)
    for index, (row, column) in enumerate(spots):
        image[index, :, row - 4 : row + 4, column - 4 : column + 4] += 10
    image.requires_grad_()
    last = model.after(model.middle(model.features(image)))
    step = side // last.shape[2]
    for i, j in [(0, 0), (0, last.shape[3] - 1), (last.shape[2] // 2, last.shape[3] // 2)]:
        (gradient,) = torch.autograd.grad(last[:, :, i, j].square().sum(), image, retain_graph=True)
        for index, (row, column) in enumerate(spots):
            seen = gradient[index, :, row - 4 : row + 4, column - 4 : column + 4].any().item()
            far = max(abs(row - i * step), abs(column - j * step)) > 40  # 15 pixels of three blocks, 31 of four
            assert seen or "bcn" not in name
            assert not (seen and far) or "bcn" in name


@pytest.mark.parametrize("name", MODELS)
def test_where_the_broadcast_came_from(name: str) -> None:
    model = make(name)
    assert (model.broadcast is not None) == (name in BROADCASTING)
    if model.broadcast is None:
        return
    args = inputs(name, model)
    model.eval()
    features = args[0].transpose(1, 2)[:, :, None] if name in STATES else model.features(args[0])
    vector, position = model.broadcast.pooled(features)
    assert vector.shape == position.shape == (3, model.broadcast.out_channels)
    assert position.min() >= 0
    assert position.max() < features.shape[2] * features.shape[3]
    before = flat(model(*args))
    with torch.no_grad():
        model.broadcast.k[-1].bias += 1
    assert not torch.equal(flat(model(*args)), before)  # it is what the model itself broadcasts


@pytest.mark.parametrize("name", MODELS)
def test_a_deep_copy_is_independent(name: str) -> None:
    model = make(name).eval()
    args = inputs(name, model)
    before = flat(model(*args))
    copied = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.zero_()
    assert torch.equal(flat(model(*args)), before)
    assert not flat(copied(*args)).any()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("sort-of-clevr/multirn-h", {"planes": "xy", "origin": "top-left", "sizes": (64, 64)}),
        ("sort-of-clevr/multirn-h", {"sizes": ()}),
        ("sort-of-clevr/multirn", {"sizes": [16], "planes": "", "question_dim": 7, "num_answers": 4}),
        ("scaled-mnist/bcn", {"planes": ""}),
        ("scaled-mnist/cce", {"planes": "r", "origin": "top-left"}),
        ("stl10/resnet18-bcn", {"sizes": (32, 32), "planes": "xy", "num_classes": 3}),
    ],
)
def test_arguments(name: str, arguments: dict[str, Any]) -> None:
    model = make(name, **arguments)
    outputs, found = gradients(model, inputs(name, model))
    assert outputs.isfinite().all()
    assert all(gradient is not None for gradient in found.values())
    if "planes" in arguments and model.broadcast is not None:
        assert model.broadcast.planes == arguments["planes"]


def test_arguments_of_the_first_example_arrive() -> None:
    model = create_model("sort-of-clevr/multirn-h", planes="xy", origin="top-left", sizes=(64, 64))
    assert [conv.out_channels for conv in model.broadcast.k] == [64, 64]
    assert (model.relation.planes, model.relation.origin, model.broadcast.origin) == ("xy", "top-left", "top-left")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("sort-of-clevr/multirnh", {}, "did you mean 'sort-of-clevr/multirn-h'"),
        (
            "sort-of-clevr/multirn-h",
            {"size": (64,)},
            r"size=\(64,\): its arguments are sizes \(positive whole numbers\)",
        ),
        ("sort-of-clevr/multirn-h", {"sizes": 64}, "sizes=64"),
        ("sort-of-clevr/multirn-h", {"sizes": (64, -1)}, "sizes="),
        ("sort-of-clevr/multirn-h", {"sizes": "64"}, "sizes='64'"),
        ("sort-of-clevr/multirn-h", {"num_answers": 0}, "num_answers=0"),
        ("sort-of-clevr/multirn-h", {"planes": "xyz"}, "letters x, y and r"),
        ("sort-of-clevr/multirn-h", {"origin": "bottom"}, "'top-left'"),
        ("scaled-mnist/bcn", {"sizes": ()}, "at least one"),
        ("scaled-mnist/baseline", {"planes": "xy"}, "its arguments are none"),
    ],
)
def test_bad_names_and_arguments(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BcnError, match=message):
        create_model(name, **arguments)
