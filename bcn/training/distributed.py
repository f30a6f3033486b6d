"""Distributed training: processes started by torchrun, which communicate by gloo on CPUs and NCCL on GPUs."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # before a group exists, which its defaults would keep alive
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.training.device import CPU, find_device
from bcn.training.interrupts import Interrupted

TORCHRUN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
NUMBERS = (*TORCHRUN[:4], "MASTER_PORT")
OTHER_LAUNCHERS = {"SLURM_STEP_NUM_TASKS": "srun", "OMPI_COMM_WORLD_SIZE": "mpirun", "PMI_SIZE": "mpiexec"}
LOST = ("peer", "gloo", "NCCL", "Broken pipe")
"""words in the errors of a collective whose other side is gone"""
TIMEOUT_MINUTES = 30.0
PATIENCE_SECONDS = 30.0
"""how much later than the first of the other ranks the last of them may have begun to wait for one that is silent"""


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1
    device: torch.device = CPU

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, the one process that writes and prints."""
        return self.rank == 0

    def share(self, index: np.ndarray) -> np.ndarray:
        """This rank's part of the indices. The parts of all ranks are the indices in their order, without padding.

        >>> [Ranks(rank, 2).share(np.arange(5)).tolist() for rank in (0, 1)]
        [[0, 1, 2], [3, 4]]
        """
        return np.array_split(index, self.world)[self.rank]

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum of every rank's tensor."""
        if self.world > 1:
            dist.all_reduce(tensor)
        return tensor

    def mean_(self, tensor: Tensor) -> Tensor:
        """The mean of every rank's tensor, put in its place."""
        return self.sum(tensor).div_(self.world)

    def broadcast_object(self, value: Any) -> Any:
        """The main rank's value, on every rank."""
        if self.world == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values, src=0, device=self.device)
        return values[0]

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value, in the order of the ranks, on every rank."""
        values = [value] * self.world
        if self.world > 1:
            dist.all_gather_object(values, value)
        return values

    @contextmanager
    def raise_on_all(self) -> Iterator[None]:
        """A BcnError that one rank raises in this block is raised on every rank. No collectives in it."""
        raised = None
        try:
            yield
        except BcnError as error:
            raised = error
        messages = [message for message in self.gather(raised and str(raised)) if message is not None]
        if messages:
            raise BcnError(messages[0]) from raised

    def sync_buffers(self, model: nn.Module) -> None:
        """Give every rank the main one's weights and BatchNorm statistics."""
        if self.world > 1:
            for tensor in model.state_dict().values():
                dist.broadcast(tensor, src=0)


def read_ranks(environment: Mapping[str, str] = os.environ) -> Ranks | None:
    """What torchrun says about this process; None for a process that was started alone.

    >>> read_ranks({}) is None
    True
    """
    given = [name for name in TORCHRUN if name in environment]
    if not given:
        for variable, launcher in OTHER_LAUNCHERS.items():
            if environment.get(variable, "") not in ("", "0", "1"):
                raise BcnError(
                    f"{launcher} started {environment[variable]} processes that know nothing of each other "
                    f"({variable} says so); let {launcher} start one torchrun per node, as docs/guides/cluster.md shows"
                )
        return None
    if missing := [name for name in TORCHRUN if name not in environment]:
        raise BcnError(
            f"{', '.join(given)} set but not {', '.join(missing)}: this launch is not distributed; "
            "start it with torchrun, or unset them"
        )
    try:
        rank, world, local_rank, local_world, _ = (int(environment[name]) for name in NUMBERS)
    except ValueError:
        raise BcnError(f"{', '.join(NUMBERS)} must be whole numbers; start the command with torchrun") from None
    ranks = Ranks(rank, world, local_rank, local_world)
    if not (0 <= ranks.local_rank < ranks.local_world <= ranks.world and ranks.local_rank <= ranks.rank < ranks.world):
        raise BcnError(
            f"rank {ranks.rank} of {ranks.world}, {ranks.local_rank} of {ranks.local_world} on this machine, "
            "cannot be: start the command with torchrun"
        )
    return ranks


