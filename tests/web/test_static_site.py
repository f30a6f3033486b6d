"""The static site: the page from a plain file server, answering in the browser as the package does."""

import re
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from helpers.page_scenes import to_scenes
from helpers.small_weights import digit_weights, scene_run, word_weights
from PIL import Image

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnxscript", reason="needs the extra onnx")
pytest.importorskip("fastapi", reason="needs the extra web")

from helpers import pages
from helpers.pages import (
    ask_sentences,
    crowded_scene,
    drag,
    needs_chromium,
    open_page,
    read_label,
    right_answer,
    wait_for_answers,
)

import bcn
from bcn.data.sort_of_clevr import COLOURS, draw_scenes
from bcn.errors import BcnError
from bcn.layers.broadcast import SkipConv
from bcn.web.mechanism import answer_scene
from bcn.web.scenes import random_scene
from bcn.web.schema import SceneRequest
from bcn.web.static_site import RUNTIME, STATIC, find_runtime, write_site
from bcn.web.typical import typical

if TYPE_CHECKING:
    from playwright.sync_api import Browser

browser = pages.browser


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a plain file server over what was exported."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    try:
        find_runtime()
    except BcnError as error:
        pytest.skip(str(error))
    directory = tmp_path_factory.mktemp("site")
    paths = (scene_run(), digit_weights(), digit_weights("scaled-mnist/baseline"), word_weights())
    write_site([bcn.load(path) for path in paths], directory)
    handler = partial(QuietHandler, directory=str(directory))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@needs_chromium
def test_the_page_answers_without_a_server_behind_it(browser: "Browser", site: str) -> None:
    requests: list[str] = []
    with open_page(browser, site, watch=requests) as page:
        assert crowded_scene(page)[3] == [12, 12, "circle"]
        drag(page, "red", 8, 8)
        wait_for_answers(page)
        assert [right_answer(read_label(page, kind, "red")) for kind in ("left", "above")] == ["yes", "yes"]
        drag(page, "red", 68, 66)
        objects = wait_for_answers(page)
        assert objects[0][:2] == [68, 66]
        scene = [{"colour": c, "x": x, "y": y, "shape": s} for c, (x, y, s) in zip(COLOURS, objects, strict=True)]
        request = SceneRequest.model_validate({"objects": scene, "mute": True, "channel": 9})
        found = answer_scene(bcn.load(scene_run()), request)
        expected = found["answers"]
        assert len(expected) == 36
        for each in expected:
            label = read_label(page, each["kind"], each["colour"])
            match = re.fullmatch(r".*\? (\w+), ([\d.]+)\s%, .*", label)
            assert match is not None
            answer, percent = match.groups()
            assert label.startswith(each["question"])
            assert right_answer(label) == each["truth"]
            assert float(percent) / 100 == pytest.approx(each["probability"], abs=0.006)
            assert answer == each["answer"]
        script = "async (scene) => (await import('./local.js')).reason(scene)"
        local = page.evaluate(script, request.model_dump())
        for mine, theirs in zip(found["muted"], local["muted"], strict=True):
            assert mine["probability"] == pytest.approx(theirs["probability"], abs=1e-3)
        for key in ("value", "seen", "response", "rows"):
            assert local["broadcast"][key] == pytest.approx(found["broadcast"][key], abs=2e-3)
        assert page.get_attribute("#scene .mark", "d")
        page.click("#mute")
        page.wait_for_selector("#experiment:has-text('Broadcast muted')")
        assert min(map(float, (page.get_attribute("#speed", "data-times") or "").split())) > 0
        ask_sentences(page)
        assert page.locator("[role=tab]:visible").count() == 3
    names = {url.removeprefix(site) for url in requests}
    assert names == {
        "/",
        "/style.css",
        "/panels.css",
        "/icon.svg",
        "/cost.json",
        "/models.json",
        "/encoder-0.onnx",
        "/answerer-0.onnx",
        *(f"/{name}" for name in RUNTIME),
    } | {f"/{path.name}" for path in STATIC.glob("*.js") if path.name not in ("server.js", "docs.js")}


@needs_chromium
def test_digits_are_found_in_the_browser(browser: "Browser", site: str) -> None:
    with open_page(browser, f"{site}/#find") as page:
        page.click("#digits button >> nth=7")
        page.wait_for_selector("[data-model='scaled-mnist/bcn']:has-text('✓')")
        pixels = page.evaluate(
            "[...document.querySelector('#ink').getContext('2d').getImageData(0, 0, 128, 128).data]"
            ".filter((_, n) => n % 4 === 0)"
        )
        image = np.array(pixels, np.uint8).reshape(128, 128)
        answer = bcn.load(digit_weights()).find(image)
        assert answer.centre is not None
        x, y = (round(128 * part) for part in answer.centre)
        assert f"at x {x}, y {y}," in page.inner_text("#detections .where >> nth=0")
        assert page.locator("#detections .big").count() == 2


