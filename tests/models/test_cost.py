"""Every count of the models, to the digit, and beside what the paper prints."""

import json
from typing import Any

import pytest
import torch
from helpers.command import run_bcn
from torch.utils.flop_counter import FlopCounterMode

from bcn import create_model, list_models
from bcn.errors import BcnError
from bcn.models.cost import BATCH, TOKENS, count_parameters, executed_macs, on_meta, reference_macs
from bcn.models.registry import image_shape
from bcn.paper.published import published_rows

LAST_LAYER = 2570
"""Linear(256, 10), which the paper leaves out of some counts"""

WITH_STATISTICS = {
    "scaled-mnist/baseline": 11_244,
    "scaled-mnist/baseline-depth4": 16_548,
    "scaled-mnist/baseline-depth5": 21_852,
    "scaled-mnist/baseline-depth5-wide": 85_164,
    "scaled-mnist/deformable": 31_998,
    "scaled-mnist/dilated": 11_244,
    "scaled-mnist/cce": 11_892,
    "scaled-mnist/skip": 28_996,
    "scaled-mnist/cce-skip": 29_188,
    "scaled-mnist/bcn-average-pool": 29_260,
    "scaled-mnist/bcn": 29_260,
    "stl10/baseline": 114_250,
    "stl10/skip": 192_650,
    "stl10/bcn": 193_226,
}
TRAINABLE = {
    "sort-of-clevr/multirn": 345_074,
    "sort-of-clevr/multirn-h": 345_074,
    "sort-of-clevr/rn": 364_914,
    "sort-of-clevr/rn-h": 364_914,
    "sort-of-clevr/multirn-no-bcn": 226_418,
    "sort-of-clevr/mlp": 241_522,
    "sort-of-clevr/cce-mlp": 260_722,
}
BASELINES = {
    "sort-of-clevr/transformer": 337_586,
    "sort-of-clevr/set-transformer": 345_266,
    "sort-of-clevr/film": 347_562,
    "sort-of-clevr/deep-sets": 344_898,
    "sort-of-clevr/coordconv-mlp": 343_218,
    "sort-of-clevr/rn-states": 339_722,
    "sort-of-clevr/mlp-states": 324_938,
    "sort-of-clevr/deep-sets-states": 335_818,
    "sort-of-clevr/multirn-states": 322_058,
    "sort-of-clevr/multirn-rounds-states": 342_650,
    "sort-of-clevr/film-states": 343_150,
    "sort-of-clevr/transformer-states": 319_466,
    "sort-of-clevr/set-transformer-states": 327_418,
}
WITHOUT_LAST_LAYER = {
    "sort-of-clevr/multirn-no-bcn": 223_848,
    "sort-of-clevr/mlp": 238_952,
    "sort-of-clevr/cce-mlp": 258_152,
}
BCN_SIZES = {tuple(row["sizes"]): row for row in published_rows("bcn_size").values()}


def printed(count: str) -> float:
    return float(count[:-1]) * {"K": 1e3, "M": 1e6}[count[-1]]


@pytest.mark.parametrize("name", WITH_STATISTICS)
def test_parameters_with_statistics(name: str) -> None:
    assert count_parameters(on_meta(name), statistics=True) == WITH_STATISTICS[name]


@pytest.mark.parametrize("name", TRAINABLE)
def test_trainable_parameters(name: str) -> None:
    assert count_parameters(on_meta(name)) == TRAINABLE[name]


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_have_about_the_parameters_of_multirn(name: str) -> None:
    assert count_parameters(on_meta(name)) == BASELINES[name] == pytest.approx(345_074, rel=0.08)


