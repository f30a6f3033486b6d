"""Training: the loop on one screen.

    bcn train table3/multirn-h --scale cpu --seed 0
    torchrun --nproc-per-node=2 -m bcn train table3/multirn-h --scale cpu --seed 0

B images in a step over all ranks, Q questions about each, C x H x W pixels.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from bcn.data.dataset import Batch, Dataset
from bcn.data.vqa.clevr import FAMILIES
from bcn.errors import BcnError
from bcn.io import write_json
from bcn.models.clevr import Pointing
from bcn.training.checkpoint import load_checkpoint, save_checkpoint, save_weights
from bcn.training.distributed import Ranks, joined
from bcn.training.environment import default_threads, keep_memory
from bcn.training.evaluate import Tally, ask, check_fit, evaluate, loss_sum, metrics, move, pointing_sum
from bcn.training.interrupts import Interrupted, Stop
from bcn.training.optim.schedule import rate, update_average
from bcn.training.progress import Progress, TensorBoard, say
from bcn.training.recipe import Auxiliary, Recipe, check, phases
from bcn.training.record import describe, make_record
from bcn.training.run import Run, find_begun, opened, run_id
from bcn.training.splits import Sets as Sets
from bcn.training.state import State, derive, seed_device

EVENT_STEPS = 100
"""steps between two lines of metrics.jsonl, which is also where a loss that is not finite is noticed"""


class Trainer:
    """One run, as one rank sees it. Only the first rank has a `run`, and writes."""

    def __init__(
        self, recipe: Recipe, seed: int, sets: Sets, *, ranks: Ranks, stop: Stop, save_minutes: float = 5.0
    ) -> None:
        recipe = sets.complete(recipe)
        self.recipe, self.seed, self.sets, self.ranks = recipe, seed, sets, ranks
        self.auxiliary = recipe.auxiliary or Auxiliary()
        self.run: Run | None = None
        # A rank that left before the first one would tear the step of the first, whose state is the one to save.
        self.interrupt = stop.check if ranks.first else lambda: None
        self.state = State.begin(recipe, seed=seed, device=ranks.device, vectors=sets.vectors)
        self.per_epoch = max(1, len(sets.train) // recipe.batch_size)
        self.total = self.per_epoch * recipe.epochs
        self.save_seconds, self.saved = 60 * save_minutes, time.monotonic()
        self.board: TensorBoard | None = None

    def fit(self) -> None:
        """Go on from wherever the state is to the end of the last epoch; on a signal, save and leave."""
        with Progress(self.recipe.name, self.total, self.state.position.step, quiet=not self.ranks.first) as progress:
            try:
                self.run_epochs(progress)
            except Interrupted:
                self.save()
                raise

    def run_epochs(self, progress: Progress) -> None:
        state, at, recipe = self.state, self.state.position, self.recipe
        while at.epoch < recipe.epochs:
            phase, until = self.phase
            if phase != progress.phase:
                progress.begin(phase, until)
            model = self.distributed()
            order = self.order(self.training)
            while at.index < self.per_epoch:
                self.interrupt()
                began = time.perf_counter()
                index = order[at.index * recipe.batch_size : (at.index + 1) * recipe.batch_size]
                batch = self.load(self.ranks.share(index))
                answers = int(self.ranks.sum((batch.answer >= 0).sum()))
                loss = self.step(model, batch, answers=answers)
                state.count(loss, answers=answers, seconds=time.perf_counter() - began)
                progress.step(at.epoch, answers, loss.item)
                if at.step % EVENT_STEPS == 0:
                    self.note()
                if time.monotonic() - self.saved > self.save_seconds:
                    self.save()
            self.validate(progress)
            state.next_epoch()
            self.save()

    @property
    def phase(self) -> tuple[str, int]:
        """What this epoch is part of, and the step at which that ends."""
        ends = accumulate(phases(self.recipe).values())
        return next(
            (name, end * self.per_epoch)
            for name, end in zip(phases(self.recipe), ends, strict=True)
            if self.state.position.epoch < end
        )

    @property
    def training(self) -> Dataset:
        """What this epoch trains on: sight, or the training split."""
        sight, epoch = self.sets.sight, self.state.position.epoch
        return sight if sight is not None and epoch < self.auxiliary.object_epochs else self.sets.train

    @property
    def answers(self) -> bool:
        """Whether this epoch asks for answers, after sight and pointing."""
        return self.state.position.epoch >= self.auxiliary.epochs

    def order(self, data: Dataset) -> np.ndarray:
        """The rows of a data set in the order of this epoch, as many as its steps take."""
        return np.resize(data.order(self.state.position.epoch, seed=self.seed), self.per_epoch * self.recipe.batch_size)

    def load(self, index: np.ndarray) -> Batch:
        """This rank's images, augmented, with the questions that this epoch asks."""
        at, training = self.state.position, self.training
        batch = training[index]
        if self.recipe.augment:
            generator = torch.Generator().manual_seed(derive(self.seed, at.epoch, at.index, self.ranks.rank))
            batch = training.augment(batch, generator)
        if at.epoch < self.recipe.curriculum_epochs:
            batch = first_half(batch)
        return move(batch, self.ranks.device)

    def step(self, model: nn.Module, batch: Batch, *, answers: int) -> Tensor:
        """One step on the mean loss over the answers of all ranks together, however unequal their shares."""
        state, at, optim = self.state, self.state.position, self.recipe.optim
        seed_device(derive(self.seed, at.epoch, at.index, self.ranks.rank, 1), self.ranks.device)  # for dropout
        for group in state.optimiser.param_groups:
            group["lr"] = rate(optim, at.step, per_epoch=self.per_epoch, total=self.total)
        # DistributedDataParallel takes the mean of the ranks' gradients; what is wanted is their sum over the total.
        loss = self.loss(model, batch) * (self.ranks.world / max(1, answers))
        state.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if optim.clip_norm is not None:
            nn.utils.clip_grad_norm_(state.model.parameters(), optim.clip_norm)
        state.optimiser.step()
        if state.average is not None and optim.ema_decay is not None:
            update_average(state.average, state.model, optim.ema_decay, at.step)
        return loss.detach()

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """The sum over this rank's answers, and where it is taught to point, over what it points at."""
        image_BCHW = self.sets.train.preprocessing(batch.image)
        if batch.point is None:
            return loss_sum(*ask(model, image_BCHW, batch.question), batch, localise=self.recipe.localise)
        logits_BQA, pointed_BQTcM, object_BT = model(image_BCHW, batch.question, batch.point)
        pointed = pointing_sum(pointed_BQTcM, object_BT, batch)
        return pointed if logits_BQA is None else pointed + loss_sum(logits_BQA, None, batch, localise=False)

    def distributed(self) -> nn.Module:
        """What a step of this epoch calls: gradients averaged, BatchNorm statistics those of the first rank."""
        state = self.state
        model = (state.sight if self.training is self.sets.sight else state.pointing) or state.model
        if isinstance(model, Pointing):
            model.answers = self.answers
        if self.ranks.world == 1:
            return model
        devices = [self.ranks.device] if self.ranks.device.type == "cuda" else None
        unused = isinstance(model, Pointing) and not model.answers
        return DistributedDataParallel(model, device_ids=devices, find_unused_parameters=unused)

    def share_losses(self) -> None:
        """Let every rank know the mean of the losses so far, and stop where one was not finite."""
        state = self.state
        for total in (state.loss, state.recent):
            self.ranks.mean_(total)
        state.first_bad = self.ranks.least(state.first_bad)
        state.check_finite()

    def note(self) -> None:
        """A line of metrics.jsonl within an epoch."""
        state, at = self.state, self.state.position
        self.share_losses()
        loss, learning_rate = float(state.recent) / EVENT_STEPS, state.optimiser.param_groups[0]["lr"]
        self.write({"event": "train", "epoch": at.epoch + 1, "step": at.step, "loss": loss, "rate": learning_rate})
        state.recent.zero_()

    def validate(self, progress: Progress) -> None:
        """The end of an epoch: count, keep the best, write a line."""
        state, at = self.state, self.state.position
        self.share_losses()
        event = {"event": "epoch", "epoch": at.epoch + 1, "step": at.step, "loss": float(state.loss) / at.index}
        if self.sets.val is not None and self.answers:
            tally = self.evaluate(self.sets.val)
            event |= {"val_loss": tally.mean_loss, **headline(metrics(tally, self.sets.val))}
            if state.keep_best((tally.correct, -tally.loss)) and state.best is not None:
                self.write_weights("best", state.best, at.epoch + 1)
        state.tick()
        event["minutes"] = at.seconds / 60
        event = {key: round(value, 6) if isinstance(value, float) else value for key, value in event.items()}
        self.write(event)
        figures = [f"{key.replace('_', ' ')} {event[key]:.4f}" for key in event if isinstance(event[key], float)]
        progress.say(f"epoch {at.epoch + 1} of {self.recipe.epochs}: {', '.join(figures)}")

    def evaluate(self, dataset: Dataset) -> Tally:
        self.ranks.align(self.state.evaluated)
        return evaluate(
            self.state.evaluated,
            dataset,
            batch_size=self.recipe.batch_size,
            localise=self.recipe.localise,
            ranks=self.ranks,
            interrupt=self.interrupt,
        )

    def test(self) -> dict[str, Any]:
        """The figures of the weights that count (best by validation, else last) on every test set, and of the last."""
        model, best, sets = self.state.evaluated, self.state.best, self.sets
        last = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        self.write_weights("last", last, self.recipe.epochs)
        if best is not None and self.state.position.best_epoch is not None:
            self.write_weights("best", best, self.state.position.best_epoch)
        last_figures = metrics(self.evaluate(sets.test), sets.test)
        model.load_state_dict(best or last)
        is_last = best is None or self.state.position.best_epoch == self.recipe.epochs
        figures = {"test": last_figures if is_last else metrics(self.evaluate(sets.test), sets.test)}
        figures |= {name: metrics(self.evaluate(dataset), dataset) for name, dataset in sets.tests.items()}
        model.load_state_dict(last)
        return {"metrics": figures, "last": headline(last_figures)}

    def write(self, event: dict[str, Any]) -> None:
        if self.run is not None:
            self.run.write(event)
        if self.board is not None:
            self.board.write(event)

    def save(self) -> None:
        self.saved = time.monotonic()
        self.state.check_finite()
        if self.run is not None:
            weights = self.state.model.state_dict()
            save_checkpoint(self.run.checkpoints, self.state.position.step, weights, self.state.dump())

    def resume(self) -> None:
        """Take up the newest whole checkpoint, the first rank's on every rank."""
        with self.ranks.together():
            found = load_checkpoint(self.run.checkpoints) if self.run is not None else None
        found = self.ranks.same(found)
        if found is not None:
            try:
                self.state.load(*found)
            except (KeyError, TypeError, ValueError, RuntimeError) as error:
                place = self.recipe.name if self.run is None else self.run.checkpoints
                reason = str(error).strip().split("\n")[0].rstrip(":")
                raise BcnError(
                    f"{place}: the checkpoint does not fit this version of bcn ({reason}); "
                    "use the version that wrote it, or remove the directory checkpoint to train from the start"
                ) from error
        step = self.state.position.step
        if self.run is not None:
            self.run.rewind(step, self.state.position.epoch)
            began, now = self.run.manifest, (torch.get_num_threads(), self.ranks.world)
            if (then := (began["threads"], began["ranks"])) != now:
                say(f"began with (threads, ranks) {then} and goes on with {now}: it does not end the same, bit by bit")
            if step:
                say(f"{self.run.path}: going on at step {step} of {self.total}")
        self.state.position.sessions += 1

    def write_weights(self, name: str, weights: dict[str, Tensor], epoch: int) -> None:
        if self.run is not None:
            description = describe(self.recipe, self.sets.train, self.seed, epoch)
            save_weights(self.run.path / f"{name}.safetensors", weights, description)


