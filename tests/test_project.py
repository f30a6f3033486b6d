"""The package as it is installed, light to import and complete without its extras, and the order of its files."""

import ast
import pkgutil
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from helpers.command import finish, start_bcn, start_python

import bcn

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def base_modules() -> list[str]:
    """What may be imported: the standard library, this package, the base dependencies, and what these depend on."""
    waiting = [_name(requirement) for requirement in PROJECT["dependencies"]]
    wanted: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in wanted:
            continue
        wanted.add(name)
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for other systems
            continue
        waiting += [_name(each) for each in requires if "extra ==" not in each]
    found = {
        module for module, of in metadata.packages_distributions().items() if wanted & {_name(each) for each in of}
    }
    return sorted(found | sys.stdlib_module_names | {"bcn"})


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def test_every_module_imports_with_the_base_dependencies_alone() -> None:
    """Only the server cannot be imported without FastAPI and uvicorn, and the hub without its package.

    `bcn serve` and the hub then say what to install.
    """
    names = [module.name for module in pkgutil.walk_packages(bcn.__path__, "bcn.") if "._" not in module.name]
    assert {"bcn.web.app", "bcn.web.static_site", "bcn.inference.export", "bcn.bench.runtime"} <= set(names)
    code = """
import importlib, sys
from bcn.errors import BcnError
names, allowed = (given.split() for given in sys.argv[1:])
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if path is None and name not in allowed and not name.startswith("_sysconfigdata"):
            raise ModuleNotFoundError(f"{name} is refused", name=name)
sys.meta_path.insert(0, Refuse())
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        print(name, error.name)
    except BcnError as error:
        print(name, error.__cause__.name)
"""
    out, _ = finish(start_python("-c", code, " ".join(names), " ".join(base_modules())))
    missing = {"fastapi": ["app", "errors", "worker"], "starlette": ["guard", "limits"], "h11": ["server"]}
    server = {f"bcn.web.{name} {of}" for of, names in missing.items() for name in names}
    assert set(out.splitlines()) == server | {"bcn.inference.hub huggingface_hub"}


def test_serving_without_the_extra_says_what_to_install() -> None:
    code = "import sys; sys.modules['fastapi'] = None; sys.argv = ['bcn', 'serve']; from bcn.cli import main; main()"
    _, said = finish(start_python("-c", code), 2)
    assert (
        said
        == "bcn: `bcn serve` needs fastapi: pip install 'bcn-torch[web]', or in a checkout pip install -e '.[web]'\n"
    )


def test_help_does_not_wait_for_torch() -> None:
    code = """
import sys
from bcn.cli import main
sys.argv = ["bcn", "--help"]
try: main()
except SystemExit: print("torch" in sys.modules)
"""
    out, _ = finish(start_python("-c", code))
    assert out.endswith("False\n")


def test_the_public_names_are_there() -> None:
    for name in bcn.__all__:
        assert getattr(bcn, name) is not None
    assert PROJECT["version"] == bcn.__version__
    with pytest.raises(AttributeError):
        bcn.no_such_name  # noqa: B018


def test_type_checkers_and_python_find_the_same_public_names() -> None:
    tree = ast.parse((ROOT / "bcn" / "__init__.py").read_text())
    typed = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bcn.")
        for alias in node.names
    }
    assert typed == bcn._MODULES


def test_versions_of_dependencies_are_pinned() -> None:
    pinned = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    wanted = [
        *PROJECT["dependencies"],
        *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
    ]
    for requirement in wanted:
        name = requirement.split(">")[0].split("=")[0].split("[")[0].strip()
        assert name == PROJECT["name"] or name in pinned, f"{name} is not in constraints.txt"


def test_the_lock_file_has_the_pinned_versions_with_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text, "an address of a package index"
    entries = re.findall(r"^([\w.-]+)==([^ ;]+)((?:.*\\\n)+ +--hash=.*)", text, re.M)
    assert len(entries) == len(re.findall(r"^\w", text, re.M)), "every entry has a hash"
    locked = {name: version for name, version, _ in entries}
    pinned = [line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    assert {name: version for name, version in pinned if locked.get(name) != version} == {}, "run `make lock`"


@pytest.mark.parametrize("command", [[], ["--help"], ["models", "--help"], ["train", "--help"], ["bench", "--help"]])
def test_commands_explain_themselves(command: list[str]) -> None:
    assert "Usage" in start_bcn(*command).communicate()[0]


def test_bad_input_is_one_sentence_and_exit_code_2() -> None:
    for command in (["train", "table3/multirnh"], ["train", "table3/multirn", "--scale", "huge"], ["table", "table9"]):
        _, said = finish(start_bcn(*command), 2)
        assert len(said.strip().splitlines()) == 1, said
        assert "Traceback" not in said


TEXT = {".py", ".c", ".h", ".js", ".css", ".html", ".md", ".toml", ".txt", ".json", ".cff", ""}


def text_files(*folders: str) -> list[Path]:
    """The files that people read, in these folders."""
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in TEXT]
    return [path for path in files if path.is_file() and not {"__pycache__", ".mypy_cache"} & set(path.parts)]


def test_no_file_is_a_drawer() -> None:
    """A file is named after its idea."""
    drawers = {"util", "utils", "helper", "helpers", "common", "misc", "tools", "lib"}
    assert not [path for path in (ROOT / "bcn").rglob("*") if path.stem.strip("_") in drawers]


def test_files_of_the_package_are_short() -> None:
    long = {path.name: lines for path in text_files("bcn") if (lines := len(path.read_text().splitlines())) > 400}
    long.pop("index.json", None)  # of the weights, written by the command that releases them
    assert not long, "a file holds one idea"


def test_no_picture_is_there_twice() -> None:
    pictures = [path for path in (ROOT / "docs").rglob("*") if path.suffix in {".png", ".svg", ".jpg"}]
    assert len({path.with_suffix("") for path in pictures}) == len(pictures)


def test_no_file_names_a_place_on_one_machine() -> None:
    files = [*text_files("bcn", "docs", "tests", "results", ".ci"), *ROOT.glob("*.md"), ROOT / "Makefile"]
    assert len(files) > 300
    assert not [path for path in files if re.search(r"(?<![\w.}])/(?:opt|work|root|home|Users)/", path.read_text())]
