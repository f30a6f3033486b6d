"""The pages in a real browser: nothing is cut off on a phone, and whoever points at a line reads its value."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from helpers import pages
from helpers.pages import needs_chromium

from bcn.paper.figures import curves

if TYPE_CHECKING:
    from playwright.sync_api import Browser

browser = pages.browser
Scheme = Literal["light", "dark"]


@needs_chromium
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_a_phone_shows_the_values_of_lines(browser: "Browser", width: int, scheme: Scheme, tmp_path: Path) -> None:
    runs = {
        f"table3/multirn-h cpu optim.lr=0.{number}, seed 0": [
            {"epoch": epoch, "loss": 1.0 / (epoch + number), "accuracy": 1 - 0.3 / epoch} for epoch in range(1, 11)
        ]
        for number in range(9)
    }
    page_file = tmp_path / "curves.html"
    page_file.write_text(curves.render(runs), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = context.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda said: troubles.append(said.text))
    page.goto(page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator("figure svg").nth(1).bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] - 13, box["y"] + box["height"] / 2)
    told = page.locator(".tip").nth(1).inner_text().splitlines()
    assert told[0] == "epoch 10"
    assert told[1] == "table3/multirn-h cpu optim.lr=0.0, seed 0: 3"  # an error of 3 %
    assert len(told) == 1 + len(runs)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 23, 26)"
    )
    page.mouse.move(0, 0)
    assert page.locator(".tip").nth(1).is_hidden()
    assert not troubles
    context.close()
