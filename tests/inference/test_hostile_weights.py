"""Weights files from strangers, and damaged ones: each is refused in one sentence, before memory is taken for it."""

import json
import resource
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from helpers.command import exit_code
from helpers.small_weights import digit_weights, word_weights
from PIL import Image
from torch import Tensor

import bcn
from bcn.data.vqa import vocabulary
from bcn.errors import BcnError
from bcn.inference.shipped import WEIGHTS, list_weights
from bcn.training import description as described
from bcn.training.start import Start
from bcn.training.weights import load_model, read_weights, write_weights

SCENES = WEIGHTS / "sort-of-clevr-multirn-h.safetensors"
Weights = dict[str, Tensor]


def changed(source: Callable[[], Path] = digit_weights, **fields: Any) -> Callable[[Path], None]:
    """A file whose checksum is right and whose description is not; a field that is ... is left out."""

    def write(path: Path) -> None:
        weights, description = read_weights(source())
        told = {key: value for key, value in (description | fields).items() if value is not ...}
        write_weights(path, weights, told)

    return write


def of_words(**fields: Any) -> Callable[[Path], None]:
    return changed(word_weights, **fields)


def of_scenes(**fields: Any) -> Callable[[Path], None]:
    return changed(lambda: SCENES, **fields)


def tensors(change: Callable[[Weights], Any]) -> Callable[[Path], None]:
    """A file whose checksum is right and whose tensors are not."""

    def write(path: Path) -> None:
        weights, description = read_weights(digit_weights())
        change(weights)
        write_weights(path, weights, description)

    return write


def metadata(text: str) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(safetensors.torch.save(read_weights(digit_weights())[0], metadata={"bcn": text}))

    return write


