"""The documentation site, from the Markdown and the notebooks of this repository as they stand: `make site`.

Sphinx reads them from the root of the repository. Nothing on the site is loaded from elsewhere.
"""

import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.addnodes import download_reference
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).parent.parent
INDEX = "docs/README"
"""the page whose list of links is the list of pages at the side"""

project = "bcn"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
extensions = ["myst_nb"]
root_doc = "README"
include_patterns = ["*.md", "docs/**"]
exclude_patterns = [".*", "bcn", "build", "dist", "runs", "demo", "tests", "results"]
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "off"
html_theme = "furo"
html_title = f"bcn {version}"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_use_index = False
html_math_renderer = "mathml"


def add_list_of_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """The pages that the index links to, under its headings, on the first page, where nobody sees them."""
    if name != root_doc:
        return
    parts = re.split(r"^\*\*(\w+)\*\*", (ROOT / INDEX).with_suffix(".md").read_text(), flags=re.M)
    lists = {"": [INDEX]}
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        lists[heading] = [f"docs/{page}" for page in re.findall(r"\]\(([\w/-]+)\.(?:md|ipynb)\)", text)]
    lists["Project"] = ["CONTRIBUTING", "SECURITY", "CHANGELOG"]
    for heading, pages in lists.items():
        options = [":hidden:", f":caption: {heading}" if heading else "", ""]
        source[0] += "\n".join(["\n```{toctree}", *options, *pages, "```\n"])


class LinkToSource(SphinxTransform):
    """A link to a file of the repository that is no page leads to the text of that file, instead of a download."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        for link in list(self.document.findall(download_reference)):
            path = (ROOT / Path(self.env.docname).parent / link["reftarget"]).resolve().relative_to(ROOT).as_posix()
            self.env.metadata[self.env.docname].setdefault("sources", []).append(path)
            address = "../" * self.env.docname.count("/") + f"source/{path}.html"
            link.replace_self(nodes.reference("", "", *link.children, refuri=address))


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for each file that is linked to."""
    for path in sorted({path for page in app.env.metadata.values() for path in page.get("sources", ())}):
        lexer = "python" if path.endswith(".py") else "text"
        block = app.builder.highlighter.highlight_block((ROOT / path).read_text(), lexer, linenos="inline")
        yield f"source/{path}", {"title": path, "body": f"<h1>{path}</h1>{block}"}, "page.html"


def visit_math(self: Any, node: nodes.math | nodes.math_block) -> None:
    """Formulas as MathML, which browsers draw by themselves."""
    self.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def add_index(app: Sphinx, error: Exception | None) -> None:
    """What a server shows for the site's address."""
    if error is None:
        shutil.copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_list_of_pages)
    app.connect("html-collect-pages", source_pages)
    app.connect("build-finished", add_index)
    app.add_transform(LinkToSource)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
