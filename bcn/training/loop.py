"""Training: the loop on one screen.

bcn train table3/multirn-h --scale cpu --seed 0
torchrun --nproc-per-node=2 -m bcn train table3/multirn-h --scale cpu --seed 0
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel as Distributed

from bcn.data.dataset import Batch, Dataset
from bcn.errors import BcnError
from bcn.io import write_record
from bcn.models.balance import junctions
from bcn.training.batches import order_rows, read_batches
from bcn.training.broadcast_probe import ablate, probe
from bcn.training.checkpoint import load_checkpoint, save_checkpoint
from bcn.training.description import describe_weights
from bcn.training.distributed import TIMEOUT_MINUTES, Ranks, process_group
from bcn.training.environment import default_threads, flush_denormals, keep_memory
from bcn.training.forward import check_fit, move_to
from bcn.training.initial import initialise
from bcn.training.interrupts import Interrupted, Stop
from bcn.training.metrics import Counts, compute_metrics, evaluate, headline
from bcn.training.optim.schedule import learning_rate
from bcn.training.prefetch import Prefetch
from bcn.training.progress import Progress, say
from bcn.training.recipe import Recipe, check
from bcn.training.record import make_record
from bcn.training.run import Run, find_started, open_run
from bcn.training.runtime import Runtime, arithmetic
from bcn.training.splits import Splits
from bcn.training.stages import Stage, make_stages
from bcn.training.start import Start
from bcn.training.state import State, derive_seed, read_position, seed_device
from bcn.training.step import take_step
from bcn.training.trackers import Watcher
from bcn.training.weights import write_weights

LOG_STEPS = 100
"""steps between two lines of metrics.jsonl, which is also where a loss that is not finite is noticed"""


class Trainer:
    """One run, as one rank sees it. Only the main rank has a `run`, and writes.

    Args:
        stop: tells the main rank when to stop.
        save_minutes: between checkpoints within an epoch.
    """

    def __init__(
        self,
        recipe: Recipe,
        seed: int,
        splits: Splits,
        *,
        ranks: Ranks,
        stop: Stop,
        save_minutes: float = 5.0,
        runtime: Runtime | None = None,
    ) -> None:
        self.recipe, self.seed, self.splits, self.ranks = recipe, seed, splits, ranks
        self.runtime = runtime or Runtime()
        self.run: Run | None = None
        # A rank that left before the main one would break the step of the main one, whose state is the one to save.
        self.interrupt = stop.check if ranks.is_main else lambda: None
        self.state = State.begin(recipe, splits, seed=seed, device=ranks.device)
        if recipe.initialisation != "default" and not junctions(self.state.model):
            raise BcnError(f"{recipe.model} has no BCN: train with initialisation=default")
        self.stages = make_stages(recipe, splits, self.state)
        self.steps_per_epoch = max(1, len(splits.train) // recipe.batch_size)
        self.total = self.steps_per_epoch * recipe.epochs
        self.save_seconds, self.saved = 60 * save_minutes, time.monotonic()
        self.watcher = Watcher()
        self.compiled: dict[str, nn.Module] = {}

    def fit(self) -> None:
        """Go on from wherever the state is to the end of the last epoch; on a signal, save and leave."""
        done, quiet = self.state.position.step, not self.ranks.is_main
        with Progress(self.recipe.name, self.total, done, quiet=quiet) as progress:
            try:
                self.run_epochs(progress)
            except Interrupted:
                self.save()
                raise

    def run_epochs(self, progress: Progress) -> None:
        state, at, size = self.state, self.state.position, self.recipe.batch_size
        while at.epoch < self.recipe.epochs and not self.ranks.broadcast_object(state.has_plateaued(self.recipe)):
            stage, end, on_cpu = *self.stage, self.ranks.device.type == "cpu"
            if stage.name != progress.phase:
                progress.begin(stage.name, end * self.steps_per_epoch)
            loss_module, where = self.distribute(stage), {"steps": self.steps_per_epoch, "epoch": at.epoch}
            order = order_rows(stage.data, self.recipe, **where, seed=self.seed)

            def read(index: int, order: np.ndarray = order) -> list[Batch]:
                rows = self.ranks.share(order[index * size : (index + 1) * size])
                return self.read(rows, index, pieces=self.recipe.accumulate)

            with Prefetch(read, stop=self.steps_per_epoch, ahead=stage.data.reads_ahead or not on_cpu) as batches:
                while at.index < self.steps_per_epoch:
                    self.interrupt()
                    self.train_batch(loss_module, batches, progress)
            self.end_epoch(progress)
            state.next_epoch()
            self.save()
        if at.epoch < self.recipe.epochs:
            progress.say(f"epoch {at.epoch}: not better in validation since epoch {at.best_epoch}, so it ends here")

    def train_batch(self, loss_module: nn.Module, batches: Prefetch[list[Batch]], progress: Progress) -> None:
        """The next step of this epoch, and what is due after it."""
        state, at, began, cpu_began = self.state, self.state.position, time.perf_counter(), time.process_time()
        pieces = batches(at.index)
        # Counted on the host: a GPU that has to say how many there are has to finish the last step first.
        answers = int(self.ranks.sum(torch.stack([(piece.answer >= 0).sum() for piece in pieces]).sum()))
        pieces = [move_to(piece, self.ranks.device) for piece in pieces]
        # Of all ranks, for a checkpoint to be whole that the main one writes while another is gone.
        loss = self.ranks.mean_(self.step(loss_module, *pieces, answers=answers).to(state.loss.dtype))
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
        state.count(loss, answers=answers, seconds=seconds, cpu_seconds=cpu_seconds)
        progress.step(at.epoch, answers, loss.item)
        if at.step % LOG_STEPS == 0:
            self.log_step()
        if time.monotonic() - self.saved > self.save_seconds:
            self.save()

    @property
    def stage(self) -> tuple[Stage, int]:
        """The stage of this epoch, and the epoch after its last."""
        ends = accumulate(stage.epochs for stage in self.stages)
        epoch = self.state.position.epoch
        return next((stage, end) for stage, end in zip(self.stages, ends, strict=True) if epoch < end)

    def distribute(self, stage: Stage) -> nn.Module:
        """The loss of a stage over all ranks: gradients averaged, BatchNorm statistics those of the main rank."""
        if stage.name not in self.compiled:
            self.compiled[stage.name] = self.runtime.compiled(stage.loss)
        loss_module = self.compiled[stage.name]
        if self.ranks.world == 1:
            return loss_module
        # No device_ids: it would move all tensors of a batch to the GPU, and the lengths of questions belong here.
        return Distributed(loss_module, find_unused_parameters=stage.unused_parameters)

    def load(self, rows: np.ndarray) -> Batch:
        """Images as the next step trains them."""
        return move_to(self.read(rows, self.state.position.index)[0], self.ranks.device)

    def read(self, rows: np.ndarray, index: int, *, pieces: int = 1) -> list[Batch]:
        """Images for a step of this epoch, on the host."""
        stage, place = self.stage[0], (self.seed, self.state.position.epoch, index, self.ranks.rank)
        return read_batches(stage, self.recipe, rows, *place, pieces=pieces)

    def step(self, loss_module: nn.Module, *batches: Batch, answers: int) -> Tensor:
        """One step on the mean loss over the answers of all ranks together, however unequal their shares.

        Args:
            loss_module: from a batch to its summed loss, as `distribute` gives it.
            batches: whose gradients are added up.
            answers: how many answers all ranks train in this step.
        """
        state, at, optim = self.state, self.state.position, self.recipe.optim
        # for dropout
        seed_device(derive_seed(self.seed, at.epoch, at.index, self.ranks.rank, 1), self.ranks.device)
        for group in state.optimiser.param_groups:
            group["lr"] = learning_rate(optim, at.step, steps_per_epoch=self.steps_per_epoch, total=self.total)
        # The ranks' gradients are averaged; what is wanted is their sum over the total.
        scale = self.ranks.world / max(1, answers)
        return take_step(state, self.recipe, loss_module, *batches, scale=scale)

    def log_step(self) -> None:
        """A line of metrics.jsonl within an epoch."""
        state, at = self.state, self.state.position
        state.check_finite()
        loss, rate = float(state.recent) / LOG_STEPS, state.optimiser.param_groups[0]["lr"]
        self.write({"event": "train", "epoch": at.epoch + 1, "step": at.step, "loss": loss, "rate": rate})
        state.recent.zero_()

    def end_epoch(self, progress: Progress) -> None:
        """Validate, keep the best weights, and write a line of metrics.jsonl."""
        state, at, val = self.state, self.state.position, self.splits.val
        state.check_finite()
        event = {"event": "epoch", "epoch": at.epoch + 1, "step": at.step, "loss": float(state.loss) / at.index}
        if val is not None and self.stage[0].answers:
            counts = self.evaluate(val)
            event |= {"val_loss": counts.mean_loss, **headline(compute_metrics(counts, val), val)}
            event |= probe(state.evaluated, val) or {}
            self.watcher.show(state.evaluated, val, counts, at.epoch + 1, self.recipe.epochs, at.step)
            if state.keep_best((counts.correct, -counts.loss)) and state.best is not None:
                self.write_weights("best", state.best, at.epoch + 1)
        state.update_clock()
        event["minutes"] = at.seconds / 60
        event = {key: round(value, 6) if isinstance(value, float) else value for key, value in event.items()}
        self.write(event)
        metrics = [f"{key.replace('_', ' ')} {event[key]:.4f}" for key in event if isinstance(event[key], float)]
        progress.say(f"epoch {at.epoch + 1} of {self.recipe.epochs}: {', '.join(metrics)}")

    def evaluate(self, dataset: Dataset) -> Counts:
        self.ranks.sync_buffers(self.state.evaluated)
        return evaluate(
            self.state.evaluated,
            dataset,
            batch_size=self.recipe.batch_size,
            localise=self.recipe.localise,
            ranks=self.ranks,
            interrupt=self.interrupt,
        )

    def test(self) -> dict[str, Any]:
        """The metrics of the kept weights (best by validation, else last) on every test set, and of the last ones."""
        model, best, splits = self.state.evaluated, self.state.best, self.splits
        last = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        self.write_weights("last", last, self.state.position.epoch)
        if best is not None and self.state.position.best_epoch is not None:
            self.write_weights("best", best, self.state.position.best_epoch)
        last_metrics = self.compute_metrics(splits.test)
        model.load_state_dict(best or last)
        held_out = {"val": splits.val, "test": splits.test}
        probes = {name: ablate(model, data, ranks=self.ranks) for name, data in held_out.items() if data is not None}
        is_last = best is None or self.state.position.best_epoch == self.state.position.epoch
        metrics = {"test": last_metrics if is_last else self.compute_metrics(splits.test)}
        metrics |= {name: self.compute_metrics(dataset) for name, dataset in splits.tests.items()}
        model.load_state_dict(last)
        further = {"test_split": splits.test.split, **({"broadcast": probes} if any(probes.values()) else {})}
        return {"metrics": metrics, "last": headline(last_metrics, splits.test), **further}

    def compute_metrics(self, dataset: Dataset) -> dict[str, Any]:
        return compute_metrics(self.evaluate(dataset), dataset)

    def write(self, event: dict[str, Any]) -> None:
        if self.run is not None:
            self.run.log.write(event)
            self.watcher.write(event)

    def write_weights(self, name: str, weights: dict[str, Tensor], epoch: int) -> None:
        if self.run is not None:
            recipe, train, arguments = self.recipe, self.splits.train, self.splits.model_arguments(self.recipe)
            description = describe_weights(recipe, train, arguments=arguments, seed=self.seed, epoch=epoch)
            write_weights(self.run.path / f"{name}.safetensors", weights, description)

    def now(self) -> dict[str, Any]:
        """What this session computes with, for the manifest and the record."""
        threads = {"threads": torch.get_num_threads(), "ranks": self.ranks.world}
        return threads | self.runtime.describe(self.ranks.device)

    def save(self) -> None:
        self.saved = time.monotonic()
        self.state.check_finite()
        if self.run is not None:
            self.run.log.sync()
            weights, state = self.state.model.state_dict(), self.state.dump() | {"metrics": self.run.log.lines}
            save_checkpoint(self.run.checkpoints, self.state.position.step, weights, state)

    def resume(self) -> None:
        """Take up the newest whole checkpoint, the main rank's on every rank."""
        with self.ranks.raise_on_all():
            checkpoint = load_checkpoint(self.run.checkpoints) if self.run is not None else None
        checkpoint = self.ranks.broadcast_object(checkpoint)
        lines: list[str] | None = []
        if checkpoint is None:
            initialise(self.state, self.recipe, self.splits, seed=self.seed)
        else:
            try:
                self.state.load(*checkpoint)
                _, lines = read_position(checkpoint[1])
            except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
                place = self.recipe.name if self.run is None else self.run.checkpoints
                reason = str(error).strip().split("\n")[0].rstrip(":")
                raise BcnError(
                    f"{place}: the checkpoint does not fit this version of bcn ({reason}); "
                    "use the version that wrote it, or remove the directory checkpoint to train from the start"
                ) from error
        step = self.state.position.step
        if self.run is not None:
            if lines is not None:
                self.run.log.restore(lines)
            else:
                self.run.log.rewind(step, self.state.position.epoch)
            began, now = self.run.manifest, self.now()
            if differing := [key for key in now if began.get(key, now[key]) != now[key]]:
                changes = ", ".join(f"{key} {began[key]} and goes on with {now[key]}" for key in differing)
                say(f"began with {changes}: it does not end the same, bit by bit")
            if step:
                say(f"{self.run.path}: going on at step {step} of {self.total}")
        self.state.position.sessions += 1


