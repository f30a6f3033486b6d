"""Questions of clevr-like-v1 about a scene: all five families, 13 kinds, in the JSON of CLEVR's questions.

The answer is drawn first, then a question that has it is found by rejection sampling: so answers are balanced within a
kind as far as scenes allow, and questions are, like scenes, a function of (seed, split, index) alone. A question is
rejected when it is
- ill-posed: "the ball" where there is no ball, or several;
- trivial: it compares an object with itself or a set with a subset of it, or asks for or compares an attribute of an
  object that would be unique without one of its links too.
In counts, comparisons of numbers and questions of existence, a link may be redundant.
"""

from typing import Any, NamedTuple

from bcn.data.clevr_like import grammar
from bcn.data.clevr_like.grammar import Link, Noun
from bcn.data.clevr_like.program import IllPosed, answer
from bcn.data.clevr_like.rules import MAX_OBJECTS, values_of
from bcn.data.clevr_like.scene import RELATIONS
from bcn.data.random import RandomStream
from bcn.data.vqa.clevr import ATTRIBUTES
from bcn.data.vqa.clevr import FAMILIES as KINDS_OF
from bcn.errors import BcnError

Scene = dict[str, Any]


class Family(NamedTuple):
    kind: str
    forms: tuple[str, ...]
    """of each noun: how it is linked to other objects"""


COMPARISONS = KINDS_OF["compare_numbers"]
_FORMS = ("plain", "one hop", "two hops", "three hops", "same", "and")
_FORM_PAIRS = (("plain", "plain"), ("one hop", "plain"), ("plain", "one hop"), ("one hop", "one hop"))
FAMILIES: tuple[Family, ...] = (
    *(Family("count", (form,)) for form in (*_FORMS, "or")),
    *(Family("exist", (form,)) for form in _FORMS),
    *(Family(kind, pair) for kind in COMPARISONS for pair in (_FORM_PAIRS[0], _FORM_PAIRS[3])),
    *(Family(f"query_{attribute}", (form,)) for attribute in ATTRIBUTES for form in _FORMS),
    *(Family(f"equal_{attribute}", pair) for attribute in ATTRIBUTES for pair in _FORM_PAIRS),
)
"""`question_family_index` is an index of these"""

# Weights of kinds, answers and counts in what is sampled. Some are rejected more often than others (two objects of one
# colour, each unique by a few words), so the resulting frequencies differ from these: they are about CLEVR's.
_KIND_WEIGHTS = {"count": 40, "exist": 7, "equal_integer": 3, "less_than": 3, "greater_than": 3}
_KIND_WEIGHTS |= {"query_size": 11, "query_color": 15, "query_material": 11, "query_shape": 13}
_KIND_WEIGHTS |= {"equal_size": 7, "equal_color": 12, "equal_material": 7, "equal_shape": 7}
_KINDS = tuple(kind for kind, weight in _KIND_WEIGHTS.items() for _ in range(weight))
_YES_PROBABILITY = {"equal_size": 0.5, "equal_color": 0.8, "equal_material": 0.5, "equal_shape": 0.57}
_COUNT_WEIGHTS = (2, *range(2, MAX_OBJECTS + 2))
_ATTRIBUTE_COUNTS = (1, 1, 1, 2, 2, 2, 2, 3, 3, 4)
"""how many attributes a noun mentions, to choose from"""


def make_questions(scene: Scene, *, seed: int = 0, count: int = 10) -> list[dict[str, Any]]:
    """Questions about a scene: `count`, or fewer where rejection sampling finds fewer.

    >>> from bcn.data.clevr_like.scene import make_scene
    >>> first = make_questions(make_scene(0))[0]
    >>> sorted(first)[:4]
    ['answer', 'image_filename', 'image_index', 'program']
    """
    check_objects(scene)
    rng = RandomStream(seed, scene["split"], scene["image_index"], stream=1)
    questions: list[dict[str, Any]] = []
    for _ in range(40 * count):
        if len(questions) == count:
            break
        kind = rng.choice(_KINDS)
        question = _find_question(rng, scene, kind, _sample_answer(rng, scene, kind))
        if question and all(question["question"] != other["question"] for other in questions):
            questions.append(
                {
                    "image_index": scene["image_index"],
                    "image_filename": scene["image_filename"],
                    "split": scene["split"],
                    "question_index": scene["image_index"] * count + len(questions),
                    **question,
                }
            )
    return questions


