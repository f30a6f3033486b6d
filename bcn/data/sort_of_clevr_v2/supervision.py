"""Auxiliary supervision from the scenes of v2: what is where, and which objects a question refers to.

Object supervision asks about places (`bcn.data.places`): where objects are, their shape and colour, and in which fifth
of its cell a centre is, across and down. Distances are compared to two pixels, and a cell may have eight.

Referent supervision labels the objects of each question: those that it names, and its targets. "Closest" and "furthest"
have the object at that distance, counts have what they count, "line" has what is on the segment; a question of yes or
no about one object has that object where the answer is yes. The first step of a question is what it names, in the order
of its names, the others are its targets. Which object is the closest or the furthest is known only after an object has
been told how far the others are: there the other steps have how near or how far an object is, from 0 to 1.

B images, K objects in each, Q questions about it, P of which are asked, of D bits; R roles, S steps.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from bcn.data.dataset import IGNORE_INDEX, Batch
from bcn.data.places import PART_ANSWERS, PART_KINDS, locate_in_cell
from bcn.data.sort_of_clevr.scene import COLOURS, MIDDLE, SHAPES, SIDE
from bcn.data.sort_of_clevr_v2.answers import judge_triangle, place_by_segment, place_in_box
from bcn.data.sort_of_clevr_v2.questions import FIRST, KINDS, SECOND
from bcn.data.sort_of_clevr_v2.scene import Scenes

OBJECT_KINDS = ("exist", "shape", "colour", *PART_KINDS)
OBJECT_ANSWERS = ("no", "yes", *SHAPES, *COLOURS, *PART_ANSWERS)
FAMILIES = tuple(
    [KINDS.index(kind) for kind in family]
    for family in (("shape", "closest", "furthest"), ("left", "above", "line"), ("count", "between", "obtuse"))
)
"""kinds whose answer is a shape, yes or no, a number"""
DESCRIBE, VERIFY, COUNT = FAMILIES
ROLES = ("named to describe", "named to verify", "named to count", "second", "found", "counted", *SHAPES)
"""what an object can be in a question: named in one of a family, named second, a target of a family; a target to
describe is a square or a circle"""
DIAGONAL = SIDE * 2**0.5
GRID_G2 = np.stack(np.meshgrid(*2 * [np.linspace(0.1, 0.9, 5, dtype=np.float32)]), axis=-1).reshape(-1, 2)
"""points of which one stands for the ground"""


def centres(scenes: Scenes) -> np.ndarray:
    """(B, K, 2) x and y of the objects' centres, in units of the image."""
    return ((np.stack([scenes.x, scenes.y], axis=-1) + 0.5) / SIDE).astype(np.float32)


