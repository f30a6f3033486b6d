"""The device `far:0`, in a process of its own: see `helpers.far`."""

from collections.abc import Iterator

import pytest
import torch
from helpers.far import far_device


@pytest.fixture
def far() -> Iterator[torch.device]:
    with far_device() as device:
        yield device
