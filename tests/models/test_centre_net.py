"""Detection: boxes of scenes, a loss that the right answer minimises, and average precision by another route."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bcn.data.clevr_like import camera
from bcn.data.clevr_like.boxes import LABELS, visible_boxes
from bcn.data.clevr_like.render import render_scene
from bcn.data.clevr_like.scene import make_scene
from bcn.data.contact_sheet import contact_sheet
from bcn.data.dataset import Batch, Dataset
from bcn.data.export import export_dataset
from bcn.data.registry import open_dataset
from bcn.errors import BcnError
from bcn.inference.reasoner import Reasoner
from bcn.models.centre_net import CentreNet, decode, detection_loss
from bcn.models.registry import create_model
from bcn.training.average_precision import (
    Detections,
    average_precision,
    box_iou,
    read_detections,
    true_detections,
)
from bcn.training.metrics import compute_metrics, evaluate


def ball(x: float, y: float, radius: float) -> dict[str, Any]:
    return {"3d_coords": [x, y, radius], "shape": "sphere", "rotation": 0.0}


def outline(thing: dict[str, Any]) -> np.ndarray:
    """The box of a ball by projecting 40,000 points of its surface."""
    generator = np.random.default_rng(0)
    points = generator.normal(size=(40_000, 3))
    points = thing["3d_coords"] + thing["3d_coords"][2] * points / np.linalg.norm(points, axis=1, keepdims=True)
    columns, rows, _ = camera.project(camera.POSITION, points).T
    scale = camera.WIDTH, camera.HEIGHT, camera.WIDTH, camera.HEIGHT
    return np.array([columns.min(), rows.min(), columns.max(), rows.max()]) / scale


def test_the_box_of_a_ball_is_its_outline() -> None:
    far, near = ball(-1.0, 2.0, 0.35), ball(1.5, -1.0, 0.7)
    boxes = visible_boxes({"objects": [far, near], "camera": list(camera.POSITION)})
    assert boxes.label.tolist() == [LABELS.index("sphere")] * 2
    for box, thing in zip(boxes.box, (far, near), strict=True):
        assert np.abs(box - outline(thing)).max() < 2 / camera.HEIGHT  # the distance of two rays


def test_what_is_hidden_has_no_box() -> None:
    near, far = ball(0.0, 0.0, 0.7), ball(0.0, 2.0, 0.35)
    assert len(visible_boxes({"objects": [near, far], "camera": [0.0, -9.0, 0.7]}).box) == 1
    assert len(visible_boxes({"objects": [near, far], "camera": [9.0, -9.0, 0.7]}).box) == 2


def test_each_object_of_a_scene_has_one() -> None:
    for index in range(5):
        scene = make_scene(index)
        boxes = visible_boxes(scene)
        assert [LABELS[label] for label in boxes.label] == [thing["shape"] for thing in scene["objects"]]
        assert (boxes.box[:, 2:] > boxes.box[:, :2]).all()


def in_cells(boxes: Tensor, labels: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Labels (1, n) and boxes (1, H, W, 4) of an image, cell by cell."""
    label_HW, box_HW4 = torch.full((size, size), -100), torch.full((size, size, 4), torch.nan)
    for box, label in zip(boxes, labels, strict=True):
        column, row = ((box[:2] + box[2:]) / 2 * size).int().tolist()
        label_HW[row, column], box_HW4[row, column] = label, box
    return label_HW.flatten()[None], box_HW4[None]


