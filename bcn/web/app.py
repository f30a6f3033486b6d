"""The server behind the page: scenes and images in, answers out, as JSON. Its OpenAPI document is at /openapi.json.

K broadcast channels, H x W pixels.
"""

import base64
import io
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from PIL import Image, UnidentifiedImageError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bcn import __version__
from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.scene import make_scene
from bcn.data.images import Picture, check_sides, read_picture
from bcn.data.sort_of_clevr import (
    COLOURS,
    KINDS,
    SHAPES,
    Scenes,
    answer_all,
    draw,
    from_sentence,
    make_sort_of_clevr,
    question_bits,
    to_sentence,
)
from bcn.errors import BcnError
from bcn.inference.reasoner import Reasoner
from bcn.web.schema import (
    AskedAll,
    FoundAll,
    Object,
    Problem,
    RandomScene,
    Reasoned,
    Rendered,
    Scene,
    Sentence,
    Weights,
)

STATIC = Path(__file__).parent / "static"
LARGEST = 8 << 20
"""bytes of an image that are accepted"""
POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"
"""the page loads nothing from elsewhere"""
SEEDS = 2**32
RENDERED = (240, 160)
"""width and height of a rendered scene: the shape of CLEVR's"""
RUNNERS_UP = 3
"""told of each of the many answers about a scene"""

Answers = list[dict[str, Any]]
ImageBody = Annotated[bytes, Body(media_type="application/octet-stream", description="A PNG, JPEG or other image.")]
WeightsQuery = Annotated[str | None, Query(description="Which weights; /api/weights lists them.")]


class Loaded:
    """The models."""

    def __init__(self, reasoners: Sequence[Reasoner]) -> None:
        self.reasoners = reasoners

    def those(self, family: str, name: str | None) -> list[Reasoner]:
        """The reasoners of a family, or the one of them that is named."""
        found = [r for r in self.reasoners if r.family == family and name in (None, r.name)]
        if not found:
            given = "" if name is None else f" called {name!r}"
            raise BcnError(f"no weights for {family}{given} are loaded: /api/weights lists those that are")
        return found

    def finding(self, name: str | None) -> list[Reasoner]:
        """Those of Scaled-MNIST, or the one that is named, if it takes no questions."""
        named = [reasoner for reasoner in self.reasoners if not reasoner.asks and reasoner.name == name]
        return named or self.those("scaled-mnist", name)

    def asking(self, name: str | None) -> Reasoner:
        """The first reasoner that takes questions, or the one that is named."""
        for reasoner in self.reasoners:
            if reasoner.asks and name in (None, reasoner.name):
                return reasoner
        raise BcnError("no such weights that take questions are loaded: /api/weights lists those that are")


