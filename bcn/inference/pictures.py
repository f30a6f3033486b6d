"""Pictures of a model in training: which answers it confuses, and which positions its BCN broadcasts from."""

import io

import torch
from PIL import Image
from torch import nn

from bcn.data.dataset import Dataset
from bcn.data.decode import decode_image
from bcn.inference.broadcast import Broadcast, forward_with_broadcast, pool
from bcn.inference.confusion import confusion_figure
from bcn.inference.overlay import overlay
from bcn.layers.broadcast import BroadcastConv
from bcn.layers.rounds import find_rounds
from bcn.training.forward import send
from bcn.training.metrics import Counts

ANSWERS = 24
"""the most frequent ones, in the picture of confusions"""
IMAGES, HEIGHT, GAP = 4, 300, 8
"""images with a map, side by side, their height and the space between them, in pixels"""


def draw_pictures(model: nn.Module, dataset: Dataset, counts: Counts) -> dict[str, Image.Image]:
    """The confusion matrix of what was counted, and where the model broadcasts, its maps of the first images."""
    pictures = {"confusion": draw_confusions(counts, dataset.answers)}
    has_bcn = isinstance(getattr(model, "broadcast", None), BroadcastConv) and hasattr(model, "features")
    if has_bcn or find_rounds(model) is not None:
        pictures["activation"] = draw_maps(model, dataset)
    return pictures


def draw_confusions(counts: Counts, answers: tuple[str, ...]) -> Image.Image:
    """The confusion matrix, of the most frequent answers where there are many."""
    count_TA = counts.confusion_KTA.sum(0)[:-1]
    shown = count_TA.sum(1).argsort(descending=True, stable=True)[:ANSWERS].sort().values
    names = tuple(answers[index] for index in shown.tolist())
    title = f"{counts.correct:,} of {counts.total:,} right"
    if len(names) < len(answers):
        title += f"; the {len(names)} most frequent answers"
    buffer = io.BytesIO()
    confusion_figure(count_TA[shown][:, shown], names, names, title).savefig(buffer, format="png", dpi=100)
    return decode_image(buffer)


@torch.inference_mode()
def draw_maps(model: nn.Module, dataset: Dataset) -> Image.Image:
    """The first images side by side, each with squares where channels of the broadcast vector have their maximum."""
    was_training = model.training
    model.eval()
    maps = []
    for row in range(min(IMAGES, len(dataset))):
        batch = send(dataset[[row]], model)
        inputs = dataset.preprocessing(batch.image), batch.question
        pooled = pool(model, inputs[0]) if find_rounds(model) is None else forward_with_broadcast(model, *inputs).pooled
        assert pooled is not None
        broadcast = Broadcast.of(pooled)
        pixels_HWC = batch.image[0].cpu().permute(1, 2, 0).numpy()
        image = Image.fromarray(pixels_HWC if pixels_HWC.shape[2] == 3 else pixels_HWC[..., 0])
        drawn = overlay(image, broadcast.counts(), broadcast.edges())
        maps.append(drawn.resize((round(drawn.width * HEIGHT / drawn.height), HEIGHT)))
    model.train(was_training)
    width = maps[0].width + GAP
    strip = Image.new("RGB", (len(maps) * width - GAP, HEIGHT), "white")
    for index, image in enumerate(maps):
        strip.paste(image, (index * width, 0))
    return strip
