"""`bcn train` and `bcn eval`."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from bcn.cli import app
from bcn.cli.device import DeviceOption
from bcn.cli.weights import WeightsArgument
from bcn.errors import printable

if TYPE_CHECKING:
    from bcn.training.interrupts import Interrupted

ScaleOption = Annotated[str, typer.Option(help="smoke (seconds), cpu (minutes to hours) or paper (as published).")]
DataOption = Annotated[Path | None, typer.Option(help="Where the original data lies, or yours (default: BCN_DATA).")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, max=1024, help="Threads (default: cores / ranks).")]


@app.command()
def train(
    recipe: Annotated[str, typer.Argument(help="A row of a table, table3/multirn-h (see `bcn recipes`), or own.")],
    scale: ScaleOption = "cpu",
    seed: Annotated[int, typer.Option(min=0, help="Determines everything that is random.")] = 0,
    runs: Annotated[Path, typer.Option(help="The directory of all runs.")] = Path("runs"),
    data: DataOption = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Change a field: optim.lr=0.001. Repeatable.")] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="Start from these weights or this run; none: from random ones (see the recipe)."),
    ] = None,
    threads: ThreadsOption = None,
    device: DeviceOption = None,
    precision: Annotated[
        str | None, typer.Option(help="float32, tf32 or bf16, for --set precision=... (default: the recipe's).")
    ] = None,
    data_on_device: Annotated[str, typer.Option(help="Keep training images on the GPU: auto, yes or no.")] = "auto",
    compile: Annotated[bool, typer.Option("--compile", help="Run the loss through torch.compile.")] = False,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="On a GPU, only operators that give the same bits each time.")
    ] = False,
    save_minutes: Annotated[float, typer.Option(min=0, help="Minutes between checkpoints within an epoch.")] = 5.0,
    log: Annotated[str, typer.Option(help="Watch it in tensorboard, trackio or wandb, with pictures.")] = "none",
    timeout: Annotated[float, typer.Option(min=0.01, help="Minutes to wait for a rank that does not answer.")] = 30.0,
) -> None:
    """Train a recipe. The same command resumes a run that was stopped, and shows a finished one."""
    from bcn.cli.metrics import print_metrics
    from bcn.inference.pictures import draw_pictures
    from bcn.paper.start_run import choose_start
    from bcn.paper.tables import find_recipe
    from bcn.training.interrupts import Interrupted
    from bcn.training.loop import train as train_recipe
    from bcn.training.override import override
    from bcn.training.run import run_id
    from bcn.training.runtime import Runtime
    from bcn.training.trackers import open_watcher

    assignments = [*(set_ or []), *([f"precision={precision}"] if precision else [])]
    chosen, changes = override(find_recipe(recipe, scale), assignments)
    chosen, weights = choose_start(chosen, start)
    try:
        record = train_recipe(
            chosen,
            seed=seed,
            runs=runs,
            data=data,
            threads=threads,
            runtime=Runtime(device, deterministic, compile, data_on_device),
            overrides=changes,
            save_minutes=save_minutes,
            timeout_minutes=timeout,
            start=weights,
            watcher=open_watcher(log, runs / run_id(chosen, seed), draw_pictures),
        )
    except Interrupted as stopped:
        leave(stopped)
    if os.environ.get("RANK", "0") == "0":
        validated = record.get("test_split") == "val"
        own = f"{chosen.data.name}, validation images, which also chose the epoch" if validated else chosen.data.name
        for name, metrics in record["metrics"].items():
            print_metrics(own if name == "test" else name, metrics)
        print(printable(f"{runs / record['run'] / 'record.json'}: {record['seconds'] / 60:.1f} min"))
        if chosen.name == "own":
            write_report(runs / record["run"], data)


def write_report(run: Path, data: Path | None) -> None:
    """The page about a finished run on one's own data. Under torchrun no blind model is trained for it."""
    from bcn.inference.report import report_run
    from bcn.training.interrupts import Interrupted
    from bcn.training.run import find_run

    try:
        page = report_run(find_run(run), data=data, train_blind="RANK" not in os.environ)
    except Interrupted as stopped:
        leave(stopped)
    print(printable(f"{page}: accuracy beside guesses, curves, the worst answers"))


def leave(stopped: "Interrupted") -> NoReturn:
    """Exit as a signal ends a command, and print how to resume."""
    if os.environ.get("RANK", "0") == "0":
        same = "the same torchrun command" if "RANK" in os.environ else shlex.join(["bcn", *sys.argv[1:]])
        print(f"bcn: {stopped}; go on with: {same}", file=sys.stderr, flush=True)
    sys.exit(128 + stopped.signal)


@app.command("eval")
def evaluate(
    weights: WeightsArgument,
    on: Annotated[
        str | None, typer.Option(help="The data set (default: what --data holds, or what it was trained on).")
    ] = None,
    split: Annotated[str, typer.Option(help="train, val or test; of CLEVR its own, test being val.")] = "test",
    images: Annotated[int | None, typer.Option(min=1, help="The first so many images (default: all).")] = None,
    data: DataOption = None,
    confusion: Annotated[Path | None, typer.Option(help="Write the confusion matrix as a PNG.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    threads: ThreadsOption = None,
    device: DeviceOption = None,
) -> None:
    """Evaluate weights: accuracy with 95 % intervals, the localisation error, and what the BCN is worth."""
    import torch

    from bcn.cli.metrics import print_broadcast, print_metrics
    from bcn.data.vqa.sources import find_held, published_split
    from bcn.inference.confusion import draw_confusion
    from bcn.inference.shipped import locate_weights
    from bcn.models.registry import image_shape
    from bcn.training.broadcast_probe import ablate
    from bcn.training.device import find_device
    from bcn.training.environment import default_threads, keep_memory
    from bcn.training.forward import check_fit
    from bcn.training.metrics import compute_metrics
    from bcn.training.metrics import evaluate as count
    from bcn.training.splits import open_for
    from bcn.training.weights import load_model

    keep_memory()
    torch.set_num_threads(threads or default_threads())
    model, description = load_model(locate_weights(weights)[1])
    model.to(find_device(device))
    trained = {key: description[key] for key in ("words", "answers") if "words" in description}
    held = find_held(data, image_shape(description["model"])[1]) if trained else None
    name = on or held or description["data"]
    opened, shown = published_split(name, split)
    dataset = open_for(description["model"], name, opened, data=data, images=images, **trained)
    shown = dataset.split if shown == opened else shown
    check_fit(model, dataset, description["model"])
    counts = count(model, dataset, batch_size=16, localise=description["localise"])
    metrics = compute_metrics(counts, dataset)
    broadcast = ablate(model, dataset)
    if as_json:
        about = {"data": dataset.name, "split": shown, "model": description["model"]}
        print(json.dumps(about | {"metrics": metrics} | ({"broadcast": broadcast} if broadcast else {})))
    else:
        print_metrics(f"{description['model']} on {dataset.name} {shown}", metrics)
        if broadcast:
            print_broadcast(broadcast)
    if confusion is not None:
        draw_confusion(counts, dataset.answers, confusion)
