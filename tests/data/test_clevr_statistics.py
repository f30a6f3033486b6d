"""Statistics of questions: counted by hand, and the table in the docs."""

from pathlib import Path

import pytest
from helpers.command import run_bcn
from helpers.squares import clevr_layout

from bcn.data.clevr_like.families import FAMILIES, HOPS
from bcn.data.clevr_like.statistics import CLEVR_COLUMN, describe_questions

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "clevr-like.md"


def node(function: str, *inputs: int) -> dict[str, object]:
    return {"function": function, "inputs": list(inputs)}


def test_questions_counted_by_hand() -> None:
    one = [node("scene"), node("unique", 0)]
    asked = [
        ("There is a ball; how many cubes are left of it?", "2", [*one, node("relate", 1), node("count", 2)]),
        ("Do any things exist?", "yes", [node("scene"), node("exist", 0)]),
        ("Are any cubes visible?", "no", [node("scene"), node("exist", 0)]),
        ("How many other things are the same size as the ball?", "5", [*one, node("same_size", 1), node("count", 2)]),
    ]  # fmt: skip
    keys = ("question", "answer", "program")
    rows = describe_questions(dict(zip(keys, entry, strict=True)) for entry in asked)
    expected = {
        "words, CLEVR's and others": "21, 1",
        "words that clevr-like-v1 lacks, in % of questions": "25.0",
        "words in a question, mean and most": "7.8, 12",
        'beginning with "There is", %': "25.0",
        "exist, %": "50.0",
        "count, %": "50.0",
        "with the same size, color, material or shape, %": "25.0",
        "with 0 relations, %": "75.0",
        "with 1 relation, %": "25.0",
        "yes, in % of yes and no": "50.0",
        "2, in % of counts": "50.0",
        "4 or more, in % of counts": "50.0",
    }
    assert {row: rows[row] for row in expected} == expected
    assert set(CLEVR_COLUMN) <= set(rows)


def test_shares_of_families_are_those_of_ninety() -> None:
    """The arithmetic behind the letter c of the docs, over our list of families; it is no evidence about CLEVR."""
    share = {
        "exist": sum(family.kind == "exist" for family in FAMILIES),
        "count": sum(family.kind == "count" for family in FAMILIES),
        "query attribute": sum(family.kind.startswith("query_") for family in FAMILIES),
        "compare attribute": sum(family.kind.startswith("equal_") and "int" not in family.kind for family in FAMILIES),
    }
    relations = [
        sum({"and": 2, "same": 0}.get(form, HOPS.get(form, 0)) for form in family.forms) for family in FAMILIES
    ]
    share |= {f"with {n} relation{'s' * (n != 1)}": relations.count(n) for n in range(4)}
    assert {
        f"{name}, %": f"{100 * count / 90:.1f} (c)" for name, count in share.items()
    }.items() <= CLEVR_COLUMN.items()


def test_a_directory_is_described_beside_them(tmp_path: Path) -> None:
    said = run_bcn("clevr", "statistics", clevr_layout(tmp_path / "mine", {"val": 3}), "--scenes", 2)
    assert said.splitlines()[0] == "| | clevr-like-v1 | clevr-like-v2 | mine val | CLEVR |"
    assert "| count, % |" in said


@pytest.mark.nightly
def test_the_table_in_the_docs_is_what_the_command_prints() -> None:
    assert run_bcn("clevr", "statistics").strip() in PAGE.read_text()
