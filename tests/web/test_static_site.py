"""The static site: the page from a plain file server, answering in the browser as the package does."""

import re
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from helpers.small_weights import digit_weights, scene_run

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnxscript", reason="needs the extra onnx")
pytest.importorskip("fastapi", reason="needs the extra web")

from helpers import pages
from helpers.pages import ask_sentences, drag, needs_chromium, open_page, read_label, right_answer, wait_for_answers

import bcn
from bcn.data.sort_of_clevr import COLOURS, draw_scenes
from bcn.errors import BcnError
from bcn.layers.broadcast import SkipConv
from bcn.web.scenes import answer_scene, random_scene, to_scenes
from bcn.web.schema import SceneRequest
from bcn.web.static_site import RUNTIME, find_runtime, write_site

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
    write_site(bcn.load(scene_run()), directory)
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
        assert wait_for_answers(page)[3] == [12, 12, "circle"]
        drag(page, "red", 8, 8)
        wait_for_answers(page)
        assert [right_answer(read_label(page, kind, "red")) for kind in ("left", "above")] == ["yes", "yes"]
        drag(page, "red", 68, 66)
        objects = wait_for_answers(page)
        assert objects[0][:2] == [68, 66]
        scene = [{"colour": c, "x": x, "y": y, "shape": s} for c, (x, y, s) in zip(COLOURS, objects, strict=True)]
        expected, _ = answer_scene(bcn.load(scene_run()), SceneRequest.model_validate({"objects": scene}))
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
        assert page.locator("#scene .map rect").count() > 0
        assert "red" in page.inner_text("#channel-summary")
        assert min(map(float, (page.get_attribute("#speed", "data-times") or "").split())) > 0
        ask_sentences(page)
        assert page.locator("[role=tab]:visible").count() == 1
    names = {url.removeprefix(site) for url in requests}
    assert names == {
        "/",
        "/style.css",
        "/icon.svg",
        "/model.json",
        "/model.onnx",
        *(f"/{name}" for name in RUNTIME),
    } | {f"/{name}.js" for name in ("main", "dom", "engine", "local", "reason", "scenes", "find", "see")}


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
        script = "async (objects) => (await (await import('./local.js')).reason({ objects })).broadcast"
        found = page.evaluate(script, [each.model_dump() for each in objects])
    image = torch.from_numpy(draw_scenes(to_scenes(objects)))
    model: Any = reasoner.model
    with torch.inference_mode():
        map_1CHW = model.features(reasoner.preprocessing(image))
        channels_nK = SkipConv.forward(model.broadcast, map_1CHW)[0].flatten(1).T  # before the maximum
    assert found["rows"] * found["columns"] == len(channels_nK)
    for channel, position in enumerate(found["position"]):
        most = float(channels_nK[:, channel].max())
        if position < 0:
            assert most < 1e-4
        else:
            assert float(channels_nK[position, channel]) == pytest.approx(most, abs=1e-4)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BcnError, match="for sort-of-clevr alone"):
        write_site(bcn.load(digit_weights()), tmp_path / "site")
    with pytest.raises(BcnError, match="give the unpacked npm package onnxruntime-web"):
        write_site(bcn.load(scene_run()), tmp_path / "site", runtime=tmp_path)
    monkeypatch.setenv("BCN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BcnError, match="install npm, or give it unpacked with --runtime"):
        write_site(bcn.load(scene_run()), tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_package_is_found_where_npm_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("dist", "package/dist", "node_modules/onnxruntime-web/dist"):
        directory = tmp_path / place.split("/")[0][:4] / place
        directory.mkdir(parents=True)
        for name in RUNTIME:
            (directory / name).write_text("")
        assert find_runtime(tmp_path / place.split("/")[0][:4]) == directory
    monkeypatch.chdir(tmp_path / "node")
    assert find_runtime().resolve() == tmp_path / "node" / "node_modules" / "onnxruntime-web" / "dist"
