"""Other pictures of the same scenes: what an eye finds in them, and what Pillow's JPEG gives."""

import io
import math

import numpy as np
import pytest
import torch
from PIL import Image

from bcn.data.registry import open_dataset
from bcn.data.sort_of_clevr_v2 import BY_CORRUPTION, V2, V2_STREAM, V2_VARIED, make_sort_of_clevr_v2
from bcn.data.sort_of_clevr_v2.corruption import soften
from bcn.data.sort_of_clevr_v2.jpeg import compress
from bcn.errors import BcnError

CHECKSUMS = {
    "varied": "7087e249a7fec58c",
    "jpeg75": "64e6583f96c5d14f",
    "soft": "dc20e380bc256103",
    "off-white": "5820aaead86bd28d",
    "noise": "b172c90a3f1c78f7",
    "states": "088eb14fe2fc65b2",
}
"""first digits, of the first 300 samples for training with seed 0"""
RGB = np.array([(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 156, 0), (128, 128, 128), (255, 255, 0)])


def centre_of_mass(image_3HW: np.ndarray, x: int, y: int) -> tuple[float, float, float]:
    """Offset in x and y and area of what differs from the ground around a place, each pixel by how much it differs."""
    patch = image_3HW[:, y - 7 : y + 8, x - 7 : x + 8].astype(float)
    ground = np.median(image_3HW.reshape(3, -1), axis=1)
    colour = patch[:, 7, 7]
    share = ((patch - ground[:, None, None]) * (colour - ground)[:, None, None]).sum(axis=0)
    share = (share / ((colour - ground) ** 2).sum()).clip(0, 1)
    area, across = float(share.sum()), np.arange(-7, 8)
    return float(share.sum(axis=0) @ across) / area, float(share.sum(axis=1) @ across) / area, area


def is_within(*places: np.ndarray) -> bool:
    """Whether all that is drawn around these places is far from the border of the image."""
    return all(8 < place < 66 for of_axis in places for place in np.ravel(of_axis))


def test_varied_objects_are_where_the_exact_ones_are() -> None:
    """Within a pixel, and against each other within half a pixel; sizes, edges and ground differ."""
    dataset = make_sort_of_clevr_v2(V2_STREAM, "train", images=1, objects=1, picture="varied")
    exact = make_sort_of_clevr_v2(V2_STREAM, "train", images=1, objects=1)
    index = np.arange(400)
    varied, plain, scenes = dataset[index].image.numpy(), exact[index].image.numpy(), dataset.scenes(index)
    same = (varied == plain).all(axis=(1, 2, 3))
    assert abs(same.mean() - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 400)
    offsets, areas = [], []
    for image, x, y in zip(varied[~same], scenes.x[~same, 0], scenes.y[~same, 0], strict=True):
        if is_within(x, y):
            dx, dy, area = centre_of_mass(image, int(x), int(y))
            offsets.append((dx, dy))
            areas.append(area)
    assert 0.4 < np.abs(offsets).max() < 1
    assert abs(np.mean(offsets) + 0.125) < 0.05  # shifts are -4 to 3 and -2 to 1 eighths
    assert 35 < min(areas) < 60
    assert 105 < max(areas) < 145
    grounds = np.median(varied.reshape(400, 3, -1), axis=2)
    assert 185 < grounds.min() < 205
    assert len(np.unique(grounds, axis=0)) > 150
    assert len(np.unique(varied[~same][0])) > 10  # edges are soft


def test_varied_objects_move_against_each_other_by_less_than_half_a_pixel() -> None:
    dataset = make_sort_of_clevr_v2(V2_STREAM, "train", images=1, objects=2, picture="varied", seed=1)
    index = np.arange(300)
    scenes, images = dataset.scenes(index), dataset[index].image.numpy()
    apart = []
    for image, xs, ys in zip(images, scenes.x, scenes.y, strict=True):
        if is_within(xs, ys) and max(abs(int(xs[0]) - int(xs[1])), abs(int(ys[0]) - int(ys[1]))) > 16:
            (ax, ay, _), (bx, by, _) = (centre_of_mass(image, int(x), int(y)) for x, y in zip(xs, ys, strict=True))
            apart += [ax - bx, ay - by]
    assert len(apart) > 200
    assert 0.2 < np.abs(apart).max() < 0.5


@pytest.mark.parametrize("picture", ["varied", *BY_CORRUPTION])
def test_only_the_picture_differs(picture: str) -> None:
    exact, other = (make_sort_of_clevr_v2(V2, "train", images=300, picture=each) for each in ("exact", picture))
    a, b = exact[np.arange(300)], other[np.arange(300)]
    assert not torch.equal(a.image, b.image)
    assert b.image.dtype == torch.uint8
    for part in ("question", "answer", "kind"):
        assert torch.equal(getattr(a, part), getattr(b, part))
    assert other.checksum().startswith(CHECKSUMS[picture])
    assert torch.equal(b.image[[7, 100]], other[[7, 100]].image)