def test_macs_of_attention() -> None:
    """One question about 25 objects of width 96: two blocks over 26 tokens, the second of ours for one alone."""
    tokens, width, hidden = 26, 96, 384
    linear, attention = 2 * width * hidden + 4 * width * width, 2 * tokens * width
    biases, norms = 3 * width + hidden + width, 3 * 2 * width
    macs = reference_macs(on_meta("sort-of-clevr/transformer"), (3, 75, 75)).g
    embedding = 25 * (27 + 1) * width + (11 + 1) * width
    assert macs == embedding + 2 * tokens * (linear + attention + biases + norms) + tokens * 2 * width
    executed = executed_macs(on_meta("sort-of-clevr/transformer"), (3, 75, 75), questions=1).g
    last = linear - 2 * width * width + attention + tokens * 2 * width * width
    entering = 25 * 24 * width + 25 * 3 * width / BATCH + 11 * width
    assert executed == pytest.approx(entering + tokens * (linear + attention) + last)


@pytest.mark.parametrize("name", WITHOUT_LAST_LAYER)
def test_parameters_without_the_last_layer(name: str) -> None:
    assert count_parameters(on_meta(name)) - LAST_LAYER == WITHOUT_LAST_LAYER[name]


@pytest.mark.parametrize(("sizes", "count"), [((64, 64), 246_184), ((512, 512), 631_912), ((128, 128, 128), 293_224)])
def test_parameters_of_bcn_sizes(sizes: tuple[int, ...], count: int) -> None:
    assert count_parameters(on_meta("sort-of-clevr/multirn-h", sizes=sizes)) - LAST_LAYER == count


@pytest.mark.parametrize("sizes", BCN_SIZES)
def test_bcn_sizes_match_what_is_printed(sizes: tuple[int, ...]) -> None:
    """All but the paper's own choice are printed without the last layer, rounded to thousands."""
    count = count_parameters(on_meta("sort-of-clevr/multirn-h", sizes=sizes))
    count -= 0 if sizes == (128, 128, 256) else LAST_LAYER
    assert f"{count / 1000:.0f}K" == BCN_SIZES[sizes]["params"]


def test_bcn_without_coordinates_in_its_output() -> None:
    """29,260 is equation 1 as written; the printed 29.2K is also what it gives without C in the output (29,188)."""
    reduction = create_model("scaled-mnist/bcn").middle.reduce
    assert WITH_STATISTICS["scaled-mnist/bcn"] - 3 * reduction.out_channels == 29_188


@pytest.mark.parametrize("name", ["rn-original", "resnet18", "resnet18-bcn"])
def test_parameters_that_are_matched_about(name: str) -> None:
    counts = {"rn-original": 20_005_986, "resnet18": 11_183_562, "resnet18-bcn": 11_398_474}
    table = "sort-of-clevr" if name == "rn-original" else "stl10"
    count = count_parameters(on_meta(f"{table}/{name}"), statistics=table == "stl10")
    assert count == counts[name]
    assert count == pytest.approx(printed(published_rows(table.replace("-", "_"))[name]["params"]), rel=0.03)


@pytest.mark.parametrize("name", ["rn", "rn-h", "multirn", "multirn-h"])
def test_macs_by_section(name: str) -> None:
    """Within 2 % of what the paper prints; its g of rn-h, 2.26G, is more than 100 x 100 pairs cost."""
    macs = reference_macs(on_meta(f"sort-of-clevr/{name}"), (3, 75, 75))
    paper = published_rows("sections")[name]
    explained = ("convolution", "f") if name == "rn-h" else ("convolution", "bcn", "g", "f", "total")
    for section in explained:
        assert getattr(macs, section) == pytest.approx(1e6 * paper.get(section, 0), rel=0.02)


def test_macs_to_the_digit() -> None:
    convolution = sum(size**2 * 24 * (9 * c + 1 + 2) for size, c in [(38, 3), (19, 24), (10, 24), (5, 24)])
    f = 2 * (256 * 256 + 256) + LAST_LAYER
    of_25, of_100, rn = (
        reference_macs(on_meta(f"sort-of-clevr/{name}"), (3, 75, 75)) for name in ("multirn", "multirn-h", "rn")
    )
    assert of_25.convolution == rn.convolution == convolution
    assert (of_25.bcn, of_100.bcn) == (25 * 128_640, 100 * 128_640)
    assert (of_25.g, of_100.g) == (25 * (256 * 256 + 256 + 256), 100 * (256 * 256 + 256 + 256))
    assert rn.g == 133_920_000 + 625 * 256  # the layers, and the sum over pairs
    assert of_25.f == of_100.f == rn.f == f