def train(
    recipe: Recipe,
    *,
    seed: int,
    runs: Path,
    data: Path | None = None,
    threads: int | None = None,
    runtime: Runtime | None = None,
    overrides: Sequence[str] = (),
    save_minutes: float = 5.0,
    timeout_minutes: float = TIMEOUT_MINUTES,
    start: Start | None = None,
    watcher: Watcher | None = None,
) -> dict[str, Any]:
    """Train a recipe to its end and return its record; the same call goes on with a run that was stopped. The record
    of a finished run is returned only for the data that it was trained on.

    Args:
        runs: the directory that holds the directories of runs.
        data: where the original data lies, BCN_DATA by default.
        threads: those that the run began with by default; of a new run, the cores divided by the ranks.
        runtime: device and the like.
        overrides: the assignments that made the recipe differ from its table's row; they are recorded, not applied.
        timeout_minutes: how long the processes of torchrun wait for one that does not answer.
        start: the trained weights that `recipe.start` names.
        watcher: is told what metrics.jsonl is told, and closed at the end.
    """
    check(recipe)
    if not 0 <= seed < 2**63:
        raise BcnError(f"seed {seed}: a seed is a whole number from 0 to 2^63 - 1")
    keep_memory()
    runtime = runtime or Runtime()
    with (
        arithmetic(recipe.precision, deterministic=runtime.deterministic),
        flush_denormals(),
        process_group(runtime.device, timeout_minutes=timeout_minutes) as ranks,
    ):
        splits, record = _open(recipe, seed, runs, data, threads, ranks, start)
        if record is None:
            with _start(recipe, seed, runs, splits, ranks, overrides, save_minutes, runtime) as trainer:
                trainer.watcher = watcher if watcher is not None and ranks.is_main else trainer.watcher
                trainer.fit()
                record = _finish(trainer)
        return record


