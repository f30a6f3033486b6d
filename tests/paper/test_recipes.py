"""Every recipe at every scale: complete, true to the paper's tables, and the same experiment at each scale."""

import tomllib
from collections.abc import Iterator
from dataclasses import asdict, fields
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
import torch

from bcn import create_model
from bcn.data.registry import DATASETS
from bcn.errors import BcnError
from bcn.models.registry import write_arguments
from bcn.paper.records import Result
from bcn.paper.tables import TABLES, find_recipe, list_recipes
from bcn.training.loop import train
from bcn.training.recipe import Optim, Recipe, Scale

SCALES = ("smoke", "cpu", "paper")
TOML = tomllib.loads(files("bcn.paper").joinpath("tables.toml").read_text())
PUBLISHED = {
    "table1": "scaled_mnist",
    "table2": "stl10",
    "table3": "sort_of_clevr",
    "table3-legacy": "sort_of_clevr",
    "table5-scaled-mnist": "coordinates",
    "table5-sort-of-clevr": "coordinates",
    "deformation": "deformation",
    "bcn-size": "bcn_size",
}


def toml_row(table: str, name: str) -> dict[str, Any]:
    row: dict[str, Any]
    for row in TOML[PUBLISHED[table]]:
        if row.get("name", "-".join(str(size) for size in row.get("sizes", ())) or "none") == name:
            return row
    raise AssertionError(f"tables.toml has no row {name} in {PUBLISHED[table]}")


@pytest.mark.parametrize("table", PUBLISHED)
def test_every_row_that_the_paper_ran_has_a_recipe(table: str) -> None:
    rows = [row for row in TOML[PUBLISHED[table]] if not row.get("cited")]
    assert len(list_recipes(table)) == len(rows)
    for recipe in list_recipes(table):
        assert toml_row(table, recipe.split("/")[1]) in rows


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", [name for name in list_recipes() if name.split("/")[0] in PUBLISHED])
def test_paper_figures_are_those_of_tables_toml(name: str, scale: Scale) -> None:
    recipe = find_recipe(name, scale)
    row = toml_row(*name.split("/"))
    assert len(recipe.paper) >= 1
    for metric, value in recipe.paper:
        assert row[metric] == value


@pytest.mark.parametrize("name", list_recipes())
def test_a_scale_changes_only_amounts_batch_epochs_and_schedule(name: str) -> None:
    may_change = {"scale", "data", "optim", "batch_size", "epochs", "word_embeddings"}
    may_change |= {"curriculum_epochs", "augment", "auxiliary"}
    paper = find_recipe(name, "paper")
    for scale in ("smoke", "cpu"):
        recipe = find_recipe(name, scale)
        for field in fields(recipe):
            if field.name not in may_change:
                assert getattr(recipe, field.name) == getattr(paper, field.name), field.name
        assert recipe.data.name == paper.data.name.replace("clevr-v1.0", "clevr-like-v1")
        assert recipe.data.tests == paper.data.tests
        assert recipe.scale == scale


def test_rows_of_a_table_differ_in_the_model_alone() -> None:
    augmented = ("multirn", "multirn-h", "multirn-no-bcn")
    apart = {("table1/deformable", scale) for scale in SCALES}
    apart |= {(name, "cpu") for name in list_recipes("table3") if name.split("/")[1] not in augmented}
    for table in ("table1", "table2", "table3"):
        for scale in SCALES:
            recipes = [find_recipe(name, scale) for name in list_recipes(table) if (name, scale) not in apart]
            assert len({(r.data, r.optim, r.batch_size, r.epochs, r.localise, r.augment) for r in recipes}) == 1
            assert len({r.model for r in recipes}) == len(recipes)


def test_rn_has_fewer_epochs_at_cpu() -> None:
    ours, others = asdict(find_recipe("table3/rn", "cpu")), asdict(find_recipe("table3/multirn", "cpu"))
    assert {key for key in ours if ours[key] != others[key]} == {
        "name",
        "model",
        "paper",
        "epochs",
        "augment",
        "arguments",
    }
    assert ours["epochs"] == 10


@pytest.mark.parametrize(
    ("name", "epochs", "optimiser", "lr", "milestones"),
    [
        ("table1/bcn", 30, "sgd", 0.01, (10, 20)),
        ("table1/deformable", 30, "sgd", 0.00007, ()),
        ("deformation/bcn", 30, "sgd", 0.01, (10, 20)),
        ("table2/bcn", 200, "sgd", 0.1, (10, 40, 70, 100, 130, 160, 190)),
        ("table3/multirn-h", 50, "adam", 0.001, (20,)),
        ("table3-legacy/rn", 50, "adam", 0.001, (20,)),
        ("table5-scaled-mnist/none", 30, "sgd", 0.01, (10, 20)),
        ("bcn-size/64-64", 50, "adam", 0.001, (20,)),
    ],
)
def test_the_paper_scale_is_appendix_a(
    name: str, epochs: int, optimiser: Literal["sgd", "adam"], lr: float, milestones: tuple[int, ...]
) -> None:
    recipe = find_recipe(name, "paper")
    optim = recipe.optim
    assert recipe.epochs == epochs
    assert recipe.data.train is None
    assert recipe.curriculum_epochs == 0
    assert optim == Optim(
        optimiser, lr, momentum=optim.momentum, weight_decay=optim.weight_decay, milestones=milestones
    )


