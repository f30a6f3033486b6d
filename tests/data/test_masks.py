"""A class for every pixel: the data set, a metric by hand, and the U-Net that needs a BCN to see a whole digit."""

import pytest
import torch

from bcn.data.registry import open_dataset
from bcn.errors import BcnError
from bcn.inference.reasoner import Reasoner
from bcn.models.registry import create_model
from bcn.training.metrics import Counts, compute_metrics, evaluate, mean_iou


def by_hand(true: list[int], given: list[int], classes: int) -> float:
    """Sets of pixels, class by class."""
    shares = []
    for number in range(classes):
        one = {place for place, answer in enumerate(true) if answer == number}
        other = {place for place, answer in enumerate(given) if answer == number}
        if one | other:
            shares.append(len(one & other) / len(one | other))
    return sum(shares) / len(shares)


def test_mean_iou_is_that_of_sets_of_pixels() -> None:
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        true, given = torch.randint(5, (2, 60), generator=generator).tolist()
        confusion = torch.zeros(6, 5, dtype=torch.int64)
        for one, other in zip(true, given, strict=True):
            confusion[one, other] += 1
        assert mean_iou(confusion) == pytest.approx(by_hand(true, given, 5), abs=1e-12)


@pytest.mark.usefixtures("mnist_sample")
def test_masks_are_the_ink_of_the_digit() -> None:
    masks = open_dataset("scaled-mnist-masks-v1", "test", images=20)
    digits = open_dataset("scaled-mnist-v1", "test", images=20)
    for index in range(20):
        sample, digit = masks[index], digits[index]
        assert torch.equal(sample["image"], digit["image"])
        mask = sample["answer"].view(128, 128)
        assert set(mask.unique().tolist()) == {0, int(digit["answer"]) + 1}
        assert torch.equal(mask > 0, digit["image"][0] >= 128)
    assert masks.checksum() == digits.checksum()


@pytest.mark.usefixtures("mnist_sample")
def test_the_engine_evaluates_them() -> None:
    masks = open_dataset("scaled-mnist-masks-v1", "test", images=3)
    model = create_model("masks/unet-bcn")
    counts = evaluate(model, masks, batch_size=2)
    assert isinstance(counts, Counts)
    given = model.eval()(masks.preprocessing(masks[range(3)].image)).argmax(2).flatten().tolist()
    expected = by_hand(masks[range(3)].answer.flatten().tolist(), given, 11)
    assert compute_metrics(counts, masks)["mean_iou"] == pytest.approx(expected, abs=1e-6)


def test_a_pixel_sees_the_whole_image_with_a_bcn_alone() -> None:
    for name in ("masks/unet", "masks/unet-bcn"):
        image = torch.rand(1, 1, 128, 128)
        image[..., 100:, 100:] += 10
        image.requires_grad_()
        create_model(name).eval()(image)[0, 0].square().sum().backward()
        assert image.grad is not None
        assert image.grad[..., 100:, 100:].any() == (name == "masks/unet-bcn")


def test_it_is_not_asked() -> None:
    with pytest.raises(BcnError, match="gives masks"):
        Reasoner("masks", create_model("masks/unet"), {})
