"""Image-question pairs drawn independently."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from bcn.data.dataset import Batch
from bcn.data.pairs import Pairs
from bcn.data.sort_of_clevr import SortOfClevr, make_sort_of_clevr
from bcn.data.sort_of_clevr.samples import Questions
from bcn.errors import BcnError


@pytest.mark.parametrize("questions", ["sampled", "all"])
def test_an_epoch_has_every_pair_once(questions: Questions) -> None:
    images = make_sort_of_clevr("sort-of-clevr-v1", "train", images=7, questions=questions)
    pairs, whole = Pairs(images), images[range(7)]
    count = whole.answer.shape[1]
    order = pairs.order(3, seed=5)
    assert sorted(order) == list(range(7 * count))
    assert len(pairs) == 7 * count
    batch = pairs[order]
    assert batch.question is not None
    assert batch.question.shape == (7 * count, 1, 11)
    for row, pair in enumerate(order):
        image, question = divmod(int(pair), count)
        assert torch.equal(batch.image[row], whole.image[image])
        for name in ("answer", "question", "kind"):
            assert torch.equal(getattr(batch, name)[row, 0], getattr(whole, name)[image, question])


def test_seed_and_epoch_decide_the_order() -> None:
    pairs = Pairs(make_sort_of_clevr("sort-of-clevr-v1", "train", images=7))
    orders = [pairs.order(epoch, seed=seed).tolist() for epoch, seed in ((0, 0), (0, 0), (1, 0), (0, 1))]
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) == 3


def test_questions_about_an_image_are_apart() -> None:
    pairs = Pairs(make_sort_of_clevr("sort-of-clevr-v1", "train", images=500))
    order = pairs.order(0, seed=0)
    assert len(set((order[:64] // 20).tolist())) > 55, "64 of 500 images, hardly one twice"


def test_a_stream_goes_on_with_the_pairs_of_its_next_images() -> None:
    stream = make_sort_of_clevr("sort-of-clevr-stream", "train", images=6, questions="all")
    pairs = Pairs(stream)
    for epoch in (0, 1):
        image = np.unique(pairs.order(epoch, seed=3) // 36)
        assert image.tolist() == stream.order(epoch, seed=3).tolist()
        assert pairs[pairs.order(epoch, seed=3)[:4]].answer.shape == (4, 1)
    with pytest.raises(BcnError, match="2\\*\\*25"):
        pairs.order(0, seed=2**30)


def test_the_checksum_is_that_of_the_images() -> None:
    images = make_sort_of_clevr("sort-of-clevr-v1", "train", images=7)
    assert Pairs(images).checksum() == images.checksum()


def test_what_is_not_asked_has_no_pairs() -> None:
    images = make_sort_of_clevr("sort-of-clevr-v1", "train", images=2)

    class Classes(SortOfClevr):
        def batch(self, index: Sequence[int] | np.ndarray) -> Batch:
            return super().batch(index)._replace(question=None)

    with pytest.raises(BcnError, match="batch_of=images"):
        Pairs(Classes(images.name, "train", 2, images.generator))
