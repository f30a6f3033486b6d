"""Every block of Python in the README and the docs runs, and so do the commands that take seconds.

Of the other commands (hours of training, several machines, installing) the arguments are parsed. RUN names the former;
SMALLER, the weights that stand for an hour of training. The static site, the export to ONNX and torchrun have tests of
their own (test_site, test_export, test_distributed).
"""

import io
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.small_weights import digit_weights, scene_run, scene_v2_run
from PIL import Image
from typer.main import get_command

from bcn.cli import app, main
from bcn.data.sort_of_clevr import make_sort_of_clevr

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = ("api.md", "tables.md", "measurements.md", "leaderboard.md")
WRITTEN = [page for page in [*PAGES, ROOT / "CHANGELOG.md"] if page.name not in GENERATED]
RUN = ("ask scene.png", "ask -", "find ", "recipes", "models", "train table3/multirn-h --scale smoke")
"""how the commands begin that are run as they stand"""
SMALLER = {
    "runs/table1-bcn-cpu-0-...": digit_weights,
    "runs/table3-multirn-h-cpu-0-...": scene_run,
    "runs/wild-multirn-h-wild-cpu-0-...": scene_v2_run,
}
"""weights that a reader has trained"""


def blocks(language: str) -> list[Any]:
    """All but the block for onnxruntime alone, which tests/test_export.py runs on a file that it exports, and the one
    that trains on the folder of its page."""
    found = []
    for page in PAGES:
        for number, code in enumerate(re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.S | re.M)):
            if "import onnxruntime" in code or 'bcn.train("toy"' in code:
                continue
            found.append(pytest.param(code, id=f"{page.name}-{number}"))
    return found


def lines() -> list[str]:
    """Every line of every shell block, and every indented line, those that go on joined."""
    found = []
    for page in PAGES:
        language = None
        for line in page.read_text().replace("\\\n", " ").splitlines():
            if line.startswith("```"):
                language = line[3:] if language is None else None
            elif language == "sh" or (language is None and re.match(r"    \S", line)):
                found.append(line.strip())
    return found


def commands() -> list[list[str]]:
    """The words of each `bcn` command, after `bcn` or `-m bcn`."""
    found = []
    for line in lines():
        if "bcn" not in line:
            continue
        words = shlex.split(re.sub(r"\$[A-Z_]+", "1", line), comments=True)
        for start, word in enumerate(words):
            if word == "bcn" and (start == 0 or words[start - 1] in ("-m", "|") or "=" in words[start - 1]):
                found.append(words[start + 1 :])
                break
    return found


COMMANDS = list(dict.fromkeys(shlex.join(words) for words in commands()))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a scene, a digit and what stands for a photo to ask about."""
    monkeypatch.chdir(tmp_path)
    scene = make_sort_of_clevr("sort-of-clevr-v1", "test", images=1)[[0]].image[0].permute(1, 2, 0).numpy()
    Image.fromarray(scene).save("scene.png")
    Image.fromarray(scene).save("photo.png")
    digit = Image.new("L", (128, 128))
    digit.paste(255, (80, 20, 110, 60))
    digit.save("digit.png")
    return tmp_path


def run() -> None:
    """What sys.argv says, here."""
    with pytest.raises(SystemExit) as exit:
        main()
    assert not exit.value.code


@pytest.mark.parametrize("code", blocks("python"))
def test_python_blocks_run(code: str, here: Path) -> None:
    exec(compile(code, "block", "exec"), {"__name__": "block"})


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_take_their_arguments(command: str) -> None:
    found, rest = get_command(app), shlex.split(command)
    if rest == ["train", "..."]:
        pytest.skip("stands for any training")
    while hasattr(found, "commands"):
        if getattr(found, "invoke_without_command", False) and (not rest or rest[0].startswith("-")):
            break  # `bcn runs`, which lists, beside `bcn runs report`
        assert rest, f"`bcn {command}` is not a whole command"
        assert rest[0] in found.commands, f"there is no `bcn {command}`"
        found, rest = found.commands[rest[0]], rest[1:]
    found.make_context(command, rest)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith(RUN)])
def test_commands_run(command: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [str(SMALLER[word]()) if word in SMALLER else word for word in shlex.split(command)]
    monkeypatch.setattr(sys, "argv", ["bcn", *words])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO((here / "scene.png").read_bytes())))
    run()
    if "--map" in words:
        assert (here / "map.png").stat().st_size > 0


def test_what_is_said_to_run_is_in_the_docs() -> None:
    for beginning in RUN:
        assert any(command.startswith(beginning) for command in COMMANDS), beginning


def test_own_images_from_the_folder_to_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page on one's own data, from top to bottom, with fewer pictures and a training of seconds."""
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "guides" / "own-data.md").read_text()
    make, train = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    assert "range(400)" in make
    exec(compile(make.replace("range(400)", "range(40)"), "block", "exec"), {"__name__": "block"})
    wanted = r"data check toy|train own --data toy$|runs report|eval runs/own|ask toy/|predict runs/own-... --data"
    steps = [c for c in COMMANDS if re.match(wanted, c) and "table3" not in c]
    assert len(steps) == 7
    for step in steps:
        words = shlex.split(step)
        if words[0] == "train":
            words += ["--scale", "smoke"]
        trained = next(Path("runs").glob("own-*"), None)
        monkeypatch.setattr(sys, "argv", ["bcn", *(str(trained) if word == "runs/own-..." else word for word in words)])
        run()
    assert "how many red discs are there" in capsys.readouterr().out
    assert Path("where.png").exists()
    assert list(Path("runs").glob("own-*/report.html"))
    assert len(Path("answers.csv").read_text().splitlines()) == 1 + 3 * 40
    exec(compile(train, "block", "exec"), {"__name__": "block"})
    assert capsys.readouterr().out.count("Answer(") == 2


