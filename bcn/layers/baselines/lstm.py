"""A bidirectional LSTM (Hochreiter and Schmidhuber, 1997) that reads sentences of different lengths to one vector each.

Three forms that agree: `unrolled`, word by word with padding masked out, which compiles, counts and exports (as a
loop); `packed`, which reads no padding, and whose own backward makes each weight's gradient with one matrix product for
all words instead of one for each; and `packed_operator`, torch's own LSTM, which on CUDA is one operator of cuDNN where
the others are a thousand.

Why not the last on the CPU, `nn.LSTM` with `pack_padded_sequence`: on the same parameters it takes 1.62 [1.57, 1.69]
times as long for forward and backward (forward alone 0.97 [0.94, 1.05]), and makes a training step of clevr/multirn-h
1.20 [1.17, 1.30] times as long: 454 against 360 ms for 16 images with 10 questions of 17 words. (Median and quartiles
of the ratio of CPU time, 28 and 10 pairs in one process, one core; outputs differ by 2e-7.) Gates and parameters are
those of `nn.LSTM`, its two biases added up.

U sentences, L words in the longest, N words in all, E numbers for a word, H units, G = 4 H gates in the order input,
forget, cell, output; 2 directions, of which the reverse one has its words in the order in which it reads them.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from bcn.layers.fused.dispatch import has_values

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input
# cuDNN copies the weights into a block of its own, half a megabyte, in every call: parameters stay where they are.
warnings.filterwarnings("ignore", message="RNN module weights are not part of single contiguous chunk")
Both = tuple[Tensor, Tensor]
After = tuple[Both, Tensor]


class Packing(NamedTuple):
    """Where the words of sentences are that stand without padding: all first words, all second words, ...

    Sentences go from the longest to the shortest, so that those with a word t are the first `counts[t]`.
    """

    counts: list[int]
    starts: list[int]
    """the first of the words t"""
    word_N: Tensor
    """where each was in the padded (U L)"""
    reverse_N: Tensor
    """each one's mirror within its sentence"""
    before: Tensor
    """the word before each one that is not a first word"""
    last_U: Tensor
    """the last word of each sentence, in the order that was given"""

    @classmethod
    def of(cls, length_U: Tensor, words: int) -> "Packing":
        length, order = length_U.sort(descending=True, stable=True)
        place_L = torch.arange(words, device=length.device)
        t_N, u_N = (place_L[:, None] < length).nonzero(as_tuple=True)
        counts = [count for count in (place_L[:, None] < length).sum(dim=1).tolist() if count]
        start_L = torch.tensor([0, *counts], device=length.device).cumsum(0)
        return cls(
            counts,
            start_L.tolist(),
            order[u_N] * words + t_N,
            start_L[length[u_N] - 1 - t_N] + u_N,
            start_L[t_N[counts[0] :] - 1] + u_N[counts[0] :],
            (start_L[length - 1] + torch.arange(len(length), device=length.device))[order.argsort()],
        )


