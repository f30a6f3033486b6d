"""Auxiliary supervision from scene annotations: what is where in an image, and which objects a question refers to.

Object supervision asks about places (`bcn.data.places`): where objects are, and for each of them its size, color,
material and shape, and in which fifth of its cell it is, across and down. Of two objects one is often in front of the
other by three pixels of 128, where a cell may have 16.

Referent supervision labels objects. What a program counts, looks for or describes is a set of objects, or two where it
compares: its first and its second referents. Programs run over scenes give them; no file holds them. An object has
2 x 16 possible roles: it is one of the first, or of the second referents, and where the question asks for an attribute,
it has one of 15 values. Background points have no role.

Steps (`bcn.data.clevr_like.steps`) are the sets of objects on the way to the referents, first and second too.

N images, T most points of an image, U questions; B images of a batch, Q questions about each, R roles, S steps.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bcn.data.clevr_like.program import Scene, run
from bcn.data.clevr_like.scene_files import object_centres, read_scenes, scene_file
from bcn.data.clevr_like.steps import find_steps
from bcn.data.dataset import IGNORE_INDEX, Batch, Dataset
from bcn.data.device_images import take_images
from bcn.data.places import PART_ANSWERS, PART_KINDS, ask_about_objects, locate_in_cell
from bcn.data.vqa.clevr import ATTRIBUTES, Program
from bcn.data.vqa.dataset import QuestionDataset
from bcn.data.vqa.json_stream import stream_list
from bcn.data.vqa.layouts import questions_file, training_split
from bcn.data.vqa.sources import open_source, require_source
from bcn.errors import BcnError

VALUES = tuple(value for values in ATTRIBUTES.values() for value in values)
KINDS = ("exist", *ATTRIBUTES, *PART_KINDS)
ANSWERS = ("no", "yes", *VALUES, *PART_ANSWERS)
SETS = 2
"""of referents that a question can have"""
BACKGROUND_POINTS, CLEARANCE = 4, 0.125
"""points of each image with no centre of an object within so much of its width and height"""


@dataclass(eq=False, kw_only=True)
class AnnotatedDataset(QuestionDataset):
    """Images with questions in words, in a directory that has the scenes of the training split."""

    directory: Path

    def object_supervision(self, grid: tuple[int, int]) -> "ObjectDataset":
        return open_objects(self.directory, self, grid)

    def referent_supervision(self, *, steps: int = 0) -> "ReferentDataset":
        return open_referents(self.directory, self, steps=steps)


def open_annotated(name: str, split: str, *, data: str | Path | None = None, **options: Any) -> AnnotatedDataset:
    """`open_source`, with the directory of the scenes, which are read when they are asked for."""
    dataset = open_source(name, split, data=data, **options)
    return AnnotatedDataset(**_fields(dataset), directory=require_source(name, data)[0])


def _fields(dataset: QuestionDataset) -> dict[str, Any]:
    return {field.name: getattr(dataset, field.name) for field in fields(QuestionDataset)}


@dataclass(eq=False)
class ObjectDataset(Dataset):
    """Questions about places in images whose scenes are known; the images are not augmented."""

    base: QuestionDataset
    """whose images these are"""
    number: np.ndarray
    """(N,) which of its images"""
    centre: np.ndarray
    """(N, T, 2) x and y of the objects' centres"""
    value: np.ndarray
    """(N, T, 6) the answer to each attribute's question, IGNORE_INDEX where an image has fewer objects"""
    grid: tuple[int, int]
    """rows and columns"""

    def __post_init__(self) -> None:
        self.name, self.split, self.preprocessing = self.base.name, "objects", self.base.preprocessing
        self.answers, self.kinds = ANSWERS, KINDS

    def __len__(self) -> int:
        return len(self.number)

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        index = np.asarray(index, np.intp)
        image_BCHW = take_images(self.base.image, self.number[index])
        return ask_about_objects(image_BCHW, self.centre[index], self.value[index], index, self.grid)

    def on_device(self, device: torch.device, limit: int) -> "ObjectDataset":
        return replace(self, base=self.base.on_device(device, limit))

    def checksum(self) -> str:
        """Of questions and answers; that of the images is in the checksum of their split."""
        digest = hashlib.sha256()
        for array in (self.number, self.centre, self.value):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def open_objects(directory: Path, train: QuestionDataset, grid: tuple[int, int]) -> ObjectDataset:
    """Object supervision for the images of a training split, in cells of a grid of so many rows and columns."""
    scenes = _read_training_scenes(directory, train)
    most = max(len(scene["objects"]) for scene in scenes.values())
    centre, value = label_objects([scenes[number] for number in sorted(scenes)], most, grid)
    return ObjectDataset(train, np.array(sorted(scenes)), centre, value, grid)


