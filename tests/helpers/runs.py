"""Two runs that should have ended the same."""

from pathlib import Path

from bcn.io import read_record


def deterministic(run: Path) -> dict[str, object]:
    """All of a record but what depends on the clock or the number of sessions."""
    record = read_record(run / "record.json", "")
    for key in (
        "seconds",
        "cpu_seconds",
        "train_seconds",
        "train_cpu_seconds",
        "questions_per_second",
        "sessions",
        "commit",
    ):
        del record[key]
    for point in record["curve"]:
        del point["minutes"]
    return record


def assert_same(run: Path, undisturbed: Path) -> None:
    """Of two runs: the same bytes of weights, and the same record."""
    for name in ("last.safetensors", "best.safetensors"):
        assert (run / name).read_bytes() == (undisturbed / name).read_bytes(), name
    assert deterministic(run) == deterministic(undisturbed)
