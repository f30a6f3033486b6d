"""The steps of a question: the sets of objects that its program selects one after the other, relation by relation.

They are the targets of models that follow a chain of relations round by round. On the way from each "scene" of a
program, of which it has one or two, to its end, step r = 0, 1, ... is the last set that at most r relations ("relate",
"same_color") lead to; a set that both ways share is the first alone.

"How many cubes are left of the thing behind the sphere?" has the steps sphere, thing, cubes, cubes, ...: after the last
relation they are the referents.
"""

from bcn.data.clevr_like.program import Scene, run
from bcn.data.vqa.clevr import Program, function_of


def find_steps(program: Program, scene: Scene, steps: int) -> list[list[list[int]]]:
    """The sets of objects of each of the first steps of a program, one set or two.

    >>> scene = {"objects": [{"color": "red"}, {"color": "blue"}], "relationships": {"left": [[1], []]}}
    >>> red = {"function": "filter_color", "inputs": [0], "value_inputs": ["red"]}
    >>> left = {"function": "relate", "inputs": [2], "value_inputs": ["left"]}
    >>> only, exist = {"function": "unique", "inputs": [1]}, {"function": "exist", "inputs": [3]}
    >>> find_steps([{"function": "scene"}, red, only, left, exist], scene, 3)
    [[[0]], [[1]], [[1]]]
    """
    if not steps:
        return []
    values, inputs = run(program, scene), [node.get("inputs") or [] for node in program]
    relations = list[int]()  # that lead to each node
    for node, sources in zip(program, inputs, strict=True):
        is_relation = function_of(node).startswith(("relate", "same_"))
        relations.append(max((relations[source] for source in sources), default=0) + is_relation)
    next_node = {source: index for index, sources in enumerate(inputs) for source in sources}
    ways = [[index] for index, sources in enumerate(inputs) if not sources]
    for way in ways:
        while way[-1] in next_node:
            way.append(next_node[way[-1]])
    found = []
    for step in range(steps):
        last = [max(node for node in way if isinstance(values[node], list) and relations[node] <= step) for way in ways]
        found.append([values[node] for node in dict.fromkeys(last)])
    return found
