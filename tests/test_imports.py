"""The import rule: errors, io <- data, layers <- models <- training <- inference <- paper <- bench, web <- cli.

Imports inside functions and under TYPE_CHECKING count too. Only `bcn/__init__.py`, which names the public API, is free.
"""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "bcn"
ORDER = "__version__, errors < io < data, layers < models < training < inference < paper < bench, web < cli < __main__"
LEVEL = {room: level for level, rooms in enumerate(ORDER.split(" < ")) for room in rooms.split(", ")}
PARTICULAR = ("mnist", "stl10", "sort_of_clevr", "sort_of_clevr_v2", "vqa", "clevr_like")
FORBIDDEN = {"models": ("bcn.data",), "training": tuple(f"bcn.data.{name}" for name in PARTICULAR)}


def imports() -> set[tuple[str, str]]:
    """Every pair of a module of the package and a module, or a name in one, that it imports from the package."""
    pairs = set()
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text())) if module != "bcn.__init__" else ():
            if isinstance(node, ast.Import):
                pairs |= {(module, alias.name) for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module} imports relatively in line {node.lineno}: write bcn. in front"
                pairs |= {(module, f"{node.module}.{alias.name}") for alias in node.names}
    return {(importer, imported) for importer, imported in pairs if f"{imported}.".startswith("bcn.")}


def breaks_the_rule(importer: str, imported: str) -> bool:
    room, other = importer.split(".")[1], f"{imported}.".split(".")[1]
    forbidden = any(f"{imported}.".startswith(f"{module}.") for module in FORBIDDEN.get(room, ()))
    return room != other and (forbidden or LEVEL[room] <= LEVEL.get(other, len(LEVEL)))


@pytest.mark.parametrize(
    ("importer", "imported", "wrong"),
    [
        ("bcn.models.clevr", "bcn.layers.broadcast.BroadcastConv", False),
        ("bcn.training.loop", "bcn.data.registry", False),
        ("bcn.web.app", "bcn.__version__", False),
        ("bcn.layers.relation", "bcn.models.blocks", True),
        ("bcn.data.registry", "bcn.layers.relation", True),
        ("bcn.models.clevr", "bcn.data.dataset", True),
        ("bcn.training.loop", "bcn.data.stl10", True),
        ("bcn.inference.demo", "bcn.paper", True),
        ("bcn.bench.speed", "bcn.web.app", True),
        ("bcn.inference.demo", "bcn.load", True),
        ("bcn.inference.demo", "bcn", True),
    ],
)
def test_the_rule(importer: str, imported: str, wrong: bool) -> None:
    assert breaks_the_rule(importer, imported) == wrong


def test_imports_point_one_way() -> None:
    wrong = {f"{of} -> {'.'.join(to.split('.')[:3])}" for of, to in imports() if breaks_the_rule(of, to)}
    assert not wrong, sorted(wrong)


def test_folders_of_one_room_have_an_order() -> None:
    """Of two folders side by side, such as `data/vqa` and `data/clevr_like`, at most one imports the other."""
    graph: dict[str, set[str]] = {}
    for pair in imports():
        of, to = (".".join(module.split(".")[:3]) for module in pair)
        if of != to and all((PACKAGE.parent / name.replace(".", "/")).is_dir() for name in (of, to)):
            graph.setdefault(of, set()).add(to)
    TopologicalSorter(graph).prepare()  # raises CycleError
