"""The list of tables: the paper's and ours, with their rows. Everything that goes through tables starts here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import getdoc
from typing import cast, get_args

from bcn.errors import did_you_mean
from bcn.paper.published import published_rows
from bcn.paper.recipes import (
    ablation,
    batch32,
    bcn_size,
    blocks,
    boxes,
    broadcast_study,
    clevr_like_v2,
    deformation,
    drawn,
    fast,
    leaderboard,
    masks,
    sort_of_clevr_v2,
    stream,
    table1,
    table2,
    table3,
    table3_legacy,
    table4,
    table5,
    wild,
)
from bcn.paper.recipes.row import Row
from bcn.training.own import own_recipe
from bcn.training.recipe import Recipe, Scale


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    published: str | None
    """its name in tables.toml; None for a table of ours"""
    metrics: tuple[str, ...]
    """its columns that a run measures"""
    rows: Mapping[str, Row]
    note: str = ""


_QUESTIONS = ("relational", "non_relational")
_ARITIES = ("unary", "binary", "ternary")
_FAMILIES = ("overall", "count", "exist", "compare_numbers", "query_attribute", "compare_attribute")
_DIGITS = ("accuracy", "localisation")
_DEFORMED = ("scaled", "more_scaled", "rotated_10", "rotated_45", "affnist")
OBJECTS = {f"objects_{objects}": objects for objects in (5, 4, 3, 2)}
"""columns for scenes with fewer objects than in training, and how many"""
_OURS = "not an experiment of the paper, whose metrics for {} are printed for comparison"

TABLES = {
    table.name: table
    for table in (
        Table("table1", "Table 1: Scaled-MNIST", "scaled_mnist", _DIGITS, table1.ROWS),
        Table("table2", "Table 2: STL-10", "stl10", ("accuracy",), table2.ROWS),
        Table("table3", "Table 3: Sort-of-CLEVR (sort-of-clevr-v1)", "sort_of_clevr", _QUESTIONS, table3.ROWS),
        Table(
            "table3-legacy",
            "Table 3: Sort-of-CLEVR (the original public generator)",
            "sort_of_clevr",
            _QUESTIONS,
            table3_legacy.ROWS,
        ),
        Table("table4", "Table 4: CLEVR from pixels (at cpu scale clevr-like-v1)", "clevr", _FAMILIES, table4.ROWS),
        Table(
            "table5-scaled-mnist",
            "Table 5: coordinate embeddings, Scaled-MNIST",
            "coordinates",
            _DIGITS,
            table5.SCALED_MNIST,
        ),
        Table(
            "table5-sort-of-clevr",
            "Table 5: coordinate embeddings, Sort-of-CLEVR",
            "coordinates",
            _QUESTIONS,
            table5.SORT_OF_CLEVR,
        ),
        Table(
            "deformation",
            "Appendix table 1: robustness against deformation",
            "deformation",
            _DEFORMED,
            deformation.ROWS,
        ),
        Table("bcn-size", "Appendix table 3: size of the BCN", "bcn_size", _QUESTIONS, bcn_size.ROWS),
        Table(
            "ablation",
            "Ours: ablation of the cpu scale of table 3",
            None,
            _QUESTIONS,
            ablation.ROWS,
            _OURS.format("`multirn-h`"),
        ),
        Table(
            "batch32",
            "Ours: multiRN with and without a BCN at batch size 32",
            None,
            _QUESTIONS,
            batch32.ROWS,
            _OURS.format("these models"),
        ),
        Table(
            "broadcast",
            "Ours: what a BCN is worth, and when",
            None,
            _QUESTIONS,
            broadcast_study.ROWS,
            _OURS.format("`multirn` and `multirn-h`"),
        ),
        Table(
            "stream",
            "Ours: training scenes that never repeat",
            None,
            (*_QUESTIONS, *OBJECTS),
            stream.ROWS,
            _OURS.format("`multirn-h`"),
        ),
        Table(
            "blocks",
            "Ours: other blocks in the place of the BCN, with as many parameters",
            None,
            (*_DIGITS, *_DEFORMED[1:4]),
            blocks.ROWS,
            "not an experiment of the paper; rows `stl10-...` are on STL-10, the others on Scaled-MNIST and tested on "
            "larger and rotated digits too. `none` has no block, and fewer parameters",
        ),
        Table(
            "masks",
            "Ours: masks of Scaled-MNIST by a small U-Net",
            None,
            ("accuracy", "mean_iou"),
            masks.ROWS,
            "segmentation, which the paper names as future work: the class of every pixel",
        ),
        Table(
            "boxes",
            "Ours: boxes of CLEVR-like objects by a small CenterNet",
            None,
            ("accuracy", "average_precision"),
            boxes.ROWS,
            "detection, which the paper names as future work; accuracy is of the class where an object's centre is, "
            "AP that of boxes that overlap the true ones by half",
        ),
        Table(
            "fast",
            "Ours: CLEVR from pixels on one GPU (at cpu scale clevr-like-v1)",
            None,
            _FAMILIES,
            fast.ROWS,
            _OURS.format("`multirn-h`"),
        ),
        Table(
            "clevr-like-v2",
            "Ours: CLEVR's wording from pixels (clevr-like-v2)",
            None,
            _FAMILIES,
            clevr_like_v2.ROWS,
            _OURS.format("these models"),
        ),
        Table(
            "drawn",
            "Ours: drawn shapes and letters, questions in free English (drawn-v1)",
            None,
            ("overall", "attributes", "relations"),
            drawn.ROWS,
            "not an experiment of the paper: weights to start from on images of one's own",
        ),
        Table(
            "sort-of-clevr-v2",
            "Ours: 2 to 8 objects, unary, binary and ternary questions (sort-of-clevr-v2)",
            None,
            _ARITIES,
            sort_of_clevr_v2.ROWS,
            "not an experiment of the paper",
        ),
        Table(
            "wild",
            "Ours: varied pictures of 2 to 8 objects that never repeat (sort-of-clevr-v2-stream-varied)",
            None,
            _ARITIES,
            wild.ROWS,
            "not an experiment of the paper; `bcn leaderboard` has more columns",
        ),
        Table(
            "leaderboard",
            "Ours: the leaderboard of Sort-of-CLEVR v2",
            None,
            _ARITIES,
            leaderboard.ROWS,
            "not an experiment of the paper; `bcn leaderboard` has more columns",
        ),
    )
}
"""in the paper's order"""
OTHER_RECIPES: dict[str, Callable[[Scale], Recipe]] = {"own": own_recipe}
"""of no table"""


