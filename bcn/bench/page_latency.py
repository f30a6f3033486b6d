"""`bcn bench page-latency`: how long after a move of the pointer `bcn serve` shows the new answers, in Chromium.

The page itself takes the time: from the event to the moment when all 36 answers, the map and the channels are drawn.
"""

import math
import os
import shutil
import time
from collections.abc import Callable
from typing import Any

from bcn.bench.measure import Spread
from bcn.bench.served import start_server
from bcn.errors import BcnError

MOVES, PAUSE = 90, 0.016
"""of the pointer in a round, at least, and the seconds between two; of those during an answer, the last is answered"""
FIRST = 5
"""answers of a round that do not count"""
PATIENCE = 180_000
"""milliseconds to wait for an answer on a busy machine"""


def bench_page_latency(weights: str, *, rounds: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Milliseconds from a move of a dragged object to the answers about where it is."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError as error:
        raise BcnError("`bcn bench page-latency` needs playwright: install it with `pip install playwright`") from error
    say("starting the server and Chromium")
    with start_server(weights) as served, sync_playwright() as started:
        sandbox = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=sandbox, timeout=PATIENCE)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        times: list[float] = []
        for number in range(rounds):
            say(f"drag {number + 1} of {rounds}")
            times += _drag(page, served.address)[FIRST:]
        measurements = {"weights": weights, "chromium": browser.version, "answers": len(times)}
        browser.close()
    return measurements | {"milliseconds from a move to its answers": Spread.of(times)._asdict()}


def _drag(page: Any, address: str) -> list[float]:
    """Open the page and drag an object along a circle: the milliseconds that the page reports for each answer."""
    page.goto(address)
    page.wait_for_selector("#scene[data-answered]")
    body = page.locator("#scene .object .body").last.bounding_box()  # the last is over all others
    page.mouse.move(body["x"] + body["width"] / 2, body["y"] + body["height"] / 2)
    page.mouse.down()
    box = page.locator("#scene").bounding_box()
    move, times = 0, list[float]()
    while move < MOVES or len(times) <= FIRST:
        angle = 2 * math.pi * move / MOVES
        x, y = 0.5 + 0.35 * math.cos(angle), 0.5 + 0.35 * math.sin(angle)
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        time.sleep(PAUSE)
        move += 1
        if move >= MOVES:
            times = [float(each) for each in page.get_attribute("#speed", "data-times").split()]
    page.mouse.up()
    return times
