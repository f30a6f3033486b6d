"""What the command line lists and accepts, whatever the subject."""

import json
from pathlib import Path

import pytest
from helpers.command import exit_code, run_bcn

import bcn
from bcn.errors import BcnError
from bcn.inference.shipped import list_weights, locate_weights
from bcn.paper.tables import OTHER_RECIPES, find_recipe, list_recipes
from bcn.training.override import override


def test_the_version_is_printed() -> None:
    assert run_bcn("--version") == f"bcn {bcn.__version__}\n"


@pytest.mark.parametrize(
    "command",
    ["weights", "recipes", "models", "data list", "figure", "recipe show table4/multirn-h", "table table4 --no-train"],
)
def test_what_is_listed_fits_80_columns(command: str, tmp_path: Path) -> None:
    places = ["--results", tmp_path] if command.startswith("table") else []
    printed = run_bcn(*command.split(), *places)
    assert max(map(len, printed.splitlines())) <= 80
    assert "…" not in printed


def test_shipped_weights_are_listed_with_their_accuracy() -> None:
    printed = {line.split()[0]: line for line in run_bcn("weights").splitlines()}
    for name, entry in list_weights().items():
        assert f"{100 * entry['metrics']['all']['accuracy']:.1f} %" in printed[name]
    assert json.loads(run_bcn("weights", "--json")) == list_weights()


def test_recipes_are_listed_own_included_and_shown() -> None:
    listed = run_bcn("recipes").splitlines()
    assert {*list_recipes(), *OTHER_RECIPES} <= set(listed)
    for name, scale in (("own", "cpu"), ("table4/multirn-h", "cpu"), ("table1/bcn", "paper")):
        lines = run_bcn("recipe", "show", name, "--scale", scale).splitlines()
        assignments = [line for line in lines if "=" in line]
        recipe = find_recipe(name, scale)
        assert override(recipe, assignments) == (recipe, ())
        assert json.loads(run_bcn("recipe", "show", name, "--scale", scale, "--json"))["epochs"] == recipe.epochs
    with pytest.raises(BcnError, match="did you mean 'own'"):
        run_bcn("recipe", "show", "onw")


def test_names_of_shipped_weights_are_accepted_where_weights_are(tmp_path: Path) -> None:
    name = "sort-of-clevr/multirn-h"
    evaluated = json.loads(run_bcn("eval", name, "--images", 5, "--json"))
    assert evaluated["metrics"]["all"]["total"] == 100
    assert locate_weights(Path(name)) == locate_weights(name)
    for command in (["clevr", "answer", name, tmp_path], ["clevr", "transfer", name]):
        with pytest.raises(BcnError, match="holds sort-of-clevr/multirn-h, which is not asked in words"):
            run_bcn(*command)
    with pytest.raises(BcnError, match="did you mean 'sort-of-clevr/multirn-h'"):
        run_bcn("eval", "sort-of-clevr/multirm-h")


def test_a_data_directory_that_is_advised_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_DATA", str(tmp_path))
    for command in (["table", "table1", "--no-train", "--results", tmp_path], ["figure"]):
        with pytest.raises(BcnError, match="nowhere is not a directory"):
            run_bcn(*command, "--data", tmp_path / "nowhere")
    run_bcn("table", "table1", "--no-train", "--results", tmp_path, "--data", tmp_path)


def test_commands_of_maintainers_stand_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--help") == 0
    users, _, maintainers = capsys.readouterr().out.partition("For maintainers")
    for command in ("report", "release", "bench"):
        assert f"│ {command} " in maintainers
        assert f"│ {command} " not in users
