"""Large JSON files, read one entry at a time: CLEVR's 700,000 questions are never all in memory."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bcn.errors import BcnError

TAIL = 1024
"""characters that are looked at again with the next block, for the name of the list may begin in them"""


def stream_list(path: Path, key: str, *, block: int = 1 << 20) -> Iterator[dict[str, Any]]:
    """The entries of the list `key` of a JSON file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     _ = file.write('{"info": {}, "questions": [{"answer": "yes"}, {"answer": "2"}]}')
    ...     file.flush()
    ...     [entry["answer"] for entry in stream_list(Path(file.name), "questions", block=8)]
    ['yes', '2']

    Args:
        key: the name of the list.
        block: how many characters are read at a time.
    """
    try:
        yield from _entries(path, key, block)
    except UnicodeDecodeError as error:
        raise BcnError(f"{path} is not in UTF-8 ({error.reason}): get it again, or save it as UTF-8") from error
    except OSError as error:
        raise BcnError(f"cannot read {path}: {error.strerror}; give a file of CLEVR's {key}") from error


def _entries(path: Path, key: str, block: int) -> Iterator[dict[str, Any]]:
    decoder, begin, separator = json.JSONDecoder(), re.compile(rf'"{key}"\s*:\s*\['), re.compile(r"[\s,]*")
    with open(path, encoding="utf-8") as file:
        text = ""
        while not (match := begin.search(text)):
            if not (read := file.read(block)):
                raise BcnError(f"{path} has no list {key!r}: is it a file of CLEVR's {key}?")
            text = text[-TAIL:] + read
        position = match.end()
        while True:
            position = separator.match(text, position).end()  # type: ignore[union-attr]  # it may match nothing
            if text.startswith("]", position):
                return
            try:
                entry, position = decoder.raw_decode(text, position)
            except (ValueError, RecursionError) as error:  # the entry continues in the next block
                if not (read := file.read(max(block, len(text) - position))):
                    raise BcnError(f"{path} ends or breaks within the list {key!r}: get it again") from error
                text, position = text[position:] + read, 0
                continue
            if not isinstance(entry, dict):
                raise BcnError(f"{path} has {str(entry)[:40]!r} in the list {key!r}: accepted are objects in braces")
            yield entry
