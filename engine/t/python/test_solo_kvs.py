# SPDX-License-Identifier: LGPL-3.0-only
"""The KVS: commits, lookups, watches, namespaces, snapshots, restart."""

import base64
import errno
import json
import random
import resource
import sqlite3

import flux.kvs
import pytest
import solo_support
from flux.constants import FLUX_RPC_STREAMING
from solo_support import Instance

pytestmark = pytest.mark.skipif(
    not solo_support.available() or not solo_support.is_solo(), reason="needs solo"
)

READDIR, READLINK, WATCH, WAITCREATE, TREEOBJ, APPEND = 1, 2, 4, 8, 16, 32
WATCH_FULL, WATCH_UNIQ, WATCH_APPEND, STREAM, SENTINEL = 64, 128, 256, 512, 1024


def val(data):
    return {
        "ver": 1,
        "type": "val",
        "data": base64.b64encode(data.encode()).decode(),
    }


def put(key, data, append=False):
    return {"key": key, "flags": APPEND if append else 0, "dirent": val(data)}


def unlink(key):
    return {"key": key, "flags": 0, "dirent": None}


def mkdir(key):
    return {"key": key, "flags": 0, "dirent": {"ver": 1, "type": "dir", "data": {}}}


def symlink(key, target, **kwargs):
    data = {"target": target, **kwargs}
    return {
        "key": key,
        "flags": 0,
        "dirent": {"ver": 1, "type": "symlink", "data": data},
    }


class Kvs:
    """The KVS by its RPCs."""

    def __init__(self, handle, namespace="primary"):
        self.handle = handle
        self.namespace = namespace

    def commit_async(self, *ops):
        payload = {"namespace": self.namespace, "flags": 0, "ops": list(ops)}
        return self.handle.rpc("kvs.commit", payload)

    def commit(self, *ops):
        return self.commit_async(*ops).get()["rootseq"]

    def root(self):
        """A reference to all of it."""
        return self.commit_async().get()["rootref"]

    def lookup(self, key, flags=0, **kwargs):
        payload = {"key": key, "namespace": self.namespace, "flags": flags, **kwargs}
        return self.handle.rpc("kvs.lookup", payload).get()["val"]

    def get(self, key):
        return base64.b64decode(self.lookup(key)["data"]).decode()

    def names(self, key):
        return sorted(self.lookup(key, READDIR)["data"])

    def watch(self, key, flags):
        payload = {"key": key, "namespace": self.namespace, "flags": flags}
        return Watch(
            self.handle.rpc("kvs-watch.lookup", payload, flags=FLUX_RPC_STREAMING)
        )


class Watch:
    def __init__(self, future):
        self.future = future

    def next(self):
        """The next value; None for the sentinel."""
        text = self.future.get_str()
        self.future.reset()
        if text is None:
            return None
        value = json.loads(text)["val"]
        if value["type"] == "dir":
            return sorted(value["data"])
        return base64.b64decode(value["data"]).decode()

    def error(self):
        with pytest.raises(OSError) as exc:
            self.future.get()
        return exc.value.errno


@pytest.fixture(scope="module", name="instance")
def fixture_instance():
    with Instance("-Sbroker.rc1_path=") as instance:
        h = instance.open()
        solo_support.load_module(h, "kvs")
        yield instance
        assert instance.close() == 0


@pytest.fixture(name="kvs")
def fixture_kvs(instance):
    kvs = Kvs(instance.open())
    kvs.commit(mkdir("."))
    return kvs


def raises(code):
    class Check:
        def __enter__(self):
            self.context = pytest.raises(OSError)
            self.info = self.context.__enter__()

        def __exit__(self, *args):
            result = self.context.__exit__(*args)
            assert self.info.value.errno == code
            return result

    return Check()


def test_put_get_unlink(kvs):
    seq = kvs.commit(put("a.b.c", "1"), put("a.d", ""))
    assert kvs.get("a.b.c") == "1"
    assert kvs.get("a.d") == ""
    assert kvs.names("a") == ["b", "d"]
    assert kvs.names(".") == ["a"]
    assert kvs.commit(unlink("a.b.c")) == seq + 1
    with raises(errno.ENOENT):
        kvs.get("a.b.c")
    assert kvs.names("a.b") == []
    kvs.commit(unlink("a.b.c"), unlink("x.y"), unlink("a.d.e"))
    kvs.commit(unlink("a"))
    with raises(errno.ENOENT):
        kvs.names("a")


