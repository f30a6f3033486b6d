"""The server behind the page: scenes and images in, answers out, as JSON. /docs and /openapi.json describe it."""

import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, Query, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from PIL import Image
from starlette.types import ASGIApp

from bcn import __version__
from bcn.data.decode import ACCEPTED, decode_image
from bcn.data.images import MAX_SIDE
from bcn.data.vqa.synonyms import known_ways
from bcn.errors import BcnError
from bcn.inference.reasoner import Reasoner
from bcn.models.cost import count_parameters
from bcn.web.errors import Refusal, add_error_handlers
from bcn.web.guard import Guard
from bcn.web.limits import MAX_REQUESTS, Limits
from bcn.web.mechanism import answer_scene
from bcn.web.models import LoadedModels
from bcn.web.rendered import make_picture
from bcn.web.scenes import random_scene
from bcn.web.schema import (
    AnswerResponse,
    AskQuery,
    DetectionResponse,
    ErrorResponse,
    FindQuery,
    Health,
    PictureQuery,
    RandomScene,
    RenderedScene,
    SceneObject,
    SceneRequest,
    SceneResponse,
    SeedQuery,
    Weights,
)
from bcn.web.sources import SOURCES
from bcn.web.worker import Worker

STATIC = Path(__file__).parent / "static"
ERRORS = {
    400: "The Host is not served here, or the body cannot be parsed",
    403: "The request comes from a page of another site",
    404: "There is nothing at this address",
    422: "The request cannot be answered",
    503: "Too many requests or uploads at once; Retry-After says when to try again",
}
BODY_ERRORS = {408: "The body took too long", 413: "The body is too large"}
ImageBody = Annotated[bytes, Body(media_type="application/octet-stream", description=f"A {ACCEPTED} file.")]


def make_app(reasoners: Sequence[Reasoner], *, host: str = "127.0.0.1", max_requests: int = MAX_REQUESTS) -> ASGIApp:
    """The page and its JSON interface over these reasoners.

    Args:
        host: the address or name that the server listens on; requests for others are refused.
        max_requests: that are answered at once; further ones get 503.
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
    async def rendered(request: Request, query: Annotated[PictureQuery, Query()]) -> dict[str, Any]:
        """A random picture for a model: a PNG file in base64, and questions with their true answers."""
        return await rendering.run(request, lambda: make_picture(query.seed, models.pictures(query.weights)))

    @app.post("/api/reason", response_model=SceneResponse, responses=_describe_errors(BODY_ERRORS))
    async def reason(request: Request, scene: SceneRequest) -> Response:
        """Answers about a Sort-of-CLEVR scene, each beside the true one, and what the BCN broadcasts."""
        reasoner = models.of_family("sort-of-clevr", scene.weights)[0]
        return await thinking.run(request, lambda: _reason(reasoner, scene))

    @app.post(
        "/api/ask",
        response_model=AnswerResponse,
        response_model_exclude_unset=True,
        responses=_describe_errors(BODY_ERRORS),
    )
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

    @app.get("/source/{name}", include_in_schema=False)
    async def source(name: str) -> FileResponse:
        for path in SOURCES:
            if path.name == name:
                return FileResponse(path, media_type="text/plain; charset=utf-8")
        raise Refusal(404, f"{name!r} is not shown here, only {' and '.join(path.name for path in SOURCES)}")

    app.router.default = StaticFiles(directory=STATIC, html=True)
    app.openapi()  # kept, without the methods that are added now
    for route in app.routes:
        if isinstance(route, APIRoute) and route.methods and "GET" in route.methods:
            route.methods.add("HEAD")
    return Guard(Limits(app, max_requests=max_requests), host=host)


def _describe_errors(errors: dict[int, str]) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorResponse, "description": text} for status, text in errors.items()}


def _reason(reasoner: Reasoner, scene: SceneRequest) -> Response:
    """As bytes: validating what is sent anew for every move of the pointer would cost milliseconds."""
    start = time.perf_counter()
    found = {"weights": reasoner.name, **answer_scene(reasoner, scene)}
    return JSONResponse(found | {"milliseconds": _milliseconds_since(start)})


def _ask(reasoner: Reasoner, image: bytes, questions: list[str]) -> dict[str, Any]:
    decoded, start = _decode_image(image), time.perf_counter()
    encoded = reasoner.encode(questions)
    answers, broadcast = reasoner.answer_with_broadcast(decoded, encoded) if encoded.texts else ([], None)
    return {
        "weights": reasoner.name,
        "answers": [answer.to_dict() for answer in answers],
        "broadcast": None if broadcast is None else broadcast.to_dict(),
        "milliseconds": _milliseconds_since(start),
    }


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
    words = reasoner.description.get("words")
    about = {"weights": reasoner.name, "family": reasoner.family, "has_bcn": reasoner.has_bcn}
    about |= {"parameters": count_parameters(reasoner.model), "words": words, "synonyms": known_ways(words or ())}
    return about | description


def _decode_image(content: bytes) -> Image.Image:
    try:
        return decode_image(io.BytesIO(content), max_side=MAX_SIDE)
    except (OSError, ValueError) as error:
        raise BcnError(f"what was sent is not an image: {error}; send the bytes of a whole {ACCEPTED} file") from error


def _milliseconds_since(start: float) -> float:
    return round(1000 * (time.perf_counter() - start), 2)
