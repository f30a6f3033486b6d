"""What a run says of the time that is left."""

from dataclasses import replace

import pytest

from bcn.paper.tables import find_recipe
from bcn.training.progress import Progress
from bcn.training.recipe import phases


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the clock shows."""
    shown = [0.0]
    monkeypatch.setattr("bcn.training.progress.time.monotonic", lambda: shown[0])
    return shown


def test_the_time_left_is_that_of_steps_which_are_alike(now: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    """10 steps of a minute, then 20 of two minutes: what the first took says nothing of the others."""
    progress = Progress("run", 30, 0)
    said = []
    for step in range(30):
        if step in (0, 10):
            progress.begin(*(("curriculum", 10) if step < 10 else ("main", 30)))
        now[0] += 60 if step < 10 else 120
        progress.step(0, 1, lambda: 0.5)
        said.append(capsys.readouterr().err.split(", ")[-1].strip())
    assert said[4] == "5.0 min left of curriculum"
    assert said[10] == "38.0 min left"
    assert said[19] == "20.0 min left"


def test_a_run_taken_up_again_counts_from_where_it_was(now: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress("run", 100, 90)
    now[0] = 31.0
    progress.step(8, 4, lambda: 0.5)
    assert capsys.readouterr().err.strip() == "run: step 91/100, epoch 9, loss 0.5000, 0 answers/s, 4.7 min left"


def test_the_phases_of_a_run_are_all_of_its_epochs() -> None:
    recipe = find_recipe("table3/multirn-h", "cpu")
    assert phases(recipe) == {"curriculum": 2, "main": 22}
    assert phases(replace(recipe, curriculum_epochs=99)) == {"curriculum": 24}
    taught = find_recipe("table4/multirn-h", "cpu")
    assert phases(taught) == {"object supervision": 5, "referent supervision": 2, "main": 6}
    assert phases(find_recipe("table4/lstm", "cpu")) == {"main": 6}
