"""The page about a run as HTML."""

import base64
import io
from collections.abc import Sequence
from typing import Any

from PIL import Image

from bcn.inference.report.chart import Line, draw_chart, draw_legend
from bcn.inference.report.document import document, text
from bcn.inference.report.measure import Part, Report, Share, WrongAnswer, find_overfitting
from bcn.training.progress import duration

THUMBNAIL = 192
"""pixels of the longer side at most"""
VALIDATION = "validation images, which also chose the epoch: this flatters a little"
COLUMNS = {
    "held-out": "held_out",
    "on training images": "training",
    "blind model": "blind",
    "same question": "per_question",
    "most frequent": "majority",
}
"""of the table of kinds: its headings and the fields of a part"""


def render(report: Report) -> str:
    """The whole page."""
    title = f"{report.run.recipe.name}, seed {report.run.manifest['seed']}"
    sections = (_accuracy(report), _kinds(report), _curves(report), _worst(report), _about(report))
    heading = f'<h1>{text(title)}</h1><p class="soft">{text(report.run.path.name)}</p>'
    return document(f"{title}: report", heading + "".join(sections))


def _percent(share: Share | None) -> str:
    return "-" if share is None else f"{100 * share.accuracy:.1f} %"


def _range(share: Share) -> str:
    return "{:.1f} to {:.1f}".format(*(100 * bound for bound in share.interval))


def _accuracy(report: Report) -> str:
    whole = report.parts[0]
    images = VALIDATION if report.split == "val" else "test images, which nothing was chosen by"
    bars = {
        "this model": whole.held_out,
        "blind model": whole.blind,
        "most frequent answer to the same question": whole.per_question,
        "most frequent answer": whole.majority,
    }
    drawn = "".join(
        _bar(name, share, number, interval=name == "this model") for number, (name, share) in enumerate(bars.items())
        if share is not None
    )  # fmt: skip
    missing = "" if whole.blind else "<p class=soft>No blind model is on record for this run.</p>"
    return f"""
<p><span class="big">{_percent(whole.held_out)}</span> right, 95 % interval {_range(whole.held_out)}</p>
<p class="soft">{whole.held_out.correct:,} of {whole.held_out.total:,} answers about {images}.</p>
{_verdict(whole)}
<h2>Beside baselines that do not see the image</h2>
<p class="soft">A blind model sees the questions alone. The two guesses know the answers of the training images.</p>
{drawn}{missing}"""


def _verdict(whole: Part) -> str:
    """Whether the model is better than what needs no image."""
    others = [share.accuracy for share in (whole.majority, whole.per_question, whole.blind) if share is not None]
    if whole.held_out.interval[0] > max(others):
        return "<p>It is better than every baseline that does not see the image, by more than chance.</p>"
    return (
        '<p class="warn">It is not better, by more than chance, than the best of these baselines: '
        "nothing shows that it uses the images. More images or epochs may help.</p>"
    )


def _bar(name: str, share: Share, colour: int, *, interval: bool) -> str:
    low, high = (100 * bound for bound in share.interval)
    spread = f'<span class="range" style="left:{low:.1f}%;width:{high - low:.1f}%"></span>' if interval else ""
    return (
        f'<div class="bar c{colour}"><span>{text(name)}</span><span class="track">'
        f'<span class="fill" style="width:{100 * share.accuracy:.1f}%"></span>{spread}</span>'
        f"<b>{_percent(share)}</b></div>"
    )


def _kinds(report: Report) -> str:
    if len(report.parts) == 1:
        return ""
    bars = "".join(_bar(part.name, part.held_out, 0, interval=True) for part in report.parts[1:])
    used = {
        heading: field
        for heading, field in COLUMNS.items()
        if any(getattr(part, field) is not None for part in report.parts)
    }
    rows = "".join(
        f"<tr><td>{text(part.name)}</td><td>{part.held_out.total:,}</td><td>{_range(part.held_out)}</td>"
        + "".join(f"<td>{_percent(getattr(part, field))}</td>" for field in used.values())
        + "</tr>"
        for part in report.parts
    )
    headings = "".join(f"<th>{heading}</th>" for heading in ("", "questions", "95 % interval", *used))
    memorised = [part for part in report.parts[1:] if part.is_memorised]
    warning = ""
    if memorised:
        named = ", ".join(
            f"{part.name} ({_percent(part.training)} on training images, {_percent(part.held_out)} on new ones)"
            for part in memorised
        )
        warning = f'<p class="warn">Memorised: {text(named)}. More images help, and more questions about each.</p>'
    return f"""
<h2>By kind of question</h2>{warning}{bars}
<div class="scroll"><table><thead><tr>{headings}</tr></thead><tbody>{rows}</tbody></table></div>
<p class="soft">The guess of a kind is the most frequent answer to questions of that kind.</p>"""


