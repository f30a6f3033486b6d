"""Questions in words: the words, the LSTM against PyTorch's own, padding, questions asked twice, vectors, loudness."""

import copy
import re
import unicodedata

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from bcn import BcnError, create_model
from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.scene import make_scene
from bcn.data.vqa.vocabulary import Vocabulary, tokenize
from bcn.layers.baselines.lstm import BidirectionalLSTM
from bcn.models.question_encoder import QuestionEncoder, lengths


def reference(lstm: BidirectionalLSTM, channels: int, hidden: int) -> nn.LSTM:
    """PyTorch's LSTM with the same weights."""
    theirs = nn.LSTM(channels, hidden, len(lstm.layers), batch_first=True, bidirectional=True).double()
    with torch.no_grad():
        for number, layer in enumerate(lstm.layers):
            for direction, suffix in enumerate(("", "_reverse")):
                getattr(theirs, f"weight_ih_l{number}{suffix}").copy_(layer.weight_ih[direction])
                getattr(theirs, f"weight_hh_l{number}{suffix}").copy_(layer.weight_hh[direction])
                getattr(theirs, f"bias_ih_l{number}{suffix}").copy_(layer.bias[direction])
                getattr(theirs, f"bias_hh_l{number}{suffix}").zero_()
    return theirs


def one_by_one(lstm: nn.LSTM, words: Tensor, length: Tensor) -> Tensor:
    """Each sentence by itself, without padding: the last state forwards, and the last state backwards."""
    found = []
    for sentence, count in zip(words, length.tolist(), strict=True):
        states, _ = lstm(sentence[None, :count])
        half = lstm.hidden_size
        found.append(torch.cat([states[0, -1, :half], states[0, 0, half:]]))
    return torch.stack(found)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=7), st.integers(1, 3), st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_both_forms_are_pytorchs_lstm(length: list[int], layers: int, seed: int) -> None:
    torch.manual_seed(seed)
    lstm = BidirectionalLSTM(3, 4, layers=layers).double()
    theirs = reference(lstm, 3, 4)
    words = torch.randn(len(length), max(length) + 1, 3, dtype=torch.double, requires_grad=True)
    expected = one_by_one(theirs, words, torch.tensor(length))
    mixture = torch.randn_like(expected)
    (to_words,) = torch.autograd.grad((expected * mixture).sum(), words, retain_graph=True)
    (expected * mixture).sum().backward()
    for form in (lstm.packed, lstm.unrolled):
        found = form(words, torch.tensor(length))
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
        gradients = torch.autograd.grad((found * mixture).sum(), [words, *lstm.parameters()])
        torch.testing.assert_close(gradients[0], to_words, rtol=0, atol=1e-12)
        for number in range(layers):
            for direction, suffix in enumerate(("", "_reverse")):
                for place, name in enumerate(("weight_ih", "weight_hh", "bias_ih")):
                    theirs_is = getattr(theirs, f"{name}_l{number}{suffix}").grad
                    ours_is = gradients[1 + 3 * number + place][direction]
                    torch.testing.assert_close(ours_is, theirs_is, rtol=0, atol=1e-12)


def test_the_sizes_of_the_paper() -> None:
    encoder = QuestionEncoder(80)
    assert encoder.embedding.weight.shape == (80, 50)
    recurrent = [layer.get_parameter("weight_hh") for layer in encoder.lstm.layers]
    assert [tuple(weight.shape) for weight in recurrent] == [(2, 512, 128)] * 2
    assert encoder(torch.randint(1, 80, (3, 4, 9))).shape == (3, 4, 256)
    assert encoder(torch.randint(1, 80, (3, 9))).shape == (3, 256)


def test_padding_changes_nothing() -> None:
    encoder = QuestionEncoder(30).double()
    question = torch.randint(1, 30, (5, 6))
    padded = torch.cat([question, torch.zeros(5, 4, dtype=torch.long)], dim=1)
    among = torch.cat([padded, torch.randint(1, 30, (2, 10))])
    torch.testing.assert_close(encoder(padded), encoder(question), rtol=0, atol=1e-14)
    torch.testing.assert_close(encoder(among)[:5], encoder(question), rtol=0, atol=1e-14)


