"""`bcn doctor`."""

import os
import platform
from pathlib import Path
from typing import Annotated

import typer

from bcn.cli import app
from bcn.errors import BcnError, printable

KERNELS = {16: "C with AVX-512", 8: "C with AVX2", 4: "C with NEON", 0: "torch (not compiled, or a CPU without AVX2)"}


@app.command()
def doctor(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Directories of runs, caches or data to verify (default: the machine).")
    ] = None,
    distributed: Annotated[
        bool, typer.Option("--distributed", help="One all-reduce per rank, under torchrun.")
    ] = False,
) -> None:
    """Verify every file of runs, caches or data sets; without one, print versions, cores, threads.

    With --distributed, tell whether the processes of a torchrun launch reach each other.
    """
    if distributed:
        _check_launch()
    elif paths:
        _verify(paths)
    else:
        _describe_machine()


def _verify(paths: list[Path]) -> None:
    from bcn.training.verify import verify

    bad = 0
    for path in paths:
        for finding in verify(path):
            bad += finding.status == "bad"
            print(printable(f"{finding.subject}: {finding.text}"), flush=True)
    if bad:
        raise BcnError(f"{bad} of these are damaged; what to do is said above")


def _describe_machine() -> None:
    from bcn.layers.fused.native import vector_width
    from bcn.training.environment import commit, default_threads, keep_memory, machine, versions

    here = machine()
    rows = {
        **versions(),
        "commit": (commit() or {}).get("id", "not a checkout"),
        "processor": here["processor"],
        "cores": here["cores"],
        "threads": default_threads(),
        "gpu": here["gpu"] or "none",
        "freed memory is kept": "yes" if keep_memory() else "no (not glibc)",
        "fused kernels": KERNELS[vector_width()],
    }
    for name, value in rows.items():
        print(f"{name:22}{value}")


def _check_launch() -> None:
    """One all-reduce over the ranks of a torchrun launch; the main rank prints a line for each."""
    import torch

    from bcn.training.distributed import process_group
    from bcn.training.environment import default_threads

    with process_group() as ranks:
        if "RANK" not in os.environ:
            raise BcnError("--distributed: start it with torchrun --nproc-per-node=2 -m bcn doctor --distributed")
        total = ranks.sum(torch.tensor(ranks.rank + 1, device=ranks.device)).item()
        threads = default_threads(ranks.local_world)
        lines = ranks.gather(
            f"rank {ranks.rank} of {ranks.world} on {platform.node()}, {ranks.device}, {threads} threads: "
            f"all-reduce {total}, expected {ranks.world * (ranks.world + 1) // 2}"
        )
        if ranks.is_main:  # lines that two processes print at once can run into each other
            print(*lines, sep="\n", flush=True)
