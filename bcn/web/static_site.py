"""`bcn export --to web`: the page as static files; the models run in the browser instead of on a server.

B images of C x H x W pixels, K broadcast channels, C x h x w the map that the BCN sees, Q questions of D numbers.
"""

import json
import shutil
import subprocess
import tarfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim

from bcn.data.sort_of_clevr import COLOURS
from bcn.data.sort_of_clevr.sentences import OTHER_WORDS, SENTENCES, SIGNS, SMALL_WORDS, YES_NO_WORDS
from bcn.data.vqa.synonyms import known_ways
from bcn.errors import BcnError
from bcn.inference.broadcast import forward_with_broadcast
from bcn.inference.export import (
    DynamicShapes,
    ExportResult,
    Outputs,
    compare,
    onnx_content,
    onnx_function,
    random_inputs,
    to_onnx,
)
from bcn.inference.reasoner import Reasoner
from bcn.io import atomic_write, cache_root, check_writable
from bcn.models.cost import count_parameters
from bcn.models.registry import image_shape
from bcn.training.broadcast_probe import replaced_vector
from bcn.web.rendered import make_picture, pictures_for
from bcn.web.scenes import ABOUT_ONE
from bcn.web.sources import SOURCES
from bcn.web.typical import typical

STATIC = Path(__file__).parent / "static"
FAMILIES = ("sort-of-clevr", "scaled-mnist")
RENDERED = 12
"""scenes for models of CLEVR"""
SERVER_ONLY = ("engine.js", "server.js", "docs.html", "docs.js")
"""files of the page that the site does without or has another version of"""
ENGINE = 'export * from "./local.js";\n'
PACKAGE = "onnxruntime-web"
VERSION = "1.30.0"
"""the version of the package that the tests run with"""
RUNTIME = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
"""the files of its smallest build, for the CPU alone"""


class Encoder(nn.Module):
    """The CNN, and what its BCN makes of the map: the vector, where it comes from, and what its maximum is taken of."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor) -> Outputs:
        bcn: Any = self.model.broadcast
        map_BChw: Tensor = self.model.features(image)  # type: ignore[operator]
        if bcn is None:
            return (map_BChw,)
        response_BKhw = bcn.before_pooling(map_BChw)
        value_BK, position_BK = response_BKhw.flatten(2).max(dim=2)
        return map_BChw, value_BK, position_BK, response_BKhw


class Answerer(nn.Module):
    """The rest: from a map, a question and a vector, that of the encoder or another, to the logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, map: Tensor, question: Tensor, vector: Tensor | None = None) -> Tensor:
        model: Any = self.model
        if vector is None:
            return cast(Tensor, model.from_features(map, question))
        with replaced_vector(model.broadcast, lambda _: vector):
            return cast(Tensor, model.from_features(map, question))


