"""The versions of v2 by name: the fixed set, the stream, one number of objects, other pictures, states."""

from bcn.data.sort_of_clevr.generated import SPLITS, check_arguments
from bcn.data.sort_of_clevr_v2.corruption import CORRUPTIONS
from bcn.data.sort_of_clevr_v2.dataset import SortOfClevrV2, SortOfClevrV2Stream
from bcn.data.sort_of_clevr_v2.samples import SampleGenerator
from bcn.data.sort_of_clevr_v2.sampling import Questions
from bcn.data.sort_of_clevr_v2.scene import Range
from bcn.data.sort_of_clevr_v2.states import SortOfClevrV2States, SortOfClevrV2StatesStream

V2 = "sort-of-clevr-v2"
V2_STREAM = f"{V2}-stream"
V2_VARIED = f"{V2_STREAM}-varied"
SIZES = (9800, 1000, 5000)
STREAMS = {V2: (7, 8, 9), V2_STREAM: (10, 8, 9)}
"""the number of each split's stream of samples; a fresh stream is validated and tested on the images of v2"""
OBJECTS: Range = (2, 8)
"""in training, validation and test; 1 and 9 to 12 are left for tests of generalisation"""
BY_OBJECTS = {objects: f"{V2}-{objects}-objects" for objects in range(1, 13)}
"""what v2 with one number of objects is called"""
BY_CORRUPTION = {corruption: f"{V2}-{corruption}" for corruption in CORRUPTIONS}
"""what v2 with corrupted pictures is called"""


def make_sort_of_clevr_v2(
    version: str,
    split: str,
    *,
    images: int | None = None,
    seed: int = 0,
    questions: Questions = "sampled",
    objects: int | Range = OBJECTS,
    picture: str = "exact",
    states: bool = False,
) -> SortOfClevrV2:
    """Make a split of Sort-of-CLEVR v2, as docs/reference/sort-of-clevr-v2.md specifies it.

    >>> batch = make_sort_of_clevr_v2("sort-of-clevr-v2", "val", images=5, states=True)[[0, 4]]
    >>> batch.image.shape, batch.question.shape, batch.answer.shape
    (torch.Size([2, 3, 75, 75]), torch.Size([2, 36, 22]), torch.Size([2, 36]))
    >>> batch.objects.shape, batch.mask.sum(dim=1)
    (torch.Size([2, 8, 10]), tensor([6, 4]))

    Args:
        version: "sort-of-clevr-v2", or "sort-of-clevr-v2-stream" to train on fresh scenes without end.
        questions: up to four of each kind about each image, or all that can be asked.
        objects: how many in each scene, or the fewest and the most; 1 to 12.
        picture: "exact", "varied", or a corruption: "jpeg75", "soft", "off-white", "noise". The stream is validated and
            tested on exact pictures.
        states: whether batches have the objects of each scene as vectors, beside its image.
    """
    check_arguments(version, tuple(STREAMS), split, 1 if images is None else images, seed, questions)
    number = SPLITS.index(split)
    images = SIZES[number] if images is None else images
    fresh = version == V2_STREAM and split == "train"
    if version == V2_STREAM and not fresh:
        picture = "exact"
    objects = (objects, objects) if isinstance(objects, int) else objects
    generator = SampleGenerator(seed, STREAMS[version][number], objects=objects, questions=questions, picture=picture)
    kinds = {
        (False, False): SortOfClevrV2,
        (False, True): SortOfClevrV2States,
        (True, False): SortOfClevrV2Stream,
        (True, True): SortOfClevrV2StatesStream,
    }
    parts = [V2_STREAM if fresh else V2, _describe(objects), "" if picture == "exact" else f"-{picture}"]
    return kinds[fresh, states]("".join(parts) + "-states" * states, split, images, generator)


def _describe(objects: Range) -> str:
    fewest, most = objects
    if objects == OBJECTS:
        return ""
    return f"-{most}-objects" if fewest == most else f"-{fewest}-to-{most}-objects"
