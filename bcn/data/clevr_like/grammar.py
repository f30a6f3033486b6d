"""Questions as trees, and the program that answers one; the sentences of clevr-like-v1 (phrasing.py has those of v2).

A Noun is a set of objects: those with some attributes, possibly linked to other objects by a spatial relation or a
shared attribute. Sentences use the words of CLEVR's questions only, so that the same word embeddings serve.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bcn.data.vqa.clevr import ATTRIBUTES, Program

Choose = Callable[[Sequence[str]], str]
"""picks one of several synonyms"""


@dataclass(frozen=True)
class Noun:
    filters: tuple[tuple[str, str], ...] = ()
    """attribute and value, in the order of ATTRIBUTES"""
    links: tuple["Link", ...] = ()
    """none, one, or two that must both hold"""


@dataclass(frozen=True)
class Link:
    name: str
    """a relation, "left", or an attribute that is shared, "color" """
    noun: Noun
    """the one object at the other end"""


def program(kind: str, *nouns: Noun, either: bool = False, shared: tuple[tuple[str, str], ...] = ()) -> Program:
    """The program of a question about the nouns; `either` asks about their union, as far as it has `shared` attributes.

    >>> [node["function"] for node in program("count", Noun((("color", "red"),)))]
    ['scene', 'filter_color', 'count']
    """
    nodes: Program = []
    inputs = [_compile(noun, nodes) for noun in nouns]
    if either:
        inputs = [_filter(shared, _node(nodes, "union", *inputs), nodes)]
    if kind in ("equal_integer", "less_than", "greater_than"):
        inputs = [_node(nodes, "count", index) for index in inputs]
    elif kind not in ("count", "exist"):
        inputs = [_node(nodes, "unique", index) for index in inputs]
        if kind.startswith("equal_"):
            inputs = [_node(nodes, kind.replace("equal", "query"), index) for index in inputs]
    _node(nodes, kind, *inputs)
    return nodes


def _compile(noun: Noun, nodes: Program) -> int:
    """Append the nodes that select the noun's objects; the index of the last."""
    inputs = []
    for link in noun.links:
        one = _node(nodes, "unique", _compile(link.noun, nodes))
        if link.name in ATTRIBUTES:
            inputs.append(_node(nodes, f"same_{link.name}", one))
        else:
            inputs.append(_node(nodes, "relate", one, value=link.name))
    if not inputs:
        inputs = [_node(nodes, "scene")]
    return _filter(noun.filters, inputs[0] if len(inputs) == 1 else _node(nodes, "intersect", *inputs), nodes)


def _filter(filters: tuple[tuple[str, str], ...], index: int, nodes: Program) -> int:
    for attribute, value in filters:
        index = _node(nodes, f"filter_{attribute}", index, value=value)
    return index


def _node(nodes: Program, function: str, *inputs: int, value: str | None = None) -> int:
    nodes.append({"function": function, "inputs": list(inputs), "value_inputs": [] if value is None else [value]})
    return len(nodes) - 1


SYNONYMS = {
    "large": ("large", "big"),
    "small": ("small", "tiny"),
    "metal": ("metal", "metallic", "shiny"),
    "rubber": ("rubber", "matte"),
    "cube": ("cube", "block"),
    "sphere": ("sphere", "ball"),
    "cylinder": ("cylinder",),
    "thing": ("thing", "object"),
    "left": ("left of", "to the left of", "on the left side of"),
    "right": ("right of", "to the right of", "on the right side of"),
    "front": ("in front of",),
    "behind": ("behind",),
}
SENTENCES: dict[str, tuple[str, ...]] = {
    "count": (
        "how many {many} are there",
        "what number of {many} are there",
        "how many {many} are visible",
        "what is the number of {many}",
    ),
    "exist": ("is there any {one}", "are there any {many}", "do any {many} exist"),
    "equal_integer": (
        "are there as many {many} as {others}",
        "is the number of {many} equal to the number of {others}",
        "is the number of {many} the same as the number of {others}",
    ),
    "less_than": ("are there fewer {many} than {others}", "is the number of {many} less than the number of {others}"),
    "greater_than": (
        "are there more {many} than {others}",
        "is the number of {many} greater than the number of {others}",
    ),
    "query_size": ("what size is the {one}", "what is the size of the {one}", "how big is the {one}"),
    "query_color": ("what color is the {one}", "what is the color of the {one}", "the {one} has what color"),
    "query_material": ("what material is the {one}", "what is the {one} made of", "what is the material of the {one}"),
    "query_shape": ("what shape is the {one}", "what is the shape of the {one}", "the {one} has what shape"),
    "equal_size": ("is the {one} the same size as the {other}", "do the {one} and the {other} have the same size"),
    "equal_color": ("is the {one} the same color as the {other}", "do the {one} and the {other} have the same color"),
    "equal_material": (
        "is the {one} made of the same material as the {other}",
        "do the {one} and the {other} have the same material",
    ),
    "equal_shape": ("is the {one} the same shape as the {other}", "do the {one} and the {other} have the same shape"),
}


def sentence(kind: str, *nouns: Noun, choose: Choose, either: bool = False) -> str:
    """A question in English.

    >>> sentence("query_color", Noun((("shape", "cylinder"),)), choose=lambda ways: ways[0])
    'What color is the cylinder?'
    """
    form = choose(SENTENCES[kind])
    if either:
        first, second = (_noun(noun, choose, True) for noun in nouns)
        parts = {"many": f"{_synonym('thing', choose)}s that are either {first} or {second}"}
    else:
        many = "{many}" in form
        names = ("many", "others") if many else ("one", "other")
        parts = dict(zip(names, (_noun(noun, choose, many) for noun in nouns), strict=False))
    text = form.format(**parts)
    return text[0].upper() + text[1:] + "?"


def plural(word: str) -> str:
    """
    >>> plural("cone"), plural("torus")
    ('cones', 'toruses')
    """
    return word + ("es" if word.endswith("s") else "s")


def _synonym(word: str, choose: Choose) -> str:
    return choose(SYNONYMS.get(word, (word,)))


def _noun(noun: Noun, choose: Choose, many: bool) -> str:
    filters = dict(noun.filters)
    words = [
        _synonym(filters[attribute], choose) for attribute in ("size", "color", "material") if attribute in filters
    ]
    last = _synonym(filters.get("shape", "thing"), choose)
    words.append(plural(last) if many else last)
    if not noun.links:
        return " ".join(words)
    ends = [f"{_synonym(link.name, choose)} the {_noun(link.noun, choose, False)}" for link in noun.links]
    if len(ends) == 2:
        return " ".join([*words, "that", "are" if many else "is", "both", f"{ends[0]} and {ends[1]}"])
    if noun.links[0].name in ATTRIBUTES:
        have = choose(("that have the same" if many else "that has the same", "of the same"))
        attribute, rest = ends[0].split(" ", 1)
        return " ".join(["other", *words, have, attribute, "as", rest])
    link = choose(("that are ", "") if many else ("that is ", "")) + ends[0]
    return " ".join([*words, link])