def _open(
    recipe: Recipe, seed: int, runs: Path, data: Path | None, threads: int | None, ranks: Ranks, start: Start | None
) -> tuple[Splits, dict[str, Any] | None]:
    """The data of a run, and its record where it is finished. Sets the number of threads."""
    with ranks.raise_on_all():
        if min(recipe.batch_size, recipe.data.train or recipe.batch_size) < ranks.world:
            raise BcnError(f"a batch of {recipe.batch_size} cannot be shared out over {ranks.world} processes")
        started = find_started(recipe, seed=seed, runs=runs) if ranks.is_main else None
        record = started.record() if started is not None else None
    default = started.manifest["threads"] if started is not None else default_threads(ranks.local_world)
    default, record = ranks.broadcast_object((default, record))
    torch.set_num_threads(threads or default)
    with ranks.raise_on_all():
        splits = Splits.open(recipe, data, start)
        if started is not None and record is not None:
            started.check_data(splits.checksums())
    return splits, record


@contextmanager
def _start(
    recipe: Recipe,
    seed: int,
    runs: Path,
    splits: Splits,
    ranks: Ranks,
    overrides: Sequence[str],
    save_minutes: float,
    runtime: Runtime,
) -> Iterator[Trainer]:
    """A trainer at the newest checkpoint of its run, whose directory is locked, and which signals stop."""
    stop = Stop()
    # What can be refused is refused before anything is written, and by all ranks.
    with ranks.raise_on_all():
        splits.check(recipe)
        kept = splits.on_device(ranks.device, runtime.image_limit(ranks.device))
        trainer = Trainer(recipe, seed, kept, ranks=ranks, stop=stop, save_minutes=save_minutes, runtime=runtime)
        for dataset in (splits.train, *splits.tests.values()):
            check_fit(trainer.state.model, dataset, recipe.model)
    with ExitStack() as stack:
        with ranks.raise_on_all():
            if ranks.is_main:
                checksums = splits.checksums()
                opened = open_run(recipe, seed=seed, runs=runs, data=checksums, overrides=overrides, now=trainer.now())
                trainer.run = stack.enter_context(opened)
        stack.enter_context(stop)
        trainer.resume()
        stack.callback(lambda: trainer.watcher.close())
        yield trainer


def _finish(trainer: Trainer) -> dict[str, Any]:
    """Test, and write the record."""
    measured = trainer.test() | trainer.now()
    if trainer.run is not None:
        trainer.run.log.sync()
        record = make_record(trainer.run, trainer.recipe, trainer.state, trainer.splits.train, measured)
        write_record(trainer.run.path / "record.json", record)
    return dict(trainer.ranks.broadcast_object(trainer.run and trainer.run.record()))