def test_types(kvs):
    kvs.commit(put("a.b", "1"))
    with raises(errno.EISDIR):
        kvs.get("a")
    with raises(errno.ENOTDIR):
        kvs.names("a.b")
    with raises(errno.ENOENT):
        kvs.get("a.b.c")
    with raises(errno.EINVAL):
        kvs.lookup("a.b", READLINK)
    with raises(errno.EISDIR):
        kvs.commit(put("a", "x", append=True))
    with raises(errno.EINVAL):
        kvs.commit(put(".", "x"))
    kvs.commit(put("a.b.c", "2"))
    assert kvs.get("a.b.c") == "2"
    kvs.commit(put("a", "3"))
    assert kvs.get("a") == "3"


def test_append(kvs):
    kvs.commit(put("log", "one ", append=True))
    kvs.commit(put("log", "two ", append=True), put("log", "three", append=True))
    assert kvs.get("log") == "one two three"
    kvs.commit(put("log", "new"))
    assert kvs.get("log") == "new"


def test_symlinks(kvs):
    kvs.commit(put("dir.x", "1"), symlink("l", "dir"), symlink("m", "l.x"))
    assert kvs.get("l.x") == "1"
    assert kvs.get("m") == "1"
    assert kvs.lookup("m", READLINK)["data"] == {"target": "l.x"}
    kvs.commit(put("l.y", "2"))
    assert kvs.get("dir.y") == "2"
    kvs.commit(symlink("loop", "loop"))
    with raises(errno.ELOOP):
        kvs.get("loop")
    with raises(errno.ELOOP):
        kvs.commit(put("loop.x", "1"))
    with raises(errno.EOPNOTSUPP):
        kvs.commit(put("m", "x", append=True))


def test_failed_commit_changes_nothing(kvs):
    kvs.commit(put("a.b", "1"), put("log", "x"))
    bad = put("a", "x", append=True)
    for ops in (
        [put("new.x", "1"), bad],
        [put("log", "y", append=True), put("log", "z", append=True), bad],
        [unlink("log"), put("log", "other"), bad],
        [put("a.b", "2"), put("a.b.c", "3"), unlink("a.b"), bad],
        [mkdir("."), put("q", "1"), mkdir("."), put("a.z", "2"), bad],
    ):
        with raises(errno.EISDIR):
            kvs.commit(*ops)
        assert kvs.names(".") == ["a", "log"]
        assert kvs.names("a") == ["b"]
        assert kvs.get("a.b") == "1"
        assert kvs.get("log") == "x"


def test_snapshots(kvs):
    kvs.commit(put("a.x", "1"), put("a.log", "l"), put("b", "2"))
    snapshot = kvs.lookup("a", TREEOBJ)
    assert snapshot["type"] == "dirref"
    kvs.commit(put("a.x", "changed"), put("a.log", "m", append=True), unlink("b"))
    value = kvs.lookup("x", rootdir=snapshot)
    assert value == val("1")
    assert kvs.lookup("log", rootdir=snapshot) == val("l")
    kvs.commit({"key": "copy", "flags": 0, "dirent": snapshot})
    assert kvs.get("copy.x") == "1"
    kvs.commit(put("copy.x", "3"))
    assert kvs.get("a.x") == "changed"
    assert kvs.get("copy.x") == "3"
    assert kvs.get("copy.log") == "l"
    unknown = {"ver": 1, "type": "dirref", "data": ["sha1-" + 40 * "f"]}
    with raises(errno.ENOENT):
        kvs.commit({"key": "u", "flags": 0, "dirent": unknown})


