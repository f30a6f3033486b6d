"""Weights that come with the package: a file, its evidence in the index, and a card for people, from a finished run."""

import shutil
from pathlib import Path
from typing import Any

from bcn.errors import BcnError
from bcn.inference.reasoner import WEIGHTS, list_weights
from bcn.io import atomic_write, checksum, write_json
from bcn.models.cost import count_parameters, executed_macs, on_meta, reference_macs
from bcn.models.registry import image_shape
from bcn.paper.cost import cost
from bcn.paper.recipes import find_recipe
from bcn.paper.records import cpu_minutes
from bcn.training.run import find_run
from bcn.training.weights import load_trained, weights_file


def ship(run: Path, *, directory: Path = WEIGHTS) -> str:
    """Add the best weights of a finished run to the index, under its family and its row, and give that name."""
    begun = find_run(run)
    record, source = begun.record(), weights_file(begun.path)
    name = f"{begun.recipe.model.split('/')[0]}/{begun.recipe.name.split('/')[-1]}"
    if record is None:
        raise BcnError(f"{begun.path} is not finished; let `bcn train` end it first")
    if begun.manifest["overridden"]:
        raise BcnError(f"{begun.path} was trained with --set; what is shipped is a recipe as it stands, so train that")
    description, index = load_trained(source)[1], list_weights(directory)
    epoch = record["best_epoch"] or begun.recipe.epochs
    origin = {"recipe": begun.recipe.name, "scale": begun.recipe.scale, "seed": begun.manifest["seed"], "epoch": epoch}
    if description | origin != description:
        raise BcnError(
            f"{source} is of {_origin(description)}, not what the record of this run is about; train it again"
        )
    if name in index and (index[name]["recipe"], index[name]["scale"]) != (begun.recipe.name, begun.recipe.scale):
        raise BcnError(f"{name} comes with the weights of {_origin(index[name])}; only another seed replaces them")
    entry = evidence(source, record)
    file = f"{name.replace('/', '-')}.safetensors"
    with atomic_write(directory / file) as temporary:
        shutil.copyfile(source, temporary)
    write_json(directory / "index.json", {**index, name: {"file": file, **entry}})
    with atomic_write(directory / f"{name.replace('/', '-')}.md") as temporary:
        temporary.write_text(card(name, entry))
    return name


def _origin(entry: dict[str, Any]) -> str:
    return f"{entry['recipe']}, scale {entry['scale']}, seed {entry['seed']}, epoch {entry['epoch']}"


def evidence(file: Path, record: dict[str, Any]) -> dict[str, Any]:
    """What the index says of a weights file; the tests compute it again."""
    description = load_trained(file)[1]
    name = description["model"]
    model, image = on_meta(name, **description["arguments"]), image_shape(name)
    metrics = record["metrics"]["test"]
    return {
        "sha256": checksum(file),
        "bytes": file.stat().st_size,
        "parameters": count_parameters(model),
        "macs": reference_macs(model, image).total,
        "executed_macs": executed_macs(model, image, questions=20).total,
        "preprocessing": description["preprocessing"],
        "answers": description["answers"],
        "data": description["data"],
        "metrics": {key: value for key, value in metrics.items() if key != "confusion"},
        "recipe": description["recipe"],
        "scale": description["scale"],
        "seed": description["seed"],
        "epoch": description["epoch"],
        "commit": record["commit"],
        "cpu_minutes": round(cpu_minutes(record), 1),
    }


def card(name: str, entry: dict[str, Any]) -> str:
    """The index's entry as a page."""
    recipe = find_recipe(entry["recipe"], entry["scale"])
    asked = "relational" in entry["metrics"] or name.startswith("clevr/")
    held_out, counted = recipe.data.split == "train", cost(recipe).parameters
    statistics = f" ({counted:,} with BatchNorm's statistics)" if not asked and counted != entry["parameters"] else ""
    taught = " In training, and only there, scenes and programs showed it which things are meant." * bool(
        recipe.auxiliary
    )
    what, of_many = ("question", " where 20 are asked about an image") if asked else ("image", "")
    lines = [
        f"# {name}",
        "",
        f"Trained on {entry['data']} by `bcn train {entry['recipe']} --scale {entry['scale']} --seed {entry['seed']}` "
        f"in {entry['cpu_minutes']:.0f} minutes of one core; the weights of epoch {entry['epoch']}, "
        f"{'of its epochs the best on the validation images' if held_out else 'the last'}.{taught}",
        "",
        f"{entry['parameters']:,} parameters{statistics}; {entry['macs'] / 1e6:.2f}M multiply-accumulates for "
        f"{'an' if what == 'image' else 'a'} {what} as the paper counts them, "
        f"{entry['executed_macs'] / 1e6:.2f}M executed{of_many}.",
        "",
        f"| on the test images | accuracy | 95 % interval | {what}s |",
        "|---|--:|--:|--:|",
    ]
    for kind, figure in sorted(entry["metrics"].items(), key=_asked, reverse=True):
        if isinstance(figure, dict) and "interval" in figure:
            low, high = (100 * bound for bound in figure["interval"])
            accuracy = 100 * figure["accuracy"]
            lines.append(
                f"| {kind.replace('_', '-')} | {accuracy:.2f} % | {low:.2f} to {high:.2f} | {figure['total']:,} |"
            )
        elif isinstance(figure, float):
            lines.append(f"| {kind} error | {figure:.4f} | | |")
    return "\n".join([*lines, "", f"`bcn.load({name!r})`; SHA-256 {entry['sha256']}.", ""])


def _asked(metric: tuple[str, Any]) -> int:
    """How much a figure is about: groups come before the kinds in them."""
    return metric[1]["total"] if isinstance(metric[1], dict) else 0
