"""A page in one HTML file: readable on a phone, light or dark as the reader's device is, and nothing from elsewhere."""

from html import escape

from bcn.errors import printable

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""what the page may load: nothing but what is in it"""
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b0508f", "#b87a00", "#3a94c9", "#666666", "#1a1a1a")
DARK = ("#56b4e9", "#ff8f4a", "#2fc79a", "#e39ac6", "#f0b840", "#9fd6f7", "#a8a8a8", "#f2f2f2")
"""of lines, one after the other; safe for colour-blind readers (Okabe and Ito), with contrast on their background"""

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1c1c1e; --soft: #5c5c63; --rule: #d9d9de; --card: #f5f5f7;
  --warn: #fff1d6; --warn-ink: #6b4400; LIGHT }
@media (prefers-color-scheme: dark) { :root { --page: #16171a; --ink: #ececee; --soft: #a9a9b2; --rule: #3a3b42;
  --card: #212329; --warn: #40300f; --warn-ink: #ffd891; DARK } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { font-size: 1.4rem; margin: 0 0 .2rem } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem } p { margin: .4rem 0 }
.soft, figcaption { color: var(--soft); font-size: .875rem } .big { font-size: 2.4rem; font-weight: 650 }
.warn { background: var(--warn); color: var(--warn-ink); padding: .6rem .8rem; border-radius: .5rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: .875rem; width: 100% }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--rule); white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { font-weight: 600; color: var(--soft) }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); gap: 1rem }
figure { margin: 0; position: relative } figure svg { width: 100%; height: auto; display: block; touch-action: pan-y }
svg text { fill: var(--soft); font-size: 12px } .grid { stroke: var(--rule) } .best { stroke: var(--soft) }
.line { fill: none; stroke: var(--colour); stroke-width: 1.8; stroke-linejoin: round } .dot { fill: var(--colour) }
.dashed { stroke-dasharray: 5 3 } .marker { stroke: var(--soft); visibility: hidden }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; font-size: .875rem; padding: 0; margin: .3rem 0 1rem;
  list-style: none } .key { display: inline-block; width: 1.2rem; border-top: 3px solid var(--colour);
  margin-right: .4rem; vertical-align: middle } .key.dashed { border-top-style: dashed }
.tip { position: absolute; top: 2rem; pointer-events: none; background: var(--card); color: var(--ink);
  border: 1px solid var(--rule); border-radius: .4rem; padding: .3rem .5rem; font-size: .8rem; max-width: 75% }
.bar { display: grid; grid-template-columns: minmax(7rem, 13rem) 1fr 3.6rem; gap: .6rem; align-items: center;
  font-size: .9rem; margin: .3rem 0 } .bar b { text-align: right; font-variant-numeric: tabular-nums }
.track { position: relative; height: 1rem; background: var(--card); border-radius: .2rem }
.fill { position: absolute; inset: 0 auto 0 0; background: var(--colour); border-radius: .2rem }
.range { position: absolute; top: 50%; border-top: 2px solid var(--ink) }
@media (max-width: 34rem) { .bar { grid-template-columns: 1fr 3.6rem; gap: 0 .6rem }
  .bar > :first-child { grid-column: 1 / -1 } }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 9.5rem), 1fr)); gap: .8rem }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: .5rem; overflow: hidden;
  font-size: .875rem }
.card img { width: 100%; display: block; image-rendering: auto } .card p { margin: .4rem .6rem }
"""
SCRIPT = """
for (const figure of document.querySelectorAll("figure.chart")) {
  const svg = figure.querySelector("svg"), tip = figure.querySelector(".tip"), marker = svg.querySelector(".marker");
  const lines = JSON.parse(svg.dataset.lines);
  const add = (text, line) => {
    const row = tip.appendChild(document.createElement("div"));
    if (line) row.appendChild(document.createElement("span")).className = "key c" + line.colour +
      (line.dashed ? " dashed" : "");
    row.append(text);
  };
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    const points = lines.flatMap(line => line.points);
    const near = points.reduce((best, point) => Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best);
    tip.replaceChildren();
    add("epoch " + near[1]);
    for (const line of lines)
      for (const point of line.points) if (point[1] === near[1]) add(line.label + ": " + point[2], line);
    marker.setAttribute("x1", near[0]); marker.setAttribute("x2", near[0]);
    marker.style.visibility = "visible"; tip.hidden = false;
    const left = near[0] / svg.viewBox.baseVal.width * box.width;
    tip.style.left = Math.max(0, Math.min(left + 10, box.width - tip.offsetWidth)) + "px";
  });
  svg.addEventListener("pointerleave", () => { tip.hidden = true; marker.style.visibility = "hidden"; });
}
"""


def document(title: str, body: str) -> str:
    """The whole file.

    Args:
        title: plain text.
        body: HTML.
    """
    style = STYLE
    for name, colours in (("LIGHT", LIGHT), ("DARK", DARK)):
        style = style.replace(name, " ".join(f"--c{number}: {colour};" for number, colour in enumerate(colours)))
    style += "\n".join(f".c{number} {{ --colour: var(--c{number}) }}" for number in range(len(LIGHT)))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
<script>{SCRIPT}</script>
</body>
</html>
"""


def text(plain: str) -> str:
    """Plain text, which may come from files, as HTML.

    >>> text("<b>2 & 3</b>")
    '&lt;b&gt;2 &amp; 3&lt;/b&gt;'
    """
    return escape(printable(plain))