def perfect(boxes: Tensor, labels: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The output that says all of it, with certainty."""
    logits, output = torch.full((size, size, 3), -12.0), torch.zeros(size, size, 4)
    centre = (boxes[:, :2] + boxes[:, 2:]) / 2 * size
    for place, box, label in zip(centre, boxes, labels, strict=True):
        column, row = int(place[0]), int(place[1])
        logits[row, column, label] = 12
        output[row, column] = torch.cat([place - place.floor(), 5 * (box[2:] - box[:2])])
    return logits.flatten(0, 1)[None], output.flatten(0, 1)[None]


def test_the_right_output_is_decoded_and_costs_nothing() -> None:
    boxes = torch.tensor([[0.1, 0.2, 0.35, 0.5], [0.5, 0.55, 0.9, 0.8], [0.6, 0.1, 0.7, 0.2]])
    labels = torch.tensor([0, 2, 2])
    logits, output = perfect(boxes, labels, 32)
    assert detection_loss(logits, output, *in_cells(boxes, labels, 32)) < 1e-2
    ((found, given, score),) = decode(logits, output, (32, 32), most=3)
    order = box_iou(boxes, found).argmax(dim=1)
    torch.testing.assert_close(found[order], boxes, rtol=0, atol=1e-5)
    assert torch.equal(given[order], labels)
    assert score.min() > 0.99
    assert detection_loss(logits.roll(1, dims=1), output.roll(1, dims=1), *in_cells(boxes, labels, 32)) > 3


def test_the_loss_by_hand() -> None:
    """One class and object on 4 x 3 cells: equation 1 of CenterNet, cell by cell, in plain Python."""
    torch.manual_seed(0)
    logits, output = torch.randn(2, 12, 1, dtype=torch.float64), torch.randn(2, 12, 4, dtype=torch.float64)
    box = torch.tensor([0.2, 0.1, 0.5, 0.7], dtype=torch.float64)  # its centre is in column 1 and row 1 of 3 x 4
    label_Bn, true_BHW4 = torch.full((2, 12), -100), torch.full((2, 4, 3, 4), torch.nan, dtype=torch.float64)
    label_Bn[1, 4], true_BHW4[1, 1, 1] = 0, box
    expected = sum(abs(a - b) for a, b in zip(output[1, 4].tolist(), [0.05, 0.6, 1.5, 3.0], strict=True))
    for image in range(2):
        for row in range(4):
            for column in range(3):
                share = 1 / (1 + math.exp(-logits[image, 3 * row + column, 0].item()))
                square = (row - 1) ** 2 + (column - 1) ** 2
                heat = math.exp(-square / (2 * 0.6**2)) if image else 0
                if image and not square:
                    expected -= (1 - share) ** 2 * math.log(share)
                else:
                    expected -= (1 - heat) ** 4 * share**2 * math.log(1 - share)
    assert detection_loss(logits, output, label_Bn, true_BHW4).item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_average_precision_by_thresholds(seed: int) -> None:
    """For every score as a threshold, match what is above it anew; then the area under the best precision onwards."""
    generator = torch.Generator().manual_seed(seed)

    def boxes(count: int) -> Tensor:
        corner = torch.rand(count, 2, generator=generator) * 4
        return torch.cat([corner, corner + 1 + torch.rand(count, 2, generator=generator)], 1)

    true = [boxes(4) for _ in range(3)]
    given = [torch.cat([part[:3] + 0.3 * torch.rand(3, 4, generator=generator), boxes(3)]) for part in true]
    scores = [torch.rand(6, generator=generator) for _ in true]

    def counts(threshold: float) -> tuple[int, int]:
        right = wrong = 0
        for part, guesses, score in zip(true, given, scores, strict=True):
            free = list(range(len(part)))
            for number in sorted(range(6), key=lambda n: -float(score[n])):
                if score[number] < threshold:
                    continue
                overlaps = {place: overlap(guesses[number], part[place]) for place in free}
                best = max(overlaps, key=overlaps.__getitem__, default=None)
                if best is not None and overlaps[best] >= 0.5:
                    free.remove(best)
                    right += 1
                else:
                    wrong += 1
        return right, wrong

    points = [counts(float(score)) for score in torch.cat(scores).sort(descending=True).values]
    area, before = 0.0, 0.0
    for place, (right, _) in enumerate(points):
        best = max(one / (one + other) for one, other in points[place:])
        area, before = area + (right / 12 - before) * best, right / 12
    label = torch.zeros(6, dtype=torch.int64)
    found = [Detections(box, label, score) for box, score in zip(given, scores, strict=True)]
    measured = average_precision(
        list(zip(found, (Detections(box, label[:4], torch.ones(4)) for box in true), strict=True))
    )
    assert measured == pytest.approx(area, abs=1e-6)


def overlap(one: Tensor, other: Tensor) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    shared = float(max(wide, 0) * max(high, 0))
    areas = sum(float((box[2] - box[0]) * (box[3] - box[1])) for box in (one, other))
    return shared / (areas - shared)


def test_it_learns_where_a_square_is() -> None:
    torch.manual_seed(0)
    image, boxes, label = torch.zeros(16, 3, 64, 64), [], torch.zeros(1, dtype=torch.int64)
    for number in range(16):
        x, y = torch.randint(0, 44, (2,)).tolist()
        image[number, :, y : y + 20, x : x + 20] = 1
        boxes.append(torch.tensor([[x, y, x + 20, y + 20]]) / 64)
    label_Bn, box_BHW4 = (torch.cat(part) for part in zip(*(in_cells(box, label, 16) for box in boxes), strict=True))
    model = CentreNet(1, nn.Identity())
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(40):
        optimiser.zero_grad()
        logits, output = model(image)
        (detection_loss(logits, output, label_Bn, box_BHW4) / 16).backward()
        optimiser.step()
    batch = Batch(image, label_Bn, box=box_BHW4)
    with torch.inference_mode():
        logits, output = model(image)
        found = read_detections(logits, output, box_BHW4)
    assert average_precision(list(zip(found, true_detections(batch), strict=True))) > 0.8


@pytest.fixture(scope="module")
def rendered() -> Dataset:
    pytest.importorskip("numba")
    return open_dataset("clevr-boxes-v1", "val", images=4)


def test_the_data_set_has_the_boxes_of_its_scenes(rendered: Dataset) -> None:
    batch = rendered[range(4)]
    assert batch.box is not None
    for number in range(4):
        scene = make_scene(number, split="val")
        boxes = visible_boxes(scene)
        for box, label in zip(torch.from_numpy(boxes.box), boxes.label.tolist(), strict=True):
            column, row = ((box[:2] + box[2:]) * 16).int().tolist()
            assert torch.equal(batch.box[number, row, column], box)
            assert batch.answer[number, 32 * row + column] == label
        assert (batch.answer[number] >= 0).sum() == len(boxes.box)
        pixels = render_scene(scene).transpose(2, 0, 1)
        assert torch.equal(batch.image[number], torch.from_numpy(np.ascontiguousarray(pixels)))


def test_evaluation_counts_classes_and_average_precision(rendered: Dataset) -> None:
    """A model that says what is true has it all; with two boxes exchanged it has less."""

    class Oracle(nn.Module):
        def __init__(self, wrong: bool) -> None:
            super().__init__()
            self.parameter, self.wrong, self.at = nn.Parameter(torch.zeros(())), wrong, 0

        def forward(self, image_BCHW: Tensor) -> tuple[Tensor, Tensor]:
            batch = rendered[range(self.at, self.at + len(image_BCHW))]
            self.at += len(image_BCHW)
            parts = []
            for found in true_detections(batch):
                label_T = (found.label_T + self.wrong) % 3
                parts.append(perfect(found.box_T4, label_T, 32))
            logits, box = (torch.cat(part) for part in zip(*parts, strict=True))
            return logits + self.parameter, box

    right, wrong = (evaluate(Oracle(each), rendered, batch_size=3) for each in (False, True))
    assert (right.correct, right.average_precision) == (right.total, 1)
    assert (wrong.correct, wrong.average_precision) == (0, 0)
    assert compute_metrics(right, rendered)["average_precision"] == 1


def test_it_is_neither_asked_nor_exported(rendered: Dataset, tmp_path: Path) -> None:
    with pytest.raises(BcnError, match="gives boxes"):
        Reasoner("boxes", create_model("boxes/centre-net"), {})
    with pytest.raises(BcnError, match="has boxes, which none of the formats takes"):
        export_dataset(rendered, "parquet", tmp_path)


def test_boxes_are_drawn_on_a_sheet(rendered: Dataset) -> None:
    sheet = np.asarray(contact_sheet(rendered, 4)).astype(int)
    assert ((sheet == (255, 0, 0)).all(-1)).sum() > 200  # their edges