def test_namespaces(kvs, instance, monkeypatch):
    h = kvs.handle
    payload = {"namespace": "guest", "rootref": "", "owner": 1234, "flags": 0}
    h.rpc("kvs.namespace-create", payload).get()
    with raises(errno.EEXIST):
        h.rpc("kvs.namespace-create", payload).get()
    guest_ns = Kvs(h, "guest")
    guest_ns.commit(put("x.y", "1"))
    kvs.commit(symlink("g", ".", namespace="guest"))
    assert kvs.get("g.x.y") == "1"
    with raises(errno.EINVAL):
        kvs.commit(put("g.z", "1"))
    monkeypatch.setenv("FLUX_HANDLE_USERID", "1234")
    monkeypatch.setenv("FLUX_HANDLE_ROLEMASK", "2")
    guest = instance.open()
    assert Kvs(guest, "guest").get("x.y") == "1"
    Kvs(guest, "guest").commit(put("z", "2"))
    with raises(errno.EPERM):
        Kvs(guest).get("g.x.y")
    with raises(errno.EPERM):
        guest.rpc("kvs.namespace-remove", {"namespace": "guest"}).get()
    # a reference is no way around that
    ref = {"ver": 1, "type": "dirref", "data": [kvs.root()]}
    for dirent in ref, {"ver": 1, "type": "dir", "data": {"d": ref}}:
        with raises(errno.EPERM):
            Kvs(guest, "guest").commit({"key": "r", "flags": 0, "dirent": dirent})
    # as the job manager does when a job has ended
    ref = {"ver": 1, "type": "dirref", "data": [Kvs(h, "guest").root()]}
    kvs.commit({"key": "done", "flags": 0, "dirent": ref})
    watch = guest_ns.watch("x.y", WATCH)
    assert watch.next() == "1"
    h.rpc("kvs.namespace-remove", {"namespace": "guest"}).get()
    assert watch.error() == errno.ENOTSUP
    with raises(errno.ENOTSUP):
        guest_ns.get("x.y")
    assert kvs.get("done.x.y") == "1"
    assert kvs.get("done.z") == "2"


def test_namespace_moves(kvs):
    h = kvs.handle
    payload = {"namespace": "job", "rootref": "", "owner": 1234, "flags": 0}
    h.rpc("kvs.namespace-create", payload).get()
    ns = Kvs(h, "job")
    ns.commit(put("x.y", "1"))
    kvs.commit(symlink("dir.guest", ".", namespace="job"))
    watch = kvs.watch("dir.guest.x.y", WATCH | WATCH_UNIQ)
    assert watch.next() == "1"
    move = {"namespace": "job", "key": "dir.guest"}
    with raises(errno.ENOTSUP):
        h.rpc("kvs.namespace-move", {**move, "namespace": "primary"}).get()
    with raises(errno.EINVAL):
        h.rpc("kvs.namespace-move", {**move, "key": "dir.guest.x.y"}).get()
    late = ns.commit_async(put("late", "2"))
    moved = h.rpc("kvs.namespace-move", move)
    later = ns.commit_async(put("later", "3"))
    late.get()
    moved.get()
    with raises(errno.ENOTSUP):
        later.get()
    assert kvs.names("dir.guest") == ["late", "x"]
    assert kvs.get("dir.guest.x.y") == "1"
    kvs.commit(put("dir.guest.x.y", "4"))
    assert watch.next() == "4"
    with raises(errno.ENOTSUP):
        h.rpc("kvs.namespace-move", move).get()


def test_watch(kvs):
    kvs.commit(put("a", "1"))
    watch = kvs.watch("a", WATCH)
    uniq = kvs.watch("a", WATCH | WATCH_UNIQ)
    assert watch.next() == "1"
    assert uniq.next() == "1"
    kvs.commit(put("a", "1"))
    kvs.commit(put("b", "x"))
    kvs.commit(put("a", "2"))
    assert watch.next() == "1"
    assert watch.next() == "2"
    assert uniq.next() == "2"
    kvs.commit(unlink("a"))
    assert watch.error() == errno.ENOENT
    assert kvs.watch("nothing", WATCH).error() == errno.ENOENT


def test_watch_append(kvs):
    kvs.commit(put("log", "0"))
    watch = kvs.watch("log", WATCH | WATCH_APPEND | SENTINEL)
    assert watch.next() == "0"
    assert watch.next() is None
    for i in range(1, 10):
        kvs.commit(put("log", str(i), append=True))
    text = ""
    while len(text) < 9:
        text += watch.next()
    assert text == "123456789"
    kvs.commit(put("log", "overwritten with more than there was"))
    assert watch.error() == errno.EINVAL


def test_watch_waitcreate(kvs):
    watch = kvs.watch("d.e.f", WATCH | WAITCREATE)
    below = kvs.watch("t.x", WAITCREATE | STREAM)
    kvs.commit(put("d.e.g", "no"), put("src.x", "s"))
    kvs.commit(put("d.e.f", "yes"))
    assert watch.next() == "yes"
    kvs.commit({"key": "t", "flags": 0, "dirent": kvs.lookup("src", TREEOBJ)})
    assert below.next() == "s"
    assert below.error() == errno.ENODATA


