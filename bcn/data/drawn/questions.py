"""Questions about a scene of drawn-v1, in words, whose answers are certain, with the things that they are about."""

from collections.abc import Callable, Sequence
from math import hypot
from typing import NamedTuple

from bcn.data.drawn.scene import COLOURS, LETTERS, MOST, SHAPES, Scene, Thing
from bcn.data.drawn.wording import LEADS, SYNONYMS, TEMPLATES, THINGS, plural
from bcn.data.random import RandomStream

ANSWERS = ("no", "yes", *map(str, range(MOST + 1)), *COLOURS, *SHAPES, *LETTERS)
MARGIN = 0.03
"""of the shorter side: by how much positions and distances differ where the answer depends on it"""
RATIO = 1.15
"""of the sizes of two things that are compared"""


class Question(NamedTuple):
    kind: str
    text: str
    answer: str
    first: tuple[int, ...] = ()
    """the things that the question names first"""
    second: tuple[int, ...] = ()
    """those that it compares them with"""
    target: tuple[int, ...] = ()
    """those that are counted, looked for or described"""


class Asker:
    """Asks about one scene."""

    def __init__(self, scene: Scene, rng: RandomStream) -> None:
        self.scene, self.things, self.rng = scene, scene.things, rng
        self.margin = MARGIN * min(scene.width, scene.height)

    def ask(self, count: int) -> list[Question]:
        """Different questions, at most `count`."""
        questions: dict[str, Question] = {}
        for _ in range(8 * count):
            if len(questions) == count:
                break
            question = self.rng.choice(_TURN)(self)
            if question is not None:
                lead = self.rng.choice(LEADS)
                text = lead + (question.text[0].lower() + question.text[1:] if lead else question.text)
                questions.setdefault(text, question._replace(text=text))
        return list(questions.values())

    def exist(self) -> Question | None:
        seen = self.rng.choice(self.things)
        there = self.rng.uniform() < 0.5
        name = seen.name if there or self.rng.uniform() < 0.5 else self.rng.choice((*SHAPES, *LETTERS))
        colour = seen.colour if there or self.rng.uniform() < 0.5 else self.rng.choice(COLOURS)
        by = self.rng.choice(("both", "both", "name", "colour"))
        name_or_none, colour_or_none = (name if by != "colour" else None), (colour if by != "name" else None)
        target = self._matching(name_or_none, colour_or_none)
        if bool(target) != there:
            return None
        text = self._fill("exist", a=self._describe(name_or_none, colour_or_none))
        return Question("exist", text, _yes(target), target=target)

    def colour(self) -> Question | None:
        thing = self.rng.integer(len(self.things))
        name = self.things[thing].name
        if len(self._matching(name, None)) > 1:
            return None
        text = self._fill("colour of", n=self._describe(name, None))
        return Question("colour", text, self.things[thing].colour, (thing,), (), (thing,))

    def name(self) -> Question | None:
        thing = self.rng.integer(len(self.things))
        colour = self.things[thing].colour
        if len(self._matching(None, colour)) > 1:
            return None
        text = self._fill("name of", c=self._word(colour))
        return Question("name", text, self.things[thing].name, (thing,), (), (thing,))

    def count(self) -> Question:
        by = self.rng.choice(("all", "colour", "name"))
        thing = self.rng.choice(self.things)
        name = self.rng.choice((thing.name, self.rng.choice(SHAPES))) if by == "name" else None
        colour = self.rng.choice((thing.colour, self.rng.choice(COLOURS))) if by == "colour" else None
        target = self._matching(name, colour)
        template, (_, many) = self.rng.choice(TEMPLATES["count"]), self.rng.choice(THINGS)
        if name:
            many = f"letters {name}" if name in LETTERS else plural(self._word(name))
        words = f"{self._word(colour)} {many}" if colour else many
        return Question("count", template.format(many=words), str(len(target)), target=target)

    def side(self) -> Question | None:
        if (pair := self._pair()) is None:
            return None
        (one, a), (other, b) = pair
        side = self.rng.choice(("left", "right", "above", "below"))
        ahead = self._ahead(side, self.things[one], self.things[other])
        if abs(ahead) < self.margin:
            return None
        text = self._fill("side", a=a, b=b, side=self.rng.choice(TEMPLATES[side]))
        return Question("side", text, "yes" if ahead > 0 else "no", (one,), (other,), (one,) if ahead > 0 else ())

    def count_side(self) -> Question | None:
        if (named := self._named()) is None:
            return None
        one, a = named
        side = self.rng.choice(("left", "right", "above", "below"))
        ahead = {i: self._ahead(side, t, self.things[one]) for i, t in enumerate(self.things) if i != one}
        if any(abs(distance) < self.margin for distance in ahead.values()):
            return None
        target = tuple(i for i, distance in ahead.items() if distance > 0)
        words = self.rng.choice(TEMPLATES[side])
        if self.rng.uniform() < 0.3:
            return Question("any side", self._fill("any side", a=a, side=words), _yes(target), (one,), (), target)
        return Question("count side", self._fill("count side", a=a, side=words), str(len(target)), (one,), (), target)

    def distance(self) -> Question | None:
        if len(self.things) < 3 or (named := self._named()) is None:
            return None
        one, a = named
        far = self.rng.uniform() < 0.25
        away = {
            i: hypot(t.x - self.things[one].x, t.y - self.things[one].y) for i, t in enumerate(self.things) if i != one
        }
        nearest = sorted(away, key=away.__getitem__, reverse=far)
        if abs(away[nearest[0]] - away[nearest[1]]) < self.margin:
            return None
        kind, words = ("furthest" if far else "closest"), self.rng.choice(TEMPLATES["furthest" if far else "closest"])
        return self._attribute(kind, "by distance", nearest[0], (one,), a=a, far=words)

    def size(self) -> Question | None:
        if (pair := self._pair()) is None:
            return None
        (one, a), (other, b) = pair
        ratio, by = self.things[one].size / self.things[other].size, self.rng.choice(("bigger", "smaller"))
        if 1 / RATIO < ratio < RATIO:
            return None
        yes = (ratio > 1) == (by == "bigger")
        text = self._fill("size", a=a, b=b, size=self.rng.choice(TEMPLATES[by]))
        return Question("size", text, "yes" if yes else "no", (one,), (other,), (one,) if yes else ())

    def extreme(self) -> Question | None:
        if len(self.things) < 2:
            return None
        most = self.rng.choice(("leftmost", "rightmost", "topmost", "bottommost", "biggest", "smallest"))
        value: Callable[[Thing], float] = {
            "leftmost": lambda t: -t.x, "rightmost": lambda t: t.x, "topmost": lambda t: -t.y,
            "bottommost": lambda t: t.y, "biggest": lambda t: t.size, "smallest": lambda t: -t.size,
        }[most]  # fmt: skip
        order = sorted(range(len(self.things)), key=lambda i: value(self.things[i]), reverse=True)
        if value(self.things[order[0]]) - value(self.things[order[1]]) < self.margin:
            return None
        return self._attribute("extreme", "of extreme", order[0], (), most=self.rng.choice(TEMPLATES[most]))

    def half(self) -> Question | None:
        if (named := self._named()) is None:
            return None
        one, a = named
        half = self.rng.choice(("left", "right", "top", "bottom"))
        thing, scene = self.things[one], self.scene
        inside = {
            "left": scene.width / 2 - thing.x, "right": thing.x - scene.width / 2,
            "top": scene.height / 2 - thing.y, "bottom": thing.y - scene.height / 2,
        }[half]  # fmt: skip
        if abs(inside) < 2 * self.margin:
            return None
        text = self._fill("half", a=a, half=self.rng.choice(TEMPLATES[f"{half} half"]))
        return Question("half", text, "yes" if inside > 0 else "no", (one,), (), (one,) if inside > 0 else ())

    def same_colour(self) -> Question | None:
        if (named := self._named()) is None:
            return None
        one, a = named
        target = tuple(i for i in self._matching(None, self.things[one].colour) if i != one)
        return Question("same colour", self._fill("same colour", a=a), _yes(target), (one,), (), target)

    def _attribute(self, kind: str, what: str, target: int, first: tuple[int, ...], **words: str) -> Question:
        attribute = self.rng.choice(("name", "colour"))
        thing = self.things[target]
        answer = thing.name if attribute == "name" else thing.colour
        return Question(kind, self._fill(f"{attribute} {what}", **words), answer, first, (), (target,))

    def _matching(self, name: str | None, colour: str | None) -> tuple[int, ...]:
        return tuple(
            i for i, thing in enumerate(self.things) if name in (None, thing.name) and colour in (None, thing.colour)
        )

    def _named(self, besides: int | None = None) -> tuple[int, str] | None:
        """A thing and a description that fits no other; None where one drawn at random has none."""
        thing = self.rng.integer(len(self.things))
        name, colour = self.things[thing].name, self.things[thing].colour
        ways = [(name, colour), (name, colour), (name, None), (None, colour)]
        if thing == besides or not (single := [way for way in ways if len(self._matching(*way)) == 1]):
            return None
        return thing, self._describe(*self.rng.choice(single))

    def _pair(self) -> tuple[tuple[int, str], tuple[int, str]] | None:
        if (one := self._named()) is None or (other := self._named(besides=one[0])) is None:
            return None
        return one, other

    def _ahead(self, side: str, one: Thing, other: Thing) -> float:
        """By how much `one` is on this side of `other`."""
        across, down = one.x - other.x, one.y - other.y
        return {"left": -across, "right": across, "above": -down, "below": down}[side]

    def _describe(self, name: str | None, colour: str | None) -> str:
        words = self.rng.choice(THINGS)[0] if name is None else self._word(name)
        if name in LETTERS and self.rng.uniform() < 0.5:
            words = f"letter {name}"
        return f"{self._word(colour)} {words}" if colour else words

    def _word(self, name: str) -> str:
        """The word itself, or now and then another for it."""
        return self.rng.choice(SYNONYMS[name]) if name in SYNONYMS and self.rng.uniform() < 0.25 else name

    def _fill(self, template: str, **words: str) -> str:
        one, many = self.rng.choice(THINGS)
        return self.rng.choice(TEMPLATES[template]).format(one=one, many=many, **words)


def _yes(things: Sequence[int]) -> str:
    return "yes" if things else "no"


_WEIGHTS: dict[Callable[[Asker], Question | None], int] = {
    Asker.exist: 2, Asker.colour: 2, Asker.name: 2, Asker.count: 2, Asker.side: 9, Asker.count_side: 2,
    Asker.distance: 8, Asker.size: 1, Asker.extreme: 2, Asker.half: 1, Asker.same_colour: 1,
}  # fmt: skip
_TURN = tuple(maker for maker, weight in _WEIGHTS.items() for _ in range(weight))
KINDS = (
    "exist", "colour", "name", "count", "side", "any side", "count side", "closest", "furthest", "size", "extreme",
    "half", "same colour",
)  # fmt: skip
GROUPS = {"attributes": slice(0, KINDS.index("side")), "relations": slice(KINDS.index("side"), KINDS.index("extreme"))}
"""of kinds: what a thing is or how many there are, and how things lie and compare"""
