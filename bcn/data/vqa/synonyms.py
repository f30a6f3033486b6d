"""Words that a model was not trained on, said in words that it was."""

from collections.abc import Collection, Sequence

_SAME = (
    ("color", "colour"),
    ("colors", "colours"),
    ("gray", "grey"),
    ("purple", "violet"),
    ("cyan", "turquoise", "aqua"),
    ("large", "big", "huge"),
    ("small", "tiny", "little"),
    ("metal", "metallic", "shiny"),
    ("rubber", "matte", "matt", "dull"),
    ("cube", "block", "box"),
    ("cubes", "blocks", "boxes"),
    ("sphere", "ball"),
    ("spheres", "balls"),
    ("thing", "object", "item"),
    ("things", "objects", "items"),
    ("picture", "image", "photo"),
    ("fewer", "less"),
    ("do", "does"),
    ("has", "have"),
    ("a", "an", "any"),
    ("another", "any other"),
    ("anything else", "any other thing"),
    ("anything", "any thing"),
    (";", ""),
    (",", ""),
)
"""each as good as the others of its line; the first that a vocabulary has is taken"""
_LONGEST = 2
"""words of a phrase that is looked up"""
_WAYS = {way: line for line in _SAME for way in line if way and len(way.split()) <= _LONGEST}


def say_in_known_words(words: Sequence[str], known: Collection[str]) -> list[str]:
    """The same question with unknown words replaced where one of the same meaning is known.

    >>> say_in_known_words(["what", "colour", "is", "the", "little", "dog"], {"what", "color", "is", "the", "small"})
    ['what', 'color', 'is', 'the', 'small', 'dog']
    """
    said: list[str] = []
    position = 0
    while position < len(words):
        for length in range(_LONGEST, 0, -1):
            way = _known_way(words[position : position + length], known)
            if way is not None:
                break
        said += words[position : position + 1] if way is None else way
        position += 1 if way is None else length
    return said


def known_ways(known: Collection[str]) -> dict[str, str]:
    """Every word or phrase that is replaced where these words are known, and what replaces it.

    >>> known_ways({"small", "cube"})["little"]
    'small'
    """
    found = {way: _known_way(way.split(), known) for way in _WAYS}
    return {way: " ".join(words) for way, words in found.items() if words is not None}


def _known_way(words: Sequence[str], known: Collection[str]) -> list[str] | None:
    """Known words for unknown ones; None where there are none, or no need for them."""
    if all(word in known for word in words):
        return None
    ways = (way.split() for way in _WAYS.get(" ".join(words), ()))
    return next((way for way in ways if all(word in known for word in way)), None)
