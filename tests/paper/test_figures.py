"""The figures: the numbers in them, and that each is drawn or says in one sentence what is missing."""

import html
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.records import make_metric, write_record

pytest.importorskip("matplotlib")

from bcn import create_model
from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr import make_sort_of_clevr
from bcn.errors import BcnError
from bcn.inference.shipped import list_weights
from bcn.paper.figures import FIGURES, FromWeights, curves, draw_figure
from bcn.paper.figures.activation import activation_maps, choose
from bcn.paper.figures.deflection import SYSTEMS, deflection
from bcn.paper.figures.style import write
from bcn.paper.tables import find_recipe
from bcn.training.description import describe_weights
from bcn.training.weights import write_weights

WITH_WEIGHTS = {name: draw for name, (_, draw) in FIGURES.items() if isinstance(draw, FromWeights)}


def is_drawn(figure: Any, tmp_path: Path) -> None:
    """The file is a picture, and not a blank page."""
    from PIL import Image

    pixels = np.asarray(Image.open(write(figure, tmp_path / "figure.png")).convert("L"))
    assert pixels.shape[0] > 200
    assert pixels.shape[1] > 200
    assert pixels.std() > 5


def test_the_ending_decides_the_format(tmp_path: Path) -> None:
    svg = write(draw_figure("coordinate-planes", results=tmp_path), tmp_path / "planes.svg")
    assert svg.read_text().startswith("<?xml")
    with pytest.raises(BcnError, match=r"planes\.jpg .*\.png"):
        write(draw_figure("coordinate-planes", results=tmp_path), tmp_path / "planes.jpg")


def weights_of(recipe_name: str, dataset: str, tmp_path: Path) -> Path:
    recipe = find_recipe(recipe_name, "smoke")
    torch.manual_seed(0)
    path = tmp_path / "weights.safetensors"
    model = create_model(recipe.model)
    split = open_dataset(dataset, "test", images=2)
    write_weights(path, model.state_dict(), describe_weights(recipe, split, arguments={}, seed=0, epoch=1))
    return path


def test_deflection_is_what_an_exact_average_says() -> None:
    """For one axis the response E|w x + b| of uniform weights is known: |x| / 2 + ... integrated by hand on a grid."""
    found = deflection("x", "centre", size=5, initialisations=4000, seed=1)
    grid = (torch.arange(2000) + 0.5) / 1000 - 1  # midpoints of [-1, 1], PyTorch's range for one input channel
    exact = torch.stack([(grid[:, None] * x + grid[None, :]).abs().mean() for x in torch.linspace(-1, 1, 5)])
    assert torch.allclose(found.response_HW, exact.expand(5, 5), rtol=0.02)
    assert found.spread == pytest.approx(float(exact.expand(5, 5).std() / exact.mean()), rel=0.05)


def test_deflection_of_the_three_systems() -> None:
    top_left, centre, radial = (deflection(*system, initialisations=200) for system in SYSTEMS.values())
    assert top_left.shift > 0.05 > 0.01 > max(centre.shift, radial.shift), "only top-left leans to one side"
    assert top_left.corner == pytest.approx(1)
    assert centre.corner == pytest.approx(1)
    assert radial.corner < 0.8, "with r the strongest place may lie inside"


def test_activation_maps_count_the_channels_of_the_vector() -> None:
    torch.manual_seed(0)
    model: Any = create_model("sort-of-clevr/multirn-h", final_relu=True)
    with torch.no_grad():
        model.broadcast.k[-1].weight[:99] = 0  # the same for all images
    dataset = make_sort_of_clevr("sort-of-clevr-v1", "val", images=70)
    image = dataset.preprocessing(dataset[range(3)].image)
    count = activation_maps(model, dataset, image)
    with torch.inference_mode():
        vector, position = model.broadcast.pooled(model.features(image))
    expected = torch.zeros(3, 10, 10)
    for number in range(3):
        for channel in range(99, 256):
            if vector[number, channel] > 0:
                row, column = divmod(int(position[number, channel]), 10)
                expected[number, row, column] += 1
    assert torch.equal(count, expected)
    with pytest.raises(BcnError, match="without a BCN"):
        activation_maps(create_model("sort-of-clevr/mlp"), dataset, image)


def test_images_are_chosen_by_the_seed() -> None:
    dataset = open_dataset("sort-of-clevr-v1", "test", images=50)
    first = choose(dataset, 16, seed=0)
    assert len(set(first.tolist())) == 16
    assert np.array_equal(first, choose(dataset, 16, seed=0))
    assert not np.array_equal(first, choose(dataset, 16, seed=1))


