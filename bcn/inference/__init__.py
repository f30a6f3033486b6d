"""Use a trained model: ask it, see what its BCN broadcasts, export it, release its weights with the package."""

DEFAULT_WEIGHTS = "sort-of-clevr/multirn-h"
"""what answers a question where no weights are named: in `bcn ask` and in `bcn serve`"""
