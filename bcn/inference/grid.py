"""Where the positions of a feature map lie on the image.

All CNNs of this package halve a map with 3x3 convolutions that pad by one pixel: the image's first pixel is the centre
of what position 0 sees, and position k is centred on pixel k * stride. The map is not the image stretched: of 75 pixels
at a stride of 8, position 9 of 10 is centred on pixel 72.
"""

import numpy as np


def stride_of(pixels: int, positions: int) -> int:
    """Pixels between two positions of a map, along one side: the power of two that gives so many.

    >>> stride_of(75, 10), stride_of(75, 5), stride_of(128, 32)
    (8, 16, 4)
    """
    stride = 1
    while -(-pixels // stride) > positions:
        stride *= 2
    assert -(-pixels // stride) == positions, f"{pixels} pixels, halved again and again, never are {positions}"
    return stride


def cell_edges(pixels: int, positions: int) -> np.ndarray:
    """(positions + 1) edges, in pixels, of the cells around the positions' centres; the outer ones end with the image.

    >>> cell_edges(75, 10)
    array([ 0. ,  4.5, 12.5, 20.5, 28.5, 36.5, 44.5, 52.5, 60.5, 68.5, 75. ])
    """
    stride = stride_of(pixels, positions)
    edges = stride * np.arange(positions + 1) + 0.5 - stride / 2
    edges[0], edges[-1] = 0, pixels
    return edges
