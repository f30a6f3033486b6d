"""Questions in words: token indices to vectors, as the paper reads CLEVR's (appendix A).

Words are embedded in 50 numbers and read by a bidirectional LSTM of two layers of 128 units. The vector of a question
is the last state of the upper layer in both directions, 256 numbers, so that multiRN's g sees 24 + 256 + 3 + 256 = 539:
an object, what the BCN broadcasts, coordinates and the question.

B images, Q questions about each, L tokens in a question, of which 0 is padding; U questions in all, E numbers for a
word, V words, D numbers for a question.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from bcn.errors import BcnError
from bcn.layers.baselines.lstm import BidirectionalLSTM
from bcn.layers.fused.dispatch import has_values, on_accelerator


class PackedQuestions(NamedTuple):
    """Distinct questions without padding, the longest first, in the order of a `PackedSequence`.

    Made on the host, so that a GPU need not be asked which questions are distinct and how long they are.
    """

    token_N: Tensor
    """all first words, all second words, ..."""
    count_L: Tensor
    """how many questions have a word t; always on the CPU"""
    which: Tensor
    """(B,) or (B, Q): which of the distinct questions each one is"""

    def to(self, device: torch.device) -> "PackedQuestions":
        return self._replace(
            token_N=self.token_N.to(device, non_blocking=True), which=self.which.to(device, non_blocking=True)
        )


class QuestionEncoder(nn.Module):
    """Token indices (B, L) or (B, Q, L), padded with 0 at the end, to vectors (B, D) or (B, Q, D).

    A question that is asked several times in a batch is read once.

    >>> QuestionEncoder(80)(torch.randint(1, 80, (2, 10, 17))).shape
    torch.Size([2, 10, 256])

    Args:
        vocab_size: token indices, that of padding included.
        embedding: numbers for a word.
        hidden: units of the LSTM in each direction.
        layers: of the LSTM.
    """

    def __init__(self, vocab_size: int, embedding: int = 50, hidden: int = 128, *, layers: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding, padding_idx=0)
        self.lstm = BidirectionalLSTM(embedding, hidden, layers=layers)
        self.out_channels = self.lstm.out_channels

    def load_word_embeddings(self, embedding_VE: Tensor) -> None:
        """Start from given word embeddings, such as GloVe's; one of NaN keeps its word as it is."""
        if embedding_VE.shape != self.embedding.weight.shape:
            raise BcnError(
                f"word embeddings have the shape {tuple(embedding_VE.shape)}: accepted is "
                f"{tuple(self.embedding.weight.shape)}, one for each word"
            )
        with torch.no_grad():
            known_V = ~embedding_VE.isnan().any(dim=1)
            self.embedding.weight[known_V] = embedding_VE[known_V].to(self.embedding.weight)
            self.embedding.weight[0] = 0

    def forward(self, question: Tensor | PackedQuestions) -> Tensor:
        if isinstance(question, PackedQuestions):
            vector_UD = self.lstm.packed_operator(self.embedding(question.token_N), question.count_L)
            return vector_UD.index_select(0, question.which.flatten()).view(*question.which.shape, self.out_channels)
        self._check_shape(question)
        token_UL = question.flatten(0, -2)
        if not token_UL.shape[0]:
            return self.embedding.weight.new_zeros(*question.shape[:-1], self.out_channels)
        if on_accelerator(token_UL):
            packed: Tensor = self(self.pack(question).to(token_UL.device))
            return packed
        if has_values(token_UL):
            self._check(token_UL)
            token_UL, inverse = torch.unique(token_UL, dim=0, return_inverse=True)
            vector_UD = self._read(token_UL).index_select(0, inverse)
        else:
            vector_UD = self._read(token_UL)
        return vector_UD.view(*question.shape[:-1], self.out_channels)

    def pack(self, question: Tensor) -> PackedQuestions:
        """Questions as a GPU takes them; what was (B, L) or (B, Q, L) is on the CPU afterwards."""
        self._check_shape(question)
        token_UL = question.flatten(0, -2).cpu()
        self._check(token_UL)
        token_UL, inverse_U = torch.unique(token_UL, dim=0, return_inverse=True)
        length_U, order_U = lengths(token_UL).sort(descending=True, stable=True)
        is_word_LU = torch.arange(int(length_U[0]))[:, None] < length_U
        token_N = token_UL[order_U, : len(is_word_LU)].t()[is_word_LU]
        return PackedQuestions(token_N, is_word_LU.sum(dim=1), order_U.argsort()[inverse_U].view(question.shape[:-1]))

    def _check_shape(self, question: Tensor) -> None:
        if question.dim() not in (2, 3) or question.is_floating_point():
            raise BcnError(
                f"questions have the shape {tuple(question.shape)} and the type {question.dtype}: accepted are whole "
                "numbers (B, L), or (B, Q, L) for Q questions about each image, one number for each word"
            )
        if not question.shape[-1]:
            raise BcnError(f"questions have the shape {tuple(question.shape)}, and so no words: give them one at least")

    def _read(self, token_UL: Tensor) -> Tensor:
        vector_UD: Tensor = self.lstm(self.embedding(token_UL), lengths(token_UL))
        return vector_UD

    def _check(self, token_UL: Tensor) -> None:
        words = self.embedding.num_embeddings
        if token_UL.numel() and not 0 <= int(token_UL.min()) <= int(token_UL.max()) < words:
            raise BcnError(
                f"questions have words of index {int(token_UL.min())} to {int(token_UL.max())}: accepted are 0 "
                f"(padding) to {words - 1}; give the model as many words as the vocabulary has"
            )


def lengths(token_UL: Tensor) -> Tensor:
    """Words in each question; one of padding alone counts as a word of padding, so that there is something to read.

    >>> lengths(torch.tensor([[5, 7, 0], [0, 0, 0]]))
    tensor([2, 1])
    """
    place_L = torch.arange(1, token_UL.shape[1] + 1, device=token_UL.device)
    return ((token_UL != 0) * place_L).amax(dim=1).clamp(min=1)