@needs_chromium
def test_words_are_answered_in_the_browser(browser: "Browser", site: str, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (12, 16, 3), np.uint8).repeat(12, 0).repeat(12, 1)
    Image.fromarray(pixels).save(tmp_path / "own.png")
    with open_page(browser, f"{site}/#see") as page:
        page.set_input_files("#photo", tmp_path / "own.png")
        page.wait_for_function("() => document.querySelector('#photo-shown').naturalWidth === 192")
        page.fill("#see-question", "how many cubes?")
        page.click("#see-form button")
        page.wait_for_selector("#see-answer:has-text('Read as: how many cubes')")
        (answer,) = bcn.load(word_weights()).ask(tmp_path / "own.png", "how many cubes?")
        shown = re.search(r"([\d.]+)\s%", page.inner_text("#see-answer .big"))
        assert shown
        assert page.inner_text("#see-answer .big").startswith(answer.answer)
        assert float(shown.group(1)) == pytest.approx(100 * answer.probability, abs=0.5)


@needs_chromium
def test_loading_is_shown(browser: "Browser", site: str) -> None:
    context = browser.new_context()
    context.set_default_timeout(pages.PATIENCE)
    page = context.new_page()
    page.add_init_script("""addEventListener('DOMContentLoaded', () => {
        window.shown = [];
        const what = document.querySelector('#loading-what');
        const look = () => window.shown.push([document.querySelector('progress').value, what.textContent]);
        new MutationObserver(look).observe(what, { childList: true }); })""")
    page.goto(site)
    page.wait_for_selector("main[aria-busy=false]")
    shares, texts = zip(*page.evaluate("window.shown"), strict=True)
    assert len(shares) >= 3
    assert 0 < shares[0] < 0.9
    assert list(shares) == sorted(shares), "it never goes back"
    totals = {text.rpartition(" of ")[2] for text in texts if "MB" in text}
    assert len(totals) == 1, "one bar for all"
    assert page.is_hidden("#loading")
    context.close()


@needs_chromium
def test_a_part_that_is_missing_is_noticed(browser: "Browser", site: str) -> None:
    context = browser.new_context()
    context.set_default_timeout(pages.PATIENCE)
    context.route(f"**/{RUNTIME[0]}", lambda route: route.abort())
    page = context.new_page()
    page.goto(site)
    page.wait_for_selector("#notice:has-text('could not be loaded')")
    context.close()


@needs_chromium
def test_the_map_is_that_of_the_model(browser: "Browser", site: str) -> None:
    """Positions are compared by what is there: of two that are equal to rounding either may be named."""
    reasoner, objects = bcn.load(scene_run()), random_scene(5)
    with open_page(browser, site) as page:
        script = "async (objects) => (await (await import('./local.js')).reason({ objects, channel: null })).broadcast"
        found = page.evaluate(script, [each.model_dump() for each in objects])
    image = torch.from_numpy(draw_scenes(to_scenes(objects)))
    model: Any = reasoner.model
    with torch.inference_mode():
        map_1CHW = model.features(reasoner.preprocessing(image))
        channels_nK = SkipConv.forward(model.broadcast, map_1CHW)[0].flatten(1).T  # before the maximum
    assert (len(found["rows"]) - 1) * (len(found["columns"]) - 1) == len(channels_nK)
    varies = typical(reasoner).active_K
    for channel, position in enumerate(found["position"]):
        most = float(channels_nK[:, channel].max())
        if position < 0:
            assert most < 1e-4 or not varies[channel]
        else:
            assert float(channels_nK[position, channel]) == pytest.approx(most, abs=1e-4)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BcnError, match="stl10/bcn is for stl10: the page has sort-of-clevr, scaled-mnist and words"):
        write_site(bcn.load("stl10/bcn"), tmp_path / "site")
    with pytest.raises(BcnError, match="give the unpacked npm package onnxruntime-web"):
        write_site(bcn.load(scene_run()), tmp_path / "site", runtime=tmp_path)
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BcnError, match="install npm, or give it unpacked with --runtime"):
        write_site(bcn.load(scene_run()), tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_site_that_cannot_be_written_is_refused_first(tmp_path: Path) -> None:
    """Before models are converted, which takes a while."""
    for name in ("file", *RUNTIME):
        (tmp_path / name).write_text("kept")
    for directory in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BcnError, match=f"cannot write {directory / 'index.html'}: "):
            write_site(bcn.load(digit_weights()), directory, runtime=tmp_path)
    assert (tmp_path / "file").read_text() == "kept"


def test_a_package_is_found_where_npm_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("dist", "package/dist", "node_modules/onnxruntime-web/dist"):
        directory = tmp_path / place.split("/")[0][:4] / place
        directory.mkdir(parents=True)
        for name in RUNTIME:
            (directory / name).write_text("")
        assert find_runtime(tmp_path / place.split("/")[0][:4]) == directory
    monkeypatch.chdir(tmp_path / "node")
    assert find_runtime().resolve() == tmp_path / "node" / "node_modules" / "onnxruntime-web" / "dist"
