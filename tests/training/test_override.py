"""Recipes with fields that were set by hand, and the run that each is."""

import json
from dataclasses import asdict, replace

import pytest
from helpers.blobs import plain

from bcn.errors import BcnError
from bcn.training.override import override, paths
from bcn.training.recipe import check, fingerprint, from_json
from bcn.training.run import run_id


def test_overrides() -> None:
    recipe = plain("smoke")
    changed, changes = override(
        recipe,
        [
            "optim.lr=0.5",
            "batch_size=7",
            "optim.clip_norm=none",
            "data.tests=a,b",
            "localise=false",
            "arguments.sizes=64,64",
        ],
    )
    assert changes[-1] == "arguments.sizes=64,64"
    assert changed.optim.lr == 0.5
    assert (changed.optim.clip_norm, changed.data.tests, changed.localise) == (None, ("a", "b"), False)
    assert changed.arguments == (("sizes", (64, 64)),)
    assert "batch_size=7" not in changes  # it was 7
    assert len(changes) == 5
    assert fingerprint(changed) != fingerprint(recipe)
    assert from_json(json.loads(json.dumps(asdict(changed)))) == changed
    assert "optim.schedule" in paths()
    for assignment, message in {
        "optim.lrr=1": "did you mean 'optim.lr'",
        "optim.lr=high": "optim.lr is a number, and was given 'high'",
        "epochs=1.5": "epochs is a whole number",
        "optim.milestones=3,four": "each of optim.milestones, which commas separate, is a whole number, .*'four'",
        "localise=yes": "localise is true or false",
        "optim.name=adan": "did you mean 'adam'",
        "epochs": "path=value",
        "name=x": "unknown field 'name'",
    }.items():
        with pytest.raises(BcnError, match=message):
            override(recipe, [assignment])


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("64,", (64,)), ("64,32", (64, 32)), ("²", "²"), ("", ""), (",", ","), ("-1", "-1"), ("9" * 99, None)],
)
def test_an_argument_is_a_number_numbers_or_text(text: str, value: object) -> None:
    changed, _ = override(plain("smoke"), [f"arguments.it={text}"])
    assert changed.arguments == (("it", text if value is None else value),)


@pytest.mark.parametrize(
    ("path", "wrong", "right", "accepted"),
    [
        ("batch_size", ("0", "1000000000000000"), ("1", "64"), "1 to 65536"),
        ("epochs", ("0",), ("1",), "1 and more"),
        ("auxiliary.object_epochs", ("-1", "5"), ("4",), "0 to 4, the epochs"),
        ("optim.lr", ("0", "-1", "nan", "inf"), ("1e-9",), "above 0"),
        ("optim.momentum", ("1", "-0.1", "nan"), ("0",), "0 to below 1"),
        ("optim.milestones", ("3,-1",), ("", "0,3"), "0 and more"),
        ("optim.clip_norm", ("0", "nan"), ("none", "0.1"), "none, and above 0"),
        ("optim.ema_decay", ("0", "1"), ("none", "0.5"), "none, and between 0 and 1"),
        ("data.train", ("0",), ("none", "1"), "none, which is all, and 1 and more"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_with_those_that_can(
    path: str, wrong: tuple[str, ...], right: tuple[str, ...], accepted: str
) -> None:
    for text in wrong:
        with pytest.raises(BcnError, match=rf"blobs/plain cannot be trained with {path}=.* \(accepted: {accepted}\)$"):
            check(override(plain("smoke"), [f"{path}={text}"])[0])
    for text in right:
        check(override(plain("smoke"), [f"{path}={text}"])[0])


def test_a_field_that_is_set_back_is_not_overridden() -> None:
    assert override(plain("smoke"), ["epochs=9", "epochs=4"]) == (plain("smoke"), ())
    assert override(plain("smoke"), ["epochs=9", "epochs=5"])[1] == ("epochs=5",)


def test_what_the_paper_reports_does_not_make_another_run() -> None:
    recipe = plain("smoke")
    assert run_id(replace(recipe, paper=(("accuracy", 1.0),)), 3) == run_id(recipe, 3)
    assert run_id(replace(recipe, batch_size=8), 3) != run_id(recipe, 3)
    assert run_id(recipe, 3).startswith("blobs-plain-smoke-3-")


def test_a_recipe_of_another_version_is_refused() -> None:
    for value in (
        {**asdict(plain("smoke")), "lessons": []},
        {"name": "blobs/plain"},
        {**asdict(plain("smoke")), "optim": 3},
    ):
        with pytest.raises(BcnError, match="another version"):
            from_json(value)