@pytest.mark.parametrize("name", ["coordinate-planes", "deflection", "clevr-like"])
def test_figures_that_need_nothing(name: str, tmp_path: Path) -> None:
    is_drawn(draw_figure(name, weights=None, results=tmp_path), tmp_path)


@pytest.mark.data("clevr")
def test_original_images_above_ours(tmp_path: Path) -> None:
    figure: Any = draw_figure("clevr-side-by-side", weights=None, results=tmp_path)
    shown = np.array([axis.get_images()[0].get_array() for axis in figure.axes], float)
    originals, ours = shown.reshape(2, 2, 5, *shown.shape[1:]).swapaxes(0, 1)
    assert 0 < np.abs(originals - ours).mean() < 7
    assert np.abs(originals - ours[::-1]).mean() > 7, "another scene is further away"
    is_drawn(figure, tmp_path)


def test_original_images_that_are_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_DATA", str(tmp_path))
    with pytest.raises(BcnError, match="has no CLEVR images of the split val with their scenes"):
        draw_figure("clevr-side-by-side", weights=None, results=tmp_path)


def test_activation_of_scenes(tmp_path: Path) -> None:
    path = weights_of("table3/multirn-h", "sort-of-clevr-v1", tmp_path)
    is_drawn(draw_figure("activation-sort-of-clevr", weights=path, results=tmp_path), tmp_path)


@pytest.mark.usefixtures("mnist_sample")
@pytest.mark.parametrize("name", ["activation-scaled-mnist", "misclassified"])
def test_activation_of_digits(name: str, tmp_path: Path) -> None:
    dataset = open_dataset(WITH_WEIGHTS[name].data, "test", images=30)
    figure: Any = WITH_WEIGHTS[name].draw(create_model("scaled-mnist/bcn"), dataset, seed=3)
    labels = [axis.get_xlabel() for axis in figure.axes if axis.get_xlabel()]
    if name == "misclassified":
        assert figure.get_suptitle().startswith(f"{len(labels)} of 24 misclassified")
    else:
        assert all(0 < int(label.removesuffix(" of 128")) <= 128 for label in labels)
    is_drawn(figure, tmp_path)


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_figures_without_their_weights_say_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="neither shipped nor a path"):
        draw_figure(name, weights=tmp_path / "nowhere", results=tmp_path)
    usual = WITH_WEIGHTS[name].weights
    if usual not in list_weights():
        with pytest.raises(BcnError, match=f"no weights of {usual} are shipped"):
            draw_figure(name, weights=None, results=tmp_path)


def test_shipped_weights_are_the_usual_ones(tmp_path: Path) -> None:
    def shown(weights: str | None) -> list[str]:
        figure = draw_figure("activation-sort-of-clevr", weights=weights, results=tmp_path)
        return [axis.get_xlabel() for axis in figure.axes]

    assert shown(None) == shown("sort-of-clevr/multirn-h") != shown("sort-of-clevr/multirn")


def test_figures_refuse_the_weights_of_another_data_set(tmp_path: Path) -> None:
    path = weights_of("table3/multirn-h", "sort-of-clevr-v1", tmp_path)
    with pytest.raises(BcnError, match=r"scaled-mnist .*sort-of-clevr/multirn-h"):
        draw_figure("misclassified", weights=path, results=tmp_path)


def test_deformation_has_the_paper_and_ours(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="no records of deformation"):
        draw_figure("deformation", weights=None, results=tmp_path)
    for seed, more in enumerate((0, 2)):
        others = zip(find_recipe("deformation/bcn", "cpu").data.tests, (90, 80, 70, 60), strict=True)
        tests = {name: {"all": make_metric(x + more)} for name, x in others}
        write_record(tmp_path, "deformation/bcn", seed, {"all": make_metric(95 + more)}, tests=tests)
    figure: Any = draw_figure("deformation", weights=None, results=tmp_path)
    paper, ours = figure.axes
    assert [97.2, 94.8, 92.7, 76.1, 91.6] in [list(line.get_ydata()) for line in paper.lines]
    assert ours.lines[0].get_ydata() == pytest.approx([96, 91, 81, 71, 61])
    assert [axis.get_xticklabels()[-1].get_text() for axis in figure.axes] == ["affNIST", "affine-mnist-v1"]
    is_drawn(figure, tmp_path)