class _PackedLayer(torch.autograd.Function):
    """One layer, both directions: all states (2, N, H)."""

    @staticmethod
    def forward(
        ctx: Any, input_NE: Tensor, weight_ih_2GE: Tensor, weight_hh_2GH: Tensor, bias_2G: Tensor, packing: Packing
    ) -> Tensor:
        reversed_NE, hidden = input_NE[packing.reverse_N], weight_hh_2GH.shape[2]
        gate_2NG = input_NE.new_empty(2, len(input_NE), 4 * hidden)
        for direction, words_NE in enumerate((input_NE, reversed_NE)):
            torch.addmm(bias_2G[direction], words_NE, weight_ih_2GE[direction].t(), out=gate_2NG[direction])
        cell_2NH, state_2NH = (input_NE.new_empty(2, len(input_NE), hidden) for _ in range(2))
        before = 0
        for start, count in zip(packing.starts, packing.counts, strict=False):
            gate, cell, state = (tensor[:, start : start + count] for tensor in (gate_2NG, cell_2NH, state_2NH))
            if start:
                gate.baddbmm_(state_2NH[:, before : before + count], weight_hh_2GH.transpose(1, 2))
            gate[..., : 2 * hidden].sigmoid_()
            gate[..., 2 * hidden : 3 * hidden].tanh_()
            gate[..., 3 * hidden :].sigmoid_()
            input_gate, forget_gate, candidate, output_gate = gate.chunk(4, dim=2)
            torch.mul(input_gate, candidate, out=cell)
            if start:
                cell.addcmul_(forget_gate, cell_2NH[:, before : before + count])
            torch.tanh(cell, out=state).mul_(output_gate)
            before = start
        ctx.save_for_backward(input_NE, reversed_NE, weight_ih_2GE, weight_hh_2GH, gate_2NG, cell_2NH, state_2NH)
        ctx.packing = packing
        return state_2NH

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_2NH: Tensor) -> tuple[Tensor | None, ...]:
        input_NE, reversed_NE, weight_ih_2GE, weight_hh_2GH, gate_2NG, cell_2NH, state_2NH = ctx.saved_tensors
        packing, hidden = ctx.packing, weight_hh_2GH.shape[2]
        grad_gate_2NG = torch.empty_like(gate_2NG)
        grad_state, grad_cell = (grad_2NH.new_zeros(2, packing.counts[0], hidden) for _ in range(2))
        for t in reversed(range(len(packing.counts))):
            start, count = packing.starts[t], packing.counts[t]
            gate, d_gate = (tensor[:, start : start + count] for tensor in (gate_2NG, grad_gate_2NG))
            input_gate, forget_gate, candidate, output_gate = gate.chunk(4, dim=2)
            d_input, d_forget, d_candidate, d_output = d_gate.chunk(4, dim=2)
            tanh_cell = cell_2NH[:, start : start + count].tanh()
            d_state = grad_state[:, :count].add_(grad_2NH[:, start : start + count])
            d_cell = grad_cell[:, :count]
            torch.mul(d_state, tanh_cell, out=d_output)
            d_state.mul_(output_gate)
            d_cell.add_(_tanh_backward(d_state, tanh_cell, grad_input=tanh_cell))
            torch.mul(d_cell, candidate, out=d_input)
            torch.mul(d_cell, input_gate, out=d_candidate)
            if t:
                before = packing.starts[t - 1]
                torch.mul(d_cell, cell_2NH[:, before : before + count], out=d_forget)
            else:
                d_forget.zero_()
            d_cell.mul_(forget_gate)
            d_both = d_gate[..., : 2 * hidden]  # input and forget
            _sigmoid_backward(d_both, gate[..., : 2 * hidden], grad_input=d_both)
            _tanh_backward(d_candidate, candidate, grad_input=d_candidate)
            _sigmoid_backward(d_output, output_gate, grad_input=d_output)
            torch.bmm(d_gate, weight_hh_2GH, out=d_state)
        grad_input = grad_gate_2NG[0] @ weight_ih_2GE[0] + (grad_gate_2NG[1] @ weight_ih_2GE[1])[packing.reverse_N]
        transposed_2GN = grad_gate_2NG.transpose(1, 2)
        grad_weight_ih = torch.stack([transposed_2GN[0] @ input_NE, transposed_2GN[1] @ reversed_NE])
        grad_weight_hh = torch.bmm(transposed_2GN[:, :, packing.counts[0] :], state_2NH[:, packing.before])
        return grad_input, grad_weight_ih, grad_weight_hh, grad_gate_2NG.sum(dim=1), None


class BidirectionalLayer(nn.Module):
    """The weights of one layer: `weight_ih`, `weight_hh` and `bias` of both directions.

    The initialisation makes another word another vector: with PyTorch's, exchanging a word changes the vector of a
    sentence by 0.007, which the next layer hardly sees; here by 0.05. weight_hh is orthogonal, weight_ih Glorot-uniform
    with tanh's gain, and the forget gate's bias is 1.
    """

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(2, 4 * hidden, channels))
        self.weight_hh = nn.Parameter(torch.empty(2, 4 * hidden, hidden))
        self.bias = nn.Parameter(torch.zeros(2, 4 * hidden))
        with torch.no_grad():
            for direction in range(2):
                nn.init.xavier_uniform_(self.weight_ih[direction], nn.init.calculate_gain("tanh"))
                for gate_HH in self.weight_hh[direction].chunk(4):
                    nn.init.orthogonal_(gate_HH)
            self.bias[:, hidden : 2 * hidden] = 1

    def packed(self, input_NE: Tensor, packing: Packing) -> Tensor:
        """All states (2, N, H)."""
        states: Tensor = _PackedLayer.apply(input_NE, self.weight_ih, self.weight_hh, self.bias, packing)  # type: ignore[no-untyped-call]
        return states

    def unrolled(self, input_ULE: Tensor, length_U: Tensor) -> tuple[Tensor, Tensor]:
        """All states (U, L, 2 H) and the last (U, 2 H), both directions."""
        weight_hh_2GH = self.weight_hh

        def step(before: Both, word: Both) -> After:
            """State and cell after a word; padding leaves them as they were."""
            (state_2UH, cell_2UH), (gate_2UG, is_word_2U1) = before, word
            by_state_2UG = torch.stack(
                [F.linear(state_2UH[direction], weight_hh_2GH[direction]) for direction in range(2)]
            )
            input_gate, forget_gate, candidate, output_gate = (gate_2UG + by_state_2UG).chunk(4, dim=2)
            next_cell = forget_gate.sigmoid() * cell_2UH + input_gate.sigmoid() * candidate.tanh()
            state_2UH = torch.where(is_word_2U1, output_gate.sigmoid() * next_cell.tanh(), state_2UH)
            # scan wants nothing twice, so what is kept is a copy of what is carried
            return (state_2UH, torch.where(is_word_2U1, next_cell, cell_2UH)), state_2UH.clone()

        gate_LUG, reverse_LUG = (
            F.linear(input_ULE, self.weight_ih[direction], self.bias[direction]).transpose(0, 1)
            for direction in range(2)
        )
        is_word_LU1 = torch.arange(input_ULE.shape[1], device=length_U.device)[:, None, None] < length_U[:, None]
        gate_L2UG = torch.stack([gate_LUG, reverse_LUG.flip(0)], dim=1)
        is_word_L2U1 = torch.stack([is_word_LU1, is_word_LU1.flip(0)], dim=1)
        first, cell = (torch.zeros_like(gate_L2UG[0, :, :, : weight_hh_2GH.shape[2]]) for _ in range(2))
        scan: Callable[..., After] = _scan
        if torch.compiler.is_exporting():  # into a loop, so that sentences may have any number of words
            from torch._higher_order_ops.scan import scan
        (last_2UH, _), state_L2UH = scan(step, (first, cell), (gate_L2UG, is_word_L2U1))
        state_LUD = torch.cat([state_L2UH[:, 0], state_L2UH[:, 1].flip(0)], dim=2)
        return state_LUD.transpose(0, 1), last_2UH.transpose(0, 1).flatten(1)