def _curves(report: Report) -> str:
    if not report.curve:
        return ""
    losses = {"training": "loss", "validation": "val_loss"}
    lines = [Line(name, number, _points(report.curve, key)) for number, (name, key) in enumerate(losses.items())]
    best, scores = report.record["best_epoch"] or 0, _points(report.curve, "accuracy")
    charts = [draw_chart("loss", [line for line in lines if line.points], best=best)]
    if scores:
        line = Line("validation", 1, [(epoch, 100 * value) for epoch, value in scores])
        charts.append(draw_chart("validation accuracy, %", [line], unit=" %", best=best))
    overfits, said = find_overfitting(report.curve), ""
    if overfits is not None:
        said = (
            f'<p class="warn">It overfits after epoch {overfits}: the validation loss rises again while the training '
            f"loss falls. The weights of epoch {best} are kept. Stronger augmentation, more weight decay, fewer "
            "epochs or more images help.</p>"
        )
    stopped = report.record.get("stopped_after")
    ending = f" Training stopped after epoch {stopped}, without a better one for a while." if stopped else ""
    kept = f"The dashed line is epoch {best}, which validated best and whose weights are kept." if best else ""
    augmented = " on augmented images" if report.run.recipe.augment else ""
    return f"""
<h2>Training</h2>{said}<div class="charts">{"".join(charts)}</div>{draw_legend(list(losses))}
<p class="soft">{kept}{ending} The training loss is measured{augmented} while the weights change.</p>"""


def _points(curve: Sequence[dict[str, Any]], key: str) -> list[tuple[int, float]]:
    return [(entry["epoch"], entry[key]) for entry in curve if entry.get(key) is not None]


def _worst(report: Report) -> str:
    if not report.worst:
        return "<h2>Wrong answers</h2><p>There are none.</p>"
    return f"""
<h2>The most confident wrong answers</h2>
<p class="soft">About {"validation" if report.split == "val" else "test"} images, as the model is given them. A true
answer that is wrong is worth mending in your data.</p>
<div class="cards">{"".join(map(_card, report.worst))}</div>"""


def _card(wrong: WrongAnswer) -> str:
    kind = f' <span class="soft">{text(wrong.kind)}</span>' if wrong.kind else ""
    question = f"<p>{text(wrong.question)}{kind}</p>" if wrong.question else ""
    return (
        f'<div class="card"><img alt="" src="{_thumbnail(wrong.image)}">{question}'
        f"<p><b>{text(wrong.given)}</b> {100 * wrong.probability:.0f} %, not <b>{text(wrong.true)}</b></p></div>"
    )


def _thumbnail(image: Image.Image) -> str:
    """A data URL."""
    small, buffer = image.copy(), io.BytesIO()
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    small.save(buffer, format="JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _about(report: Report) -> str:
    record, recipe = report.record, report.run.recipe
    done = record.get("stopped_after", recipe.epochs)
    start = f", from {recipe.start}" if recipe.start else ""
    changes = "".join(f" --set {change}" for change in record["overrides"])
    facts = {
        "model": f"{recipe.model}, {record['parameters']:,} parameters{start}",
        "training": f"{done} epochs, {record['questions']:,} questions, {duration(record['seconds'])}, "
        f"{duration(record['ranks'] * record['cpu_seconds'])} of CPU time",
        "changes to the recipe": changes.strip() or "none",
        "commit": str(record["commit"].get("id", "-"))[:12] if isinstance(record["commit"], dict) else "-",
    }
    rows = "".join(f"<p><b>{name}</b>: {text(fact)}</p>" for name, fact in facts.items())
    return f'<h2>About this run</h2><div class="soft">{rows}</div>'
