"""Questions in CLEVR's wording about original scenes, with answers, all written by hand.

What is asked is written as a chain from the last object back: "ball < left < small cube" is what the noun "ball left of
the small cube" means, "thing < =color < cube" what shares its color with the cube. Programs and trees are made from it
here, apart from the package's own.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from helpers.clevr_oracle import oracle

from bcn.data.clevr_like.grammar import SYNONYMS, Link, Noun
from bcn.data.clevr_like.phrasing import WORDS, phrase
from bcn.data.clevr_like.program import answer
from bcn.data.vqa.clevr import ATTRIBUTES, KINDS
from bcn.data.vqa.vocabulary import tokenize
from bcn.io import data_root

ASKED: list[tuple[int, str, str, str, str]] = [
    # scene, question, kind, what is asked, answer
    (13, "How many small metallic things are there?", "count", "small metal thing", "2"),
    (13, "What number of red objects are visible?", "count", "red thing", "2"),
    (13, "Are there any tiny purple blocks?", "exist", "small purple cube", "no"),
    (13, "Is there a big shiny ball?", "exist", "large metal sphere", "yes"),
    (13, "Are any green spheres visible?", "exist", "green sphere", "no"),
    (13, "How big is the cyan object?", "query_size", "cyan thing", "small"),
    (13, "What is the blue thing made of?", "query_material", "blue thing", "metal"),
    (13, "The rubber ball is what color?", "query_color", "rubber sphere", "red"),
    (13, "What shape is the large gray metallic object?", "query_shape", "large gray metal thing", "cylinder"),
    (13, "How many cubes are to the left of the big ball?", "count", "cube < left < large sphere", "3"),
    (13, "There is a small cyan object; what number of rubber things are right of it?", "count",
     "rubber thing < right < small cyan thing", "1"),
    (13, "There is a matte block; are there any balls in front of it?", "exist", "sphere < front < rubber cube", "no"),
    (13, "Is there a shiny cube behind the tiny red matte sphere?", "exist",
     "metal cube < behind < small red rubber sphere", "yes"),
    (13, "What size is the metal cylinder that is on the right side of the cyan cylinder?", "query_size",
     "metal cylinder < right < cyan cylinder", "large"),
    (13, "There is a block in front of the red metal cube; what is its color?", "query_color",
     "cube < front < red metal cube", "gray"),
    (13, "There is a cylinder behind the small cyan shiny thing; what material is it?", "query_material",
     "cylinder < behind < small cyan metal thing", "metal"),
    (13, "How many objects are left of the large thing that is behind the big blue ball?", "count",
     "thing < left < large thing < behind < large blue sphere", "1"),
    (13, "There is a gray metal thing that is right of the purple block; is there a cyan object in front of it?",
     "exist", "cyan thing < front < gray metal thing < right < purple cube", "yes"),
    (13, "What shape is the tiny thing in front of the small cylinder that is in front of the big gray object?",
     "query_shape", "small thing < front < small cylinder < front < large gray thing", "cube"),
    (13, "There is a tiny rubber object that is left of the small cylinder to the left of the gray cylinder that is "
     "left of the red rubber thing; what color is it?", "query_color",
     "small rubber thing < left < small cylinder < left < gray cylinder < left < red rubber thing", "gray"),
    (13, "What number of blocks are behind the ball left of the cyan thing that is in front of the red metal block?",
     "count", "cube < behind < sphere < left < cyan thing < front < red metal cube", "1"),
    (13, "What number of shiny things are both to the right of the purple cube and in front of the blue ball?",
     "count", "metal thing < right < purple cube & front < blue sphere", "2"),
    (13, "There is a thing that is left of the gray cylinder and in front of the tiny cyan object; what is it made of?",
     "query_material", "thing < left < gray cylinder & front < small cyan thing", "rubber"),
    (13, "What is the shape of the red object that is both right of the big ball and behind the cyan cylinder?",
     "query_shape", "red thing < right < large sphere & behind < cyan cylinder", "sphere"),
    (13, "How many things are either tiny cylinders or big gray metal objects?", "count",
     "small cylinder | large gray metal thing", "2"),
    (13, "What number of cubes are metallic things or tiny objects?", "count",
     "metal thing | small thing : cube", "3"),
    (13, "How many objects are either blocks left of the blue ball or red rubber things?", "count",
     "cube < left < blue sphere | red rubber thing", "4"),
    (15, "Is there anything else that is the same color as the yellow thing?", "exist",
     "thing < =color < yellow thing", "no"),
    (15, "Are there any other objects that have the same material as the big cylinder?", "exist",
     "thing < =material < large cylinder", "yes"),
    (15, "How many other things are there of the same size as the rubber ball?", "count",
     "thing < =size < rubber sphere", "2"),
    (15, "What number of other things are the same shape as the yellow matte block?", "count",
     "thing < =shape < yellow rubber cube", "1"),
    (15, "Is there another sphere that has the same color as the small ball?", "exist",
     "sphere < =color < small sphere", "yes"),
    (15, "Is there a cube that is made of the same material as the gray sphere?", "exist",
     "cube < =material < gray sphere", "yes"),
    (15, "How many big spheres are the same color as the gray cube?", "count",
     "large sphere < =color < gray cube", "1"),
    (15, "What color is the other cube that has the same size as the small metal block?", "query_color",
     "cube < =size < small metal cube", "yellow"),
    (15, "There is another ball of the same material as the large red object; how big is it?", "query_size",
     "sphere < =material < large red thing", "small"),
    (15, "The gray object that is the same shape as the yellow cube is what size?", "query_size",
     "gray thing < =shape < yellow cube", "small"),
    (18, "Do the purple block and the small thing have the same material?", "equal_material",
     "purple cube , small thing", "no"),
    (18, "Is the red cylinder the same size as the matte cylinder?", "equal_size",
     "red cylinder , rubber cylinder", "no"),
    (18, "Does the cube have the same color as the rubber object?", "equal_color", "cube , rubber thing", "no"),
    (18, "Are the red thing and the big cyan thing the same shape?", "equal_shape",
     "red thing , large cyan thing", "yes"),
    (18, "Is the color of the small cylinder the same as the large object that is right of the red thing?",
     "equal_color", "small cylinder , large thing < right < red thing", "yes"),
    (18, "There is a cylinder right of the red object; does it have the same color as the tiny thing?", "equal_color",
     "cylinder < right < red thing , small thing", "yes"),
    (18, "There is a metallic cylinder to the left of the big cyan cylinder; is its size the same as the rubber thing?",
     "equal_size", "metal cylinder < left < large cyan cylinder , rubber thing", "no"),
    (18, "There is a big thing to the left of the small object; is it made of the same material as the cyan thing in "
     "front of the red cylinder?", "equal_material",
     "large thing < left < small thing , cyan thing < front < red cylinder", "yes"),
    (18, "Are there an equal number of brown balls and cylinders?", "equal_integer", "brown sphere , cylinder", "no"),
    (18, "Are there the same number of brown things and cyan objects?", "equal_integer",
     "brown thing , cyan thing", "yes"),
    (18, "Is the number of blocks the same as the number of rubber things?", "equal_integer",
     "cube , rubber thing", "yes"),
    (18, "Are there fewer cubes than spheres?", "less_than", "cube , sphere", "yes"),
    (18, "Is the number of cylinders less than the number of balls behind the red thing?", "less_than",
     "cylinder , sphere < behind < red thing", "no"),
    (18, "Are there more big metal things in front of the matte cylinder than brown spheres left of the red cylinder?",
     "greater_than", "large metal thing < front < rubber cylinder , brown sphere < left < red cylinder", "yes"),
    (18, "Is the number of shiny objects that are left of the tiny cylinder greater than the number of purple things?",
     "greater_than", "metal thing < left < small cylinder , purple thing", "no"),
]  # fmt: skip


def filters_of(words: str) -> tuple[tuple[str, str], ...]:
    named = set(words.split()) - {"thing"}
    return tuple((name, value) for name, values in ATTRIBUTES.items() for value in values if value in named)


def tree(chain: str) -> Noun:
    """The noun of a chain."""
    head, _, rest = chain.partition(" < ")
    ends = rest.split(" & ") if rest else []
    links = [end.partition(" < ") for end in ends]
    return Noun(filters_of(head), tuple(Link(name.strip().removeprefix("="), tree(end)) for name, _, end in links))


def program_of(kind: str, asked: str) -> list[dict[str, Any]]:
    """CLEVR's nodes, written from the last object back to the first."""
    nodes: list[dict[str, Any]] = []

    def add(function: str, *inputs: int, value: str = "") -> int:
        nodes.append({"function": function, "inputs": list(inputs), "value_inputs": [value] if value else []})
        return len(nodes) - 1

    def narrow(place: int, words: str) -> int:
        for name, value in filters_of(words):
            place = add(f"filter_{name}", place, value=value)
        return place

    def select(chain: str) -> int:
        head, _, rest = chain.partition(" < ")
        places = []
        for end in rest.split(" & ") if rest else []:
            name, _, noun = end.strip().partition(" < ")
            one = add("unique", select(noun))
            places.append(add(f"same_{name[1:]}", one) if name[0] == "=" else add("relate", one, value=name))
        if not places:
            places = [add("scene")]
        return narrow(places[0] if len(places) == 1 else add("intersect", *places), head)

    union, _, shared = asked.partition(" : ")
    if " | " in union:
        place = add("union", *map(select, union.split(" | ")))
        add("count", narrow(place, shared))
        return nodes
    places = [select(chain) for chain in asked.split(" , ")]
    if kind in ("equal_integer", "less_than", "greater_than"):
        places = [add("count", place) for place in places]
    elif kind not in ("count", "exist"):
        places = [add("unique", place) for place in places]
    if kind.startswith("equal_") and kind != "equal_integer":
        places = [add(kind.replace("equal", "query"), place) for place in places]
    add(kind, *places)
    return nodes


