"""`bcn export --to web`: the Reason page as static files; the model runs in the browser instead of on a server."""

import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from bcn.data.sort_of_clevr.sentences import OTHER_WORDS, SENTENCES, SIGNS, SMALL_WORDS, YES_NO_WORDS
from bcn.errors import BcnError
from bcn.inference.broadcast import forward_with_broadcast
from bcn.inference.export import ExportResult, Outputs, onnx_content
from bcn.inference.reasoner import Reasoner
from bcn.io import atomic_write, cache_root
from bcn.models.registry import image_shape

STATIC = Path(__file__).parent / "static"
SERVER_ONLY = ("engine.js", "server.js", "docs.html", "docs.js")
"""files of the page that the site does without or has another version of"""
ENGINE = 'export * from "./local.js";\n'
PACKAGE = "onnxruntime-web"
VERSION = "1.30.0"
"""the version of the package that the tests run with"""
RUNTIME = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
"""the files of its smallest build, for the CPU alone"""


class BroadcastOutputs(nn.Module):
    """The model with the vector that its BCN broadcasts, and the positions it comes from, as further outputs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor, question: Tensor) -> Outputs:
        output = forward_with_broadcast(self.model, image, question)
        if output.pooled is None:
            return (output.logits,)
        return output.logits, output.pooled.value_BK, output.pooled.position_BK


def write_site(reasoner: Reasoner, directory: Path, *, runtime: Path | None = None) -> ExportResult:
    """Write the page, the model and onnxruntime-web into a directory, which any file server can show.

    Args:
        runtime: the unpacked npm package onnxruntime-web; without it, `find_runtime` looks for one.
    """
    if reasoner.family != "sort-of-clevr":
        raise BcnError(f"{reasoner.name} is for {reasoner.family}: the page in the browser is for sort-of-clevr alone")
    runtime = find_runtime(runtime)
    module = BroadcastOutputs(reasoner.model)
    content, shapes, difference = onnx_content(reasoner, module, ["logits", "value", "position"])
    files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.name not in SERVER_ONLY}
    files |= {name: (runtime / name).read_bytes() for name in RUNTIME}
    files |= {"engine.js": ENGINE.encode(), "model.onnx": content}
    files |= {"model.json": json.dumps(describe(reasoner), sort_keys=True).encode()}
    for name, file_content in files.items():
        with atomic_write(directory / name) as temporary:
            temporary.write_bytes(file_content)
    return ExportResult(directory / "index.html", shapes, difference)


def describe(reasoner: Reasoner) -> dict[str, Any]:
    """What the page needs to know about the model, and the vocabulary of its questions."""
    description = {key: reasoner.description[key] for key in ("model", "data", "scale", "answers", "preprocessing")}
    language = {
        "sentences": SENTENCES,
        "signs": {kind: sorted(signs) for kind, signs in SIGNS.items()},
        "small": sorted(SMALL_WORDS),
        "yes_no": sorted(YES_NO_WORDS),
        "other": sorted(OTHER_WORDS),
    }
    size, can_die = None, False
    if reasoner.has_bcn:
        can_die = bool(reasoner.model.broadcast.can_die)  # type: ignore[union-attr]
        _, height, width = image_shape(str(reasoner.description["model"]))
        rows, columns = reasoner.broadcast(np.zeros((height, width, 3), np.uint8)).size
        size = {"rows": rows, "columns": columns}
    about = {"weights": reasoner.name, "family": reasoner.family, "map": size, "can_die": can_die}
    return {**about, "language": language, **description}


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
