"""What a split of images is made with, which its files say."""

import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from bcn.data.clevr_like.extras import parse_extras
from bcn.data.clevr_like.grammar import plural
from bcn.data.clevr_like.grammars import find_grammar
from bcn.data.clevr_like.phrasing import WORDS
from bcn.data.clevr_like.rules import CLEVR_RULES, SHAPES, SceneRules, parse_rules
from bcn.data.vqa.clevr import CLEVR_CUSTOM, CLEVR_LIKE
from bcn.errors import BcnError

_CUSTOM = ("shapes", "colors", "objects")
_RESERVED = {*WORDS, "exist", *SHAPES, *map(plural, SHAPES)}
"""words of questions"""


@dataclass(frozen=True)
class SplitSpec:
    """What a split is made with. Its files say so, and another specification for the same directory is refused."""

    split: str = "train"
    seed: int = 0
    size: int = 128
    version: str = CLEVR_LIKE
    """the grammar of its questions"""
    shapes: str = ",".join(CLEVR_RULES.shapes)
    colors: str = ",".join(name for name, _ in CLEVR_RULES.colors)
    objects: str = "3-10"
    extras: str = ""

    def __post_init__(self) -> None:
        find_grammar(self.version)
        if not re.fullmatch(r"\w{1,64}", self.split):
            raise BcnError(
                f"the split {self.split!r} cannot be made: its name may have up to 64 letters, digits and underscores"
            )
        if not 0 <= self.seed < 1 << 64:
            raise BcnError(f"the seed {self.seed} was given: accepted are 0 to {(1 << 64) - 1}")
        object.__setattr__(self, "extras", ",".join(parse_extras(self.extras)))
        assert self.rules.shapes

    @property
    def rules(self) -> SceneRules:
        """What its scenes are made of."""
        return parse_rules(self.shapes, self.colors, self.objects, reserved=_RESERVED.__contains__)

    @property
    def info(self) -> dict[str, Any]:
        """What its files say; of shapes, colors, objects and extras only those that were chosen.

        >>> SplitSpec("val").info
        {'split': 'val', 'seed': 0, 'size': 128, 'version': 'clevr-like-v1'}

        Scenes that are not CLEVR's have another name than clevr-like-v1 and v2, which stand for what they hold.
        """
        given = {
            field.name: value
            for field, value in zip(fields(self), asdict(self).values(), strict=True)
            if field.name not in (*_CUSTOM, "extras") or value != field.default
        }
        if given.keys().isdisjoint(_CUSTOM):
            return given
        return given | {"version": CLEVR_CUSTOM, "grammar": self.version}

    @classmethod
    def from_info(cls, info: dict[str, Any]) -> "SplitSpec":
        """The specification that a file states; KeyError, TypeError or BcnError where it is none."""
        given = dict(info)
        if given.get("version") == CLEVR_CUSTOM:
            given["version"] = given.pop("grammar")
        for field in fields(cls):
            if not isinstance(given.get(field.name, field.default), type(field.default)):
                raise TypeError(f"{field.name} is {given[field.name]!r}")
        return cls(**given)

    @property
    def options(self) -> str:
        """The options of `bcn clevr make` that give it."""
        chosen = {name: value for name, value in self.info.items() if name in (*_CUSTOM, "extras")}
        return f"--split {self.split} --seed {self.seed} --size {self.size} --grammar {self.version}" + "".join(
            f" --{name} {value}" for name, value in chosen.items()
        )
