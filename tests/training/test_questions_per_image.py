"""`questions_per_image`: a step trains some of the questions about its images, with what belongs to them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bcn.data.dataset import Batch
from bcn.errors import BcnError
from bcn.paper.tables import find_recipe
from bcn.training.distributed import Ranks
from bcn.training.interrupts import Stop
from bcn.training.loop import Trainer, train
from bcn.training.recipe import Recipe, fingerprint
from bcn.training.splits import Splits


def wild(most: int) -> Recipe:
    recipe = find_recipe("wild/multirn-wild", "smoke")
    return replace(recipe, questions_per_image=most, data=replace(recipe.data, tests=()), batch_size=4)


def batches(most: int, *, epoch: int, index: int = 0) -> Batch:
    """The images 0 to 3 as a step trains them."""
    recipe = wild(most)
    trainer = Trainer(recipe, 0, Splits.open(recipe, None), ranks=Ranks(), stop=Stop())
    trainer.state.position.epoch, trainer.state.position.index = epoch, index
    return trainer.load(np.arange(4))


@pytest.mark.parametrize("epoch", [1, 2])
def test_questions_keep_their_answers_kinds_and_supervision(epoch: int) -> None:
    drawn, whole = batches(5, epoch=epoch), batches(0, epoch=epoch)
    assert drawn.answer.shape == (4, 5)
    assert drawn.question is not None
    assert whole.question is not None
    assert drawn.auxiliary is not None
    assert whole.auxiliary is not None
    assert torch.equal(drawn.auxiliary["point"].nan_to_num(), whole.auxiliary["point"].nan_to_num())
    for row in range(4):
        places = []
        for place in range(5):
            (same,) = (whole.question[row] == drawn.question[row, place]).all(dim=-1).nonzero()[:, 0].tolist()
            places.append(same)
            assert drawn.answer[row, place] == whole.answer[row, same] >= 0
            assert drawn.kind is not None
            assert whole.kind is not None
            assert drawn.kind[row, place] == whole.kind[row, same]
            for name in ("role", "step"):
                assert torch.equal(drawn.auxiliary[name][row, place], whole.auxiliary[name][row, same])
        assert places == sorted(set(places))


def test_padding_is_drawn_only_where_questions_are_too_few() -> None:
    whole, all_but_few = batches(0, epoch=2), batches(34, epoch=2)
    asked = (whole.answer >= 0).sum(dim=1)
    assert asked.min() < 34
    assert torch.equal((all_but_few.answer >= 0).sum(dim=1), asked.clamp(max=34))
    assert torch.equal(batches(999, epoch=2).answer, whole.answer)


def test_each_step_draws_anew_and_always_the_same() -> None:
    first, again, other = batches(5, epoch=2), batches(5, epoch=2), batches(5, epoch=2, index=1)
    assert first.question is not None
    assert torch.equal(first.question, again.question)  # type: ignore[arg-type]
    assert not torch.equal(first.question, other.question)  # type: ignore[arg-type]


def test_object_supervision_asks_all_of_its_questions() -> None:
    assert torch.equal(batches(5, epoch=0).answer, batches(0, epoch=0).answer)


def test_only_a_run_that_draws_has_another_name() -> None:
    assert fingerprint(wild(0)) == fingerprint(replace(wild(5), questions_per_image=0)) != fingerprint(wild(5))


def test_fewer_than_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match=r"questions_per_image=-1 \(accepted: 0, which is all, and more\)"):
        train(wild(-1), seed=0, runs=tmp_path)


def test_a_run_that_draws_trains(tmp_path: Path) -> None:
    record = train(wild(3), seed=0, runs=tmp_path, threads=1)
    assert record["recipe"]["questions_per_image"] == 3
