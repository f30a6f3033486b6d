"""Questions of clevr-like-v2 about a scene: CLEVR's 90 families, equally often, in CLEVR's phrasings and its JSON.

The family is drawn first, each at most once for an image until all have had their turn; then the answer, then objects
and words for which it is right. Answers are balanced as CLEVR's generator balances them: yes and no alike, the values
of an attribute alike, and of numbers none much more often than the second. Questions are, like scenes, a function of
(seed, split, index) alone. As in CLEVR, no question names the attribute that it asks for, compares an object or a set
with itself, or means an object that its words do not single out; one relation in ten may be redundant.
"""

from typing import Any

from bcn.data.clevr_like.descriptions import Descriptions
from bcn.data.clevr_like.families import COMPARISONS, FAMILIES, Family, find_objects
from bcn.data.clevr_like.grammar import program
from bcn.data.clevr_like.phrasing import phrase
from bcn.data.clevr_like.program import answer
from bcn.data.clevr_like.questions import Scene, check_objects
from bcn.data.random import RandomStream
from bcn.data.vqa.clevr import ATTRIBUTES

_ATTEMPTS = 16
_ANSWERS = 4
"""how many answers of a number or an attribute are tried before the family is given up for this scene"""

# Scenes allow some answers more rarely than others: two objects of one color, or one whose size no other has. How often
# they and their families are drawn makes up for it.
_YES = {"equal_size": 0.48, "equal_color": 0.58, "equal_material": 0.48}
_YES_OF_ANY_OTHER = {"size": 0.22, "color": 0.56, "material": 0.22, "shape": 0.39}
_COUNTS = (38, 36, 14, 6, 3, 2, 1)
_COUNTS_OF_UNION = (0, 31, 34, 20, 9, 4, 2, 1)
_COUNTS_OF_ANY_OTHER = (20, 24, 20, 15, 11, 7, 3, 1)
"""in a hundred: what the rule by which CLEVR's generator balances came to when applied to this grammar"""


def _weight(family: Family) -> int:
    """How often a family is drawn; ten unless scenes often lack what it asks about."""
    if family.any_other:
        often = {"exist": (24, 11, 24, 13), "count": (13, 11, 15, 11)}[family.kind]
        return often[list(ATTRIBUTES).index(family.attribute)]
    if family.kind in COMPARISONS:
        return 9  # CLEVR has a tenth fewer of them than of others
    if family.forms == ("same",):
        return 13 if family.attribute == "color" and family.kind.startswith("query_") else 10
    return 13 if family.kind == "equal_color" else 11 if family.forms == ("and",) else 10


_TURN = tuple(index for index, family in enumerate(FAMILIES) for _ in range(_weight(family)))


def make_questions(scene: Scene, *, seed: int = 0, count: int = 10) -> list[dict[str, Any]]:
    """Questions about a scene: `count`, or fewer where fewer are found.

    >>> from bcn.data.clevr_like.scene import make_scene
    >>> make_questions(make_scene(1))[0]["question"]
    'The green sphere has what size?'
    """
    check_objects(scene)
    rng = RandomStream(seed, scene["split"], scene["image_index"], stream=2)
    descriptions, questions = Descriptions(scene), list[dict[str, Any]]()
    turn: list[int] = []
    for _ in range(40 * count):
        if len(questions) == count:
            break
        turn = turn or list(_TURN)
        index = rng.choice(turn)
        turn = [other for other in turn if other != index]
        question = _find_question(rng, scene, descriptions, FAMILIES[index])
        if question and all(question["question"] != other["question"] for other in questions):
            questions.append(
                {
                    "image_index": scene["image_index"],
                    "image_filename": scene["image_filename"],
                    "split": scene["split"],
                    "question_index": scene["image_index"] * count + len(questions),
                    **question,
                    "question_family_index": index,
                }
            )
    return questions


def _find_question(
    rng: RandomStream, scene: Scene, descriptions: Descriptions, family: Family
) -> dict[str, Any] | None:
    """A question of the family, or None where none is found."""
    asks_yes_or_no = not family.kind.startswith("query_") and family.kind != "count"
    for _ in range(1 if asks_yes_or_no else _ANSWERS):  # a second answer would unbalance yes and no
        wanted = _sample_answer(rng, scene, family)
        for _ in range(_ATTEMPTS):
            asked = find_objects(rng, descriptions, family, wanted)
            if asked is None:
                continue
            nodes = program(family.kind, *asked.nouns, either=family.either, shared=asked.shared)
            text = phrase(family.kind, *asked.nouns, choose=rng.choice, either=family.either, shared=asked.shared)
            return {"question": text, "answer": answer(nodes, scene), "program": nodes}
    return None


def _sample_answer(rng: RandomStream, scene: Scene, family: Family) -> str:
    """The answer that the question should have."""
    if family.kind == "count":
        union = family.either and not family.attribute
        weights = _COUNTS_OF_UNION if union else _COUNTS_OF_ANY_OTHER if family.any_other else _COUNTS
        return str(rng.choice([number for number, weight in enumerate(weights) for _ in range(weight)]))
    if family.kind.startswith("query_"):
        attribute = family.kind.removeprefix("query_")
        return str(rng.choice(sorted({thing[attribute] for thing in scene["objects"]})))
    yes = _YES.get(family.kind, 0.5)
    if family.kind == "exist" and family.forms == ("same",):
        yes = _YES_OF_ANY_OTHER[family.attribute] if family.any_other else 0.56 if family.attribute == "color" else 0.5
    return "yes" if rng.uniform() < yes else "no"