def check_objects(scene: Scene) -> None:
    """Refuse a scene without objects, or with more than questions count."""
    if not 1 <= len(scene["objects"]) <= MAX_OBJECTS:
        raise BcnError(
            f"{scene['image_filename']} has {len(scene['objects'])} objects: accepted are 1 to {MAX_OBJECTS}"
        )


def _sample_answer(rng: RandomStream, scene: Scene, kind: str) -> str:
    """The answer that the question should have."""
    if kind == "count":
        possible = [number for number in range(len(scene["objects"]) + 1) for _ in range(_COUNT_WEIGHTS[number])]
        return str(rng.choice(possible))
    if kind.startswith("query_"):
        attribute = kind.removeprefix("query_")
        return str(rng.choice(sorted({thing[attribute] for thing in scene["objects"]})))
    return "yes" if rng.uniform() < _YES_PROBABILITY.get(kind, 0.5) else "no"


def _find_question(rng: RandomStream, scene: Scene, kind: str, wanted: str) -> dict[str, Any] | None:
    """A question of this kind with this answer, or None after 16 rejections."""
    # Form and attributes are chosen before the search, so that they do not correlate with the answer.
    index = rng.choice([index for index, family in enumerate(FAMILIES) if family.kind == kind])
    family = FAMILIES[index]
    either = family.forms == ("or",)
    masks = [_sample_attributes(rng, family, form) for form in family.forms * (2 if either else 1)]
    for _ in range(16):
        nouns = _nouns(rng, scene, family, masks)
        if nouns is None or not _is_nontrivial(scene, family, nouns):
            continue
        program = grammar.program(kind, *nouns, either=either)
        try:
            if answer(program, scene) != wanted:
                continue
        except IllPosed:
            continue
        text = grammar.sentence(kind, *nouns, choose=rng.choice, either=either)
        return {"question": text, "answer": wanted, "program": program, "question_family_index": index}
    return None


def _sample_attributes(rng: RandomStream, family: Family, form: str) -> tuple[str, ...]:
    """The attributes that the noun mentions: never the one that is asked for."""
    asked = family.kind.partition("_")[2]
    free = [attribute for attribute in ATTRIBUTES if attribute != asked]
    number = rng.choice(_ATTRIBUTE_COUNTS)
    if number == 1 and form != "plain" and rng.integer(2):
        number = 0  # "the thing left of ..."
    return _subset(rng, free, number)


def _subset(rng: RandomStream, free: list[str], number: int) -> tuple[str, ...]:
    free = list(free)
    while len(free) > number:
        free.pop(rng.integer(len(free)))
    return tuple(free)


