"""Varied and corrupted pictures drawn once more, number by number, as docs/reference/sort-of-clevr-v2.md words it."""

from collections.abc import Callable
from math import cos, isqrt, pi, sqrt

import numpy as np
import pytest

from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr_v2 import Scenes, make_sort_of_clevr_v2

SIDE, MASK = 75, 2**64 - 1
COLOURS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 156, 0), (128, 128, 128), (255, 255, 0)]
LUMINANCE = """16 11 10 16 24 40 51 61 12 12 14 19 26 58 60 55 14 13 16 24 40 57 69 56 14 17 22 29 51 87 80 62
18 22 37 56 68 109 103 77 24 35 55 64 81 104 113 92 49 64 78 87 103 121 120 101 72 92 95 98 112 100 103 99"""
CHROMINANCE = "17 18 24 47 18 21 26 66 24 26 56 99 47 66 99 99"
Plane = list[list[int]]
"""rows of numbers"""


def word(seed: int, n: int) -> int:
    z = (seed + (n + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def take(bits: int, *widths: int) -> list[int]:
    """Numbers of so many bits each, the lowest first."""
    parts = []
    for width in widths:
        parts.append(bits & 2**width - 1)
        bits >>= width
    return parts


def varied(scene: Scenes, sample: int) -> list[Plane] | None:
    """The three planes of a varied picture; None for one that is exact."""
    V = word(sample, 10)
    exact, white, *ground, u, v, soft, amplitude, jpeg, w = take(word(V, 0), 2, 2, 6, 6, 6, 3, 3, 2, 3, 1, 3)
    if exact == 0:
        return None
    planes = [[[255 if white == 0 else 255 - less] * SIDE for _ in range(SIDE)] for less in ground]
    for k in range(int(scene.present[0].sum())):
        a, b, r, t = take(word(V, 1 + k), 2, 2, 3, 4)
        x0 = 16 * int(scene.x[0, k]) + 2 * (u - 4) + 2 * (a - 2)
        y0 = 16 * int(scene.y[0, k]) + 2 * (v - 4) + 2 * (b - 2)
        s, tilt = 60 + 4 * r, t - 8
        limit, circle = isqrt(s * s * (1024 + tilt * tilt)), scene.shape[0, k] == 1
        for row in range(max(0, y0 // 16 - 9), min(SIDE, y0 // 16 + 10)):  # nothing of it is further away
            for column in range(max(0, x0 // 16 - 9), min(SIDE, x0 // 16 + 10)):
                points = [(16 * column + i - x0, 16 * row + j - y0) for i in (-6, -2, 2, 6) for j in (-6, -2, 2, 6)]
                m = sum(
                    x * x + y * y <= s * s if circle else max(abs(32 * x + tilt * y), abs(32 * y - tilt * x)) <= limit
                    for x, y in points
                )
                for plane, colour in zip(planes, COLOURS[scene.colour[0, k]], strict=True):
                    plane[row][column] = (plane[row][column] * (16 - m) + colour * m + 8) >> 4
    planes = soften(planes) if soft == 0 else planes
    planes = add_noise(planes, V, amplitude)
    return compress(planes, 60 + 5 * w) if jpeg else planes


def soften(planes: list[Plane]) -> list[Plane]:
    def at(plane: Plane, row: int, column: int) -> int:
        return plane[min(max(row, 0), SIDE - 1)][min(max(column, 0), SIDE - 1)]

    steps = [(i, j, (2 - abs(i)) * (2 - abs(j))) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return [
        [
            [
                (sum(weight * at(plane, row + i, column + j) for i, j, weight in steps) + 8) >> 4
                for column in range(SIDE)
            ]
            for row in range(SIDE)
        ]
        for plane in planes
    ]


def add_noise(planes: list[Plane], V: int, amplitude: int) -> list[Plane]:
    def noisy(n: int, old: int) -> int:
        digits = f"{word(V, 64 + n // 4):016x}"[::-1][4 * (n % 4) : 4 * (n % 4) + 4]
        return min(255, max(0, old + (((sum(int(digit, 16) for digit in digits) - 30) * amplitude + 4) >> 3)))

    return [
        [
            [noisy(SIDE * (SIDE * channel + row) + column, plane[row][column]) for column in range(SIDE)]
            for row in range(SIDE)
        ]
        for channel, plane in enumerate(planes)
    ]


def compress(planes: list[Plane], quality: int) -> list[Plane]:
    grown = [[[plane[min(r, 74)][min(c, 74)] for c in range(80)] for r in range(80)] for plane in planes]
    pixels = [[tuple(plane[r][c] for plane in grown) for c in range(80)] for r in range(80)]
    Y = [[(19595 * R + 38470 * G + 7471 * B + 32768) >> 16 for R, G, B in row] for row in pixels]
    Cb = [[128 + ((-11059 * R - 21709 * G + 32768 * B + 32767) >> 16) for R, G, B in row] for row in pixels]
    Cr = [[128 + ((32768 * R - 27439 * G - 5329 * B + 32767) >> 16) for R, G, B in row] for row in pixels]
    small = np.full((8, 8), 99)
    small[:4, :4] = np.array(CHROMINANCE.split(), dtype=int).reshape(4, 4)
    Y = through(Y, np.array(LUMINANCE.split(), dtype=int).reshape(8, 8), quality)
    Cb, Cr = (doubled(through(halved(of), small, quality)) for of in (Cb, Cr))

    def channel(luma: int, blue: int, red: int) -> list[int]:
        return [
            luma + ((91881 * red + 32768) >> 16),
            luma + ((-22554 * blue - 46802 * red + 32768) >> 16),
            luma + ((116130 * blue + 32768) >> 16),
        ]

    out = [[channel(Y[r][c], Cb[r][c] - 128, Cr[r][c] - 128) for c in range(SIDE)] for r in range(SIDE)]
    return [[[min(255, max(0, pixel[n])) for pixel in row] for row in out] for n in range(3)]


def halved(plane: Plane) -> Plane:
    half = range(len(plane) // 2)
    return [[(sum(plane[2 * r + i][2 * c + j] for i in (0, 1) for j in (0, 1)) + 2) >> 2 for c in half] for r in half]


def doubled(plane: Plane) -> Plane:
    size = len(plane)

    def near(n: int) -> list[tuple[int, int]]:
        """The nearest number with weight 3, and the next one, which is itself at the border."""
        other = n // 2 + (1 if n % 2 else -1)
        return [(n // 2, 3), (min(max(other, 0), size - 1), 1)]

    span = range(2 * size)
    return [[(sum(p * q * plane[i][j] for i, p in near(r) for j, q in near(c)) + 8) >> 4 for c in span] for r in span]


def through(plane: Plane, table: np.ndarray, quality: int) -> Plane:
    """Every block transformed, divided, rounded, multiplied and transformed back, in Python's integers."""
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    step = [[min(255, max(1, (int(entry) * scale + 50) // 100)) for entry in row] for row in table]
    matrix = [
        [round(2**13 * cos((2 * n + 1) * k * pi / 16) * (sqrt(1 / 8) if k == 0 else 1 / 2)) for n in range(8)]
        for k in range(8)
    ]
    T, eight = np.array(matrix, dtype=object), range(8)
    out = [row[:] for row in plane]
    for top in range(0, len(plane), 8):
        for left in range(0, len(plane), 8):
            block = np.array([[plane[top + i][left + j] - 128 for j in eight] for i in eight], dtype=object)
            raw = T.dot(block).dot(T.T)
            kept = [
                [(2 * int(raw[i][j]) + 2**26 * step[i][j]) // (2**27 * step[i][j]) * step[i][j] for j in eight]
                for i in eight
            ]
            back = T.T.dot(np.array(kept, dtype=object)).dot(T)
            for i in eight:
                for j in eight:
                    out[top + i][left + j] = min(255, max(0, 128 + (int(back[i][j]) + 2**25) // 2**26))
    return out


def sample_of(number: int, index: int) -> int:
    return word(word(0, number), index)


def test_varied_pictures_are_as_specified() -> None:
    """The first of each kind of picture: soft, compressed, neither."""
    dataset = make_sort_of_clevr_v2("sort-of-clevr-v2-stream", "train", images=1, picture="varied")
    exact = make_sort_of_clevr_v2("sort-of-clevr-v2-stream", "train", images=1)
    left = {(soft, jpeg) for soft in (False, True) for jpeg in (False, True)} | {"exact"}
    for index in range(40):
        sample = sample_of(10, index)
        *first, _, _, _, soft, _, jpeg = take(word(word(sample, 10), 0), 2, 2, 18, 3, 3, 2, 3, 1)
        kind = "exact" if first[0] == 0 else (soft == 0, jpeg == 1)
        if kind not in left:
            continue
        left.remove(kind)
        image = dataset[[index]].image[0].numpy()
        planes = varied(dataset.scenes([index]), sample)
        assert (planes is None) is (kind == "exact")
        expected = exact[[index]].image[0].numpy() if planes is None else np.array(planes)
        assert np.array_equal(image, expected), kind
    assert not left


CORRUPTED: dict[str, Callable[[list[Plane], int], list[Plane]]] = {
    "soft": lambda planes, sample: soften(planes),
    "noise": lambda planes, sample: add_noise(planes, word(sample, 10), 8),
    "jpeg75": lambda planes, sample: compress(planes, 75),
}


@pytest.mark.parametrize("corruption", CORRUPTED)
def test_corrupted_pictures_are_as_specified(corruption: str) -> None:
    planes = open_dataset("sort-of-clevr-v2", "test", images=2)[[1]].image[0].tolist()
    expected = CORRUPTED[corruption](planes, sample_of(9, 1))
    assert open_dataset(f"sort-of-clevr-v2-{corruption}", "test", images=2)[[1]].image[0].tolist() == expected