def test_watch_full(kvs):
    kvs.commit(put("d.a", "1"))
    full = kvs.watch("d.a", WATCH | WATCH_FULL)
    names = kvs.watch("d", WATCH | WATCH_FULL | READDIR)
    assert full.next() == "1"
    assert names.next() == ["a"]
    kvs.commit(put("d.b", "1"))
    assert names.next() == ["a", "b"]
    kvs.commit(put("other.a", "2"))
    kvs.commit({"key": "d", "flags": 0, "dirent": kvs.lookup("other", TREEOBJ)})
    assert full.next() == "2"
    assert names.next() == ["a"]
    kvs.commit(unlink("d"))
    assert full.error() == errno.ENOENT


def test_watch_cancel(kvs):
    h = kvs.handle
    kvs.commit(put("a", "1"))
    watch = kvs.watch("a", WATCH)
    assert watch.next() == "1"
    h.rpc(
        "kvs-watch.cancel",
        {"matchtag": watch.future.pimpl.get_matchtag()},
        flags=flux.constants.FLUX_RPC_NORESPONSE,
    )
    assert watch.error() == errno.ENODATA


def test_flux_kvs(instance):
    h = instance.open()
    flux.kvs.put(h, "py.a", {"x": [1, 2]})
    flux.kvs.put(h, "py.b.c", "text")
    flux.kvs.commit(h)
    assert flux.kvs.get(h, "py.a") == {"x": [1, 2]}
    assert flux.kvs.exists(h, "py.b.c")
    assert not flux.kvs.exists(h, "py.nothing")
    directory = flux.kvs.get_dir(h, "py")
    assert sorted(directory.files()) == ["a"]
    assert sorted(directory.directories()) == ["b"]
    assert directory["b.c"] == "text"
    flux.kvs.put_unlink(h, "py.b")
    flux.kvs.commit(h)
    assert not flux.kvs.isdir(h, "py.b")


def model_commit(model, ops):
    for op in ops:
        key, dirent = op["key"], op["dirent"]
        if dirent is None:
            model.pop(key, None)
        else:
            data = base64.b64decode(dirent["data"]).decode()
            model[key] = model.get(key, "") + data if op["flags"] else data


def random_ops(rng, n):
    ops = []
    for _ in range(n):
        key = f"d{rng.randrange(4)}.k{rng.randrange(30)}"
        kind = rng.randrange(5)
        if kind == 0:
            ops.append(unlink(key))
        else:
            ops.append(put(key, f"{rng.randrange(1000)},", append=kind > 2))
    return ops


@pytest.mark.parametrize("seed", range(3))
def test_killed_instance_restarts(tmp_path, seed):
    """Answered commits are there; a commit is there as a whole or not."""
    rng = random.Random(seed)
    state = f"--statedir={tmp_path / 'state'}"
    model = {}
    for _ in range(3):
        instance = Instance(state, "-Sbroker.rc1_path=")
        h = instance.open()
        args = ["statedir"]
        solo_support.load_module(h, "kvs", args)
        kvs = Kvs(h)
        for key, value in model.items():
            assert kvs.get(key) == value
        found = sum(len(kvs.names(d)) for d in kvs.names(".") if d != "torn")
        assert found == len(model)
        for _ in range(rng.randrange(1, 150)):
            ops = random_ops(rng, rng.randrange(1, 5))
            kvs.commit(*ops)
            model_commit(model, ops)
        # commits under way when the instance dies
        pending = [
            kvs.commit_async(put("torn.a", f"{i},", True), put("torn.b", f"{i},", True))
            for i in range(20)
        ]
        pending[rng.randrange(20)].get()
        instance.kill()
    instance = Instance(state, "-Sbroker.rc1_path=")
    h = instance.open()
    solo_support.load_module(h, "kvs", ["statedir"])
    kvs = Kvs(h)
    assert kvs.get("torn.a") == kvs.get("torn.b")
    assert kvs.get("torn.a").startswith("0,")
    del h, kvs
    assert instance.close() == 0


