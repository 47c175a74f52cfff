# SPDX-License-Identifier: LGPL-3.0-only
#
# Laws that hold for any request: what libdws lays out never breaks a limit,
# and rewriting resources twice changes nothing.
"""Property tests of libdws through flux_k8s.dws."""

import itertools
from collections import defaultdict

import pytest
from dws_sim.controllers.storage import LUSTRE_MINIMUM
from flux_k8s import dws
from hypothesis import given, settings
from hypothesis import strategies as st

GIB = 1 << 30
LABEL = "dataworkflowservices.github.io/storage"

STRATEGIES = [
    "AllocatePerCompute",
    "AllocatePerServer",
    "AllocateAcrossServers",
    "AllocateSingleServer",
]


@st.composite
def alloc_sets(draw):
    strategy = draw(st.sampled_from(STRATEGIES))
    constraints = {}
    if draw(st.booleans()):
        constraints["labels"] = [f"{LABEL}=Rabbit"]
    if draw(st.integers(0, 3)) == 0:
        constraints["labels"] = ["tier=fast"]
    if strategy == "AllocateAcrossServers":
        choice = draw(st.sampled_from(["count", "scale", "neither"]))
        if choice == "count":
            constraints["count"] = draw(st.integers(1, 12))
        elif choice == "scale":
            constraints["scale"] = draw(st.integers(1, 10))
    if draw(st.integers(0, 2)) == 0:
        key = draw(st.sampled_from(["", "lustre-mgt", "k"]))
        constraints["colocation"] = [{"type": "exclusive", "key": key}]
    return {
        "allocationStrategy": strategy,
        "label": draw(st.sampled_from(["xfs", "ost", "mdt", "mgt", "raw"])),
        "minimumCapacity": draw(st.integers(1, 200 * GIB)),
        "constraints": constraints,
    }


def least_of(label):
    """The smallest allocation that NNF makes."""
    return 0 if label in ("xfs", "gfs2", "raw") else LUSTRE_MINIMUM


@st.composite
def breakdown_lists(draw):
    sets = draw(st.lists(st.lists(alloc_sets(), max_size=3), min_size=1, max_size=3))
    return [
        {
            "kind": "DirectiveBreakdown",
            "metadata": {"name": f"w-{i}"},
            "status": {
                "ready": True,
                "storage": {
                    "allocationSets": entry,
                    "reference": {"name": f"w-{i}", "namespace": "default"},
                },
            },
        }
        for i, entry in enumerate(sets)
    ]


@st.composite
def machines(draw):
    """The nodes of a job by rabbit, the Storage objects, the bytes in use."""
    names = [f"r{i}" for i in range(draw(st.integers(1, 6)))]
    nodes = {name: draw(st.integers(1, 16)) for name in names}
    storages = []
    used = {}
    for name in names:
        labels = {LABEL: "Rabbit"}
        if draw(st.booleans()):
            labels["tier"] = draw(st.sampled_from(["fast", "slow"]))
        storages.append(
            {
                "metadata": {"name": name, "labels": labels},
                "spec": {
                    "state": draw(st.sampled_from(["Enabled"] * 5 + ["Disabled"]))
                },
                "status": {
                    "capacity": draw(st.integers(0, 4000 * GIB)),
                    "status": draw(st.sampled_from(["Ready"] * 5 + ["Offline"])),
                },
            }
        )
        used[name] = draw(st.integers(0, 500 * GIB))
    return nodes, storages, used


def pairs(breakdowns, result):
    """(asked, given) for every set."""
    for breakdown, servers in zip(breakdowns, result):
        sets = breakdown["status"]["storage"]["allocationSets"]
        assert servers["servers"]["name"] == breakdown["metadata"]["name"]
        assert len(sets) == len(servers["allocationSets"])
        yield from zip(sets, servers["allocationSets"])


