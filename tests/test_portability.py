"""Where there is no POSIX: nothing here needs what Windows lacks, nor an encoding that only UTF-8 systems have."""

import ast
import shutil
from collections.abc import Iterator
from pathlib import Path

from helpers.command import finish, start_bcn, start_python

ROOT = Path(__file__).parent.parent
PACKAGE, RESULTS = ROOT / "bcn", ROOT / "results"
WITHOUT_POSIX = Path(__file__).parent / "helpers" / "without_posix.py"


def calls() -> Iterator[tuple[str, ast.Call, str]]:
    """Every call in the package: where it stands, the call, and the name of what is called."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                yield f"{path.relative_to(PACKAGE)}:{node.lineno}", node, name


def test_text_files_name_their_encoding() -> None:
    """By default Windows reads and writes them in the encoding of the user's language."""
    unnamed = []
    for where, call, name in calls():
        text = name in ("read_text", "write_text") or (isinstance(call.func, ast.Name) and name == "open")
        binary = name == "open" and any(
            isinstance(each, ast.Constant) and "b" in str(each.value)
            for mode in call.args[1:2]
            for each in ast.walk(mode)
        )
        if text and not binary and "encoding" not in {word.arg for word in call.keywords}:
            unnamed.append(where)
    assert not unnamed


POSIX_ONLY = {"fcntl", "resource", "pwd", "grp", "termios", "pty", "syslog"}


def test_modules_that_windows_lacks_are_not_imported() -> None:
    imported = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                imported |= {(path.name, name) for name in names if name.split(".")[0] in POSIX_ONLY}
    assert not imported


def test_every_module_imports_and_a_model_is_trained_without_posix(tmp_path: Path) -> None:
    """`helpers/without_posix.py` takes away what Windows lacks, imports all modules, and then is `bcn`."""
    train = ("train", "table3/multirn", "--scale", "smoke", "--runs", tmp_path / "runs", "--set", "epochs=1")
    environment = {"BCN_DATA": str(tmp_path), "BCN_CACHE": str(tmp_path / "cache")}
    finish(start_python(WITHOUT_POSIX, *train, environment=environment))
    (record,) = (tmp_path / "runs").glob("*/record.json")
    finish(start_python(WITHOUT_POSIX, "eval", record.parent, environment=environment))


def test_a_terminal_without_the_characters_does_not_end_a_command(tmp_path: Path) -> None:
    """A Windows pipe has the user's old code page; standard output then shows `?`."""
    shutil.copytree(RESULTS / "deformation", tmp_path / "deformation")
    command = ("table", "deformation", "--no-train", "--results", tmp_path)
    out, _ = finish(start_bcn(*command, PYTHONIOENCODING="utf-8"))
    assert "10\N{DEGREE SIGN}" in out
    out, _ = finish(start_bcn(*command, PYTHONIOENCODING="ascii"))
    assert "10?" in out
