"""The server behind the page: scenes and images in, answers out, as JSON. /docs and /openapi.json describe it."""

import base64
import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import Body, FastAPI, Query, Request
from fastapi.responses import FileResponse
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from PIL import Image
from starlette.types import ASGIApp

from bcn import __version__
from bcn.data.clevr_like.questions import make_questions
from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.scene import make_scene
from bcn.data.decode import ACCEPTED, decode_image
from bcn.data.images import MAX_SIDE
from bcn.errors import BcnError
from bcn.inference.reasoner import Reasoner
from bcn.web.errors import add_error_handlers
from bcn.web.guard import Guard
from bcn.web.limits import Limits
from bcn.web.models import LoadedModels
from bcn.web.scenes import answer_scene, random_scene
from bcn.web.schema import (
    AnswerResponse,
    AskQuery,
    DetectionResponse,
    ErrorResponse,
    FindQuery,
    Health,
    RandomScene,
    RenderedScene,
    SceneObject,
    SceneRequest,
    SceneResponse,
    SeedQuery,
    Weights,
)
from bcn.web.worker import Worker

STATIC = Path(__file__).parent / "static"
RENDERED_SIZE = (240, 160)
"""width and height of a rendered scene: CLEVR's aspect ratio"""
ERRORS = {
    400: "The Host is not served here, or the body cannot be parsed",
    403: "The request comes from a page of another site",
    404: "There is nothing at this address",
    422: "The request cannot be answered",
    503: "Too many requests or uploads at once; Retry-After says when to try again",
}
BODY_ERRORS = {408: "The body took too long", 413: "The body is too large"}
ImageBody = Annotated[bytes, Body(media_type="application/octet-stream", description=f"A {ACCEPTED} file.")]


def make_app(reasoners: Sequence[Reasoner], *, host: str = "127.0.0.1") -> ASGIApp:
    """The page and its JSON interface over these reasoners.

    Args:
        host: the address or name that the server listens on; requests for others are refused.
    """
    app = FastAPI(
        title="bcn",
        description="Visual relational reasoning from pixels.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        responses=_describe_errors(ERRORS),
    )
    models, thinking, rendering = LoadedModels(reasoners), Worker(), Worker()
    add_error_handlers(app)

    @app.get("/api/weights", response_model=list[Weights])
    async def weights() -> list[dict[str, Any]]:
        """The weights that are loaded."""
        return [_describe(reasoner) for reasoner in models.reasoners]

    @app.get("/api/scene", response_model=RandomScene)
    async def scene(query: Annotated[SeedQuery, Query()]) -> dict[str, list[SceneObject]]:
        """A random Sort-of-CLEVR scene."""
        return {"objects": random_scene(query.seed)}

    @app.get("/api/rendered", response_model=RenderedScene)
    async def rendered(request: Request, query: Annotated[SeedQuery, Query()]) -> dict[str, Any]:
        """A random CLEVR-like scene: its image as base64 of a PNG file, and questions with their true answers."""
        return await rendering.run(request, lambda: _render(query.seed))

    @app.post("/api/reason", response_model=SceneResponse, responses=_describe_errors(BODY_ERRORS))
    async def reason(request: Request, scene: SceneRequest) -> dict[str, Any]:
        """Answers about a Sort-of-CLEVR scene, each beside the true one, and the BCN's activation map."""
        reasoner = models.of_family("sort-of-clevr", scene.weights)[0]
        return await thinking.run(request, lambda: _reason(reasoner, scene))

    @app.post("/api/ask", response_model=AnswerResponse, responses=_describe_errors(BODY_ERRORS))
    async def ask(request: Request, image: ImageBody, query: Annotated[AskQuery, Query()]) -> dict[str, Any]:
        """Answers to questions about an image."""
        reasoner = models.question_answerer(query.weights)
        return await thinking.run(request, lambda: _ask(reasoner, image, query.question))

    @app.post("/api/find", response_model=DetectionResponse, responses=_describe_errors(BODY_ERRORS))
    async def find(request: Request, image: ImageBody, query: Annotated[FindQuery, Query()]) -> dict[str, Any]:
        """What each loaded Scaled-MNIST model, or the classifier with this name, sees in an image, and where."""
        reasoners = models.classifiers(query.weights)
        return await thinking.run(request, lambda: _find(reasoners, image))

    @app.get("/healthz", response_model=Health)
    async def healthz() -> dict[str, str]:
        """Whether the server answers."""
        return {"status": "ok"}

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(STATIC / "docs.html")

    app.router.default = StaticFiles(directory=STATIC, html=True)
    app.openapi()  # kept, without the methods that are added now
    for route in app.routes:
        if isinstance(route, APIRoute) and route.methods and "GET" in route.methods:
            route.methods.add("HEAD")
    return Guard(Limits(app), host=host)


def _describe_errors(errors: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorResponse, "description": text} for status, text in errors.items()}


def _render(seed: int) -> dict[str, Any]:
    scene = make_scene(seed, split="val")
    questions = [{key: entry[key] for key in ("question", "answer")} for entry in make_questions(scene)]
    image = render_scene(scene, width=RENDERED_SIZE[0], height=RENDERED_SIZE[1])
    return {"image": _encode_png(image), "questions": questions}


def _reason(reasoner: Reasoner, scene: SceneRequest) -> dict[str, Any]:
    start = time.perf_counter()
    answers, broadcast = answer_scene(reasoner, scene)
    return {
        "weights": reasoner.name,
        "answers": answers,
        "broadcast": None if broadcast is None else broadcast.to_dict(),
        "milliseconds": _milliseconds_since(start),
    }


def _ask(reasoner: Reasoner, image: bytes, questions: list[str]) -> dict[str, Any]:
    decoded, start = _decode_image(image), time.perf_counter()
    answers = [answer.to_dict() for answer in reasoner.ask(decoded, questions)]
    return {"weights": reasoner.name, "answers": answers, "milliseconds": _milliseconds_since(start)}


def _find(reasoners: Sequence[Reasoner], image: bytes) -> dict[str, Any]:
    decoded, start = _decode_image(image), time.perf_counter()
    detections = [_detect(reasoner, decoded) for reasoner in reasoners]
    return {"detections": detections, "milliseconds": _milliseconds_since(start)}


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
