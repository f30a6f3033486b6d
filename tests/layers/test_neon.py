"""The tests of the loops in C once more, compiled for 64-bit ARM and run by QEMU, where both are installed."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "bcn" / "layers" / "fused" / "csrc"
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
FLAGS = "-O3 -ffp-contract=fast -Wno-psabi -static"  # those of setup.py

pytestmark = [
    pytest.mark.skipif(platform.machine() in ("aarch64", "arm64"), reason="test_fused runs them without an emulator"),
    pytest.mark.skipif(not (shutil.which(COMPILER) and shutil.which(EMULATOR)), reason=f"needs {COMPILER}, {EMULATOR}"),
]


def test_the_loops_are_exact_on_arm(tmp_path: Path) -> None:
    files = [HERE.parent / "helpers" / "serve_kernels.c", SOURCES / "pooled.c", SOURCES / "resample.c"]
    command = [COMPILER, *FLAGS.split(), *map(str, files), "-o", str(tmp_path / "kernels")]
    subprocess.run(command, check=True, capture_output=True)
    environment = os.environ | {
        "BCN_EMULATED_KERNELS": f"{EMULATOR} {tmp_path / 'kernels'}",
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(HERE.parent), os.environ.get("PYTHONPATH", "")]),
    }
    plugins = ["-p", "helpers.emulated_kernels", "-p", "no:cacheprovider", "--no-header", "-rA"]
    tests = [str(HERE / f"test_{name}.py") for name in ("fused", "deformable")]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", *plugins, "-k", "not torch", *tests],
        env=environment,
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]
    exact = set(re.findall(r"PASSED .*::(test_exact|test_maxima_are_exact)\[(.*)-vector4-", run.stdout))
    assert len(exact) == 15, exact
