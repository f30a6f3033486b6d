"""drawn-v1: drawn shapes and letters with questions in free English, fresh scenes without end.

Made to be trained on before images of one's own: attributes, counts and relations in many wordings.
"""

from bcn.data.drawn.dataset import NAME, Drawn, make_drawn

__all__ = ["NAME", "Drawn", "make_drawn"]
