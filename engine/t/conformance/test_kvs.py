# SPDX-License-Identifier: LGPL-3.0-only
"""flux.kvs"""

import errno
import os

import flux
from flux import kvs
from flux.constants import FLUX_KVS_NO_MERGE, FLUX_KVS_SYNC, FLUX_KVS_TXN_COMPACT
from support import Case


class TestKVS(Case):
    def setUp(self):
        super().setUp()
        self.top = self._testMethodName
        kvs.put_mkdir(self.handle, self.top)
        kvs.commit(self.handle)

    def key(self, name):
        return f"{self.top}.{name}"

    def put(self, **values):
        for name, value in values.items():
            kvs.put(self.handle, self.key(name), value)
        kvs.commit(self.handle)

    def get(self, name, **kwargs):
        return kvs.get(self.handle, self.key(name), **kwargs)

    def test_values(self):
        """JSON comes back as it went in, text as text, bytes as bytes."""
        values = {
            "i": 42,
            "f": 1.5,
            "n": None,
            "t": True,
            "s": "ü\n",
            "l": [1, [2], {}],
            "o": {"a": {"b": 1}},
            "empty": "",
            "big": "x" * 100000,
        }
        self.put(**values)
        for name, value in values.items():
            self.assertEqual(self.get(name), value)
            self.assertEqual(kvs.get_key_direct(self.handle, self.key(name)), value)
        kvs.put(self.handle, self.key("text"), "plain text", raw=True)
        kvs.put(self.handle, self.key("bytes"), b"\xff\xfe")
        kvs.put(self.handle, self.key("json"), b'{"a":1}', raw=True)
        kvs.put(self.handle, self.key("nothing"), b"", raw=True)
        kvs.commit(self.handle)
        self.assertEqual(self.get("text"), "plain text")
        self.assertEqual(self.get("bytes"), b"\xff\xfe")
        self.assertEqual(self.get("json"), {"a": 1})
        self.assertIsNone(self.get("nothing"))
        with self.assertRaises(TypeError):
            kvs.put(self.handle, "x", object())

    def test_errors(self):
        self.put(a=1)
        with self.fails(errno.ENOENT):
            self.get("nosuch")
        with self.fails(errno.ENOENT):
            self.get("nosuch.deeper")
        with self.fails(errno.ENOENT):
            self.get("a.b")
        with self.fails(errno.EISDIR):
            kvs.get_key_direct(self.handle, self.top)
        with self.fails(errno.ENOTDIR):
            kvs.get_dir(self.handle, self.key("a"))
        with self.fails(errno.ENOENT):
            kvs.get_dir(self.handle, self.key("nosuch"))
        with self.fails(errno.EINVAL):
            kvs.get(self.handle, "")
        with self.fails(errno.EINVAL):
            kvs.put(self.handle, "", 1)
        with self.fails(errno.EINVAL):
            kvs.put_unlink(self.handle, "")
        with self.fails(errno.EINVAL):
            kvs.put_symlink(self.handle, "", "x")
        with self.fails(errno.EINVAL):
            kvs.put_symlink(self.handle, "x", None)

    def test_odd_keys(self):
        """Dots at the ends and in a row do not count."""
        self.put(a=7)
        for key in (f".{self.key('a')}", f"{self.top}..a", f"{self.key('a')}."):
            self.assertEqual(kvs.get(self.handle, key), 7)
        self.assertTrue(kvs.isdir(self.handle, "."))

    def test_exists(self):
        self.put(a=1)
        kvs.put_mkdir(self.handle, self.key("dir"))
        kvs.put_symlink(self.handle, self.key("dangling"), "nosuch")
        kvs.commit(self.handle)
        for name, there, isdir in (
            ("a", True, False),
            ("dir", True, True),
            ("nosuch", False, False),
            ("a.b", False, False),
            ("dangling", False, False),
        ):
            self.assertEqual(kvs.exists(self.handle, self.key(name)), there, name)
            self.assertEqual(kvs.isdir(self.handle, self.key(name)), isdir, name)
        for call in kvs.exists, kvs.isdir:
            with self.fails(errno.ENOTSUP):
                call(self.handle, "a", namespace="nosuch")

    def test_changes_in_order(self):
        """Within a transaction the last one wins; values give way to
        directories and the other way around."""
        kvs.put(self.handle, self.key("a"), 1)
        kvs.put(self.handle, self.key("a"), 2)
        kvs.put(self.handle, self.key("b"), 1)
        kvs.put_unlink(self.handle, self.key("b"))
        kvs.put_unlink(self.handle, self.key("nosuch"))
        kvs.put_unlink(self.handle, self.key("no.such"))
        kvs.commit(self.handle)
        self.assertEqual(self.get("a"), 2)
        self.assertFalse(kvs.exists(self.handle, self.key("b")))
        self.put(**{"a.x": 1})
        self.assertEqual(self.get("a.x"), 1)
        self.put(a=3)
        self.assertEqual(self.get("a"), 3)
        kvs.put_mkdir(self.handle, self.key("a"))
        kvs.commit(self.handle)
        self.assertEqual(len(self.get("a")), 0)
        kvs.put_unlink(self.handle, self.key("a"))
        kvs.commit(self.handle)
        self.assertFalse(kvs.exists(self.handle, self.key("a")))

    def test_symlinks(self):
        self.put(**{"dir.a": 1})
        kvs.put_symlink(self.handle, self.key("link"), self.key("dir"))
        kvs.put_symlink(self.handle, self.key("loop"), self.key("loop"))
        kvs.commit(self.handle)
        self.assertEqual(self.get("link.a"), 1)
        self.assertEqual(list(self.get("link")), ["a"])
        self.put(**{"link.b": 2})
        self.assertEqual(self.get("dir.b"), 2)
        with self.fails(errno.ELOOP):
            self.get("loop")
        kvs.put_unlink(self.handle, self.key("link"))
        kvs.commit(self.handle)
        self.assertEqual(self.get("dir.a"), 1)

    def test_commit(self):
        kvs.commit(self.handle)  # nothing to do
        for flags in 0, FLUX_KVS_NO_MERGE, FLUX_KVS_TXN_COMPACT, FLUX_KVS_SYNC:
            kvs.put(self.handle, self.key("a"), flags)
            kvs.commit(self.handle, flags)
            self.assertEqual(self.get("a"), flags)
        kvs.put(self.handle, self.key("a"), 1)
        with self.fails(errno.ENOTSUP):
            kvs.commit(self.handle, namespace="nosuch")
        kvs.commit(self.handle)  # what has failed is gone
        self.assertEqual(self.get("a"), FLUX_KVS_SYNC)

    def test_commit_async(self):
        kvs.commit_async(self.handle).get()
        kvs.put(self.handle, self.key("a"), 5)
        future = kvs.commit_async(self.handle)
        future.get()
        self.assertTrue(future.is_ready())
        self.assertEqual(self.get("a"), 5)
        txn = kvs.KVSTxn(self.handle)
        txn.put(self.key("a"), 6)
        kvs.commit_async(self.handle, _kvstxn=txn).get()
        self.assertEqual(self.get("a"), 6)
        kvs.put(self.handle, self.key("a"), 7)
        with self.fails(errno.ENOTSUP):
            kvs.commit_async(self.handle, namespace="nosuch").get()

    def test_txn(self):
        with kvs.KVSTxn(self.handle, self.top) as txn:
            txn.put("a", 1)
            txn.put("raw", "[1", raw=True)
            txn.mkdir("dir")
            txn.symlink("link", self.key("a"))
            self.assertFalse(kvs.exists(self.handle, self.key("a")))
        self.assertEqual((self.get("a"), self.get("link")), (1, 1))
        self.assertEqual(self.get("raw"), "[1")
        self.assertTrue(kvs.isdir(self.handle, self.key("dir")))
        txn = kvs.KVSTxn(self.handle, self.top + ".")
        txn.unlink("a")
        txn.clear()
        txn.commit()
        self.assertEqual(self.get("a"), 1)
        txn.unlink("a")
        txn.commit()
        self.assertFalse(kvs.exists(self.handle, self.key("a")))
        txn.put("a", 2)
        txn.commit_async().get()
        self.assertEqual(self.get("a"), 2)
        txn = kvs.KVSTxn(self.handle, namespace="nosuch")
        txn.put("a", 1)
        with self.fails(errno.ENOTSUP):
            txn.commit()
        txn.commit()

    def test_namespaces(self):
        name = self.top
        kvs.namespace_create(self.handle, name)
        with self.fails(errno.EEXIST):
            kvs.namespace_create(self.handle, name)
        self.assertIn(name, kvs.namespace_list(self.handle))
        self.assertIn("primary", kvs.namespace_list(self.handle))
        kvs.put(self.handle, "a.b", 1)
        kvs.commit(self.handle, namespace=name)
        self.assertEqual(kvs.get(self.handle, "a.b", namespace=name), 1)
        self.assertFalse(kvs.exists(self.handle, "a.b"))
        self.assertTrue(kvs.isdir(self.handle, "a", namespace=name))
        directory = kvs.get_dir(self.handle, "a", namespace=name)
        directory["c"] = 2
        directory.commit()
        self.assertEqual(kvs.get(self.handle, "a.c", namespace=name), 2)
        walk = [
            (where, sorted(files))
            for where, _, files in kvs.walk(
                "a", flux_handle=self.handle, namespace=name
            )
        ]
        self.assertEqual(walk, [("", ["b", "c"])])
        # the environment's takes the place of None
        os.environ["FLUX_KVS_NAMESPACE"] = name
        try:
            self.assertEqual(kvs.get(flux.Flux(), "a.b"), 1)
        finally:
            del os.environ["FLUX_KVS_NAMESPACE"]
        watch = kvs.kvs_watch_async(self.handle, "a.b", namespace=name)
        self.assertEqual(watch.get(), 1)
        kvs.namespace_remove(self.handle, name)
        with self.fails(errno.ENOTSUP):
            watch.get()
        watch.needs_cancel = False
        with self.fails(errno.ENOTSUP):
            kvs.get(self.handle, "a.b", namespace=name)
        kvs.namespace_remove(self.handle, name)  # no error if it is gone
        with self.fails(errno.ENOTSUP):
            kvs.namespace_remove(self.handle, "primary")

    def test_dir(self):
        self.put(**{"a": 1, "b": "x", "d.e.f": 3, "d.g": 4})
        top = kvs.get_dir(self.handle, self.top)
        self.assertIsInstance(self.get("d"), kvs.KVSDir)
        self.assertEqual(sorted(top), ["a", "b", "d"])
        self.assertEqual(len(top), 3)
        self.assertEqual(sorted(top.files()), ["a", "b"])
        self.assertEqual(list(top.directories()), ["d"])
        files, dirs = top.list_all()
        self.assertEqual((sorted(files), dirs), (["a", "b"], ["d"]))
        iterator = iter(top)
        self.assertIs(iter(iterator), iterator)
        self.assertIn(iterator.next(), ("a", "b", "d"))
        self.assertEqual((top["a"], top["b"], top["d.e.f"]), (1, "x", 3))
        self.assertEqual(top["d"]["e"]["f"], 3)
        self.assertIn("a", top)
        self.assertNotIn("nosuch", top)
        with self.assertRaises(KeyError):
            top["nosuch"]
        self.assertTrue(top.exists("d.e"))
        self.assertFalse(top.exists("e"))
        self.assertEqual(top.key_at("x"), self.key("x"))
        self.assertEqual(kvs.KVSDir(self.handle).key_at("x"), "x")
        with self.assertRaises(ValueError):
            kvs.KVSDir()

    def test_dir_writes(self):
        top = kvs.get_dir(self.handle, self.top)
        top["a"] = 1
        self.assertFalse(top.exists("a"))
        top.commit()
        self.assertEqual(self.get("a"), 1)
        # what has been read once stays
        self.assertEqual(len(top), 0)
        with kvs.get_dir(self.handle, self.top) as top:
            top["b"] = {"x": 1}
            del top["a"]
        self.assertEqual(list(kvs.get_dir(self.handle, self.top)), ["b"])
        top["c"] = 3
        top.commit_async().get()
        self.assertEqual(self.get("c"), 3)
        top.fill({"d": 1, "e.f": 2})
        self.assertEqual((self.get("d"), self.get("e.f")), (1, 2))
        with self.assertRaises(ValueError):
            top.fill(None)
        kvs.get_dir(self.handle).mkdir(self.key("new"), {"x": 1})
        self.assertEqual(self.get("new.x"), 1)
        top.mkdir("empty")
        self.assertEqual(len(self.get("empty")), 0)

    def test_walk(self):
        self.put(**{"a.b.c": 1, "a.d": 2, "e": 3})

        def walk(*args, **kwargs):
            return [
                (where, sorted(dirs), sorted(files))
                for where, dirs, files in kvs.walk(*args, **kwargs)
            ]

        down = [("", ["a"], ["e"]), ("a", ["b"], ["d"]), ("a.b", [], ["c"])]
        top = kvs.get_dir(self.handle, self.top)
        self.assertEqual(walk(top, topdown=True), down)
        self.assertEqual(walk(self.top, flux_handle=self.handle), down[::-1])
        with self.assertRaises(ValueError):
            kvs.walk(self.top)
        self.assertEqual(kvs.join("", "a", "", "b.c"), "a.b.c")

    def test_watch(self):
        self.put(a=1)
        watch = kvs.kvs_watch_async(self.handle, self.key("a"))
        self.assertEqual(watch.get(), 1)
        self.put(b=1)
        self.put(a=2)
        self.assertEqual(watch.get(autoreset=False), 2)
        self.assertEqual(watch.get(), 2)
        kvs.put_unlink(self.handle, self.key("a"))
        kvs.commit(self.handle)
        with self.fails(errno.ENOENT):
            watch.get()
        watch.needs_cancel = False
        watch = kvs.kvs_watch_async(self.handle, self.key("b"))
        self.assertEqual(watch.get(), 1)
        watch.cancel()
        self.assertIsNone(watch.get())

    def test_watch_nothing(self):
        with self.fails(errno.ENOENT):
            kvs.kvs_watch_async(self.handle, self.key("nosuch")).get()
        watch = kvs.kvs_watch_async(self.handle, self.key("later"), waitcreate=True)
        self.assertFalse(watch.is_ready())
        self.put(later="now")
        self.assertEqual(watch.get(), "now")
        watch.cancel(stop=True)
        self.assertTrue(watch.stopped)

    def test_watch_flags(self):
        """uniq tells of other values only, full of changes of directories
        above, too."""
        self.put(**{"a": 1, "d.x": 1})
        uniq = kvs.kvs_watch_async(self.handle, self.key("a"), uniq=True)
        full = kvs.kvs_watch_async(self.handle, self.key("d.x"), full=True)
        self.assertEqual((uniq.get(), full.get()), (1, 1))
        self.put(a=1)
        self.put(a=2)
        self.assertEqual(uniq.get(), 2)
        kvs.put_symlink(self.handle, self.key("d"), self.key("e"))
        kvs.put(self.handle, self.key("e.x"), 2)
        kvs.commit(self.handle)
        self.assertEqual(full.get(), 2)
        uniq.cancel()
        full.cancel()

    def test_watch_in_reactor(self):
        self.put(a=0)
        seen = []

        def changed(future):
            value = future.get()
            if value is None:
                self.handle.reactor_stop()
                return
            seen.append(value)
            if value == 3:
                future.cancel()
            else:
                kvs.put(self.handle, self.key("a"), value + 1)
                kvs.commit_async(self.handle)

        kvs.kvs_watch_async(self.handle, self.key("a")).then(changed)
        self.run_reactor()
        self.assertEqual(seen, [0, 1, 2, 3])
