"""Release the weights of a finished run with the package: the file, its evidence in index.json, and a model card."""

import re
from pathlib import Path
from typing import Any

from torch import Tensor

from bcn.data.registry import open_dataset
from bcn.data.vqa.sources import OWN
from bcn.errors import BcnError
from bcn.inference.shipped import WEIGHTS, list_weights
from bcn.io import atomic_write, checksum, write_json
from bcn.models.cost import count_parameters, executed_macs, on_meta, reference_macs
from bcn.models.registry import image_shape
from bcn.training.metrics import SINGLE, compute_metrics, evaluate
from bcn.training.recipe import Recipe
from bcn.training.record import cpu_minutes
from bcn.training.run import Run, find_run
from bcn.training.weights import find_weights, load_model, write_weights


def release(path: Path, *, half: bool = False, data: Path | None = None, directory: Path = WEIGHTS) -> str:
    """Add the best weights of a finished run to the index; returns their name, family and table row.

    Args:
        path: the run's directory.
        half: round them to float16, and test them again as they are shipped.
        data: where the data of the run lies, for that (default: BCN_DATA).
        directory: of the index.
    """
    run = find_run(path)
    recipe, record, source = run.recipe, run.record(), find_weights(run.path)
    name = f"{recipe.model.split('/')[0]}/{recipe.name.split('/')[-1]}"
    if record is None:
        raise BcnError(f"{run.path} is not finished; let `bcn train` end it first")
    (model, description), index = load_model(source), list_weights(directory)
    epoch = record["best_epoch"] or recipe.epochs
    origin = {"recipe": recipe.name, "scale": recipe.scale, "seed": run.manifest["seed"], "epoch": epoch}
    if description | origin != description:
        raise BcnError(f"{source} is of {_origin(description)}, and the record of this run is not; train it again")
    if name in index and (index[name]["recipe"], index[name]["scale"]) != (recipe.name, recipe.scale):
        raise BcnError(f"{name} comes with the weights of {_origin(index[name])}; only another seed replaces them")
    file = directory / f"{name.replace('/', '-')}.safetensors"
    with atomic_write(file) as temporary:
        state = model.state_dict()
        write_weights(temporary, _halve(state) if half else state, description)
        entry = evidence(temporary, record, metrics=_test_again(temporary, recipe, data) if half else None)
    write_json(directory / "index.json", {**index, name: {"file": file.name, **entry}})
    with atomic_write(file.with_suffix(".md")) as temporary:
        temporary.write_text(card(name, entry, recipe), encoding="utf-8")
    return name


def _origin(entry: dict[str, Any]) -> str:
    return f"{entry['recipe']}, scale {entry['scale']}, seed {entry['seed']}, epoch {entry['epoch']}"


