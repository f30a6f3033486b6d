"""Runs the notebooks of docs/tutorials, each in a directory of its own, and keeps what they show.

`python docs/make_tutorials.py`, for one of them with its name: `python docs/make_tutorials.py from-scratch`.
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "tutorials"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
"""nothing of the machine or of the version that ran them"""


def execute(path: Path, directory: Path) -> nbformat.NotebookNode:
    """A notebook with its outputs, run in a directory; an exception in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(directory)}}
    client = NotebookClient(notebook, resources=place, record_timing=False, coalesce_streams=True)
    client.execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
    return notebook


def main(names: list[str]) -> None:
    for path in [FOLDER / f"{name}.ipynb" for name in names] or sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as directory:
            nbformat.write(execute(path, Path(directory)), path)
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
