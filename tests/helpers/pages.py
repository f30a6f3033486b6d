"""A page in a real browser: opened with everything else forbidden, its scene dragged, its answers read."""

import json
import re
import shutil
from contextlib import contextmanager

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")

CHROMIUM = shutil.which("chromium")
PATIENCE = 180_000
"""milliseconds: no test waits for time, only for what has to happen, however busy the machine is"""
CROWDED = 0.125
"""what Math.random gives in these tests, so that the scene is always the same: an orange circle is at (12, 12)"""
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (Debian: apt-get install chromium)")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE)
        playwright.expect.set_options(timeout=PATIENCE)
        yield browser
        browser.close()


@contextmanager
def opened(browser, address: str, *, watch: list[str] | None = None, **context):
    """A page that fails its test when it asks for anything from elsewhere or fails; `watch` is told every request."""
    context = browser.new_context(**context)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.add_init_script(f"Math.random = () => {CROWDED}")
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    context.on("request", lambda request: request.url.startswith(address) or troubles.append(request.url))
    if watch is not None:
        context.on("request", lambda request: watch.append(request.url))
    page.goto(address)
    page.wait_for_selector("main[aria-busy=false]")
    yield page
    context.close()
    assert not troubles


def settled(page) -> list:
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
    return json.loads(page.get_attribute("#scene", "data-answered"))


def said(page, kind: str, colour: str) -> str:
    return page.get_attribute(f"button[data-kind={kind}][data-colour={colour}]", "aria-label")


def truth(label: str) -> str:
    answer, _, verdict = re.fullmatch(r".*\? (\w+), ([\d.]+)\s%, (.*)", label).groups()
    return answer if verdict == "right" else verdict.removeprefix("wrong: ")


def drag(page, colour: str, x: int, y: int) -> None:
    """Drag an object there, and wait until it is."""
    box = page.locator("#scene").bounding_box()
    from_ = page.locator(f"#scene [data-colour={colour}] .body").bounding_box()
    page.mouse.move(from_["x"] + from_["width"] / 2, from_["y"] + from_["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + (x + 0.5) / 75 * box["width"], box["y"] + (y + 0.5) / 75 * box["height"], steps=8)
    page.mouse.up()
    page.wait_for_selector(f"#scene [data-colour={colour}][aria-label$=' at {x}, {y}']")


def ask_sentences(page) -> None:
    """Ask a question that is understood, and one that is not."""
    page.fill("#sentence", "how many objects have the SAME shape as the grey one")
    page.keyboard.press("Enter")
    page.wait_for_selector("#said:has-text('same shape as the gray one?')")
    page.fill("#sentence", "who painted it?")
    page.click("#ask-form button")
    page.wait_for_selector("#said.failed:has-text('ask about one colour')")
