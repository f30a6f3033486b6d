"""What reaches the terminal: text of files cannot steer it, and Ctrl-C is one line from the start on."""

import json
import subprocess
import sys
import tomllib
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from helpers.command import ROOT, exit_code
from helpers.records import make_metric

from bcn.cli import ask
from bcn.cli.metrics import print_broadcast, print_metrics
from bcn.errors import BcnError, printable
from bcn.inference.shipped import list_weights
from bcn.training.progress import say

STEERING = "\x1b]0;title\x07\x1b[2J\r\x9b\u202e"


def steers(text: str) -> bool:
    """Whether there is a control character other than a line end or a tab, or one that turns the writing around."""
    return any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or c == "\u202e" for c in text)


def test_what_is_piped_is_one_image(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(ask, "MAX_PIPED", 1000)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(bytes(1001))))
    assert exit_code("ask", "-", "is red left") == 2
    assert "more than 1000 bytes" in capsys.readouterr().err


def test_control_characters_become_escapes() -> None:
    assert printable("naïve\tquestion\n") == "naïve\tquestion\n"
    assert printable(STEERING) == r"\x1b]0;title\x07\x1b[2J\r\x9b\u202e"
    assert printable("half \ud800") == r"half \ud800"
    assert not steers(str(BcnError(f"cannot read {STEERING}")))


def test_names_of_files_do_not_steer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = tmp_path / f"{STEERING}.png"
    image.write_bytes(b"no image")
    assert exit_code("find", image) == 2
    said = capsys.readouterr().err
    assert r"\x1b]0;title" in said
    assert not steers(said)
    assert exit_code("train", f"table3/{STEERING}") == 2
    assert not steers(capsys.readouterr().err)
    say(f"checkpoint {STEERING} is damaged")
    assert not steers(capsys.readouterr().err)


def test_findings_of_the_doctor_do_not_steer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a stranger's directory holds, and is called."""
    strange = tmp_path / STEERING
    strange.mkdir()
    (strange / "manifest.json").write_text("{}")
    (strange / "metrics.jsonl").touch()
    assert exit_code("doctor", tmp_path) == 2
    printed = capsys.readouterr()
    assert r"\x1b]0;title" in printed.out
    assert not steers(printed.out + printed.err)


def test_names_of_kinds_do_not_steer(capsys: pytest.CaptureFixture[str]) -> None:
    print_metrics(f"[/]{STEERING}", {f"[/red]{STEERING}": {"total": 0, "correct": 0}, STEERING: 0.5})
    probe = {change: {f"[/red]{STEERING}": 0.5} for change in ("as_trained", "mean_vector", "shuffled_vector")}
    print_broadcast({"active_channels": 1, "channels": 2, **probe})
    printed = capsys.readouterr().out
    assert "[/red]" in printed
    assert not steers(printed)


def test_problems_of_a_directory_do_not_steer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = [{"image": f"{name}.png", "question": "why?", "answer": "so"} for name in ("a\rb", "\u202ec")]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert exit_code("data", "check", tmp_path) == 2
    printed = capsys.readouterr()
    assert r"a\rb.png" in printed.out
    assert not steers(printed.out + printed.err)


@pytest.mark.parametrize("module", ["bcn.cli", "typer"])
def test_ctrl_c_while_the_command_is_imported_is_one_line(module: str) -> None:
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["bcn"]
    code = f"""
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from importlib.metadata import EntryPoint
EntryPoint("bcn", {entry!r}, "console_scripts").load()()
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "bcn: interrupted\n")


ENTRY = {"file": "x.safetensors", "sha256": "0", "data": "mnist", "recipe": "a", "scale": "cpu"}


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"a/b": {}}',
        '{"a/b": {"file": "x.safetensors"}}',
        '{"a/b": 3}',
        "{",
        "[" * 100_000,
        json.dumps({"a/b": ENTRY}),
        json.dumps({"a/b": ENTRY | {"metrics": {}}}),
        json.dumps({"a/b": ENTRY | {"metrics": {"all": 0.5}}}),
        json.dumps({"a/b": ENTRY | {"metrics": {"all": make_metric(39, 40) | {"accuracy": 0.1}}}}),
    ],
)
def test_an_index_of_weights_that_is_not_whole_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "index.json").write_text(content)
    with pytest.raises(BcnError, match=r"index\.json.*install bcn again"):
        list_weights(tmp_path)


def test_an_index_of_weights_names_files_beside_it(tmp_path: Path) -> None:
    entry = ENTRY | {"metrics": {"all": make_metric(39, 40)}}
    (tmp_path / "index.json").write_text(json.dumps({"a/b": entry}))
    assert list_weights(tmp_path) == {"a/b": entry}
    entry["file"] = "../x.safetensors"
    (tmp_path / "index.json").write_text(json.dumps({"a/b": entry}))
    with pytest.raises(BcnError, match=r"index\.json.*install bcn again"):
        list_weights(tmp_path)
