"""Records of finished runs under results/: one each, read as the metrics that a table needs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bcn.data.sort_of_clevr import FEWER_OBJECTS
from bcn.errors import BcnError
from bcn.io import read_record, write_record
from bcn.paper.tables import OBJECTS, TABLES
from bcn.training.recipe import Recipe, fingerprint, from_json
from bcn.training.record import cpu_minutes
from bcn.training.run import NOT_A_RECORD, check_counts

REMEDY = "remove it and train the run again"
OTHER_TEST_SETS = {
    "more_scaled": ("more-scaled-mnist-v1", "all"),
    "rotated_10": ("more-scaled-mnist-10-v1", "all"),
    "rotated_45": ("more-scaled-mnist-45-v1", "all"),
    "affnist": ("affine-mnist-v1", "all"),
    **{metric: (FEWER_OBJECTS[objects], "relational") for metric, objects in OBJECTS.items()},
}
"""columns that are metrics of further test sets: its name, and the group of questions"""


@dataclass(frozen=True)
class Metric:
    """One metric of one run: in percent with its 95 % Wilson interval, or an error without one."""

    value: float
    total: int | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Result:
    recipe: Recipe
    seed: int
    record: dict[str, Any]

    def metric(self, name: str) -> Metric | None:
        """The metric of a column of the paper's tables, None where this run did not measure it."""
        if name == "localisation":
            error = self.record["metrics"]["test"].get("localisation")
            return None if error is None else Metric(float(error))
        if name in ("mean_iou", "average_precision"):
            share = self.record["metrics"]["test"].get(name)
            return None if share is None else Metric(100 * float(share))
        if name in OTHER_TEST_SETS:
            return self.accuracy(*OTHER_TEST_SETS[name])
        return self.accuracy("test", {"accuracy": "all", "scaled": "all", "overall": "all"}.get(name, name))

    def accuracy(self, test_set: str, group: str) -> Metric | None:
        """The accuracy of a group of questions on one of the test sets, None where this run did not measure it."""
        counts = self.record["metrics"].get(test_set, {}).get(group)
        if not counts or not counts["total"]:
            return None
        low, high = counts["interval"]
        return Metric(100 * float(counts["accuracy"]), int(counts["total"]), 100 * float(low), 100 * float(high))

    @property
    def curve(self) -> list[dict[str, Any]]:
        """Its epochs, thinned: the loss, and validation metrics after the epochs that train no answers."""
        no_answers, loss = self.recipe.auxiliary.epochs if self.recipe.auxiliary else 0, ("epoch", "step", "loss")
        return [
            {key: entry[key] for key in entry if entry["epoch"] > no_answers or key in loss}
            for entry in self.record["curve"]
        ]

    @property
    def cpu_minutes(self) -> float:
        return cpu_minutes(self.record)

    @property
    def training_cpu_minutes(self) -> float:
        """Of the training steps alone, over all ranks."""
        return int(self.record["ranks"]) * float(self.record["train_cpu_seconds"]) / 60

    def read(self) -> tuple[Any, ...]:
        """Everything that tables and curves show; fails where a record lacks any of it."""
        metrics = {metric for table in TABLES.values() for metric in table.metrics}
        return [self.metric(metric) for metric in metrics], self.curve, self.cpu_minutes


def result_path(results: Path, recipe: Recipe, seed: int) -> Path:
    return results / recipe.name / f"{recipe.scale}-seed{seed}.json"


def keep(record: Path, results: Path, recipe: Recipe, seed: int) -> Path:
    """Copy a run's record to where tables are made from."""
    path = result_path(results, recipe, seed)
    write_record(path, read_record(record, "remove it to have it written again"))
    return path


def read_result(path: Path) -> Result:
    record = read_record(path, REMEDY)
    try:
        check_counts(record["metrics"])
        recipe = from_json(record["recipe"])
        result = Result(recipe, int(record["seed"]), record)
        result.read()
        return result
    except BcnError as error:
        raise BcnError(f"{path}: {error}") from error
    except NOT_A_RECORD as error:
        raise BcnError(f"{path} is not the record of a run ({error}); {REMEDY}") from error


def results_of(results: Path, recipe: Recipe) -> tuple[list[Result], list[Path]]:
    """The runs that count for a recipe, by seed; and the records left out: of a recipe changed before or since."""
    counted, left_out = [], []
    for path in sorted((results / recipe.name).glob(f"{recipe.scale}-seed*.json")):
        result = read_result(path)
        if fingerprint(result.recipe) != fingerprint(recipe):
            left_out.append(path)
        else:
            counted.append(result)
    return sorted(counted, key=lambda result: result.seed), left_out
