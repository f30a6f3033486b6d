"""The page about a finished run: its numbers against the questions themselves, its words, and what it refuses."""

import json
import re
import shutil
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from helpers.blobs import install, plain
from helpers.command import exit_code, run_bcn
from helpers.squares import own_layout

import bcn
from bcn.data.vqa.jsonl import read_own
from bcn.errors import BcnError
from bcn.inference.report import report_run
from bcn.inference.report.measure import WORST, Part, Share, find_overfitting
from bcn.training.loop import train
from bcn.training.metrics import wilson
from bcn.training.run import Run, find_run, run_id


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = own_layout(tmp_path_factory.mktemp("folder"), kinds=True)
    file = folder / "questions.jsonl"
    file.write_text(file.read_text().replace('"kind": "number"', '"kind": "<b>number</b>"'))
    return folder


@pytest.fixture(scope="module")
def run(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that `bcn train own` reported on."""
    runs = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BCN_CACHE", str(runs / "cache"))
        everything = ("--set", "data.train=none", "--set", "data.val=none", "--set", "data.test=none")
        out = run_bcn(
            "train", "own", "--data", folder, "--runs", runs, "--scale", "smoke", "--threads", "1", *everything
        )
    (path,) = runs.glob("own-*")
    assert f"{path / 'report.html'}: " in out
    return find_run(path)


def read(run: Run) -> str:
    return (run.path / "report.html").read_text(encoding="utf-8")


def lines_of(folder: Path, *, split: str) -> list[dict[str, str]]:
    return [
        {"image": str(folder / each.image), "question": each.text, "answer": each.answer or "", "kind": each.kind or ""}
        for where, each in read_own(folder)
        if where == split
    ]


def test_it_sets_accuracy_beside_guesses_and_a_blind_model(folder: Path, run: Run) -> None:
    learned, asked, page = lines_of(folder, split="train"), lines_of(folder, split="val"), read(run)
    answers = Counter(line["answer"] for line in learned)
    by_question: dict[str, Counter[str]] = defaultdict(Counter)
    for line in learned:
        by_question[line["question"]][line["answer"]] += 1
    always = sum(line["answer"] == answers.most_common(1)[0][0] for line in asked)
    same = sum(line["answer"] == by_question[line["question"]].most_common(1)[0][0] for line in asked)
    record = run.record()
    assert record is not None
    correct, total = (record["metrics"]["test"]["all"][key] for key in ("correct", "total"))
    (other,) = run.path.parent.glob("blind-*/record.json")
    blind = json.loads(other.read_text())
    assert (total, blind["recipe"]["model"]) == (len(asked), "clevr/lstm")
    bars = dict(re.findall(r'<div class="bar c\d"><span>([^<]+)</span>.*?<b>([\d.]+) %</b>', page))
    shares = {
        "this model": correct,
        "blind model": blind["metrics"]["test"]["all"]["correct"],
        "most frequent answer to the same question": same,
        "most frequent answer": always,
    }
    assert {name: bars[name] for name in shares} == {name: f"{100 * n / total:.1f}" for name, n in shares.items()}
    low, high = wilson(correct, total)
    assert f"95 % interval {100 * low:.1f} to {100 * high:.1f}" in page
    for kind, shown in (("colour", "colour"), ("<b>number</b>", "&lt;b&gt;number&lt;/b&gt;")):
        assert bars[shown] == f"{100 * record['metrics']['test'][kind]['accuracy']:.1f}"


def test_what_chose_the_epoch_is_called_validation(run: Run) -> None:
    assert "validation images, which also chose the epoch" in read(run)
    assert "test images" not in read(run)


def test_the_worst_answers_are_the_most_confident_wrong_ones(folder: Path, run: Run) -> None:
    reasoner, wrong = bcn.load(run.path), []
    for line in lines_of(folder, split="val"):
        answer = reasoner.ask(line["image"], line["question"])[0]
        if answer.answer != line["answer"]:
            wrong.append((-round(100 * answer.probability), answer.answer, line["answer"]))
    cards = re.findall(r"<p><b>([^<]+)</b> (\d+) %, not <b>([^<]+)</b></p>", read(run))
    shown = [(-int(probability), given, true) for given, probability, true in cards]
    assert sorted(shown) == sorted(sorted(wrong)[:WORST])
    assert [first for first, _, _ in shown] == sorted(first for first, _, _ in shown)
    assert read(run).count('src="data:image/jpeg;base64,') == len(cards) > 0


def test_the_page_needs_nothing_from_elsewhere(run: Run) -> None:
    page = read(run)
    assert "default-src 'none'" in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert "http://" not in page
    assert "https://" not in page


def test_names_from_files_are_no_markup(run: Run) -> None:
    assert "<td>&lt;b&gt;number&lt;/b&gt;</td>" in read(run)
    assert "<b>number" not in read(run)


def test_a_run_with_question_vectors_and_a_classifier_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = bcn.train("table3/mlp", scale="smoke", runs=tmp_path, threads=1)
    assert run_bcn("runs", "report", asked.path).strip() == str(asked.path / "report.html")
    assert "closest" in read(asked)
    assert "No blind model is on record" in read(asked)
    install(monkeypatch.setitem)
    train(plain("smoke"), seed=0, runs=tmp_path, threads=1)
    classifier = find_run(tmp_path / run_id(plain("smoke"), 0))
    report_run(classifier, blind=asked.path)
    assert "same question" not in read(classifier)
    assert "test images, which nothing was chosen by" in read(classifier)


def test_what_cannot_be_reported_is_refused(
    folder: Path, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unfinished = Path(shutil.copytree(run.path, tmp_path / "unfinished"))
    (unfinished / "record.json").unlink()
    assert exit_code("runs", "report", unfinished, "--data", folder) == 2
    assert "is not finished" in capsys.readouterr().err
    other = own_layout(tmp_path / "other", images=40)
    assert exit_code("runs", "report", run.path, "--data", other) == 2
    assert "began with other data (test)" in capsys.readouterr().err
    renamed = Path(shutil.copytree(folder, tmp_path / "renamed"))
    file = renamed / "questions.jsonl"
    file.write_text(file.read_text().replace('"kind": "colour"', '"kind": "hue"'))
    with pytest.raises(BcnError, match="began without questions of the kind hue"):
        report_run(run, data=renamed)
    with pytest.raises(BcnError, match="is not the directory of a run"):
        report_run(run, data=folder, blind=tmp_path)


@pytest.mark.parametrize(
    ("losses", "epoch"),
    [
        ([(1.0, 1.0), (0.6, 0.8), (0.3, 0.87)], None),  # rises by less than a tenth
        ([(1.0, 1.0), (0.6, 0.8), (0.3, 0.89)], 2),
        ([(1.0, 1.0), (0.6, 0.8), (0.7, 0.95)], None),  # the training loss rises too: it diverges
        ([(1.0, 1.0)], None),
    ],
)
def test_overfitting_is_a_validation_loss_that_rises_again(losses: list[tuple[float, float]], epoch: int) -> None:
    curve = [{"epoch": n, "loss": loss, "val_loss": val} for n, (loss, val) in enumerate(losses, 1)]
    assert find_overfitting(curve) == epoch
    assert find_overfitting([{"epoch": 1, "loss": 1.0}]) is None


def test_what_is_memorised_is_better_by_more_than_chance() -> None:
    def memorised(training: Share | None, held_out: Share) -> bool:
        return Part("side", held_out, training, held_out, None, None).is_memorised

    assert memorised(Share(91, 100), Share(48, 100))
    assert not memorised(Share(91, 100), Share(85, 100))  # by six points
    assert not memorised(Share(9, 10), Share(6, 10))  # of too few
    assert not memorised(None, Share(48, 100))
