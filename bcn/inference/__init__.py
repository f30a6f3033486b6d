"""Use a trained model: ask it, see what its BCN broadcasts, export it, release its weights with the package."""

DEFAULT_WEIGHTS = "sort-of-clevr/multirn-h"
"""what answers where no weights are named, in `bcn ask`, `bcn serve` and `bcn demo`; any that take questions of
Sort-of-CLEVR v1 or v2 may stand here"""
