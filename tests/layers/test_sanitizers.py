"""The tests of the loops in C once more, compiled with AddressSanitizer and UndefinedBehaviorSanitizer.

Both instruction sets run where the CPU has them; torch's memory is watched too, since the sanitizer's `malloc` comes
first.
"""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "bcn" / "layers" / "fused" / "csrc"
FLAGS = "-shared -fPIC -O0 -g1 -ffp-contract=fast -Wno-psabi -fsanitize=address,undefined -fno-sanitize-recover=all"

SHORT_BIAS = """
import ctypes, torch
import helpers.sanitised_kernels as kernels
from bcn.layers.fused import native
from bcn.layers.fused.threads import Piece

unchecked = lambda tensor, *_: ctypes.c_void_p(None if tensor is None else tensor.data_ptr())
native.pointer = unchecked
base, shift, weight, total = torch.rand(1, 3, 64), torch.rand(1, 64), torch.rand(64, 64), torch.zeros(1, 64)
native._call_sum([Piece(0, 0, 1)], base, shift, [weight], [torch.rand(32)], total, None)
"""

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or shutil.which("gcc") is None, reason="needs gcc and its sanitizers"
)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("sanitised")
    for name in ("pooled", "resample"):
        command = ["gcc", *FLAGS.split(), "-o", str(folder / f"{name}.so"), str(SOURCES / f"{name}.c")]
        compiled = subprocess.run(command, capture_output=True, text=True)
        if "cannot find" in compiled.stderr:
            pytest.skip("gcc has no sanitizers here")
        assert compiled.returncode == 0, compiled.stderr
    runtimes = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    return os.environ | {
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python's own
        "BCN_SANITISED_KERNELS": str(folder),
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(HERE.parent), os.environ.get("PYTHONPATH", "")]),
    }


def test_the_loops_stay_within_their_memory(environment: dict[str, str]) -> None:
    files = [HERE / f"test_{name}.py" for name in ("fused", "deformable", "kernel_bounds")]
    plugins = ["-p", "helpers.sanitised_kernels", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-x", *plugins, "-k", "not torch", *map(str, files)]
    run = subprocess.run(command, env=environment, cwd=HERE.parents[1], capture_output=True, text=True)
    assert run.returncode == 0, (run.stdout + run.stderr)[-4000:]


def test_the_sanitizer_sees_what_is_read_beyond_a_tensor(environment: dict[str, str]) -> None:
    run = subprocess.run([sys.executable, "-c", SHORT_BIAS], env=environment, capture_output=True, text=True)
    assert run.returncode != 0
    assert "heap-buffer-overflow" in run.stderr, run.stderr[-2000:]
