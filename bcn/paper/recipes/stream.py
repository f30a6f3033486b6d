"""Beyond the paper: the same model on scenes that never repeat."""

from dataclasses import replace

from bcn.data.sort_of_clevr import FEWER_OBJECTS
from bcn.paper.recipes.ablation import COMPARED
from bcn.paper.recipes.row import row
from bcn.paper.recipes.table3 import multirn_h
from bcn.training.recipe import Optim, Recipe, Scale


@row("beyond/multirn-h-stream")
def multirn_h_stream(scale: Scale) -> Recipe:
    """Fresh scenes in every epoch, all 36 questions, one long cycle, averaged weights.

    Tested on sort-of-clevr-v1, and on scenes with fewer objects than any in training.
    """
    recipe = multirn_h(scale)
    longer = {"smoke": recipe.epochs, "cpu": 60, "paper": 200}[scale]
    return replace(
        recipe,
        name="beyond/multirn-h-stream",
        data=replace(recipe.data, name="sort-of-clevr-stream", questions="all", tests=tuple(FEWER_OBJECTS.values())),
        optim=Optim("adam", 1.5e-3, schedule="warmup-cosine", warmup=0.1, ema_decay=0.999),
        epochs=longer,
        curriculum_epochs=min(3, longer - 1),
        departures=(
            COMPARED,
            f"{longer} epochs of 9,800 fresh images with all 36 questions each, one-cycle to 0.0015, averaged weights",
        ),
    )