def label_objects(scenes: Scenes, grid: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Centres and attributes, as `ask_about_objects` takes them, on a grid of so many rows and columns."""
    centre_BK2 = centres(scenes)
    across_BK, down_BK = np.moveaxis(locate_in_cell(centre_BK2, grid), -1, 0)
    value_BK4 = np.stack([scenes.shape, scenes.colour, across_BK, down_BK], axis=-1).astype(np.int64)
    value_BK4 += [OBJECT_ANSWERS.index(value) for value in (SHAPES[0], COLOURS[0], *2 * PART_ANSWERS[:1])]
    value_BK4[~scenes.present] = IGNORE_INDEX
    return centre_BK2, value_BK4


def label_referents(scenes: Scenes, batch: Batch, steps: int) -> dict[str, Tensor]:
    """`Batch.auxiliary`: the centres of the objects and a point of the ground, their roles and steps."""
    assert batch.question is not None
    assert batch.kind is not None
    image_P, question_P = np.nonzero(batch.answer.numpy() != IGNORE_INDEX)
    bits_PD, kind_P = batch.question.numpy()[image_P, question_P] > 0, batch.kind.numpy()[image_P, question_P]
    asked = Scenes(*(part[image_P] for part in scenes))
    named_PK2 = np.stack([_named(asked, bits_PD[:, at : at + 8]) for at in (FIRST, SECOND)], axis=-1)
    target_PK = _targets(asked, named_PK2, kind_P)
    family_PF = np.stack([np.isin(kind_P, family) for family in FAMILIES], axis=-1)
    describe_P1, verify_P1, count_P1 = np.split(family_PF, 3, axis=1)
    role_PKR = np.stack(
        [
            *np.moveaxis(named_PK2.any(axis=-1, keepdims=True) & family_PF[:, None], -1, 0),
            named_PK2[..., 1],
            target_PK & verify_P1,
            target_PK & count_P1,
            *(target_PK & describe_P1 & (asked.shape == shape) for shape in range(len(SHAPES))),
        ],
        axis=-1,
    )
    later_PK = _targets_on_the_way(asked, named_PK2, kind_P, target_PK)
    later_PK2 = np.stack([later_PK, np.zeros_like(later_PK)], axis=-1)
    step_PKS2 = np.stack([named_PK2, *[later_PK2] * (steps - 1)], axis=2)[:, :, :steps]

    def of_all(label_PK: np.ndarray) -> Tensor:
        """Labels of all questions, the point of the ground among the objects; none for what is not asked."""
        objects = label_PK.shape[1]
        label_BQT = np.zeros((*batch.answer.shape, objects + 1, *label_PK.shape[2:]), np.float32)
        label_BQT[image_P, question_P, :objects] = label_PK
        return torch.from_numpy(label_BQT)

    centre_BK2 = np.where(scenes.present[..., None], centres(scenes), np.float32(np.nan))
    distance_BGK = np.nan_to_num(abs(GRID_G2[:, None] - centre_BK2[:, None]).max(axis=-1), nan=np.inf)
    ground_B2 = GRID_G2[distance_BGK.min(axis=-1).argmax(axis=-1)]
    point_BT2 = torch.from_numpy(np.concatenate([centre_BK2, ground_B2[:, None]], axis=1))
    return {"point": point_BT2, "role": of_all(role_PKR), "step": of_all(step_PKS2)}


def _named(scenes: Scenes, name_P8: np.ndarray) -> np.ndarray:
    """(P, K) the object that a name of six bits for the colour and two for the shape means; none for no name."""
    colour_PK = np.take_along_axis(name_P8[:, :6], scenes.colour.astype(np.int64), axis=1)
    shape_PK = np.take_along_axis(name_P8[:, 6:], scenes.shape.astype(np.int64), axis=1)
    any_shape_P1 = ~name_P8[:, 6:].any(axis=1, keepdims=True)
    named_PK: np.ndarray = scenes.present & colour_PK & (shape_PK | any_shape_P1)
    return named_PK


class _Ends(NamedTuple):
    """The objects that a question names, (P, 1) each, and the squared distances of all objects from them."""

    x: tuple[np.ndarray, np.ndarray]
    y: tuple[np.ndarray, np.ndarray]
    square: tuple[np.ndarray, np.ndarray]
    """(P, K) from the first, and from the second"""


def _ends(x_PK: np.ndarray, y_PK: np.ndarray, named_PK2: np.ndarray) -> _Ends:
    index_2P1 = [named_PK2[..., which].argmax(axis=1)[:, None] for which in (0, 1)]
    x, y = ([np.take_along_axis(of_PK, index_P1, axis=1) for index_P1 in index_2P1] for of_PK in (x_PK, y_PK))
    square = [(x_PK - x_P1) ** 2 + (y_PK - y_P1) ** 2 for x_P1, y_P1 in zip(x, y, strict=True)]
    return _Ends((x[0], x[1]), (y[0], y[1]), (square[0], square[1]))


def _targets(scenes: Scenes, named_PK2: np.ndarray, kind_P: np.ndarray) -> np.ndarray:
    """The objects that a question counts, looks for or describes, (P, K) bool."""
    x_PK, y_PK = scenes.x.astype(np.int64), scenes.y.astype(np.int64)
    ends, first_PK = _ends(x_PK, y_PK, named_PK2), named_PK2[..., 0]
    (to_first_PK, to_second_PK), other_PK = ends.square, scenes.present & ~named_PK2.any(axis=-1)
    sides = to_first_PK, to_second_PK, np.where(named_PK2[..., 1], to_first_PK, 0).max(axis=1)[:, None]
    shape_P1 = np.take_along_axis(scenes.shape, first_PK.argmax(axis=1)[:, None], axis=1)
    nearest_P1 = np.where(other_PK, to_first_PK, to_first_PK.max() + 1).min(axis=1)[:, None]
    furthest_P1 = np.where(other_PK, to_first_PK, -1).max(axis=1)[:, None]
    targets_PK = {
        "shape": first_PK,
        "left": first_PK & (x_PK <= MIDDLE),
        "above": first_PK & (y_PK <= MIDDLE),
        "closest": other_PK & (to_first_PK == nearest_P1),
        "furthest": other_PK & (to_first_PK == furthest_P1),
        "count": scenes.present & (scenes.shape == shape_P1),
        "between": other_PK & place_in_box(x_PK, y_PK, ends.x, ends.y)[0],
        "line": other_PK & place_by_segment(x_PK, y_PK, ends.x, ends.y, sides)[0],
        "obtuse": other_PK & judge_triangle(*sides)[0],
    }
    chosen_PK: np.ndarray = np.stack([targets_PK[kind] for kind in KINDS])[kind_P, np.arange(len(kind_P))]
    return chosen_PK


def _targets_on_the_way(scenes: Scenes, named_PK2: np.ndarray, kind_P: np.ndarray, target_PK: np.ndarray) -> np.ndarray:
    """Targets before the last round: (P, K), how near the others are to what is compared, how far, or the targets."""
    x_PK, y_PK = scenes.x.astype(np.int64), scenes.y.astype(np.int64)
    distance_PK = np.sqrt(_ends(x_PK, y_PK, named_PK2).square[0]) / DIAGONAL
    other_PK = scenes.present & ~named_PK2.any(axis=-1)
    chosen_PK: np.ndarray = np.select(
        [kind_P[:, None] == KINDS.index("closest"), kind_P[:, None] == KINDS.index("furthest")],
        [(1 - distance_PK) * other_PK, distance_PK * other_PK],
        target_PK,
    ).astype(np.float32)
    return chosen_PK
