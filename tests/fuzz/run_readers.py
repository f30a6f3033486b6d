"""Readers of what runs leave behind: weights, manifests, records, metrics, checkpoints, caches, indices."""

import hashlib
import json
import shutil
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from helpers.records import make_metric, write_record
from torch import Tensor

from bcn.cli.metrics import print_metrics
from bcn.cli.runs import print_runs
from bcn.cli.weights import weights as list_shipped
from bcn.data import cache
from bcn.inference import shipped
from bcn.inference.reasoner import Reasoner
from bcn.inference.shipped import WEIGHTS, list_weights
from bcn.io import read_record
from bcn.io import write_record as write_checked
from bcn.models.registry import create_model
from bcn.paper.estimate import Estimate, estimate_of, keep_estimate
from bcn.paper.measurements import write_measurements
from bcn.paper.records import read_result, result_path
from bcn.paper.tables import find_recipe
from bcn.training.checkpoint import load_checkpoint, save_checkpoint
from bcn.training.environment import versions
from bcn.training.event_log import EventLog
from bcn.training.run import find_run, open_run
from bcn.training.verify import verify_run
from bcn.training.weights import load_model, write_weights
from fuzz.damage import damage_bytes, damage_value
from fuzz.harness import Reader

HAS_HUB = find_spec("huggingface_hub") is not None
RECIPE = find_recipe("table3/multirn", "smoke")
DESCRIPTION: dict[str, Any] = {
    "model": "scaled-mnist/baseline",
    "arguments": {},
    "data": "scaled-mnist-v1",
    "preprocessing": {"mean": [0.5], "std": [0.25]},
    "answers": list("0123456789"),
    "kinds": [],
    "localise": False,
    "recipe": "table1/baseline",
    "scale": "smoke",
    "seed": 0,
    "epoch": 1,
}


def _weights() -> dict[str, Tensor]:
    torch.manual_seed(0)
    return create_model("scaled-mnist/baseline").state_dict()


def _plain(tensors: dict[str, Tensor]) -> dict[str, Any]:
    return {name: (str(tensor.dtype), tensor.tolist()) for name, tensor in tensors.items()}


def _load_weights(folder: Path) -> Any:
    model, description = load_model(folder / "best.safetensors")
    Reasoner("damaged", model, description)
    return _plain(model.state_dict()), description


def _lie(folder: Path, random: Random) -> None:
    """A description that says something else, in a file that is whole."""
    description = damage_value(DESCRIPTION, random)
    try:
        write_weights(folder / "best.safetensors", _weights(), description)
    except (TypeError, ValueError, AttributeError):  # no description at all
        (folder / "best.safetensors").write_bytes(random.randbytes(100))


def _write_run(folder: Path) -> None:
    with open_run(
        RECIPE, seed=0, runs=folder, data={"train": "0"}, overrides=(), now={"threads": 1, "ranks": 1}
    ) as run:
        record = {"run": "a", "ranks": 1, "seconds": 1.5, "cpu_seconds": 1.5, "best_epoch": None, "commit": None}
        metrics = {"test": {"all": make_metric(39, 40)}}
        write_checked(run.path / "record.json", record | {"metrics": metrics, "versions": versions()})


def _read_run(folder: Path) -> Any:
    run = find_run(next(path for path in folder.iterdir()))
    return run.manifest, run.recipe, run.record()


def _tells_of_no_checksum(read: dict[str, Any], written: dict[str, Any]) -> bool:
    """A record as version 0.1 wrote them: what said that it had a checksum is gone, with the checksum."""
    told = read.get("versions")
    return read == written or not isinstance(told, dict) or told.get("bcn") != written["versions"]["bcn"]


def _accepts_run(read: Any, written: Any) -> bool:
    """A run whose record was removed is not finished."""
    records = ((read[0], written[0]), (read[2] or written[2], written[2]))
    return all(_tells_of_no_checksum(*pair) for pair in records)


