"""A trained model for programs that know nothing of this package: ONNX, torch.export, plain safetensors, a web page.

Whatever is written is read back first and compared with the model on random inputs of other sizes. The file says how
an image is prepared and what the answers are called: one metadata entry `bcn`, which holds JSON.

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

from bcn.data.vqa.vocabulary import PADDING, SPECIAL, UNKNOWN, WORD
from bcn.errors import BcnError, did_you_mean
from bcn.inference.reasoner import Reasoner
from bcn.io import atomic_write
from bcn.models.registry import image_shape
from bcn.training.checkpoint import save_weights
from bcn.training.weights import load_trained

TOLERANCE = 1e-4
"""the largest accepted difference, as a share of the largest output, or of 1 where all are smaller

On random images logits reach a thousand, and then the model in float32 is itself 5e-4 from what it is in float64.
"""
IMAGES_TRACED, QUESTIONS_TRACED, WORDS_TRACED = 2, 3, 12
Outputs = tuple[Tensor, ...]


class Free(NamedTuple):
    """What a program takes any number of; None for what it does not take."""

    images: bool = True
    size: bool = True
    """height and width of an image"""
    questions: bool | None = True
    words: bool | None = None
    """of a question that is read word by word"""

    def __str__(self) -> str:
        text = f"{'any number of' if self.images else IMAGES_TRACED} images"
        text += f" of {'any size' if self.size else 'the trained size alone'}"
        if self.questions is not None:
            text += f", {'any number of' if self.questions else QUESTIONS_TRACED} questions about each"
        if self.words is not None:
            text += f", {'any number of' if self.words else WORDS_TRACED} words in a question"
        return text


@dataclass(frozen=True)
class Written:
    path: Path
    free: Free
    """which sizes the inputs may have"""
    difference: float
    """the largest between what is in the file and the model itself, as a share of the outputs' size or of 1"""


