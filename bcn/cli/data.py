"""`bcn data`: list, make, fetch, export, check and show data sets."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from bcn.cli import app
from bcn.cli.terminal import print_entry
from bcn.errors import BcnError, printable

if TYPE_CHECKING:
    from bcn.data.sort_of_clevr.samples import Questions

commands = typer.Typer(help="List, make, fetch, export, check and show the data sets.", no_args_is_help=True)
app.add_typer(commands, name="data")

Name = Annotated[str, typer.Argument(help="A data set; `bcn data list` lists them.")]
Data = Annotated[Path | None, typer.Option(help="Directory of the original files (default: BCN_DATA).")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of a generated data set; results are for 0.")]


@commands.command("list")
def list_(
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """List the data sets, and where their files are."""
    from bcn.data.registry import DATASETS, missing_files

    rows: list[dict[str, Any]] = []
    for name, entry in DATASETS.items():
        places = sorted({_shown(path) for path in entry.find(data)}) if entry.find else []
        missing = missing_files(name, data)
        rows.append({"name": name, "about": entry.about, "splits": entry.splits, "places": places, "missing": missing})
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        where = row["places"] or [row["missing"] or "made when it is opened"]
        print_entry(row["name"], f"{row['about']}: {', '.join(where)}")


@commands.command()
def make(
    name: Name,
    split: Annotated[str | None, typer.Option(help="One split (default: all).")] = None,
    images: Annotated[int | None, typer.Option(min=1, help="The first N images of each split (default: all).")] = None,
    seed: Seed = 0,
    questions: Annotated[str, typer.Option(help="sampled or all, where questions are asked.")] = "sampled",
    out: Annotated[Path | None, typer.Option(help="Also write NAME-SPLIT.npz into this directory.")] = None,
    data: Data = None,
) -> None:
    """Generate a data set. A cached one is checked first, and made again if it is damaged."""
    from bcn.data.arrays import write_npz
    from bcn.data.check import CHECKSUMS, drop_damaged
    from bcn.data.registry import find_entry, open_dataset

    entry = find_entry(name)
    if entry.origin == "published":
        raise BcnError(f"{name} is published, not generated: run `bcn data fetch {name}`")
    for problem in drop_damaged(name):
        print(f"bcn: {problem}; it is made again", file=sys.stderr)
    known = CHECKSUMS.get(name) if entry.origin == "generated once" else None
    for each in [split] if split else known or entry.splits:
        dataset = open_dataset(name, each, data=data, images=images, seed=seed, questions=cast("Questions", questions))
        print(f"{name} {each}: {len(dataset):,} images, sha256 {dataset.checksum()}")
        if out is not None:
            print(write_npz(dataset, out / f"{name}-{each}.npz"))


@commands.command()
def export(
    name: Name,
    to: Annotated[str, typer.Option(help="parquet, imagefolder or webdataset.")],
    out: Annotated[Path, typer.Option(help="The directory to write into.")],
    split: Annotated[str | None, typer.Option(help="One split (default: all).")] = None,
    images: Annotated[int | None, typer.Option(min=1, help="The first N images of each split (default: all).")] = None,
    seed: Seed = 0,
    data: Data = None,
) -> None:
    """Write a data set as files that other tools read, images as PNG."""
    from bcn.data.export import export_dataset
    from bcn.data.registry import find_entry, open_dataset

    for each in [split] if split else find_entry(name).splits:
        dataset = open_dataset(name, each, data=data, images=images, seed=seed)
        for path in export_dataset(dataset, to, out):
            print(path)


@commands.command()
def fetch(name: Name, data: Data = None) -> None:
    """Download a published data set, unless it is there, and verify it."""
    from bcn.data.registry import find_entry

    entry = find_entry(name)
    if entry.fetch is None:
        raise BcnError(f"{name} is generated, not downloaded: run `bcn data make {name}`")
    for path in entry.fetch(data):
        print(path)


@commands.command()
def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Data sets, or directories of your own (default: all sets here).")
    ] = None,
    data: Data = None,
    problems: Annotated[
        Path | None, typer.Option(help="Write every problem with all its examples into a file.")
    ] = None,
) -> None:
    """Compare what data sets hold, image by image, with their known checksums; exit code 2 if one does not hold.

    In a directory of images and questions, look for what would spoil a training.
    """
    from bcn.data import check as checks
    from bcn.data.registry import DATASETS
    from bcn.io import atomic_write, check_writable

    for name in names or ():
        checks.check_name(name)
    if problems is not None:
        check_writable(problems)
    bad: list[str] = []
    lines: list[str] = []
    for name in names or DATASETS:
        findings = []
        for finding in checks.check(name, data):
            print(printable(f"{finding.subject}: {finding.text}"), flush=True)
            findings.append(finding.status)
            if finding.status == "bad":
                lines += [f"{finding.subject}: {finding.text}", *(f"    {example}" for example in finding.examples)]
        if "bad" in findings or (names and "missing" in findings):
            bad.append(name)
    if problems is not None:
        with atomic_write(problems) as temporary:
            temporary.write_text("".join(f"{printable(line)}\n" for line in lines), encoding="utf-8")
        print(f"{problems}: {len(lines):,} lines")
    if bad:
        raise BcnError(f"{', '.join(bad)}: the check failed; what to do is said above")


@commands.command()
def show(
    name: Name,
    split: Annotated[str, typer.Option(help="Which split.")] = "test",
    images: Annotated[int, typer.Option(min=1, max=600, help="How many images.")] = 24,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="The PNG to write (default: NAME-SPLIT.png).")] = None,
    data: Data = None,
) -> None:
    """Write a contact sheet: the first images of a split with their labels."""
    from bcn.data.contact_sheet import contact_sheet
    from bcn.data.registry import find_entry, open_dataset
    from bcn.io import atomic_write

    path = out or Path(f"{name}-{split}.png")
    if path.suffix.lower() != ".png":
        raise BcnError(f"--out {path}: the sheet is a PNG, give a name that ends in .png")
    opened = None if find_entry(name).remedy else images  # a directory of someone's own may hold fewer
    sheet = contact_sheet(open_dataset(name, split, data=data, images=opened, seed=seed), images)
    with atomic_write(path) as temporary:
        sheet.save(temporary, format="PNG")
    print(path)


def _shown(path: Path) -> str:
    """A file is shown by its directory, which it shares with others."""
    return str(path.parent if path.is_file() else path)