def sayings(kind: str, asked: str) -> Iterator[str]:
    """Everything that the grammar can say of it, in the first of all synonyms."""
    union, _, shared = asked.partition(" : ")
    nouns, either = [tree(chain) for chain in union.replace(" | ", " , ").split(" , ")], " | " in union
    paths: list[list[int]] = [[]]
    while paths:
        path = paths.pop()
        taken = 0

        def choose(ways: Sequence[str], path: list[int] = path) -> str:
            nonlocal taken
            different = list(dict.fromkeys(ways))
            if tuple(ways) in SYNONYMS.values() or len(different) == 1:
                return different[0]
            if taken == len(path):
                paths.extend([*path, other] for other in range(1, len(different)))
                path.append(0)
            taken += 1
            return different[path[taken - 1]]

        yield plain(phrase(kind, *nouns, choose=choose, either=either, shared=filters_of(shared)))


def plain(sentence: str) -> str:
    """A sentence in the first of all synonyms."""
    text = " " + " ".join(tokenize(sentence)) + " "
    pairs = [(way, ways[0]) for ways in SYNONYMS.values() for way in ways[1:]]
    pairs += [(f"{way}s", f"{first}s") for way, first in pairs]
    for way, first in sorted(pairs, key=lambda pair: -len(pair[0])):
        while f" {way} " in text:
            text = text.replace(f" {way} ", f" {first} ")
    return text.strip().replace("how large", "how big")