def _nouns(rng: RandomStream, scene: Scene, family: Family, masks: list[tuple[str, ...]]) -> list[Noun] | None:
    forms = family.forms * (len(masks) // len(family.forms))
    single = family.kind not in ("count", "exist", *COMPARISONS)
    nouns = []
    for form, mask in zip(forms, masks, strict=True):
        links = _links(rng, scene, form)
        if links is None:
            return None
        if len(links) == 1 and links[0].name in ATTRIBUTES:
            if family.kind == f"query_{links[0].name}":
                return None
            mask = tuple(attribute for attribute in mask if attribute != links[0].name)
        nouns.append(Noun(_sample_values(rng, scene, mask, real=single), links))
    return nouns


def _links(rng: RandomStream, scene: Scene, form: str) -> tuple[Link, ...] | None:
    if form in ("plain", "or"):
        return ()
    if form == "and":
        ends = [_unique_noun(rng, scene, ()) for _ in range(2)]
        names = (rng.choice(RELATIONS[:2]), rng.choice(RELATIONS[2:]))
        if None in ends or ends[0] == ends[1]:
            return None
        return tuple(Link(name, end) for name, end in zip(names, ends, strict=True) if end is not None)
    links: tuple[Link, ...] = ()
    for _ in range({"one hop": 1, "same": 1, "two hops": 2, "three hops": 3}[form]):
        noun = _unique_noun(rng, scene, links)
        if noun is None:
            return None
        links = (Link(rng.choice(tuple(ATTRIBUTES) if form == "same" else RELATIONS), noun),)
    return links


def _unique_noun(rng: RandomStream, scene: Scene, links: tuple[Link, ...]) -> Noun | None:
    """A noun that one object fits, and that needs its links for that."""
    for _ in range(6):
        mask = _subset(rng, list(ATTRIBUTES), rng.choice(_ATTRIBUTE_COUNTS) - (1 if links and rng.integer(2) else 0))
        noun = Noun(_sample_values(rng, scene, mask, real=True), links)
        if len(_objects(noun, scene)) == 1 and not (links and len(_objects(Noun(noun.filters), scene)) == 1):
            return noun
    return None


def _sample_values(
    rng: RandomStream, scene: Scene, mask: tuple[str, ...], *, real: bool
) -> tuple[tuple[str, str], ...]:
    """Values for the attributes: those of some object; half of the time, unless `real`, with one of them resampled."""
    thing = rng.choice(scene["objects"])
    values = {attribute: thing[attribute] for attribute in mask}
    if mask and not real and rng.integer(2):
        attribute = rng.choice(mask)
        values[attribute] = rng.choice(values_of(scene)[attribute])
    return tuple(values.items())


def _objects(noun: Noun, scene: Scene) -> list[int]:
    """The objects that a noun refers to; none where one of its links is ill-posed."""
    objects = scene["objects"]
    indices = list(range(len(objects)))
    for name, value in noun.filters:
        indices = [i for i in indices if objects[i][name] == value]
    for link in noun.links if indices else ():
        ends = _objects(link.noun, scene)
        if len(ends) != 1:
            return []
        if link.name in ATTRIBUTES:
            indices = [i for i in indices if i != ends[0] and objects[i][link.name] == objects[ends[0]][link.name]]
        else:
            indices = [i for i in indices if i in scene["relationships"][link.name][ends[0]]]
    return indices


def _is_nontrivial(scene: Scene, family: Family, nouns: list[Noun]) -> bool:
    """Whether a question is not trivial."""
    bare = [_objects(Noun(noun.filters), scene) for noun in nouns]
    if len(nouns) == 2:
        if _is_nested(*nouns) or not (bare[0] or bare[1]):
            return False
        if family.kind in (*COMPARISONS, "count"):
            return True
        first, second = (_objects(noun, scene) for noun in nouns)
        if first == second:
            return False
    for noun, without in zip(nouns, bare, strict=True):
        if not noun.links:
            continue
        if family.kind in ("count", "exist"):
            ends = {index for link in noun.links for index in _objects(link.noun, scene)}
            if not set(without) - ends:  # nothing fits, wherever it is
                return False
        elif any(len(_objects(fewer, scene)) == 1 for fewer in _with_fewer_links(noun)):  # a link is not needed
            return False
    return True


def _with_fewer_links(noun: Noun) -> list[Noun]:
    return [Noun(noun.filters)] + [Noun(noun.filters, (link,)) for link in noun.links if len(noun.links) > 1]


def _is_nested(a: Noun, b: Noun) -> bool:
    """Whether one of two sets is a subset of the other in any scene."""
    first, second = set(a.filters), set(b.filters)
    return a.links == b.links and (first <= second or second <= first)
