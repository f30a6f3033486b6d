"""A BCN in networks that are not ours."""

import copy

import pytest
import torch
from torch import Tensor, nn

from bcn import BcnError, create_model, insert_broadcast
from bcn.models.resnet import ResNet18


class Inverted(nn.Module):
    """A block that is no Sequential, whose last registered convolution is not the one that gives its channels."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Conv2d(12, 20, 1)
        self.expand = nn.Conv2d(8, 12, 3, padding=1)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        return torch.relu(self.project(torch.relu(self.expand(map_BCHW))))


class Digits(nn.Module):
    """A classifier of 28x28 images whose last layer takes no other size."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.unused = nn.Conv2d(8, 8, 1)
        self.block = Inverted()
        self.tail = nn.Conv2d(20, 4, 3, stride=2, padding=1)
        self.fc = nn.Linear(4 * 7 * 7, 10)

    def forward(self, image: Tensor) -> Tensor:
        return self.fc(self.tail(self.block(self.stem(image))).flatten(1))


def digits() -> Digits:
    torch.manual_seed(0)
    return Digits()


@pytest.mark.parametrize(("after", "channels"), [("stem", 8), ("block", 20), ("block.expand", 12), ("stem.1", 8)])
def test_inserts_after_any_submodule_and_keeps_the_weights(after: str, channels: int) -> None:
    model = digits()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    image = torch.rand(3, 1, 28, 28)
    answer = model.eval()(image)
    model.train()
    assert insert_broadcast(model, after=after, sizes=(16, 24)) is model
    assert model.training
    state = model.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in before.items())
    new = set(state) - set(before)
    assert new
    assert all(name.startswith(f"{after}.broadcast.") for name in new)
    assert state[f"{after}.broadcast.reduce.weight"].shape == (channels, channels + 24 + 3, 1, 1)
    outputs = model.eval()(image)
    assert outputs.shape == (3, 10)
    assert not torch.equal(outputs, answer)
    outputs.square().sum().backward()
    trained = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
    assert new <= set(trained)


def test_an_old_checkpoint_loads_into_the_new_model() -> None:
    old, new = digits(), insert_broadcast(Digits(), after="block")
    missing, unexpected = new.load_state_dict(old.state_dict(), strict=False)
    assert not unexpected
    assert all(name.startswith("block.broadcast.") for name in missing)


@pytest.mark.parametrize("after", ["stem", "block"])
def test_deep_copies_run_their_own_bcn(after: str) -> None:
    model = insert_broadcast(digits(), after=after, sizes=(16,)).eval()
    image = torch.rand(2, 1, 28, 28)
    before = model(image)
    copied = copy.deepcopy(model)
    assert torch.equal(copied(image), before)
    with torch.no_grad():
        copied.get_submodule(after).broadcast.reduce.bias += 1
    assert not torch.equal(copied(image), before)
    assert torch.equal(model(image), before)


@pytest.mark.parametrize("after", ["stem", "block"])
def test_compiles_and_exports(after: str) -> None:
    torch._dynamo.reset()
    model = insert_broadcast(digits(), after=after, sizes=(16,)).eval()
    image = torch.rand(2, 1, 28, 28)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(image), model(image))
    torch.testing.assert_close(torch.export.export(model, (image,)).module()(image), model(image))


def test_every_position_sees_the_whole_image() -> None:
    image = torch.rand(1, 1, 28, 28)
    image[:, :, 24:, 24:] += 10
    for model, sees in [(digits(), False), (insert_broadcast(digits(), after="block"), True)]:
        seen = image.clone().requires_grad_()
        tail = model.eval().tail(model.block(model.stem(seen)))
        tail[:, :, 0, 0].square().sum().backward()
        assert seen.grad[:, :, 24:, 24:].any().item() is sees


def test_reduces_to_the_channels_that_are_asked_for() -> None:
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU())
    insert_broadcast(model, after="1", sizes=(8,), reduce_to=5, planes="xy", origin="top-left")
    assert model(torch.rand(1, 3, 9, 7)).shape == (1, 5, 7, 5)
    assert model[1].broadcast.reduce.in_channels == 16 + 8 + 2


def test_takes_the_models_type_and_mode() -> None:
    model = insert_broadcast(digits().double().eval(), after="block")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float64}
    assert not any(module.training for module in model.modules())


def test_finding_the_channels_changes_nothing() -> None:
    model = digits().train()
    model.stem[1].eval()  # as in a network with frozen statistics
    insert_broadcast(model, after="block")
    assert model.training
    assert not model.stem[1].training
    assert torch.equal(model.stem[1].get_buffer("running_mean"), torch.zeros(8))
    assert len(model.block._forward_hooks) == 1


