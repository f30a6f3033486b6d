"""clevr-like-v2: CLEVR's words, forms, lengths, kinds and answers; every answer is the oracle's."""

import hashlib
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from helpers.clevr_oracle import oracle

from bcn.data.clevr_like.families import COMPARISONS, FAMILIES
from bcn.data.clevr_like.grammar import SYNONYMS
from bcn.data.clevr_like.make import make_clevr_like
from bcn.data.clevr_like.phrasing import WORDS
from bcn.data.clevr_like.program import run
from bcn.data.clevr_like.questions_v2 import make_questions
from bcn.data.clevr_like.scene import make_scene
from bcn.data.clevr_like.spec import SplitSpec
from bcn.data.registry import open_dataset
from bcn.data.vqa.clevr import ATTRIBUTES, KINDS, kind_of
from bcn.data.vqa.clevr import FAMILIES as KINDS_OF
from bcn.data.vqa.vocabulary import tokenize
from bcn.errors import BcnError
from bcn.io import data_root

Asked = list[tuple[dict[str, Any], dict[str, Any]]]
"""scenes, each with a question about it"""


@pytest.fixture(scope="module")
def asked() -> Asked:
    return [(scene, question) for scene in map(make_scene, range(150)) for question in make_questions(scene)]


def test_answers_are_the_oracles(asked: Asked) -> None:
    for scene, question in asked:
        assert question["answer"] == str(oracle(question["program"], scene))


@pytest.mark.data("clevr")
def test_answers_on_the_original_scenes_are_the_oracles() -> None:
    folder = data_root() / "clevr" / "scenes"
    scenes = [scene for path in sorted(folder.glob("*.json")) for scene in json.loads(path.read_text())["scenes"]]
    families: Counter[int] = Counter()
    for scene in scenes[::12]:
        questions = make_questions(scene)
        assert len(questions) == 10
        families.update(question["question_family_index"] for question in questions)
        assert all(question["answer"] == str(oracle(question["program"], scene)) for question in questions)
    assert len(families) == 90


def test_the_words_are_clevrs(asked: Asked) -> None:
    assert len(WORDS) == len(set(WORDS)) == 81
    assert {word for _, question in asked for word in tokenize(question["question"])} == set(WORDS)


def test_ninety_families_are_asked_equally_often(asked: Asked) -> None:
    """24 of chains, 5 and 8 of two relations and unions, 28 of what is the same, 25 of pairs."""
    assert len(set(FAMILIES)) == 90
    forms = Counter(
        "union" if family.either else family.forms[0] if len(family.forms) == 1 else "pair" for family in FAMILIES
    )
    assert forms == {
        "plain": 6, "one hop": 6, "two hops": 6, "three hops": 6, "and": 5, "union": 8, "same": 28, "pair": 25
    }  # fmt: skip
    counts = Counter(question["question_family_index"] for _, question in asked)
    assert len(counts) == 90
    assert max(counts.values()) < 2.2 * len(asked) / 90
    assert all(FAMILIES[q["question_family_index"]].kind == kind_of(q["program"]) for _, q in asked)


def test_kinds_are_as_frequent_as_the_docs_say_of_clevr(asked: Asked) -> None:
    """The column CLEVR of docs/reference/clevr-like.md: inferred from 90 families, or counted where a comment says."""
    family_of = {kind: family for family, kinds in KINDS_OF.items() for kind in kinds}
    shares = Counter(family_of[kind_of(question["program"])] for _, question in asked)
    expected = {
        "exist": 13.3,
        "count": 23.3,
        "compare_numbers": 9.0,  # counted
        "query_attribute": 35.6,
        "compare_attribute": 17.8,
    }
    for family, share in expected.items():
        assert abs(100 * shares[family] / len(asked) - share) < 3, family
    same = [any(node["function"].startswith("same_") for node in q["program"]) for _, q in asked]
    assert 0.27 < sum(same) / len(same) < 0.35  # counted: 31.2 %
    there = [question["question"].startswith("There is a") for _, question in asked]
    assert 0.18 < sum(there) / len(there) < 0.25  # counted: 21.7 %


def test_questions_keep_their_length(asked: Asked) -> None:
    """What the grammar gives; CLEVR's own lengths were not at hand to compare with."""
    lengths = [len(tokenize(question["question"])) for _, question in asked]
    assert 17.7 < sum(lengths) / len(lengths) < 19.3
    assert max(lengths) <= 43
    assert min(lengths) >= 4


