"""An interpreter of CLEVR's programs, written apart from the package's."""

from collections.abc import Callable
from typing import Any

import numpy as np


def oracle(program: list[dict[str, Any]], scene: dict[str, Any], place: int = -1) -> Any:
    """The value of a node, from the last one back; objects are dictionaries, relations are read off coordinates."""
    node = program[place]
    name, _, attribute = node["function"].partition("_")
    given = [oracle(program, scene, index) for index in node["inputs"]]
    if node["function"] in ("equal_integer", "less_than", "greater_than"):
        return (
            "yes"
            if {"equal": given[0] == given[1], "less": given[0] < given[1], "greater": given[0] > given[1]}[name]
            else "no"
        )
    if name == "scene":
        return scene["objects"]
    if name == "filter":
        return [thing for thing in given[0] if thing[attribute] == node["value_inputs"][0]]
    if name == "unique":
        assert len(given[0]) == 1
        return given[0][0]
    if name == "relate":
        direction = np.array(scene["directions"][node["value_inputs"][0]])
        start = np.array(given[0]["3d_coords"]) @ direction
        return [thing for thing in scene["objects"] if np.array(thing["3d_coords"]) @ direction > start + 0.2]
    if name == "same":
        return [
            thing for thing in scene["objects"] if thing is not given[0] and thing[attribute] == given[0][attribute]
        ]
    if name in ("union", "intersect"):
        inside = [[any(thing is other for other in side) for side in given] for thing in scene["objects"]]
        keep = any if name == "union" else all
        return [thing for thing, sides in zip(scene["objects"], inside, strict=True) if keep(sides)]
    if name == "query":
        return given[0][attribute]
    compute: dict[str, Callable[[], Any]] = {
        "count": lambda: len(given[0]),
        "exist": lambda: "yes" if given[0] else "no",
        "equal": lambda: "yes" if given[0] == given[1] else "no",
    }
    return compute[name]()
