"""The weights that ship with the package, and how a name or a path that someone gives becomes a weights file."""

import re
from pathlib import Path
from typing import Any

from bcn.errors import BcnError, did_you_mean
from bcn.io import checksum, read_json
from bcn.models.registry import list_models
from bcn.training.run import NOT_A_RECORD, check_counts

WEIGHTS = Path(__file__).parent / "weights"
INDEXED = ("file", "sha256", "data", "recipe", "scale")
"""what an entry of the index of weights has to contain, beside its metrics"""


def list_weights(directory: Path | None = None) -> dict[str, dict[str, Any]]:
    """The weights that ship with the package: by name, the file, its checksum and its evidence."""
    path = (directory or WEIGHTS) / "index.json"
    index = read_json(path, "install bcn again") if path.exists() else {}
    if not isinstance(index, dict) or not all(map(_is_indexed, index.values())):
        raise BcnError(
            f"{path} does not name a file, its sha256, its origin and its metrics for all weights; install bcn again"
        )
    return index


def _is_indexed(entry: Any) -> bool:
    named = isinstance(entry, dict) and all(isinstance(entry.get(key), str) for key in INDEXED)
    if not named or re.fullmatch(r"[\w-]+\.safetensors", entry["file"]) is None:
        return False
    try:
        check_counts({"test": entry["metrics"]})
        return "accuracy" in entry["metrics"]["all"]
    except NOT_A_RECORD:
        return False


def locate_weights(name: str | Path) -> tuple[str, Path]:
    """The name to show for some weights, and the path that `load_model` takes.

    Args:
        name: of shipped weights (`list_weights`), or the path of a run's directory or of a weights file.

    >>> locate_weights("sort-of-clevr/multirn-h")[1].name
    'sort-of-clevr-multirn-h.safetensors'
    """
    if not isinstance(name, str | Path):
        raise BcnError(f"{name!r} is no name of weights: give that of shipped ones, or a path")
    index, given = list_weights(), name.as_posix() if isinstance(name, Path) else name
    if given in index:
        entry = index[given]
        path = WEIGHTS / entry["file"]
        if not path.exists() or checksum(path) != entry["sha256"]:
            raise BcnError(f"the file of the weights {given} is missing or damaged; install bcn again")
        return given, path
    if (path := Path(name)).exists():
        return path.name, path
    if index and given in list_models():
        raise BcnError(
            f"no weights of {given} are shipped, only of {', '.join(index)}: train it (`bcn recipes` names the "
            "recipes) and give the run's directory or a .safetensors file"
        )
    if index:
        raise did_you_mean("weights (neither shipped nor a path)", given, index)
    raise BcnError(
        f"there are no weights {given!r}: none are shipped with this version, so train some "
        "(`bcn train table3/multirn-h --scale cpu`) and give the run's directory or a .safetensors file"
    )
