"""The package as it is installed: light to import, complete without its extras, speaking of the project alone."""

import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bcn

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BASE = {"torch", "numpy", "PIL", "safetensors", "typer", "rich"}


def run(code: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)


def test_every_module_imports_with_the_base_dependencies_alone():
    names = [module.name for module in pkgutil.walk_packages(bcn.__path__, "bcn.") if "._" not in module.name]
    code = """
import importlib, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in {"matplotlib", "fastapi", "uvicorn", "onnx", "onnxruntime", "onnxscript", "moderngl", "tensorboard",
                    "scipy", "torchvision", "pytest", "hypothesis"}:
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
for name in sys.argv[1:]:
    if not name.startswith(("bcn.web", "bcn.__main__")):
        importlib.import_module(name)
"""
    done = run(code, *names)
    assert done.returncode == 0, done.stderr


def test_help_does_not_wait_for_torch():
    done = run(
        "import sys; sys.argv = ['bcn', '--help']\n"
        "from bcn.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('torch' in sys.modules)"
    )
    assert done.stdout.strip().endswith("False"), done.stdout + done.stderr


def test_the_public_names_are_there():
    for name in bcn.__all__:
        assert getattr(bcn, name) is not None
    assert PROJECT["version"] == bcn.__version__
    with pytest.raises(AttributeError):
        bcn.no_such_name  # noqa: B018


def test_versions_of_dependencies_are_pinned():
    pinned = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    wanted = [
        *PROJECT["dependencies"],
        *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
    ]
    for requirement in wanted:
        name = requirement.split(">")[0].split("=")[0].split("[")[0].strip()
        assert name == "bcn" or name in pinned, f"{name} is not in constraints.txt"


@pytest.mark.parametrize("command", [[], ["--help"], ["models", "--help"], ["train", "--help"], ["bench", "--help"]])
def test_commands_explain_themselves(command):
    done = subprocess.run([sys.executable, "-m", "bcn", *command], capture_output=True, text=True, check=False)
    assert "Usage" in done.stdout


def test_bad_input_is_one_sentence_and_exit_code_2():
    for command in (["train", "table3/multirnh"], ["train", "table3/multirn", "--scale", "huge"], ["table", "table9"]):
        done = subprocess.run([sys.executable, "-m", "bcn", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert "Traceback" not in done.stderr
