# Stores the cluster on disk, as etcd does for a real one: a simulator that is killed
# and restarted continues with the same objects, versions and users.
# SPDX-License-Identifier: LGPL-3.0-only
"""The state file: an SQLite database that follows a store."""

from __future__ import annotations

import os
import sqlite3

from dws_sim.jsontree import decode, encode
from dws_sim.schema.resources import RESOURCES
from dws_sim.store import Event, Store

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS objects (
    plural TEXT, namespace TEXT, name TEXT, body BLOB,
    PRIMARY KEY (plural, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
"""


class StateFile:
    """Objects and a few facts. Each change is written in the turn of the event
    loop that makes it: it survives the end of the process, not of the host."""

    def __init__(self, path: str) -> None:
        """
        Raises:
            OSError: the file cannot be used.
        """
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            self._db = sqlite3.connect(path, isolation_level=None)
            self._db.executescript(_SCHEMA)
        except sqlite3.Error as exc:
            raise OSError(f"{path}: {exc}") from exc

    def fact(self, name: str, default: str) -> str:
        """A text that stays the same from the first start on."""
        self._db.execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", (name, default))
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,))
        return str(row.fetchone()[0])

    def set_fact(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def load(self, store: Store) -> bool:
        """Fill an empty store. Returns False when there is nothing yet."""
        rows = self._db.execute("SELECT plural, namespace, name, body FROM objects")
        found = False
        for plural, namespace, name, body in rows:
            store.restore(RESOURCES[plural], (namespace, name), decode(body))
            found = True
        if found:
            store.resume(int(self.fact("version", "0")))
        return found

    def follow(self, store: Store) -> None:
        """Write down every change from now on."""
        store.subscribers.insert(0, self._event)

    def _event(self, event: Event) -> None:
        where = (event.resource.plural, *event.key)
        self._db.execute("BEGIN")
        if event.type == "DELETED":
            self._db.execute(
                "DELETE FROM objects WHERE plural = ? AND namespace = ? AND name = ?",
                where,
            )
        else:
            self._db.execute(
                "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)",
                (*where, encode(event.object)),
            )
        self.set_fact("version", str(event.version))
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()