def make_app(reasoners: Sequence[Reasoner]) -> FastAPI:
    """The page and its interface over these reasoners.

    All of it runs in one thread: a model's buffers are not for two, and each change of threads waits on a busy machine.
    """
    app = FastAPI(
        title="bcn",
        description="Visual relational reasoning from pixels.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        responses={422: {"model": Problem, "description": "What was sent cannot be answered"}},
    )
    loaded = Loaded(reasoners)
    app.exception_handler(BcnError)(_refuse)
    app.exception_handler(RequestValidationError)(_invalid)
    app.exception_handler(HTTPException)(_missing)
    app.middleware("http")(_guard)
    app.add_middleware(Limited)

    @app.get("/api/weights", response_model=list[Weights])
    async def weights() -> list[dict[str, Any]]:
        """The weights that are loaded."""
        return [_about(reasoner) for reasoner in loaded.reasoners]

    @app.get("/api/scene", response_model=RandomScene)
    async def scene(seed: Annotated[int, Query(ge=0, lt=SEEDS)]) -> dict[str, list[Object]]:
        """A random Sort-of-CLEVR scene."""
        return {"objects": random_scene(seed)}

    @app.get("/api/rendered", response_model=Rendered)
    async def rendered(seed: Annotated[int, Query(ge=0, lt=SEEDS)]) -> dict[str, Any]:
        """A random scene like CLEVR's: its picture as base64 of a PNG file, and questions with their true answers."""
        scene = make_scene(seed, split="val")
        asked = [{key: each[key] for key in ("question", "answer")} for each in make_questions(scene)]
        return {"image": _encode(render_scene(scene, width=RENDERED[0], height=RENDERED[1])), "questions": asked}

    @app.post("/api/reason", response_model=Reasoned)
    async def reason(scene: Scene) -> dict[str, Any]:
        """Answers about a Sort-of-CLEVR scene, each beside the truth, and what is broadcast from where."""
        reasoner = loaded.those("sort-of-clevr", scene.weights)[0]
        began = time.perf_counter()
        answers, picture = answer_scene(reasoner, scene)
        broadcast = _broadcast(reasoner, picture)
        return {"weights": reasoner.name, "answers": answers, "broadcast": broadcast, "milliseconds": _since(began)}

    @app.post("/api/ask", response_model=AskedAll)
    async def ask(
        image: ImageBody, question: Annotated[list[Sentence], Query(max_length=100)], weights: WeightsQuery = None
    ) -> dict[str, Any]:
        """Answers to questions about an image."""
        reasoner, picture = loaded.asking(weights), _decode(image)
        began = time.perf_counter()
        answers = [
            {"question": a.question, "answer": a.answer, "probability": a.probability, "others": _shares(a.others)}
            for a in reasoner.ask(picture, question)
        ]
        return {"weights": reasoner.name, "answers": answers, "milliseconds": _since(began)}

    @app.post("/api/find", response_model=FoundAll)
    async def find(image: ImageBody, weights: WeightsQuery = None) -> dict[str, Any]:
        """What each of the loaded Scaled-MNIST models, or any one that is named, sees in an image, and where."""
        reasoners, picture = loaded.finding(weights), _decode(image)
        began = time.perf_counter()
        found = [_found(reasoner, picture) for reasoner in reasoners]
        return {"found": found, "milliseconds": _since(began)}

    app.mount("/", StaticFiles(directory=STATIC, html=True))
    return app


def random_scene(seed: int) -> list[Object]:
    """The objects of one scene of the stream of Sort-of-CLEVR v1."""
    scenes = make_sort_of_clevr("sort-of-clevr-stream", "train", images=1).scenes([seed])
    columns = zip(COLOURS, scenes.x[0], scenes.y[0], scenes.shape[0], strict=True)
    return [
        Object.model_validate({"colour": colour, "shape": SHAPES[shape], "x": int(x), "y": int(y)})
        for colour, x, y, shape in columns
    ]