def test_a_short_question_has_the_same_type_however_much_padding_follows() -> None:
    model, image = create_model("clevr/q-type"), torch.empty(1, 3, 1, 1)
    short = torch.tensor([[5, 6]])
    padded = torch.tensor([[5, 6, 0, 0, 0, 0]])
    assert torch.equal(model(image, short), model(image, padded))


def test_a_question_of_padding_alone_is_read_and_does_no_harm() -> None:
    encoder = QuestionEncoder(30)
    question = torch.randint(1, 30, (2, 3, 6))
    question[1, 2] = 0
    vectors = encoder(question)
    assert vectors.isfinite().all()
    vectors.sum().backward()
    assert encoder.embedding.weight.grad[0].eq(0).all()


def test_lengths_go_to_the_last_word() -> None:
    assert lengths(torch.tensor([[3, 0, 5, 0], [0, 0, 0, 0], [1, 2, 3, 4]])).tolist() == [3, 1, 4]


def test_what_is_asked_twice_is_read_once_and_gets_both_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = QuestionEncoder(30).double()
    distinct = torch.randint(1, 30, (4, 6))
    which = torch.tensor([[0, 1, 0], [2, 3, 0]])
    read: list[int] = []
    packed = encoder.lstm.packed

    def counted(words: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        read.append(len(words))
        return packed(words, length)

    monkeypatch.setattr(encoder.lstm, "packed", counted)
    mixture = torch.randn(2, 3, 256, dtype=torch.double)
    together = encoder(distinct[which])
    (together * mixture).sum().backward()
    assert read == [4]
    found = {name: parameter.grad.clone() for name, parameter in encoder.named_parameters()}
    encoder.zero_grad()
    for image in range(2):
        for question in range(3):
            alone = encoder(distinct[which[image, question]][None])[0]
            torch.testing.assert_close(together[image, question], alone, rtol=0, atol=1e-12)
            (alone * mixture[image, question]).sum().backward()
    for name, parameter in encoder.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=0, atol=1e-11)


def test_the_order_of_words_matters() -> None:
    encoder = QuestionEncoder(30)
    assert not torch.allclose(encoder(torch.tensor([[3, 4, 5]])), encoder(torch.tensor([[3, 5, 4]])))


def test_vectors_of_words() -> None:
    encoder = QuestionEncoder(4, 3)
    before = encoder.embedding.weight.detach().clone()
    vectors = torch.tensor([[9.0, 9, 9], [torch.nan] * 3, [1, 2, 3], [4, 5, 6]])
    encoder.load_word_embeddings(vectors)
    after = encoder.embedding.weight
    assert after[0].eq(0).all()  # padding
    assert torch.equal(after[1], before[1])  # has no vector
    assert after[2:].tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(BcnError, match=r"\(4, 2\): accepted is \(4, 3\)"):
        encoder.load_word_embeddings(torch.zeros(4, 2))


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (torch.zeros(2, 3), "torch.float32: accepted are whole numbers"),
        (torch.zeros(3, dtype=torch.long), r"shape \(3,\)"),
        (torch.tensor([[2, 7]]), "index 2 to 7: accepted are 0 .padding. to 4"),
        (torch.tensor([[2, -1]]), "index -1 to 2"),
    ],
)
def test_what_is_no_question_is_refused(question: Tensor, message: str) -> None:
    with pytest.raises(BcnError, match=message):
        QuestionEncoder(5)(question)


def test_a_word_is_heard_from_the_start() -> None:
    """How much exchanging one of eight words changes the numbers of a question, beside PyTorch's initial weights."""
    torch.manual_seed(0)
    encoder = QuestionEncoder(75)
    token_UL = torch.randint(2, 75, (1, 8)).repeat(320, 1)
    token_UL[:, 2] = torch.randint(2, 75, (320,))

    def spread() -> float:
        with torch.no_grad():
            return float(encoder(token_UL).std(0).mean())

    assert 0.04 < spread() < 0.07
    for layer in encoder.lstm:
        for weights in layer.parameters():
            nn.init.uniform_(weights, -(128**-0.5), 128**-0.5)
    assert spread() < 0.01


