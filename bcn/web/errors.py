"""Every error of the server as a JSON response of one sentence, and the limit on a request's size."""

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bcn.errors import BcnError

MAX_BYTES = 8 << 20
"""of a request's body"""


def add_error_handlers(app: FastAPI) -> None:
    """Answer errors of the package, of validation and of routing in the same form."""
    app.exception_handler(BcnError)(_bcn_error)
    app.exception_handler(RequestValidationError)(_validation_error)
    app.exception_handler(HTTPException)(_http_error)


def _bcn_error(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, status_code=422)


def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return JSONResponse({"error": "the body is not JSON: /openapi.json says what is accepted"}, status_code=422)
    field = ".".join(map(str, first["loc"][1:])) or "the body"
    return JSONResponse({"error": f"{field}: {first['msg']}"}, status_code=422)


def _http_error(request: Request, error: Exception) -> JSONResponse:
    """Unknown addresses and methods."""
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}; /openapi.json lists what there is"
    return JSONResponse({"error": message}, status_code=error.status_code, headers=error.headers)


class BodyLimit:
    """Middleware that stops reading a body that is larger than MAX_BYTES, and answers 413."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MAX_BYTES:
                raise HTTPException(413)
            return message

        async def send_within_limit(message: Message) -> None:
            if received <= MAX_BYTES:
                await send(message)

        await self.app(scope, receive_counted, send_within_limit)
        if received > MAX_BYTES:
            message = f"the body has more than {MAX_BYTES} bytes: send a smaller image"
            await JSONResponse({"error": message}, 413, {"Connection": "close"})(scope, receive, send)
