# SPDX-License-Identifier: LGPL-3.0-only
"""flux.hostlist, flux.idset"""

import errno

from flux import hostlist, idset
from flux.hostlist import Hostlist
from flux.idset import IDSET_FLAG_BRACKETS, IDSET_FLAG_RANGE, IDset
from support import Case


class TestHostlist(Case):
    def test_text(self):
        """In, out, and how many."""
        for text, encoded, count in (
            ("", "", 0),
            ("foo", "foo", 1),
            ("foo[0-3]", "foo[0-3]", 4),
            ("foo[0,1,2,5]", "foo[0-2,5]", 4),
            ("foo0,foo1,bar,foo2", "foo[0-1],bar,foo2", 4),
            ("foo[01-10]", "foo[01-10]", 10),
            ("foo9,foo10", "foo[9-10]", 2),
            ("foo09,foo10", "foo[09-10]", 2),
            ("foo1,foo01", "foo[1,01]", 2),
            ("f[0-1]-eth0", "f0-eth0,f1-eth0", 2),
            ("foo[3,1,1]", "foo[3,1,1]", 3),
            (",,foo,", "foo", 1),
            ("0,1", "[0-1]", 2),
        ):
            hosts = hostlist.decode(text)
            if encoded is not None:
                self.assertEqual(str(hosts), encoded, text)
                self.assertEqual(hosts.encode(), encoded)
            self.assertEqual((len(hosts), hosts.count()), (count, count), text)
            self.assertEqual(Hostlist(str(hosts)).expand(), hosts.expand())
        # the first bracket only
        self.assertEqual(list(Hostlist("a[1-2]b[3-4]")), ["a1b[3-4]", "a2b[3-4]"])
        self.assertEqual(repr(Hostlist("a[1-2]")), "Hostlist('a[1-2]')")

    def test_refused(self):
        for text in ("foo[", "foo[0-", "foo]", "foo[1-0]", "foo[x]", "foo[1-2", "[]"):
            with self.assertRaises(ValueError, msg=text):
                Hostlist(text)
        for bad in (1, None, [1]):
            with self.assertRaises(TypeError):
                Hostlist(bad)
        with self.assertRaises(ValueError):
            Hostlist(["foo["])

    def test_index(self):
        hosts = Hostlist(["foo[0-3]", "bar"])
        self.assertEqual((hosts[0], hosts[3], hosts[-1]), ("foo0", "foo3", "bar"))
        self.assertEqual(str(hosts[1:3]), "foo[1-2]")
        self.assertEqual(str(hosts[::-2]), "bar,foo[2,0]")
        self.assertEqual(str(hosts[[4, 0]]), "bar,foo0")
        for bad in (5, -6):
            with self.assertRaises(IndexError):
                hosts[bad]
        for bad in ("x", 1.5, ["x"]):
            with self.assertRaises(TypeError):
                hosts[bad]
        self.assertEqual(list(hosts), ["foo0", "foo1", "foo2", "foo3", "bar"])
        iterator = iter(hosts)
        self.assertIs(iter(iterator), iterator)
        self.assertEqual(next(iterator), "foo0")

    def test_find(self):
        hosts = Hostlist("foo[0-3],bar,foo1")
        self.assertEqual((hosts.find("foo1"), hosts.find("bar")), (1, 4))
        for name in ("foo", "foo01", "foo4", ""):
            with self.fails(errno.ENOENT):
                hosts.find(name)
            self.assertNotIn(name, hosts)
        self.assertIn("foo3", hosts)
        self.assertEqual(hosts.index("bar,foo[2-3]"), [4, 2, 3])
        self.assertEqual(hosts.index(Hostlist("x,bar"), ignore_nomatch=True), [4])
        with self.assertRaisesRegex(FileNotFoundError, "host 'x' not found"):
            hosts.index("x,bar")
        with self.assertRaisesRegex(FileNotFoundError, r"hosts 'x\[1-2\]' not found"):
            hosts.index("x[1-2]")

    def test_changes(self):
        hosts = Hostlist("c,a3,a1,b,a1")
        copy = hosts.copy()
        self.assertIs(hosts.sort(), hosts)
        self.assertEqual(str(hosts), "a[1,1,3],b,c")
        self.assertIs(hosts.uniq(), hosts)
        self.assertEqual(str(hosts), "a[1,3],b,c")
        self.assertEqual(str(copy), "c,a[3,1],b,a1")
        self.assertEqual(hosts.append("a[3-4]", Hostlist("d")), 3)
        self.assertEqual(str(hosts), "a[1,3],b,c,a[3-4],d")
        self.assertEqual(hosts.delete("a[3-4],nosuch"), 2)
        self.assertEqual(str(hosts), "a1,b,c,a3,d")
        self.assertEqual(hosts.delete("nosuch"), 0)
        with self.assertRaises(OSError):
            hosts.delete("a[")
        self.assertEqual(hosts.append(""), 0)


