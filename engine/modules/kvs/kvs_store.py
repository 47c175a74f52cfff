# SPDX-License-Identifier: LGPL-3.0-only
"""The KVS on disk, in SQLite.

Its journal is a WAL with synchronous=NORMAL: what was committed survives the death of
the process at any moment. A power failure may lose the last moments, but leaves the
store consistent.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Optional

from kvs_tree import Change, Dir, Link, Namespace, Node, Value, split

LOCK_TIMEOUT = 20  # seconds, for the KVS of an instance that was killed to end


class Store:
    """A value is one row, and one more for each append, numbered by
    `chunk`. Only empty directories have a row; one of a directory that has become
    non-empty does no harm."""

    VALUE, DIR, LINK = range(3)
    Error = sqlite3.Error
    SCHEMA = """
    pragma locking_mode = exclusive;
    pragma journal_mode = wal;
    pragma synchronous = normal;
    create table if not exists namespace (
        name text primary key, owner integer, seq integer) without rowid;
    create table if not exists entry (
        ns text, path text, chunk integer, type integer, data blob,
        primary key (ns, path, chunk)) without rowid;
    """

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, timeout=LOCK_TIMEOUT)
        self.db.executescript(self.SCHEMA)

    def load(self) -> Iterator[tuple[str, Namespace]]:
        spaces = self.db.execute("select name, owner, seq from namespace").fetchall()
        for name, owner, seq in spaces:
            rows = self.db.execute(
                "select path, type, data from entry where ns = ? order by path, chunk",
                (name,),
            )
            yield name, Namespace(owner, seq, self.load_tree(rows))

    def load_tree(self, rows: Iterable[tuple[Any, ...]]) -> Dir:
        root = Dir({})
        for path, kind, data in rows:
            *above, name = path.split(".")
            parent = root
            for part in above:
                below = parent.entries.get(part)
                if not isinstance(below, Dir):
                    parent.entries[part] = below = Dir({})
                parent = below
            old = parent.entries.get(name)
            if kind == self.VALUE:
                if isinstance(old, Value):
                    parent.entries[name] = old.append(data)
                else:
                    parent.entries[name] = Value(data, len(data))
            elif kind == self.LINK:
                ns, _, target = data.decode().partition("\0")
                parent.entries[name] = Link(target, ns or None)
            elif not old:
                parent.entries[name] = Dir({})
        return root

    def put(self, ns: str, path: str, node: Node) -> None:
        if isinstance(node, Value):
            row = self.VALUE, node.read()
        elif isinstance(node, Link):
            row = self.LINK, f"{node.ns or ''}\0{node.target}".encode()
        else:
            for name, below in node.entries.items():
                self.put(ns, name if path == "." else f"{path}.{name}", below)
            if node.entries or path == ".":
                return
            row = self.DIR, b""
        self.db.execute(
            "insert or replace into entry values (?, ?, 0, ?, ?)", (ns, path, *row)
        )

    def append(self, ns: str, path: str, data: bytes) -> None:
        self.db.execute(
            "insert into entry select ?1, ?2, max(chunk) + 1, ?3, ?4 from entry"
            " where ns = ?1 and path = ?2",
            (ns, path, self.VALUE, data),
        )

    def drop(self, ns: str, path: str) -> None:
        if path == ".":
            self.db.execute("delete from entry where ns = ?", (ns,))
            return
        self.db.execute("delete from entry where ns = ? and path = ?", (ns, path))
        self.db.execute(
            "delete from entry where ns = ? and path > ? and path < ?",
            (ns, f"{path}.", f"{path}/"),
        )

    def apply(self, ns: str, root: Dir, changes: list[Change]) -> None:
        for path, old, new, appended in changes:
            if appended is not None:
                self.append(ns, path, appended)
                continue
            if old:
                self.drop(ns, path)
            if new:
                self.put(ns, path, new)
            else:
                self.put_empty(ns, root, path.rpartition(".")[0])

    def put_empty(self, ns: str, root: Dir, path: str) -> None:
        """If `path` is a directory that is empty now, keep that."""
        node: Optional[Node] = root
        for name in split(path):
            node = node.entries.get(name) if isinstance(node, Dir) else None
        if path and isinstance(node, Dir) and not node.entries:
            self.put(ns, path, node)

    def commit(self) -> None:
        self.db.commit()

    def create(self, name: str, ns: Namespace) -> None:
        self.drop(name, ".")
        self.save(name, ns)
        self.put(name, ".", ns.root)

    def save(self, name: str, ns: Namespace) -> None:
        self.db.execute(
            "insert or replace into namespace values (?, ?, ?)",
            (name, ns.owner, ns.seq),
        )

    def remove(self, name: str) -> None:
        self.db.execute("delete from namespace where name = ?", (name,))
        self.drop(name, ".")
