"""The page in a real browser: drag, ask, draw, move by keys, lose the server, on a desk and on a phone."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from helpers.small_weights import digit_weights, scene_run, word_weights

pytest.importorskip("fastapi", reason="needs the extra web")
pytest.importorskip("uvicorn", reason="needs the extra web")

from helpers import pages
from helpers.pages import (
    ask_sentences,
    crowded_scene,
    drag,
    needs_chromium,
    open_page,
    playwright,
    read_label,
    right_answer,
    wait_for_answers,
)
from helpers.serving import serving

import bcn
from bcn.data.sort_of_clevr import COLOURS, KINDS, SHAPES, Scenes, answer_all, draw_scenes, from_sentence, question_bits
from bcn.inference.shipped import WEIGHTS
from bcn.web.scenes import random_scene
from bcn.web.static_site import describe

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = needs_chromium
browser = pages.browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(scene_run(), digit_weights(), digit_weights("scaled-mnist/baseline")) as (address, _):
        yield address


@pytest.fixture
def page(browser: "Browser", address: str) -> "Iterator[Page]":
    """A page that fails its test when it asks for anything from elsewhere or raises an error."""
    with open_page(browser, address) as page:
        yield page


def test_dragging_changes_the_answers(page: "Page", address: str) -> None:
    """Red is dropped under the orange circle, and taken from there again."""
    assert crowded_scene(page)[3] == [12, 12, "circle"]
    drag(page, "red", 8, 8)
    objects = wait_for_answers(page)
    assert objects[0][:2] == [8, 8]
    assert [right_answer(read_label(page, kind, "red")) for kind in ("left", "above")] == ["yes", "yes"]
    before = page.inner_text("#answers")
    drag(page, "red", 68, 66)
    objects = wait_for_answers(page)
    assert objects[0][:2] == [68, 66]
    assert [right_answer(read_label(page, kind, "red")) for kind in ("left", "above")] == ["no", "no"]
    assert page.inner_text("#answers") != before
    colours = ("red", "green", "blue", "orange", "gray", "yellow")
    scene = [{"colour": c, "x": x, "y": y, "shape": s} for c, (x, y, s) in zip(colours, objects, strict=True)]
    expected = page.request.post(f"{address}/api/reason", data={"objects": scene}).json()["answers"]
    assert len(expected) == 36
    for each in expected:
        label = read_label(page, each["kind"], each["colour"])
        assert label.startswith(f"{each['question']} {each['answer']}, ")
        assert right_answer(label) == each["truth"]
        shown = page.inner_text(f"button[data-kind={each['kind']}][data-colour={each['colour']}]")
        right, sure = each["answer"] == each["truth"], each["probability"] >= 0.9
        assert shown.startswith("✗") == (not right)
        assert shown.startswith("?") == (right and not sure)
    right = sum(each["answer"] == each["truth"] for each in expected)
    assert page.inner_text("#score").startswith(f"{right} of 36 right (")
    assert min(map(float, (page.get_attribute("#speed", "data-times") or "").split())) > 0


def test_scenes_in_the_browser_are_those_of_the_package(page: "Page") -> None:
    """What `bcn export --to web` needs: random scenes, pixels and the truth, of tidy scenes and of dragged ones."""
    script = (
        "async ([name, given]) => { const m = await import('./scenes.js'); return given.map((each) => m[name](each)); }"
    )
    seeds = [0, 1, 7, 2**31, 2**32 - 1, *range(100, 120)]
    found = page.evaluate(script, ["randomScene", seeds])
    assert found == [[each.model_dump() for each in random_scene(seed)] for seed in seeds]
    rng, answers = np.random.default_rng(0), bcn.load(scene_run()).answers
    for seed in seeds[:12]:
        x, y = rng.integers(5, 70, (2, 1, 6)) // (1 if seed % 2 else 8) * (1 if seed % 2 else 8) + 5 * (seed % 2 == 0)
        x, y = x.clip(5, 69), y.clip(5, 69)  # on a coarse grid there are ties, and objects on one another
        shape = rng.integers(0, 2, (1, 6))
        scene = Scenes(x.astype(np.int16), y.astype(np.int16), shape.astype(np.uint8), np.ones((1, 6), bool))
        objects = [
            {"colour": colour, "shape": SHAPES[shape[0, k]], "x": int(x[0, k]), "y": int(y[0, k])}
            for k, colour in enumerate(COLOURS)
        ]
        pixels = page.evaluate("async (scene) => Array.from((await import('./scenes.js')).pixels(scene))", objects)
        assert np.array_equal(np.array(pixels, np.uint8).reshape(3, 75, 75), draw_scenes(scene)[0])
        true = page.evaluate(
            """async (scene) => { const { COLOURS, KINDS, truth } = await import('./scenes.js');
            return KINDS.flatMap((kind) => COLOURS.map((colour) => truth(scene, kind, colour))); }""",
            objects,
        )
        assert true == [answers[number] for number in answer_all(scene)[0]]


def test_sentences_in_the_browser_are_those_of_the_package(page: "Page") -> None:
    language = describe(bcn.load(scene_run()))["language"]
    understand = """async ([text, language]) => { const m = await import('./scenes.js');
        try { const asked = m.parseQuestion(text, language);
              return language.bits[asked.kind][m.COLOURS.indexOf(asked.colour)]; }
        catch (error) { return error.message; } }"""
    sentences = [form.format(colour) for form in language["sentences"].values() for colour in COLOURS]
    sentences += [
        "is the GREY thing at the top",
        "how many have the same shape as blue",
        "shape of red",
        "is green left?",
    ]
    numbers = []
    for sentence in sentences:
        found = page.evaluate(understand, [sentence, language])
        assert found == from_sentence(sentence).tolist(), sentence
        numbers.append(int((question_bits() == found).all(axis=1).argmax()))
    assert [divmod(n, 6) for n in numbers[:36]] == [(k, c) for k in range(len(KINDS)) for c in range(6)]
    for sentence in ("is there an object left of red", "why?", "", "is red not left?", "shape of red and blue"):
        with pytest.raises(bcn.BcnError) as refused:
            from_sentence(sentence)
        assert page.evaluate(understand, [sentence, language]) == str(refused.value)


def test_objects_answer_to_keys(page: "Page") -> None:
    before = wait_for_answers(page)
    page.focus("#scene [data-colour=green]")
    step = -1 if before[1][0] > 37 else 1
    page.keyboard.press("ArrowLeft" if step < 0 else "ArrowRight")
    page.keyboard.press("Enter")
    after = wait_for_answers(page)
    assert after[1][0] == before[1][0] + step
    assert after[1][2] != before[1][2]
    assert right_answer(read_label(page, "shape", "green")) == after[1][2]
    page.focus("button[data-kind=shape][data-colour=red]")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.inner_text("#detail").startswith("Is the green object on the left?")


def test_sentences_are_answered(page: "Page") -> None:
    wait_for_answers(page)
    ask_sentences(page)


def test_a_drawn_digit_is_found(page: "Page") -> None:
    page.click("#tab-find")
    page.click("#clear")
    page.wait_for_selector("#detections:has-text('Draw a digit')")
    box = page.locator("#pad").bounding_box()
    assert box is not None
    left, top, width, height = box["x"], box["y"], box["width"], box["height"]

    def to_screen(x: float, y: float) -> tuple[float, float]:
        return left + x * width / 128, top + y * height / 128

    page.mouse.move(*to_screen(80, 20))
    page.mouse.down()
    for point in ((110, 20), (95, 70)):
        page.mouse.move(*to_screen(*point), steps=6)
    page.mouse.up()
    with_bcn = page.locator("#detections > div", has=page.locator("[data-model='scaled-mnist/bcn']"))
    playwright.expect(with_bcn).to_contain_text(re.compile(r"7 .*at x 9[3-7], y 4[3-7]", re.DOTALL))
    assert page.locator("#find-map .cross").count() == 4
    assert (page.get_attribute("#find-map .mark", "d") or "").count("M") >= 2
    assert page.locator("[data-model='scaled-mnist/baseline']").count() == 1
    page.click("#clear")
    page.wait_for_selector("#detections:has-text('Draw a digit')")
    page.focus("#pad")
    page.keyboard.press("1")
    for _ in range(8):
        page.keyboard.press("ArrowUp")
    playwright.expect(with_bcn).to_contain_text(re.compile(r", y (2\d|3\d)"))
    playwright.expect(with_bcn).to_contain_text("✗ it is 1")


def test_panels_without_weights_say_so_and_a_lost_server_is_noticed(browser: "Browser") -> None:
    with serving(scene_run()) as (address, stop), open_page(browser, address) as page:
        wait_for_answers(page)
        page.click("#tab-find")
        assert "No Scaled-MNIST weights are loaded" in page.inner_text("#find")
        page.keyboard.press("ArrowRight")
        assert "No CLEVR weights are loaded" in page.inner_text("#see")
        page.click("#tab-reason")
        stop()
        page.click("#new-scene")
        page.wait_for_selector("#notice:has-text('The server does not answer')")


def test_a_picture_of_ones_own_is_asked_in_words(browser: "Browser", tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (160, 120), "gray").save(tmp_path / "scene.png")
    with serving(word_weights()) as (address, _), open_page(browser, address) as page:
        page.click("#tab-see")
        page.set_input_files("#photo", tmp_path / "scene.png")
        page.wait_for_function("() => document.querySelector('#photo-shown').naturalWidth === 160")
        page.fill("#see-question", "how many cubes are there")
        page.click("#see-form button")
        page.wait_for_selector("#see-answer:has-text('Read as: how many cubes are there')")
        page.fill("#see-question", "How many cubs are here?")
        assert (
            page.inner_text("#see-words")
            == "cubs is not known; did you mean cubes? here is not known; did you mean there?"
        )
        assert page.locator("#see-words s").all_inner_texts() == ["cubs", "here"]
        page.fill("#see-question", "wieviele Würfel?")
        page.click("#see-form button")
        page.wait_for_selector("#see-answer:has-text('has no word that was trained on')")


def test_a_large_picture_is_dropped_and_asked_with_other_weights(browser: "Browser", tmp_path: Path) -> None:
    """It is shrunk before it is sent, and any weights that take words may be chosen, those of one's own data too."""
    from bcn.training.weights import load_model, write_weights

    model, description = load_model(word_weights())
    own = description | {"words": ["colour" if word == "cubes" else word for word in description["words"]]}
    write_weights(tmp_path / "own.safetensors", model.state_dict(), own | {"data": "my pictures"})
    drop = """async () => { const canvas = new OffscreenCanvas(1200, 600), data = new DataTransfer();
        canvas.getContext('2d').fillRect(0, 0, 600, 600);
        data.items.add(new File([await canvas.convertToBlob()], 'large.png', { type: 'image/png' }));
        document.querySelector('#drop').dispatchEvent(new DragEvent('drop', { dataTransfer: data })); }"""
    sent: list[int] = []
    with serving(word_weights(), tmp_path / "own.safetensors") as (address, _), open_page(browser, address) as page:
        page.click("#tab-see")
        page.evaluate(drop)
        page.wait_for_function("() => document.querySelector('#photo-shown').naturalWidth === 480")
        page.on("request", lambda request: sent.append(len(request.post_data_buffer or b"")))
        page.select_option("#see-weights", label="own.safetensors")
        page.fill("#see-question", "how many color are there")
        assert page.inner_text("#see-words") == "color is read as colour."
        page.click("#see-form button")
        page.wait_for_selector("#see-answer:has-text('Read as: how many colour are there')")
    assert 0 < max(sent) < 20_000


