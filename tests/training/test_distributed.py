"""Several processes: real torchrun launches over gloo against one process. Each costs seconds, so there are few."""

import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
from multiprocessing.queues import Queue
from pathlib import Path

import pytest
import torch
from helpers.blobs import plain
from helpers.command import exit_code, finish, start_python
from helpers.runs import assert_same
from torch.distributed import TCPStore  # type: ignore[attr-defined]

from bcn.errors import BcnError
from bcn.training.distributed import Ranks, process_group, read_ranks
from bcn.training.run import run_id
from bcn.training.weights import read_weights

COMMAND = str(Path(__file__).parents[1] / "helpers" / "blobs.py")
TRAIN = ("train", "blobs/plain", "--scale", "smoke", "--threads", "1", "--save-minutes", "1000", "--runs")
TWO = ("--standalone", "--nproc-per-node=2")
RUN = run_id(plain("smoke"), 0)
FORK = multiprocessing.get_context("fork")  # a new interpreter would spend seconds on importing torch


def begin(*arguments: str, torchrun: tuple[str, ...] = (), **environment: str) -> subprocess.Popen[str]:
    """Start the command of blobs.py, alone or under torchrun."""
    launcher = ("-m", "torch.distributed.run", *torchrun) if torchrun else ()
    return start_python(*launcher, COMMAND, *arguments, environment=environment)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    finish(begin(*TRAIN, str(folder), BLOBS_LOG=str(folder)))
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    finish(begin(*TRAIN, str(folder), torchrun=TWO, BLOBS_LOG=str(folder)))
    return folder


def test_two_processes_give_the_weights_of_one(alone: Path, two: Path) -> None:
    """A batch of 7 over two ranks, so that a mean of the ranks' means would be wrong."""
    for name in ("last", "best"):
        expected, given = (read_weights(folder / RUN / f"{name}.safetensors")[0] for folder in (alone, two))
        assert expected.keys() == given.keys()
        for key, tensor in expected.items():
            torch.testing.assert_close(given[key], tensor, rtol=1e-4, atol=1e-6)


def read(folder: Path, rank: int) -> list[list[int]]:
    lines = (folder / f"rank-{rank}.txt").read_text().splitlines()
    return [list(map(int, line.split())) for line in lines]


def test_two_processes_stop_early_together(tmp_path: Path) -> None:
    """With a learning rate that float32 rounds away no epoch is better than the first."""
    still = ("--set", "patience=1", "--set", "optim.lr=1e-12", "--set", "epochs=5")
    _, said = finish(begin(*TRAIN, str(tmp_path), *still, torchrun=TWO))
    (record,) = (json.loads(path.read_text()) for path in tmp_path.glob("*/record.json"))
    assert (record["ranks"], record["best_epoch"], record["stopped_after"]) == (2, 1, 2)
    assert said.count("not better in validation since epoch 1") == 1


