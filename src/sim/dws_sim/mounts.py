# Plays file systems with directories: data lives below ROOT/backing until it is
# destroyed, a mount is a symbolic link at the mount path. Simulated nodes share this
# host, so a path exists while any node has it mounted.
# SPDX-License-Identifier: LGPL-3.0-only
"""Real directories behind allocations and mounts."""

from __future__ import annotations

import logging
import os
import shutil
import stat
from typing import Any, Callable

log = logging.getLogger("dws-sim.mounts")

DEFAULT_MOUNT_ROOT = "/mnt/nnf"


class Mounts:
    """The mounts of all nodes, and the directories for them."""

    def __init__(self, root: str | None = None, keep: bool = False) -> None:
        """
        Args:
            root: directory to make everything in; None: make nothing real.
            keep: move data to ROOT/kept instead of destroying it.
        """
        self._root = os.path.realpath(root) if root else None
        self._keep = keep
        self._users: dict[str, set[str]] = {}
        # what is mounted at a path: the same on all nodes
        self._names: dict[str, str] = {}
        self.count = 0
        if self._root:
            os.makedirs(self._root, mode=0o711, exist_ok=True)
            for name in ("backing", "mnt", "mnt/nnf", "kept"):
                os.makedirs(os.path.join(self._root, name), mode=0o711, exist_ok=True)

    @property
    def mount_root(self) -> str:
        """Where mount paths begin."""
        if self._root:
            return os.path.join(self._root, "mnt", "nnf")
        return DEFAULT_MOUNT_ROOT

    def backing(self, name: str) -> str | None:
        """The directory that holds an allocation's data."""
        return os.path.join(self._root, "backing", name) if self._root else None

    def lacks(self, root: str, path: str) -> bool:
        """Whether a path of a global file system is known not to be there: where
        mounts are real and the mount point `root` is a directory of this host."""
        if self._root is None or not os.path.isdir(root):
            return False
        return not os.path.lexists(path)

    def directories(self) -> list[str]:
        """The directories that hold data now."""
        if self._root is None:
            return []
        base = os.path.join(self._root, "backing")
        return [os.path.join(base, name) for name in sorted(os.listdir(base))]

    def allocate(self, name: str, uid: int, gid: int) -> None:
        """Make the directory of an allocation. Done already is a success."""
        path = self.backing(name)
        if path is None:
            return
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            return
        if os.geteuid() == 0:
            os.chown(path, uid, gid, follow_symlinks=False)
        os.chmod(path, 0o770)

    def destroy(self, name: str, label: str) -> None:
        """Remove an allocation's data; label names it when it is kept."""
        path = self.backing(name)
        if path is None or self._root is None or not os.path.lexists(path):
            return
        if self._keep:
            target = os.path.join(self._root, "kept", label)
            _remove(target)
            os.rename(path, target)
        else:
            _remove(path)

    def mount(self, node: str, path: str, name: str) -> None:
        """Mount an allocation on a node.

        Raises:
            OSError: the path cannot be made.
        """
        users = self._users.setdefault(path, set())
        if node in users:
            return
        target = self.backing(name)
        real = not users and self._ours(path) and not os.path.islink(path)
        if target is not None and real:
            os.symlink(target, path)
        users.add(node)
        self._names[path] = name
        self.count += 1

    def seen(self, node: str, path: str) -> dict[str, str]:
        """Data directories that a node has mounted at a path and below, by the path
        relative to it ("" for the path itself)."""
        out: dict[str, str] = {}
        for place, users in self._users.items():
            target = self.backing(self._names.get(place, ""))
            if node not in users or target is None:
                continue
            if place == path:
                out[""] = target
            elif place.startswith(f"{path}/"):
                out[place[len(path) + 1 :]] = target
        return out

    def has(self, node: str, path: str) -> bool:
        """Whether that is mounted on a node."""
        return node in self._users.get(path, ())

    def unmount(self, node: str, path: str) -> None:
        """Undo mount(), if mounted. Also removes a link from before a restart that no
        node is known to use."""
        users = self._users.get(path, set())
        if node in users:
            users.discard(node)
            self.count -= 1
        if not users:
            self._users.pop(path, None)
            self._names.pop(path, None)
            if self._root and self._ours(path) and os.path.islink(path):
                os.unlink(path)

    def _ours(self, path: str) -> bool:
        """Whether a mount becomes a real link: only paths directly in the mount root.
        Mounts of rabbits lie below that, and no process here uses them."""
        return os.path.dirname(path) == self.mount_root


def _remove(path: str) -> None:
    """Remove a tree without following a symbolic link anywhere."""

    def unlock(function: Callable[..., Any], name: str, info: Any) -> None:
        # A user has removed permissions: set them and try again. The tree belongs to
        # the simulator by now, and other users cannot put links into it.
        try:
            for directory in (os.path.dirname(name), name):
                if stat.S_ISDIR(os.lstat(directory).st_mode):
                    os.chmod(directory, 0o700)
            if stat.S_ISDIR(os.lstat(name).st_mode):
                shutil.rmtree(name)
            else:
                os.unlink(name)
        except OSError as exc:
            log.error("cannot remove %s: %s", name, exc)

    if os.path.islink(path) or os.path.isfile(path):
        os.unlink(path)
    elif os.path.isdir(path):
        shutil.rmtree(path, onerror=unlock)
