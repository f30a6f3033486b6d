"""Pointing: which things a question means, so that who learns to answer can be shown them as well.

What a program counts, looks for or describes is a set of things, or two where it compares: those meant first, and those
meant second. Programs run over scenes give them; no file holds them. A thing has to do with the answer in one of
2 x 16 ways: it is meant first, or second, and where an attribute is asked for, it has one of 15 values. Of points where
nothing is, nothing is meant.

N images, T most points of an image, U questions; B images of a batch, Q questions about each, M ways.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bcn.data.clevr_like.program import Scene, run
from bcn.data.clevr_like.scene_files import object_centres
from bcn.data.clevr_like.sight import described
from bcn.data.dataset import Batch
from bcn.data.vqa.clevr import ATTRIBUTES, Program
from bcn.data.vqa.dataset import QuestionDataset
from bcn.data.vqa.json_stream import stream_list
from bcn.data.vqa.layouts import questions_file, training_split
from bcn.errors import BcnError

SETS = 2
"""of things that a question can mean"""
VALUES = tuple(value for values in ATTRIBUTES.values() for value in values)
WAYS = SETS * (1 + len(VALUES))
"""in which a thing has to do with an answer"""
BITS = 16
"""of a number that holds a set of things"""
EMPTY, FAR = 4, 0.125
"""points of each image with no centre of a thing within so much of its width and height"""


@dataclass(eq=False, kw_only=True)
class PointingDataset(QuestionDataset):
    """Images with questions in words, and the things that these mean."""

    point: np.ndarray
    """(N, T, 2) x and y of the centres of things, and then of points where there is none; NaN where there are fewer"""
    value: np.ndarray
    """(N, T, 4) what things are like, as places in VALUES"""
    meant: np.ndarray
    """(U, 2) bit t is set where thing t is one of those that are meant first, and those that are meant second"""
    asked: np.ndarray
    """(U,) which attribute is asked for; -1 for none"""

    def __getitem__(self, index: Sequence[int] | np.ndarray) -> Batch:
        batch, rows = super().__getitem__(index), self.rows[np.asarray(index, np.intp)]
        place_BQ, _ = self._asked(rows)
        asked_BQ = self.asked[place_BQ]
        meant_BQT2 = self.meant[place_BQ][:, :, None] >> np.arange(self.point.shape[1])[:, None] & 1
        value_BQT = np.take_along_axis(self.value[rows[:, 0]].swapaxes(1, 2), asked_BQ[..., None], 1)
        of_value_BQTv = (value_BQT[..., None] == np.arange(len(VALUES))) & (asked_BQ >= 0)[..., None, None]
        way_BQTw = np.concatenate([np.ones_like(of_value_BQTv[..., :1]), of_value_BQTv], axis=-1)
        meant_BQT2w = meant_BQT2[..., None] * way_BQTw[..., None, :]
        return batch._replace(
            point=torch.from_numpy(self.point[rows[:, 0]]),
            meant=torch.from_numpy(meant_BQT2w.astype(np.float32)).flatten(-2),
        )

    def checksum(self) -> str:
        digest = hashlib.sha256(super().checksum().encode())
        for array in (self.point, self.value, self.meant, self.asked):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def open_pointing(directory: Path, train: QuestionDataset) -> PointingDataset:
    """A training split with what its programs, run over its scenes, say that questions mean."""
    scenes = described(directory, train)
    most = max(len(scene["objects"]) for scene in scenes.values())
    if most > BITS:
        raise BcnError(
            f"a scene of {train.split} has {most} things: accepted are {BITS}, train with auxiliary.referent_epochs=0"
        )
    point_NT2 = np.full((len(train.files), most + EMPTY, 2), np.nan, np.float32)
    value_NT4 = np.zeros((*point_NT2.shape[:2], len(ATTRIBUTES)), np.int8)
    for number, shown in scenes.items():
        things = object_centres(shown)
        points = [*things, *_empty(things, number)]
        point_NT2[number, : len(points)] = points
        value_NT4[number, : len(things)] = [
            [VALUES.index(thing[name]) for name in ATTRIBUTES] for thing in shown["objects"]
        ]
    bits = np.zeros((len(train.question), SETS), np.uint16)  # in the order of the file
    path = questions_file(directory, str(training_split(directory)))
    of_file = {scene["image_filename"]: scene for scene in scenes.values()}
    for place, entry in enumerate(stream_list(path, "questions")):
        if scene := of_file.get(entry["image_filename"]):
            bits[place] = _bits(path, place, entry, scene)
    given = {field.name: getattr(train, field.name) for field in fields(train)}
    asked = np.array([list(ATTRIBUTES).index(name) if name in ATTRIBUTES else -1 for name in _attributes(train.kinds)])
    return PointingDataset(**given, point=point_NT2, value=value_NT4, meant=bits[train.place], asked=asked[train.kind])


def _attributes(kinds: Sequence[str]) -> list[str]:
    """What questions of each kind ask for: query_size, and equal_size, for a size; some for nothing of the sort."""
    return [kind.partition("_")[2] for kind in kinds]


def find_meant(program: Program, scene: Scene) -> list[list[int]]:
    """The sets of things that a program ends with: two where it compares, otherwise one.

    >>> scene = {"objects": [{"color": "red"}, {"color": "blue"}, {"color": "red"}]}
    >>> red = {"function": "filter_color", "inputs": [0], "value_inputs": ["red"]}
    >>> find_meant([{"function": "scene"}, red, {"function": "count", "inputs": [1]}], scene)
    [[0, 2]]
    """
    values, found = run(program, scene), []
    for node in program[-1]["inputs"]:
        while not isinstance(values[node], list):  # the number of a set, its only thing, an attribute of that
            node = program[node]["inputs"][0]
        found.append(values[node])
    return found


def _empty(things: list[tuple[float, float]], number: int) -> list[tuple[float, float]]:
    """Points that are far from all things, up to four: which ones, the image's number decides."""
    draws, found = np.random.default_rng(number), []
    for x, y in draws.random((16, 2)).tolist():
        if all(max(abs(x - thing[0]), abs(y - thing[1])) > FAR for thing in things):
            found.append((x, y))
    return found[:EMPTY]


def _bits(path: Path, place: int, entry: dict[str, Any], scene: Scene) -> list[int]:
    """Sets of things as numbers, one bit for each thing."""
    if not entry.get("program"):
        raise BcnError(
            f"{path}, question {place}: it has no program, to point by: train with auxiliary.referent_epochs=0"
        )
    try:
        found = find_meant(entry["program"], scene)
    except (LookupError, TypeError, BcnError) as error:
        raise BcnError(f"{path}, question {place}: its program does not fit its scene ({error})") from error
    return [sum(1 << thing for thing in things) for things in (*found, [], [])[:SETS]]
