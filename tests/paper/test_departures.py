"""Departures from the paper: one for each field that differs, by topic, and the choices that the paper leaves open."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from bcn.paper.departures import departures
from bcn.paper.tables import TABLES, find_row, list_recipes
from bcn.training.recipe import Recipe, Scale

TOPICS = {
    "data.name": "data",
    "data.train": "images",
    "data.val": "images",
    "data.test": "images",
    "data.split": "held-out images",
    "data.questions": "questions",
    "data.tests": "test sets",
    "optim.name": "optimiser",
    "optim.lr": "schedule",
    "optim.schedule": "schedule",
    "optim.milestones": "schedule",
    "optim.warmup": "schedule",
    "optim.weight_decay": "weight decay",
    "optim.clip_norm": "gradient clipping",
    "optim.ema_decay": "EMA",
    "batch_size": "batch size",
    "epochs": "schedule",
    "augment": "augmentation",
    "curriculum_epochs": "curriculum",
    "auxiliary": "auxiliary supervision",
    "word_embeddings": "word embeddings",
    "arguments": "BCN",
    "initialisation": "initialisation",
    "batch_of": "batching",
    "precision": "precision",
}
SCALES: tuple[Scale, ...] = ("smoke", "cpu", "paper")


def leaves(recipe: Recipe) -> dict[str, Any]:
    value = asdict(recipe)
    parts = {f"{part}.{key}": item for part in ("data", "optim") for key, item in value.pop(part).items()}
    return {key: item for key, item in (value | parts).items() if key not in ("name", "scale", "paper")}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", list_recipes())
def test_every_field_that_differs_has_its_topic_and_no_other_has(name: str, scale: Scale) -> None:
    row = find_row(name)
    ours, paper = leaves(row.recipe(scale)), leaves(row.published)
    differing = {field for field in ours if ours[field] != paper[field]}
    expected = {TOPICS[field] for field in {*differing, *row.unspecified} - {"optim.momentum"}}
    if "optim.momentum" in row.unspecified:
        expected.add("momentum")
    said = departures(row, scale)
    notes = set(row.notes(row.recipe(scale)))
    assert set(said) - notes - {"smoke"} == expected - notes
    assert ("smoke" in said) == (scale == "smoke")
    assert len(set(said.values())) == len(said)


@pytest.mark.parametrize("name", [name for name in list_recipes() if TABLES[name.split("/")[0]].published])
def test_smaller_scales_depart_further(name: str) -> None:
    row = find_row(name)
    for scale in ("smoke", "cpu"):
        assert set(departures(row, scale).values()) - set(departures(row, "paper").values())


def test_values_stand_in_the_sentences() -> None:
    said = departures(find_row("table4/multirn-h"), "cpu")
    for topic, words in {
        "optimiser": ("Muon", "instead of Adam"),
        "weight decay": ("no weight decay", "0.0001"),
        "schedule": ("13 epochs", "warm-up + cosine decay", "0.002", "400 epochs", "0.00025", "200"),
        "gradient clipping": ("10",),
        "EMA": ("0.999",),
        "auxiliary supervision": ("5 epochs", "2 of"),
        "word embeddings": ("random", "GloVe"),
        "data": ("clevr-like-v1", "clevr-v1.0"),
        "batch size": ("16 images", "64 questions"),
    }.items():
        for word in words:
            assert word in said[topic], topic


def test_only_fields_that_the_paper_gives_are_compared() -> None:
    """The batch size of table 2 changes with the scale, and the paper gives none."""
    sizes: dict[Scale, str] = {"paper": "128", "cpu": "64"}
    for scale, size in sizes.items():
        sentence = departures(find_row("table2/bcn"), scale)["batch size"]
        assert size in sentence
        assert "paper gives none" in sentence


@pytest.mark.parametrize(
    ("row", "topic"),
    [
        ("no-curriculum", "curriculum"),
        ("batch16", "batch size"),
        ("20-questions", "questions"),
        ("no-ema", "EMA"),
        ("step-decay", "schedule"),
    ],
)
def test_a_row_of_the_ablation_changes_one_topic(row: str, topic: str) -> None:
    usual, said = (departures(find_row(f"ablation/{name}"), "cpu") for name in ("base", row))
    assert {each for each in {*usual, *said} if usual.get(each) != said.get(each)} == {topic}


@pytest.mark.parametrize(("row", "others"), [("multirn", {"BCN"}), ("multirn-no-bcn", set())])
def test_batch32_departs_from_the_paper_scale_in_batch_size_and_relu(row: str, others: set[str]) -> None:
    usual, said = departures(find_row(f"table3/{row}"), "paper"), departures(find_row(f"batch32/{row}"), "cpu")
    assert {each for each in {*usual, *said} if usual.get(each) != said.get(each)} == {"batch size", *others}
    assert "32" in said["batch size"]


def test_rn_says_that_it_has_fewer_epochs() -> None:
    rn, others = (departures(find_row(f"table3/{name}"), "cpu") for name in ("rn", "multirn"))
    assert {topic for topic in rn if rn[topic] != others[topic]} == {"schedule"}
    assert others.keys() - rn.keys() == {"BCN", "augmentation"}
    assert rn["schedule"].startswith("10 epochs")


def test_a_field_without_a_topic_is_an_error() -> None:
    row = find_row("table1/bcn")
    with pytest.raises(AssertionError, match="localise"):
        departures(row.then(lambda recipe, scale: replace(recipe, localise=False)), "cpu")
