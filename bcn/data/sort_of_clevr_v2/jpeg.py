"""What JPEG does to an image, in integers, so that it is the same on every machine.

Baseline JPEG with the tables of its annex K, scaled by quality as the Independent JPEG Group does, chroma at half the
size. Only the lossy steps: no file is written. Sums of products run in float64 and are exact, since all of their terms
are whole numbers and stay below 2^53.

N images, H x W pixels, M blocks of 8 x 8 in an image, 64 numbers each.
"""

import numpy as np

LUMINANCE = np.array(
    [
        *(16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55),
        *(14, 13, 16, 24, 40, 57, 69, 56, 14, 17, 22, 29, 51, 87, 80, 62),
        *(18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92),
        *(49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99),
    ]
)
CHROMINANCE = np.full((8, 8), 99)
CHROMINANCE[:4, :4] = [[17, 18, 24, 47], [18, 21, 26, 66], [24, 26, 56, 99], [47, 66, 99, 99]]
SCALE = 2**13
"""of the entries of the cosine transform, which are rounded to whole numbers"""
BLOCK = 8


def _transform() -> np.ndarray:
    """(64, 64) the cosine transform of a block as one matrix of whole numbers, scaled by SCALE squared."""
    wave, place = np.arange(BLOCK)[:, None], np.arange(BLOCK)
    cosine_88 = np.cos((2 * place + 1) * wave * np.pi / (2 * BLOCK)) * np.where(wave == 0, np.sqrt(1 / 8), 1 / 2)
    return np.kron(*2 * (np.rint(SCALE * cosine_88),))


TRANSFORM_6464 = _transform()


def compress(image_N3HW: np.ndarray, quality_N: np.ndarray) -> np.ndarray:
    """Images (N, 3, H, W) uint8 as they come back from a JPEG file.

    Args:
        quality_N: 1 to 100, of each image.
    """
    height, width = image_N3HW.shape[2:]
    grow = [(0, 0), (0, 0), (0, -height % (2 * BLOCK)), (0, -width % (2 * BLOCK))]
    red, green, blue = np.pad(image_N3HW.astype(np.int32), grow, mode="edge").transpose(1, 0, 2, 3)
    luma = (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16
    blueness = ((-11059 * red - 21709 * green + 32768 * blue + 32767) >> 16) + 128
    redness = ((32768 * red - 27439 * green - 5329 * blue + 32767) >> 16) + 128
    luma = _quantise(luma, LUMINANCE, quality_N)
    blueness, redness = (
        _double(_quantise(_halve(chroma), CHROMINANCE.reshape(-1), quality_N)) - 128 for chroma in (blueness, redness)
    )
    colours = [
        luma + ((91881 * redness + 32768) >> 16),
        luma + ((-22554 * blueness - 46802 * redness + 32768) >> 16),
        luma + ((116130 * blueness + 32768) >> 16),
    ]
    return np.stack(colours, axis=1)[:, :, :height, :width].clip(0, 255).astype(np.uint8)


def _quantise(plane_NHW: np.ndarray, table_64: np.ndarray, quality_N: np.ndarray) -> np.ndarray:
    """A plane whose cosine coefficients are rounded to multiples of the table's entries."""
    images, height, width = plane_NHW.shape
    scale_N = np.where(quality_N < 50, 5000 // quality_N, 200 - 2 * quality_N)
    step_N164 = ((table_64 * scale_N[:, None] + 50) // 100).clip(1, 255)[:, None].astype(np.float64)
    grid = images, height // BLOCK, BLOCK, width // BLOCK, BLOCK
    blocks = images, height * width // BLOCK**2, BLOCK**2
    block_NM64 = plane_NHW.reshape(grid).swapaxes(2, 3).reshape(blocks) - 128.0
    coefficient_NM64 = np.floor((block_NM64 @ TRANSFORM_6464.T / SCALE**2) / step_N164 + 0.5) * step_N164
    back_NM64 = np.floor(coefficient_NM64 @ TRANSFORM_6464 / SCALE**2 + 0.5).clip(-128, 127).astype(np.int32) + 128
    grid = images, height // BLOCK, width // BLOCK, BLOCK, BLOCK
    back_NHW: np.ndarray = back_NM64.reshape(grid).swapaxes(2, 3).reshape(plane_NHW.shape)
    return back_NHW


def _halve(plane_NHW: np.ndarray) -> np.ndarray:
    """The means of 2 x 2 pixels, halves rounded up."""
    images, height, width = plane_NHW.shape
    means: np.ndarray = (plane_NHW.reshape(images, height // 2, 2, width // 2, 2).sum(axis=(2, 4)) + 2) >> 2
    return means


def _double(plane_NHW: np.ndarray) -> np.ndarray:
    """Twice the size, linear between the pixels, of which a new one has 9, 3, 3 and 1 sixteenths."""
    images, height, width = plane_NHW.shape
    wide_NHW = np.pad(plane_NHW, ((0, 0), (1, 1), (1, 1)), mode="edge")
    doubled = np.empty((images, height, 2, width, 2), dtype=plane_NHW.dtype)
    for row, above in enumerate((0, 2)):
        rows = 3 * wide_NHW[:, 1:-1] + wide_NHW[:, above : above + height]
        for column, left in enumerate((0, 2)):
            doubled[:, :, row, :, column] = (3 * rows[:, :, 1:-1] + rows[:, :, left : left + width] + 8) >> 4
    return doubled.reshape(images, 2 * height, 2 * width)
