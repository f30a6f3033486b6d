"""The notebooks of docs/tutorials run to their end, and those in the repository show what running them gives."""

import ast
import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient", reason="needs the extra docs")
pytest.importorskip("ipykernel", reason="needs the extra docs")
pytest.importorskip("matplotlib", reason="needs the extra plot")

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "tutorials"
NAMES = ["from-scratch", "own-images", "what-it-sees"]


def read(name: str) -> list[dict[str, Any]]:
    """The cells of a notebook as it is in the repository."""
    cells: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]
    return cells


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def pictures(cell: dict[str, Any]) -> int:
    return sum("image/png" in output.get("data", {}) for output in cell.get("outputs", ()))


def test_all_of_them_are_tested_and_in_the_index() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == NAMES
    index = (ROOT / "docs" / "README.md").read_text()
    assert sorted(re.findall(r"\]\(tutorials/([\w-]+)\.ipynb\)", index)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_to_its_end(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An assertion of the notebook that fails is raised here."""
    for variable in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path / "jupyter"))
    place = tmp_path / "here"
    place.mkdir()
    run = runpy.run_path(str(ROOT / "docs" / "make_tutorials.py"))["execute"](FOLDER / f"{name}.ipynb", place)
    assert [pictures(cell) for cell in run.cells] == [pictures(cell) for cell in read(name)]


@pytest.mark.parametrize("name", NAMES)
def test_what_it_shows_is_kept(name: str) -> None:
    code = [cell for cell in read(name) if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), "run docs/make_tutorials.py"
    assert [pictures(cell) for cell in code] == [source(cell).count("plt.show()") for cell in code]
    assert sum(map(pictures, code)) >= 4
    assert not [cell for cell in code for output in cell["outputs"] if output["output_type"] == "error"]
    assert (FOLDER / f"{name}.ipynb").stat().st_size < 600_000


@pytest.mark.parametrize("name", NAMES)
def test_it_names_no_place_on_one_machine(name: str) -> None:
    for cell in read(name):
        shown = [output.get("text", "") or output["data"].get("text/plain", "") for output in cell.get("outputs", ())]
        said = source(cell) + "".join("".join(text) for text in shown)
        assert not re.search(r"(?<![\w.])(?:/(?:opt|work|root|home|Users|tmp|var)/|[A-Z]:\\|~/)", said)


def test_the_bcn_from_scratch_has_40_lines() -> None:
    lines = {}
    for cell in read("from-scratch"):
        if cell["cell_type"] == "code":
            for part in ast.parse(source(cell)).body:
                if isinstance(part, ast.FunctionDef | ast.ClassDef):
                    text = ast.get_source_segment(source(cell), part) or ""
                    lines[part.name] = sum(bool(line.strip()) for line in text.splitlines())
    parts = ("coordinates", "convolutions", "expand", "BCN", "RN", "MultiRN")
    assert sum(lines[part] for part in parts) <= 40


def test_what_a_whole_run_gives_is_on_record() -> None:
    text = "".join(source(cell) for cell in read("own-images") if cell["cell_type"] == "markdown")
    seen, blind = (
        json.loads((ROOT / "results" / "trials" / f"{name}-seed0.json").read_text())["metrics"]["test"]["all"]
        for name in ("own-toy", "own-toy-blind")
    )
    assert f"{seen['correct']} of {seen['total']} held-out questions right" in text
    assert f"a model that never sees the image has {blind['correct']}" in text
