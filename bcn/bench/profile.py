"""`bcn bench profile`: where the time of a training step goes, section by section, reference and ours.

A section runs forward and backward by itself, on inputs of the size and sparsity that it has in the step; what the sum
of the sections leaves of the whole step is called the rest. B images, Q questions about each.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bcn.bench.jobs import Form, Job, build, inputs, training
from bcn.bench.measure import alternate, threads
from bcn.layers.fused.sum import pooled_sum
from bcn.layers.relation import MultiRelation
from bcn.layers.rows import rows
from bcn.training.environment import keep_memory

MODEL = "sort-of-clevr/multirn-h"
QUESTIONS = 36
IMAGES: dict[Form, int] = {"reference": 1, "ours": 16, "trained": 16}
"""batch sizes; the reference repeats the image for each question, so its cost per question does not depend on it"""


def bench_profile(*, rounds: int, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """Milliseconds for 1,000 questions, at one thread."""
    keep_memory()
    measurements: dict[str, Any] = {}
    with threads(1):
        for form, images in IMAGES.items():
            say(f"the sections of a step, {form}")
            times = alternate(sections(form, images), rounds=rounds, seconds=seconds)
            cost = {name: 1e6 * timing.median / (images * QUESTIONS) for name, timing in times.items()}
            of_norm, whole = cost.pop("of which BatchNorm"), cost.pop("step")
            parts = cost | {"rest": max(0.0, whole - sum(cost.values()))}
            measurements[form] = {"step": whole, "of which BatchNorm": of_norm, "sections": parts}
    return measurements


def sections(form: Form, images: int) -> dict[str, Job]:
    """What to time: the sections of a step, BatchNorm by itself, and the whole step."""
    model: Any = build(MODEL, form).train()
    encode = model.encoder if form == "reference" else model.features
    image, question = inputs(MODEL, form, images, QUESTIONS)
    if form == "reference":
        image, question = image.repeat_interleave(QUESTIONS, dim=0), question.flatten(0, 1)
    with torch.no_grad():
        map_BCHW = encode(image)
    total = torch.rand(images * QUESTIONS, 256, requires_grad=True)
    answer = torch.zeros(len(total), dtype=torch.long)
    cases = {
        "CNN": both(model, lambda: encode(image)),
        **relation_sections(form, model, map_BCHW, question),
        "f and loss": both(model, lambda: F.cross_entropy(model.f(total), answer)),
        "Adam": adam(model),
    }
    norms = list(zip([block.norm for block in model.encoder], seen_by_norms(model.encoder, encode, image), strict=True))
    cases["of which BatchNorm"] = both(model, lambda: torch.stack([norm(each).sum() for norm, each in norms]))
    return cases | {"step": training(MODEL, form, images, QUESTIONS)}


def relation_sections(form: Form, model: Any, map_BCHW: Tensor, question: Tensor) -> dict[str, Job]:
    given = map_BCHW.clone(memory_format=torch.preserve_format).requires_grad_()
    if form == "reference":
        return {"BCN and g": both(model, lambda: model.relation(given, question))}
    relation = model.relation
    assert isinstance(relation, MultiRelation)
    assert relation.broadcast is not None
    broadcast, first, (rest,) = relation.broadcast, relation.g.first, relation.g.rest
    owner = torch.arange(len(given)).repeat_interleave(question.shape[1])
    planes = rows(broadcast.coordinates(given))
    with torch.no_grad():
        base = first.forward_rows(rows(given), None, planes, None)
        _, of_vector, _, of_question = first.parts()
        by_vector = F.linear(broadcast.pooled(given)[0], of_vector)
        shift = F.linear(question.flatten(0, 1), of_question) + by_vector.index_select(0, owner)
    assert rest.bias is not None
    weight, bias = rest.weight.detach().flatten(1).requires_grad_(), rest.bias.detach().requires_grad_()
    base.requires_grad_(), shift.requires_grad_()
    return {
        "BCN": both(model, lambda: broadcast.pooled(given)[0]),
        "g, first layer": both(model, lambda: first.forward_rows(rows(given), None, planes, None)),
        "g, second layer and sum": both(model, lambda: pooled_sum(base, shift, owner, [weight], [bias])),
    }


def both(model: nn.Module, forward: Callable[[], Any]) -> Job:
    """Forward and backward of one section."""

    def run() -> None:
        model.zero_grad()
        forward().sum().backward()

    return run


def adam(model: nn.Module) -> Job:
    optimiser = torch.optim.Adam(model.parameters(), 0.0, fused=True)  # the other sections have these weights too
    for parameter in model.parameters():
        parameter.grad = torch.rand_like(parameter)
    gradients = [(parameter, torch.rand_like(parameter)) for parameter in model.parameters()]

    def run() -> None:
        for parameter, gradient in gradients:
            parameter.grad = gradient
        optimiser.step()

    return run


def seen_by_norms(encoder: nn.Module, encode: Callable[[Tensor], Tensor], image: Tensor) -> list[Tensor]:
    """The map that each BatchNorm of the CNN is given."""
    seen: list[Tensor] = []
    norms = [module for module in encoder.modules() if isinstance(module, nn.BatchNorm2d)]
    hooks = [
        norm.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach().clone().requires_grad_()))
        for norm in norms
    ]
    with torch.no_grad():
        encode(image)
    for hook in hooks:
        hook.remove()
    return seen


def draw(measurements: dict[str, Any], path: Path) -> None:
    """A bar for each form, the reference first, cut into sections."""
    from bcn.paper.figures.style import COLOURS, canvas, write

    figure, axes = canvas(3, 1, size=(9, 6.4))
    titles = {"reference": "reference", "ours": "ours", "trained": "ours, trained weights (more zeros)"}
    order = ("CNN", "BCN", "BCN and g", "g, first layer", "g, second layer and sum", "f and loss", "Adam", "rest")
    for (row,), (form, title) in zip(axes, titles.items(), strict=True):
        left, found = 0.0, measurements[form]
        for name, colour in zip(order, (COLOURS[0], COLOURS[1], *COLOURS[1:]), strict=False):
            cost = found["sections"].get(name)
            if cost is not None:
                row.barh([0], [cost], left=[left], color=colour, label=f"{name} {cost:,.0f}", edgecolor="white")
                left += cost
        row.set(title=f"{title}: {found['step']:,.0f} ms for 1,000 questions", yticks=[], xlim=(0, 1.02 * left))
        row.legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.25), frameon=False, fontsize=8)
    figure.suptitle("Where a training step of multirn-h goes, milliseconds, one thread (each bar has its own scale)")
    write(figure, path)
