"""docs/results/measurements.md: what the benchmarks measured, made by `bcn report` from results/bench/."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bcn.errors import BcnError
from bcn.io import atomic_write, read_record
from bcn.paper.published import published_rows
from bcn.paper.render import grid
from bcn.paper.tables import TABLES

INTRODUCTION = """# Measurements

Made by `bcn report` from the records in `results/bench/`, which hold commit, versions, machine and load;
[performance.md](../reference/performance.md) says what they mean. What is compared was measured by turns in one
process: medians over rounds [first and third quartile], ratios taken round by round. "reference" is the reference
implementation of the equations (`bcn/layers/reference.py`).
"""
Measurements = dict[str, Any]


def write_measurements(page: Path, bench: Path) -> list[Path]:
    """Write the page, unless nothing was measured; benchmarks without a record are left out."""
    parts = [_section(name, bench / f"{name}.json") for name in SECTIONS if (bench / f"{name}.json").exists()]
    if not parts:
        return []
    with atomic_write(page) as temporary:
        temporary.write_text("\n".join([INTRODUCTION, *parts]), encoding="utf-8")
    return [page]


def _section(name: str, path: Path) -> str:
    remedy = f"measure it again with `bcn bench {name}`"
    record = read_record(path, remedy)
    try:
        commit = f", commit {record['commit']['id'][:7]}" if record["commit"] else ""
        source = f"<sub>`bcn bench {name}`, {record['time'][:10]}{commit}</sub>\n"
        return f"{SECTIONS[name](record['measurements'])}\n{source}"
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise BcnError(f"{path} is not the record of a benchmark ({error}); {remedy}") from error


def spread(value: Measurements, digits: int = 1) -> str:
    return f"{value['median']:,.{digits}f} [{value['low']:,.{digits}f}, {value['high']:,.{digits}f}]"


def speed(measured: Measurements) -> str:
    threads = {name: measured[name] for name in measured if "thread" in name}
    one = measured["1 thread"]
    parts = [_training_speed(threads), _in_words(one, measured["allocator"])]
    return "\n".join([*parts, _memory(measured["memory"]), _runtimes(one)])


def _training_speed(threads: Measurements) -> str:
    rows = [
        [*(f"`{name}`" for name in pair.split(" / ")), *(spread(each["training_speed"]["ratios"][pair]) for each in of)]
        for of in [list(threads.values())]
        for pair in of[0]["training_speed"]["ratios"]
    ]
    return (
        "## Training: speed-up over a baseline\n\n"
        f"{grid(['ours', 'baseline', *threads], rows)}\n\n"
        '"trained" has the shipped weights and real images, where most activations are zero; all others have random'
        "\nweights and inputs.\n"
    )


def peak(measured: Measurements) -> str:
    rows = [
        [
            f"{mode}, {questions}",
            *(
                spread(part[questions][mode][key], 2)
                for part in measured.values()
                for key in ("fraction", "cpu_fraction")
            ),
        ]
        for questions, modes in next(iter(measured.values())).items()
        for mode in modes
        if mode != "product_gflops"
    ]
    headings = [heading for threads in measured for heading in (threads, f"{threads}, CPU time")]
    return (
        f"## Fraction of the matmul peak, `multirn-h`, batch size 16\n\n{grid(['', *headings], rows)}\n\n"
        '"CPU time" is that of the calling thread, which other processes do not lengthen. "trained" has the shipped'
        "\nweights and real images: products with zero are skipped, and counted as done.\n"
    )


def _in_words(one: Measurements, allocator: Measurements) -> str:
    rates, batched = one["training_speed"]["answers_per_second"], one["batched_questions"]["ratio"]["median"]
    return (
        f"Questions per second in training, one thread: `multirn-h` {spread(rates['multirn-h'], 0)}, trained"
        f" {spread(rates['multirn-h, trained'], 0)}, `multirn` {spread(rates['multirn'], 0)}."
        f"\nAll 36 questions about an image in one call are {batched:.1f} times as fast as one by one."
        f"\nBatch size {one['batch_sizes']['smallest_for_90_percent']} reaches 90 % of the best rate. Keeping freed"
        f" memory makes a step of `scaled-mnist/bcn`\n{spread(allocator['kept / returned'], 2)} times as"
        " fast.\n"
    )


def _memory(memory: Measurements) -> str:
    rows = [
        [f"`{name}`", *(f"{memory[f'{name}, {form}'] / 1e6:,.0f}" for form in ("ours", "reference"))]
        for name in dict.fromkeys(key.rsplit(", ", 1)[0] for key in memory)
    ]
    table = grid(["", "ours", "reference"], rows)
    return f"## Peak memory of a training step, MB\n\n{table}\n\nFour images with 36 questions each, or 64 images.\n"


def _runtimes(one: Measurements) -> str:
    parts = []
    for table, baseline in (("table1", "baseline"), ("table3", "mlp")):
        published = published_rows(TABLES[table].published or table)
        rows = [
            [
                name,
                *(f"{milliseconds:,.1f}" for milliseconds in (published[name]["runtime"], row["milliseconds"])),
                *(f"{ratio:,.2f}" for ratio in (row["paper_ratio"], row["ratio"])),
            ]
            for name, row in one[table].items()
        ]
        columns = [f"{what}, {whose}" for what in ("ms", f"times `{baseline}`") for whose in ("paper", "ours")]
        parts += [f"## Runtime of 100 samples, {table}\n", grid(["row", *columns], rows), ""]
    note = "Inference; ours on one thread of a CPU, the paper's on a GPU; table 3 with 20 questions per image.\n"
    return "\n".join([*parts, note])


def baselines(measured: Measurements) -> str:
    parts = {"milliseconds": ("CPU ms", 3), "times multirn": ("times `multirn`", 2)}
    kinds = [f"{kind}, {heading}" for kind in ("training", "inference") for heading, _ in parts.values()]
    rows = [
        [
            f"`{name}`",
            *(
                spread(row[kind][part], digits)
                for kind in ("training", "inference")
                for part, (_, digits) in parts.items()
            ),
        ]
        for name, row in sorted(measured.items(), key=lambda item: float(item[1]["training"]["milliseconds"]["median"]))
    ]
    return (
        "## Models of Sort-of-CLEVR: CPU time of one answer\n\nOne thread; 36 questions about each of 8 images, or"
        f" about 12 objects (`-states`), random.\n\n{grid(['model', *kinds], rows)}\n"
    )


def profile(measured: Measurements) -> str:
    rows = [
        [form, f"{cost['step']:,.0f}", f"{cost['of which BatchNorm']:,.0f}", f"{cost['sections']['Adam']:.1f}"]
        for form, cost in measured.items()
    ]
    return (
        "## Where the time goes\n\n![The sections of a step](../../results/bench/profile.png)\n\n"
        f"{grid(['milliseconds for 1,000 questions', 'step', 'of which BatchNorm', 'Adam'], rows)}\n\n"
        "Sections are timed by themselves, so their sum may exceed the step.\n"
    )


def scaling(measured: Measurements) -> str:
    multirn, rn = measured["multirn"], measured["rn"]
    return (
        "## Cost against the number of objects\n\n"
        "![Time and memory against objects](../../results/bench/scaling.png)\n\n"
        "One question, forward and backward, one thread. Beyond 400 objects the time grows as n to the power"
        f" {multirn['exponent']:.2f} for multiRN,\nwhose maximum sends its gradient to at most 256 positions, and"
        f" {rn['exponent']:.2f} for RN, which was measured up to {max(map(int, rn['seconds'])):,} objects;\n"
        f"multiply-accumulates grow with {multirn['exponent_of_macs']:.2f} and {rn['exponent_of_macs']:.2f}.\n"
    )


def data(measured: Measurements) -> str:
    speedups = {name: result["speedup"] for name, result in measured.items() if "speedup" in result}
    rows = [
        [f"`{name}`", f"{ratio['median']:.1f} [{ratio['min']:.1f}, {ratio['max']:.1f}]"]
        for name, ratio in speedups.items()
    ]
    loading = [
        f"{name.capitalize()} takes {100 * result['fraction']:.1f} % of a training step of `{result['model']}`."
        for name, result in measured.items()
        if "fraction" in result
    ]
    table = grid(["generator", "speed-up over the plain loop [min, max]"], rows)
    return "\n".join(["## Data\n", table, "", *loading, ""])


def runtime(measured: Measurements) -> str:
    rows = [
        [
            f"{case}, {threads}",
            *(spread(row[engine]["milliseconds"], 2) for engine in ("eager", "onnxruntime")),
            spread(row["onnxruntime / eager"], 2),
        ]
        for threads, cases in measured.items()
        if "thread" in threads
        for case, row in cases.items()
    ]
    headings = ["", "PyTorch, ms", "onnxruntime, ms", "speed-up of onnxruntime"]
    return f"## `{measured['weights']}` exported\n\n{grid(headings, rows)}\n"


def page_latency(measured: Measurements) -> str:
    milliseconds = spread(measured["milliseconds from a move to its answers"], 0)
    return (
        "## Latency of the page\n\nFrom a move of the pointer to the answers to all 36 questions, with map and channels"
        f" drawn, in Chromium {measured['chromium'].split('.')[0]}:\n{milliseconds} ms over {measured['answers']}"
        f" answers of `{measured['weights']}`; server and browser share the cores.\n"
    )


def serve(measured: Measurements) -> str:
    question, file, memory = (
        measured[name] for name in ("milliseconds of a question", "milliseconds of a file", "megabytes")
    )
    uploads = measured["slow uploads"]
    return (
        f"## The server under load\n\n{measured['clients']} clients for {measured['seconds']:.0f} s, each with one"
        f" question about an image as soon as the last is answered: {measured['requests']:,} answers\nof"
        f" `{measured['weights']}`, {measured['errors']} errors, median {question['median']:,.0f} ms, 99th percentile"
        f" {question['p99']:,.0f} ms ({measured['p99 / median']:.2f} times the median).\nA file of the page took"
        f" {file['median']:.0f} ms meanwhile. Memory was {memory['after a quarter']:.0f} MB after a quarter of the time"
        f" and {memory['at the end']:.0f} MB at the end.\n{uploads['uploads']} uploads of 8 MB that never end cost"
        f" {uploads['megabytes']:.0f} MB: {uploads['held']} were held, {uploads['refused']} refused. Clients"
        " and server share the cores.\n"
    )


def hours(measured: Measurements) -> str:
    rows = [
        [name, f"{row['steps']:,}", f"{row['hours']:,.1f}", f"{row['gpu_hours']:,.2f}"]
        for name, row in measured.items()
    ]
    return (
        "## Hours of the paper's recipes\n\nOne core: from measured steps on one thread. GPU: extrapolated from the"
        " FLOPs to 5 TFLOP/s, which nobody has measured here.\n\n"
        f"{grid(['recipe at `paper` scale', 'steps', 'hours, one core', 'hours, GPU, extrapolated'], rows)}\n"
    )


def render(measured: Measurements) -> str:
    rows = [[part, spread(cost)] for part, cost in measured["milliseconds of CPU"].items()]
    return (
        "## Making clevr-like-v1\n\n"
        f"{grid(['an image of 128x128', 'CPU milliseconds'], rows)}\n\n"
        f"Over {measured['images']} images: 10,000 take {measured['CPU minutes for 10,000 images']:.0f} minutes of one"
        " core.\n"
    )


SECTIONS: dict[str, Callable[[Measurements], str]] = {
    "speed": speed,
    "peak": peak,
    "baselines": baselines,
    "profile": profile,
    "scaling": scaling,
    "data": data,
    "runtime": runtime,
    "page-latency": page_latency,
    "serve": serve,
    "hours": hours,
    "render": render,
}
