"""Models in folders as the Hugging Face hub has them, and in torch.hub."""

import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml  # type: ignore[import-untyped, unused-ignore]
from helpers.small_weights import scene_run
from helpers.squares import own_layout

import bcn
from bcn.errors import BcnError

pytest.importorskip("huggingface_hub", reason="needs the extra hub")
from huggingface_hub import ModelCard

from bcn.inference.hub import PretrainedModel

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hub") / "bcn"
    PretrainedModel.of("scaled-mnist/bcn").save_pretrained(path)
    return path


def test_what_is_saved_is_loaded(folder: Path) -> None:
    assert {file.name for file in folder.iterdir()} == {"config.json", "model.safetensors", "README.md"}
    loaded, shipped = PretrainedModel.from_pretrained(folder), bcn.load("scaled-mnist/bcn")
    image = torch.rand(2, 1, 128, 128)
    for one, other in zip(loaded(image), shipped.model(image), strict=True):
        assert torch.equal(one, other)
    assert not loaded.training
    assert loaded.reasoner().answers == shipped.answers
    again = bcn.load(folder / "model.safetensors")  # it is a weights file like any other
    assert torch.equal(again.model(image)[0], loaded(image)[0])


def test_the_card_has_the_records_metrics(folder: Path) -> None:
    card = ModelCard.load(folder / "README.md")  # as the hub reads it
    assert card.data.library_name == "bcn"
    assert card.data.pipeline_tag == "image-classification"
    assert {result.metric_name: result.metric_value for result in card.data.eval_results} == {
        "accuracy, all": 0.976,
        "localisation error": 0.020499,
    }
    assert metadata(folder)["model-index"][0]["results"][0]["dataset"]["type"] == "scaled-mnist-v1"
    assert "97.60 %" in card.text
    assert "bcn train table1/bcn --scale cpu --seed 0" in card.text


def test_a_model_that_is_asked_and_was_just_trained(tmp_path: Path) -> None:
    model = PretrainedModel.of(scene_run())
    model.save_pretrained(tmp_path)
    card = ModelCard.load(tmp_path / "README.md")
    assert card.data.pipeline_tag == "visual-question-answering"
    assert any(result.metric_name == "accuracy, relational" for result in card.data.eval_results)
    image, question = torch.rand(2, 3, 75, 75), torch.rand(2, 4, 11)
    assert torch.equal(PretrainedModel.from_pretrained(tmp_path)(image, question), model(image, question))


def test_the_card_of_ones_own_run_says_what_it_is(tmp_path: Path) -> None:
    own_layout(tmp_path / "toy", 30)
    changes = ["epochs=1", "model=clevr/multirn", "optim.lr=0.002"]
    run = bcn.train(tmp_path / "toy", runs=tmp_path / "runs", start="none", changes=changes, threads=1)
    PretrainedModel.of(run.path).save_pretrained(tmp_path / "hub")
    text = (tmp_path / "hub" / "README.md").read_text()
    assert "# own: clevr/multirn\n" in text
    assert "bcn train own --scale cpu --seed 0 --data FOLDER --set epochs=1 --set model=clevr/multirn" in text
    assert "bcn.load" not in text  # there are shipped weights of that name, or may be
    splits = {result["dataset"]["split"] for result in metadata(tmp_path / "hub")["model-index"][0]["results"]}
    assert (run.record() or {})["test_split"] == "val"  # so few images have no test split
    assert splits == {"val"}
    assert bcn.load(tmp_path / "hub").answers == bcn.load(run.path).answers  # the folder is weights like any other


def metadata(folder: Path) -> dict[str, Any]:
    return dict(yaml.safe_load((folder / "README.md").read_text().split("---\n")[1]))


def test_trained_further_and_saved_again(folder: Path, tmp_path: Path) -> None:
    model = PretrainedModel.from_pretrained(folder)
    with torch.no_grad():
        model.get_parameter("model.head.classes.bias").add_(1)
    model.save_pretrained(tmp_path)
    again = PretrainedModel.from_pretrained(tmp_path)
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in model.state_dict().items())


def test_damage_and_exchange_are_refused(folder: Path, tmp_path: Path) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    PretrainedModel.of("scaled-mnist/baseline").save_pretrained(tmp_path / "baseline")
    shutil.copy(tmp_path / "baseline" / "model.safetensors", other / "model.safetensors")
    with pytest.raises(BcnError, match="is not the weights"):
        PretrainedModel.from_pretrained(other)
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-9] ^= 1
    (other / "model.safetensors").write_bytes(content)
    with pytest.raises(BcnError, match="damaged"):
        PretrainedModel.from_pretrained(other)
    config = json.loads((folder / "config.json").read_text())
    config["description"]["model"] = "scaled-mnist/bnc"
    (other / "config.json").write_text(json.dumps(config))
    with pytest.raises(BcnError, match="did you mean"):
        PretrainedModel.from_pretrained(other)


Config = dict[str, Any]
HOSTILE: dict[str, tuple[Callable[[Config], Config | str | None], str]] = {
    "16 TB": (lambda config: config["description"]["arguments"].update(sizes=[2_000_000] * 2), "is not the weights"),
    "6 GB": (lambda config: config["description"]["arguments"].update(sizes=[40_000] * 2), "is not the weights"),
    "sizes whose product overflows": (
        lambda config: config["description"]["arguments"].update(sizes=[2**30] * 3),
        "no model can be built|is not the weights",
    ),
    "an unknown argument": (lambda config: config["description"]["arguments"].update(depth=3), "does not take depth=3"),
    "no description": (lambda config: {}, "cannot be read as a model"),
    "a description of text": (lambda config: {"description": "x"}, "description"),
    "no JSON": (lambda config: "{", "cannot be read as a model"),
    "a list": (lambda config: "[]", "cannot be read as a model"),
    "brackets": (lambda config: "[" * 100_000, "cannot be read as a model"),
    "evidence of text": (lambda config: config.update(evidence="x"), "its evidence is not that of a run"),
    "no accuracy": (lambda config: config["evidence"].update(metrics={"all": {}}), "its evidence is not"),
    "more right than asked": (
        lambda config: config["evidence"]["metrics"]["all"].update(correct=10**9),
        "its evidence is not",
    ),
    "a split of no name": (lambda config: config["evidence"].update(split="dev"), "its evidence is not"),
    "a card of numbers": (lambda config: config["evidence"].update(card=7), "its evidence is not"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_config_is_refused_before_memory_is_taken(name: str, folder: Path, tmp_path: Path) -> None:
    change, sentence = HOSTILE[name]
    other = shutil.copytree(folder, tmp_path / "other")
    config = json.loads((folder / "config.json").read_text())
    changed = change(config)
    content = changed if isinstance(changed, str) else json.dumps(config if changed is None else changed)
    (other / "config.json").write_text(content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BcnError, match=sentence):
        PretrainedModel.from_pretrained(other)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_a_name_of_no_repository_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="give a repository's name"):
        PretrainedModel.from_pretrained(tmp_path / "nowhere" / "at" / "all")


def test_torch_hub() -> None:
    reasoner = torch.hub.load(str(ROOT), "reasoner", "scaled-mnist/bcn", source="local")
    assert reasoner.answers == tuple("0123456789")
    model = torch.hub.load(str(ROOT), "model", "scaled-mnist/bcn", source="local", final_relu=False)
    assert not model.broadcast.final_relu
