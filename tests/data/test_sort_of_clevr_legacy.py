"""The faults of the public generator, which sort-of-clevr-legacy keeps, measured in what it makes."""

import math

import numpy as np
import pytest

from bcn.data.sort_of_clevr import ANSWERS, LEGACY, SortOfClevr, make_sort_of_clevr


@pytest.fixture(scope="module")
def legacy() -> SortOfClevr:
    return make_sort_of_clevr(LEGACY, "train")


def agrees(per_image: np.ndarray, stated: float, decimals: int) -> bool:
    """Whether a mean over images is, within three standard errors, what was stated with so many decimals."""
    error = per_image.std() / math.sqrt(len(per_image))
    return bool(abs(per_image.mean() - stated) < 3 * error + 0.5 * 10.0**-decimals)


def test_legacy_has_the_faults_of_the_public_generator(legacy: SortOfClevr) -> None:
    scenes = legacy.scenes(np.arange(9800))
    x, y, shape = (part.astype(int) for part in scenes[:3])
    square = (x[:, :, None] - x[:, None]) ** 2 + (y[:, :, None] - y[:, None]) ** 2
    own = np.eye(6, dtype=bool)
    away = np.where(own, 10**6, square)
    assert away.min() == 100

    lonely = away.min(axis=2) > 999
    true_shape = np.take_along_axis(shape, away.argmin(axis=2), axis=1)
    assert agrees(lonely.mean(axis=1), 0.068, 3)
    assert agrees((lonely & (true_shape != shape)).mean(axis=1), 0.034, 3)

    nearest = [np.where(shape[:, None] == s, away, 10**6 + 1 + s).min(axis=2) for s in (0, 1)]
    assert agrees((nearest[0] == nearest[1]).mean(axis=1), 0.0019, 4)

    boxes = (abs(x[:, :, None] - x[:, None]) <= 10) & (abs(y[:, :, None] - y[:, None]) <= 10) & ~own
    squares = (shape[:, :, None] == 0) & (shape[:, None] == 0)
    assert agrees((boxes & squares).any(axis=(1, 2)), 0.099, 3)

    question = legacy[np.arange(9800)].question
    assert question is not None
    number = (question.numpy() @ np.array([0, 1, 2, 3, 4, 5, 0, 18, 0, 6, 12])).astype(int)
    distinct = np.array([len(set(row)) for row in number[:, :10]] + [len(set(row)) for row in number[:, 10:]])
    assert agrees(distinct, 7.8, 1)

    # and the answers have the first fault: a lonely object is its own closest
    all_answers = make_sort_of_clevr(LEGACY, "train", questions="all")[np.arange(9800)].answer.numpy()
    closest = all_answers[:, 18:24] - ANSWERS.index("square")
    np.testing.assert_array_equal(closest[lonely], shape[lonely])
    np.testing.assert_array_equal(closest[~lonely], true_shape[~lonely])


def test_shortcuts_of_legacy(legacy: SortOfClevr) -> None:
    batch = legacy[np.arange(9800)]
    assert batch.kind is not None
    answer, kind = batch.answer[:, 10:].flatten(), batch.kind[:, 10:].flatten()
    commonest = [float((answer[kind == k].bincount().max()) / (kind == k).sum()) for k in (3, 4, 5)]
    assert np.mean(commonest) == pytest.approx(0.44, abs=0.01)
    assert np.mean([*commonest[:2], 1.0]) == pytest.approx(0.667, abs=0.01)


def test_v1_allows_about_a_third_of_legacy_scenes(legacy: SortOfClevr) -> None:
    scenes = legacy.scenes(np.arange(9800))
    x, y, shape = (part.astype(int) for part in scenes[:3])
    off_middle = ((x != 37) & (y != 37)).all(axis=1)
    other = ~np.eye(6, dtype=bool)
    dx, dy = abs(x[:, :, None] - x[:, None]), abs(y[:, :, None] - y[:, None])
    apart = ((dx >= 11) | (dy >= 11) | ~other).all(axis=(1, 2))
    distance = np.sqrt(dx**2 + dy**2)
    clear = np.ones(len(x), dtype=bool)
    for extreme, nothing in ((np.min, np.inf), (np.max, -np.inf)):
        square, circle = (
            extreme(np.where(other & (shape[:, None] == each), distance, nothing), axis=2) for each in (0, 1)
        )
        both = np.isfinite(square) & np.isfinite(circle)
        gap = abs(np.where(both, square, 0) - np.where(both, circle, 9))
        clear &= (gap >= 1 - 1e-9).all(axis=1)
    assert agrees(off_middle & apart & clear, 0.34, 2)