def test_a_rendered_scene_is_asked_and_judged(browser: "Browser") -> None:
    pytest.importorskip("numba", reason="needs the extra render")
    with serving(word_weights()) as (address, _), open_page(browser, address) as page:
        page.click("#tab-see")
        page.wait_for_selector("#chips .said")  # a scene is there from the beginning, and an answer
        page.wait_for_selector("#chips .chip[aria-pressed=true]:first-child + #see-answer .bars")
        assert (page.get_attribute("#see-map .mark", "d") or "").count("M") >= 1
        verdicts = page.locator("#chips .said").all_inner_texts()
        right = sum(verdict.startswith("✓") for verdict in verdicts)
        assert page.inner_text("#see-score").startswith(f"{right} of {len(verdicts)} right. ")
        page.locator("#chips .chip").nth(2).focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("#chips .chip[aria-pressed=true]:nth-child(3) + #see-answer")
        assert re.search("right|wrong, it is", page.inner_text("#see-answer"))
        assert page.evaluate("document.activeElement.ariaPressed") == "true", "the focus stays on the question"


def test_another_model_gets_a_picture_that_it_knows(browser: "Browser") -> None:
    drawn = WEIGHTS / "drawn-multirn-rounds.safetensors"
    with serving(drawn, word_weights()) as (address, _), open_page(browser, address) as page:
        page.click("#tab-see")
        page.wait_for_selector("#chips .said")
        width = page.evaluate("document.querySelector('#photo-shown').naturalWidth")
        assert width == 128, "a drawn picture, for the first of the models"
        assert (page.get_attribute("#see-map .mark", "d") or "").count("M") >= 1, (
            "where the question's vector comes from"
        )
        pytest.importorskip("numba", reason="needs the extra render")
        drawn_picture = page.get_attribute("#photo-shown", "src") or ""
        page.select_option("#see-weights", index=1)
        page.wait_for_selector("#photo-shown:not([src='" + drawn_picture + "'])")
        assert page.evaluate("document.querySelector('#photo-shown').naturalWidth") == 240


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(browser: "Browser", address: str, scheme: str) -> None:
    phone: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "color_scheme": scheme, "has_touch": True}
    with open_page(browser, address, **phone) as page:
        wait_for_answers(page)
        for tab in ("reason", "find", "see"):
            page.click(f"#tab-{tab}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.click("#tab-reason")
        answer = page.locator("#answers td button").first
        colour, ground = answer.evaluate("e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]")
        assert contrast(colour, ground) >= 4.5


def contrast(*colours: str) -> float:
    """The ratio of the Web Content Accessibility Guidelines."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


def test_the_interface_is_documented_on_a_page(browser: "Browser", address: str) -> None:
    with open_page(browser, f"{address}/docs") as page:
        paths = page.locator(".operation").evaluate_all("all => all.map((each) => each.dataset.path)")
        assert paths == [
            "/api/weights",
            "/api/scene",
            "/api/rendered",
            "/api/reason",
            "/api/ask",
            "/api/find",
            "/healthz",
        ]
        ask = page.inner_text("[data-path='/api/ask']")
        for part in (
            "POST /api/ask",
            "question",
            "list of string",
            "weights?",
            "PNG, JPEG",
            "413",
            "503",
            "Retry-After",
        ):
            assert part in ask
        assert '"red" or "green"' in page.inner_text("[data-path='/api/reason']")


def test_names_and_answers_from_weights_are_text(browser: "Browser", tmp_path: Path) -> None:
    """A weights file may hold anything: shown as it is, and never read as HTML."""
    from bcn.training.weights import load_model, write_weights

    model, description = load_model(digit_weights())
    markup = "<img src=x onerror=alert(1)>"
    description |= {"answers": [f"{markup}{digit}" for digit in range(10)], "scale": markup}
    write_weights(tmp_path / "digits.safetensors", model.state_dict(), description)
    with serving(scene_run(), tmp_path / "digits.safetensors") as (address, _), open_page(browser, address) as page:
        page.click("#tab-find")
        page.focus("#pad")
        page.keyboard.press("1")
        page.wait_for_selector("#detections .big")
        assert page.inner_text("#detections .big").startswith(f"{markup}7 ")
        assert f"({markup})" in page.inner_text("#detections .about")
        assert page.locator("#detections img").count() == 0
