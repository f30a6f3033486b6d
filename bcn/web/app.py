"""The server behind the page: scenes and images in, answers out, as JSON. Its OpenAPI document is at /openapi.json."""

import base64
import io
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.staticfiles import StaticFiles
from PIL import Image

from bcn import __version__
from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.scene import make_scene
from bcn.data.decode import ACCEPTED, decode_image
from bcn.data.images import MAX_SIDE
from bcn.errors import BcnError
from bcn.inference.reasoner import Reasoner
from bcn.web.errors import BodyLimit, add_error_handlers
from bcn.web.scenes import answer_scene, random_scene
from bcn.web.schema import (
    AnswerResponse,
    DetectionResponse,
    ErrorResponse,
    QuestionText,
    RandomScene,
    RenderedScene,
    SceneObject,
    SceneRequest,
    SceneResponse,
    Weights,
)

STATIC = Path(__file__).parent / "static"
CONTENT_SECURITY_POLICY = "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'"
"""the page loads nothing from elsewhere"""
SEEDS = 2**32
RENDERED_SIZE = (240, 160)
"""width and height of a rendered scene: CLEVR's aspect ratio"""

LISTED = "/api/weights lists the loaded ones"
ImageBody = Annotated[bytes, Body(media_type="application/octet-stream", description="A PNG, JPEG or other image.")]
WeightsQuery = Annotated[str | None, Query(description="The name of weights; /api/weights lists them.")]


class LoadedModels:
    """The reasoners that the server was started with, in that order."""

    def __init__(self, reasoners: Sequence[Reasoner]) -> None:
        self.reasoners = reasoners

    def of_family(self, family: str, name: str | None) -> list[Reasoner]:
        """All of a family, or the one with this name."""
        chosen = [
            reasoner for reasoner in self.reasoners if reasoner.family == family and name in (None, reasoner.name)
        ]
        if not chosen:
            raise BcnError(f"no weights for {family}{_called(name)} are loaded: {LISTED}")
        return chosen

    def classifiers(self, name: str | None) -> list[Reasoner]:
        """All of Scaled-MNIST, or the one with this name, if it takes no questions."""
        named = [reasoner for reasoner in self.reasoners if not reasoner.takes_questions and reasoner.name == name]
        return named or self.of_family("scaled-mnist", name)

    def question_answerer(self, name: str | None) -> Reasoner:
        """The first that takes questions, or the one with this name."""
        for reasoner in self.reasoners:
            if reasoner.takes_questions and name in (None, reasoner.name):
                return reasoner
        raise BcnError(f"no weights{_called(name)} that take questions are loaded: {LISTED}")


def _called(name: str | None) -> str:
    return "" if name is None else f" called {name!r}"


def make_app(reasoners: Sequence[Reasoner]) -> FastAPI:
    """The page and its JSON interface over these reasoners.

    Everything runs in one thread: a model must not run in two at once, and on a busy machine a change of threads waits.
    """
    app = FastAPI(
        title="bcn",
        description="Visual relational reasoning from pixels.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        responses={422: {"model": ErrorResponse, "description": "The request cannot be answered"}},
    )
    models = LoadedModels(reasoners)
    add_error_handlers(app)
    app.middleware("http")(_add_headers)
    app.add_middleware(BodyLimit)

    @app.get("/api/weights", response_model=list[Weights])
    async def weights() -> list[dict[str, Any]]:
        """The weights that are loaded."""
        return [_describe(reasoner) for reasoner in models.reasoners]

    @app.get("/api/scene", response_model=RandomScene)
    async def scene(seed: Annotated[int, Query(ge=0, lt=SEEDS)]) -> dict[str, list[SceneObject]]:
        """A random Sort-of-CLEVR scene."""
        return {"objects": random_scene(seed)}

    @app.get("/api/rendered", response_model=RenderedScene)
    async def rendered(seed: Annotated[int, Query(ge=0, lt=SEEDS)]) -> dict[str, Any]:
        """A random CLEVR-like scene: its image as base64 of a PNG file, and questions with their true answers."""
        scene = make_scene(seed, split="val")
        questions = [{key: entry[key] for key in ("question", "answer")} for entry in make_questions(scene)]
        image = render_scene(scene, width=RENDERED_SIZE[0], height=RENDERED_SIZE[1])
        return {"image": _encode_png(image), "questions": questions}

    @app.post("/api/reason", response_model=SceneResponse)
    async def reason(scene: SceneRequest) -> dict[str, Any]:
        """Answers about a Sort-of-CLEVR scene, each beside the true one, and the BCN's activation map."""
        reasoner = models.of_family("sort-of-clevr", scene.weights)[0]
        start = time.perf_counter()
        answers, broadcast = answer_scene(reasoner, scene)
        return {
            "weights": reasoner.name,
            "answers": answers,
            "broadcast": None if broadcast is None else broadcast.to_dict(),
            "milliseconds": _milliseconds_since(start),
        }

    @app.post("/api/ask", response_model=AnswerResponse)
    async def ask(
        image: ImageBody, question: Annotated[list[QuestionText], Query(max_length=100)], weights: WeightsQuery = None
    ) -> dict[str, Any]:
        """Answers to questions about an image."""
        reasoner, decoded = models.question_answerer(weights), _decode_image(image)
        start = time.perf_counter()
        answers = [answer.to_dict() for answer in reasoner.ask(decoded, question)]
        return {"weights": reasoner.name, "answers": answers, "milliseconds": _milliseconds_since(start)}

    @app.post("/api/find", response_model=DetectionResponse)
    async def find(image: ImageBody, weights: WeightsQuery = None) -> dict[str, Any]:
        """What each loaded Scaled-MNIST model, or the classifier with this name, sees in an image, and where."""
        reasoners, decoded = models.classifiers(weights), _decode_image(image)
        start = time.perf_counter()
        detections = [_detect(reasoner, decoded) for reasoner in reasoners]
        return {"detections": detections, "milliseconds": _milliseconds_since(start)}

    app.mount("/", StaticFiles(directory=STATIC, html=True))
    return app


def _detect(reasoner: Reasoner, image: Image.Image) -> dict[str, Any]:
    (answer,), broadcast = reasoner.answer_with_broadcast(image)
    positions = None if broadcast is None else broadcast.to_dict()
    return _describe(reasoner) | answer.to_dict() | {"broadcast": positions}


def _describe(reasoner: Reasoner) -> dict[str, Any]:
    description = {key: reasoner.description[key] for key in ("model", "data", "scale")}
    return {"weights": reasoner.name, "family": reasoner.family, "has_bcn": reasoner.has_bcn, **description}


def _encode_png(pixels_HW3: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels_HW3).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def _decode_image(content: bytes) -> Image.Image:
    try:
        return decode_image(io.BytesIO(content), max_side=MAX_SIDE)
    except (OSError, ValueError) as error:
        raise BcnError(f"what was sent is not an image: {error}; send the bytes of a whole {ACCEPTED} file") from error


def _milliseconds_since(start: float) -> float:
    return round(1000 * (time.perf_counter() - start), 2)


async def _add_headers(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call(request)
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    response.headers["Cache-Control"] = "no-cache"
    return response