@contextmanager
def process_group(device: str | None = None, *, timeout_minutes: float = TIMEOUT_MINUTES) -> Iterator[Ranks]:
    """Join the other processes, check that they are all there, and leave them at the end.

    Others only see that a rank is gone. The first to leave puts its reason into the store, and all end with that.

    Args:
        device: where the ranks compute, see `find_device`.
        timeout_minutes: how long the others wait for a rank before they name it and end.
    """
    ranks = read_ranks()
    if ranks is None:
        yield Ranks(device=find_device(device))
        return
    local_rank = ranks.local_rank if ranks.local_world > 1 else None
    ranks = replace(ranks, device=find_device(device, local_rank=local_rank))
    if ranks.device.type == "cuda":
        torch.cuda.set_device(ranks.device)
    backend = "cpu:gloo,cuda:nccl" if ranks.device.type == "cuda" else "gloo"
    timeout = timedelta(minutes=timeout_minutes)
    try:
        store = _store(ranks, timeout)
        dist.init_process_group(backend, store=store, rank=ranks.rank, world_size=ranks.world, timeout=timeout)
    except RuntimeError as error:
        place, reason = ":".join(os.environ[name] for name in TORCHRUN[4:]), str(error).split("\n")[0]
        raise BcnError(f"rank {ranks.rank} of {ranks.world} found no others at {place} ({reason})") from error
    try:
        present = int(ranks.sum(torch.ones((), dtype=torch.int64, device=ranks.device)))
        if present != ranks.world:
            raise BcnError(f"{present} of {ranks.world} processes answered: this launch is not distributed")
        yield ranks
    except (BcnError, Interrupted) as reason:
        if first := _read_reason(store):
            raise first from reason
        _write_reason(store, reason)
        raise
    except RuntimeError as error:
        if not any(word in str(error) for word in LOST):
            raise
        cause = _read_reason(store) or _find_silent(store, ranks, timeout, error)
        _write_reason(store, cause)
        raise cause from error
    finally:
        dist.destroy_process_group()


def _find_silent(store: Any, ranks: Ranks, timeout: timedelta, error: RuntimeError) -> BcnError:
    """What to say of a failed collective: the ranks that wait write that they do, so those that did not are silent."""
    silent = []
    if "timed out" in str(error).lower():
        waiting = [f"waiting-{rank}" for rank in range(ranks.world)]
        with suppress(RuntimeError):  # a store that is gone as well, or a rank that does not come
            store.set(waiting[ranks.rank], "")
            store.wait(waiting, min(timeout, timedelta(seconds=PATIENCE_SECONDS)))
        with suppress(RuntimeError):
            silent = [rank for rank, key in enumerate(waiting) if not store.check([key])]
    if not silent:
        return BcnError("another process of this run ended; the same command goes on from the checkpoint")
    reason = BcnError(
        f"rank {' and '.join(map(str, silent))} did not answer for {timeout.total_seconds() / 60:g} minutes: see what "
        "holds it up (its machine, its disk, the network), or give a longer --timeout; the same command goes on from "
        "the checkpoint"
    )
    first = ranks.rank - ranks.local_rank
    reason.reporter = min(rank - first for rank in range(first, first + ranks.local_world) if rank not in silent)
    return reason


def _write_reason(store: Any, reason: BcnError | Interrupted) -> None:
    with suppress(RuntimeError):  # a store that is gone as well
        signal, reporter = (reason.signal, 0) if isinstance(reason, Interrupted) else (0, reason.reporter)
        store.set("left", json.dumps([signal, reporter, str(reason)]))
        store.get("left")  # it has arrived before anyone can see that this process is gone


def _read_reason(store: Any) -> BcnError | Interrupted | None:
    with suppress(RuntimeError):
        if store.check(["left"]):
            signal, reporter, sentence = json.loads(store.get("left"))
            if signal:
                return Interrupted(signal)
            reason = BcnError(sentence)
            reason.reporter = reporter
            return reason
    return None


def _store(ranks: Ranks, timeout: timedelta) -> Any:
    """Where the ranks find each other.

    torchrun's own store outlives a restart, and gloo would find the addresses of dead processes in it: so every attempt
    looks under a name of its own. Agents of several nodes count attempts each for itself; docs/guides/cluster.md says
    what to set there.
    """
    host, port, agents = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), ranks.world // ranks.local_world
    kept = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    master = ranks.is_main and not kept
    store = dist.TCPStore(host, port, ranks.world, is_master=master, timeout=timeout)  # type: ignore[attr-defined]
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") if agents == 1 else "0"
    return dist.PrefixStore(f"attempt-{attempt}", store)  # type: ignore[attr-defined]