def find_table(name: str) -> Table:
    if name not in TABLES:
        raise did_you_mean("table", name, TABLES)
    return TABLES[name]


def list_recipes(table: str | None = None) -> list[str]:
    """The names of all recipes, or of one table's, in the paper's order: "table3/multirn-h"."""
    return [f"{each.name}/{row}" for each in TABLES.values() if table in (None, each.name) for row in each.rows]


def find_row(name: str) -> Row:
    table, _, row = name.partition("/")
    if table not in TABLES or row not in TABLES[table].rows:
        raise did_you_mean("recipe", name, [*list_recipes(), *OTHER_RECIPES])
    return TABLES[table].rows[row]


def find_recipe(name: str, scale: str) -> Recipe:
    """The recipe of a row. Rows that train the same thing are one recipe, under the name of the first.

    >>> find_recipe("table3/multirn-h", "paper").epochs
    50
    >>> find_recipe("table5-sort-of-clevr/xy-centred-radial", "paper").name
    'table3/multirn-h'
    """
    if scale not in get_args(Scale):
        raise did_you_mean("scale", scale, get_args(Scale))
    if name in OTHER_RECIPES:
        return OTHER_RECIPES[name](cast(Scale, scale))
    row = find_row(name)
    measured = find_table(name.split("/")[0]).metrics
    paper = tuple(item for item in published(*row.published.name.split("/")) if item[0] in measured)
    return replace(row.recipe(cast(Scale, scale)), paper=paper)


def describe_recipe(name: str, scale: str) -> str:
    """What a recipe trains, in a few words."""
    if name in OTHER_RECIPES:
        return (getdoc(OTHER_RECIPES[name]) or "").split("\n")[0].rstrip(".")
    recipe = find_recipe(name, scale)
    return find_row(name).about if recipe.name == name else f"as {recipe.name}"


def published(table: str, row: str) -> tuple[tuple[str, float], ...]:
    """The metrics that the paper prints for a row of one of its tables; none for a table of ours.

    >>> published("table3", "multirn-h")
    (('relational', 96.7), ('non_relational', 99.9))
    """
    key = TABLES[table].published
    if key is None:
        return ()
    metrics = published_rows(key)[row]
    return tuple((metric, metrics[metric]) for metric in TABLES[table].metrics)