def test_models_that_take_no_images_alone_need_an_example() -> None:
    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.conv = nn.Embedding(10, 6), nn.Conv2d(6, 4, 1)

        def forward(self, tokens: Tensor) -> Tensor:
            return self.conv(self.embed(tokens).permute(0, 3, 1, 2))

    with pytest.raises(BcnError, match="give `image`"):
        insert_broadcast(Tokens(), after="conv")
    tokens = torch.randint(10, (2, 5, 5))
    assert insert_broadcast(Tokens(), after="conv", image=tokens)(tokens).shape == (2, 4, 5, 5)


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ("blok", "did you mean 'block'"),
        ("nothing-like-it", "accepted are stem, stem.0, stem.1, stem.2, unused, block"),
        ("unused", "never called"),
        ("fc", "one map"),
    ],
)
def test_bad_places(after: str, message: str) -> None:
    model = digits()
    before = str(model)
    with pytest.raises(BcnError, match=message):
        insert_broadcast(model, after=after, image=torch.zeros(1, 1, 28, 28))
    assert str(model) == before
    assert not any(module._forward_hooks for module in model.modules())


def test_twice_at_one_place() -> None:
    model = insert_broadcast(digits(), after="block")
    with pytest.raises(BcnError, match="already"):
        insert_broadcast(model, after="block")


def test_resnet18_bcn_is_made_by_insertion() -> None:
    inserted = insert_broadcast(ResNet18(), after="layer3", image=torch.zeros(1, 3, 32, 32))
    ours = create_model("stl10/resnet18-bcn")
    assert list(inserted.state_dict()) == list(ours.state_dict())
    assert ours.layer3.broadcast.reduce.out_channels == 256


def test_a_sequential_with_its_own_forward_runs_the_bcn() -> None:
    class Own(nn.Sequential):
        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return self[1](self[0](image))

    network = nn.Sequential(Own(nn.Conv2d(3, 8, 3), nn.ReLU()), nn.Conv2d(8, 2, 3))
    network = insert_broadcast(network, after="0", sizes=(4, 4))
    network(torch.rand(2, 3, 12, 12)).sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_a_reduction_to_nothing_is_refused() -> None:
    with pytest.raises(BcnError, match="at least 1"):
        insert_broadcast(nn.Sequential(nn.Conv2d(3, 8, 3)), after="0", reduce_to=0)


class Twice(nn.Module):
    """As torchvision's blocks, whose only ReLU runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu, self.second = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3)

    def forward(self, image: Tensor) -> Tensor:
        return self.relu(self.second(self.relu(self.first(image))))


class Children(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3)

    def forward(self, map_BCHW: Tensor) -> Tensor:
        for child in self.children():
            map_BCHW = child(map_BCHW)
        return map_BCHW


class Dense(nn.ModuleDict):
    """As torchvision's dense blocks, whose layers take lists of maps."""

    def forward(self, map_BCHW: Tensor) -> Tensor:
        maps = [map_BCHW]
        for layer in self.values():
            maps.append(layer(maps))
        return torch.cat(maps, 1)


class Joined(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 5, 3, padding=1)

    def forward(self, maps: list[Tensor]) -> Tensor:
        return self.conv(torch.cat(maps, 1))


RELU = nn.ReLU()


@pytest.mark.parametrize(
    ("network", "after"),
    [
        (Twice(), "relu"),
        (nn.Sequential(Children(), nn.ReLU()), "0"),
        (nn.Sequential(nn.Conv2d(3, 8, 3), RELU, nn.Conv2d(8, 8, 3), RELU), "3"),
        (nn.Sequential(nn.Conv2d(3, 8, 3), RELU, nn.Conv2d(8, 16, 3), RELU), "1"),
        (nn.Sequential(nn.Conv2d(3, 3, 3), Dense({"only": Joined()})), "1"),
    ],
)
def test_where_it_would_run_twice_it_is_refused_and_nothing_changes(network: nn.Module, after: str) -> None:
    image = torch.rand(1, 3, 16, 16)
    before, names = network(image), list(network.state_dict())
    with pytest.raises(BcnError, match="insert after another one"):
        insert_broadcast(network, after, sizes=(8,))
    assert torch.equal(network(image), before)
    assert list(network.state_dict()) == names
    with pytest.raises(BcnError, match=r"unknown submodule '1'|insert after another one"):
        insert_broadcast(network, 1, sizes=(8,))  # type: ignore[arg-type]
