"""Worker processes end with the process that started them, even one that is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STARTER = """
import os, time
from bcn.data.clevr_like.workers import make_workers

if __name__ == "__main__":
    pool = make_workers(2)
    pids = {future.result() for future in [pool.submit(os.getpid) for _ in range(20)]}
    waiting = [pool.submit(time.sleep, 600) for _ in range(2)]
    print(*pids, flush=True)
    time.sleep(600)
"""


def is_running(pid: int) -> bool:
    """Zombies, which nobody has asked for, have ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_the_process_that_started_them(tmp_path: Path, number: int) -> None:
    (tmp_path / "starter.py").write_text(STARTER)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, str(tmp_path / "starter.py")]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pids = [int(pid) for pid in starter.stdout.readline().split()]
        assert pids
        assert all(map(is_running, pids))
        starter.send_signal(number)
        starter.wait()
    until = time.monotonic() + 60
    while any(map(is_running, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(is_running, pids))
