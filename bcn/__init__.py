"""bcn: Broadcasting Convolutional Networks and multi-relational networks for visual relational reasoning from pixels.

The public names are imported when they are first used, so that `import bcn` and `bcn --help` do not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Listed twice, because type checkers read imports, which would load torch; a test compares the two lists.
if TYPE_CHECKING:
    from bcn.data.registry import open_dataset as open_dataset
    from bcn.errors import BcnError as BcnError
    from bcn.inference.export import export as export
    from bcn.inference.reasoner import Reasoner as Reasoner
    from bcn.inference.reasoner import load as load
    from bcn.layers.broadcast import BroadcastConv as BroadcastConv
    from bcn.layers.coordinates import coordinate_planes as coordinate_planes
    from bcn.layers.relation import MultiRelation as MultiRelation
    from bcn.layers.relation import PairRelation as PairRelation
    from bcn.models.balance import balance_broadcast as balance_broadcast
    from bcn.models.blocks import BroadcastBlock as BroadcastBlock
    from bcn.models.insert import insert_broadcast as insert_broadcast
    from bcn.models.registry import create_model as create_model
    from bcn.models.registry import list_models as list_models
    from bcn.paper.start_run import train as train

__version__ = "0.2.0"

_MODULES = {
    "BcnError": "bcn.errors",
    "BroadcastConv": "bcn.layers.broadcast",
    "BroadcastBlock": "bcn.models.blocks",
    "coordinate_planes": "bcn.layers.coordinates",
    "MultiRelation": "bcn.layers.relation",
    "PairRelation": "bcn.layers.relation",
    "insert_broadcast": "bcn.models.insert",
    "balance_broadcast": "bcn.models.balance",
    "create_model": "bcn.models.registry",
    "list_models": "bcn.models.registry",
    "load": "bcn.inference.reasoner",
    "Reasoner": "bcn.inference.reasoner",
    "open_dataset": "bcn.data.registry",
    "train": "bcn.paper.start_run",
    "export": "bcn.inference.export",
}
__all__ = ["__version__", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'bcn' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
