"""For torch.hub: `torch.hub.load(repository, "reasoner", "sort-of-clevr/multirn-h")`."""

from typing import Any

from torch import nn

from bcn import Reasoner, create_model, load

dependencies = ["torch", "numpy", "PIL", "safetensors", "pydantic", "filelock"]


def reasoner(name: str = "sort-of-clevr/multirn-h") -> Reasoner:
    """Trained weights that come with the repository, with what asking them takes; `model` is the network itself."""
    return load(name)


def model(name: str, **arguments: Any) -> nn.Module:
    """Any model of the paper with random weights, as `bcn.create_model` makes it."""
    return create_model(name, **arguments)
