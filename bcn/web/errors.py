"""Every error of the server as a JSON response of one sentence."""

from collections.abc import Mapping

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from bcn.errors import BcnError


class Refusal(HTTPException):
    """A request that is refused in one sentence; one that ends a body's upload closes the connection too."""

    def response(self) -> JSONResponse:
        return JSONResponse({"error": self.detail}, self.status_code, self.headers)


def too_busy(sentence: str, headers: Mapping[str, str] | None = None) -> Refusal:
    """The refusal of what another moment may allow."""
    return Refusal(503, f"{sentence}: try again in a second", {"Retry-After": "1", **(headers or {})})


def add_error_handlers(app: FastAPI) -> None:
    """Answer errors of the package, of validation, of routing and of the program in the same form."""
    app.exception_handler(BcnError)(_bcn_error)
    app.exception_handler(RequestValidationError)(_validation_error)
    app.exception_handler(Refusal)(_refusal)
    app.exception_handler(StarletteHTTPException)(_http_error)
    app.exception_handler(Exception)(_failure)


def _bcn_error(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, status_code=422)


def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return JSONResponse({"error": "the body is not JSON: /docs says what is accepted"}, status_code=422)
    field = ".".join(map(str, first["loc"][1:])) or "the body"
    reason = "there is no such field; /docs lists them" if first["type"] == "extra_forbidden" else first["msg"]
    return JSONResponse({"error": f"{field}: {reason}"}, status_code=422)


def _refusal(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal)
    return error.response()


def _http_error(request: Request, error: Exception) -> JSONResponse:
    """Unknown addresses and methods."""
    assert isinstance(error, StarletteHTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}; /docs lists what there is"
    return JSONResponse({"error": message}, status_code=error.status_code, headers=error.headers)


def _failure(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": "the server failed: its log says why"}, status_code=500)
