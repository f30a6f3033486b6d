"""`bcn bench speed | baselines | scaling | data | runtime | page-latency | serve | gpu | profile | hours | render`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from bcn.cli import MAINTAINERS, app
from bcn.cli.device import DeviceOption
from bcn.io import check_writable, write_record

bench = typer.Typer(help="Measure speed: everything by turns in one process.", no_args_is_help=True)
app.add_typer(bench, name="bench", rich_help_panel=MAINTAINERS)

RoundsOption = Annotated[int, typer.Option(min=1, help="Rounds, in each of which every case runs in turn.")]
SecondsOption = Annotated[float, typer.Option(min=0, help="Seconds that a case runs in a round, at least one call.")]
OutOption = Annotated[Path, typer.Option(help="Where the record is written, as JSON.", callback=check_writable)]


@bench.command()
def speed(
    rounds: RoundsOption = 7, seconds: SecondsOption = 1.0, out: OutOption = Path("results/bench/speed.json")
) -> None:
    """Our implementation against the reference: speed and memory."""
    from bcn.bench.speed import bench_speed

    measurements = bench_speed(rounds=rounds, seconds=seconds, say=_say)
    _write("speed", measurements, out)


@bench.command()
def peak(
    rounds: RoundsOption = 7, seconds: SecondsOption = 1.0, out: OutOption = Path("results/bench/peak.json")
) -> None:
    """Training and inference of multirn-h as a fraction of the rate of a large matrix product."""
    from bcn.bench.peak import bench_peak

    _write("peak", bench_peak(rounds=rounds, seconds=seconds, say=_say), out)


@bench.command()
def baselines(
    rounds: RoundsOption = 5, seconds: SecondsOption = 0.5, out: OutOption = Path("results/bench/baselines.json")
) -> None:
    """What a training step and an answer cost in every model of Sort-of-CLEVR, beside multiRN."""
    from bcn.bench.baselines import bench_baselines

    _write("baselines", bench_baselines(rounds=rounds, seconds=seconds, say=_say), out)


@bench.command()
def scaling(
    rounds: RoundsOption = 5,
    seconds: SecondsOption = 0.5,
    longest: Annotated[float, typer.Option(help="Leave out what takes more seconds than this a call.")] = 30.0,
    out: OutOption = Path("results/bench/scaling.json"),
) -> None:
    """Time and memory of multiRN and RN against the number of objects, with a plot next to the record."""
    from bcn.bench.scaling import bench_scaling, draw

    measurements = bench_scaling(rounds=rounds, seconds=seconds, longest=longest, say=_say)
    _write("scaling", measurements, out, draw)


@bench.command()
def data(
    rounds: RoundsOption = 5,
    out: OutOption = Path("results/bench/data.json"),
    data: Annotated[Path | None, typer.Option(help="Where the original data lies (default: BCN_DATA).")] = None,
) -> None:
    """Each generator against a plain loop over the same specification, and the loader's part of a training step."""
    from bcn.bench.data import bench_data

    measurements = bench_data(rounds=rounds, say=_say, data=data)
    _write("data", measurements, out)


@bench.command()
def runtime(
    weights: Annotated[
        str, typer.Option(help="Name of shipped weights, a run's directory or a weights file.")
    ] = "sort-of-clevr/multirn-h",
    rounds: RoundsOption = 7,
    seconds: SecondsOption = 1.0,
    out: OutOption = Path("results/bench/runtime.json"),
) -> None:
    """A trained model in PyTorch and, exported, in onnxruntime: latency and answers per second."""
    from bcn.bench.runtime import bench_runtime
    from bcn.inference.reasoner import load

    measurements = bench_runtime(load(weights), rounds=rounds, seconds=seconds, say=_say)
    _write("runtime", measurements, out)


@bench.command()
def page_latency(
    weights: Annotated[
        str, typer.Option(help="Name of shipped weights for Sort-of-CLEVR, a run's directory or a weights file.")
    ] = "sort-of-clevr/multirn-h",
    rounds: Annotated[int, typer.Option(min=1, help="How often the page is opened and an object dragged.")] = 5,
    out: OutOption = Path("results/bench/page-latency.json"),
) -> None:
    """The page of `bcn serve` in Chromium: the latency from a move of the pointer to the new answers."""
    from bcn.bench.page_latency import bench_page_latency

    _write("page-latency", bench_page_latency(weights, rounds=rounds, say=_say), out)


