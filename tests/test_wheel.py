"""What is published: `python -m build` makes an sdist and from it a wheel, and the wheel alone answers questions."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("build", reason="needs build")

ROOT = Path(__file__).parent.parent
MADE = shutil.ignore_patterns(".*", "build", "dist", "runs", "demo", "*.egg-info", "__pycache__", "*.so")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with both, built from a copy of the sources, with what is installed and so without a network."""
    copy = tmp_path_factory.mktemp("sources") / "bcn"
    shutil.copytree(ROOT, copy, ignore=MADE)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check"],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return copy / "dist"


def sources() -> set[str]:
    """All files of the package."""
    files = {path.relative_to(ROOT) for path in (ROOT / "bcn").rglob("*") if path.is_file()}
    return {str(file) for file in files if file.suffix != ".so" and "__pycache__" not in file.parts}


def test_the_wheel_has_weights_page_tables_and_compiled_loops(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    needed = {name for name in sources() if not name.endswith((".c", ".h"))}
    assert needed <= names, sorted(needed - names)
    for suffix in ("inference/weights/index.json", "web/static/index.html", "paper/tables.toml", "py.typed"):
        assert f"bcn/{suffix}" in names
    assert any(name.startswith("bcn/inference/weights/") and name.endswith(".safetensors") for name in names)
    assert wheel.name.split("-")[2:4] == ["py3", "none"]
    if shutil.which("cc"):
        assert {f"bcn/layers/fused/_{name}{EXTENSION_SUFFIXES[-1]}" for name in ("pooled", "resample")} <= names
    others = {name for name in names if not name.startswith(("bcn/", "bcn_torch-"))}
    assert not others


def test_the_sdist_has_what_builds_and_tests_it(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    needed = sources() | {"pyproject.toml", "setup.py", "README.md", "LICENSE", "constraints.txt", "docs/README.md"}
    assert needed | {"tests/conftest.py"} <= names, sorted(needed - names)


def test_the_wheel_alone_answers(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, "--target", tmp_path / "at", wheel], check=True, capture_output=True)
    scene = Image.new("RGB", (75, 75), "white")
    scene.paste((255, 0, 0), (10, 10, 21, 21))
    scene.paste((0, 0, 255), (10, 50, 21, 61))
    scene.save(tmp_path / "scene.png")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "at")}
    ask = [sys.executable, "-m", "bcn", "ask", "scene.png", "What is the shape of the red object?", "--json"]
    done = subprocess.run(ask, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["answers"][0]["answer"] == "square"
    where = subprocess.run(
        [sys.executable, "-c", "import bcn.layers.fused.native as k; print(k.__file__)"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert where.stdout.startswith(str(tmp_path / "at"))