@settings(max_examples=400)
@given(breakdown_lists(), machines(), st.integers(0, 8))
def test_layout_never_breaks_a_limit(breakdowns, machine, min_gib):
    nodes, storages, used = machine
    try:
        result = dws.allocation_sets(
            breakdowns, nodes, min_gib, storages=storages, used=used
        )
    except dws.NoSpaceError as err:
        assert "set " in str(err)
        return
    assert len(result) == len(breakdowns)
    taken = defaultdict(int)
    keys = defaultdict(int)
    by_name = {storage["metadata"]["name"]: storage for storage in storages}
    for asked, given_ in pairs(breakdowns, result):
        strategy = asked["allocationStrategy"]
        constraints = asked["constraints"]
        size = given_["allocationSize"]
        counts = {s["name"]: s["allocationCount"] for s in given_["storage"]}
        total = sum(counts.values())

        assert given_["label"] == asked["label"]
        assert len(counts) == len(given_["storage"]) > 0
        assert min(counts.values()) >= 1
        assert set(counts) <= set(nodes)
        least = max(min_gib * GIB, least_of(asked["label"]))
        assert size >= least
        if strategy == "AllocatePerCompute":
            assert counts == nodes
        elif strategy == "AllocatePerServer":
            assert counts == dict.fromkeys(nodes, 1)
        elif strategy == "AllocateSingleServer":
            assert total == 1
        elif "count" in constraints:
            assert total == constraints["count"]
        else:
            assert total <= sum(nodes.values())
        if strategy == "AllocateAcrossServers":
            assert size * total >= asked["minimumCapacity"]
            # no more than rounding up and the least size ask for
            assert size * total < asked["minimumCapacity"] + total * max(1, least)
        else:
            assert size >= asked["minimumCapacity"]
        for name, count in counts.items():
            storage = by_name[name]
            assert storage["status"]["status"] == "Ready"
            assert storage["spec"]["state"] == "Enabled"
            for label in constraints.get("labels", []):
                key, _, value = label.partition("=")
                assert storage["metadata"]["labels"].get(key) == value
            taken[name] += size * count
            for entry in constraints.get("colocation", []):
                keys[name, entry["key"]] += count
    assert all(n == 1 for n in keys.values())
    for name, size in taken.items():
        assert size + used[name] <= by_name[name]["status"]["capacity"]


@st.composite
def exclusive_sets(draw):
    """Sets that keep each other from their rabbits: so many, of so many GiB."""
    return [
        {
            "allocationStrategy": "AllocateAcrossServers",
            "label": draw(st.sampled_from(["mgt", "mdt", "ost"])),
            "minimumCapacity": count * draw(st.integers(5, 40)) * GIB,
            "constraints": {
                "count": count,
                "colocation": [{"type": "exclusive", "key": "k"}],
            },
        }
        for count in draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    ]


def fits_somehow(sizes, rooms):
    """Whether any way to give each allocation a rabbit of its own does."""
    return len(sizes) <= len(rooms) and any(
        all(size <= room for size, room in zip(sizes, order))
        for order in itertools.permutations(rooms, len(sizes))
    )