@bench.command()
def serve(
    weights: Annotated[
        str, typer.Option(help="Name of shipped weights for Sort-of-CLEVR, a run's directory or a weights file.")
    ] = "sort-of-clevr/multirn-h",
    clients: Annotated[int, typer.Option(min=1, help="How many clients ask at once.")] = 256,
    seconds: Annotated[float, typer.Option(min=1, help="How long they do.")] = 60.0,
    uploads: Annotated[int, typer.Option(min=1, help="How many uploads never end.")] = 100,
    out: OutOption = Path("results/bench/serve.json"),
) -> None:
    """`bcn serve` with many clients at once and slow uploads: errors, latency and memory (on Linux)."""
    from bcn.bench.load import bench_serve

    _write("serve", bench_serve(weights, clients=clients, seconds=seconds, uploads=uploads, say=_say), out)


@bench.command()
def gpu(
    device: DeviceOption = None,
    precision: Annotated[str | None, typer.Option(help="float32, tf32 or bf16 (default: bf16, the recipe's).")] = None,
    images: Annotated[
        int | None, typer.Option(min=1, help="Images of a step (default: the recipe's 64; 2 on the CPU).")
    ] = None,
    rounds: RoundsOption = 7,
    seconds: SecondsOption = 2.0,
    out: OutOption = Path("results/bench/gpu.json"),
) -> None:
    """Training steps of fast/multirn-h on a GPU: speed, operators, host waits, memory, share of the matmul peak."""
    from bcn.bench.gpu import bench_gpu

    measurements = bench_gpu(
        device=device, precision=precision, images=images, rounds=rounds, seconds=seconds, say=_say
    )
    _write("gpu", measurements, out)
    if measurements["smoke_test"]:
        print("a smoke test on the CPU: it shows that the benchmark works, and nothing about GPUs", file=sys.stderr)


@bench.command()
def profile(
    rounds: RoundsOption = 7, seconds: SecondsOption = 0.5, out: OutOption = Path("results/bench/profile.json")
) -> None:
    """Where the time of a training step goes, reference and ours, with a picture next to the record."""
    from bcn.bench.profile import bench_profile, draw

    measurements = bench_profile(rounds=rounds, seconds=seconds, say=_say)
    _write("profile", measurements, out, draw)


@bench.command()
def hours(out: OutOption = Path("results/bench/hours.json")) -> None:
    """Hours of every recipe at paper scale: on one thread, from measured steps, and on a GPU, from FLOPs."""
    from bcn.paper.hours import bench_hours

    measurements = bench_hours(say=_say)
    _write("hours", measurements, out)


@bench.command()
def render(
    images: Annotated[int, typer.Option(min=1, help="How many images are made.")] = 100,
    out: OutOption = Path("results/bench/render.json"),
) -> None:
    """CPU time of an image of clevr-like-v1: scene, questions, path tracing, PNG."""
    from bcn.bench.render import bench_render

    _write("render", bench_render(images=images, say=_say), out)


def _write(
    benchmark: str, measurements: dict[str, Any], out: Path, draw: Callable[[dict[str, Any], Path], None] | None = None
) -> None:
    from bcn.bench.measure import record

    write_record(out, record(benchmark, measurements))
    _print(measurements)
    print(f"written: {out}")
    if draw is not None:
        draw(measurements, out.with_suffix(".png"))
        print(f"written: {out.with_suffix('.png')}")


def _say(what: str) -> None:
    print(f"{what} ...", file=sys.stderr, flush=True)


def _print(measurements: dict[str, Any], depth: int = 0) -> None:
    """Nested measurements as indented lines."""
    for name, value in measurements.items():
        if isinstance(value, dict):
            print(f"{'  ' * depth}{name}")
            _print(value, depth + 1)
        else:
            print(f"{'  ' * depth}{name:34} {f'{value:.4g}' if isinstance(value, float) else value}")