@pytest.mark.data("clevr")
def test_answers_written_by_hand_are_the_interpreters() -> None:
    path = data_root() / "clevr" / "scenes" / "CLEVR_val_scenes_500.json"
    scenes = {scene["image_index"]: scene for scene in json.loads(path.read_text())["scenes"]}
    for index, question, kind, asked, expected in ASKED:
        program = program_of(kind, asked)
        assert answer(program, scenes[index]) == expected == str(oracle(program, scenes[index])), question


def test_they_are_of_all_kinds_and_forms_in_known_words() -> None:
    assert len(ASKED) >= 50
    assert {kind for _, _, kind, _, _ in ASKED} == set(KINDS)
    spoken = {word for _, question, *_ in ASKED for word in tokenize(question)}
    assert spoken <= set(WORDS)
    assert len(spoken) >= 75
    chains = [asked for _, _, _, asked, _ in ASKED if not set("=&|,") & set(asked)]
    assert {chain.count("<") // 2 for chain in chains} == {0, 1, 2, 3}
    assert all(any(mark in asked for *_, asked, _ in ASKED) for mark in (" & ", " | ", " : ", " , ", "="))


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked[1])
def test_the_grammar_can_say_it(asked: tuple[int, str, str, str, str]) -> None:
    _, question, kind, what, _ = asked
    assert plain(question) in set(sayings(kind, what))
