"""`bcn models`: every model, its parameters and its cost, next to what the paper prints."""

import json
from dataclasses import asdict
from textwrap import fill
from typing import Annotated, Any

import typer

from bcn.cli import app
from bcn.errors import did_you_mean

WIDE = 150
"""columns for everything"""
NOTES = (
    "MACs are for one question about one image, or for one image where there are no questions. They are those of the "
    "reference implementation, counted as the paper counts: one more for a bias, two for BatchNorm, g's first layer "
    'under BCN. "executed" is what this package runs for one of Q questions about an image, multiply-accumulates '
    "alone. A question in words has 20 tokens here. A wide terminal and --json show the parts of the MACs.",
    "The paper's parameters include BatchNorm's statistics on Scaled-MNIST and STL-10, and leave them out on "
    "Sort-of-CLEVR, where mlp, cce-mlp and multirn-no-bcn are printed without their last layer too (2,570).",
)


@app.command()
def models(
    filter: Annotated[str, typer.Argument(help="Show the models whose names contain this.")] = "",
    questions: Annotated[int, typer.Option(min=1, help="Questions about an image, which share its cost.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """List the models with their parameters and multiply-accumulates, counted and as the paper prints them."""
    from bcn.models.registry import list_models

    names = list_models(filter)
    if not names:
        raise did_you_mean("model", filter, list_models())
    rows = [model_row(name, questions) for name in names]
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        print_models(rows, questions)


def model_row(name: str, questions: int) -> dict[str, Any]:
    from bcn.models.cost import count_parameters, executed_macs, on_meta, reference_macs
    from bcn.models.registry import image_shape
    from bcn.paper.published import published_rows

    table, row = name.split("/")
    model, image = on_meta(name), image_shape(name)
    reference, executed = reference_macs(model, image), executed_macs(model, image, questions=questions)
    paper = published_rows(table.replace("-", "_")).get(row, {})
    sections = published_rows("sections").get(row, {}) if table == "sort-of-clevr" else {}
    return {
        "model": name,
        "parameters": count_parameters(model),
        "with_statistics": count_parameters(model, statistics=True),
        "paper_parameters": paper.get("params"),
        "macs": asdict(reference),
        "macs_total": reference.total,
        "paper_macs_total": sections["total"] * 1e6 if sections else None,
        "executed": executed.total,
    }


def print_models(rows: list[dict[str, Any]], questions: int) -> None:
    """The parts of the MACs stand beside their total where the terminal is wide enough."""
    from bcn.cli.terminal import columns, print_table

    wide = columns() >= WIDE
    parts = ("MACs\nCNN", "\nBCN", "\ng", "\nf", "\nquestion") if wide else ()
    statistics = ("with\nstatistics",) if wide else ()
    total = ("\ntotal" if wide else "\nMACs", "\npaper", f"executed,\nQ = {questions}")
    headings = ("\nmodel", "\nparameters", *statistics, "\npaper", *parts, *total)
    cells = []
    for row in rows:
        counts = [f"{row['parameters']:,}", *([f"{row['with_statistics']:,}"] if wide else [])]
        macs = [*(row["macs"].values() if wide else ()), row["macs_total"], row["paper_macs_total"], row["executed"]]
        cells.append([row["model"], *counts, row["paper_parameters"] or "-", *map(_millions, macs)])
    print_table(headings, cells)
    for paragraph in NOTES:
        print("\n" + fill(paragraph, columns()))


def _millions(macs: float | None) -> str:
    """
    >>> _millions(3594096.0), _millions(300.0), _millions(0.0)
    ('3.59M', '300', '-')
    """
    if not macs:
        return "-"
    return f"{macs / 1e6:,.2f}M" if macs >= 1e5 else f"{macs:,.0f}"
