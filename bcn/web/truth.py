"""The true answers to questions about a scene of the page, by the rules of Sort-of-CLEVR v1 and v2."""

from bcn.data.sort_of_clevr.scene import COLOURS, MIDDLE
from bcn.data.sort_of_clevr_v2.answers import OFF, ON
from bcn.web.scenes import EXTRA, SceneQuestion
from bcn.web.schema import SceneObject


def true_answer(objects: list[SceneObject], question: SceneQuestion) -> str | None:
    """The answer; None where there is none: no other object to speak of, or one neither on a line nor off it.

    Of objects at the same distance the first colour counts.
    """
    named = [objects[place] for place in question.objects]
    own, kind = named[0], question.kind
    ordered = sorted(objects, key=lambda each: (*COLOURS, *EXTRA).index(each.colour))
    others = [each for each in ordered if not any(each is one for one in named)]
    if kind == "shape":
        return own.shape
    if kind in ("left", "above"):
        return "no" if (own.x if kind == "left" else own.y) > MIDDLE else "yes"
    if kind == "count":
        return str(sum(each.shape == own.shape for each in objects))
    if kind in ("closest", "furthest"):
        choose = min if kind == "closest" else max
        return choose(others, key=lambda other: _dot(own, other, other)).shape if others else None
    _, second = named
    if kind == "between":
        return str(sum(_is_inside(own, second, other) for other in others))
    if kind == "obtuse":
        return str(sum(_is_obtuse(own, second, other) for other in others))
    return _line(own, second, others)


def _dot(corner: SceneObject, a: SceneObject, b: SceneObject) -> int:
    """The scalar product of the ways from a corner to a and to b."""
    return (a.x - corner.x) * (b.x - corner.x) + (a.y - corner.y) * (b.y - corner.y)


def _is_inside(a: SceneObject, b: SceneObject, c: SceneObject) -> bool:
    return (c.x - a.x) * (c.x - b.x) < 0 and (c.y - a.y) * (c.y - b.y) < 0


def _is_obtuse(a: SceneObject, b: SceneObject, c: SceneObject) -> bool:
    return min(_dot(a, b, c), _dot(b, a, c), _dot(c, a, b)) < 0


def _line(a: SceneObject, b: SceneObject, others: list[SceneObject]) -> str | None:
    """Whether the segment from a to b goes through another object."""
    beside = [c for c in others if _dot(a, b, c) > 0 and _dot(b, a, c) > 0]
    cross = [(c.x - a.x) * (b.y - a.y) - (c.y - a.y) * (b.x - a.x) for c in beside]
    nearest, length = min((each**2 for each in cross), default=None), _dot(a, b, b)
    if nearest is None or nearest >= OFF**2 * length:
        return "no"
    return "yes" if nearest <= ON**2 * length else None
