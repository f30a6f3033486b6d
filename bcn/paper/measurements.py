"""docs/results/measurements.md: what the benchmarks measured, made by `bcn report` from results/bench/."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bcn.errors import BcnError
from bcn.io import atomic_write, read_json
from bcn.paper.rows import grid
from bcn.paper.tables import TABLES, published_rows

INTRODUCTION = """# Measurements

Made by `bcn report` from the records in `results/bench/`, which hold commit, versions, machine and load;
[performance.md](../reference/performance.md) says what they mean. What is compared was measured by turns in one
process: medians over rounds [first and third quartile], ratios taken round by round.
"""
Figures = dict[str, Any]


def write_measurements(page: Path, bench: Path) -> list[Path]:
    """Write the page, unless nothing was measured; what has no record is left out."""
    parts = [_section(name, bench / f"{name}.json") for name in SECTIONS if (bench / f"{name}.json").exists()]
    if not parts:
        return []
    with atomic_write(page) as temporary:
        temporary.write_text("\n".join([INTRODUCTION, *parts]))
    return [page]


def _section(name: str, path: Path) -> str:
    remedy = f"measure it again with `bcn bench {name}`"
    record = read_json(path, remedy)
    try:
        commit = f", commit {record['commit']['id'][:7]}" if record["commit"] else ""
        source = f"<sub>`bcn bench {name}`, {record['time'][:10]}{commit}</sub>\n"
        return f"{SECTIONS[name](record['figures'])}\n{source}"
    except (LookupError, TypeError) as error:
        raise BcnError(f"{path} is not the record of a benchmark ({error}); {remedy}") from error


def spread(figure: Figures, digits: int = 1) -> str:
    return f"{figure['median']:,.{digits}f} [{figure['low']:,.{digits}f}, {figure['high']:,.{digits}f}]"


def speed(figures: Figures) -> str:
    threads = [name for name in figures if "thread" in name]
    one = figures[threads[0]]
    rows = [
        [*(f"`{each}`" for each in pair.split(" / ")), *(spread(figures[t]["forms"]["ratios"][pair]) for t in threads)]
        for pair in one["forms"]["ratios"]
    ]
    parts = ["## Training: how many times as fast as a rival\n", grid(["ours", "rival", *threads], rows)]
    parts.append(
        '\n"trained" has the shipped weights and real images, where most activations are zero; all others have random'
        "\nweights and inputs.\n"
    )
    rows = [
        [
            f"{way}, {questions}",
            *(spread(figures[t]["share_of_the_limit"][questions][way]["share"], 2) for t in threads),
        ]
        for questions in one["share_of_the_limit"]
        for way in one["share_of_the_limit"][questions]
        if way != "product_gflops"
    ]
    parts += ["## The share of the matrix-product limit, `multirn-h`, 16 images\n", grid(["", *threads], rows)]
    together, rates = one["questions_together"], one["forms"]["answers_per_second"]
    milliseconds = {name: time["median"] for name, time in together["milliseconds"].items()}
    parts.append(
        f"\nQuestions a second in training, one thread: `multirn-h` {spread(rates['multirn-h'], 0)}, trained"
        f" {spread(rates['multirn-h, trained'], 0)}, `multirn` {spread(rates['multirn'], 0)}."
        f"\nOne question about one image takes {milliseconds['one']:.1f} ms, all 36 together"
        f" {milliseconds['36 together']:.1f} ms, {together['ratio']['median']:.1f} times as fast as one by one."
        f"\nA batch of {one['batches']['smallest_for_90_percent']} images reaches 90 % of the best rate. Keeping freed"
        f" memory makes a step of `scaled-mnist/bcn`\n{spread(figures['allocator']['kept / given back'], 2)} times as"
        " fast.\n"
    )
    memory = figures["memory"]
    rows = [
        [f"`{name}`", *(f"{memory[f'{name}, {form}'] / 1e6:,.0f}" for form in ("ours", "literal"))]
        for name in dict.fromkeys(key.rsplit(", ", 1)[0] for key in memory)
    ]
    parts += ["## Peak memory of a training step, MB\n", grid(["", "ours", "literal"], rows)]
    parts.append("\nFour images with 36 questions each, or 64 images.\n")
    for table, baseline in (("table1", "baseline"), ("table3", "mlp")):
        printed = published_rows(TABLES[table].published or table)
        rows = [
            [
                name,
                *(f"{milliseconds:,.1f}" for milliseconds in (printed[name]["runtime"], row["milliseconds"])),
                *(f"{ratio:,.2f}" for ratio in (row["paper_ratio"], row["ratio"])),
            ]
            for name, row in one[table].items()
        ]
        headings = [
            "row",
            *(f"{what}, {whose}" for what in ("ms", f"times `{baseline}`") for whose in ("paper", "ours")),
        ]
        parts += [f"## Runtime of 100 samples, {table}\n", grid(headings, rows), ""]
    parts.append(
        "Inference; ours on one thread of a CPU, the paper's on a GPU;"
        "\nfor table 3, 20 questions about one image at a time.\n"
    )
    return "\n".join(parts)


def profile(figures: Figures) -> str:
    rows = [
        [form, f"{found['step']:,.0f}", f"{found['of which BatchNorm']:,.0f}", f"{found['sections']['Adam']:.1f}"]
        for form, found in figures.items()
    ]
    return (
        "## Where the time goes\n\n![The sections of a step](../../results/bench/profile.png)\n\n"
        f"{grid(['milliseconds for 1,000 questions', 'step', 'of which BatchNorm', 'Adam'], rows)}\n\n"
        "Sections are timed by themselves, so their sum may exceed the step.\n"
    )


def scaling(figures: Figures) -> str:
    multirn, rn = figures["multirn"], figures["rn"]
    return (
        "## Cost against the number of objects\n\n"
        "![Time and memory against objects](../../results/bench/scaling.png)\n\n"
        "One question, forward and backward, one thread. Beyond 400 objects the time grows as n to the power"
        f" {multirn['exponent']:.2f} for multiRN,\nwhose maximum sends its gradient to at most 256 positions, and"
        f" {rn['exponent']:.2f} for RN, which was measured up to {max(map(int, rn['seconds'])):,} objects;\n"
        f"multiply-accumulates grow with {multirn['exponent_of_macs']:.2f} and {rn['exponent_of_macs']:.2f}.\n"
    )


def data(figures: Figures) -> str:
    speedups = {name: found["speedup"] for name, found in figures.items() if "speedup" in found}
    rows = [
        [f"`{name}`", f"{one['median']:.1f} [{one['min']:.1f}, {one['max']:.1f}]"] for name, one in speedups.items()
    ]
    shares = [
        f"{name.capitalize()} takes {100 * found['share']:.1f} % of a step of `{found['model']}`."
        for name, found in figures.items()
        if "share" in found
    ]
    table = grid(["generator", "times as fast as the plain loop [least, most]"], rows)
    return "\n".join(["## Data\n", table, "", *shares, ""])


def runtime(figures: Figures) -> str:
    rows = [
        [
            f"{case}, {threads}",
            *(spread(row[way]["milliseconds"]) for way in ("eager", "onnxruntime")),
            spread(row["onnxruntime / eager"], 2),
        ]
        for threads, cases in figures.items()
        if "thread" in threads
        for case, row in cases.items()
    ]
    headings = ["", "PyTorch, ms", "onnxruntime, ms", "times as fast in onnxruntime"]
    return f"## `{figures['weights']}` exported\n\n{grid(headings, rows)}\n"


def drag(figures: Figures) -> str:
    time = spread(figures["milliseconds from a move to its answers"], 0)
    return (
        f"## The page\n\nFrom a move of the pointer to the answers to all 36 questions, with map and channels drawn, in"
        f" Chromium {figures['chromium'].split('.')[0]}:\n{time} ms over {figures['answers']} answers of"
        f" `{figures['weights']}`; server and browser share the cores.\n"
    )


def hours(figures: Figures) -> str:
    rows = [
        [name, f"{row['steps']:,}", f"{row['hours']:,.1f}", f"{row['gpu_hours']:,.2f}"] for name, row in figures.items()
    ]
    return (
        "## Hours of the paper's recipes\n\nFrom measured steps on one thread, and extrapolated from the operations for"
        " a GPU that reaches 5 teraflops, which nobody has measured here.\n\n"
        f"{grid(['recipe at `paper` scale', 'steps', 'hours, one core', 'hours, GPU, extrapolated'], rows)}\n"
    )


def render(figures: Figures) -> str:
    rows = [[part, spread(cost)] for part, cost in figures["milliseconds of CPU"].items()]
    return (
        "## Making clevr-like-v1\n\n"
        f"{grid(['an image of 128x128', 'CPU milliseconds'], rows)}\n\n"
        f"Over {figures['images']} images: 10,000 take {figures['CPU minutes for 10,000 images']:.0f} minutes of one"
        " core.\n"
    )


SECTIONS: dict[str, Callable[[Figures], str]] = {
    "speed": speed,
    "profile": profile,
    "scaling": scaling,
    "data": data,
    "runtime": runtime,
    "drag": drag,
    "hours": hours,
    "render": render,
}
