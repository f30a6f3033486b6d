"""Augmentation of Sort-of-CLEVR: images, questions and answers are those of the mirrored scene, drawn anew."""

import numpy as np
import pytest
import torch

from bcn.data.sort_of_clevr import KINDS, Scenes, answer_all, draw_scenes, make_sort_of_clevr, question_bits
from bcn.data.sort_of_clevr.samples import Questions
from bcn.data.sort_of_clevr.symmetry import transform


@pytest.mark.parametrize("symmetry", range(8))
@pytest.mark.parametrize("questions", ["sampled", "all"])
def test_a_symmetry_is_another_scene(symmetry: int, questions: Questions) -> None:
    dataset = make_sort_of_clevr("sort-of-clevr-v1", "train", images=20, questions=questions)
    x, y, shape, present = dataset.scenes(np.arange(20))
    x = 74 - x if symmetry & 1 else x
    y = 74 - y if symmetry & 2 else y
    scenes = Scenes(*((y, x) if symmetry & 4 else (x, y)), shape, present)
    before = dataset[range(20)]
    turned = transform(before, torch.full((20,), symmetry))
    assert np.array_equal(turned.image.numpy(), draw_scenes(scenes))
    assert turned.question is not None
    assert turned.kind is not None
    assert before.kind is not None
    bits = torch.from_numpy(question_bits())
    number = (turned.question[:, :, None] == bits).all(-1).int().argmax(-1)
    assert torch.equal(bits[number], turned.question), "every question is one of the 36"
    assert torch.equal(turned.kind, number // 6)
    assert np.array_equal(turned.answer.numpy(), np.take_along_axis(answer_all(scenes), number.numpy(), 1))
    assert torch.equal(turned.kind >= 3, before.kind >= 3)
    assert torch.equal(turned.kind[turned.kind >= 3], before.kind[before.kind >= 3])


def test_the_generator_decides_and_the_batch_stays() -> None:
    dataset = make_sort_of_clevr("sort-of-clevr-v1", "train", images=200)
    batch, copy = (dataset[range(200)] for _ in range(2))
    first, again, other = (dataset.augment(batch, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert torch.equal(first.image, again.image)
    assert not torch.equal(first.image, other.image)
    assert all(
        torch.equal(getattr(batch, name), getattr(copy, name)) for name in ("image", "answer", "question", "kind")
    )
    share = (first.image == batch.image).flatten(1).all(1).float().mean()
    assert 0.05 < share < 0.25, "one in eight stays as it is"


def test_legacy_scenes_are_not_augmented() -> None:
    dataset = make_sort_of_clevr("sort-of-clevr-legacy", "train", images=2)
    batch = dataset[range(2)]
    assert dataset.augment(batch, torch.Generator()) is batch
    assert KINDS[1:3] == ("left", "above")