def test_the_two_losses() -> None:
    assert all(find_recipe(name, "cpu").localise for name in list_recipes("table1"))
    assert not any(find_recipe(name, "cpu").localise for name in list_recipes("deformation"))
    assert all(find_recipe(name, "cpu").augment for name in list_recipes("table2"))


def test_rows_that_train_the_same_thing_are_one_recipe() -> None:
    assert find_recipe("table5-sort-of-clevr/xy-centred-radial", "cpu") == find_recipe("table3/multirn-h", "cpu")
    assert find_recipe("bcn-size/128-128-256", "cpu") == find_recipe("table3/multirn-h", "cpu")
    assert find_recipe("table5-scaled-mnist/xy-centred-radial", "cpu") == find_recipe("table1/bcn", "cpu")


def test_unknown_names_are_answered() -> None:
    with pytest.raises(BcnError, match="did you mean 'table3/multirn-h'"):
        find_recipe("table3/multirnh", "cpu")
    with pytest.raises(BcnError, match="did you mean 'paper'"):
        find_recipe("table3/multirn-h", "papr")


@pytest.mark.parametrize("name", list_recipes())
def test_model_and_data_sets_exist(name: str) -> None:
    recipe = find_recipe(name, "paper")
    with torch.device("meta"):
        create_model(recipe.model, **dict(recipe.arguments))
    known = {dataset: entry.splits for dataset, entry in DATASETS.items()}
    assert recipe.data.split in known[recipe.data.name]
    assert all("test" in known[other] for other in (recipe.data.name, *recipe.data.tests))


STORED = {"stl10": "stl10_binary", "scaled-mnist-v1": "mnist", "scaled-mnist-masks-v1": "mnist"}


def trainable() -> Iterator[Any]:
    """Every different recipe once; two pair models take minutes for one step on a CPU, and train by the same code."""
    recipes = dict.fromkeys(find_recipe(name, "smoke") for name in list_recipes())
    slow = ("sort-of-clevr/rn-h", "sort-of-clevr/rn-original")
    for recipe in recipes:
        if recipe.model not in slow and not recipe.model.startswith("clevr/"):  # those: test_clevr_models.py
            stored = STORED.get(recipe.data.name)
            yield pytest.param(recipe, id=recipe.name, marks=pytest.mark.data(stored) if stored else ())


@pytest.mark.parametrize("recipe", list(trainable()))
def test_smoke_recipe_trains(recipe: Recipe, tmp_path: Path) -> None:
    record = train(recipe, seed=0, runs=tmp_path)
    assert recipe.data.train
    samples = recipe.data.train * {"images": 1, "pairs": 20}[recipe.batch_of]
    per_epoch = samples // recipe.batch_size
    assert record["steps"] == recipe.epochs * per_epoch > 0
    assert record["overridden"] is False
    assert set(record["metrics"]) == {"test", *recipe.data.tests}
    counted = Result(recipe, 0, record)
    for metric, _ in recipe.paper:
        measured = counted.metric(metric)
        assert measured is not None
        assert 0 <= measured.value <= (10 if metric == "localisation" else 100)


@pytest.mark.parametrize("row", ["multirn", "multirn-no-bcn"])
def test_batch32_trains_as_the_paper_does_at_batch_size_32(row: str) -> None:
    paper = asdict(find_recipe(f"table3/{row}", "paper"))
    for scale in ("cpu", "paper"):
        ours = asdict(find_recipe(f"batch32/{row}", scale))
        others = {"arguments"} if row == "multirn" else set()  # its last ReLU
        assert {key for key in ours if ours[key] != paper[key]} - {"scale"} == {"name", "batch_size", *others}
        assert ours["batch_size"] == 32


def test_one_list_of_tables_has_every_row() -> None:
    """Rows belong to the table that lists them, or are another's under its name."""
    for table in TABLES.values():
        for name, row in table.rows.items():
            recipe = find_recipe(f"{table.name}/{name}", "cpu")
            assert recipe.name in (f"{table.name}/{name}", row.published.name)
            assert find_recipe(recipe.name, "cpu") == recipe


def test_own_data_has_a_recipe_that_is_in_no_table() -> None:
    assert find_recipe("own", "cpu").data.name == "own"
    assert "own" not in list_recipes()


@pytest.mark.parametrize("name", list_recipes())
def test_a_recipe_with_a_bcn_says_what_follows_its_last_convolution(name: str) -> None:
    """Else another default would change the run and not its fingerprint."""
    for scale in get_args(Scale):
        recipe = find_recipe(name, scale)
        arguments = dict(recipe.arguments)
        if write_arguments(recipe.model, {}) and arguments.get("sizes") != ():
            assert "final_relu" in arguments
