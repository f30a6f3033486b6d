"""`python without_posix.py COMMAND ...` is `bcn COMMAND ...` without what Linux has and Windows lacks.

All modules of the package are imported first. A file that this process holds open can be neither renamed nor removed.
"""

import importlib
import os
import pkgutil
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

HIDDEN: dict[Any, tuple[str, ...]] = {
    os: (
        *("sched_getaffinity", "getloadavg", "geteuid", "getuid", "fork", "killpg", "sysconf"),
        *("posix_fallocate", "O_NOFOLLOW", "O_DIRECTORY"),
    ),
    signal: ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGALRM", "pthread_sigmask"),
}


def refuse_open_files(change: Callable[..., None]) -> Callable[..., None]:
    def changed(*paths: Any, **options: Any) -> None:
        links = (os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd"))
        if {os.path.realpath(link) for link in links} & {os.path.realpath(path) for path in paths}:
            raise PermissionError(13, "Windows cannot rename or remove a file that is open", str(paths[0]))
        change(*paths, **options)

    return changed


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # filelock's: without fcntl its lock depends on whether a file is there
    for name in ("fcntl", "resource", "pwd", "grp", "termios"):
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in HIDDEN.items():
        for name in names:
            delattr(module, name)
    for name in ("rename", "replace", "unlink"):
        setattr(os, name, refuse_open_files(getattr(os, name)))

    import bcn

    for found in pkgutil.walk_packages(bcn.__path__, "bcn."):
        if "._" not in found.name:
            importlib.import_module(found.name)
    from bcn.cli import main

    main()
