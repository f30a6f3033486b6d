"""The block of Transformers against torch's own attention, and what may attend to what."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from bcn.errors import BcnError
from bcn.layers.baselines.multihead import AttentionBlock
from bcn.layers.baselines.set_transformer import InducedSetAttention, SetTransformerRelation
from bcn.layers.baselines.transformer import TransformerRelation


@pytest.mark.parametrize("masked", [False, True])
def test_a_block_is_attention_as_torch_has_it(masked: bool) -> None:
    torch.manual_seed(0)
    block = AttentionBlock(12, 20, heads=3).double()
    theirs = nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([block.query.weight, block.key.weight, block.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([block.query.bias, torch.zeros(12), block.value.bias]))
        theirs.out_proj.load_state_dict(block.out.state_dict())
    x, y = torch.randn(2, 4, 12).double(), torch.randn(2, 5, 12).double()
    mask = torch.tensor([[1, 1, 0, 1, 0], [1, 0, 0, 0, 0]]).bool() if masked else None
    seen = block.norm_y(y)
    attended, _ = theirs(block.norm_x(x), seen, seen, key_padding_mask=None if mask is None else ~mask)
    hidden = x + attended
    expected = hidden + block.leave(F.relu(block.enter(block.norm_hidden(hidden))))
    torch.testing.assert_close(block(x, y, mask), expected, rtol=0, atol=1e-12)


def test_points_are_all_that_objects_hear_of_each_other() -> None:
    """Two sets that the points cannot tell apart give an object that both have the same answer."""
    torch.manual_seed(0)
    layer = InducedSetAttention(12, 20, points=2, heads=3).double()
    set_RnW = torch.randn(1, 5, 12).double()
    twice = torch.cat([set_RnW, set_RnW], dim=1)  # attention has the same mean over a set and over two copies of it
    torch.testing.assert_close(layer(twice)[:, :5], layer(set_RnW), rtol=0, atol=1e-12)
    other = set_RnW.clone()
    other[:, 4] = torch.randn(12)
    assert (layer(other) - layer(set_RnW))[:, :4].abs().max() > 1e-6


@pytest.mark.parametrize("kind", [TransformerRelation, SetTransformerRelation])
def test_objects_of_other_channels_are_refused(kind: type[nn.Module]) -> None:
    with pytest.raises(BcnError, match="accepted is"):
        kind(5, 4)(torch.zeros(1, 6, 2, 2), torch.zeros(1, 4))


def test_heads_share_the_width() -> None:
    with pytest.raises(BcnError, match="share evenly"):
        AttentionBlock(10, 20, heads=4)