def first_half(batch: Batch) -> Batch:
    """The batch with its non-relational questions alone, which are the first half."""
    assert batch.question is not None
    assert batch.kind is not None
    half = batch.answer.shape[1] // 2
    return batch._replace(answer=batch.answer[:, :half], question=batch.question[:, :half], kind=batch.kind[:, :half])


def headline(figures: dict[str, Any]) -> dict[str, float]:
    """The few figures of a curve."""
    names = {"accuracy": "all", "relational": "relational", "non_relational": "non_relational"}
    names |= {family: family for family in FAMILIES if "query_attribute" in figures}
    curve = {name: figures[of]["accuracy"] for name, of in names.items() if of in figures and figures[of]["total"]}
    return curve | ({"localisation": figures["localisation"]} if "localisation" in figures else {})


def train(
    recipe: Recipe,
    *,
    seed: int,
    runs: Path,
    data: Path | None = None,
    threads: int | None = None,
    overrides: Sequence[str] = (),
    save_minutes: float = 5.0,
    tensorboard: bool = False,
) -> dict[str, Any]:
    """Train a recipe to its end and give its record; the same call goes on with a run that was stopped.

    The record of a run that is finished is given only for the data that it was trained on.
    `overrides` are the assignments that made the recipe differ from its table's row; they are noted, not applied.
    """
    check(recipe)
    if not 0 <= seed < 2**63:
        raise BcnError(f"seed {seed}: a seed is a whole number from 0 to 2^63 - 1")
    keep_memory()
    with ExitStack() as stack:
        # Weight decay takes what is not used to numbers so small that products with them are many times slower.
        torch.set_flush_denormal(True)
        stack.callback(torch.set_flush_denormal, False)
        ranks, stop = stack.enter_context(joined()), Stop()
        # What can be refused is refused before anything is written, and by all ranks together.
        with ranks.together():
            if min(recipe.batch_size, recipe.data.train or recipe.batch_size) < ranks.world:
                raise BcnError(f"a batch of {recipe.batch_size} cannot be shared out over {ranks.world} processes")
            begun = find_begun(recipe, seed=seed, runs=runs) if ranks.first else None
            record = begun.record() if begun is not None else None
        default = begun.manifest["threads"] if begun is not None else default_threads(ranks.local_world)
        default, record = ranks.same((default, record))
        torch.set_num_threads(threads or default)
        with ranks.together():
            sets = Sets.open(recipe, data)
            if begun is not None and record is not None:
                begun.hold_data(sets.checksums())
        if record is not None:
            return dict(record)
        with ranks.together():
            sets.check(recipe)
            trainer = Trainer(recipe, seed, sets, ranks=ranks, stop=stop, save_minutes=save_minutes)
            for dataset in (sets.train, *sets.tests.values()):
                check_fit(trainer.state.model, dataset, recipe.model)
            if tensorboard and ranks.first:
                trainer.board = TensorBoard(runs / run_id(recipe, seed) / "tensorboard")
        now = {"threads": torch.get_num_threads(), "ranks": ranks.world}
        with ranks.together():
            if ranks.first:
                started = opened(recipe, seed=seed, runs=runs, data=sets.checksums(), overrides=overrides, **now)
                trainer.run = stack.enter_context(started)
        stack.enter_context(stop)
        trainer.resume()
        trainer.fit()
        found = trainer.test() | now
        if trainer.run is not None:
            record = make_record(trainer.run, recipe, trainer.state, sets.train, found)
            write_json(trainer.run.path / "record.json", record)
        return dict(ranks.same(trainer.run and trainer.run.record()))