class BroadcastOutputs(nn.Module):
    """A classifier with the vector that its BCN broadcasts, and the positions it comes from, as further outputs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor) -> Outputs:
        output = forward_with_broadcast(self.model, image, None)
        further = () if output.pooled is None else (output.pooled.value_BK, output.pooled.position_BK)
        centre = () if output.centre_B2 is None else (output.centre_B2,)
        return (output.logits, *centre, *further)


def write_site(
    reasoners: Reasoner | Sequence[Reasoner], directory: Path, *, runtime: Path | None = None
) -> ExportResult:
    """Write the page, the models and onnxruntime-web into a directory, which any file server can show.

    Args:
        runtime: the unpacked npm package onnxruntime-web; without it, `find_runtime` looks for one.
    """
    reasoners = [reasoners] if isinstance(reasoners, Reasoner) else reasoners
    for reasoner in reasoners:
        if reasoner.family not in FAMILIES and not reasoner.takes_words:
            raise BcnError(f"{reasoner.name} is for {reasoner.family}: the page has {', '.join(FAMILIES)} and words")
        if reasoner.family == "sort-of-clevr" and reasoner.coding is None:
            raise BcnError(f"{reasoner.name} is not asked as Sort-of-CLEVR v1 or v2 is: choose other weights")
    runtime = find_runtime(runtime)
    check_writable(directory / "index.html")
    files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.name not in SERVER_ONLY}
    files |= {f"source/{path.name}": path.read_bytes() for path in SOURCES}
    files |= {name: (runtime / name).read_bytes() for name in RUNTIME}
    files |= {"engine.js": ENGINE.encode()}
    described, differences = [], []
    for number, reasoner in enumerate(reasoners):
        contents, shapes, difference = _convert(reasoner)
        files |= {f"{name}-{number}.onnx": content for name, content in contents.items()}
        described.append(describe(reasoner) | {"files": {name: f"{name}-{number}.onnx" for name in contents}})
        differences.append(difference)
    sizes = {name: len(content) for name, content in files.items() if name.endswith((".onnx", ".wasm"))}
    files["models.json"] = json.dumps({"models": described, "sizes": sizes}, sort_keys=True).encode()
    files["rendered.json"] = json.dumps(_pictures(reasoners)).encode()
    for name, file_content in files.items():
        with atomic_write(directory / name) as temporary:
            temporary.write_bytes(file_content)
    return ExportResult(directory / "index.html", shapes, max(differences))


def _convert(reasoner: Reasoner) -> tuple[dict[str, bytes], DynamicShapes, float]:
    """The ONNX files of a model by name, and the largest difference from it."""
    if not reasoner.takes_questions:
        names = ["logits", *(["centre"] if _localises(reasoner) else []), "value", "position"]
        content, shapes, difference = onnx_content(reasoner, BroadcastOutputs(reasoner.model), names)
        return {"classifier": content}, shapes, difference
    image, question = random_inputs(reasoner)
    encoder, about = Encoder(reasoner.model).eval(), "{}"
    with torch.inference_mode():
        map_BChw, *pooled = encoder(image)
    batch = {0: Dim.AUTO}
    asked = {0: Dim.AUTO, 1: Dim.AUTO, **({2: Dim.AUTO} if reasoner.takes_words else {})}
    vector = (pooled[0],) if pooled else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about itself
        seeing = torch.export.export(encoder, (image,), dynamic_shapes=(batch,))
        answering = torch.export.export(
            Answerer(reasoner.model).eval(),
            (map_BChw.clone(), question, *(each.clone() for each in vector)),
            dynamic_shapes=(batch, asked, *(batch for _ in vector)),
        )
    contents = {
        "encoder": to_onnx(seeing, ["map", "value", "position", "response"], about),
        "answerer": to_onnx(answering, ["logits"], about),
    }
    see, answer = (onnx_function(content) for content in contents.values())

    def run(image_BCHW: Tensor, question_BQD: Tensor) -> list[Tensor]:
        map_BChw, *further = see(image_BCHW)
        return answer(map_BChw, question_BQD, *further[:1])

    shapes = DynamicShapes(size=False, words=True if reasoner.takes_words else None)
    return contents, shapes, compare(reasoner, run, shapes)


def _localises(reasoner: Reasoner) -> bool:
    image = torch.zeros(1, *image_shape(str(reasoner.description["model"])))
    with torch.inference_mode():
        return forward_with_broadcast(reasoner.model, image, None).centre_B2 is not None


def _pictures(reasoners: Sequence[Reasoner]) -> dict[str, list[dict[str, Any]]]:
    """Some pictures of each kind that a model takes words about; without the extra `render` none that are rendered."""
    pictures = {}
    for data in sorted({pictures_for(each) for each in reasoners if each.takes_words}):
        with suppress(BcnError):
            pictures[data] = [make_picture(seed, data) for seed in range(RENDERED)]
    return pictures


def describe(reasoner: Reasoner) -> dict[str, Any]:
    """What the page needs to know about a model, and the vocabulary of its questions."""
    keys = ("model", "data", "scale", "answers", "preprocessing")
    about: dict[str, Any] = {key: reasoner.description[key] for key in keys}
    about |= {"weights": reasoner.name, "family": reasoner.family, "has_bcn": reasoner.has_bcn}
    about |= {"parameters": count_parameters(reasoner.model), "words": reasoner.description.get("words")}
    about["synonyms"] = known_ways(about["words"] or ())
    about["pictures"] = pictures_for(reasoner) if reasoner.takes_words else None
    _, height, width = image_shape(str(reasoner.description["model"]))
    about |= {"image": {"height": height, "width": width}, "localise": reasoner.description["localise"]}
    about |= {"map": None, "can_die": False, "typical": None, "language": None}
    if reasoner.has_bcn:
        rows, columns = reasoner.broadcast(np.zeros((height, width, 3), np.uint8)).edges()
        about["can_die"] = bool(reasoner.model.broadcast.can_die)  # type: ignore[union-attr]
        about["map"] = {"rows": rows.tolist(), "columns": columns.tolist()}
    if reasoner.family == "sort-of-clevr" and reasoner.coding is not None:
        coding = reasoner.coding
        asked = [[coding.number(kind, colour) for colour in range(len(COLOURS))] for kind in range(ABOUT_ONE)]
        about["language"] = {
            "bits": dict(zip(coding.kinds, coding.bits[asked].tolist(), strict=False)),
            "sentences": SENTENCES,
            "signs": {kind: sorted(signs) for kind, signs in SIGNS.items()},
            "small": sorted(SMALL_WORDS),
            "yes_no": sorted(YES_NO_WORDS),
            "other": sorted(OTHER_WORDS),
        }
        if reasoner.has_bcn:
            usual = typical(reasoner)
            about["typical"] = {
                "mean": usual.mean_K.tolist(),
                "active": usual.active_K.tolist(),
                "empty": usual.empty_Chw.flatten().tolist(),
            }
    return about


def find_runtime(directory: Path | None = None) -> Path:
    """The directory with the three files of onnxruntime-web.

    Args:
        directory: where to look for them; by default in `node_modules` and in the cache, into which npm fetches them.
    """
    cached = cache_root() / f"{PACKAGE}-{VERSION}"
    for package in [directory] if directory is not None else [Path("node_modules") / PACKAGE, cached / "package"]:
        for dist in (
            package,
            package / "dist",
            package / "package" / "dist",
            package / "node_modules" / PACKAGE / "dist",
        ):
            if all((dist / name).is_file() for name in RUNTIME):
                return dist
    if directory is not None:
        raise BcnError(f"{directory} does not hold {', '.join(RUNTIME)}: give the unpacked npm package {PACKAGE}")
    npm = shutil.which("npm")
    if npm is None:
        raise BcnError(
            f"export to web needs the npm package {PACKAGE}: install npm, or give it unpacked with --runtime"
        )
    cached.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", "--silent", f"{PACKAGE}@{VERSION}"]
    process = subprocess.run(command, cwd=cached, capture_output=True, text=True, check=False)
    if process.returncode:
        reason = (process.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BcnError(f"npm could not fetch {PACKAGE} ({reason}): try again, or give it unpacked with --runtime")
    packed = cached / process.stdout.split()[-1]
    with tarfile.open(packed) as archive:
        archive.extractall(cached, [f for f in archive if Path(f.name).name in RUNTIME], filter="data")
    packed.unlink()
    return find_runtime(cached)
