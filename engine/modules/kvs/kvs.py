# SPDX-License-Identifier: LGPL-3.0-only
"""The KVS module: commits, lookups, watches, namespaces, snapshots.

Entries are in memory and, with the module argument statedir, in SQLite in the directory
that the attribute of that name says. Commits that arrive together are
written together: answers and watch responses go out once these are on disk. After an
error of the disk nothing is written any more, and each commit fails with EIO.
"""

import base64
import errno
import json
import os
from collections import OrderedDict, defaultdict
from typing import Any, Callable, Optional

from _flux._core import ffi, lib
from flux.brokermod import BrokerModule, request_handler
from kvs_tree import (
    MAX_LINKS,
    Dir,
    Failure,
    Link,
    Namespace,
    Node,
    Txn,
    Value,
    encode,
    normal,
    reference,
    split,
    treeobj,
)

READDIR, READLINK, WATCH, WAITCREATE, TREEOBJ, APPEND = (1 << i for i in range(6))
FULL, UNIQ, WATCH_APPEND, STREAM, SENTINEL = (64 << i for i in range(5))
PRIMARY = "primary"
UNKNOWN = 0xFFFFFFFF  # FLUX_USERID_UNKNOWN
MAX_SNAPSHOTS = 256
INLINE = 256  # bytes of a value in a directory listing
MAX_BATCH = 128  # commits
OBJECTS = {"val": str, "valref": list, "dir": dict, "dirref": list, "symlink": dict}


def served(topic: str, guests: bool = True) -> Callable:
    """A method that takes the fields of the request as arguments and returns the
    answer, or None if that comes later."""

    def decorate(function: Callable) -> Callable:
        def handler(self: Any, msg: Any) -> None:
            self.serve(function, msg)

        return request_handler(topic, prefix=False, allow_guest=guests)(handler)

    return decorate


class Watch:
    def __init__(self, msg: Any, key: str, ns: str, flags: int) -> None:
        self.msg, self.key, self.ns, self.flags = msg, key, ns, flags
        self.path = normal(key)
        self.answered = self.through_link = False
        self.last: Any = None  # UNIQ, FULL: the last answer
        self.last_id = 0  # of the node
        self.origin = self.sent = 0  # APPEND: whose first bytes were sent