def answer_scene(reasoner: Reasoner, scene: Scene) -> tuple[Answers, np.ndarray]:
    """The answers of a model and the truth, and the image that was asked about, (H, W, 3)."""
    scenes, bits = scenes_of(scene.objects), question_bits()
    if scene.questions is None:
        numbers = [number for number in range(36) if scenes.present[0, number % 6]]
    else:
        numbers = [_number(sentence, scenes) for sentence in scene.questions]
    picture, truth_36 = draw(scenes)[0].transpose(1, 2, 0), answer_all(scenes)[0]
    probability_QA = reasoner.probabilities(picture, bits[numbers])
    answers = []
    for number, probability_A in zip(numbers, probability_QA, strict=True):
        ranked = sorted(zip(reasoner.answers, probability_A.tolist(), strict=True), key=lambda pair: -pair[1])
        answers.append(
            {
                "kind": KINDS[number // 6],
                "colour": COLOURS[number % 6],
                "question": sentences()[number],
                "answer": ranked[0][0],
                "probability": ranked[0][1],
                "others": _shares(ranked[1 : 1 + RUNNERS_UP]),
                "truth": reasoner.answers[truth_36[number]],
            }
        )
    return answers, picture


@cache
def sentences() -> tuple[str, ...]:
    """Of all 36 questions."""
    return tuple(map(to_sentence, question_bits()))


def scenes_of(objects: list[Object]) -> Scenes:
    """One scene as the data sets have it."""
    if len({each.colour for each in objects}) < len(objects):
        raise BcnError("two objects have the same colour: a scene has at most one of each colour")
    by_colour = {each.colour: each for each in objects}
    x, y, shape, present = np.zeros((4, 1, 6), dtype=np.int16)
    for number, colour in enumerate(COLOURS):
        if colour in by_colour:
            each = by_colour[colour]
            x[0, number], y[0, number], present[0, number] = each.x, each.y, 1
            shape[0, number] = SHAPES.index(each.shape)
    return Scenes(x, y, shape.astype(np.uint8), present.astype(bool))


def _number(sentence: str, scenes: Scenes) -> int:
    number = int((question_bits() == from_sentence(sentence)).all(axis=1).argmax())
    if not scenes.present[0, number % 6]:
        raise BcnError(f"there is no {COLOURS[number % 6]} object in this scene: ask about one that is there")
    return number


def _found(reasoner: Reasoner, picture: Image.Image) -> dict[str, Any]:
    answer = reasoner.find(picture)
    return _about(reasoner) | {
        "answer": answer.answer,
        "probability": answer.probability,
        "others": _shares(answer.others),
        "centre": answer.centre,
        "broadcast": _broadcast(reasoner, picture),
    }


def _broadcast(reasoner: Reasoner, picture: Picture) -> dict[str, Any] | None:
    """From where in the map each channel came; -1 for a channel that is zero."""
    if not reasoner.broadcasts:
        return None
    value_K, position_K, (rows, columns) = reasoner.broadcast(picture)
    return {"rows": rows, "columns": columns, "position": np.where(value_K > 0, position_K, -1).tolist()}


def _about(reasoner: Reasoner) -> dict[str, Any]:
    facts = {key: reasoner.description[key] for key in ("model", "data", "scale")}
    return {"weights": reasoner.name, "family": reasoner.family, "broadcasts": reasoner.broadcasts, **facts}


def _shares(ranked: Sequence[tuple[str, float]]) -> Answers:
    return [{"answer": name, "probability": share} for name, share in ranked]


def _encode(pixels_HW3: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels_HW3).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def _decode(content: bytes) -> Image.Image:
    try:
        return read_picture(check_sides(Image.open(io.BytesIO(content))))
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise BcnError("what was sent is not an image: send the bytes of a whole PNG or JPEG file") from error


def _since(began: float) -> float:
    return round(1000 * (time.perf_counter() - began), 2)


def _refuse(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, status_code=422)


def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return JSONResponse({"error": "the body is not JSON: /openapi.json says what is accepted"}, status_code=422)
    where = ".".join(map(str, first["loc"][1:])) or "the body"
    return JSONResponse({"error": f"{where}: {first['msg']}"}, status_code=422)


def _missing(request: Request, error: Exception) -> JSONResponse:
    """Addresses and methods that there are not, in the form of all other refusals."""
    assert isinstance(error, HTTPException)
    said = f"{request.method} {request.url.path}: {error.detail}; /openapi.json lists what there is"
    return JSONResponse({"error": said}, status_code=error.status_code, headers=error.headers)


class Limited:
    """Reads no more of a body than is accepted."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > LARGEST:
                raise HTTPException(413)
            return message

        async def unless_too_large(message: Message) -> None:
            if read <= LARGEST:
                await send(message)

        await self.app(scope, counted, unless_too_large)
        if read > LARGEST:
            said = f"the body has more than {LARGEST} bytes: send a smaller image"
            await JSONResponse({"error": said}, 413, {"Connection": "close"})(scope, receive, send)


async def _guard(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call(request)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Cache-Control"] = "no-cache"
    return response
