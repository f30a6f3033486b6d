"""Run `bcn`, in this process or as one of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

import pytest
from typer.testing import CliRunner, Result

from bcn.cli import app, main

ROOT = Path(__file__).parents[2]


def run_bcn(*arguments: object) -> str:
    """What `bcn` prints on standard output, run in this process; what it raises, it raises here."""
    return invoke_bcn(*arguments).stdout


def invoke_bcn(*arguments: object) -> Result:
    """The same with standard error as `.stderr`, and both as `.output`."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def exit_code(*arguments: object) -> int:
    """The exit code of `bcn`, run in this process, which says on standard error what it refuses."""
    with patch.object(sys, "argv", ["bcn", *map(str, arguments)]), pytest.raises(SystemExit) as exit:
        main()
    return int(exit.value.code or 0)


def start_bcn(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    """`bcn` as a process of its own, on one thread; its output can be read."""
    return start_python("-m", "bcn", *arguments, environment=environment)


def start_python(
    *arguments: object, cwd: Path | None = None, environment: Mapping[str, str] = MappingProxyType({})
) -> subprocess.Popen[str]:
    """A Python that imports the package from this checkout; its output can be read."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**inherited, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **environment},
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    """Its standard output and error, when it has ended with this exit code."""
    try:
        out, err = process.communicate(timeout=900)
    except subprocess.TimeoutExpired:
        process.terminate()  # torchrun takes its workers with it
        out, err = process.communicate()
    assert process.returncode == code, err
    return out, err