class TestIDset(Case):
    def test_text(self):
        for text, encoded in (
            ("", ""),
            ("3", "3"),
            ("1-3", "1-3"),
            ("1,2,3", "1-3"),
            ("1,2", "1-2"),
            ("[1-3,7]", "1-3,7"),
            ("0-0", None),
            ("5,3,1", None),
            ("1,1", None),
            ("2-1", None),
            ("1-3,2", None),
        ):
            if encoded is None:
                with self.assertRaises(ValueError, msg=text):
                    IDset(text)
            else:
                self.assertEqual(str(idset.decode(text)), encoded)
        for text in ("x", "1-", "-1", "[1", "1]", "01x", "4294967295"):
            with self.assertRaises(ValueError, msg=text):
                IDset(text)
        self.assertEqual(repr(IDset("1-2")), "IDset('1-2')")

    def test_arguments(self):
        self.assertEqual(str(IDset([3, 1, 2])), "1-3")
        self.assertEqual(str(IDset({7})), "7")
        self.assertEqual(str(IDset(4)), "4")
        self.assertEqual(str(IDset(IDset("1-2"))), "1-2")
        with self.assertRaises(TypeError):
            IDset(None)

    def test_flags(self):
        ids = IDset("1-3,7")
        self.assertEqual(ids.encode(0), "1,2,3,7")
        self.assertEqual(ids.encode(IDSET_FLAG_BRACKETS), "[1,2,3,7]")
        self.assertEqual(ids.encode(IDSET_FLAG_BRACKETS | IDSET_FLAG_RANGE), "[1-3,7]")
        self.assertEqual(IDset("7").encode(IDSET_FLAG_BRACKETS | IDSET_FLAG_RANGE), "7")
        ids.set_flags(0)
        self.assertEqual(str(ids), "1,2,3,7")
        self.assertEqual(str(IDset("1-3", flags=0)), "1,2,3")

    def test_members(self):
        ids = IDset("1-3,7")
        self.assertEqual((len(ids), ids.count()), (4, 4))
        self.assertEqual((list(ids), ids.expand()), ([1, 2, 3, 7], [1, 2, 3, 7]))
        iterator = iter(ids)
        self.assertIs(iter(iterator), iterator)
        self.assertEqual((ids.first(), ids.next(3), ids.last()), (1, 7, 7))
        invalid = idset.IDSET_INVALID_ID
        self.assertEqual(ids.next(7), invalid)
        self.assertEqual((IDset().first(), IDset().last()), (invalid, invalid))
        self.assertTrue(2 in ids and ids[2] and ids.test(2))
        self.assertFalse(4 in ids or ids[4] or ids.test(4) or ids.test(100000))
        for bad, error in (("x", TypeError), (1.5, TypeError), (-1, ValueError)):
            for call in (ids.test, ids.set, ids.clear, ids.next):
                with self.assertRaises(error):
                    call(bad)

    def test_changes(self):
        ids = IDset()
        self.assertIs(ids.set(3), ids)
        ids.set(10, 12)
        ids.set(3)
        self.assertEqual(str(ids), "3,10-12")
        self.assertIs(ids.clear(11), ids)
        ids.clear(100)
        self.assertEqual(str(ids), "3,10,12")
        ids.clear(9, 12)
        self.assertEqual(str(ids), "3")
        ids[5] = True
        ids[6] = 1
        ids[3] = 0
        self.assertEqual(str(ids), "5-6")
        ids.set(100000)
        self.assertEqual(ids.last(), 100000)
        with self.assertRaises(TypeError):
            ids[1] = "x"
        for call in ids.set, ids.clear:
            with self.assertRaises(ValueError):
                call(3, 1)
            with self.assertRaises(TypeError):
                call(1, "x")

    def test_algebra(self):
        a, b = IDset("1-5"), IDset("4-7")
        self.assertEqual(str(a + b), "1-7")
        self.assertEqual(str(a | "9"), "1-5,9")
        self.assertEqual(str(a & b), "4-5")
        self.assertEqual(str(a - b), "1-3")
        self.assertEqual(str(a.union(b, "10", [12])), "1-7,10,12")
        self.assertEqual(str(a.intersect(b, "5")), "5")
        self.assertEqual(str(a.difference("1", "2")), "3-5")
        copy = a.copy()
        copy += b
        self.assertEqual(str(copy), "1-7")
        copy -= "2-6"
        self.assertEqual(str(copy), "1,7")
        self.assertIs(copy.add("3"), copy)
        self.assertIs(copy.subtract("7"), copy)
        self.assertEqual(str(copy), "1,3")
        self.assertEqual(str(a), "1-5")
        self.assertTrue(a == IDset("1-5") and a.equal(IDset("1,2-5")))
        self.assertFalse(a == b)
        with self.assertRaises(TypeError):
            a.equal("1-5")
