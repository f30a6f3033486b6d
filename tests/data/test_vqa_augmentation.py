"""What training makes of images and questions: their order, and augmentation."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.clevr_folder import clevr_folder
from PIL import Image

from bcn.data.registry import open_dataset
from bcn.data.vqa.load import open_questions
from bcn.errors import BcnError
from bcn.paper.tables import find_recipe
from bcn.training.recipe import Data
from bcn.training.splits import Splits


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


def own(folder: Path, question: str, answers: tuple[str, str]) -> Path:
    """Two pictures of one's own with the same question, and an answer to each."""
    entries = [{"image": f"{name}.png", "question": question, "answer": name, "split": "train"} for name in answers]
    for entry in entries:
        Image.new("RGB", (16, 16), "white").save(folder / entry["image"])
    (folder / "questions.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return folder


def test_own_images_get_smaller_and_nothing_leaves_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    image = torch.full((200, 3, 64, 64), 255, dtype=torch.uint8)
    image[:, :, 4:20, 4:20] = 0  # as far from the edge as images are translated
    dataset = open_dataset("own", "train", data=own(tmp_path, "left or right?", ("left", "right")))
    asked = dataset[np.arange(200) % 2]._replace(image=image)
    varied, again = (dataset.augment(asked, torch.Generator().manual_seed(0)) for _ in range(2))
    assert torch.equal(varied.image, again.image)
    areas = (255 - varied.image[:, 0].float()).sum((1, 2)) / 255
    assert areas.min() > 0.95 * 16**2 / 1.25**2
    assert areas.max() < 1.02 * 16**2
    assert areas.min() < 0.72 * 16**2 < areas.max()
    assert varied.question is asked.question


def test_own_images_are_mirrored_where_it_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then questions and answers exchange left and right."""
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    image = torch.full((200, 3, 64, 64), 255, dtype=torch.uint8)
    image[:, :, 20:40, 4:20] = 0
    recipe = replace(find_recipe("own", "smoke"), mirror=True, augment=True, data=Data("own"))
    with pytest.raises(BcnError, match="no split 'val'"):
        Splits.open(recipe, own(tmp_path, "left or right?", ("left", "right")))
    dataset = open_dataset("own", "train", data=tmp_path).allow_mirroring()
    assert dataset.vocabulary is not None
    asked = dataset[np.arange(200) % 2]._replace(image=image)
    varied = dataset.augment(asked, torch.Generator().manual_seed(0))
    mirrored = varied.image[:, 0, :, :32].float().mean((1, 2)) > varied.image[:, 0, :, 32:].float().mean((1, 2))
    assert 60 < mirrored.sum() < 140
    assert asked.question is not None
    assert varied.question is not None
    for turned, before, after, said, then in zip(
        mirrored, asked.answer, varied.answer, asked.question, varied.question, strict=True
    ):
        assert (dataset.answers[before] == dataset.answers[after]) != bool(turned)
        words = [" ".join(dataset.vocabulary.decode(words.flatten())) for words in (said, then)]
        assert words == ["left or right", "right or left" if turned else "left or right"]
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(BcnError, match="has the words left and right"):
        open_dataset("own", "train", data=own(other, "what is it?", ("a", "b"))).allow_mirroring()
