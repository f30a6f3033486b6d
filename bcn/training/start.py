"""Training that starts from trained weights: the vocabulary and the answers grow, all else is taken over.

V words, A answers.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.training.recipe import Recipe
from bcn.training.weights import load_model

DETERMINED = ("vocab_size", "num_answers")
"""arguments of a model that its data determines"""


@dataclass(frozen=True)
class Start:
    name: str
    """to be recorded: where the weights came from and how their checksum begins"""
    weights: dict[str, Tensor]
    description: dict[str, Any]

    @classmethod
    def read(cls, name: str, path: Path) -> "Start":
        """The weights of a file, or the best of a run, with every check that asking them takes.

        Args:
            name: of the weights, for people.
        """
        model, description = load_model(path)
        weights = model.state_dict()
        digest = hashlib.sha256()
        for key, tensor in sorted(weights.items()):
            digest.update(key.encode() + tensor.contiguous().numpy().tobytes())
        return cls(f"{name}@{digest.hexdigest()[:12]}", weights, description)

    def prepare(self, recipe: Recipe) -> Recipe:
        """The recipe with the model that these weights are of, and their name."""
        arguments = {key: value for key, value in self.description["arguments"].items() if key not in DETERMINED}
        kept = tuple(sorted((key, tuple(v) if isinstance(v, list) else v) for key, v in arguments.items()))
        return replace(recipe, model=self.description["model"], arguments=kept, start=self.name)

    def grow(self, words: tuple[str, ...], answers: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """The words and answers of these weights, then those of the data that they lack."""
        known = {"words": self.description.get("words") or (), "answers": self.description["answers"]}
        return {
            key: tuple(dict.fromkeys((*known[key], *names))) for key, names in (("words", words), ("answers", answers))
        }

    @torch.no_grad()
    def load_into(self, model: nn.Module) -> None:
        """Take over every weight; rows of words and answers that these weights lack stay as they are."""
        state = model.state_dict()
        for name, given in self.weights.items():
            target = state.get(name, torch.empty(0))
            grown = target[: len(given)] if given.dim() and target.dim() else target
            if grown.shape != given.shape:
                raise BcnError(
                    f"{self.name} does not fit the model: {name} has the shape {tuple(given.shape)} there and "
                    f"{tuple(target.shape)} here; start from weights of the same model"
                )
            grown.copy_(given)
