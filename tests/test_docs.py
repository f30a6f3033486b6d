"""Every block of Python in the README and the docs runs, and every `bcn` command in them exists with its options."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from bcn.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(language: str) -> list:
    """All but the block for onnxruntime alone, which tests/test_export.py runs on a file that it exports."""
    found = []
    for page in PAGES:
        for number, code in enumerate(re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.S | re.M)):
            if "import onnxruntime" in code:
                continue
            found.append(pytest.param(code, id=f"{page.name}-{number}"))
    return found


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "block", "exec"), {"__name__": "block"})


def commands(code: str) -> list[list[str]]:
    """The words of each `bcn` command of a shell block, after `bcn` or `-m bcn`."""
    found = []
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        for start, word in enumerate(words):
            if word == "bcn" and (start == 0 or words[start - 1] == "-m" or "=" in words[start - 1]):
                found.append(words[start + 1 :])
                break
    return found


@pytest.mark.parametrize("code", blocks("sh"))
def test_commands_exist_with_their_options(code):
    for words in commands(code):
        command, rest = get_command(app), words
        while hasattr(command, "commands"):
            assert rest, f"`bcn {' '.join(words)}` is not a whole command"
            assert rest[0] in command.commands, f"there is no `bcn {' '.join(words)}`"
            command, rest = command.commands[rest[0]], rest[1:]
        accepted = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
        for word in rest:
            if word.startswith("--"):
                assert word.partition("=")[0] in accepted, f"`bcn {' '.join(words)}` has no {word}"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
