"""What a power failure may leave of a directory: every write, rename and fsync in it is recorded and replayed.

As SQLite's tests do: what was not synchronised when the power failed may be there or not, each operation for itself and
in any order, and of a write also half of it, or zeros in its place. A file's content is safe after fsync of the file, a
name after fsync of its directory, and neither before.
"""

import builtins
import io
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

ROOT = 0
ALL_SUBSETS = 4
"""pending operations of which every subset is replayed"""
Tree = dict[str, bytes | None]
"""contents of files by their paths; None for a directory"""


@dataclass(frozen=True)
class Operation:
    kind: Literal["name", "rename", "unlink", "write", "truncate", "sync", "mark"]
    inode: int
    """of the file, or of the directory for `name` (a new entry), `rename` and `unlink`"""
    target: int = 0
    """the inode that gets or loses a name"""
    name: str = ""
    new_name: str = ""
    offset: int = 0
    content: bytes = b""
    """of a write; of a truncation, as many bytes as are left"""


@dataclass
class Disk:
    """A directory and what was done in it."""

    root: Path
    operations: list[Operation] = field(default_factory=list)
    directories: set[int] = field(default_factory=lambda: {ROOT})
    _known: dict[int, int] = field(default_factory=dict)
    """our inodes, which are never used again, by those of the file system"""

    def inode(self, path: Any) -> int:
        return self._known[os.stat(path).st_ino]

    def holds(self, path: Any) -> bool:
        return not isinstance(path, int) and Path(os.path.abspath(path)).is_relative_to(self.root)

    def add(self, kind: Any, inode: int, **details: Any) -> None:
        self.operations.append(Operation(kind, inode, **details))

    def mark(self, text: str) -> None:
        """Note something in the order of operations."""
        self.add("mark", ROOT, name=text)

    def created(self, path: Any, *, directory: bool = False) -> int:
        number = len(self.operations) + 1
        self._known[os.stat(path).st_ino] = number
        if directory:
            self.directories.add(number)
        self.add("name", self.inode(os.path.dirname(path)), target=number, name=os.path.basename(path))
        return number

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what Python does in the directory, which is empty."""
        self._known[os.stat(self.root).st_ino] = ROOT
        real = {name: getattr(os, name) for name in ("open", "replace", "rename", "unlink", "mkdir", "fsync")}
        real_open = io.open

        def open_file(path: Any, mode: str = "r", buffering: int = -1, *text: Any, **options: Any) -> Any:
            if not self.holds(path) or not set(mode) & set("wax+"):
                return real_open(path, mode, buffering, *text, **options)
            raw = _RecordedFile(self, os.fspath(path), mode.replace("b", "").replace("t", ""))
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, *text, **options)

        def open_handle(path: Any, flags: int, *mode: Any, **options: Any) -> int:
            new = self.holds(path) and not os.path.lexists(path)
            handle: int = real["open"](path, flags, *mode, **options)
            if new:
                self.created(os.fspath(path))
            return handle

        def rename(old: Any, new: Any) -> None:
            if self.holds(old):
                directory, target = self.inode(os.path.dirname(old)), self.inode(old)
                assert directory == self.inode(os.path.dirname(new))
                names = {"name": os.path.basename(old), "new_name": os.path.basename(new)}
                real["replace"](old, new)
                self.add("rename", directory, target=target, **names)
            else:
                real["replace"](old, new)

        def unlink(path: Any, **options: Any) -> None:
            there = self.holds(path) and os.path.lexists(path)
            target = self.inode(path) if there else ROOT
            real["unlink"](path, **options)
            if there:
                self.add("unlink", self.inode(os.path.dirname(path)), target=target, name=os.path.basename(path))

        def mkdir(path: Any, *mode: Any, **options: Any) -> None:
            real["mkdir"](path, *mode, **options)
            if self.holds(path):
                self.created(os.fspath(path), directory=True)

        def fsync(handle: int) -> None:
            real["fsync"](handle)
            if (inode := os.fstat(handle).st_ino) in self._known:
                self.add("sync", self._known[inode])

        replaced: dict[str, Any] = {"open": open_handle, "mkdir": mkdir, "fsync": fsync}
        replaced |= {"replace": rename, "rename": rename, "unlink": unlink, "remove": unlink}
        with ExitStack() as stack:
            for name, function in replaced.items():
                stack.enter_context(patch.object(os, name, function))
            for module in (io, builtins):
                stack.enter_context(patch.object(module, "open", open_file))
            yield

    def final(self) -> Tree:
        """What is left when everything has reached the disk."""
        return self._replay(self.operations)

    def crashes(self, *, seed: int = 0) -> Iterator[tuple[int, Tree]]:
        """After each number of operations, everything that a power failure may leave; each tree once between marks."""
        draw, seen, synced_at = random.Random(seed), set[int](), self._synced_at()
        for count in range(len(self.operations) + 1):
            done = self.operations[:count]
            if done and done[-1].kind == "mark":
                seen.clear()
            pending = [index for index in range(count) if synced_at[index] >= count]
            for kept in _subsets(pending, draw):
                lost = set(pending) - set(kept)
                for variant in _torn(done, kept):
                    tree = self._replay([each for index, each in enumerate(variant) if index not in lost])
                    visible = {path: path if _is_temporary(path) else content for path, content in tree.items()}
                    if (key := hash(tuple(sorted(visible.items())))) not in seen:
                        seen.add(key)
                        yield count, tree

    def _synced_at(self) -> list[float]:
        """Of each operation, the number of the fsync that makes it last."""
        synced_at, next_sync = [], dict[int, int]()
        for index, each in reversed(list(enumerate(self.operations))):
            if each.kind == "sync":
                next_sync[each.inode] = index
            lasting = -1.0 if each.kind in ("sync", "mark") else next_sync.get(each.inode, float("inf"))
            synced_at.append(lasting)
        return synced_at[::-1]

    def _replay(self, operations: list[Operation]) -> Tree:
        entries: dict[int, dict[str, int]] = {inode: {} for inode in self.directories}
        contents: dict[int, bytes] = {}
        for each in operations:
            names = entries.get(each.inode, {})
            if each.kind == "name":
                names[each.name] = each.target
            elif each.kind == "rename":
                if names.get(each.name) == each.target:
                    del names[each.name]
                names[each.new_name] = each.target
            elif each.kind == "unlink":
                if names.get(each.name) == each.target:
                    del names[each.name]
            elif each.kind == "truncate":
                contents[each.inode] = contents.get(each.inode, b"")[: len(each.content)]
            elif each.kind == "write":
                before, end = contents.get(each.inode, b""), each.offset + len(each.content)
                contents[each.inode] = before[: each.offset].ljust(each.offset, b"\0") + each.content + before[end:]
        tree: Tree = {}

        def walk(inode: int, path: str) -> None:
            for name, child in entries[inode].items():
                tree[f"{path}{name}"] = None if child in self.directories else contents.get(child, b"")
                if child in self.directories:
                    walk(child, f"{path}{name}/")

        walk(ROOT, "")
        return tree


class _RecordedFile(io.FileIO):
    def __init__(self, disk: Disk, path: str, mode: str) -> None:
        new = not os.path.exists(path)
        super().__init__(path, mode)
        self.disk, self.inode = disk, disk.created(path) if new else disk.inode(path)
        if "w" in mode and not new:
            disk.add("truncate", self.inode)

    def write(self, content: Any, /) -> int:
        count = super().write(content)
        self.disk.add("write", self.inode, offset=self.tell() - count, content=bytes(content)[:count])
        return count


def write_tree(tree: Tree, directory: Path) -> Path:
    """Put what a power failure left into an empty directory."""
    directory.mkdir(parents=True)
    for path, content in sorted(tree.items()):
        if content is None:
            (directory / path).mkdir()
        else:
            (directory / path).write_bytes(content)
    return directory


def read_tree(directory: Path) -> Tree:
    paths = sorted(directory.rglob("*"))
    return {path.relative_to(directory).as_posix(): None if path.is_dir() else path.read_bytes() for path in paths}


def _subsets(pending: list[int], draw: random.Random) -> Iterator[tuple[int, ...]]:
    """Which of the pending operations reached the disk: any, or of many: all, none, one, all but one, and some."""
    size = len(pending)
    if size <= ALL_SUBSETS:
        for count in range(size + 1):
            yield from combinations(pending, count)
        return
    for count in (0, 1, size - 1, size):
        yield from combinations(pending, count)
    for _ in range(8):
        yield tuple(index for index in pending if draw.random() < 0.5)


def _torn(done: list[Operation], kept: tuple[int, ...]) -> Iterator[list[Operation]]:
    """The operations themselves, and with each pending write that was kept cut in half, or zeros in its place."""
    yield done
    for index in kept:
        content = done[index].content
        if done[index].kind == "write":
            for instead in (content[: len(content) // 2], bytes(len(content))):
                yield [*done[:index], replace(done[index], content=instead), *done[index + 1 :]]


def _is_temporary(path: str) -> bool:
    """Of these only the names matter: nobody reads them."""
    return any(part.startswith(".") and part.endswith(".tmp") for part in path.split("/"))
