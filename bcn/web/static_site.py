"""`bcn export --to web`: the Reason page as plain files, with the model in the browser instead of a server behind it.

B images of C x H x W pixels, Q questions of D numbers about each, K broadcast channels.
"""

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
from bcn.inference.export import Outputs, Written, onnx_content
from bcn.inference.reasoner import Reasoner
from bcn.io import atomic_write, cache_root
from bcn.models.registry import image_shape

STATIC = Path(__file__).parent / "static"
PAGE = ("icon.svg", "local.js", "main.js", "find.js", "reason.js", "scenes.js", "see.js", "style.css")
PACKAGE = "onnxruntime-web"
VERSION = "1.30.0"
"""of the package that the tests ran with"""
RUNTIME = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
"""its smallest build: the CPU alone"""
POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"
)


class Shown(nn.Module):
    """The model with what its BCN broadcasts and from where, where it has one."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Tensor, question: Tensor) -> Outputs:
        logits_BQA: Tensor = self.model(image, question)
        if self.model.broadcast is None:
            return (logits_BQA,)
        value_BK, position_BK = self.model.broadcast.pooled(self.model.features(image))  # type: ignore[operator, union-attr]
        return logits_BQA, value_BK, position_BK


def write_site(reasoner: Reasoner, directory: Path, *, runtime: Path | None = None) -> Written:
    """Write the page, the model and onnxruntime-web into a directory, which any file server can show."""
    if reasoner.family != "sort-of-clevr":
        raise BcnError(f"{reasoner.name} is for {reasoner.family}: the page in the browser is for sort-of-clevr alone")
    found = find_runtime(runtime)
    content, free, difference = onnx_content(reasoner, Shown(reasoner.model), ["logits", "value", "position"])
    page = (STATIC / "index.html").read_text()
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    page = page.replace("./server.js", "./local.js").replace(
        '<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}'
    )
    files = {name: (STATIC / name).read_bytes() for name in PAGE} | {
        name: (found / name).read_bytes() for name in RUNTIME
    }
    files |= {"model.json": json.dumps(about(reasoner), sort_keys=True).encode(), "model.onnx": content}
    for name, each in {**files, "index.html": page.encode()}.items():
        with atomic_write(directory / name) as temporary:
            temporary.write_bytes(each)
    return Written(directory / "index.html", free, difference)


def about(reasoner: Reasoner) -> dict[str, Any]:
    """What the page has to know of the model, and the words of its questions."""
    facts = {key: reasoner.description[key] for key in ("model", "data", "scale", "answers", "preprocessing")}
    language = {
        "sentences": SENTENCES,
        "signs": {kind: sorted(signs) for kind, signs in SIGNS.items()},
        "small": sorted(SMALL_WORDS),
        "yes_no": sorted(YES_NO_WORDS),
        "other": sorted(OTHER_WORDS),
    }
    size = None
    if reasoner.broadcasts:
        _, height, width = image_shape(str(reasoner.description["model"]))
        rows, columns = reasoner.broadcast(np.zeros((height, width, 3), np.uint8)).size
        size = {"rows": rows, "columns": columns}
    return {"weights": reasoner.name, "family": reasoner.family, "map": size, "language": language, **facts}


def find_runtime(given: Path | None = None) -> Path:
    """The directory with the three files of onnxruntime-web: in a package that is given, or in one from npm.

    Looked for in what is given, in `node_modules` here, and in the cache, into which npm puts it where it is missing.
    """
    cached = cache_root() / f"{PACKAGE}-{VERSION}"
    for package in [given] if given is not None else [Path("node_modules") / PACKAGE, cached / "package"]:
        for directory in (
            package,
            package / "dist",
            package / "package" / "dist",
            package / "node_modules" / PACKAGE / "dist",
        ):
            if all((directory / name).is_file() for name in RUNTIME):
                return directory
    if given is not None:
        raise BcnError(f"{given} does not hold {', '.join(RUNTIME)}: give the unpacked npm package {PACKAGE}")
    npm = shutil.which("npm")
    if npm is None:
        raise BcnError(
            f"export to web needs the npm package {PACKAGE}: install npm, or give it unpacked with --runtime"
        )
    cached.mkdir(parents=True, exist_ok=True)
    command = [npm, "pack", "--silent", f"{PACKAGE}@{VERSION}"]
    done = subprocess.run(command, cwd=cached, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BcnError(f"npm could not fetch {PACKAGE} ({why}): try again, or give it unpacked with --runtime")
    packed = cached / done.stdout.split()[-1]
    with tarfile.open(packed) as archive:
        archive.extractall(cached, [f for f in archive if Path(f.name).name in RUNTIME], filter="data")
    packed.unlink()
    return find_runtime(cached)