def test_the_order_of_samples_is_the_same(alone: Path, two: Path) -> None:
    whole, first, second = read(alone, 0), read(two, 0), read(two, 1)
    assert len(whole) == 4 * (40 // 7)
    assert whole == [a + b for a, b in zip(first, second, strict=True)]
    assert {(len(a), len(b)) for a, b in zip(first, second, strict=True)} == {(4, 3)}


def test_evaluation_counts_every_sample_once(alone: Path, two: Path) -> None:
    expected, given = (json.loads((folder / RUN / "record.json").read_text()) for folder in (alone, two))
    assert given["ranks"] == 2
    assert given["metrics"]["test"]["all"]["total"] == 97
    assert given["metrics"]["test"]["all"] == expected["metrics"]["test"]["all"]
    assert given["metrics"]["test"]["localisation"] == pytest.approx(
        expected["metrics"]["test"]["localisation"], rel=1e-4
    )


def test_the_loss_of_a_curve_is_the_mean_over_the_ranks(alone: Path, two: Path) -> None:
    curves = [json.loads((folder / RUN / "record.json").read_text())["curve"] for folder in (alone, two)]
    expected, given = ([point["loss"] for point in curve] for curve in curves)
    assert given == pytest.approx(expected, rel=1e-4)


def assert_refused_once(said: str, sentence: str) -> None:
    """One sentence for both ranks, which end with 2 if torchrun does not end the second before that."""
    assert [line for line in said.splitlines() if line.startswith("bcn: ")] == [f"bcn: {sentence}"]
    first, *others = re.findall(r"exitcode *: *(-?\d+)", said)
    assert first == "2"
    assert set(others) <= {"2", "-15"}
    assert "gloo" not in said


def test_what_one_rank_refuses_all_refuse(tmp_path: Path) -> None:
    said = "".join(finish(begin(*TRAIN, str(tmp_path / "runs"), torchrun=TWO, BLOBS_MISSING="1"), code=1))
    assert_refused_once(said, "rank 1 has no blobs")
    assert not (tmp_path / "runs").exists()


def test_a_refusal_of_the_first_rank_in_the_middle_ends_the_others(tmp_path: Path) -> None:
    (tmp_path / RUN).mkdir()
    (tmp_path / RUN / "checkpoint").write_text("in the way of the first checkpoint")
    said = "".join(finish(begin(*TRAIN, str(tmp_path), torchrun=TWO), code=1))
    path = tmp_path / RUN / "checkpoint" / "step-00000005.safetensors"
    assert_refused_once(said, f"cannot write {path}: File exists; choose a directory that can be written")


def test_a_refusal_of_another_rank_in_the_middle_is_what_the_first_one_says(tmp_path: Path) -> None:
    said = "".join(finish(begin(*TRAIN, str(tmp_path), torchrun=TWO, BLOBS_TORN="13"), code=1))
    assert_refused_once(said, "batch 13 is torn")
    assert not (tmp_path / RUN / "record.json").exists()


def test_a_rank_that_does_not_answer_is_named(tmp_path: Path) -> None:
    launch = begin(*TRAIN, str(tmp_path), "--timeout", "0.05", torchrun=TWO, BLOBS_HANG="13")
    assert_refused_once(
        "".join(finish(launch, code=1)),
        "rank 1 did not answer for 0.05 minutes: see what holds it up (its machine, its disk, the network), or give a "
        "longer --timeout; the same command goes on from the checkpoint",
    )


def join(rank: int, port: int, silent: int, messages: "Queue[tuple[int, str, int]]") -> None:
    numbers = {"RANK": rank, "WORLD_SIZE": 3, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 3, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in numbers.items()})
    os.environ.update({"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_USE_AGENT_STORE": "True"})
    try:
        with process_group(timeout_minutes=0.03) as ranks:
            if rank == silent:
                signal.pause()
            ranks.sum(torch.ones(1))
    except BcnError as error:
        messages.put((rank, str(error).split(":")[0], error.reporter))


@pytest.mark.parametrize(("silent", "reporter"), [(0, 1), (2, 0)])
def test_the_ranks_that_wait_agree_on_who_is_silent(silent: int, reporter: int) -> None:
    """Of three, where each waits for another; the first that is not silent reports. The store is in this process."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    messages: Queue[tuple[int, str, int]] = FORK.Queue()
    processes = [FORK.Process(target=join, args=(rank, store.port, silent, messages)) for rank in range(3)]
    for process in processes:
        process.start()
    heard = sorted(messages.get(timeout=600) for _ in range(2))
    for process in processes:
        process.kill()
        process.join()
    sentence = f"rank {silent} did not answer for 0.03 minutes"
    assert heard == [(rank, sentence, reporter) for rank in range(3) if rank != silent]


def test_a_killed_worker_is_restarted_and_the_run_ends_the_same(two: Path, tmp_path: Path) -> None:
    """Within an epoch, of which each rank knows a part of the loss: there is a checkpoint of every step."""
    launch = begin(*TRAIN, str(tmp_path), "--save-minutes", "0", torchrun=(*TWO, "--max-restarts=1"), BLOBS_KILL="13")
    said = "".join(finish(launch))
    assert re.search("going on at step (11|12) of 20", said)  # the other rank is stopped at step 12, or as it saves it
    assert json.loads((tmp_path / RUN / "record.json").read_text())["sessions"] == 2
    assert_same(tmp_path / RUN, two / RUN)


def test_two_nodes_on_loopback(two: Path, tmp_path: Path) -> None:
    """The store where the agents meet is here, so that nobody else can take its port before they do."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    meet = ("--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{store.port}", "--rdzv-conf=is_host=0", "--rdzv-id=7")
    node = ("--nnodes=2", "--nproc-per-node=1", *meet, "--local-addr=127.0.0.1")
    for agent in [begin(*TRAIN, str(tmp_path), torchrun=node) for _ in range(2)]:
        finish(agent)
    assert (tmp_path / RUN / "last.safetensors").read_bytes() == (two / RUN / "last.safetensors").read_bytes()


