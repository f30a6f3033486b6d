"""Statistics of questions in CLEVR's form: those of our versions, of any file, and what is known of CLEVR's own."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from bcn.data.clevr_like.grammars import GRAMMARS
from bcn.data.clevr_like.phrasing import WORDS
from bcn.data.clevr_like.scene import make_scene
from bcn.data.vqa.clevr import FAMILIES, function_of, kind_of
from bcn.data.vqa.vocabulary import tokenize

NOT_IN_V1 = frozenset((";", "a", "an", "another", "anything", "does", "else", "it", "its"))
"""words of CLEVR's questions that those of clevr-like-v1 lack"""
FAMILY_OF = {kind: family for family, kinds in FAMILIES.items() for kind in kinds}
CLEVR_COLUMN = {
    "words, CLEVR's and others": "81 (a), 0",
    "words that clevr-like-v1 lacks, in % of questions": "30.6 (b)",
    'beginning with "There is", %': "21.7 (b)",
    "exist, %": "13.3 (c)",
    "count, %": "23.3 (c)",
    "compare numbers, %": "9.0 (b)",
    "query attribute, %": "35.6 (c)",
    "compare attribute, %": "17.8 (c)",
    "with the same size, color, material or shape, %": "31.2 (b)",
    "with 0 relations, %": "51.1 (c)",
    "with 1 relation, %": "21.1 (c)",
    "with 2 relations, %": "21.1 (c)",
    "with 3 relations, %": "6.7 (c)",
    "yes, in % of yes and no": "about 50 (d)",
}
"""of CLEVR, counted or inferred; the letters are explained where the table stands, docs/reference/clevr-like.md"""


def describe_questions(entries: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Rows of the table, of entries that have a question, an answer and a program.

    >>> scene, count = {"function": "scene", "inputs": []}, {"function": "count", "inputs": [0]}
    >>> asked = {"question": "How many things are there?", "answer": "3", "program": [scene, count]}
    >>> describe_questions([asked])["words in a question, mean and most"]
    '5.0, 5'
    """
    counted = list(entries)
    tokens = [tokenize(entry["question"]) for entry in counted]
    functions = [[function_of(node) for node in entry["program"]] for entry in counted]
    families = [FAMILY_OF[kind_of(entry["program"])] for entry in counted]
    answers = Counter(entry["answer"] for entry in counted)
    numbers = [int(entry["answer"]) for entry, family in zip(counted, families, strict=True) if family == "count"]
    lengths, yes_or_no = list(map(len, tokens)), answers["yes"] + answers["no"]
    spoken = {word for words in tokens for word in words}
    return {
        "words, CLEVR's and others": f"{len(spoken & set(WORDS))}, {len(spoken - set(WORDS))}",
        "words that clevr-like-v1 lacks, in % of questions": _percent(
            [not NOT_IN_V1.isdisjoint(each) for each in tokens]
        ),
        "words in a question, mean and most": f"{sum(lengths) / len(lengths):.1f}, {max(lengths)}",
        'beginning with "There is", %': _percent([entry["question"].startswith("There is") for entry in counted]),
        **{f"{name.replace('_', ' ')}, %": _percent([each == name for each in families]) for name in _ORDER},
        "with the same size, color, material or shape, %": _percent(
            [any(name.startswith("same_") for name in each) for each in functions]
        ),
        **{
            f"with {count} {'relation' if count == 1 else 'relations'}, %": _percent(
                [each.count("relate") == count for each in functions]
            )
            for count in range(4)
        },
        "yes, in % of yes and no": f"{100 * answers['yes'] / max(1, yes_or_no):.1f}",
        **{f"{count}, in % of counts": _percent([number == count for number in numbers]) for count in range(4)},
        "4 or more, in % of counts": _percent([number > 3 for number in numbers]),
    }


_ORDER = ("exist", "count", "compare_numbers", "query_attribute", "compare_attribute")


def describe_versions(scenes: int) -> dict[str, dict[str, str]]:
    """`describe_questions` of each version, about so many scenes, ten questions about each."""
    made = [make_scene(index) for index in range(scenes)]
    return {
        name: describe_questions(entry for scene in made for entry in make_questions(scene))
        for name, make_questions in GRAMMARS.items()
    }


def compare_columns(columns: dict[str, dict[str, str]]) -> str:
    """A Markdown table, with what is known of CLEVR in the last column."""
    rows = next(iter(columns.values()))
    lines = [f"| | {' | '.join(columns)} | CLEVR |", "|---" + "|--:" * (len(columns) + 1) + "|"]
    for row in rows:
        cells = [column[row] for column in columns.values()]
        lines.append(f"| {row} | {' | '.join(cells)} | {CLEVR_COLUMN.get(row, '-')} |")
    return "\n".join(lines)


def _percent(chosen: Sequence[bool]) -> str:
    return f"{100 * sum(chosen) / max(1, len(chosen)):.1f}"
