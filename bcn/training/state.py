"""Everything that a step changes; order of samples, augmentation, dropout and rate are functions of the position."""

import copy
import math
import time
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from bcn.data.clevr_like.pointing import WAYS
from bcn.data.clevr_like.sight import ANSWERS, KINDS
from bcn.errors import BcnError
from bcn.models.clevr import Pointing, grid, sight
from bcn.models.registry import create_model
from bcn.models.relation_model import QuestionAnswerer
from bcn.training.optim.schedule import make_optimiser
from bcn.training.recipe import Auxiliary, Recipe

NEVER = 2**62
"""a step that no run comes to"""


def derive(*numbers: int) -> int:
    """A seed for each place in a run: decided by the run's seed and the place, and unlike its neighbours'."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def seed_device(seed: int, device: torch.device) -> None:
    """Seed what a step draws from: torch.manual_seed would seed every kind of device there is, in a quarter of a ms."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)


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


@dataclass
class State:
    model: nn.Module
    optimiser: torch.optim.Optimizer
    average: nn.Module | None
    sight: nn.Module | None = None
    """what the CNN is taught to see with"""
    pointing: nn.Module | None = None
    """what the model is taught to point with"""
    best: dict[str, Tensor] | None = None
    position: Position = field(default_factory=Position)
    loss: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))
    """sum over the steps of the current epoch, of this rank's share until the ranks take the mean of theirs"""
    recent: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))
    """sum over the steps since the last line of metrics.jsonl"""
    first_bad: Tensor = field(default_factory=lambda: torch.tensor(NEVER))
    """the first step whose loss was not finite"""
    _since: tuple[float, float] = field(default_factory=lambda: (time.perf_counter(), time.process_time()))

    @classmethod
    def begin(cls, recipe: Recipe, *, seed: int, device: torch.device, vectors: Tensor | None = None) -> "State":
        auxiliary = recipe.auxiliary or Auxiliary()
        torch.manual_seed(derive(seed))
        model = create_model(recipe.model, **dict(recipe.arguments)).to(device)
        if vectors is not None and isinstance(model, QuestionAnswerer):
            model.question_encoder.load_word_embeddings(vectors)
        seeing = sight(model, len(KINDS), len(ANSWERS)).to(device) if auxiliary.object_epochs else None
        objects = math.prod(grid(recipe.model)) if auxiliary.referent_epochs else 0
        pointing = (
            Pointing(cast(QuestionAnswerer, model), WAYS, objects).to(device) if auxiliary.referent_epochs else None
        )
        # Where it is taught, the model is last, for its own last layer to be the one that Muon leaves to Adam.
        taught = [part for part in (seeing, pointing) if part is not None]
        optimiser = make_optimiser(recipe.optim, nn.ModuleList([*taught, model]) if taught else model)
        average = None if recipe.optim.ema_decay is None else copy.deepcopy(model).requires_grad_(False)
        state = cls(model, optimiser, average, seeing, pointing)
        state.loss, state.recent, state.first_bad = (
            tensor.to(device) for tensor in (state.loss, state.recent, state.first_bad)
        )
        return state

    @property
    def evaluated(self) -> nn.Module:
        """The model that is validated, tested and kept: the average where there is one."""
        return self.model if self.average is None else self.average

    def count(self, loss: Tensor, *, answers: int, seconds: float) -> None:
        """A step is done: add its loss up without waiting for its value, and move on."""
        at = self.position
        self.loss += loss
        self.recent += loss
        self.first_bad = self.first_bad.minimum(torch.where(loss.isfinite(), NEVER, at.step))
        at.index, at.step, at.questions = at.index + 1, at.step + 1, at.questions + answers
        at.train_seconds += seconds

    def next_epoch(self) -> None:
        self.position.epoch, self.position.index = self.position.epoch + 1, 0
        self.loss.zero_()

    def check_finite(self) -> None:
        """Stop a run whose loss or weights are no longer numbers, before anything good on disk is replaced."""
        step = int(self.first_bad)
        trained = (tensor for group in self.optimiser.param_groups for tensor in group["params"])
        if step == NEVER and not all(bool(tensor.isfinite().all()) for tensor in trained):
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

    def tick(self) -> None:
        """Add the time since the last tick to the run's."""
        now = time.perf_counter(), time.process_time()
        self.position.seconds += now[0] - self._since[0]
        self.position.cpu_seconds += now[1] - self._since[1]
        self._since = now

    def dump(self) -> dict[str, Any]:
        """All but the model's weights, in types that torch.load(weights_only=True) takes."""
        self.tick()
        return {
            "position": dict(vars(self.position)),
            "optimiser": self.optimiser.state_dict(),
            "average": None if self.average is None else dict(self.average.state_dict()),
            "sight": None if self.sight is None else dict(self.sight.state_dict()),
            "pointing": None if self.pointing is None else dict(self.pointing.state_dict()),
            "best": self.best,
            "loss": self.loss,
            "recent": self.recent,
        }

    def load(self, weights: dict[str, Tensor], state: dict[str, Any]) -> None:
        self.model.load_state_dict(weights)
        self.optimiser.load_state_dict(state["optimiser"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
        if self.sight is not None:
            self.sight.load_state_dict(state["sight"])
        if self.pointing is not None:
            self.pointing.load_state_dict(state["pointing"])
        self.best = state["best"]
        self.position = Position(**state["position"])
        self.loss.copy_(state["loss"])
        self.recent.copy_(state["recent"])