def test_doctor_reaches_every_rank() -> None:
    said = "".join(finish(begin("doctor", "--distributed", torchrun=TWO)))
    lines = [line for line in said.splitlines() if line.startswith("rank ")]
    assert [line.split(" on ")[0] for line in lines] == ["rank 0 of 2", "rank 1 of 2"]
    assert all(line.endswith("all-reduce 3, expected 3") for line in lines)


LEAVE = """
import os, torch
from bcn.training.distributed import process_group
with process_group():
    weight = torch.nn.Parameter(torch.ones(3))
    weight.sum().backward()
    torch.optim.SGD([weight]).step()
print(*(open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the names of threads where Linux has them")
def test_no_thread_outlives_the_group() -> None:
    """One that is at work while the interpreter ends takes the process with it (SIGABRT)."""
    launch = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python", sys.executable, "-c", LEAVE)
    said = subprocess.run(launch, capture_output=True, text=True, check=True)
    assert said.stdout
    assert "gloo" not in said.stdout


TORCHRUN = {
    "RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "localhost",
    "MASTER_PORT": "29500",
}


def test_ranks_are_read_from_torchrun() -> None:
    assert read_ranks(TORCHRUN) == Ranks(1, 4, 1, 2)
    assert read_ranks({"PATH": "/bin", "SLURM_STEP_NUM_TASKS": "1", "SLURM_NTASKS": "2"}) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"MASTER_ADDR": None}, "but not MASTER_ADDR: this launch is not distributed"),
        ({name: None for name in TORCHRUN if name != "RANK"}, "RANK set but not WORLD_SIZE"),
        ({"WORLD_SIZE": "1"}, "cannot be"),
        ({"RANK": "4"}, "cannot be"),
        ({"LOCAL_RANK": "2"}, "cannot be"),
        ({"RANK": "two"}, "must be whole numbers"),
        ({"MASTER_PORT": "http"}, "must be whole numbers"),
        (
            {**dict.fromkeys(TORCHRUN), "SLURM_STEP_NUM_TASKS": "2"},
            "srun started 2 processes that know nothing of each other",
        ),
        ({**dict.fromkeys(TORCHRUN), "OMPI_COMM_WORLD_SIZE": "8"}, "mpirun started 8 processes"),
        ({**dict.fromkeys(TORCHRUN), "SLURM_STEP_NUM_TASKS": "x"}, "SLURM_STEP_NUM_TASKS says so"),
    ],
)
def test_a_launch_that_is_not_distributed_is_an_error(change: dict[str, str | None], message: str) -> None:
    environment = {name: value for name, value in {**TORCHRUN, **change}.items() if value is not None}
    with pytest.raises(BcnError, match=message):
        read_ranks(environment)


def test_the_command_line_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for rank in (None, "0"):
        monkeypatch.delenv("RANK", raising=False)
        if rank is not None:
            monkeypatch.setenv("RANK", rank)
        assert exit_code("doctor", "--distributed") == 2
        assert "torchrun" in capsys.readouterr().err
