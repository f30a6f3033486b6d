"""The one error that users see, and how what is missing is installed."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""all but tabs and line ends; those that turn the direction of writing, and halves of characters, too"""


class BcnError(Exception):
    """One sentence: what was given, what is accepted, what to do. The command line prints it and exits with 2."""

    reporter = 0
    """which of the processes that torchrun started on a machine prints it: all refuse for the same reason"""

    def __str__(self) -> str:
        return printable(super().__str__())


class DoubtWarning(UserWarning):
    """What was given can be worked with, and what comes of it may mean nothing."""


def printable(text: str) -> str:
    r"""A text that comes from files, for a terminal: control characters, which could steer it, as escapes.

    >>> print(printable("\x1b[2Jyes"))
    \x1b[2Jyes
    """
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text)


def install_extra(extra: str) -> str:
    """The command that installs an extra. On the package index, `bcn` is somebody else's project.

    >>> install_extra("web")
    "pip install 'bcn-torch[web]', or in a checkout pip install -e '.[web]'"
    """
    return f"pip install 'bcn-torch[{extra}]', or in a checkout pip install -e '.[{extra}]'"


def did_you_mean(kind: str, given: str, accepted: Iterable[str]) -> BcnError:
    """The error for an unknown name.

    >>> print(did_you_mean("model", "sort-of-clevr/multirnh", ["sort-of-clevr/multirn-h", "stl10/bcn"]))
    unknown model 'sort-of-clevr/multirnh': did you mean 'sort-of-clevr/multirn-h'?
    """
    names = list(accepted)
    close = get_close_matches(given, names, n=3, cutoff=0.5)
    if close:
        return BcnError(f"unknown {kind} {given!r}: did you mean {' or '.join(map(repr, close))}?")
    return BcnError(f"unknown {kind} {given!r}: accepted are {', '.join(names)}")
