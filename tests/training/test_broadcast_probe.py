"""What a run says of its BCN: active channels, the vector's share, and accuracy without what it says of an image."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bcn import BroadcastConv, create_model
from bcn.data.sort_of_clevr import SortOfClevr, make_sort_of_clevr
from bcn.errors import BcnError
from bcn.models.balance import balance_broadcast
from bcn.paper.tables import find_recipe
from bcn.training.broadcast_probe import ablate, active_channels, collect, probe, replaced_vector
from bcn.training.loop import train
from bcn.training.metrics import compute_metrics, evaluate
from bcn.training.recipe import Recipe, fingerprint


@pytest.fixture(scope="module")
def dataset() -> SortOfClevr:
    return make_sort_of_clevr("sort-of-clevr-v1", "val", images=70)


@pytest.fixture
def model(dataset: SortOfClevr) -> Any:
    torch.manual_seed(0)
    model = create_model("sort-of-clevr/multirn", final_relu=False).eval()
    batch = dataset[range(70)]
    assert batch.question is not None
    return balance_broadcast(model, dataset.preprocessing(batch.image), batch.question)


def test_a_channel_is_active_where_it_varies() -> None:
    vector_BK = torch.randn(100, 8)
    vector_BK[:, 3] = 7.0  # the same for all images
    vector_BK[:, 4] = 0.0
    vector_BK[:, 5] *= 1e-4  # hardly varies
    assert active_channels(vector_BK).tolist() == [True] * 3 + [False] * 3 + [True] * 2
    assert active_channels(vector_BK * 1e-6).tolist() == active_channels(vector_BK).tolist()
    assert not active_channels(torch.zeros(9, 4)).any()


def test_a_balanced_model_is_probed_as_it_was_balanced(model: Any, dataset: SortOfClevr) -> None:
    found = probe(model, dataset)
    assert found is not None
    assert found["active_channels"] == found["channels"] == 256
    assert found["vector_share"] == pytest.approx(0.25 / 3.25, abs=1e-4)


def test_dead_channels_are_not_counted(model: Any, dataset: SortOfClevr) -> None:
    with torch.no_grad():
        model.broadcast.k[-1].weight[:250] = 0
    found = probe(model, dataset)
    assert found is not None
    assert found["active_channels"] == 6


def test_nothing_changes_in_the_model(model: Any, dataset: SortOfClevr) -> None:
    before, modes = model.state_dict(), [module.training for module in model.modules()]
    before = {name: tensor.clone() for name, tensor in before.items()}
    ablate(model, dataset)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert [module.training for module in model.modules()] == modes
    assert "pooled" not in vars(model.broadcast)


def test_accuracy_without_what_the_vector_says(model: Any, dataset: SortOfClevr) -> None:
    found = ablate(model, dataset)
    assert found is not None
    assert (
        found["as_trained"]["accuracy"]
        == compute_metrics(evaluate(model, dataset, batch_size=9), dataset)["all"]["accuracy"]
    )
    with torch.no_grad():
        collected = collect(model, dataset)
        assert collected is not None
        of_vector = model.relation.g.first.parts()[1]
        model.relation.g.first.bias += of_vector @ collected.vector_BK.mean(0)
        of_vector.zero_()  # the mean in the bias, and nothing of the vector
    alone = compute_metrics(evaluate(model, dataset, batch_size=9), dataset)
    for name in ("relational", "non_relational"):
        assert found["mean_vector"][name] == alone[name]["accuracy"]


def test_a_shuffled_vector_is_that_of_another_image(model: Any, dataset: SortOfClevr) -> None:
    given = dataset.preprocessing(dataset[range(5)].image)
    with torch.no_grad():
        map_BCHW = model.features(given)
        plain_BK, _ = model.broadcast.pooled(map_BCHW)
        with replaced_vector(model.broadcast, lambda vector_BK: vector_BK.roll(1, dims=0)):
            other_BK, _ = model.broadcast.pooled(map_BCHW)
    assert torch.equal(other_BK, plain_BK[[4, 0, 1, 2, 3]])


def test_a_model_without_a_bcn_has_nothing_to_probe(dataset: SortOfClevr) -> None:
    for name in ("sort-of-clevr/multirn-no-bcn", "sort-of-clevr/rn", "sort-of-clevr/mlp"):
        assert probe(create_model(name), dataset) is None
        assert ablate(create_model(name), dataset) is None


def test_a_bcn_alone_has_channels_and_no_share(dataset: SortOfClevr) -> None:
    class Alone(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = BroadcastConv(3, (8, 8), final_relu=False)

        def forward(self, image: Tensor, question: Tensor) -> Tensor:
            broadcast: Tensor = self.layer(image)
            return broadcast

    found = probe(Alone(), dataset)
    assert found is not None
    assert found.keys() == {"active_channels", "channels"}
    assert 0 < found["active_channels"] < found["channels"] == 8, "a maximum that is the white ground everywhere"


# ---------------------------------------------------------------------------------------------------------------- runs


def smoke(**changes: Any) -> Recipe:
    return replace(find_recipe("table3/multirn", "smoke"), arguments=(("final_relu", False),), **changes)


def test_a_run_says_what_its_bcn_does(tmp_path: Path) -> None:
    record = train(smoke(initialisation="balanced"), seed=0, runs=tmp_path)
    assert record["recipe"]["initialisation"] == "balanced"
    for event in record["curve"]:
        assert event["channels"] == 256
        assert 0 <= event["active_channels"] <= 256
        assert 0 <= event["vector_share"] <= 1
    for split in ("val", "test"):
        assert {"as_trained", "mean_vector", "shuffled_vector"} < set(record["broadcast"][split])
    lines = (tmp_path / record["run"] / "metrics.jsonl").read_text().splitlines()
    assert "active_channels" in json.loads(lines[-1])


def test_the_initial_weights_are_those_of_the_recipe(tmp_path: Path) -> None:
    found = {}
    for name in ("default", "positive-bias", "balanced"):
        record = train(smoke(initialisation=name, epochs=1), seed=0, runs=tmp_path)
        assert record["run"] not in found
        found[record["run"]] = record["curve"][0]["loss"]
    assert len(set(found.values())) == 3


def test_a_model_without_a_bcn_cannot_start_balanced(tmp_path: Path) -> None:
    recipe = replace(find_recipe("table3/mlp", "smoke"), initialisation="balanced")
    with pytest.raises(BcnError, match="initialisation=default"):
        train(recipe, seed=0, runs=tmp_path)
    assert not list(tmp_path.iterdir())


def test_runs_of_before_keep_their_names() -> None:
    recipe = find_recipe("table3/multirn-h", "cpu")
    assert fingerprint(recipe) == fingerprint(replace(recipe, initialisation="default", batch_of="images"))
    assert fingerprint(recipe) != fingerprint(replace(recipe, initialisation="balanced"))
    assert fingerprint(recipe) != fingerprint(replace(recipe, batch_of="pairs"))


def test_pairs_are_trained_on_and_resumed_exactly(tmp_path: Path) -> None:
    recipe = smoke(batch_of="pairs", batch_size=16, curriculum_epochs=0, initialisation="balanced", epochs=2)
    whole = train(recipe, seed=0, runs=tmp_path / "whole")
    assert whole["steps"] == 2 * (4 * 20 // 16)
    assert whole["questions"] == 2 * 80
    stop_after(recipe, 7, tmp_path / "parts")
    parts = train(recipe, seed=0, runs=tmp_path / "parts")
    assert parts["sessions"] == 2
    weights = [(tmp_path / name / whole["run"] / "last.safetensors").read_bytes() for name in ("whole", "parts")]
    assert weights[0] == weights[1]


def stop_after(recipe: Recipe, steps: int, runs: Path) -> None:
    """Train so many steps, save, and leave as a signal does."""
    from bcn.training.interrupts import Interrupted
    from bcn.training.loop import Trainer

    step, done = Trainer.step, list[None]()

    def counted(self: Trainer, *given: Any, **named: Any) -> Tensor:
        if len(done) == steps:
            raise Interrupted(15)
        done.append(None)
        return step(self, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "step", counted)
        with pytest.raises(Interrupted):
            train(recipe, seed=0, runs=runs)


def test_pairs_have_no_half_of_an_image_first(tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="batch_of=pairs"):
        train(smoke(batch_of="pairs", curriculum_epochs=1), seed=0, runs=tmp_path)


def test_what_is_broadcast_after_asking_is_worth(dataset: SortOfClevr) -> None:
    """An oracle in plain torch: the vectors of each round, and layers that say their mean whatever they see."""
    torch.manual_seed(0)
    model: Any = create_model("sort-of-clevr/multirn-rounds").eval()
    relation = model.relation
    with torch.no_grad():
        for says in relation.says:
            torch.nn.init.normal_(says.weight, std=0.5)  # so that the rounds matter
    result = ablate(model, dataset)
    assert result is not None
    batch = dataset[range(70)]
    assert batch.question is not None
    with torch.no_grad():
        map_BCHW = model.features(dataset.preprocessing(batch.image))
        states = list(relation.states(map_BCHW, batch.question))
        means = []
        for says, before_BQnW in zip(relation.says, states, strict=False):
            said_BQnW = before_BQnW.relu() @ says.weight.flatten(1).T + says.bias
            means.append(said_BQnW.amax(dim=2)[batch.answer >= 0].mean(dim=0))
    assert result["channels"] == 2 * 96
    assert 0 < result["active_channels"] <= 192
    accuracy = compute_metrics(evaluate(model, dataset, batch_size=64), dataset)["all"]["accuracy"]
    assert result["as_trained"]["accuracy"] == accuracy
    with torch.no_grad():
        for says, mean_W in zip(relation.says, means, strict=True):
            says.weight.zero_()
            says.bias.copy_(mean_W)
    muted = compute_metrics(evaluate(model, dataset, batch_size=64), dataset)["all"]["accuracy"]
    assert result["mean_vector"]["accuracy"] == pytest.approx(muted, abs=2 / batch.answer.numel())
    assert result["shuffled_vector"]["accuracy"] != result["as_trained"]["accuracy"]
