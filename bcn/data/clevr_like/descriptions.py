"""What can be said of the objects of a scene, to draw the nouns of a question from; a set of objects is bits of an int.

A description is a tuple of filters, (("color", "red"), ("shape", "cube")). As in CLEVR's generator, each distinct
description of an object is as likely as any other, and one relation in ten may change nothing.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from bcn.data.clevr_like.grammar import Link, Noun
from bcn.data.clevr_like.rules import values_of
from bcn.data.clevr_like.scene import RELATIONS
from bcn.data.random import RandomStream
from bcn.data.vqa.clevr import ATTRIBUTES

Filters = tuple[tuple[str, str], ...]
_SUBSETS = tuple(subset for size in range(len(ATTRIBUTES) + 1) for subset in combinations(ATTRIBUTES, size))
_REDUNDANT = 10
"""one in so many relations is redundant: all objects of this description have it"""
_ATTEMPTS = 1000
"""at a description that fits no object: a scene of few shapes and colors may have objects of all descriptions"""


class Region(NamedTuple):
    """The objects that some links lead to."""

    links: tuple[Link, ...]
    objects: int
    parts: tuple[int, ...]
    """what each of the links is redundant in: the objects without it"""


class Reference(NamedTuple):
    noun: Noun
    objects: int


class Descriptions:
    """Every description of objects of a scene, and the relations between them."""

    def __init__(self, scene: dict[str, Any]) -> None:
        things, self.attributes = scene["objects"], values_of(scene)
        self.size, self.all = len(things), (1 << len(things)) - 1
        self.with_value = {
            (attribute, value): _bits(i for i, thing in enumerate(things) if thing[attribute] == value)
            for attribute, values in self.attributes.items()
            for value in values
        }
        self.related = {name: [_bits(others) for others in scene["relationships"][name]] for name in RELATIONS}
        self.values = [{attribute: thing[attribute] for attribute in ATTRIBUTES} for thing in things]
        found = {tuple((name, values[name]) for name in subset) for values in self.values for subset in _SUBSETS}
        self.described = [(filters, self.select(filters)) for filters in sorted(found)]
        self._cache: dict[tuple[tuple[str, ...], bool], list[tuple[Filters, int]]] = {}
        self.unique = [Reference(Noun(filters), objects) for filters, objects in self.described if is_single(objects)]

    def select(self, filters: Filters) -> int:
        objects = self.all
        for each in filters:
            objects &= self.with_value[each]
        return objects

    def same(self, attribute: str, reference: Reference) -> int:
        """The other objects that share an attribute with one."""
        value = self.values[reference.objects.bit_length() - 1][attribute]
        return self.with_value[attribute, value] & ~reference.objects

    def anywhere(self) -> list[Region]:
        return [Region((), self.all, ())]

    def around(self, reference: Reference) -> list[Region]:
        """What is left, right, in front of and behind an object."""
        index = reference.objects.bit_length() - 1
        return [Region((Link(name, reference.noun),), self.related[name][index], (self.all,)) for name in RELATIONS]

    def sharing(self, attribute: str, reference: Reference) -> list[Region]:
        return [Region((Link(attribute, reference.noun),), self.same(attribute, reference), ())]

    def between(self, first: Region, second: Region) -> list[Region]:
        """What both links lead to; neither may be redundant."""
        return [Region(first.links + second.links, first.objects & second.objects, (first.objects, second.objects))]

    def refer(
        self,
        rng: RandomStream,
        regions: Sequence[Region],
        accept: Callable[[int], bool],
        *,
        unnamed: Sequence[str] = (),
        named: bool = False,
    ) -> Reference | None:
        """A noun for a set of objects that is accepted, in one of the regions; None if there is none.

        Args:
            unnamed: attributes that it must not mention.
            named: whether it must mention one.
        """
        hits = []
        for links, inside, parts in regions:
            for filters, described in self._candidates(tuple(unnamed), named):
                if accept(objects := described & inside):
                    is_redundant = bool(parts) and any(part & described == objects for part in parts)
                    hits.append((is_redundant, filters, links, objects))
        needed = [hit for hit in hits if not hit[0]]
        if not needed:
            return None
        redundant = len(needed) < len(hits) and len(regions[0].parts) == 1 and rng.integer(_REDUNDANT) == 0
        _, filters, links, objects = rng.choice([hit for hit in hits if hit[0]] if redundant else needed)
        return Reference(Noun(filters, links), objects)

    def _candidates(self, unnamed: tuple[str, ...], named: bool) -> list[tuple[Filters, int]]:
        key = (unnamed, named)
        if key not in self._cache:
            self._cache[key] = [
                (filters, objects)
                for filters, objects in self.described
                if dict(filters).keys().isdisjoint(unnamed) and (filters or not named)
            ]
        return self._cache[key]

    def refer_to_none(self, rng: RandomStream, *, unnamed: Sequence[str] = ()) -> Reference | None:
        """A noun for objects that the scene does not have; None if it seems to have all."""
        for _ in range(_ATTEMPTS):
            drawn = [
                (name, rng.choice(("", *values))) for name, values in self.attributes.items() if name not in unnamed
            ]
            filters = tuple((name, value) for name, value in drawn if value)
            if not self.select(filters):
                return Reference(Noun(filters), 0)
        return None


def is_single(objects: int) -> bool:
    return objects.bit_count() == 1


def _bits(indices: Any) -> int:
    return sum(1 << index for index in indices)