def test_namespace_moves_after_restart(tmp_path):
    """Also one that comes before the primary one on disk."""

    def start():
        instance = Instance(f"--statedir={tmp_path}", "-Sbroker.rc1_path=")
        h = instance.open()
        solo_support.load_module(h, "kvs", ["statedir"])
        return instance, h

    instance, h = start()
    payload = {"namespace": "a", "rootref": "", "owner": 1234, "flags": 0}
    h.rpc("kvs.namespace-create", payload).get()
    Kvs(h, "a").commit(put("x.y", "1"))
    instance.kill()
    instance, h = start()
    h.rpc("kvs.namespace-move", {"namespace": "a", "key": "dir.of"}).get()
    assert Kvs(h).get("dir.of.x.y") == "1"
    instance.kill()
    instance, h = start()
    assert Kvs(h).get("dir.of.x.y") == "1"
    with raises(errno.ENOTSUP):
        Kvs(h, "a").get("x.y")
    del h
    assert instance.close() == 0


def test_full_disk(tmp_path):
    """After a failure nothing is written: no commit is missing in between."""
    state = f"--statedir={tmp_path}"
    options = [state, "-Sbroker.rc1_path="]
    with Instance(*options) as instance:
        h = instance.open()
        solo_support.load_module(h, "kvs", ["statedir"])
        (pid,) = solo_support.processes(h, "kvs")
        kvs = Kvs(h)
        kvs.commit(put("log", "a", append=True))
        limit = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, limit[1]))
        payload = {"namespace": "ns", "rootref": "", "owner": 0, "flags": 0}
        with raises(errno.EIO):
            h.rpc("kvs.namespace-create", payload).get()
        with raises(errno.EIO):
            kvs.commit(put("log", "b", append=True))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)
        with raises(errno.EIO):
            kvs.commit(put("log", "c", append=True))
        del h, kvs
        instance.close()
    with Instance(*options) as instance:
        h = instance.open()
        solo_support.load_module(h, "kvs", ["statedir"])
        assert Kvs(h).get("log") == "a"


def test_store_that_cannot_be_opened(tmp_path):
    """The instance does not start, and says why."""
    state = tmp_path / "state"
    state.mkdir()
    (state / "kvs.sqlite").mkdir()
    done = solo_support.start(f"--statedir={state}", "true")
    assert done.returncode == 1
    assert f"{state}/kvs.sqlite: unable to open database file" in done.stderr


def test_statedir_of_kvs_in_c(tmp_path):
    """Rows as the KVS in C has written them."""
    rows = [
        ("a", 0, 1, b""),  # a directory that is not empty any more
        ("a.b", 0, 0, b"one,"),
        ("a.b", 3, 0, b"two"),
        ("empty", 0, 1, b""),
        ("link", 0, 2, b"\0a.b"),
        ("other", 0, 2, b"job\0."),
    ]
    with sqlite3.connect(tmp_path / "kvs.sqlite") as db:
        db.executescript(
            "create table namespace ("
            " name text primary key, owner integer, seq integer) without rowid;"
            "create table entry ("
            " ns text, path text, chunk integer, type integer, data blob,"
            " primary key (ns, path, chunk)) without rowid;"
            "insert into namespace values ('primary', 0, 17);"
        )
        sql = "insert into entry values ('primary', ?, ?, ?, ?)"
        db.executemany(sql, rows)
    db.close()
    with Instance(f"--statedir={tmp_path}", "-Sbroker.rc1_path=") as instance:
        h = instance.open()
        solo_support.load_module(h, "kvs", ["statedir"])
        kvs = Kvs(h)
        assert kvs.names(".") == ["a", "empty", "link", "other"]
        assert kvs.get("link") == "one,two"
        assert kvs.names("empty") == []
        other = {"namespace": "job", "target": "."}
        assert kvs.lookup("other", READLINK)["data"] == other
        assert kvs.commit(put("a.b", ",three", append=True)) == 18
        del h, kvs
        instance.kill()
    with sqlite3.connect(tmp_path / "kvs.sqlite") as db:
        found = "select chunk, data from entry where path = 'a.b' order by chunk"
        assert db.execute(found).fetchall()[-1] == (4, b",three")
    db.close()


def test_statedir_is_locked(tmp_path):
    state = f"--statedir={tmp_path}"
    with Instance(state, "-Sbroker.rc1_path="):
        done = solo_support.start(state, "true")
        assert done.returncode == 1
        assert "in use by another instance" in done.stderr
