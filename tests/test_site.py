"""The documentation site builds without a warning, whole, searchable, and from nothing but this repository."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest
from helpers import pages
from helpers.pages import PATIENCE, needs_chromium

pytest.importorskip("sphinx", reason="needs the extra docs")
pytest.importorskip("furo", reason="needs the extra docs")
pytest.importorskip("myst_nb", reason="needs the extra docs")

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parent.parent
SOURCES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
browser = pages.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make site` does it."""
    out = tmp_path_factory.mktemp("documentation")
    made = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-c", "docs", "-d", str(out / "doctrees")]
    done = subprocess.run([*made, ".", str(out / "site")], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out / "site"


class Links(HTMLParser):
    """What a page links to, what it loads, and the names of its places."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.names: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        elif tag in ("script", "img", "iframe", "source") and "src" in given:
            self.loaded.add(given["src"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.add(given["href"])


@pytest.fixture(scope="module")
def read(site: Path) -> dict[Path, Links]:
    """Every page of the site."""
    return {page: Links(page) for page in site.rglob("*.html")}


def test_every_page_is_listed_at_the_side_of_the_first(site: Path, read: dict[Path, Links]) -> None:
    made = {site / path.relative_to(ROOT).with_suffix(".html") for path in SOURCES}
    first = site / "README.html"
    assert {(site / unquote(link)).resolve() for link in read[first].links} >= made - {first}
    assert (site / "index.html").read_bytes() == first.read_bytes()


def test_links_lead_somewhere(read: dict[Path, Links]) -> None:
    for page, parsed in read.items():
        for link in parsed.links | parsed.loaded:
            there = urlsplit(link)
            if there.scheme in ("https", "data") or page.name == "search.html":
                continue
            assert not there.scheme, f"{page.name}: {link}"
            other = (page.parent / unquote(there.path)).resolve() if there.path else page
            assert other.is_file(), f"{page.name} links to {link}"
            if there.fragment and other.suffix == ".html":
                assert unquote(there.fragment) in read[other].names, f"{page.name} links to {link}"


def test_nothing_is_loaded_from_elsewhere(site: Path, read: dict[Path, Links]) -> None:
    assert not [link for parsed in read.values() for link in parsed.loaded if urlsplit(link).netloc]
    for style in site.rglob("*.css"):
        assert not re.search(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""", style.read_text(encoding="utf-8")), style


def test_source_files_are_shown(site: Path) -> None:
    assert "class BroadcastConv" in re.sub(r"<[^>]+>", "", (site / "source/bcn/layers/broadcast.py.html").read_text())
    assert "../../source/bcn/layers/broadcast.py.html" in (site / "docs/guides/network.html").read_text()


def test_notebooks_have_their_pictures_and_formulas(site: Path, read: dict[Path, Links]) -> None:
    page = site / "docs" / "tutorials" / "from-scratch.html"
    assert len([link for link in read[page].loaded if link.endswith(".png")]) >= 5
    assert page.read_text().count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">') == 4


@needs_chromium
def test_the_search_finds_a_page(browser: "Browser", site: Path) -> None:
    page = browser.new_page()
    page.goto(f"{site.as_uri()}/search.html?q=dead+channels")
    page.wait_for_selector("#search-results li a", timeout=PATIENCE)
    found = page.locator("#search-results li a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert any(link.startswith("docs/notebook/dead-channels.html") for link in found)
    page.close()