@pytest.mark.parametrize(
    ("name", "said"), [("own-toy", "{correct} of {total} held-out"), ("own-toy-blind", "gets {correct} right")]
)
def test_own_images_end_as_the_page_says(name: str, said: str) -> None:
    record = json.loads((ROOT / "results" / "trials" / f"{name}-seed0.json").read_text())
    metrics = record["metrics"]["test"]["all"]
    page = (ROOT / "docs" / "guides" / "own-data.md").read_text()
    assert said.format(**metrics) in page
    assert f"({100 * metrics['accuracy']:.1f} %" in page


def test_own_drawn_images_end_as_the_page_says() -> None:
    page, shares = (ROOT / "docs" / "guides" / "own-data.md").read_text(), []
    for style in ("plain", "chatty", "terse"):
        seen, blind = (
            json.loads((ROOT / "results" / "trials" / f"own-{style}{ending}-seed0.json").read_text())
            for ending in ("", "-blind")
        )
        metrics, minutes = seen["metrics"]["test"], seen["cpu_seconds"] / 60
        parts = [f"{100 * metrics[kind]['accuracy']:.1f}" for kind in ("all", "side", "closest")]
        shares.append(parts[0])
        guess = f"{100 * blind['metrics']['test']['all']['accuracy']:.1f}"
        row = f"| {style} | {metrics['all']['total']:,} | {' | '.join(parts)} | {guess} | {minutes:.1f} |"
        assert row in page, row
        assert seen["recipe"]["start"].startswith("drawn/multirn-rounds@")
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert "it has {}, {} and {} % of the held-out questions right".format(*shares) in readme


def test_the_server_answers_as_the_docs_ask_it(here: Path) -> None:
    pytest.importorskip("fastapi", reason="needs the extra web")
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    asked = [shlex.split(line) for line in lines() if line.startswith("curl ")]
    assert len(asked) == 2
    serve = [sys.executable, "-m", "bcn", "serve", "--port", "0"]  # with all shipped weights
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            address = server.stdout.readline().split()[0]
            for words in asked:
                there = [word.replace("http://127.0.0.1:8000", address) for word in words]
                done = subprocess.run([*there, "--silent", "--fail"], capture_output=True, text=True, check=True)
                assert re.search(r'"answer":"\w+"', done.stdout)
                if "/api/ask" in done.args[1]:
                    assert json.loads(done.stdout)["weights"] == "sort-of-clevr/multirn-h"
        finally:
            server.terminate()


def test_make_targets_and_extras_exist() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for line in lines():
        if made := re.match(r"make ([\w-]+)", line):
            assert made[1] in targets, line
    for page in PAGES:
        for named in re.findall(r"pip install (?:-e )?'(?:bcn-torch|\.)\[([\w,]+)\]'", page.read_text()):
            assert set(named.split(",")) <= set(extras), named


def test_the_python_interface_is_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_api.py"))["page"]()
    assert (ROOT / "docs" / "reference" / "api.md").read_text() == made, "run `python docs/make_api.py`"


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            other = (page.parent / path).resolve() if path else page
            assert other.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(other), f"{page.name} links to {target}, which has no such heading"


def test_every_page_is_linked() -> None:
    """From the index of the docs, and from there on."""
    seen, waiting = set(), [ROOT / "docs" / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen and page.suffix == ".md" and page.is_relative_to(ROOT / "docs"):
            seen.add(page)
            waiting += [(page.parent / path).resolve() for path in re.findall(r"\]\(([^)#:]+\.md)", page.read_text())]
    assert seen == set((ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_hand_written_prose_fits_120_columns(page: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M).splitlines()
    assert [line for line in prose if len(line) > 120 and not line.startswith(("|", "![", "    "))] == []


def test_commands_in_the_text_exist() -> None:
    for page in PAGES:
        for span in re.findall(r"`bcn ([^`]+)`", page.read_text()):
            found, rest = get_command(app), span.split()
            while rest and hasattr(found, "commands"):
                assert rest[0] in found.commands, f"{page.name}: there is no `bcn {span}`"
                found, rest = found.commands[rest[0]], rest[1:]


def test_pages_that_the_package_names_exist() -> None:
    for source in [*(ROOT / "bcn").rglob("*.py"), *(ROOT / "bcn").rglob("*.c"), *(ROOT / "tests").rglob("*.py")]:
        for path in re.findall(r"docs/[\w/-]+\.(?:md|py)", source.read_text()):
            assert (ROOT / path).exists(), f"{source} names {path}"