def content(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda path: void(path.write_bytes(change(digit_weights().read_bytes())))


def void(_: object) -> None:
    """Nothing, whatever was done."""


def header(**entries: Any) -> bytes:
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text


def flip(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "empty": (content(lambda data: b""), "not a whole safetensors file"),
    "cut short": (content(lambda data: data[:-7]), "not a whole safetensors file"),
    "longer": (content(lambda data: data + b"more"), "not a whole safetensors file"),
    "endless header": (content(lambda data: b"\xff" * 8 + data[8:]), "not a whole safetensors file"),
    "header of an array": (content(lambda data: struct.pack("<Q", 2) + b"[]"), "not a whole safetensors file"),
    "a tensor beyond the file": (
        content(lambda data: header(w={"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]})),
        "not a whole safetensors file",
    ),
    "a flipped bit in a tensor": (content(lambda data: flip(data, len(data) - 2)), "its checksum is wrong"),
    "a flipped bit in an answer": (
        content(lambda data: flip(data, data.index(b'\\"7\\"') + 2)),
        "names something twice",
    ),
    "a flipped bit in the recipe": (content(lambda data: flip(data, data.index(b"table1"))), "its checksum is wrong"),
    "no description": (metadata("{}"), "model: Field required"),
    "a description that is a list": (metadata("[]"), "does not say which model"),
    "a description that is no JSON": (metadata("{"), "not a whole safetensors file"),
    "a description that nests": (metadata("[" * 100_000), "nest too deeply"),
    "a checksum that is a list": (
        metadata(json.dumps(read_weights(SCENES)[1] | {"checksum": [1]})),
        "does not fit sort-of-clevr/multirn-h",
    ),
    "an unknown field": (changed(run="rm -rf"), "run: Extra inputs are not permitted"),
    "an unknown model": (changed(model="scaled-mnist/bnc"), "did you mean 'scaled-mnist/bcn'"),
    "a model that is a number": (changed(model=7), "model: Input should be a valid string"),
    "another model": (changed(model="scaled-mnist/baseline", arguments={}), "does not fit scaled-mnist/baseline: "),
    "arguments that are a list": (changed(arguments=[]), "arguments: Input should be a valid dict"),
    "an argument that nests": (changed(arguments={"sizes": [[1], [2]]}), "arguments.sizes"),
    "an unknown argument": (changed(arguments={"depth": 3}), "does not take depth=3"),
    "16 TB": (changed(arguments={"sizes": [2_000_000, 2_000_000]}), "middle.broadcast"),
    "sizes beyond all integers": (changed(arguments={"sizes": [2**62, 2**62]}), "arguments.sizes"),
    "sizes whose product overflows": (changed(arguments={"sizes": [2**30, 2**30, 2**30]}), "does not fit|too large"),
    "a million layers": (changed(arguments={"sizes": [1] * 1_000_000}), "arguments.sizes"),
    "two thousand million rounds": (
        changed(model="sort-of-clevr/multirn-rounds", arguments={"rounds": 2_000_000_000}),
        "accepted are 0 to 64",
    ),
    "planes that do not exist": (changed(arguments={"planes": "xyz"}), "planes"),
    "preprocessing of text": (changed(preprocessing="none"), "preprocessing: Input should be"),
    "preprocessing without std": (changed(preprocessing={"mean": [0.0]}), "preprocessing.std: Field required"),
    "a std of zero": (changed(preprocessing={"mean": [0.0], "std": [0.0]}), "preprocessing.std.0"),
    "a mean that is not a number": (
        changed(preprocessing={"mean": [float("nan")], "std": [1.0]}),
        "preprocessing.mean.0: Input should be a finite number",
    ),
    "five channels": (changed(preprocessing={"mean": [0.0] * 5, "std": [1.0]}), "has 5 channels"),
    "too few answers": (changed(answers=["7"]), "names 1 answers of 10"),
    "answers that are numbers": (changed(answers=list(range(10))), "answers.0: Input should be a valid string"),
    "an answer for the terminal": (
        changed(answers=["\x1b[2J", *"123456789"]),
        "has characters that cannot be printed",
    ),
    "kinds where nothing is asked": (changed(kinds=["shape"]), "its model takes none"),
    "words where none are read": (changed(words=["red"]), "another vocabulary"),
    "no words where they are read": (of_words(words=...), "another vocabulary"),
    "more words than the model has": (of_words(words=[*"abcdefgh"]), "another vocabulary"),
    "no kinds of questions": (of_scenes(kinds=[]), "names no kinds"),
    "centres that are not there": (of_scenes(localise=True), "says that it localises"),
    "localise is a text": (changed(localise="yes"), "localise: Input should be a valid boolean"),
    "a seed below zero": (changed(seed=-1), "seed: Input should be greater"),
    "no epoch": (changed(epoch=...), "epoch: Field required"),
    "a tensor too few": (tensors(lambda weights: weights.pop("head.classes.bias")), "head.classes.bias is absent"),
    "a tensor too many": (
        tensors(lambda weights: weights.update(extra=torch.ones(3))),
        r"extra is float32 \(3,\) instead of absent",
    ),
    "a tensor of another shape": (
        tensors(lambda weights: weights.update({"head.classes.bias": torch.ones(1, 10)})),
        r"head.classes.bias is float32 \(1, 10\) instead of float32 \(10,\)",
    ),
    "a tensor of another type": (
        tensors(lambda weights: weights.update({"head.classes.bias": torch.ones(10, dtype=torch.float64)})),
        r"instead of float32 \(10,\)",
    ),
    "not a number": (tensors(lambda weights: weights["head.classes.bias"].fill_(float("nan"))), "not finite"),
    "large enough to overflow": (
        tensors(lambda weights: [part.fill_(3e38) for part in weights.values() if part.is_floating_point()]),
        "answers that are not finite",
    ),
    "infinite": (tensors(lambda weights: weights["head.classes.bias"].fill_(float("inf"))), "not finite"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write, sentence = HOSTILE[name]
    path = tmp_path / "w.safetensors"
    write(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BcnError, match=sentence) as refusal:
        bcn.load(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB
    assert "w.safetensors" in str(refusal.value)
    assert "\x1b" not in str(refusal.value)
    assert exit_code("eval", str(path)) == 2
    said = capsys.readouterr().err
    assert said.startswith("bcn: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "name",
    [
        "16 TB",
        "another model",
        "not a number",
        "infinite",
        "a flipped bit in a tensor",
        "more words than the model has",
        "too few answers",
    ],
)
def test_no_training_starts_from_a_hostile_file(name: str, tmp_path: Path) -> None:
    write, sentence = HOSTILE[name]
    write(tmp_path / "w.safetensors")
    with pytest.raises(BcnError, match=sentence):
        Start.read("w", tmp_path / "w.safetensors")


def test_weights_that_overflow_do_not_answer(tmp_path: Path) -> None:
    """Finite weights that answer about a black image, and about no other."""
    tensors(lambda weights: weights["head.classes.weight"].fill_(3e38))(tmp_path / "w.safetensors")
    reasoner = bcn.load(tmp_path / "w.safetensors")
    image = Image.new("L", (128, 128))
    image.paste(255, (40, 40, 80, 90))
    with pytest.raises(BcnError, match="gives no finite numbers"):
        reasoner.find(image)


@pytest.mark.parametrize("name", list_weights())
def test_shipped_weights_are_verified_by_path(name: str, tmp_path: Path) -> None:
    source = WEIGHTS / list_weights()[name]["file"]
    load_model(source)
    data = source.read_bytes()
    (tmp_path / "w.safetensors").write_bytes(flip(data, len(data) - 1000))
    with pytest.raises(BcnError, match=r"w\.safetensors is damaged: its checksum is wrong"):
        load_model(tmp_path / "w.safetensors")


def test_every_flipped_bit_is_seen(tmp_path: Path) -> None:
    """Of a small file: in the header, in the description, in the tensors."""
    weights = {"w": torch.arange(3.0), "n": torch.tensor(7)}
    write_weights(tmp_path / "w.safetensors", weights, {"model": "a", "answers": ["yes", "no"]})
    data = (tmp_path / "w.safetensors").read_bytes()
    accepted = []
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        (tmp_path / "w.safetensors").write_bytes(damaged)
        try:
            read, said = read_weights(tmp_path / "w.safetensors")
        except BcnError:
            continue
        same = read.keys() == weights.keys() and all(torch.equal(read[key], weights[key]) for key in weights)
        accepted.append((bit, said, same))
    # A flip within the word "checksum" or "bcn" leaves a file without one, whose description `load_model` refuses;
    # one in the blanks that pad the header changes nothing.
    for _, said, same in accepted:
        assert same
        assert said.keys() != {"model", "answers"} or said == {"model": "a", "answers": ["yes", "no"]}


def test_files_of_versions_without_a_checksum_are_read(tmp_path: Path) -> None:
    weights, description = read_weights(digit_weights())
    metadata(json.dumps(description | {"arguments": {}}))(tmp_path / "w.safetensors")
    model, said = load_model(tmp_path / "w.safetensors")
    assert said == description | {"arguments": {"final_relu": True}}, "as every BCN had then"
    assert all(np.array_equal(tensor, weights[name]) for name, tensor in model.state_dict().items())


def test_special_tokens_are_as_many_as_the_vocabulary_has() -> None:
    assert described.NUM_SPECIAL == vocabulary.NUM_SPECIAL