def test_answers_are_balanced(asked: Asked) -> None:
    answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for _, question in asked:
        answers[kind_of(question["program"])][question["answer"]] += 1
    assert set(answers) == set(KINDS)
    for kind, counts in answers.items():
        commonest = max(counts.values()) / sum(counts.values())
        fair = {"count": 0.38, "query_color": 1 / 8, "query_shape": 1 / 3}.get(kind, 1 / 2)
        assert commonest < fair + 4 * (fair * (1 - fair) / sum(counts.values())) ** 0.5, (kind, counts)
    counts = answers["count"]
    assert [counts[str(n)] > counts[str(n + 1)] for n in range(1, 4)] == [True] * 3
    assert len(counts) > 5


FORMS = {
    "how many": r"How many [a-z ]+ are (there|visible)\?",
    "what number": r"What number of [a-z ]+ are (there|visible)\?",
    "any visible": r"Are any [a-z ]+ visible\?",
    "is there a": r"Is there a [a-z ]+\?",
    "are there any": r"Are there any [a-z ]+\?",
    "how big": r"How big is the [a-z ]+\?",
    "the one has what": r"The [a-z ]+ (is|has) what (color|shape)\?",
    "made of": r"What is the [a-z ]+ made of\?",
    "there is, what is it": r"There is a [a-z ]+; what (size|color|material|shape) is it\?",
    "there is, its": r"There is a [a-z ]+; what is its (size|color|material|shape)\?",
    "there is, made of": r"There is an?o?t?h?e?r? [a-z ]+; what is it made of\?",
    "there is, how many": r"There is a [a-z ]+; (how many|what number of) [a-z ]+ are [a-z ]+ it\?",
    "there is, is there": r"There is a [a-z ]+; (is there a|are there any) [a-z ]+ it\?",
    "there is, is it": r"There is a [a-z ]+; is it (made of )?the same (size|color|material|shape) as the [a-z ]+\?",
    "there is, does it": r"There is a [a-z ]+; does it have the same [a-z ]+ as the [a-z ]+\?",
    "there is, is its": r"There is a [a-z ]+; is its [a-z]+ the same as the [a-z ]+\?",
    "there is another": r"There is another [a-z ]+; [a-z ]+\?",
    "anything else": r"Is there anything else (that (is|has)|of|that is made of) the same [a-z]+ as the [a-z ]+\?",
    "any other things": r"Are there any other (things|objects) (that (are|have)|of|that are made of) the same .*",
    "another": r"Is there another [a-z ]+ the same [a-z ]+\?",
    "how many other": r"How many other [a-z ]+ (are|have|are there of|are made of) the same [a-z]+ as the [a-z ]+\?",
    "does the": r"Does the [a-z ]+ have the same [a-z]+ as the [a-z ]+\?",
    "do the": r"Do the [a-z ]+ and the [a-z ]+ have the same [a-z]+\?",
    "are the": r"Are the [a-z ]+ and the [a-z ]+ (made of )?the same [a-z]+\?",
    "is the size of": r"Is the (size|color|material|shape) of the [a-z ]+ the same as the [a-z ]+\?",
    "equal number": r"Are there (an equal|the same) number of [a-z ]+ and [a-z ]+\?",
    "number the same": r"Is the number of [a-z ]+ the same as the number of [a-z ]+\?",
    "fewer": r"Are there fewer [a-z ]+ than [a-z ]+\?",
    "less": r"Is the number of [a-z ]+ less than the number of [a-z ]+\?",
    "more": r"Are there more [a-z ]+ than [a-z ]+\?",
    "greater": r"Is the number of [a-z ]+ greater than the number of [a-z ]+\?",
    "both": r".* (is|are) both [a-z ]+ the [a-z ]+ and [a-z ]+ the .*",
    "either": r"(How many|What number of) [a-z ]+ are either [a-z ]+ or [a-z ]+\?",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_spoken(form: str, asked: Asked) -> None:
    assert any(re.fullmatch(FORMS[form], question["question"]) for _, question in asked)


def test_the_sentence_mentions_what_the_program_filters(asked: Asked) -> None:
    meaning = {word: name for name, words in SYNONYMS.items() for word in words if " " not in word}
    values = {value for attribute in ATTRIBUTES.values() for value in attribute}
    for _, question in asked:
        words = [
            word.removesuffix("s") if word not in ("objects", "things") else "thing"
            for word in tokenize(question["question"])
        ]
        mentioned = Counter(meaning.get(word, word) for word in words)
        functions = [(node["function"], *node["value_inputs"]) for node in question["program"]]
        filtered = Counter(rest[0] for name, *rest in functions if name.startswith("filter"))
        mentioned["large"] -= "ow big is" in question["question"]
        assert {word: count for word, count in mentioned.items() if word in values and count} == dict(filtered)
        related = [rest[0] for name, *rest in functions if name == "relate"]
        assert sorted(re.findall(r"\b(left|right|front|behind)\b", question["question"])) == sorted(related)
        shared = [name.removeprefix("same_") for name, *_ in functions if name.startswith("same_")]
        if shared:
            assert f"the same {shared[0]} as the" in question["question"]


def test_what_is_asked_is_not_given_away(asked: Asked) -> None:
    """Nor compared with itself, nor meant by words that mean several objects."""
    for scene, question in asked:
        program, kind = question["program"], kind_of(question["program"])
        values = run(program, scene)
        attribute = kind.partition("_")[2]
        ends = [node["inputs"][0] for node in program if node["function"] == f"query_{attribute}"]
        for end in ends:
            place = program[end]["inputs"][0]
            while program[place]["function"].startswith("filter"):
                assert program[place]["function"] != f"filter_{attribute}"
                place = program[place]["inputs"][0]
            assert program[place]["function"] != f"same_{attribute}"
        assert len({values[end] for end in ends}) == len(ends)
        if kind in COMPARISONS:
            first, second = (program[node]["inputs"][0] for node in program[-1]["inputs"])
            assert values[first] != values[second]


def test_ten_questions_of_ten_families_for_every_image(asked: Asked) -> None:
    of_image: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for _, question in asked:
        of_image[question["image_index"]].append(question)
    for questions in of_image.values():
        assert len({question["question_family_index"] for question in questions}) == 10
        assert len({question["question"] for question in questions}) == 10
    assert len({question["question_index"] for _, question in asked}) == len(asked)


def test_more_questions_than_families() -> None:
    questions = make_questions(make_scene(3), count=100)
    assert len({question["question"] for question in questions}) == 100


def test_a_scene_of_one_object_is_asked_about() -> None:
    scene = make_scene(0)
    alone = scene | {"objects": scene["objects"][:1], "relationships": {name: [[]] for name in scene["relationships"]}}
    questions = make_questions(alone)
    assert questions
    assert all(question["answer"] == str(oracle(question["program"], alone)) for question in questions)


def test_clevr_like_v2_is_frozen(asked: Asked) -> None:
    """A changed generator is a new name: clevr-like-v3."""
    text = json.dumps([question for _, question in asked[:400]], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "5e7010bb11a58cd9"


def test_a_version_is_made_and_opened_by_its_name(tmp_path: Path) -> None:
    for version in ("clevr-like-v1", "clevr-like-v2"):
        directory = tmp_path / version
        assert make_clevr_like(directory, SplitSpec(size=16, version=version), 2, done=lambda count: None)
        dataset = open_dataset(version, "train", data=tmp_path)
        assert dataset.name == version
        assert len(dataset) == 2
        text = json.loads((directory / "questions" / "CLEVR_train_questions.json").read_text())
        assert text["info"]["version"] == version
    same = ["images/train/CLEVR_train_000001.png", "scenes/CLEVR_train_scenes.json"]
    first, second = ((tmp_path / version / same[0]).read_bytes() for version in ("clevr-like-v1", "clevr-like-v2"))
    assert first == second
    with pytest.raises(BcnError, match=r"was made with .*clevr-like-v1"):
        make_clevr_like(tmp_path / "clevr-like-v1", SplitSpec(size=16, version="clevr-like-v2"), 2)
    with pytest.raises(BcnError, match="holds clevr-like-v1, not clevr-like-v2"):
        open_dataset("clevr-like-v2", "train", data=tmp_path / "clevr-like-v1")
    with pytest.raises(BcnError, match="unknown grammar 'clevr-like-v3': did you mean 'clevr-like-v2'"):
        SplitSpec(version="clevr-like-v3")
