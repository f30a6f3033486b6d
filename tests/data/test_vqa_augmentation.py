"""What training makes of images and questions: their order, and augmentation."""

from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.clevr_folder import clevr_folder

from bcn.data.vqa.load import open_questions


@pytest.fixture
def clevr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    return clevr_folder(tmp_path)


def test_an_epoch_is_a_permutation(clevr: Path) -> None:
    dataset = open_questions(clevr, "train", size=16)
    orders = [dataset.order(epoch, seed=0).tolist() for epoch in range(8)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert len(set(map(tuple, orders))) > 1


def test_augmentation_moves_and_mirrors_images(clevr: Path) -> None:
    """By up to a sixteenth; what is said of a mirrored one is left where it was right."""
    image = torch.randint(256, (300, 3, 32, 32), generator=torch.Generator().manual_seed(1)).to(torch.uint8)
    dataset = open_questions(clevr, "train")
    asked = dataset[np.arange(300) % len(dataset)]._replace(image=image)
    varied, again = (dataset.augment(asked, torch.Generator().manual_seed(0)) for _ in range(2))
    assert asked.question is not None
    assert varied.question is not None
    found, exchanged = set(), 0
    for before, after, said, then in zip(
        image.numpy(), varied.image.numpy(), asked.question, varied.question, strict=True
    ):
        padded = np.pad(before, ((0, 0), (2, 2), (2, 2)), mode="edge")
        crops = {(top, left): padded[:, top : top + 32, left : left + 32] for top in range(5) for left in range(5)}
        ((move, mirrored),) = (
            (move, mirrored)
            for move, crop in crops.items()
            for mirrored in (False, True)
            if np.array_equal(crop[..., ::-1] if mirrored else crop, after)
        )
        found.add((*move, mirrored))
        words, meant = (" ".join(dataset.vocabulary.decode(words.flatten())).split() for words in (said, then))
        swapped = [{"left": "right", "right": "left"}.get(word, word) for word in words]
        assert meant == (swapped if mirrored else words)
        exchanged += swapped != words and mirrored
    assert found == {(top, left, mirrored) for top in range(5) for left in range(5) for mirrored in (False, True)}
    assert exchanged > 10
    assert torch.equal(varied.image, again.image)
    assert varied.answer is asked.answer
