"""What a BCN adds to multiRN in larger groups of images, where it lives: table 3 at the paper's rates."""

from dataclasses import replace

from bcn.paper.recipes.row import Row, row
from bcn.paper.recipes.table3 import OPEN, multirn, multirn_no_bcn, reworded
from bcn.training.recipe import Recipe, Scale

GROUP = 32


def in_larger_groups(of: Row, name: str) -> Row:
    """The paper's 50 epochs, rates and 20 questions, at `cpu` too, in steps of more images."""

    def recipe(scale: Scale) -> Recipe:
        if scale == "smoke":
            return replace(of(scale), name=name)
        base = replace(of("paper"), name=name, scale=scale, batch_size=GROUP)
        return reworded(base, OPEN[0], OPEN[0].replace("8 images", f"{GROUP} images"))

    return recipe


row("share/multirn-no-bcn")(in_larger_groups(multirn_no_bcn, "share/multirn-no-bcn"))
row("share/multirn")(in_larger_groups(multirn, "share/multirn"))
