"""Detection: boxes of scenes, a loss that the right answer minimises, and average precision by another route."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from bcn.data.clevr_like import camera
from bcn.data.clevr_like.boxes import LABELS, visible_boxes
from bcn.data.clevr_like.scene import make_scene
from bcn.models.centre_net import CentreNet, decode, detection_loss
from bcn.training.average_precision import Detections, average_precision, box_iou


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


def perfect(boxes: Tensor, labels: Tensor, size: int) -> Tensor:
    """The output that says all of it, with certainty."""
    output = torch.full((1, 7, size, size), -12.0)
    centre = (boxes[:, :2] + boxes[:, 2:]) / 2 * size
    for place, box, label in zip(centre, boxes, labels, strict=True):
        column, row = int(place[0]), int(place[1])
        output[0, label, row, column] = 12
        output[0, 3:5, row, column] = place - place.floor()
        output[0, 5:, row, column] = 5 * (box[2:] - box[:2])
    return output


def test_the_right_output_is_decoded_and_costs_nothing() -> None:
    boxes = torch.tensor([[0.1, 0.2, 0.35, 0.5], [0.5, 0.55, 0.9, 0.8], [0.6, 0.1, 0.7, 0.2]])
    labels = torch.tensor([0, 2, 2])
    output = perfect(boxes, labels, 32)
    assert detection_loss(output, [boxes], [labels]) < 1e-3
    ((found, given, score),) = decode(output, most=3)
    order = box_iou(boxes, found).argmax(dim=1)
    torch.testing.assert_close(found[order], boxes, rtol=0, atol=1e-5)
    assert torch.equal(given[order], labels)
    assert score.min() > 0.99
    moved = output.roll(1, dims=3)
    assert detection_loss(moved, [boxes], [labels]) > 1


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
    measured = average_precision(
        [Detections(box, label, score) for box, score in zip(given, scores, strict=True)],
        [Detections(box, label[:4], torch.ones(4)) for box in true],
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
    image, boxes = torch.zeros(16, 3, 64, 64), []
    for number in range(16):
        x, y = torch.randint(0, 44, (2,)).tolist()
        image[number, :, y : y + 20, x : x + 20] = 1
        boxes.append(torch.tensor([[x, y, x + 20, y + 20]]) / 64)
    labels = [torch.zeros(1, dtype=torch.int64)] * 16
    model = CentreNet(1, nn.Identity())
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(40):
        optimiser.zero_grad()
        loss = detection_loss(model(image), boxes, labels)
        loss.backward()
        optimiser.step()
    given = [Detections(*found) for found in decode(model(image).detach())]
    true = [Detections(box, label, torch.ones(1)) for box, label in zip(boxes, labels, strict=True)]
    assert average_precision(given, true) > 0.8