def test_the_corruptions_do_what_their_names_say() -> None:
    exact = make_sort_of_clevr_v2(V2, "test", images=100)[np.arange(100)].image.numpy()
    by_name = {
        name: open_dataset(name, "test", images=100)[np.arange(100)].image.numpy() for name in BY_CORRUPTION.values()
    }
    ground = (exact == 255).all(axis=1)
    off_white = by_name["sort-of-clevr-v2-off-white"].transpose(1, 0, 2, 3)
    assert (off_white[:, ground] == 200).all()
    assert (off_white[:, ~ground] == exact.transpose(1, 0, 2, 3)[:, ~ground]).all()
    noise = by_name["sort-of-clevr-v2-noise"].astype(int) - exact
    inside = exact == 128  # where nothing is clipped
    assert abs(noise[inside].mean()) < 4 * 9.22 / math.sqrt(inside.sum())
    assert abs(noise[inside].std() - math.sqrt(4 * 255 / 12)) < 0.2
    soft = by_name["sort-of-clevr-v2-soft"]
    weights = np.array([1, 2, 1])
    image, at = exact[3].astype(float), np.array([20, 30])
    patch = np.pad(image, ((0, 0), (1, 1), (1, 1)), mode="edge")[:, at[0] : at[0] + 3, at[1] : at[1] + 3]
    assert np.array_equal(
        soft[3, :, 20, 30], np.floor((patch * weights * weights[:, None]).sum(axis=(1, 2)) / 16 + 0.5)
    )
    assert np.array_equal(soften(np.full((1, 3, 9, 9), 255, np.uint8)), np.full((1, 3, 9, 9), 255))


@pytest.mark.parametrize("quality", [10, 60, 75, 95, 100])
def test_our_jpeg_is_nearly_pillows(quality: int) -> None:
    """Pillow's rounds its cosine transform otherwise; the picture loses far more than the two differ by."""
    images = make_sort_of_clevr_v2(V2, "test", images=12)[np.arange(12)].image.numpy()
    ours = compress(images, np.full(12, quality)).astype(int)
    apart = []
    for image, mine in zip(images, ours, strict=True):
        file = io.BytesIO()
        Image.fromarray(image.transpose(1, 2, 0)).save(file, "JPEG", quality=quality)
        theirs = np.asarray(Image.open(file)).transpose(2, 0, 1).astype(int)
        apart.append(abs(mine - theirs).mean())
        assert quality == 100 or apart[-1] < abs(mine - image).mean() / 5
    assert np.mean(apart) < 0.2
    assert max(apart) < 0.5


def test_varied_pictures_are_the_same_alone_and_together() -> None:
    """Alone, none of the batch may be exact, soft or JPEG."""
    stream = open_dataset(V2_VARIED, "train", images=1)
    together = stream[np.arange(40)].image
    assert torch.equal(together, torch.cat([stream[[index]].image for index in range(40)]))
    assert stream[np.zeros(0, dtype=int)].image.shape == (0, 3, 75, 75)


def test_the_stream_is_validated_on_exact_pictures() -> None:
    varied = open_dataset(V2_VARIED, "val", images=5)
    assert varied.checksum() == open_dataset(V2, "val", images=5).checksum()
    assert open_dataset(V2_VARIED, "train", images=5).name == V2_VARIED


def test_an_unknown_picture_is_answered() -> None:
    with pytest.raises(BcnError, match="did you mean 'jpeg75'"):
        make_sort_of_clevr_v2(V2, "test", images=1, picture="jpeg57")


@pytest.mark.parametrize("version", [V2, V2_STREAM])
def test_states_are_what_the_pixels_show(version: str) -> None:
    dataset = open_dataset(f"{version}-states", "train", images=60)
    assert dataset.name == f"{version}-states"
    batch = dataset[np.arange(60)]
    assert batch.objects is not None
    assert batch.mask is not None
    assert (batch.objects.shape, batch.objects.dtype) == ((60, 8, 10), torch.float32)
    assert (batch.mask.shape, batch.mask.dtype) == ((60, 8), torch.bool)
    for image, vectors, mask in zip(batch.image.numpy(), batch.objects.numpy(), batch.mask.numpy(), strict=True):
        drawn = np.full((3, 75, 75), 255, np.uint8)
        for x, y, square, circle, *colour in vectors[mask].tolist():
            assert square + circle == sum(colour) == 1
            rows, columns = np.mgrid[:75, :75]
            dx, dy = columns - (37 + 32 * x), rows - (37 + 32 * y)
            inside = dx**2 + dy**2 <= 25 if circle else np.maximum(abs(dx), abs(dy)) <= 5
            drawn[:, inside] = RGB[colour.index(1)][:, None]
        assert np.array_equal(drawn, image)
        assert not vectors[~mask].any()
    if version == V2:
        assert open_dataset(f"{V2}-states", "train", images=300).checksum().startswith(CHECKSUMS["states"])
    plain = open_dataset(version, "train", images=60)[np.arange(60)]
    assert torch.equal(plain.answer, batch.answer)
    twelve = open_dataset("sort-of-clevr-v2-12-objects-states", "test", images=3)[[0, 1, 2]]
    assert twelve.objects is not None
    assert twelve.objects.shape == (3, 12, 10)


def test_augmented_states_follow_their_images() -> None:
    dataset = open_dataset(f"{V2}-states", "train", images=40)
    batch = dataset.augment(dataset[np.arange(40)], torch.Generator().manual_seed(3))
    assert batch.objects is not None
    assert batch.mask is not None
    for image, vectors, mask in zip(batch.image.numpy(), batch.objects.numpy(), batch.mask.numpy(), strict=True):
        for x, y, _, _, *colour in vectors[mask].tolist():
            assert (image[:, round(37 + 32 * y), round(37 + 32 * x)] == RGB[colour.index(1)]).all()
