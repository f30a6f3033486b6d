"""Everything that a step changes. Sample order, augmentation, dropout and learning rate follow from the position."""

import copy
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter, with_config
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from bcn.errors import BcnError
from bcn.models.registry import create_model
from bcn.models.relation_model import QuestionAnswerer
from bcn.training.auxiliary import make_heads
from bcn.training.device import sum_dtype
from bcn.training.optim.schedule import make_optimiser
from bcn.training.recipe import Recipe, phases
from bcn.training.splits import Splits

NEVER = 2**62
"""a step that no run comes to"""


def derive_seed(*numbers: int) -> int:
    """A seed for each place in a run, a function of the run's seed and the place."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def seed_device(seed: int, device: torch.device) -> None:
    """Seed one device: torch.manual_seed would seed every kind of device there is, in a quarter of a ms."""
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        getattr(torch, device.type).manual_seed(seed)


@with_config(extra="forbid")
@dataclass
class Position:
    """Plain numbers of a checkpoint."""

    epoch: int = 0
    """epochs that are finished, validation included"""
    index: int = 0
    """steps done in the current epoch"""
    step: int = 0
    """steps done in all"""
    questions: int = 0
    best_epoch: int | None = None
    best_score: tuple[int, float] | None = None
    sessions: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    train_seconds: float = 0.0
    train_cpu_seconds: float = 0.0


def read_position(state: dict[str, Any]) -> tuple[Position, list[str] | None]:
    """The position that a checkpoint's state tells, and its lines of metrics.jsonl, which version 0.1 did not keep.

    KeyError, TypeError or ValueError where it tells something else.
    """
    position = TypeAdapter(Position).validate_python(state["position"])
    return position, TypeAdapter(list[str] | None).validate_python(state.get("metrics"))


@dataclass
class State:
    model: nn.Module
    optimiser: torch.optim.Optimizer
    ema: nn.Module | None
    """the exponential moving average of the model"""
    heads: nn.ModuleDict
    """of auxiliary supervision, trained beside the model"""
    best: dict[str, Tensor] | None = None
    position: Position = field(default_factory=Position)
    loss: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))
    """sum over the steps of the current epoch, of the mean over all ranks"""
    recent: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))
    """sum over the steps since the last line of metrics.jsonl"""
    first_bad: Tensor = field(default_factory=lambda: torch.tensor(NEVER))
    """the first step whose loss was not finite"""
    _clock: tuple[float, float] = field(default_factory=lambda: (time.perf_counter(), time.process_time()))

    @classmethod
    def begin(cls, recipe: Recipe, splits: Splits, *, seed: int, device: torch.device) -> "State":
        torch.manual_seed(derive_seed(seed))
        model = create_model(recipe.model, **splits.model_arguments(recipe)).to(device)
        if splits.embeddings is not None and isinstance(model, QuestionAnswerer):
            model.question_encoder.load_word_embeddings(splits.embeddings)
        heads = make_heads(recipe, model, splits.train, splits.objects).to(device)
        # The model comes last, for its own last layer to be the one that Muon leaves to Adam.
        optimiser = make_optimiser(recipe.optim, nn.ModuleList([*heads.values(), model]))
        ema = None if recipe.optim.ema_decay is None else copy.deepcopy(model).requires_grad_(False)
        state = cls(model, optimiser, ema, heads)
        state.loss, state.recent = (tensor.to(sum_dtype(device)).to(device) for tensor in (state.loss, state.recent))
        state.first_bad = state.first_bad.to(device)
        return state

    @property
    def evaluated(self) -> nn.Module:
        """The model that is validated, tested and kept: the EMA where there is one."""
        return self.model if self.ema is None else self.ema

    @property
    def trained(self) -> list[nn.Parameter]:
        """Every parameter that the optimiser trains, those of auxiliary heads included."""
        return [parameter for group in self.optimiser.param_groups for parameter in group["params"]]

    def count(self, loss: Tensor, *, answers: int, seconds: float, cpu_seconds: float) -> None:
        """A step is done: add its loss up without waiting for its value, and move on."""
        at = self.position
        self.loss += loss
        self.recent += loss
        self.first_bad = self.first_bad.minimum(torch.where(loss.isfinite(), NEVER, at.step))
        at.index, at.step, at.questions = at.index + 1, at.step + 1, at.questions + answers
        at.train_seconds += seconds
        at.train_cpu_seconds += cpu_seconds

    def next_epoch(self) -> None:
        self.position.epoch, self.position.index = self.position.epoch + 1, 0
        self.loss.zero_()

    def check_finite(self) -> None:
        """Stop a run whose loss or weights are no longer numbers, before anything good on disk is replaced."""
        step = int(self.first_bad)
        if step == NEVER and not all(bool(parameter.isfinite().all()) for parameter in self.trained):
            step = self.position.step - 1
        if step != NEVER:
            raise BcnError(
                f"the loss is not a finite number at step {step + 1} (epoch {self.position.epoch + 1}); "
                "the last good checkpoint is kept: try a lower optim.lr, or optim.clip_norm=1"
            )

    def keep_best(self, score: tuple[int, float]) -> bool:
        """Keep the evaluated weights if they validate better than all before."""
        if self.position.best_score is not None and score <= self.position.best_score:
            return False
        self.best = {name: tensor.clone() for name, tensor in self.evaluated.state_dict().items()}
        self.position.best_epoch, self.position.best_score = self.position.epoch + 1, score
        return True

    def has_plateaued(self, recipe: Recipe) -> bool:
        """Whether validation has not become better for `patience` epochs, of those that train all questions.

        It follows from the position, so a run that goes on from a checkpoint ends in the same epoch; and the main rank
        decides for all, so that none waits for the others.
        """
        if not recipe.patience or self.position.best_epoch is None:
            return False
        before = recipe.epochs - phases(recipe).get("main", 0)
        return self.position.epoch - max(self.position.best_epoch, before) >= recipe.patience

    def update_clock(self) -> None:
        """Add the time since the last update to the run's."""
        now = time.perf_counter(), time.process_time()
        self.position.seconds += now[0] - self._clock[0]
        self.position.cpu_seconds += now[1] - self._clock[1]
        self._clock = now

    def dump(self) -> dict[str, Any]:
        """All but the model's weights, on the CPU, in types that torch.load(weights_only=True) takes."""
        self.update_clock()
        state: dict[str, Any] = {
            "position": dict(vars(self.position)),
            "optimiser": self.optimiser.state_dict(),
            "ema": None if self.ema is None else dict(self.ema.state_dict()),
            "heads": dict(self.heads.state_dict()),
            "best": self.best,
            "loss": self.loss,
            "recent": self.recent,
        }
        return dict(tree_map_only(Tensor, Tensor.cpu, state))

    def load(self, weights: dict[str, Tensor], state: dict[str, Any]) -> None:
        self.model.load_state_dict(weights)
        self.optimiser.load_state_dict(state["optimiser"])
        self.heads.load_state_dict(state["heads"])
        if self.ema is not None:
            self.ema.load_state_dict(state["ema"])
        self.best = state["best"]
        self.position, _ = read_position(state)
        self.loss.copy_(state["loss"])
        self.recent.copy_(state["recent"])