@pytest.mark.parametrize("name", ["multirn", "multirn-h", "rn", "cnn-lstm"])
def test_all_sources_are_heard_equally_at_the_start(name: str) -> None:
    """Each moves the first layer that sees them by about 1: noise, places, and questions that differ in a word."""
    torch.manual_seed(0)
    words = ("large", "small", "metal", "rubber", "red", "blue", "gray", "cyan", "brown")
    sentences = [f"How many {word} things are there?" for word in words]
    vocabulary = Vocabulary.from_words(word for sentence in sentences for word in tokenize(sentence))
    said = [torch.tensor(vocabulary.encode(sentence)) for sentence in sentences]
    model = create_model(f"clevr/{name}", vocab_size=len(vocabulary)).train()
    with torch.no_grad():
        question_UD = model.question_encoder(nn.utils.rnn.pad_sequence(said, batch_first=True))
        map_BCHW = model.answer.encoder(torch.randn(12, 3, 128, 128))
        if name == "cnn-lstm":
            weight, object_UD = model.answer.f[0].weight, map_BCHW.flatten(1)
        else:
            weight, object_UD = model.answer.relation.g[0].weight.flatten(1), map_BCHW.permute(0, 2, 3, 1).flatten(0, 2)
        sources = [(weight[:, : object_UD.shape[1]], object_UD), (weight[:, -256:], question_UD)]
        if name != "cnn-lstm":
            side = torch.linspace(-1, 1, map_BCHW.shape[-1])
            x, y = torch.meshgrid(side, side, indexing="xy")
            sources.append((weight[:, -259:-256], torch.stack([x, y, (x**2 + y**2).sqrt()], dim=-1).flatten(0, 1)))
        for part, source in sources:
            assert 0.7 < float((source @ part.t()).std(0).mean()) < 1.4


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Où est le cafe\u0301?", ["où", "est", "le", "café"]),
        ("नमस्ते, यह क्या है?", ["नमस्ते", ",", "यह", "क्या", "है"]),
        ("ما هُوَ هذا؟", ["ما", "هُوَ", "هذا"]),
        ("\u2764\ufe0f is it a well-known e\u0323-\u0301mail?", ["is", "it", "a", "well-known", "ẹ", "mail"]),
    ],
)
def test_accents_and_vowel_signs_are_parts_of_words(question: str, words: list[str]) -> None:
    assert tokenize(question) == words
    assert tokenize(unicodedata.normalize("NFD", question)) == words


def test_words_of_english_are_what_they_were() -> None:
    asked = [question["question"] for index in range(20) for question in make_questions(make_scene(index))]
    for question in [*asked, "It's 3 left-side balls; isn't it, naïve one? 'No' -- rock-'n'-roll_x a-b-c"]:
        assert tokenize(question) == re.findall(r"\w+(?:[-']\w+)*|[,;]", question.lower())


@torch.no_grad()
def test_to_reverse_questions_is_to_exchange_the_two_directions() -> None:
    """So reversed questions, which an LSTM of one direction is said to need, change nothing here."""
    torch.manual_seed(0)
    encoder = QuestionEncoder(20, 5, 4).double()
    exchanged = copy.deepcopy(encoder)
    for number, layer in enumerate(exchanged.lstm.layers):
        for weight in (layer.weight_ih, layer.weight_hh, layer.bias):
            weight.copy_(weight.flip(0))
        if number:  # which sees both directions of the layer below
            layer.weight_ih.copy_(layer.weight_ih.roll(4, dims=2))
    question = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 10, 0, 0], [11, 0, 0, 0, 0]])
    backwards = torch.tensor([[7, 6, 5, 4, 3], [10, 9, 8, 0, 0], [11, 0, 0, 0, 0]])
    torch.testing.assert_close(exchanged(backwards), encoder(question).roll(4, dims=1))
    assert not torch.allclose(encoder(backwards)[:2], encoder(question)[:2])