def _read_table(folder: Path) -> Any:
    """What `bcn train` prints of a run that is finished."""
    *read, record = _read_run(folder)
    with redirect_stdout(StringIO()) as table:
        for metrics in record["metrics"].values() if record is not None else ():
            print_metrics("test", metrics)
            print(record["seconds"] / 60)
    return *read, record, table.getvalue()


def _sign_damage(folder: Path, random: Random) -> None:
    """A record or a manifest that says something else, with its right checksum, as a stranger would write it."""
    path = random.choice(sorted(folder.rglob("*.json")))
    damaged = damage_value(read_record(path, ""), random)
    try:
        write_checked(path, damaged)
    except (TypeError, ValueError):  # no record at all
        path.write_bytes(random.randbytes(100))


def _write_unfinished(folder: Path) -> None:
    _write_run(folder)
    (run,) = folder.iterdir()
    (run / "record.json").unlink()
    log = EventLog(run / "metrics.jsonl")
    for epoch in (1, 2):
        log.write({"event": "epoch", "step": 10 * epoch, "epoch": epoch, "accuracy": 0.5, "minutes": 0.5 * epoch})


def _read_overview(folder: Path) -> Any:
    """What `bcn runs` prints, and what `bcn doctor` finds."""
    (run,) = folder.iterdir()
    with redirect_stdout(StringIO()) as table:
        print_runs(folder)
        print_runs(folder, as_json=True)
    return table.getvalue(), list(verify_run(run))


def _sign_events(folder: Path, random: Random) -> None:
    """Lines of metrics.jsonl that say something else, with their right checksums, as a stranger would write them."""
    (path,) = folder.rglob("metrics.jsonl")
    events = EventLog(path).events()
    path.unlink()
    for event in events:
        damaged = damage_value(event, random)
        EventLog(path).write(damaged if isinstance(damaged, dict) else {"event": damaged})


def _write_result(folder: Path) -> None:
    path = write_record(
        folder, "table3/multirn", 0, {"all": make_metric(39), "relational": make_metric(3)}, scale="smoke"
    )
    write_checked(path, read_record(path, "") | {"versions": versions()})


def _read_result(folder: Path) -> Any:
    return read_result(result_path(folder, RECIPE, 0)).record