@settings(max_examples=300)
@given(
    exclusive_sets(),
    st.lists(st.integers(0, 50), min_size=1, max_size=6),
    st.dictionaries(st.integers(0, 5), st.sampled_from(["k", "m"])),
)
def test_exclusive_sets_are_placed_if_any_way_does(sets, rooms, others):
    breakdown = {
        "status": {
            "ready": True,
            "storage": {"reference": {"name": "w-0"}, "allocationSets": sets},
        }
    }
    # more than is needed, by what Lustre rounds up
    storages = [
        {
            "metadata": {"name": f"r{i}", "labels": {LABEL: "Rabbit"}},
            "spec": {"state": "Enabled"},
            "status": {"capacity": room * GIB + GIB // 2, "status": "Ready"},
        }
        for i, room in enumerate(rooms)
    ]
    sizes = [
        s["minimumCapacity"] // s["constraints"]["count"] // GIB
        for s in sets
        for _ in range(s["constraints"]["count"])
    ]
    nodes = {s["metadata"]["name"]: 1 for s in storages}
    rivals = [
        {
            "servers": {"name": f"other-{i}"},
            "holder": "another",
            "rabbits": {f"r{i}": {key: True}},
        }
        for i, key in others.items()
    ]
    free = [room for i, room in enumerate(rooms) if others.get(i) != "k"]
    try:
        dws.allocation_sets([breakdown], nodes, storages=storages, rivals=rivals)
        placed = True
    except dws.NoSpaceError:
        placed = False
    assert placed == fits_somehow(sizes, free)


@settings(max_examples=200)
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 16), min_size=1),
    st.integers(1, 10),
    st.integers(1, 1000),
)
def test_scale_is_monotonic_and_bounded(nodes, scale, gib):
    """More scale never means fewer allocations; 1, 5 and 10 have a meaning."""

    def count(value):
        breakdown = {
            "status": {
                "ready": True,
                "storage": {
                    "reference": {"name": "w-0"},
                    "allocationSets": [
                        {
                            "allocationStrategy": "AllocateAcrossServers",
                            "label": "ost",
                            "minimumCapacity": gib * GIB,
                            "constraints": {"scale": value},
                        }
                    ],
                },
            }
        }
        (entry,) = dws.allocation_sets([breakdown], nodes)[0]["allocationSets"]
        return sum(s["allocationCount"] for s in entry["storage"])

    most = max(1, gib * GIB // LUSTRE_MINIMUM)
    assert count(1) == 1
    assert count(5) == min(most, len(nodes))
    assert count(10) == min(most, sum(nodes.values()))
    if scale < 10:
        assert count(scale) <= count(scale + 1)


@settings(max_examples=200)
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 16), min_size=1),
    st.integers(4, 64),  # of less NNF makes one target, which is on one rabbit
    st.integers(1, 10),
)
def test_layout_keeps_to_what_was_set_aside(nodes, gib_per_node, scale):
    """Alone in the job, a set always fits into the scheduler's allocation."""
    n = sum(nodes.values())
    breakdown = {
        "status": {
            "ready": True,
            "storage": {
                "reference": {"name": "w-0"},
                "allocationSets": [
                    {
                        "allocationStrategy": "AllocateAcrossServers",
                        "label": "ost",
                        "minimumCapacity": gib_per_node * GIB * n,
                        "constraints": {"scale": scale},
                    }
                ],
            },
        }
    }
    resources = dws.apply_breakdowns([{"type": "node", "count": n}], [breakdown])
    assert resources[0]["with"][1]["count"] == gib_per_node
    result = dws.allocation_sets([breakdown], nodes, resources=resources)
    (entry,) = result[0]["allocationSets"]
    for s in entry["storage"]:
        assert (
            s["allocationCount"] * entry["allocationSize"]
            <= nodes[s["name"]] * gib_per_node * GIB
        )


RESOURCES = st.one_of(
    st.integers(1, 500).map(lambda n: [{"type": "node", "count": n}]),
    st.tuples(st.integers(1, 50), st.integers(1, 16)).map(
        lambda t: [
            {
                "type": "chassis",
                "count": t[0],
                "with": [{"type": "node", "count": t[1]}],
            }
        ]
    ),
)


@settings(max_examples=300)
@given(RESOURCES, breakdown_lists(), st.integers(0, 8))
def test_rewriting_twice_changes_nothing(resources, breakdowns, min_gib):
    once = dws.apply_breakdowns(resources, breakdowns, min_gib)
    assert dws.apply_breakdowns(once, breakdowns, min_gib) == once
    sets = [s for b in breakdowns for s in b["status"]["storage"]["allocationSets"]]
    if not sets:
        assert once == resources
        return
    (top,) = once
    node, ssd = top["with"]
    assert ssd["exclusive"] is True
    count = resources[0]["count"]
    n = count * resources[0].get("with", [{"count": 1}])[0]["count"]
    assert top["count"] * node["count"] == n
    need = 0
    for s in sets:
        if s["allocationStrategy"] == "AllocatePerCompute":
            need += s["minimumCapacity"] * n
        else:
            need += s["minimumCapacity"]
    assert ssd["count"] * top["count"] * GIB >= need


@settings(max_examples=300)
@given(st.text(alphabet="#DWjobxfstyp=ecaiGB10 \\\n-_$", max_size=80))
def test_directives_parse_or_say_why(text):
    """Any text is refused with a message, or comes out the same once more."""
    try:
        first = dws.parse_directives(text)
    except dws.DirectiveError as err:
        assert str(err).startswith(("#DW directive ", "there are "))
        assert 0 <= err.other <= text.count("\n") + 1
        assert 0 <= err.line <= text.count("\n") + 1
        return
    again = dws.parse_directives([d["text"] for d in first["directives"]])
    for directive in first["directives"]:
        assert text.split("\n")[directive.pop("line") - 1].count("#DW")
    assert [d.pop("line") for d in again["directives"]] == [
        n + 1 for n in range(len(first["directives"]))
    ]
    assert again == first


@pytest.mark.parametrize("value", [b"x", object()])
def test_arguments_must_be_json(value):
    with pytest.raises(TypeError):
        dws.parse_directives(value)