class Named(nn.Module):
    """The model with the names that its inputs have in the file."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor, question: Tensor | None = None) -> Tensor | Outputs:
        output: Tensor | Outputs = self.model(image) if question is None else self.model(image, question)
        return output


def export(reasoner: Reasoner, to: str, directory: Path, *, runtime: Path | None = None) -> Written:
    """Write a model into a directory as "onnx", "torch-export", "safetensors" or "web".

    The page for "web" takes onnxruntime-web from `runtime`, or as `bcn.web.static_site` finds it.
    """
    if to == "web":
        from bcn.web.static_site import write_site

        return write_site(reasoner, directory, runtime=runtime)
    if to not in FORMATS:
        raise did_you_mean("format", to, (*FORMATS, "web"))
    return FORMATS[to](reasoner, directory / str(reasoner.description["model"]).replace("/", "-"))


def trace(reasoner: Reasoner, module: nn.Module) -> tuple[ExportedProgram, Free]:
    """The program of a module that holds the model, and what of its inputs' sizes the model leaves free."""
    inputs = random_inputs(reasoner)
    any_size = _takes_any_size(reasoner)
    image = {0: Dim.AUTO, 2: Dim.AUTO, 3: Dim.AUTO} if any_size else {0: Dim.AUTO}
    question = {0: Dim.AUTO, 1: Dim.AUTO, **({2: Dim.AUTO} if reasoner.in_words else {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch about itself
        program = torch.export.export(module.eval(), inputs, dynamic_shapes=(image, question)[: len(inputs)])
    names = set(program.graph_signature.user_inputs)
    shapes = [node.meta["val"].shape for node in program.graph.nodes if node.name in names]
    images, questions, words = (
        None if taken is None else not is_concrete_int(taken)
        for taken in (
            shapes[0][0],
            shapes[1][1] if reasoner.asks else None,
            shapes[1][2] if reasoner.in_words else None,
        )
    )
    return program, Free(bool(images), any_size, questions, words)


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
    """Images `more` pixels higher and twice that wider than the model's own, and questions where it takes them."""
    channels, height, width = image_shape(str(reasoner.description["model"]))
    generator = torch.Generator().manual_seed(0)
    image_BCHW = torch.rand(images, channels, height + more, width + 2 * more, generator=generator)
    if not reasoner.asks:
        return (image_BCHW,)
    if reasoner.in_words:
        known, sizes = len(reasoner.description["words"]) + SPECIAL, (images, questions, words)
        word_BQL = torch.randint(UNKNOWN, known, sizes, generator=generator)
        length_BQ1 = torch.randint(1, words + 1, (images, questions, 1), generator=generator)
        return image_BCHW, word_BQL * (torch.arange(words) < length_BQ1)
    size: int = reasoner.model.relation.questions  # type: ignore[union-attr, assignment]
    return image_BCHW, torch.rand(images, questions, size, generator=generator)


@torch.inference_mode()
def compare(reasoner: Reasoner, run: Callable[..., Sequence[Tensor]], *, free: Free) -> float:
    """The largest difference from the model on random inputs, of more than one size; too large a one is refused."""
    largest = 0.0
    for images, questions, words, more in ((1, 1, 1, 0), (3, 5, 12, 0), (2, 7, 30, 16)):
        inputs = random_inputs(
            reasoner,
            images=images if free.images else IMAGES_TRACED,
            questions=questions if free.questions else QUESTIONS_TRACED,
            words=words if free.words else WORDS_TRACED,
            more=more if free.size else 0,
        )
        outputs = _outputs(reasoner.model(*inputs))
        for found, expected in zip(run(*inputs)[: len(outputs)], outputs, strict=True):
            difference = float((found - expected).abs().max()) / max(1.0, float(expected.abs().max()))
            if found.shape != expected.shape or not difference <= TOLERANCE:
                raise BcnError(
                    f"what was exported differs from {reasoner.name} by {difference:.2g}, of its size, more than "
                    f"{TOLERANCE:g}; nothing was written, choose another format"
                )
            largest = max(largest, difference)
    return largest


def metadata(reasoner: Reasoner, free: Free) -> str:
    """What the file says of itself: all that the weights say, and how images and words become its inputs."""
    _, height, width = image_shape(str(reasoner.description["model"]))
    said = {**reasoner.description, "image": {"height": height, "width": width, "any_size": free.size}}
    if reasoner.in_words:
        said["numbering"] = {"padding": PADDING, "unknown": UNKNOWN, "first_word": SPECIAL, "pattern": WORD}
    return json.dumps(said, sort_keys=True)


def write_onnx(reasoner: Reasoner, path: Path) -> Written:
    """An .onnx file: `image` (B, C, H, W), `question` (B, Q, D) or (B, Q, L), and out `logits` and maybe `centre`."""
    content, free, difference = onnx_content(reasoner, Named(reasoner.model), ["logits", "centre"])
    return Written(_write(path.with_name(path.name + ".onnx"), content), free, difference)


def onnx_content(reasoner: Reasoner, module: nn.Module, names: Sequence[str]) -> tuple[bytes, Free, float]:
    """A module that holds the model as an ONNX file, what of its inputs is free, and the difference from the model.

    The outputs have these names; those that the model itself has come first and are compared.
    """
    try:
        import onnx
        import onnxruntime  # type: ignore[import-untyped]
        import onnxscript  # noqa: F401 (torch.onnx needs it)
    except ModuleNotFoundError as error:
        raise BcnError(f"export to onnx needs {error.name}: install it with `pip install 'bcn[onnx]'`") from error
    program, free = trace(reasoner, module)
    names = list(names)[: len(program.graph_signature.user_outputs)]
    for name in ("torch.onnx", "onnxscript"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch about itself
        converted = torch.onnx.export(
            program,
            dynamo=True,
            verbose=False,
            output_names=names,
            custom_translation_table={torch.ops.aten.hypot.default: _hypot},
        )
    assert converted is not None
    proto = converted.model_proto
    onnx.helper.set_model_props(proto, {"bcn": metadata(reasoner, free)})
    content = proto.SerializeToString()
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    inputs = [each.name for each in session.get_inputs()]

    def run(*given: Tensor) -> list[Tensor]:
        feed = {name: tensor.numpy() for name, tensor in zip(inputs, given, strict=True)}
        return [torch.from_numpy(found) for found in session.run(names, feed)]

    return content, free, compare(reasoner, run, free=free)


def write_torch_export(reasoner: Reasoner, path: Path) -> Written:
    """A .pt2 file for torch.export.load; the metadata is the extra file bcn.json."""
    program, free = trace(reasoner, Named(reasoner.model))
    path = path.with_name(path.name + ".pt2")
    with atomic_write(path) as temporary:
        torch.export.save(program, temporary.open("wb"), extra_files={"bcn.json": metadata(reasoner, free)})
        loaded = torch.export.load(temporary.open("rb")).module()
        difference = compare(reasoner, lambda *given: _outputs(loaded(*given)), free=free)
    return Written(path, free, difference)


def write_safetensors(reasoner: Reasoner, path: Path) -> Written:
    """The weights alone, which `bcn.load` reads again."""
    path = path.with_name(path.name + ".safetensors")
    free = Free(
        size=_takes_any_size(reasoner),
        questions=True if reasoner.asks else None,
        words=True if reasoner.in_words else None,
    )
    with atomic_write(path) as temporary:
        save_weights(temporary, reasoner.model.state_dict(), reasoner.description)
        model, _ = load_trained(temporary)
        difference = compare(reasoner, lambda *given: _outputs(model(*given)), free=free)
    return Written(path, free, difference)


FORMATS: dict[str, Callable[[Reasoner, Path], Written]] = {
    "onnx": write_onnx,
    "torch-export": write_torch_export,
    "safetensors": write_safetensors,
}


def _hypot(x: Any, y: Any) -> Any:
    """In operators of ONNX, which has none for it; coordinate planes use it for r."""
    from onnxscript import opset18

    return opset18.Sqrt(opset18.Add(opset18.Mul(x, x), opset18.Mul(y, y)))


def _outputs(output: Any) -> Outputs:
    return output if isinstance(output, tuple) else (output,)


def _write(path: Path, content: bytes) -> Path:
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
    return path
