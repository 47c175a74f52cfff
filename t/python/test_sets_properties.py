# SPDX-License-Identifier: LGPL-3.0-only
"""Laws of hostlists (RFC 29) and idsets (RFC 22): the engine's libraries agree with
plain Python lists and sets.
"""

import pytest

pytest.importorskip("flux")

from flux.hostlist import Hostlist
from flux.idset import IDset
from hypothesis import given
from hypothesis import strategies as st

ids = st.sets(st.integers(0, 300), max_size=60)

# Names with and without numbers, with and without padding.
prefixes = st.sampled_from(["", "a", "node", "n1-", "node1"])
numbers = st.tuples(st.integers(0, 130), st.integers(0, 4)).map(
    lambda pair: str(pair[0]).zfill(pair[1])
)
hosts = st.one_of(
    st.tuples(prefixes, numbers).map("".join),
    st.sampled_from(["login", "node-x", "n1-"]),
    st.tuples(prefixes, numbers).map(lambda pair: "".join(pair) + "-eth0"),
)
lists = st.lists(hosts, max_size=25)
unpadded = st.lists(
    st.tuples(st.sampled_from(["a", "node"]), st.integers(0, 40)).map(
        lambda pair: f"{pair[0]}{pair[1]}"
    ),
    max_size=25,
)


def encode(values):
    return ",".join(str(i) for i in sorted(values))


@given(ids)
def test_idset_text(values):
    idset = IDset(encode(values))
    assert sorted(values) == list(idset)
    assert idset.count() == len(values)
    assert list(IDset(str(idset))) == sorted(values)
    for value in range(0, 301, 7):
        assert idset.test(value) == (value in values)


@given(ids, ids)
def test_idset_algebra(left, right):
    a, b = IDset(encode(left)), IDset(encode(right))
    assert set(a | b) == left | right
    assert set(a & b) == left & right
    assert set(a - b) == left - right
    assert a.equal(b) == (left == right)
    assert set(a) == left


@given(ids, st.integers(0, 300), st.integers(0, 300))
def test_idset_range(values, first, last):
    low, high = sorted((first, last))
    idset = IDset(encode(values))
    idset.set(low, high)
    assert set(idset) == values | set(range(low, high + 1))
    idset.clear(low, high)
    assert set(idset) == values - set(range(low, high + 1))


@given(lists)
def test_hostlist_text(names):
    hostlist = Hostlist(names)
    assert list(hostlist) == names
    assert hostlist.count() == len(names)
    assert list(Hostlist(hostlist.encode())) == names
    for i, name in enumerate(names):
        assert hostlist[i] == name
        assert hostlist.find(name) == names.index(name)


@given(lists, lists)
def test_hostlist_delete(names, others):
    hostlist = Hostlist(names)
    left = list(names)
    for name in others:
        if name in left:
            left.remove(name)
    assert hostlist.delete(",".join(others)) == len(names) - len(left)
    assert list(hostlist) == left


@given(unpadded)
def test_hostlist_sort(names):
    def key(name):
        prefix = name.rstrip("0123456789")
        return prefix, int(name[len(prefix) :])

    hostlist = Hostlist(names)
    hostlist.sort()
    assert list(hostlist) == sorted(names, key=key)
    hostlist.uniq()
    assert list(hostlist) == sorted(set(names), key=key)