def _halve(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights in half of the bytes."""
    return {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in weights.items()}


def _test_again(file: Path, recipe: Recipe, data: Path | None) -> dict[str, Any]:
    """The metrics of a weights file on the test sets of its recipe."""
    model, description = load_model(file)
    known = {"words": description.get("words"), "answers": description["answers"]}
    sets = {"test": recipe.data.name} | {name: name for name in recipe.data.tests}
    metrics = {}
    for name, dataset_name in sets.items():
        dataset = open_dataset(dataset_name, "test", data=data, images=recipe.data.test, **known)
        counts = evaluate(model, dataset, batch_size=recipe.batch_size, localise=recipe.localise)
        metrics[name] = compute_metrics(counts, dataset)
    return metrics


def evidence(file: Path, record: dict[str, Any], *, metrics: dict[str, Any] | None = None) -> dict[str, Any]:
    """The index entry of a weights file; the tests recompute it.

    Args:
        metrics: of the weights as they are in the file, where that has them in float16 (default: those of the record).
    """
    description = load_model(file)[1]
    name = description["model"]
    model, image = on_meta(name, **description["arguments"]), image_shape(name)
    measured = {
        test_set: {key: value for key, value in of_set.items() if key != "confusion"}
        for test_set, of_set in (metrics or record["metrics"]).items()
    }
    kinds, own = description["kinds"], measured.pop("test")
    groups = {
        test_set: {key: of_set[key] for key in of_set if key not in kinds} for test_set, of_set in measured.items()
    }
    return {
        "sha256": checksum(file),
        "bytes": file.stat().st_size,
        "parameters": count_parameters(model),
        "macs": reference_macs(model, image).total,
        "executed_macs": executed_macs(model, image, questions=20).total,
        "preprocessing": description["preprocessing"],
        "answers": description["answers"],
        "data": description["data"],
        "metrics": own,
        **({"tests": groups} if groups else {}),
        "recipe": description["recipe"],
        "scale": description["scale"],
        "seed": description["seed"],
        "epoch": description["epoch"],
        "commit": record["commit"],
        "cpu_minutes": round(cpu_minutes(record), 1),
        **({"split": "val"} if record.get("test_split") == "val" else {}),
        **({"dtype": "float16"} if metrics else {}),
    }


def card(name: str, entry: dict[str, Any], recipe: Recipe, run: Run | None = None) -> str:
    """The model card: an index entry as a Markdown page.

    Args:
        run: whose best weights these are, where they do not ship with the package.
    """
    takes_questions = name.startswith(("clevr/", "drawn/")) or not {"relational", "binary"}.isdisjoint(entry["metrics"])
    held_out, split = recipe.data.split == "train", "validation" if entry.get("split") == "val" else "test"
    statistics = ""
    if not takes_questions:
        counted = count_parameters(on_meta(recipe.model, **dict(recipe.arguments)), statistics=True)
        statistics = f" ({counted:,} with BatchNorm's statistics)" if counted != entry["parameters"] else ""
    source = "its scenes" if entry["data"].startswith("drawn") else "scenes and programs"
    supervised = f" Training also used auxiliary object and referent supervision, from {source}."
    auxiliary = supervised * bool(recipe.auxiliary)
    halved = " The file has float16, and was tested so." if entry.get("dtype") == "float16" else ""
    unit, shared = ("question", " with 20 questions about an image") if takes_questions else ("image", "")
    lines = [
        f"# {name}",
        "",
        f"Trained on {entry['data']} by `{_command(entry, recipe, run)}` "
        f"in {entry['cpu_minutes']:.0f} minutes of one core; the weights of epoch {entry['epoch']}, "
        f"{'the best on the validation images' if held_out else 'the last'}.{auxiliary}",
        "",
        f"{entry['parameters']:,} parameters{statistics}; {entry['macs'] / 1e6:.2f}M multiply-accumulates for "
        f"{'an' if unit == 'image' else 'a'} {unit} as the paper counts them, "
        f"{entry['executed_macs'] / 1e6:.2f}M executed{shared}.{halved}",
        "",
        f"| on the {split} images | accuracy | 95 % interval | {unit}s |",
        "|---|--:|--:|--:|",
    ]
    for kind, metric in sorted(entry["metrics"].items(), key=_total, reverse=True):
        if isinstance(metric, dict) and "interval" in metric:
            low, high = (100 * bound for bound in metric["interval"])
            accuracy = 100 * metric["accuracy"]
            lines.append(
                f"| {kind.replace('_', '-')} | {accuracy:.2f} % | {low:.2f} to {high:.2f} | {metric['total']:,} |"
            )
        elif isinstance(metric, float):
            lines.append(f"| {SINGLE[kind]} | {metric:.4f} | | |")
    lines += ["", *further_tests(entry["tests"])] if "tests" in entry else []
    loaded = f"`bcn.load({name!r})`; " if run is None else ""
    return "\n".join([*lines, "", f"{loaded}SHA-256 {entry['sha256']}.", ""])


def _command(entry: dict[str, Any], recipe: Recipe, run: Run | None) -> str:
    """What trains these weights."""
    parts = [f"bcn train {entry['recipe']} --scale {entry['scale']} --seed {entry['seed']}"]
    if run is not None:
        parts += ["--data FOLDER"] * (recipe.data.name == OWN)
        parts += [f"--from {recipe.start.split('@')[0]}"] * bool(recipe.start)
        parts += [f"--set {assignment}" for assignment in run.manifest["overrides"]]
    return " ".join(parts)


def further_tests(tests: dict[str, Any]) -> list[str]:
    """A table of the accuracy on further test sets, by group of questions."""
    groups = [key for key, metric in next(iter(tests.values())).items() if isinstance(metric, dict)]
    lines = [f"| test set, accuracy in % | {' | '.join(group.replace('_', '-') for group in groups)} | questions |"]
    lines.append(f"|---|{'--:|' * (len(groups) + 1)}")
    for test_set in sorted(tests, key=_in_order):
        metrics = [tests[test_set][group] for group in groups]
        cells = [f"{100 * metric['accuracy']:.2f}" if metric["total"] else "-" for metric in metrics]
        lines.append(f"| {test_set} | {' | '.join(cells)} | {tests[test_set]['all']['total']:,} |")
    return lines


def _in_order(name: str) -> list[str | int]:
    """Names with numbers in the order of these."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _total(item: tuple[str, Any]) -> int:
    """How many answers a metric is over: groups come before the kinds in them."""
    return item[1]["total"] if isinstance(item[1], dict) else 0