def label_objects(scenes: Sequence[Scene], most: int, grid: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """`ObjectDataset.centre` and `.value` of scenes with at most so many objects."""
    centre, value = np.zeros((len(scenes), most, 2)), np.full((len(scenes), most, len(KINDS) - 1), IGNORE_INDEX)
    for image, scene in enumerate(scenes):
        objects = scene["objects"]
        centre[image, : len(objects)] = object_centres(scene)
        value[image, : len(objects), : len(ATTRIBUTES)] = [
            [ANSWERS.index(thing[name]) for name in ATTRIBUTES] for thing in objects
        ]
    parts = ANSWERS.index(PART_ANSWERS[0]) + locate_in_cell(centre, grid)
    value[..., len(ATTRIBUTES) :] = np.where(value[..., :1] == IGNORE_INDEX, IGNORE_INDEX, parts)
    return centre, value


@dataclass(eq=False, kw_only=True)
class ReferentDataset(QuestionDataset):
    """Images with questions in words; `Batch.auxiliary` has points of each image, their roles in each question and,
    where there are any, its steps."""

    point: np.ndarray
    """(N, T, 2) x and y of the objects' centres, then of background points; NaN where there are fewer"""
    value: np.ndarray
    """(N, T, 4) the objects' attributes, as indices of VALUES"""
    referents: np.ndarray
    """(U, 2) bit t is set where object t is one of the first, and of the second referents"""
    attribute: np.ndarray
    """(U,) the attribute that is asked for; -1 for none"""
    steps: np.ndarray
    """(U, S, 2) as `referents`, of each step"""

    def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
        batch, rows = super().batch(index), self.rows[np.asarray(index, np.intp)]
        question_BQ, _ = self._questions(rows)
        attribute_BQ = self.attribute[question_BQ]
        referent_BQT2 = self.referents[question_BQ][:, :, None] >> np.arange(self.point.shape[1])[:, None] & 1
        value_BQT = np.take_along_axis(self.value[rows[:, 0]].swapaxes(1, 2), attribute_BQ[..., None], 1)
        of_value_BQTv = (value_BQT[..., None] == np.arange(len(VALUES))) & (attribute_BQ >= 0)[..., None, None]
        of_set_BQTr = np.concatenate([np.ones_like(of_value_BQTv[..., :1]), of_value_BQTv], axis=-1)
        role_BQT2r = referent_BQT2[..., None] * of_set_BQTr[..., None, :]
        auxiliary = {
            "point": torch.from_numpy(self.point[rows[:, 0]]),
            "role": torch.from_numpy(role_BQT2r.astype(np.float32)).flatten(-2),
        }
        if self.steps.shape[1]:
            step_BQTS2 = self.steps[question_BQ][:, :, None] >> np.arange(self.point.shape[1])[:, None, None] & 1
            auxiliary["step"] = torch.from_numpy(step_BQTS2.astype(np.float32))
        return batch._replace(auxiliary=auxiliary)

    def checksum(self) -> str:
        digest = hashlib.sha256(super().checksum().encode())
        for array in (self.point, self.value, self.referents, self.attribute, self.steps):  # no steps, no bytes
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def open_referents(directory: Path, train: QuestionDataset, *, steps: int = 0) -> ReferentDataset:
    """A training split with the referents that its programs, run over its scenes, give, and so many steps to them."""
    scenes = _read_training_scenes(directory, train)
    most = max(len(scene["objects"]) for scene in scenes.values())
    point_NT2 = np.full((len(train.files), most + BACKGROUND_POINTS, 2), np.nan, np.float32)
    value_NT4 = np.zeros((*point_NT2.shape[:2], len(ATTRIBUTES)), np.int8)
    for number, scene in scenes.items():
        point_NT2[number], value_NT4[number] = label_points(scene, number, most)
    bits = np.zeros((len(train.question), 1 + steps, SETS), np.uint16)  # in the order of the file
    path = questions_file(directory, str(training_split(directory)))
    scene_of = {scene["image_filename"]: scene for scene in scenes.values()}
    for position, entry in enumerate(stream_list(path, "questions")):
        if position < len(bits) and (scene_or_none := scene_of.get(str(entry.get("image_filename")))):
            bits[position] = _referent_bits(path, position, entry, scene_or_none, steps)
    return with_referents(train, point_NT2, value_NT4, bits[train.position])


def label_points(scene: Scene, number: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """`ReferentDataset.point` and `.value` of one image, with at most so many objects.

    Args:
        number: of the image, which decides about its background points.
    """
    point_T2 = np.full((most + BACKGROUND_POINTS, 2), np.nan, np.float32)
    value_T4 = np.zeros((len(point_T2), len(ATTRIBUTES)), np.int8)
    objects = object_centres(scene)
    points = [*objects, *_background_points(objects, number)]
    point_T2[: len(points)] = points
    value_T4[: len(objects)] = [[VALUES.index(thing[name]) for name in ATTRIBUTES] for thing in scene["objects"]]
    return point_T2, value_T4


def with_referents(dataset: QuestionDataset, point: np.ndarray, value: np.ndarray, bits: np.ndarray) -> ReferentDataset:
    """A data set with these arrays of `ReferentDataset`; `bits` has the referents of each question, then its steps."""
    # query_size and equal_size ask for a size; some kinds for no attribute
    names = [kind.partition("_")[2] for kind in dataset.kinds]
    attribute = np.array([list(ATTRIBUTES).index(name) if name in ATTRIBUTES else -1 for name in names])
    return ReferentDataset(
        **_fields(dataset),
        point=point,
        value=value,
        referents=bits[:, 0],
        attribute=attribute[dataset.kind],
        steps=bits[:, 1:],
    )


def find_referents(program: Program, scene: Scene) -> list[list[int]]:
    """The sets of objects that a program ends with: two where it compares, otherwise one.

    >>> scene = {"objects": [{"color": "red"}, {"color": "blue"}, {"color": "red"}]}
    >>> red = {"function": "filter_color", "inputs": [0], "value_inputs": ["red"]}
    >>> find_referents([{"function": "scene"}, red, {"function": "count", "inputs": [1]}], scene)
    [[0, 2]]
    """
    values, referents = run(program, scene), []
    for node in program[-1]["inputs"]:
        while not isinstance(values[node], list):  # the number of a set, its only object, an attribute of that
            node = program[node]["inputs"][0]
        referents.append(values[node])
    return referents


def _background_points(objects: list[tuple[float, float]], number: int) -> list[tuple[float, float]]:
    """Up to four points that are far from all objects; the image's number decides which."""
    rng, points = np.random.default_rng(number), []
    for x, y in rng.random((16, 2)).tolist():
        if all(max(abs(x - thing[0]), abs(y - thing[1])) > CLEARANCE for thing in objects):
            points.append((x, y))
    return points[:BACKGROUND_POINTS]


def referent_bits(program: Program, scene: Scene, steps: int) -> list[list[int]]:
    """Each set of referents as a number, one bit for each object; then those of each step."""
    return [
        [sum(1 << thing for thing in objects) for objects in (*sets, [], [])[:SETS]]
        for sets in (find_referents(program, scene), *find_steps(program, scene, steps))
    ]


def _referent_bits(path: Path, place: int, entry: dict[str, Any], scene: Scene, steps: int) -> list[list[int]]:
    if not entry.get("program"):
        raise BcnError(
            f"{path}, question {place}: it has no program, which referent supervision needs; train with "
            "auxiliary.referent_epochs=0"
        )
    try:
        return referent_bits(entry["program"], scene, steps)
    except (LookupError, TypeError, AttributeError, BcnError) as error:
        raise BcnError(f"{path}, question {place}: its program does not fit its scene ({error})") from error


def _read_training_scenes(directory: Path, train: QuestionDataset) -> dict[int, Scene]:
    """The scene of each image of a training split, by the image's number."""
    number_of = {Path(file).name: number for number, file in enumerate(train.files)}
    wanted, path = set(np.unique(train.rows[:, 0]).tolist()), scene_file(directory)
    scenes = {
        number: scene for scene in read_scenes(path) if (number := number_of.get(scene["image_filename"], -1)) in wanted
    }
    if len(scenes) == len(wanted):
        return scenes
    raise BcnError(
        f"{path} describes {len(scenes):,} of the {len(wanted):,} images of {train.split}: get its own, or train with "
        "auxiliary=none"
    )
