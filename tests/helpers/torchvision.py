"""torchvision and timm, also beside a build of torch that torchvision's operators were not compiled for."""

from importlib import import_module
from types import ModuleType

import pytest
import torch

OPERATORS = ("nms", "qnms")
_library = torch.library.Library("torchvision", "FRAGMENT")


def import_torchvision() -> ModuleType:
    """torchvision; the two operators that it asks for when it is imported are declared, and never called."""
    try:
        return import_module("torchvision")
    except ImportError:
        pytest.skip("needs torchvision", allow_module_level=True)
    except RuntimeError:
        for name in OPERATORS:
            _library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return import_module("torchvision")
