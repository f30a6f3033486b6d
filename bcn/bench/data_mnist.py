"""How fast digits are resampled, against a loop over them with Pillow, and what loading costs of a training step."""

import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from PIL import Image

from bcn.bench.data import compare
from bcn.data.dataset import Dataset
from bcn.data.mnist.mnist import fetch_mnist
from bcn.data.mnist.resample import UNIT, rotation_matrices
from bcn.data.mnist.scaled import CANVASES, render_digits, sample_angles, sample_boxes


def plain_scaled(digits: np.ndarray, boxes: np.ndarray, height: int, width: int) -> np.ndarray:
    """One digit after the other: Pillow resizes it to whole pixels, and it is put into its image."""
    out = np.zeros((len(digits), height, width), np.uint8)
    for image, digit, (left, top, wide, high) in zip(out, digits, (boxes // UNIT).tolist(), strict=True):
        resized = Image.fromarray(digit).resize((wide, high), Image.Resampling.BILINEAR)
        image[top : top + high, left : left + wide] = np.asarray(resized)
    return out


def plain_rotated(digits: np.ndarray, boxes: np.ndarray, angles: np.ndarray, height: int, width: int) -> np.ndarray:
    """One digit after the other through Pillow's affine transformation."""
    out = np.empty((len(digits), height, width), np.uint8)
    for image, digit, (left, top, wide, high), angle in zip(out, digits, boxes / UNIT, angles, strict=True):
        (a, b), (c, d) = np.linalg.inv(rotation_matrices(angle[None])[0] * ([wide / 28, high / 28])).tolist()
        x, y = left + wide / 2, top + high / 2
        inverse = (a, b, 14 - a * x - b * y, c, d, 14 - c * x - d * y)
        turned = Image.fromarray(digit).transform(
            (width, height), Image.Transform.AFFINE, inverse, Image.Resampling.BILINEAR
        )
        image[:] = np.asarray(turned)
    return out


def bench_scaled_mnist(
    name: str, *, images: int = 2000, rounds: int = 5, data: str | Path | None = None
) -> dict[str, Any]:
    """Making the images of a set, draws included, and the plain loop over the same boxes."""
    canvas = CANVASES[name]
    digits, _ = fetch_mnist("test", data=data)
    boxes = sample_boxes(canvas, "test", images, seed=0)
    angles = sample_angles(canvas, "test", images, seed=0)
    out = np.empty((images, canvas.height, canvas.width), np.uint8)

    def ours(count: int) -> None:
        render_digits(canvas, "test", 0, digits[:count], out[:count], seed=0)

    def plain(count: int) -> None:
        if canvas.max_degrees:
            plain_rotated(digits[:count], boxes[:count], angles[:count], canvas.height, canvas.width)
        else:
            plain_scaled(digits[:count], boxes[:count], canvas.height, canvas.width)

    return compare(name, ours, plain, samples=images, plain_samples=images, rounds=rounds)


def loader_seconds(dataset: Dataset, *, batch: int = 64, rounds: int = 5) -> float:
    """Seconds per image to read a batch in the order of training and preprocess it: the median of `rounds` batches."""
    order = dataset.order(0, seed=0)
    times = []
    for number in range(rounds + 1):
        index = np.resize(np.roll(order, -number * batch), batch)
        start = time.process_time()
        dataset.preprocessing(dataset[index].image)
        times.append((time.process_time() - start) / len(index))
    return median(times[1:])  # the first fills caches


def loader_fraction(dataset: Dataset, model: str, *, batch: int = 64, rounds: int = 5) -> dict[str, Any]:
    """The cost of loading a batch, as a fraction of a training step of `model` with it."""
    from bcn.bench.jobs import training

    step = training(model, images=batch)
    step()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        step()
        times.append((time.process_time() - start) / batch)
    load = loader_seconds(dataset, batch=batch, rounds=rounds)
    return {"name": dataset.name, "model": model, "load": load, "step": median(times), "fraction": load / median(times)}
