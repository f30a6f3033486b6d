"""What a weights file says of itself: how to build the model, prepare its inputs and name its answers.

A file may come from a stranger, so every field is checked before it is used, and one that is not known is refused.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator
from torch import Tensor, nn

from bcn.data.dataset import MAX_NAMES, Dataset, check_name
from bcn.errors import BcnError
from bcn.models.cost import example_inputs
from bcn.models.registry import image_shape, read_arguments, write_arguments
from bcn.training.forward import forward
from bcn.training.recipe import Recipe

NUM_SPECIAL = 2
"""token indices that are no words: padding and unknown"""


def _distinct(names: list[str]) -> list[str]:
    if len(set(names)) < len(names):
        raise ValueError("names something twice")
    return names


Name = Annotated[str, AfterValidator(check_name)]
Names = Annotated[list[Name], Field(max_length=MAX_NAMES), AfterValidator(_distinct)]
Size = Annotated[int, Field(gt=0, lt=2**31)]
Argument = str | bool | Size | FiniteFloat | Annotated[list[Size], Field(max_length=64)]


class _Strict(BaseModel):
    """No field is converted, left out or added."""

    model_config = ConfigDict(strict=True, extra="forbid")


class PreprocessingDescription(_Strict):
    """The arguments of `Preprocessing`."""

    mean: Annotated[list[FiniteFloat], Field(min_length=1)]
    std: Annotated[list[Annotated[FiniteFloat, Field(gt=0)]], Field(min_length=1)]


class Description(_Strict):
    """The description in a weights file."""

    model: Name
    arguments: dict[str, Argument]
    """of create_model"""
    data: Name
    preprocessing: PreprocessingDescription
    answers: Annotated[Names, Field(min_length=1)]
    kinds: Names
    """of questions; none where there are no kinds or no questions"""
    words: Names | None = None
    """the vocabulary of questions in words"""
    localise: bool
    recipe: Name
    scale: Name
    seed: Annotated[int, Field(ge=0)]
    epoch: Annotated[int, Field(ge=0)] | None

    @model_validator(mode="after")
    def _channels(self) -> "Description":
        from_image = (1, image_shape(self.model)[0])
        for values in (self.preprocessing.mean, self.preprocessing.std):
            if len(values) not in from_image:
                raise ValueError(f"has {len(values)} channels in preprocessing")
        return self


def describe_weights(
    recipe: Recipe, dataset: Dataset, *, arguments: dict[str, Any], seed: int, epoch: int | None
) -> dict[str, Any]:
    """The description of weights that a recipe trained.

    Args:
        dataset: the training split.
        arguments: those of create_model, as `Splits.model_arguments` gives them.
    """
    words = {"words": list(dataset.vocabulary.words)} if dataset.vocabulary is not None else {}
    return words | {
        "model": recipe.model,
        "arguments": write_arguments(recipe.model, arguments),
        "data": recipe.data.name,
        "preprocessing": asdict(dataset.preprocessing),
        "answers": list(dataset.answers),
        "kinds": list(dataset.kinds),
        "localise": recipe.localise,
        "recipe": recipe.name,
        "scale": recipe.scale,
        "seed": seed,
        "epoch": epoch,
    }


def check_description(path: Path, description: Any) -> dict[str, Any]:
    """The description of a weights file, if it says all that using the weights takes, and nothing else."""
    try:
        Description.model_validate(description)
        return {**description, "arguments": read_arguments(description["model"], description["arguments"])}
    except BcnError as error:  # an unknown model
        raise BcnError(f"{path}: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part)[:80] for part in first["loc"]) or "description"
        raise BcnError(f"{path}: {field}: {first['msg']}; give weights that `bcn train` wrote") from error


@torch.inference_mode()
def check_outputs(path: Path, model: nn.Module, description: dict[str, Any]) -> None:
    """Refuse a description that does not fit the model's inputs and outputs: those of a black image, asked nothing."""
    inputs = example_inputs(model, image_shape(description["model"]), images=1, questions=1)
    question = inputs[1:]
    logits, centre = forward(model, *(_blank(example) for example in inputs))
    answers, kinds, words = description["answers"], description["kinds"], description.get("words")
    tokens = next((module.num_embeddings for module in model.modules() if isinstance(module, nn.Embedding)), None)
    if not logits.isfinite().all():
        problem = "gives answers that are not finite numbers"
    elif logits.shape[-1] != len(answers):
        problem = f"names {len(answers)} answers of {logits.shape[-1]}"
    elif tokens != (None if words is None else len(words) + NUM_SPECIAL):
        problem = "has another vocabulary than its model"
    elif question and words is None and not kinds:
        problem = "names no kinds of questions"
    elif kinds and not question:
        problem = "names kinds of questions, and its model takes none"
    elif description["localise"] and centre is None:
        problem = "says that it localises, and its model does not"
    else:
        return
    raise BcnError(f"{path} {problem}; give weights that `bcn train` wrote")


def _blank(example: Tensor) -> Tensor:
    """Zeros, and for the mask of objects ones: they are all there."""
    return torch.full(example.shape, example.dtype == torch.bool, dtype=example.dtype)
