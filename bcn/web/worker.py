"""Where models, decoders and the renderer run: away from the event loop, one job at a time."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from bcn.web.errors import Refusal

Result = TypeVar("Result")


class Worker:
    """Runs one job at a time, in the order of the requests: a model must not run twice at once.

    Memory is bounded, too: of all images that wait, one is decoded.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(self, request: Request, job: Callable[[], Result]) -> Result:
        """The result of a job, which is not begun if its client has gone."""
        async with self._turn:
            if await request.is_disconnected():
                raise Refusal(499, "the client has gone")
            return await run_in_threadpool(job)
