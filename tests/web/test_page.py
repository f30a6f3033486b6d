"""What the page explains, and what once was broken, in a real browser: keys, touch, forced colours, no JavaScript."""

import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from helpers.small_weights import digit_weights, scene_run
from PIL import Image

pytest.importorskip("fastapi", reason="needs the extra web")
pytest.importorskip("uvicorn", reason="needs the extra web")

from helpers import pages
from helpers.pages import bounds, drag, needs_chromium, open_page, read_label, said, wait_for_answers
from helpers.serving import serving

import bcn
from bcn.training.weights import load_model, write_weights
from bcn.web.mechanism import answer_scene
from bcn.web.schema import SceneRequest

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = needs_chromium
browser = pages.browser
SIZES = [(390, 844), (768, 1024)]
WATCH_LIVE = """panel => { window.spoken = 0;
    const watched = { childList: true, subtree: true, characterData: true };
    for (const each of document.querySelectorAll(`${panel} :is([aria-live], [role=status], [role=alert])`))
        new MutationObserver(() => { window.spoken += 1; }).observe(each, watched); }"""
"""counts in window.spoken how often a panel has something read aloud"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two models of scenes, as one may be shown beside the other."""
    other: Path = tmp_path_factory.mktemp("other") / "other.safetensors"
    model, description = load_model(scene_run())
    state = model.state_dict()
    state["f.4.bias"] = state["f.4.bias"].flip(0)
    write_weights(other, state, description)
    with serving(scene_run(), other, digit_weights(), digit_weights("scaled-mnist/baseline")) as (address, _):
        yield address


@pytest.fixture
def page(browser: "Browser", address: str) -> "Iterator[Page]":
    with open_page(browser, address) as page:
        wait_for_answers(page)
        yield page


