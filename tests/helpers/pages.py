"""A page in a real browser: opened with everything else forbidden, its scene dragged, its answers read."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

CHROMIUM = shutil.which("chromium")
PATIENCE = 180_000
"""milliseconds: no test waits for time, only for what has to happen, however busy the machine is"""
CROWDED = 0.125
"""what Math.random gives in these tests, so that the scene is always the same: an orange circle is at (12, 12)"""
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt-get install chromium)")


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE)
        playwright.expect.set_options(timeout=PATIENCE)
        yield browser
        browser.close()


@contextmanager
def open_page(browser: "Browser", address: str, *, watch: list[str] | None = None, **options: Any) -> "Iterator[Page]":
    """A page that fails its test when it asks for anything from elsewhere or fails; `watch` is told every request."""
    context = browser.new_context(**{"reduced_motion": "reduce", **options})  # a smooth scroll would outrun the mouse
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.add_init_script(f"Math.random = () => {CROWDED}")
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda said: troubles.append(said.text) if "Content Security Policy" in said.text else None)
    origin = "/".join(address.split("/")[:3])
    context.on("request", lambda request: None if request.url.startswith(origin) else troubles.append(request.url))
    if watch is not None:
        context.on("request", lambda request: watch.append(request.url))
    page.goto(address)
    page.wait_for_selector("main[aria-busy=false]")
    yield page
    context.close()
    assert not troubles


def wait_for_answers(page: "Page") -> list[Any]:
    """Wait until the answers are those about the scene that is shown; give its objects as [x, y, shape]."""
    page.wait_for_function(
        """() => {
            const shown = [...document.querySelectorAll('#scene .object')].map(o => {
                const label = o.getAttribute('aria-label') ?? '';
                const [, shape, x, y] = label.match(/\\w+ (\\w+) at (\\d+), (\\d+)/) ?? [];
                return [Number(x), Number(y), shape];
            });
            return document.querySelector('#scene').dataset.answered === JSON.stringify(shown);
        }"""
    )
    objects: list[Any] = json.loads(page.get_attribute("#scene", "data-answered") or "")
    return objects


def crowded_scene(page: "Page") -> list[Any]:
    """Ask for a new scene, which is always the same here."""
    page.click("#new-scene")
    page.wait_for_selector("#scene [data-colour=orange][aria-label='orange circle at 12, 12']")
    return wait_for_answers(page)


def read_label(page: "Page", kind: str, colour: str) -> str:
    return page.get_attribute(f"button[data-kind={kind}][data-colour={colour}]", "aria-label") or ""


def right_answer(label: str) -> str:
    parts = re.fullmatch(r".*\? (\w+), ([\d.]+)\s%, (.*)", label)
    assert parts, label
    answer, _, verdict = parts.groups()
    return answer if verdict == "right" else verdict.removeprefix("wrong: ")


def bounds(element: "Locator") -> Any:
    box = element.bounding_box()
    assert box
    return box


def drag(page: "Page", colour: str, x: int, y: int) -> None:
    """Drag an object there, and wait until it is; asking a question may have scrolled the scene out of the window."""
    page.locator("#scene").scroll_into_view_if_needed()
    box, start = (bounds(page.locator(f"#scene{part}")) for part in ("", f" [data-colour={colour}] .body"))
    page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + (x + 0.5) / 75 * box["width"], box["y"] + (y + 0.5) / 75 * box["height"], steps=8)
    page.mouse.up()
    page.wait_for_selector(f"#scene [data-colour={colour}][aria-label$=' at {x}, {y}']")


def said(page: "Page", kind: str, colour: str) -> str:
    """The answer in the table."""
    parts = re.fullmatch(r".*\? (\w+), .*", read_label(page, kind, colour))
    assert parts
    return parts.group(1)


def ask_sentences(page: "Page") -> None:
    """Ask a question that is understood, and one that is not."""
    page.fill("#question", "how many objects have the SAME shape as the grey one")
    page.keyboard.press("Enter")
    page.wait_for_selector("#ask-answer:has-text('same shape as the gray one?')")
    page.fill("#question", "who painted it?")
    page.click("#ask-form button")
    page.wait_for_selector("#ask-answer.failed:has-text('ask about one colour')")
