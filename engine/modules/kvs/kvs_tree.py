# SPDX-License-Identifier: LGPL-3.0-only
"""The entries of the KVS: a tree of values, directories and links.

Directories in a tree never change: a transaction copies those on its way. Snapshots
are free, and a commit that fails leaves nothing behind.
"""

import base64
import errno
import itertools
from typing import Any, NamedTuple, Optional, Union

MAX_LINKS = 10
ids = itertools.count(1)


class Failure(Exception):
    """Why a request fails."""

    def __init__(self, errnum: int, text: Optional[str] = None) -> None:
        super().__init__(text)
        self.errnum = errnum
        self.text = text


class Value:
    """Bytes. An append shares the buffer of the value that it appends to."""

    def __init__(self, data: Any, size: int, origin: Optional[int] = None) -> None:
        self.id = next(ids)
        self.buffer = data
        self.size = size
        self.origin = origin or self.id  # appends keep it, overwriting does not

    def read(self, start: int = 0) -> bytes:
        return bytes(memoryview(self.buffer)[start : self.size])

    def append(self, data: bytes) -> "Value":
        buffer = self.buffer
        if not isinstance(buffer, bytearray) or len(buffer) != self.size:
            buffer = bytearray(self.read())
        buffer += data
        return Value(buffer, len(buffer), self.origin)


class Dir:
    def __init__(self, entries: dict[str, "Node"]) -> None:
        self.id = next(ids)
        self.entries = entries


class Link:
    def __init__(self, target: str, ns: Optional[str]) -> None:
        self.id = next(ids)
        self.target = target
        self.ns = ns


Node = Union[Value, Dir, Link]


class Namespace:
    def __init__(self, owner: int, seq: int, root: Dir) -> None:
        self.owner, self.seq, self.root = owner, seq, root


class Change(NamedTuple):
    """The change of a path without links, for store and watches."""

    path: str
    old: Optional[Node]
    new: Optional[Node]
    appended: Optional[bytes] = None

    def below(self) -> bool:
        """May what lies below the path have changed?"""
        return any(n and not isinstance(n, Value) for n in (self.old, self.new))


def split(key: str) -> list[str]:
    return [part for part in key.split(".") if part]


def normal(key: str) -> str:
    return ".".join(split(key)) or "."


def treeobj(kind: str, data: Any) -> dict[str, Any]:
    return {"ver": 1, "type": kind, "data": data}


def reference(node: Node) -> str:
    return f"sha1-{node.id:040x}"


def encode(node: Node, limit: Optional[int] = None, start: int = 0) -> dict[str, Any]:
    if isinstance(node, Value):
        if limit is not None and node.size > limit:
            return treeobj("valref", [reference(node)])
        return treeobj("val", base64.b64encode(node.read(start)).decode())
    if isinstance(node, Dir):
        return treeobj("dirref", [reference(node)])
    where = {"namespace": node.ns} if node.ns else {}
    return treeobj("symlink", {"target": node.target, **where})


class Txn:
    """A tree with changes, beside the one without."""

    def __init__(self, root: Dir) -> None:
        self.root = root
        self.copied: set[int] = set()
        self.changes: list[Change] = []

    def copy(self, node: Dir) -> Dir:
        if node.id in self.copied:
            return node
        copy = Dir(dict(node.entries))
        self.copied.add(copy.id)
        return copy

    def change(
        self, key: str, node: Optional[Node], data: Optional[bytes] = None
    ) -> None:
        """Put, unlink (no node) or append (data)."""
        todo = split(key)
        if not todo:
            if not isinstance(node, Dir):
                raise Failure(errno.EINVAL)
            self.changes.append(Change(".", self.root, node))
            self.root = node
            return
        parent = self.find_parent(todo, node is not None or data is not None)
        if not parent:
            return
        path, name = ".".join(todo), todo[-1]
        old = parent.entries.get(name)
        if data is not None:
            if isinstance(old, Dir):
                raise Failure(errno.EISDIR)
            if isinstance(old, Link):
                raise Failure(errno.EOPNOTSUPP)
            node = old.append(data) if old else Value(data, len(data))
        if node:
            parent.entries[name] = node
        elif not parent.entries.pop(name, None):
            return
        self.changes.append(Change(path, old, node, data if old else None))

    def find_parent(self, todo: list[str], create: bool) -> Optional[Dir]:
        """The directory of the key `todo`, which becomes one without links."""
        links = i = 0
        self.root = parent = self.copy(self.root)
        while i < len(todo) - 1:
            name = todo[i]
            below = parent.entries.get(name)
            if isinstance(below, Link):
                links += 1
                if below.ns or links > MAX_LINKS:
                    raise Failure(errno.EINVAL if below.ns else errno.ELOOP)
                todo[:] = split(below.target) + todo[i + 1 :]
                i, parent = 0, self.root
                continue
            if not isinstance(below, Dir):
                if not create:
                    return None
                if below:
                    self.changes.append(Change(".".join(todo[: i + 1]), below, None))
                below = Dir({})
            parent.entries[name] = parent = self.copy(below)
            i += 1
        return parent