def test_the_ablation_has_a_dot_for_each_seed(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="no records of ablation"):
        draw_figure("ablation", weights=None, results=tmp_path)
    runs = (("ablation/base", 0, 97), ("ablation/base", 1, 98), ("ablation/step-decay", 0, 95))
    for name, seed, correct in runs:
        figures = {"relational": make_metric(correct), "non_relational": make_metric(99)}
        write_record(tmp_path, name, seed, figures)
    axis: Any = draw_figure("ablation", weights=None, results=tmp_path).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["base", "step-decay"]
    dots = [tuple(line.get_xydata()[0]) for line in axis.lines if line.get_marker() == "o"]
    assert dots == [(pytest.approx(97), 0), (pytest.approx(98), 0), (pytest.approx(95), 1)]


def test_accuracy_against_cost_needs_records(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="no records of table3"):
        draw_figure("accuracy-cost", weights=None, results=tmp_path)
    write_record(tmp_path, "table3/multirn-h", 0, {"relational": make_metric(97), "non_relational": make_metric(97)})
    figure: Any = draw_figure("accuracy-cost", weights=None, results=tmp_path)
    points = {(round(x), round(y, 1)) for line in figure.axes[0].lines for x, y in [line.get_xydata()[-1]]}
    assert (23_591_250, 97.0) in points, "ours"
    assert (23_591_250, 96.7) in points, "the paper's"
    is_drawn(figure, tmp_path)


def test_curves_draw_what_the_runs_measured(tmp_path: Path) -> None:
    first = [
        {"epoch": e, "loss": 1 / e, "accuracy": 0.1 * e, "relational": 0.1 * e, "non_relational": 0.9} for e in (1, 2)
    ]
    figure: Any = curves.draw({"a, seed 0": first, "a, seed 1": first, "b, seed 0": first[:1]})
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == ["training loss", "relational validation error, %", "non-relational validation error, %"]
    assert [line.get_ydata()[-1] for line in figure.axes[1].lines] == [80.0, 80.0, 90.0]
    assert math.isclose(figure.axes[0].lines[0].get_ydata()[1], 0.5)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    is_drawn(figure, tmp_path)
    with pytest.raises(BcnError, match="no epoch is finished in a"):
        curves.draw({"a": []})


def test_curves_are_a_page_whose_lines_tell_their_values(tmp_path: Path) -> None:
    curve = [{"epoch": epoch, "loss": 2.0 / epoch, "accuracy": 1 - 0.4 / epoch} for epoch in (1, 2, 4)]
    perfect = [entry | {"accuracy": 1.0} for entry in curve]
    page = curves.render({"a, seed 0": curve, "a, seed 1": perfect, "<b>, seed 0": curve[:1]})
    loss, error = (json.loads(html.unescape(lines)) for lines in re.findall(r'data-lines="([^"]*)"', page))
    assert [(line["label"], line["colour"]) for line in loss] == [
        ("a, seed 0", 0),
        ("a, seed 1", 0),
        ("<b>, seed 0", 1),
    ]
    assert [point[1:] for point in loss[0]["points"]] == [[1, "2"], [2, "1"], [4, "0.5"]]
    assert [point[2] for point in error[0]["points"]] == ["40", "20", "10"]
    assert {point[2] for point in error[1]["points"]} == {"0"}
    assert "<b>" not in page
    paths = [
        [[float(number) for number in point.split(",")] for point in points.split()]
        for points in re.findall(r'<polyline class="line c0" points="([^"]*)"', page)
    ]
    falling, errors, foot = paths[0], paths[2], paths[3]  # twice the same loss, then errors on a logarithmic axis
    assert falling[1][1] - falling[0][1] == pytest.approx(2 * (falling[2][1] - falling[1][1]), abs=0.2)
    assert errors[1][1] - errors[0][1] == pytest.approx(errors[2][1] - errors[1][1], abs=0.2)
    assert all(y > errors[2][1] for _, y in foot)


def test_curves_draw_nothing_wrong_at_the_foot(tmp_path: Path) -> None:
    curve = [{"epoch": e, "loss": 1.0, "accuracy": right} for e, right in enumerate((0.9, 0.99, 1.0), 1)]
    figure: Any = curves.draw({"a": curve})
    axis = figure.axes[1]
    assert axis.lines[0].get_ydata() == pytest.approx([10, 1, 0.5])
    assert axis.get_ylim()[0] == pytest.approx(0.5)
    assert axis.get_yticklabels()[0].get_text() == "0"
    assert axis.get_yticks()[:2] == pytest.approx([0.5, 1])
    is_drawn(figure, tmp_path)
    faultless: Any = curves.draw({"a": [entry | {"accuracy": 1.0} for entry in curve]})
    assert len(set(faultless.axes[1].lines[0].get_ydata())) == 1
    is_drawn(faultless, tmp_path)


def test_unknown_figures_are_answered(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="did you mean 'deflection'"):
        draw_figure("deflexion", weights=None, results=tmp_path)
