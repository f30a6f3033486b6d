"""From a finished run to its page."""

from pathlib import Path
from typing import Any

from bcn.errors import BcnError
from bcn.inference.report.measure import Report, answer_rows, find_worst, measure_parts
from bcn.inference.report.page import render
from bcn.io import atomic_write
from bcn.training.loop import train
from bcn.training.own import blind_recipe
from bcn.training.progress import say
from bcn.training.run import Run, find_run, find_started, run_id
from bcn.training.splits import open_for
from bcn.training.weights import find_weights, load_model

FILE = "report.html"


def report_run(
    run: Run, *, data: Path | None = None, blind: Path | None = None, train_blind: bool = True, out: Path | None = None
) -> Path:
    """Write the page about a finished run.

    Args:
        data: where its data lies, BCN_DATA by default.
        blind: the directory of a run of a blind model to compare with (default: for one's own data the one beside
            the run, see `blind_recipe`).
        train_blind: whether that is trained where there is none.
        out: the page (default: report.html in the directory of the run).
    """
    record, recipe = run.record(), run.recipe
    if record is None:
        raise BcnError(f"{run.path} is not finished: train it to its end first, with the command that began it")
    model, description = load_model(find_weights(run.path))
    trained = {key: description[key] for key in ("words", "answers") if "words" in description}
    sizes: dict[str, Any] = {"data": data, **trained}
    held_out = open_for(recipe.model, recipe.data.name, "test", images=recipe.data.test, **sizes)
    if held_out.dense:
        raise BcnError(f"{recipe.name} answers for every pixel: a report is for runs that answer or classify images")
    run.check_data({**run.manifest.get("data", {}), "test": held_out.checksum()})
    if unknown := [kind for kind in held_out.kinds if kind not in record["metrics"]["test"]]:
        raise BcnError(f"{run.path} began without questions of the kind {unknown[0]}: give the data that it began with")
    training = open_for(
        recipe.model,
        recipe.data.name,
        recipe.data.split,
        images=recipe.data.train,
        questions=recipe.data.questions,
        **sizes,
    )
    blind_metrics = _blind_metrics(run, data, blind, train_blind=train_blind)
    seen = answer_rows(model, training, range(min(len(training), len(held_out))))
    report = Report(
        run,
        record,
        record.get("test_split", "test"),
        len(held_out),
        measure_parts(held_out, training, record["metrics"]["test"], training=seen, blind=blind_metrics),
        [event for event in run.log.events() if event["event"] == "epoch"],
        find_worst(held_out, answer_rows(model, held_out, range(len(held_out)))),
    )
    path = out or run.path / FILE
    with atomic_write(path) as temporary:
        temporary.write_text(render(report), encoding="utf-8")
    return path


def _blind_metrics(run: Run, data: Path | None, given: Path | None, *, train_blind: bool) -> dict[str, Any] | None:
    """The metrics of a blind model on the same questions, if there is one."""
    if given is not None:
        record = find_run(given).record()
        if record is None:
            raise BcnError(f"--blind {given} is not finished: train it to its end first")
        return dict(record["metrics"]["test"])
    if run.recipe.name != "own":
        return None
    recipe, runs, seed = blind_recipe(run.recipe), run.path.parent, run.manifest["seed"]
    if not train_blind:
        started = find_started(recipe, seed=seed, runs=runs)
        record = None if started is None else started.record()
        return record and dict(record["metrics"]["test"])
    say(f"{runs / run_id(recipe, seed)}: a blind model, which sees the questions alone, to compare with")
    try:
        record = train(recipe, seed=seed, runs=runs, data=data, threads=run.manifest["threads"])
    except BcnError as error:  # not a reason to be without a page
        say(f"no blind model to compare with: {error}")
        return None
    return dict(record["metrics"]["test"])