def _scan(step: Callable[[Both, Both], After], carried: Both, words: Both) -> After:
    """A step for each word in turn: what is carried in the end, and all states."""
    states = []
    for word in zip(*words, strict=True):
        carried, state = step(carried, word)
        states.append(state)
    return carried, torch.stack(states)


class BidirectionalLSTM(nn.Module):
    """The last states of the upper layer in both directions, for sentences (U, L, E) of `length` words: (U, 2 H).

    >>> BidirectionalLSTM(50, 128)(torch.rand(3, 9, 50), torch.tensor([9, 4, 1])).shape
    torch.Size([3, 256])
    """

    def __init__(self, channels: int, hidden: int, *, layers: int = 2) -> None:
        super().__init__()
        self.out_channels = 2 * hidden
        self.layers = nn.ModuleList(
            BidirectionalLayer(self.out_channels if layer else channels, hidden) for layer in range(layers)
        )

    def __iter__(self) -> Iterator[BidirectionalLayer]:
        return iter(cast(Iterable[BidirectionalLayer], self.layers))

    def forward(self, input_ULE: Tensor, length_U: Tensor) -> Tensor:
        form = self.packed if has_values(input_ULE, length_U) else self.unrolled
        return form(input_ULE, length_U)

    def packed(self, input_ULE: Tensor, length_U: Tensor) -> Tensor:
        packing = Packing.of(length_U, input_ULE.shape[1])
        input_NE = input_ULE.flatten(0, 1).index_select(0, packing.word_N)
        first, *rest = self
        state_2NH = first.packed(input_NE, packing)
        for layer in rest:
            input_NE = torch.cat([state_2NH[0], state_2NH[1].index_select(0, packing.reverse_N)], dim=1)
            state_2NH = layer.packed(input_NE, packing)
        return state_2NH.index_select(1, packing.last_U).transpose(0, 1).flatten(1)

    def packed_operator(self, input_NE: Tensor, count_L: Tensor) -> Tensor:
        """The last states of sentences in the order of a `PackedSequence`, the longest first: (U, 2 H).

        Args:
            count_L: how many sentences have a word t, on the CPU.
        """
        first, *_ = self
        weights = []
        no_bias_G = torch.zeros_like(first.bias[0])  # cuDNN has two biases and adds them up
        for layer in self:
            for ih_GE, hh_GH, bias_G in zip(
                layer.weight_ih.unbind(), layer.weight_hh.unbind(), layer.bias.unbind(), strict=True
            ):
                weights += [ih_GE, hh_GH, bias_G, no_bias_G]
        layers = len(self.layers)
        state_SUH = input_NE.new_zeros(2 * layers, int(count_L[0]), first.weight_hh.shape[2])
        _, last_SUH, _ = torch.lstm(
            input_NE, count_L, (state_SUH, state_SUH), weights, True, layers, 0.0, self.training, True
        )
        return last_SUH[-2:].transpose(0, 1).flatten(1)

    def unrolled(self, input_ULE: Tensor, length_U: Tensor) -> Tensor:
        for layer in self:
            input_ULE, last_UD = layer.unrolled(input_ULE, length_U)
        return last_UD