def _write_events(folder: Path) -> None:
    log = EventLog(folder / "metrics.jsonl")
    for step in range(20):
        log.write({"event": "step" if step % 5 else "epoch", "step": step, "epoch": step // 5, "loss": 1 / (step + 1)})


def _read_events(folder: Path) -> list[dict[str, Any]]:
    return EventLog(folder / "metrics.jsonl").events()


def _write_checkpoints(folder: Path) -> None:
    for step in (1, 2):
        state = {"step": step, "best": None, "of": torch.arange(9), "lines": ["{}"], "moments": {0: torch.ones(3)}}
        save_checkpoint(folder, step, {"weight": torch.full((50,), float(step))}, state)


def _read_checkpoint(folder: Path) -> Any:
    found = load_checkpoint(folder)
    if found is None:
        return None
    weights, state = found
    return _plain(weights), repr(state)


def _is_earlier(read: Any, written: Any) -> bool:
    """The checkpoint before the damaged one."""
    return read is not None and (written[0]["weight"][1][0], read[0]["weight"][1]) == (2.0, [1.0] * 50)


def _damage_state(folder: Path, random: Random) -> None:
    """A state that is not what was saved, with its right checksum, as a stranger would write it."""
    for path in folder.glob("*.pt"):
        content = damage_bytes(path.read_bytes(), random)
        path.write_bytes(content)
        about = path.with_suffix(".json")
        about.write_text(json.dumps(json.loads(about.read_text()) | {"state": hashlib.sha256(content).hexdigest()}))


def _make_arrays(folder: Path) -> None:
    np.save(folder / "image.npy", (np.arange(3000) % 251).astype(np.uint8).reshape(100, 30))
    np.save(folder / "words.npy", np.array(["red", "cube"]))


def _open_arrays(folder: Path) -> Any:
    cache._checksum.cache_clear()
    with patch.dict("os.environ", {"BCN_CACHE": str(folder)}):
        arrays = cache.open_cache("set", "part", _make_arrays)
        return {name: (str(arrays[name].dtype), arrays[name][:].tolist()) for name in ("image", "words")}


def _open_blocks(folder: Path) -> Any:
    with patch.object(cache, "QUICK_BYTES", 1000), patch.object(cache, "BLOCK_BYTES", 256):
        return _open_arrays(folder)


def _write_index(folder: Path) -> None:
    shutil.copy(WEIGHTS / "index.json", folder)


def _read_index(folder: Path) -> Any:
    """What `bcn weights` prints."""
    with patch.object(shipped, "WEIGHTS", folder), redirect_stdout(StringIO()) as table:
        list_shipped()
    return list_weights(folder), table.getvalue()


def _write_hub(folder: Path) -> None:
    from bcn.inference.hub import PretrainedModel

    write_weights(folder / "best.safetensors", _weights(), DESCRIPTION)
    PretrainedModel.of(folder / "best.safetensors").save_pretrained(folder)


def _read_hub(folder: Path) -> Any:
    from bcn.inference.hub import PretrainedModel

    model = PretrainedModel.from_pretrained(folder)
    return model.generate_model_card().content, model.reasoner().description


def _write_bench(folder: Path) -> None:
    for name in ("data.json", "scaling.json"):
        record = read_record(Path(__file__).parents[2] / "results" / "bench" / name, "")
        write_checked(folder / name, record | {"versions": versions()})


def _read_bench(folder: Path) -> Any:
    write_measurements(folder.parent / "page.md", folder)
    return {path.name: read_record(path, "") for path in sorted(folder.iterdir())}


def _accepts_bench(read: Any, written: Any) -> bool:
    """The page of what was measured may lack a record that was removed."""
    return all(_tells_of_no_checksum(record, written[name]) for name, record in read.items())


READERS = (
    Reader(
        "weights",
        lambda folder: write_weights(folder / "best.safetensors", _weights(), DESCRIPTION),
        _load_weights,
        checked=True,
    ),
    Reader(
        "weights that lie",
        lambda folder: write_weights(folder / "best.safetensors", _weights(), DESCRIPTION),
        _load_weights,
        damage=_lie,
    ),
    Reader("manifest and record", _write_run, _read_run, files="*.json", checked=True, accepts=_accepts_run),
    Reader("run of a stranger", _write_run, _read_table, damage=_sign_damage),
    Reader("result", _write_result, _read_result, checked=True, accepts=_tells_of_no_checksum),
    Reader("result of a stranger", _write_result, _read_result, damage=_sign_damage),
    Reader(
        "metrics.jsonl",
        _write_events,
        _read_events,
        checked=True,
        accepts=lambda read, written: all(event in written for event in read),
    ),
    Reader("checkpoint", _write_checkpoints, _read_checkpoint, checked=True, accepts=_is_earlier),
    Reader("state of a stranger", _write_checkpoints, _read_checkpoint, damage=_damage_state),
    Reader("cache", _open_arrays, _open_arrays, files="*.[nj]*", checked=True),
    Reader("cache by blocks", _open_blocks, _open_blocks, files="*.[nj]*", checked=True),
    Reader("index.json", _write_index, _read_index),
    Reader("runs of a stranger", _write_run, _read_overview, damage=_sign_damage),
    Reader("events of a stranger", _write_unfinished, _read_overview, damage=_sign_events),
    Reader(
        "estimate",
        lambda folder: keep_estimate(folder, RECIPE, Estimate(0.5, 100, 1)),
        lambda folder: estimate_of(folder, RECIPE),
    ),
    Reader("measurements", _write_bench, _read_bench, checked=True, accepts=_accepts_bench),
    *([Reader("config.json of the hub", _write_hub, _read_hub, files="config.json")] if HAS_HUB else []),
)