@pytest.mark.parametrize("sizes", [sizes for sizes in BCN_SIZES if sizes])
def test_macs_of_bcn_sizes(sizes: tuple[int, ...]) -> None:
    macs = reference_macs(on_meta("sort-of-clevr/multirn-h", sizes=sizes), (3, 75, 75))
    assert macs.total == pytest.approx(printed(BCN_SIZES[sizes]["macs"]), rel=0.02)


@pytest.mark.parametrize("questions", [1, 20])
def test_executed_macs_of_multirn_h(questions: int) -> None:
    """Once per image: the CNN, BCN, what g's first layer makes of the image. Once per batch: what it makes of C."""
    n, per_image = 100, 1 / questions
    convolution = sum(size**2 * 24 * 9 * c for size, c in [(38, 3), (19, 24), (10, 24), (10, 24)])
    bcn = n * (24 * 128 + 128 * 128 + 128 * 256) + n * 24 * 256 + 256 * 256 + n * 3 * (128 + 256) / BATCH
    macs = executed_macs(on_meta("sort-of-clevr/multirn-h"), (3, 75, 75), questions=questions)
    assert macs.convolution == pytest.approx(convolution * per_image)
    assert macs.bcn == pytest.approx(bcn * per_image + 11 * 256)
    assert (macs.g, macs.f) == (n * 256 * 256, 2 * 256 * 256 + 256 * 10)


@pytest.mark.parametrize("name", list_models())
def test_executed_macs_are_those_that_torch_counts(name: str) -> None:
    model: Any = on_meta(name).eval()
    image = image_shape(name)
    inputs = [torch.empty(BATCH, *image, device="meta")]
    if name.endswith("-states"):
        inputs = [torch.empty(BATCH, 12, 10, device="meta"), torch.empty(BATCH, 12, dtype=torch.bool, device="meta")]
        inputs.append(torch.empty(BATCH, 20, 11, device="meta"))
    elif name.startswith(("clevr/", "drawn/")):
        inputs.append(torch.empty(BATCH, 20, TOKENS, dtype=torch.long, device="meta"))
    elif hasattr(model, "relation"):
        inputs.append(torch.empty(BATCH, 20, model.relation.question_dim, device="meta"))
    with FlopCounterMode(display=False) as counter:
        model(*inputs)
    answers = BATCH * (20 if len(inputs) > 1 else 1)
    assert executed_macs(model, image, questions=20).total == pytest.approx(counter.get_total_flops() / 2 / answers)


def test_counting_leaves_the_model_alone() -> None:
    model = create_model("sort-of-clevr/multirn").train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    reference_macs(model, (3, 75, 75))
    executed_macs(model, (3, 75, 75), questions=2)
    assert model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_command(monkeypatch: pytest.MonkeyPatch) -> None:
    said = run_bcn("models", "sort-of-clevr/multirn")
    (row,) = (line.split() for line in said.splitlines() if line.startswith("sort-of-clevr/multirn-h"))
    assert row[1:] == ["345,074", "345K", "23.59M", "23.60M", "7.18M"]
    monkeypatch.setattr("bcn.cli.terminal.columns", lambda: 170)
    said = run_bcn("models", "sort-of-clevr/multirn")
    (row,) = (line.split() for line in said.splitlines() if line.startswith("sort-of-clevr/multirn-h"))
    assert row[1:] == [
        "345,074",
        "345,266",
        "345K",
        "3.99M",
        "12.86M",
        "6.60M",
        "0.13M",
        "-",
        "23.59M",
        "23.60M",
        "7.18M",
    ]
    rows = json.loads(run_bcn("models", "--json", "--questions", 1))
    assert [row["model"] for row in rows] == list_models()


def test_command_with_an_unknown_name() -> None:
    with pytest.raises(BcnError, match="did you mean"):
        run_bcn("models", "sort-of-clever")
