"""The 90 families of CLEVR's questions: what is asked, and how the objects are found that it is asked about."""

from collections.abc import Callable
from typing import NamedTuple

from bcn.data.clevr_like.descriptions import Descriptions, Filters, Reference, Region, is_single
from bcn.data.clevr_like.grammar import Link, Noun
from bcn.data.clevr_like.scene import RELATIONS
from bcn.data.random import RandomStream
from bcn.data.vqa.clevr import ATTRIBUTES
from bcn.data.vqa.clevr import FAMILIES as KINDS_OF

HOPS = {"plain": 0, "one hop": 1, "two hops": 2, "three hops": 3}
"""how many relations lead to the objects"""
COMPARISONS = KINDS_OF["compare_numbers"]
QUERIES = KINDS_OF["query_attribute"]


class Family(NamedTuple):
    kind: str
    forms: tuple[str, ...]
    """of each noun: one of HOPS, "and" for two relations at once, "same" for an attribute that is shared"""
    attribute: str = ""
    """of "same", the shared one; of a union, one that both nouns have and that is said once"""
    any_other: bool = False
    """whether "same" asks about all other objects, and not about those of a description"""

    @property
    def either(self) -> bool:
        return self.kind == "count" and len(self.forms) == 2


FAMILIES: tuple[Family, ...] = (
    *(Family(kind, (form,)) for form in HOPS for kind in ("count", "exist", *QUERIES)),
    *(Family(kind, ("and",)) for kind in ("count", *QUERIES)),
    *(Family("count", ("plain", "plain"), attribute) for attribute in ("", *ATTRIBUTES)),
    *(Family("count", forms) for forms in (("one hop", "plain"), ("plain", "one hop"), ("one hop", "one hop"))),
    *(Family(kind, ("same",), name, True) for kind in ("exist", "count") for name in ATTRIBUTES),
    *(Family(kind, ("same",), name) for kind in ("exist", "count") for name in ATTRIBUTES),
    *(Family(kind, ("same",), name) for name in ATTRIBUTES for kind in QUERIES if kind != f"query_{name}"),
    *(Family(f"equal_{name}", (a, b)) for name in ATTRIBUTES for a in list(HOPS)[:2] for b in list(HOPS)[:2]),
    *(
        Family(kind, forms)
        for kind in COMPARISONS
        for forms in (("plain", "plain"), ("one hop", "plain"), ("one hop", "one hop"))
    ),
)
"""`question_family_index` is an index of these"""


class Asked(NamedTuple):
    nouns: tuple[Noun, ...]
    shared: Filters = ()
    """filters of a union"""


def find_objects(rng: RandomStream, scene: Descriptions, family: Family, wanted: str) -> Asked | None:
    """What a question of the family with this answer could be about; None if this attempt finds nothing."""
    if len(family.forms) == 2:
        return _find_pair(rng, scene, family, wanted)
    accept, asked = _accept_one(scene, family.kind, wanted), family.kind.removeprefix("query_")
    if family.any_other:
        others = [reference for reference in scene.unique if accept(scene.same(family.attribute, reference))]
        return Asked((Noun((), (Link(family.attribute, rng.choice(others).noun),)),)) if others else None
    if family.forms == ("plain",) and accept(0):
        none = scene.refer_to_none(rng)
        return none and Asked((none.noun,))
    regions = _regions(rng, scene, family.forms[0], family.attribute)
    reference = regions and scene.refer(rng, regions, accept, unnamed=(family.attribute, asked))
    return Asked((reference.noun,)) if reference else None


def _accept_one(scene: Descriptions, kind: str, wanted: str) -> Callable[[int], bool]:
    """Whether a set of objects gives the answer."""
    if kind == "count":
        return lambda objects: objects.bit_count() == int(wanted)
    if kind == "exist":
        return lambda objects: (objects != 0) == (wanted == "yes")
    with_answer = scene.with_value[kind.removeprefix("query_"), wanted]
    return lambda objects: is_single(objects) and bool(objects & with_answer)


def _regions(rng: RandomStream, scene: Descriptions, form: str, attribute: str = "") -> list[Region] | None:
    """Where the objects of a noun may be, in relation to others that are drawn here; None if none fit."""
    if form == "plain":
        return scene.anywhere()
    if form == "and":
        ends = [_reference(rng, scene, 0) for _ in range(2)]
        if ends[0] is None or ends[1] is None or ends[0].objects == ends[1].objects:
            return None
        first, second = (scene.around(end)[rng.integer(len(RELATIONS))] for end in ends if end)
        return scene.between(first, second)
    end = _reference(rng, scene, 0 if form == "same" else HOPS[form] - 1)
    if end is None:
        return None
    return scene.sharing(attribute, end) if form == "same" else scene.around(end)


def _reference(rng: RandomStream, scene: Descriptions, hops: int) -> Reference | None:
    """One object, through so many relations."""
    if hops == 0:
        return rng.choice(scene.unique) if scene.unique else None
    end = _reference(rng, scene, hops - 1)
    return end and scene.refer(rng, scene.around(end), is_single)


def _find_pair(rng: RandomStream, scene: Descriptions, family: Family, wanted: str) -> Asked | None:
    attribute = family.kind.removeprefix("equal_") if family.kind.startswith("equal_") else family.attribute
    within = scene.all
    shared: Filters = ()
    if family.either and attribute:
        value = rng.choice([value for value in scene.attributes[attribute] if scene.with_value[attribute, value]])
        within, shared = scene.with_value[attribute, value], ((attribute, value),)
    single = family.kind != "count" and family.kind not in COMPARISONS
    first = _refer(rng, scene, family.forms[0], is_single if single else lambda objects: True, attribute)
    if first is None:
        return None

    alike = scene.same(attribute, first) if single else 0

    def accept(objects: int) -> bool:
        if objects == first.objects or (single and not is_single(objects)):
            return False
        if family.either:
            return ((first.objects | objects) & within).bit_count() == int(wanted)
        if single:
            return bool(objects & alike) == (wanted == "yes")
        a, b = first.objects.bit_count(), objects.bit_count()
        return {"equal_integer": a == b, "less_than": a < b, "greater_than": a > b}[family.kind] == (wanted == "yes")

    second = _refer(rng, scene, family.forms[1], accept, attribute)
    return second and Asked((first.noun, second.noun), shared)


def _refer(
    rng: RandomStream, scene: Descriptions, form: str, accept: Callable[[int], bool], attribute: str
) -> Reference | None:
    """One of two nouns. A plain one may be of no object, and is not just "things"."""
    regions = _regions(rng, scene, form)
    if regions is None:
        return None
    if form != "plain":
        return scene.refer(rng, regions, lambda objects: objects != 0 and accept(objects), unnamed=(attribute,))
    drawn = scene.refer(rng, regions, accept, unnamed=(attribute,), named=True)
    if accept(0) and (drawn is None or rng.integer(3) == 0):
        return scene.refer_to_none(rng, unnamed=(attribute,))
    return drawn