def centre_of(page: "Page", selector: str) -> tuple[float, float]:
    box = bounds(page.locator(selector))
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def swipe(page: "Page", x: float, y: float) -> None:
    """A finger goes up by 100 pixels."""
    session = page.context.new_cdp_session(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    for step in range(10, 110, 10):
        session.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": y - step}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_the_answer_to_a_sentence_follows_the_scene(page: "Page") -> None:
    page.fill("#question", "is the red object on the left?")
    page.click("#ask-form button")
    page.wait_for_selector("#detail h2:has-text('Is the red object on the left?')")
    for x in (8, 66):
        drag(page, "red", x, 60)
        wait_for_answers(page)
        assert page.inner_text("#detail b").removesuffix(" ✓") == said(page, "left", "red")


def test_a_double_click_flips_and_a_click_does_not(page: "Page") -> None:
    before = wait_for_answers(page)[0][2]
    page.mouse.dblclick(*centre_of(page, "#scene [data-colour=red] .body"))
    assert wait_for_answers(page)[0][2] != before
    page.wait_for_timeout(500)
    page.mouse.click(*centre_of(page, "#scene [data-colour=red] .body"))
    assert wait_for_answers(page)[0][2] != before


def test_a_cell_of_the_map_tells_its_channels(page: "Page") -> None:
    page.locator("#mechanism").scroll_into_view_if_needed()
    page.locator("#scene").hover(position={"x": 5, "y": 5})
    page.wait_for_selector("#scene .lit[visibility=visible][x='0'][y='0']")
    page.mouse.move(1, 1)
    page.wait_for_selector("#scene .lit:not([x='0'][y='0'])", state="attached")  # the pointer is known to have left
    page.locator("#mechanism").scroll_into_view_if_needed()
    page.focus("#cell")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#mechanism-says:has-text('active channels their largest value')")
    page.focus("#channel")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#mechanism-says:has-text('Channel 1 is')")
    page.hover("#strip [data-part=max]")
    assert page.locator("#equation [data-part=max].lit").count() == 2
    assert page.locator("#equation [data-part=k].lit").count() == 1, "the focus is on its slider"
    assert page.locator("#equation [data-part=F].lit").count() == 0


def shown(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def colours_of(page: "Page", canvas: str) -> set[tuple[int, ...]]:
    """The colours in the middles of the 10x10 cells of a canvas of the strip."""
    script = """canvas => { const pen = canvas.getContext('2d'), step = canvas.width / 10;
        return Array.from({ length: 100 }, (_, n) => [...pen.getImageData((n % 10 + 0.5) * step,
            (Math.floor(n / 10) + 0.5) * step, 1, 1).data]); }"""
    return set(map(tuple, page.locator(canvas).evaluate(script)))


def test_the_strip_follows_one_channel(page: "Page", address: str) -> None:
    """Its scores differ from position to position, its maximum is copied to all of them."""
    objects = wait_for_answers(page)
    colours = ("red", "green", "blue", "orange", "gray", "yellow")
    scene = [{"colour": c, "x": x, "y": y, "shape": s} for c, (x, y, s) in zip(colours, objects, strict=True)]
    found = page.request.post(f"{address}/api/reason", data={"objects": scene, "channel": 0}).json()["broadcast"]
    active = [channel for channel, position in enumerate(found["position"]) if position >= 0]
    for channel in active[0], active[-1]:
        page.locator("#step-vector").scroll_into_view_if_needed()
        box = bounds(page.locator("#step-vector"))
        side, (row, column) = box["width"] / 16, divmod(channel, 16)
        page.mouse.move(box["x"] + (column + 0.5) * side, box["y"] + (row + 0.5) * side)
        value = shown(found["value"][channel])
        page.wait_for_selector(f"#value-max:has-text('channel {channel}: {value}')")
        assert page.inner_text("#value-broadcast") == f"{value} everywhere"
        assert f"Channel {channel} is largest, {value}, at a position over " in page.inner_text("#mechanism-says")
        assert len(colours_of(page, "#step-broadcast")) == 1
        assert page.locator("#equation [data-part=max].lit").count() == 2
    page.wait_for_function("channel => document.querySelector('#channel').value === channel", arg=str(active[-1]))
    assert len(colours_of(page, "#step-response")) > 5


def test_objects_are_dragged_where_the_strip_is_in_view(page: "Page") -> None:
    before = wait_for_answers(page)[0]
    page.locator("#step-image").scroll_into_view_if_needed()
    box = bounds(page.locator("#step-image"))
    side = box["width"] / 75
    page.mouse.move(box["x"] + (before[0] + 0.5) * side, box["y"] + (before[1] + 0.5) * side)
    page.mouse.down()
    page.mouse.move(box["x"] + 60.5 * side, box["y"] + 40.5 * side, steps=5)
    page.mouse.up()
    page.wait_for_selector("#scene [data-colour=red][aria-label$=' at 60, 40']")
    assert wait_for_answers(page)[0][:2] == [60, 40]
    page.mouse.move(box["x"] + 5 * side, box["y"] + 5 * side)
    assert wait_for_answers(page)[0][:2] == [60, 40], "it was let go"


def test_things_to_try_are_ticked(page: "Page") -> None:
    ticked = page.locator("#tries .done")
    assert ticked.count() == 0
    page.click("#tries [data-try=drag]")
    page.keyboard.press("ArrowLeft")
    page.click("#tries [data-try=mute]")
    page.wait_for_selector("#experiment:has-text('Broadcast muted')")
    page.click("#tries [data-try=inside]")
    assert page.evaluate("document.activeElement.id") == "channel"
    assert ticked.count() == 3


def test_the_first_scene_shows_what_the_broadcast_is_for(page: "Page") -> None:
    """With the shipped weights: all is right, and muting changes many relational answers, the chosen one too."""
    objects = page.evaluate("async () => (await import('./share.js')).PRESETS.mute()")
    assert [[each["x"], each["y"], each["shape"]] for each in objects] == wait_for_answers(page)
    request = SceneRequest.model_validate({"objects": objects, "mute": True})
    found = answer_scene(bcn.load("sort-of-clevr/multirn-h"), request)
    assert all(each["answer"] == each["truth"] for each in found["answers"])
    pairs = zip(found["answers"], found["muted"], strict=True)
    changed = [(one["kind"], one["colour"]) for one, other in pairs if one["answer"] != other["answer"]]
    assert len(changed) == 7
    assert {kind for kind, _ in changed} == {"closest", "furthest"}
    assert ("closest", "red") in changed
    assert page.get_attribute("button[data-kind=closest][data-colour=red]", "aria-pressed") == "true"


def test_a_drag_is_not_read_aloud(page: "Page") -> None:
    page.set_viewport_size({"width": 1280, "height": 2200})  # the strip is in view, and drawn at once
    page.evaluate(WATCH_LIVE, "#reason")
    drag(page, "green", 50, 20)
    wait_for_answers(page)
    assert page.evaluate("window.spoken") == 0


def test_the_map_leaves_colours_as_they_are(page: "Page") -> None:
    """A magenta tint made the green object as gray as the gray one."""
    box = bounds(page.locator("#scene [data-colour=green] .body"))
    shot = page.screenshot(clip=box)
    pixels = np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).reshape(-1, 3).astype(int)
    assert (abs(pixels - (0, 255, 0)).sum(1) < 30).mean() > 0.4
    assert (abs(pixels - (128, 128, 128)).sum(1) < 60).mean() < 0.05


@pytest.mark.parametrize("size", SIZES)
def test_scene_and_answers_are_on_one_screen(browser: "Browser", address: str, size: tuple[int, int]) -> None:
    width, height = size
    with open_page(browser, address, viewport={"width": width, "height": height}, has_touch=True) as page:
        wait_for_answers(page)
        assert page.get_by_role("columnheader", name="red").count() == 1, "for the ear they are as long as ever"
        assert page.get_by_role("rowheader", name="On the left?").count() == 1
        for part in ("#scene", "#answers"):
            box = bounds(page.locator(part))
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= height
        before = wait_for_answers(page)[0]
        swipe(page, *centre_of(page, "#scene [data-colour=red] .body"))
        assert wait_for_answers(page)[0][1] < before[1], "a finger on an object moves it"
        assert page.evaluate("scrollY") == 0
        box = bounds(page.locator("#scene"))
        swipe(page, box["x"] + 3, box["y"] + box["height"] - 3)
        page.wait_for_function("() => scrollY > 50")  # one on empty ground scrolls the page
        page.select_option("#second", index=2)
        page.wait_for_selector("#answers .differs")
        assert page.locator("td button").evaluate_all("all => all.every(e => e.scrollWidth <= e.clientWidth)")


def test_a_hundred_percent_stays_in_its_column(page: "Page") -> None:
    page.click("#tab-find")
    page.wait_for_selector("#detections .percent")
    script = """() => [...document.querySelectorAll('.percent')].map((each) => {
        each.textContent = '100.0\\u00a0%';
        const range = document.createRange();
        range.selectNodeContents(each);
        return range.getBoundingClientRect().width <= each.getBoundingClientRect().width; })"""
    assert all(page.evaluate(script))


def test_the_chosen_tab_is_seen_in_forced_colours(browser: "Browser", address: str) -> None:
    with open_page(browser, address, forced_colors="active") as page:
        grounds = page.locator("[role=tab]").evaluate_all("all => all.map(e => getComputedStyle(e).backgroundColor)")
        assert grounds[0] not in grounds[1:]
        wait_for_answers(page)
        swatches = page.locator(".swatch").evaluate_all("all => all.map(e => getComputedStyle(e).backgroundColor)")
        assert swatches[:2] == ["rgb(255, 0, 0)", "rgb(0, 255, 0)"]


def test_tabs_follow_keys_and_the_address(page: "Page", address: str) -> None:
    def chosen() -> str:
        return page.locator("[role=tab][aria-selected=true]").inner_text()

    page.focus("#tab-reason")
    for key, name in (("End", "See"), ("Home", "Reason"), ("ArrowRight", "Find"), ("ArrowLeft", "Reason")):
        page.keyboard.press(key)
        assert chosen() == name
        assert page.evaluate("document.activeElement.textContent") == name
    page.evaluate("location.hash = '#find'")
    page.wait_for_selector("#tab-find[aria-selected=true]")
    page.go_back()
    page.wait_for_selector("#tab-reason[aria-selected=true]")
    page.goto(f"{address}/#see")
    page.reload()
    page.wait_for_selector("#tab-see[aria-selected=true]")


def test_without_javascript_it_says_what_it_would_show(browser: "Browser", address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    text = page.inner_text("body")
    assert "needs JavaScript" in text
    assert "the largest value is kept" in text
    assert "Loading" not in text
    assert page.locator("[role=tab]:visible").count() == 0, "they would do nothing"
    assert context.request.get(f"{address}/source/broadcast.py").text().startswith('"""The Broadcasting Convolutional')
    context.close()


def test_strokes_are_not_read_aloud(page: "Page") -> None:
    page.click("#tab-find")
    page.click("#clear")
    page.evaluate(WATCH_LIVE, "#find")
    x, y = centre_of(page, "#pad")
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(12):
        page.mouse.move(x + 4 * step, y)
    page.mouse.up()
    page.wait_for_selector("#detections .big")
    page.wait_for_function("() => document.querySelector('#found').textContent !== ''")
    assert page.evaluate("window.spoken") <= 3, "once the hand rests, not at every stroke"
    assert re.fullmatch(r"With BCN: 7, \S+\s%\. Without BCN: \d, \S+\s%", page.inner_text("#found"))


def test_the_broadcast_is_muted(page: "Page", address: str) -> None:
    page.click("#mute")
    page.wait_for_selector("#experiment:has-text('Broadcast muted')")
    objects = wait_for_answers(page)
    colours = ("red", "green", "blue", "orange", "gray", "yellow")
    scene = [{"colour": c, "x": x, "y": y, "shape": s} for c, (x, y, s) in zip(colours, objects, strict=True)]
    found = page.request.post(f"{address}/api/reason", data={"objects": scene, "mute": True}).json()
    changed = [
        (one["kind"], one["colour"])
        for one, other in zip(found["answers"], found["muted"], strict=True)
        if one["answer"] != other["answer"]
    ]
    relational = sum(kind in ("closest", "furthest", "count") for kind, _ in changed)
    assert f"Broadcast muted: {relational} of 18 relational answers change" in page.inner_text("#experiment")
    assert page.locator("#answers .other").count() == len(changed)
    page.locator("#mechanism").scroll_into_view_if_needed()
    channel = int(page.input_value("#channel"))
    page.wait_for_selector(f"#value-broadcast:has-text('{shown(found['broadcast']['mean'][channel])} everywhere')")
    page.click("#mute")
    page.wait_for_selector("#experiment:not(:has-text('Broadcast muted'))")
    assert page.locator("#answers .other").count() == 0


def test_two_models_side_by_side(page: "Page") -> None:
    page.select_option("#second", index=2)
    page.wait_for_selector("#experiment:has-text('other.safetensors: ')")
    assert page.locator("#detail h3").all_inner_texts() == ["As it is", "other.safetensors"]
    assert page.locator("#answers .other").count() > 0


def test_objects_come_and_go(page: "Page") -> None:
    for count in range(7, 13):
        page.click("#add")
        assert len(wait_for_answers(page)) == count
    assert page.is_disabled("#add")
    assert page.locator("#answers button:visible").count() == 36
    for colour in ("cyan", "pink", "purple", "brown", "black", "teal", "yellow", "gray", "orange", "blue", "green"):
        page.focus(f"#scene [data-colour={colour}]")
        page.keyboard.press("Delete")
        page.wait_for_selector(f"#scene [data-colour={colour}]", state="detached")
    assert len(wait_for_answers(page)) == 1
    assert page.locator("#answers button:visible").count() == 6
    assert page.locator("#answers .moot").count() == 2, "nothing is closest or furthest"
    page.focus("#scene [data-colour=red]")
    page.keyboard.press("Delete")
    assert len(wait_for_answers(page)) == 1, "the last stays"


def test_a_question_is_drawn_into_the_scene(page: "Page") -> None:
    page.goto(page.url.split("#")[0] + "#reason?scene=0s1010-1c2010-2c6060-3s6012-4s4040-5c1060")
    page.reload()
    wait_for_answers(page)
    page.click("button[data-kind=closest][data-colour=red]")
    line = page.locator("#scene .geometry line:not(.under)")
    assert [line.get_attribute(key) for key in ("x1", "y1", "x2", "y2")] == ["10.5", "10.5", "20.5", "10.5"]
    page.click("button[data-kind=furthest][data-colour=red]")
    assert [line.get_attribute(key) for key in ("x2", "y2")] == ["60.5", "60.5"]
    page.click("button[data-kind=count][data-colour=red]")
    assert page.locator("#scene .geometry circle:not(.under)").count() == 3


def test_what_is_covered_is_said_to_be(page: "Page") -> None:
    page.select_option("#preset", "covered")
    page.wait_for_selector("#covered:has-text('The red square is covered by orange: nothing of it can be seen')")
    assert "The green circle is partly covered by gray" in page.inner_text("#covered")
    page.click("button[data-kind=shape][data-colour=red]")
    assert "nothing of it can be seen" in page.inner_text("#detail")
    assert page.locator("#answers th.covered").count() == 2


def test_a_scene_is_shared(page: "Page", browser: "Browser", address: str) -> None:
    page.select_option("#preset", "corners")
    objects = wait_for_answers(page)
    page.wait_for_function("() => location.hash.startsWith('#reason?scene=0s0505-')")
    with open_page(browser, page.url) as other:
        assert wait_for_answers(other) == objects
    with page.expect_download() as started:
        page.click("#download")
    image = Image.open(started.value.path()).convert("RGB")
    assert image.width == 600
    assert image.getpixel((5 * 8 + 4, 5 * 8 + 4)) == (255, 0, 0)
    with open_page(browser, f"{address}/#reason?scene=nonsense") as other:
        assert len(wait_for_answers(other)) == 6


def test_cost_is_told_for_each_number_of_objects(page: "Page") -> None:
    page.wait_for_selector("#cost-says dd")
    before = page.inner_text("#cost-says")
    assert "100 objects" in before
    page.focus("#cost-n")
    page.keyboard.press("ArrowRight")
    assert "400 objects" in page.inner_text("#cost-says")
    assert page.locator("#cost-plot .curve").count() == 2


def test_a_placed_digit_has_a_known_truth(page: "Page") -> None:
    page.click("#tab-find")
    page.click("#digits button >> nth=7")
    page.wait_for_selector("[data-model='scaled-mnist/bcn']:has-text('✓')")
    assert re.fullmatch(r"Truth: a 7, its centre at x \d+, y \d+ of 128 pixels\.", page.inner_text("#find-truth"))
    off = re.search(r"([\d.]+) pixels off", page.inner_text("#detections .where >> nth=0"))
    assert off
    assert float(off.group(1)) < 15
    assert page.locator("#find-map .trained").count() == 2
    page.wait_for_selector("#find-score:has-text('with BCN ')")
    assert "parameters, trained on scaled-mnist-v1" in page.inner_text("#detections .about >> nth=0")


def test_every_label_says_what_it_is(page: "Page") -> None:
    assert read_label(page, "closest", "red").startswith("What is the shape of the object closest to the red one? ")
    names: Any = page.evaluate(
        "[...document.querySelectorAll('input, select, button')]"
        ".filter(e => !e.labels?.length && !e.textContent.trim() && !e.getAttribute('aria-label')).map(e => e.id)"
    )
    assert names == []
