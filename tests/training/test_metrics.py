"""Evaluation against counts made by hand, image by image."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.blobs import open_blobs
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from bcn.data.registry import open_dataset
from bcn.errors import BcnError
from bcn.inference.confusion import draw_confusion
from bcn.models.registry import create_model
from bcn.training.distributed import Ranks
from bcn.training.forward import check_fit
from bcn.training.metrics import Counts, compute_metrics, evaluate, wilson


@pytest.fixture(scope="module")
def relation() -> nn.Module:
    torch.manual_seed(3)
    return create_model("sort-of-clevr/multirn").eval()


def test_counts_by_kind_are_those_of_asking_one_question_at_a_time(relation: nn.Module) -> None:
    dataset = open_dataset("sort-of-clevr-v1", "test", images=11)
    metrics = compute_metrics(evaluate(relation, dataset, batch_size=4), dataset)
    right, asked = dict.fromkeys(dataset.kinds, 0), dict.fromkeys(dataset.kinds, 0)
    with torch.no_grad():
        for image in range(11):
            batch = dataset[[image]]
            assert batch.question is not None
            assert batch.kind is not None
            for question in range(20):
                logits = relation(batch.image.float() / 255, batch.question[:, question])
                kind = dataset.kinds[batch.kind[0, question]]
                asked[kind] += 1
                right[kind] += int(logits[0].argmax() == batch.answer[0, question])
    for kind in dataset.kinds:
        assert (metrics[kind]["correct"], metrics[kind]["total"]) == (right[kind], asked[kind])
    groups = {"all": dataset.kinds, "non_relational": ("shape", "left", "above"), "relational": dataset.kinds[3:]}
    assert metrics.keys() == {*groups, *dataset.kinds}
    for group, kinds in groups.items():
        assert metrics[group]["correct"] == sum(right[kind] for kind in kinds)
        assert metrics[group]["total"] == sum(asked[kind] for kind in kinds)
        assert metrics[group]["accuracy"] == pytest.approx(
            metrics[group]["correct"] / metrics[group]["total"], abs=1e-6
        )


class Guess(nn.Module):
    """Answers the first class and the middle of the image."""

    def __init__(self) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.tensor([1.0, 0.0, 0.0]))

    def forward(self, image_BCHW: Tensor) -> tuple[Tensor, Tensor]:
        return self.logits.expand(len(image_BCHW), 3), torch.full((len(image_BCHW), 2), 0.5)


def test_localisation_is_the_root_mean_square_per_coordinate() -> None:
    dataset = open_blobs("test", images=97)
    counts = evaluate(Guess(), dataset, batch_size=10, localise=True)
    assert dataset.centre is not None
    errors = [coordinate - 0.5 for centre in dataset.centre for coordinate in centre.astype(float)]
    expected = math.sqrt(sum(error**2 for error in errors) / len(errors))
    assert compute_metrics(counts, dataset)["localisation"] == pytest.approx(expected, abs=1e-6)
    assert counts.total == 97
    assert counts.correct == int((dataset.answer == 0).sum())
    assert counts.confusion_KTA[0, :, 0].tolist() == np.bincount(dataset.answer, minlength=4).tolist()
    cross_entropy = [math.log(math.e + 2) - (answer == 0) for answer in dataset.answer]
    squares = [float(((centre - 0.5) ** 2).mean()) for centre in dataset.centre]
    assert counts.loss == pytest.approx(sum(cross_entropy) + sum(squares), rel=1e-5)


def test_no_localisation_where_no_centres_are_compared() -> None:
    dataset = open_blobs("test", images=97)
    dataset.centre = None
    counts = evaluate(Guess(), dataset, batch_size=10, localise=True)
    assert counts.squared_error is None
    assert "localisation" not in compute_metrics(counts, dataset)


def test_a_kind_that_was_never_asked_is_shown_with_nothing() -> None:
    dataset = open_dataset("sort-of-clevr-v1", "val", images=1)
    confusion_KTA = torch.zeros(6, 11, 10, dtype=torch.int64)
    confusion_KTA[1, 2, 2], confusion_KTA[1, 2, 3] = 3, 1
    metrics = compute_metrics(Counts(confusion_KTA, 0.0, None), dataset)
    assert set(metrics) == {"all", "relational", "non_relational", *dataset.kinds}
    assert len(dataset.kinds) == 6
    asked = {"all", "non_relational", dataset.kinds[1]}
    assert all((metrics[name]["correct"], metrics[name]["total"]) == (3, 4) for name in asked)
    assert all(metrics[name] == {"correct": 0, "total": 0, "accuracy": None} for name in set(metrics) - asked)


@pytest.mark.parametrize("batch", [1, 13, 200])
def test_the_batch_does_not_matter(batch: int) -> None:
    dataset = open_blobs("test", images=97)
    assert torch.equal(
        evaluate(Guess(), dataset, batch_size=batch).confusion_KTA,
        evaluate(Guess(), dataset, batch_size=10).confusion_KTA,
    )


def test_evaluation_leaves_the_model_as_it_was(relation: nn.Module) -> None:
    relation.train()
    before = {name: tensor.clone() for name, tensor in relation.state_dict().items()}
    evaluate(relation, open_dataset("sort-of-clevr-v1", "val", images=3), batch_size=2)
    assert relation.training
    assert all(torch.equal(before[name], tensor) for name, tensor in relation.state_dict().items())
    relation.eval()


@given(st.integers(1, 400), st.integers(1, 9))
def test_shares_are_the_whole_in_order_without_padding(size: int, world: int) -> None:
    shares = [Ranks(rank, world).share(np.arange(size)) for rank in range(world)]
    assert np.concatenate(shares).tolist() == list(range(size))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(st.integers(1, 10_000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_wilson_bounds_solve_its_equation(counts: tuple[int, int]) -> None:
    """The bounds are the shares p whose distance from the observed one is 1.96 of their own standard errors."""
    correct, total = counts
    low, high = wilson(correct, total)
    assert 0 <= low <= correct / total <= high <= 1
    for bound, at_the_edge in ((low, correct == 0), (high, correct == total)):
        if not at_the_edge:
            standard_error = math.sqrt(bound * (1 - bound) / total)
            assert abs(correct / total - bound) == pytest.approx(1.959964 * standard_error, rel=1e-4)


def test_models_that_cannot_read_the_data_are_refused() -> None:
    sorts = open_dataset("sort-of-clevr-v1", "val", images=1)
    blobs = open_blobs("val")
    for model, dataset in (("stl10/baseline", sorts), ("sort-of-clevr/mlp", blobs), ("scaled-mnist/bcn", blobs)):
        with pytest.raises(BcnError, match=f"^{model} "):
            check_fit(create_model(model), dataset, model)
    check_fit(create_model("sort-of-clevr/mlp"), sorts, "sort-of-clevr/mlp")


def test_the_confusion_matrix_is_drawn(tmp_path: Path, relation: nn.Module) -> None:
    from PIL import Image

    dataset = open_dataset("sort-of-clevr-v1", "test", images=4)
    draw_confusion(evaluate(relation, dataset, batch_size=4), dataset.answers, tmp_path / "confusion.png")
    picture = Image.open(tmp_path / "confusion.png")
    assert min(picture.size) > 500
    assert len(set(picture.convert("L").tobytes())) > 20
