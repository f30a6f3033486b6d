"""What the page says about cost: operations by `models/cost.py`, times from the record of `bcn bench scaling`.

`python -m bcn.web.cost results/bench/scaling.json` writes `static/cost.json` anew; a test compares it with the record.
"""

import json
import sys
from pathlib import Path
from typing import Any

from bcn.io import atomic_write
from bcn.models.cost import executed_macs, on_meta

KINDS = ("rn", "multirn")
STRIDE = 16
"""of the CNN: an image with this many pixels to an object gives n objects"""
PATH = Path(__file__).parent / "static" / "cost.json"


def cost_table(record: dict[str, Any]) -> dict[str, Any]:
    """Multiply-adds of the relation of one question, and milliseconds of a training step, by the number of objects."""
    measured = record["measurements"]
    objects = sorted(map(int, measured["multirn"]["macs"]))
    kinds = {}
    for kind in KINDS:
        model = on_meta(f"sort-of-clevr/{kind}")
        sides = [STRIDE * round(n**0.5) for n in objects]
        macs = [executed_macs(model, (3, side, side)) for side in sides]
        seconds = [measured[kind]["seconds"].get(str(n)) for n in objects]
        kinds[kind] = {
            "macs": [round(each.bcn + each.g) for each in macs],
            "ms": [None if each is None else round(1000 * each, 2) for each in seconds],
        }
    machine = record["machine"]["processor"]
    source = f"Times: forward and backward, one thread of an {machine}, torch {record['versions']['torch']}."
    return {"objects": objects, "kinds": kinds, "source": source}


def write_table(record: Path) -> None:
    """Write what the page reads."""
    table = cost_table(json.loads(record.read_text(encoding="utf-8")))
    with atomic_write(PATH) as temporary:
        temporary.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_table(Path(sys.argv[1]))
