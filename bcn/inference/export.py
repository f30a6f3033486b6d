"""Export a trained model for programs without this package: ONNX, torch.export or safetensors.

Every file is read back and compared with the model on random inputs of several sizes before it is kept. One metadata
entry, `bcn`, holds JSON with the preprocessing of images and the names of the answers.

B images of C x H x W pixels, Q questions of D numbers about each; L words.
"""

import json
import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.fx.experimental.symbolic_shapes import is_concrete_int

from bcn.data.vqa.vocabulary import NUM_SPECIAL, PADDING, UNKNOWN, WORD_PATTERN
from bcn.errors import BcnError, did_you_mean, install_extra
from bcn.inference.reasoner import Reasoner
from bcn.io import atomic_write
from bcn.models.registry import image_shape
from bcn.training.weights import load_model, write_weights

TOLERANCE = 1e-4
"""the largest accepted difference, relative to the largest output, or to 1 where all outputs are smaller

On random images logits reach a thousand; the model in float32 then differs from itself in float64 by 5e-4.
"""
IMAGES_TRACED, QUESTIONS_TRACED, WORDS_TRACED = 2, 3, 12
Outputs = tuple[Tensor, ...]


class DynamicShapes(NamedTuple):
    """Which sizes of the inputs are dynamic; None for an input that the model does not take."""

    images: bool = True
    size: bool = True
    """height and width of an image"""
    questions: bool | None = True
    words: bool | None = None
    """in a question that is a sequence of words"""

    def __str__(self) -> str:
        text = f"{'any number of' if self.images else IMAGES_TRACED} images"
        text += f" of {'any size' if self.size else 'the trained size alone'}"
        if self.questions is not None:
            text += f", {'any number of' if self.questions else QUESTIONS_TRACED} questions about each"
        if self.words is not None:
            text += f", {'any number of' if self.words else WORDS_TRACED} words in a question"
        return text


@dataclass(frozen=True)
class ExportResult:
    path: Path
    shapes: DynamicShapes
    difference: float
    """the largest between the outputs of the file and of the model, relative to the largest output or to 1"""