class Kvs(BrokerModule):
    def __init__(self, h: Any, *args: str) -> None:
        super().__init__(h, *args)
        self.failed = 0  # errno: nothing is written any more
        self.store: Any = None
        self.namespaces: dict[str, Namespace] = {}
        self.touched: set[str] = set()  # namespaces, since the last flush
        self.commits: list[tuple[Any, str]] = []
        self.snapshots: OrderedDict[int, Node] = OrderedDict()
        self.watches: dict[Watch, None] = {}
        self.by_path: dict[tuple, dict[Watch, None]] = defaultdict(dict)
        self.through_link: dict[Watch, None] = {}
        self.noted: dict[Watch, None] = {}
        for arg in args:
            if arg != "statedir":
                raise ValueError(f"unknown module argument: {arg}")
            self.load(os.path.join(h.attr_get("statedir"), "kvs.sqlite"))
        if PRIMARY not in self.namespaces:
            self.add(PRIMARY, Namespace(os.geteuid(), 0, Dir({})))
        self.idle = h.idle_watcher_create(self.on_idle)
        h.service_register("kvs-watch").get()
        self.flush()
        if self.failed:
            raise OSError(self.failed, os.strerror(self.failed))

    def load(self, path: str) -> None:
        from kvs_store import Store  # most instances need no SQLite

        try:
            self.store = Store(path)
            self.namespaces.update(self.store.load())
        except Store.Error as exc:
            raise ValueError(f"{path}: {exc}") from None

    def write(self, what: str, *args: Any) -> None:
        """Call a method of the store. An error leaves its transaction open: nothing of
        it, and nothing that comes later, is to be found on disk."""
        if not self.store or self.failed:
            return
        try:
            getattr(self.store, what)(*args)
        except self.store.Error as exc:
            self.failed = errno.EIO
            self.log.critical(f"cannot write to disk: {exc}")

    # Requests
    def respond(self, msg: Any, answer: Any = None) -> None:
        text = ffi.NULL if answer is None else json.dumps(answer).encode()
        if lib.flux_respond(self.handle.handle, msg.handle, text) < 0:
            self.log.error(f"cannot answer: {os.strerror(ffi.errno)}")

    def fail(self, msg: Any, errnum: int, text: Optional[str] = None) -> None:
        why = ffi.NULL if text is None else text.encode()
        if lib.flux_respond_error(self.handle.handle, msg.handle, errnum, why) < 0:
            self.log.error(f"cannot answer: {os.strerror(ffi.errno)}")

    def serve(self, function: Any, msg: Any) -> None:
        text = msg.payload_str
        try:
            answer = function(self, msg, **(json.loads(text) if text else {}))
        except Failure as exc:
            self.fail(msg, exc.errnum, exc.text)
        except (KeyError, TypeError, ValueError, AttributeError):
            self.fail(msg, errno.EPROTO)
        else:
            if answer is not None:
                self.respond(msg, answer)

    def find_ns(self, name: str, msg: Any) -> Namespace:
        if name not in self.namespaces:
            raise Failure(errno.ENOTSUP)
        ns = self.namespaces[name]
        if lib.flux_msg_authorize(msg.handle, ns.owner) < 0:
            raise Failure(errno.EPERM)
        return ns

    # Batches
    def schedule(self, msg: Any, namespace: str) -> None:
        """Answer once the changes are on disk."""
        self.commits.append((msg, namespace))
        self.idle.start()

    def on_idle(self, *_: Any) -> None:
        """Flush when all that has arrived is in."""
        more = lib.flux_pollevents(self.handle.handle) & lib.FLUX_POLLIN
        if not more or len(self.commits) >= MAX_BATCH:
            self.idle.stop()
            self.flush()

    def flush(self) -> None:
        for name in self.touched & self.namespaces.keys():
            self.write("save", name, self.namespaces[name])
        self.touched.clear()
        self.write("commit")
        commits, self.commits = self.commits, []
        for msg, name in commits:
            ns = self.namespaces.get(name)
            if self.failed:
                self.fail(msg, self.failed)
            elif ns:
                answer = {"rootref": reference(ns.root), "rootseq": ns.seq}
                self.respond(msg, answer)
            else:
                self.respond(msg)
        noted, self.noted = self.noted, {}
        for watch in noted:
            self.look(watch)

    # Commits
    def committed(self, name: str, txn: Txn) -> None:
        ns = self.namespaces[name]
        ns.root = txn.root
        ns.seq += 1
        self.touched.add(name)
        self.write("apply", name, txn.root, txn.changes)
        for change in txn.changes:
            self.note(name, change.path, change.below())

    def check(self, obj: dict) -> tuple[str, Any]:
        kind, data = obj.get("type"), obj.get("data")
        if obj.get("ver") != 1 or not isinstance(data, OBJECTS.get(kind, ())):
            raise Failure(errno.EINVAL)
        return kind, data

    def decode(self, obj: dict) -> Node:
        kind, data = self.check(obj)
        if kind == "val":
            raw = base64.b64decode(data, validate=True)
            return Value(raw, len(raw))
        if kind == "symlink":
            return Link(data["target"], data.get("namespace"))
        if kind == "dirref":
            return self.by_ref(data[0])
        if kind == "dir":
            txn = Txn(Dir({}))
            for name, below in data.items():
                txn.change(name, self.decode(below))
            return txn.root
        raise Failure(errno.EINVAL)

    def check_guest(self, obj: dict) -> None:
        """Services look up for guests what is in their namespaces: nothing in these
        may lead out of them."""
        kind, data = self.check(obj)
        if kind != "val" and (kind != "dir" or data):
            what = "non-empty dir" if kind == "dir" else kind
            raise Failure(errno.EPERM, f"guests may not commit {what} objects")

    def by_ref(self, ref: str) -> Node:
        number = int(ref.partition("-")[2], 16)
        for ns in self.namespaces.values():
            if ns.root.id == number:
                return ns.root
        if number not in self.snapshots:
            raise Failure(errno.ENOENT)
        return self.snapshots[number]

    @served("kvs.commit")
    def commit(self, msg: Any, namespace: str, ops: list, **_: Any) -> None:
        ns = self.find_ns(namespace, msg)
        guest = lib.flux_msg_authorize(msg.handle, UNKNOWN) < 0
        txn = Txn(ns.root)
        for op in ops:
            if op["dirent"] is None:
                txn.change(op["key"], None)
                continue
            if guest:
                self.check_guest(op["dirent"])
            node = self.decode(op["dirent"])
            if not op["flags"] & APPEND:
                txn.change(op["key"], node)
            elif isinstance(node, Value):
                txn.change(op["key"], None, node.read())
            else:
                raise Failure(errno.EPROTO)
        self.committed(namespace, txn)
        for op in ops:  # also keys as they were written, before links
            self.note(namespace, normal(op["key"]), False)
        self.schedule(msg, namespace)

    # Lookups
    def find(self, root: Dir, msg: Any, key: str, flags: int) -> tuple:
        """Returns the node, whether the way led through a link, and why there is
        none."""
        node: Optional[Node] = root
        todo = split(key)
        links = 0
        while todo or (isinstance(node, Link) and not flags & (READLINK | TREEOBJ)):
            if isinstance(node, Link):
                links += 1
                if links > MAX_LINKS:
                    return None, True, errno.ELOOP
                if node.ns:
                    try:
                        root = self.find_ns(node.ns, msg).root
                    except Failure as exc:
                        return None, True, exc.errnum
                todo = split(node.target) + todo
                node = root
            elif isinstance(node, Dir):
                node = node.entries.get(todo.pop(0))
            else:
                return None, links > 0, errno.ENOENT
        problem = 0
        if not node:
            problem = errno.ENOENT
        elif flags & READLINK:
            problem = 0 if isinstance(node, Link) else errno.EINVAL
        elif flags & READDIR:
            problem = 0 if isinstance(node, Dir) else errno.ENOTDIR
        elif not flags & TREEOBJ and isinstance(node, Dir):
            problem = errno.EISDIR
        return node, links > 0, problem

    def encode(self, node: Node, flags: int) -> dict:
        if isinstance(node, Dir) and flags & READDIR:
            entries = sorted(node.entries.items())
            return treeobj("dir", {name: encode(n, INLINE) for name, n in entries})
        if isinstance(node, Dir):
            self.snapshots.setdefault(node.id, node)
            if len(self.snapshots) > MAX_SNAPSHOTS:
                self.snapshots.popitem(last=False)
        return encode(node)

    @served("kvs.lookup")
    def lookup(
        self,
        msg: Any,
        key: str,
        flags: int,
        namespace: str = PRIMARY,
        rootdir: Any = None,
        **_: Any,
    ) -> dict:
        if rootdir:
            # anybody can guess references
            if lib.flux_msg_authorize(msg.handle, UNKNOWN) < 0:
                raise Failure(errno.EPERM)
            root: Any = self.decode(rootdir)
        else:
            root = self.find_ns(namespace, msg).root
        node, _linked, problem = self.find(root, msg, key, flags)
        if problem:
            raise Failure(problem)
        return {"val": self.encode(node, flags)}

    # Watches
    def note(self, ns: str, path: str, below: bool) -> None:
        """A commit named `path`. Links give other names to what is there."""
        if not self.watches:
            return
        self.noted.update(self.by_path.get((ns, path), {}))
        self.noted.update(self.through_link)
        parts = split(path)
        for i in range(len(parts)):
            for watch in self.by_path.get((ns, ".".join(parts[:i]) or "."), {}):
                if watch.flags & FULL:
                    self.noted[watch] = None
        if not below:
            return
        for watch in self.watches:
            inside = path == "." or watch.path.startswith(f"{path}.")
            wanted = not watch.answered or watch.flags & FULL
            if watch.ns == ns and inside and wanted:
                self.noted[watch] = None

    def note_ns(self, ns: str) -> None:
        """The namespace has come or gone."""
        self.noted.update(self.through_link)
        self.noted.update({watch: None for watch in self.watches if watch.ns == ns})

    def end(self, watch: Watch, errnum: int) -> None:
        if errnum:
            self.fail(watch.msg, errnum)
        where = watch.ns, watch.path
        self.watches.pop(watch, None)
        self.by_path[where].pop(watch, None)
        if not self.by_path[where]:
            del self.by_path[where]
        self.through_link.pop(watch, None)
        self.noted.pop(watch, None)

    def look(self, watch: Watch) -> None:
        if watch not in self.watches:
            return
        node, linked = None, False
        try:
            root = self.find_ns(watch.ns, watch.msg).root
            node, linked, problem = self.find(root, watch.msg, watch.key, watch.flags)
        except Failure as exc:
            problem = exc.errnum
        watch.through_link = linked
        if linked:
            self.through_link[watch] = None
        else:
            self.through_link.pop(watch, None)
        if not problem:
            problem = self.answer(watch, node)
        elif (
            watch.flags & WAITCREATE
            and not watch.answered
            and problem in (errno.ENOENT, errno.ENOTSUP)
        ):
            return
        watch.answered = True
        watch.last_id = node.id if node else 0
        if problem == errno.ENODATA and not watch.flags & (STREAM | WATCH):
            self.end(watch, 0)
        elif problem:
            self.end(watch, problem)

    def answer(self, watch: Watch, node: Any) -> int:
        """Returns why the watch ends, or 0."""
        first, flags = not watch.answered, watch.flags
        if flags & WATCH_APPEND:
            if not isinstance(node, Value):
                return errno.EINVAL
            if not first and (node.origin != watch.origin or node.size < watch.sent):
                return errno.EINVAL
            if first or node.size > watch.sent:
                self.respond(watch.msg, {"val": encode(node, None, watch.sent)})
            watch.origin, watch.sent = node.origin, node.size
        else:
            if not first and watch.through_link and node.id == watch.last_id:
                return 0
            value = self.encode(node, flags)
            if flags & (UNIQ | FULL):
                if watch.last == value:
                    return 0
                watch.last = value
            self.respond(watch.msg, {"val": value})
        if first and flags & SENTINEL:
            self.respond(watch.msg)
        return 0 if flags & (WATCH | WATCH_APPEND) else errno.ENODATA

    @served("kvs-watch.lookup")
    def watch(self, msg: Any, key: str, namespace: str, flags: int, **_: Any) -> None:
        if flags & (WATCH | STREAM) and not lib.flux_msg_is_streaming(msg.handle):
            raise Failure(errno.EPROTO)
        watch = Watch(msg, key, namespace, flags)
        self.watches[watch] = None
        self.by_path[namespace, watch.path][watch] = None
        self.look(watch)

    # Namespaces
    def add(self, name: str, ns: Namespace) -> None:
        self.namespaces[name] = ns
        self.write("create", name, ns)
        self.note_ns(name)

    @served("kvs.namespace-create", guests=False)
    def create(
        self, msg: Any, namespace: str, owner: int, rootref: str = "", **_: Any
    ) -> None:
        if namespace in self.namespaces:
            raise Failure(errno.EEXIST)
        root: Any = self.by_ref(rootref) if rootref else Dir({})
        owner &= UNKNOWN
        if owner == UNKNOWN:
            owner = os.geteuid()
        self.add(namespace, Namespace(owner, 0, root))
        self.schedule(msg, namespace)

    def drop(self, msg: Any, namespace: str) -> None:
        del self.namespaces[namespace]
        self.write("remove", namespace)
        self.note_ns(namespace)
        self.schedule(msg, namespace)

    @served("kvs.namespace-remove", guests=False)
    def remove(self, msg: Any, namespace: str, **_: Any) -> None:
        if namespace == PRIMARY:
            raise Failure(errno.ENOTSUP)
        if namespace not in self.namespaces:
            self.respond(msg)
            return
        self.flush()  # its last commits are answered
        self.drop(msg, namespace)

    @served("kvs.namespace-move", guests=False)
    def move(self, msg: Any, namespace: str, key: str, **_: Any) -> None:
        """Move the entries of the namespace to `key` of the primary one. The move
        includes all earlier commits; later commits fail."""
        ns = self.find_ns(namespace, msg)
        if namespace == PRIMARY:
            raise Failure(errno.ENOTSUP)
        self.flush()
        txn = Txn(self.namespaces[PRIMARY].root)
        txn.change(key, ns.root)
        self.committed(PRIMARY, txn)
        self.drop(msg, namespace)

    @served("kvs.namespace-list", guests=False)
    def list_namespaces(self, msg: Any, **_: Any) -> dict:
        return {
            "namespaces": [
                {"namespace": name, "owner": ns.owner, "flags": 0}
                for name, ns in self.namespaces.items()
            ]
        }

    @request_handler("kvs-watch.disconnect", prefix=False, allow_guest=True)
    def on_disconnect(self, msg: Any) -> None:
        for watch in list(self.watches):
            if lib.flux_disconnect_match(msg.handle, watch.msg.handle):
                self.end(watch, 0)

    @request_handler("kvs-watch.cancel", prefix=False, allow_guest=True)
    def on_cancel(self, msg: Any) -> None:
        for watch in list(self.watches):
            if lib.flux_cancel_match(msg.handle, watch.msg.handle):
                self.end(watch, errno.ENODATA)

    def run(self) -> None:
        super().run()
        self.flush()
        for watch in list(self.watches):
            self.end(watch, errno.ENOSYS)