class NamedInputs(nn.Module):
    """The model with the names of its inputs in the exported file."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor, question: Tensor | None = None) -> Tensor | Outputs:
        output: Tensor | Outputs = self.model(image) if question is None else self.model(image, question)
        return output


def export(reasoner: Reasoner, format: str, directory: Path) -> ExportResult:
    """Write a model into a directory.

    Args:
        format: "onnx", "torch-export" or "safetensors".
    """
    if format not in FORMATS:
        raise did_you_mean("format", format, FORMATS)
    return FORMATS[format](reasoner, directory / str(reasoner.description["model"]).replace("/", "-"))


def trace(reasoner: Reasoner, module: nn.Module) -> tuple[ExportedProgram, DynamicShapes]:
    """Trace a module that wraps the model; of its inputs' sizes, as many stay dynamic as the model allows."""
    inputs = random_inputs(reasoner)
    any_size = _takes_any_size(reasoner)
    image = {0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO} if any_size else {0: Dim.AUTO}
    question = {0: Dim.AUTO, 1: Dim.AUTO, **({2: Dim.AUTO} if reasoner.takes_words else {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about itself
        program = torch.export.export(module.eval(), inputs, dynamic_shapes=(image, question)[: len(inputs)])
    names = set(program.graph_signature.user_inputs)
    shapes = [node.meta["val"].shape for node in program.graph.nodes if node.name in names]
    images = not is_concrete_int(shapes[0][0])
    questions = not is_concrete_int(shapes[1][1]) if reasoner.takes_questions else None
    words = not is_concrete_int(shapes[1][2]) if reasoner.takes_words else None
    return program, DynamicShapes(images, any_size, questions, words)


@torch.inference_mode()
def _takes_any_size(reasoner: Reasoner) -> bool:
    try:
        reasoner.model(*random_inputs(reasoner, more=16))
    except BcnError:
        return False
    return True


def random_inputs(
    reasoner: Reasoner,
    *,
    images: int = IMAGES_TRACED,
    questions: int = QUESTIONS_TRACED,
    words: int = WORDS_TRACED,
    more: int = 0,
) -> tuple[Tensor, ...]:
    """Random images and, where the model takes them, questions.

    Args:
        more: pixels added to the height of the model's images, and twice as many to their width.
    """
    channels, height, width = image_shape(str(reasoner.description["model"]))
    generator = torch.Generator().manual_seed(0)
    image_BCHW = torch.rand(images, channels, height + more, width + 2 * more, generator=generator)
    if not reasoner.takes_questions:
        return (image_BCHW,)
    if reasoner.takes_words:
        known, sizes = len(reasoner.description["words"]) + NUM_SPECIAL, (images, questions, words)
        word_BQL = torch.randint(UNKNOWN, known, sizes, generator=generator)
        length_BQ1 = torch.randint(1, words + 1, (images, questions, 1), generator=generator)
        return image_BCHW, word_BQL * (torch.arange(words) < length_BQ1)
    size: Any = reasoner.model.question_dim
    return image_BCHW, torch.rand(images, questions, size, generator=generator)


@torch.inference_mode()
def compare(reasoner: Reasoner, run: Callable[..., Sequence[Tensor]], shapes: DynamicShapes) -> float:
    """The largest difference between `run` and the model on random inputs of several sizes; refused above TOLERANCE."""
    largest = 0.0
    for images, questions, words, more in ((1, 1, 1, 0), (3, 5, 12, 0), (2, 7, 30, 16)):
        inputs = random_inputs(
            reasoner,
            images=images if shapes.images else IMAGES_TRACED,
            questions=questions if shapes.questions else QUESTIONS_TRACED,
            words=words if shapes.words else WORDS_TRACED,
            more=more if shapes.size else 0,
        )
        outputs = _outputs(reasoner.model(*inputs))
        for actual, expected in zip(run(*inputs)[: len(outputs)], outputs, strict=True):
            difference = float((actual - expected).abs().max()) / max(1.0, float(expected.abs().max()))
            if actual.shape != expected.shape or not difference <= TOLERANCE:
                raise BcnError(
                    f"the exported model differs from {reasoner.name} by {difference:.2g} of its outputs' size, "
                    f"more than {TOLERANCE:g}; nothing was written, choose another format"
                )
            largest = max(largest, difference)
    return largest


def metadata(reasoner: Reasoner, shapes: DynamicShapes) -> str:
    """The JSON in the file: the description of the weights, the image size, and how words become token indices."""
    _, height, width = image_shape(str(reasoner.description["model"]))
    content = {**reasoner.description, "image": {"height": height, "width": width, "any_size": shapes.size}}
    if reasoner.takes_words:
        content["tokenizer"] = {
            "padding": PADDING,
            "unknown": UNKNOWN,
            "first_word": NUM_SPECIAL,
            "pattern": WORD_PATTERN,
        }
    return json.dumps(content, sort_keys=True)


def write_onnx(reasoner: Reasoner, path: Path) -> ExportResult:
    """An .onnx file: inputs `image` (B, C, H, W), `question` (B, Q, D) or (B, Q, L); outputs `logits`, `centre`."""
    content, shapes, difference = onnx_content(reasoner, NamedInputs(reasoner.model), ["logits", "centre"])
    return ExportResult(_write(path.with_name(path.name + ".onnx"), content), shapes, difference)


def onnx_content(reasoner: Reasoner, module: nn.Module, names: Sequence[str]) -> tuple[bytes, DynamicShapes, float]:
    """A module that wraps the model as the content of an ONNX file, its dynamic shapes, and the largest difference.

    Args:
        names: of the outputs; those of the model itself come first and are compared.
    """
    _onnx_modules()
    program, shapes = trace(reasoner, module)
    content = to_onnx(program, names, metadata(reasoner, shapes))
    return content, shapes, compare(reasoner, onnx_function(content), shapes)


def to_onnx(program: ExportedProgram, names: Sequence[str], about: str) -> bytes:
    """A traced module as the content of an ONNX file.

    Args:
        names: of the outputs; those that the module does not have are left out.
        about: the JSON of the entry `bcn` of the metadata.
    """
    onnx, _ = _onnx_modules()
    names = list(names)[: len(program.graph_signature.user_outputs)]
    for name in ("torch.onnx", "onnxscript"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about itself
        converted = torch.onnx.export(
            program,
            dynamo=True,
            verbose=False,
            output_names=names,
            custom_translation_table={torch.ops.aten.hypot.default: _hypot},
        )
    assert converted is not None
    proto = converted.model_proto
    onnx.helper.set_model_props(proto, {"bcn": about})
    content: bytes = proto.SerializeToString()
    return content


def onnx_function(content: bytes) -> Callable[..., list[Tensor]]:
    """What an ONNX file computes, by onnxruntime: tensors in, in the order of its inputs, and all outputs."""
    _, onnxruntime = _onnx_modules()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    inputs = [each.name for each in session.get_inputs()]

    def run(*tensors: Tensor) -> list[Tensor]:
        feed = {name: tensor.numpy() for name, tensor in zip(inputs, tensors, strict=True)}
        return [torch.from_numpy(output) for output in session.run(None, feed)]

    return run


def _onnx_modules() -> tuple[Any, Any]:
    """onnx and onnxruntime."""
    try:
        import onnx
        import onnxruntime  # type: ignore[import-untyped]
        import onnxscript  # noqa: F401 (torch.onnx needs it)
    except ModuleNotFoundError as error:
        raise BcnError(f"export to onnx needs {error.name}: {install_extra('onnx')}") from error
    return onnx, onnxruntime


def write_torch_export(reasoner: Reasoner, path: Path) -> ExportResult:
    """A .pt2 file for torch.export.load; the metadata is the extra file bcn.json."""
    program, shapes = trace(reasoner, NamedInputs(reasoner.model))
    path = path.with_name(path.name + ".pt2")
    with atomic_write(path) as temporary:
        torch.export.save(program, temporary.open("wb"), extra_files={"bcn.json": metadata(reasoner, shapes)})
        loaded = torch.export.load(temporary.open("rb")).module()
        difference = compare(reasoner, lambda *inputs: _outputs(loaded(*inputs)), shapes)
    return ExportResult(path, shapes, difference)


def write_safetensors(reasoner: Reasoner, path: Path) -> ExportResult:
    """The weights alone, which `bcn.load` reads again."""
    path = path.with_name(path.name + ".safetensors")
    shapes = DynamicShapes(
        size=_takes_any_size(reasoner),
        questions=True if reasoner.takes_questions else None,
        words=True if reasoner.takes_words else None,
    )
    with atomic_write(path) as temporary:
        write_weights(temporary, reasoner.model.state_dict(), reasoner.description)
        model, _ = load_model(temporary)
        difference = compare(reasoner, lambda *inputs: _outputs(model(*inputs)), shapes)
    return ExportResult(path, shapes, difference)


FORMATS: dict[str, Callable[[Reasoner, Path], ExportResult]] = {
    "onnx": write_onnx,
    "torch-export": write_torch_export,
    "safetensors": write_safetensors,
}


def _hypot(x: Any, y: Any) -> Any:
    """ONNX has no operator for hypot, which gives the coordinate plane r."""
    from onnxscript import opset18

    return opset18.Sqrt(opset18.Add(opset18.Mul(x, x), opset18.Mul(y, y)))


def _outputs(output: Any) -> Outputs:
    return output if isinstance(output, tuple) else (output,)


def _write(path: Path, content: bytes) -> Path:
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
    return path
