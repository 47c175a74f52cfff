# SPDX-License-Identifier: LGPL-3.0-only
#
# The entry points of the specification, with a Kubernetes client made of a
# dictionary. The numbers themselves are tested in C.
"""Tests of flux_k8s.directivebreakdown and flux_k8s.dws."""

import sys
import unicodedata

import pytest
from flux_k8s import directivebreakdown, dws

GIB = 1 << 30
TASK = {
    "type": "slot",
    "count": 1,
    "label": "task",
    "with": [{"type": "core", "count": 1}],
}


def breakdown(name, *sets, ready=True):
    return {
        "apiVersion": "dataworkflowservices.github.io/v1alpha7",
        "kind": "DirectiveBreakdown",
        "metadata": {"name": name, "namespace": "default"},
        "status": {
            "ready": ready,
            "storage": {
                "lifetime": "job",
                "reference": {"kind": "Servers", "name": name, "namespace": "ns"},
                "allocationSets": list(sets),
            },
        },
    }


def xfs(gib):
    return {
        "allocationStrategy": "AllocatePerCompute",
        "label": "xfs",
        "minimumCapacity": gib * GIB,
    }


class Api:
    """Stands for kubernetes.client.CustomObjectsApi."""

    def __init__(self, *objects):
        self.objects = {obj["metadata"]["name"]: obj for obj in objects}
        self.calls = []

    def get_namespaced_custom_object(self, group, version, namespace, plural, name):
        self.calls.append((group, version, namespace, plural, name))
        return self.objects[name]


def workflow(*names, version="v1alpha7"):
    return {
        "apiVersion": f"dataworkflowservices.github.io/{version}",
        "status": {
            "directiveBreakdowns": [
                {"kind": "DirectiveBreakdown", "name": n, "namespace": "default"}
                for n in names
            ]
        },
    }


def test_example_of_the_specification():
    """Two nodes with 10 GiB each become two slots of a node and ten ssds."""
    api = Api(breakdown("w-0", xfs(10)))
    node = {"type": "node", "count": 2, "with": [TASK]}
    result = directivebreakdown.apply_breakdowns(api, workflow("w-0"), [node], 4)
    assert result == [
        {
            "type": "slot",
            "count": 2,
            "label": "rabbit",
            "with": [
                {"type": "node", "count": 1, "with": [TASK]},
                {"type": "ssd", "count": 10, "exclusive": True},
            ],
        }
    ]
    assert node["count"] == 2
    assert api.calls == [
        (
            "dataworkflowservices.github.io",
            "v1alpha7",
            "default",
            "directivebreakdowns",
            "w-0",
        )
    ]
    again = directivebreakdown.apply_breakdowns(api, workflow("w-0"), result, 4)
    assert again == result


def test_breakdowns_are_read_in_the_version_of_the_workflow():
    api = Api(breakdown("w-0"), breakdown("w-1"))
    wf = workflow("w-0", "w-1", version="v1alpha6")
    names = [
        b["metadata"]["name"] for b in directivebreakdown.fetch_breakdowns(api, wf)
    ]
    assert names == ["w-0", "w-1"]
    assert {call[1] for call in api.calls} == {"v1alpha6"}


@pytest.mark.parametrize("status", [{}, {"directiveBreakdowns": None}])
def test_workflow_without_breakdowns(status):
    resources = [TASK]
    result = directivebreakdown.apply_breakdowns(
        Api(), {"status": status}, resources, 4
    )
    assert result == resources


def test_errors_are_exceptions_with_the_message_of_libdws():
    api = Api(breakdown("w-0", xfs(10)), breakdown("w-1", ready=False))
    with pytest.raises(ValueError, match="-N"):
        directivebreakdown.apply_breakdowns(api, workflow("w-0"), [TASK], 4)
    with pytest.raises(ValueError, match="more than the 5 GiB"):
        directivebreakdown.apply_breakdowns(
            api, workflow("w-0"), [{"type": "node", "count": 1}], 4, {"xfs": 5}
        )
    with pytest.raises(dws.NotReadyError, match="w-1"):
        directivebreakdown.apply_breakdowns(
            api, workflow("w-1"), [{"type": "node", "count": 1}], 4
        )


def test_build_allocation_sets():
    sets = directivebreakdown.build_allocation_sets([xfs(10)], {"a": 2, "b": 1}, 3, 4)
    assert sets == [
        {
            "label": "xfs",
            "allocationSize": 10 * GIB,
            "storage": [
                {"name": "a", "allocationCount": 2},
                {"name": "b", "allocationCount": 1},
            ],
        }
    ]
    with pytest.raises(ValueError, match="3 of the job's 4 nodes"):
        directivebreakdown.build_allocation_sets([xfs(10)], {"a": 2, "b": 1}, 4, 4)


def test_allocation_sets_names_servers_and_room():
    storages = [
        {
            "metadata": {"name": "a"},
            "status": {"status": "Ready", "capacity": 25 * GIB},
        }
    ]
    result = dws.allocation_sets(
        [breakdown("w-0", xfs(10))], {"a": 2}, storages=storages, used={"a": 5 * GIB}
    )
    assert result[0]["servers"] == {"name": "w-0", "namespace": "ns"}
    with pytest.raises(dws.NoSpaceError, match="19 GiB are left"):
        dws.allocation_sets(
            [breakdown("w-0", xfs(10))],
            {"a": 2},
            storages=storages,
            used={"a": 6 * GIB},
        )


def test_nodes_per_rabbit():
    mapping = {
        "computes": {"a1": "r1", "a2": "r1", "b1": "r2"},
        "rabbits": {
            "r1": {"capacity": 1, "hostlist": "a[1-2]"},
            "r2": {"capacity": 1, "hostlist": "b1"},
        },
    }
    assert dws.nodes_per_rabbit("a[1-2],b1", mapping) == {"r1": 2, "r2": 1}
    R = {"version": 1, "execution": {"nodelist": ["b1", "a2"]}}
    assert dws.nodes_per_rabbit(R, mapping) == {"r2": 1, "r1": 1}
    assert dws.nodes_per_rabbit("a1,r2,x9", mapping) == {"r1": 1}


def test_parse_directives():
    result = dws.parse_directives(
        "small\n#DW copy_in source=/a destination=$DW_JOB_ab/",
        {"small": "#DW jobdw type=gfs2 capacity=1TiB name=ab flag"},
    )
    assert result == {
        "directives": [
            {
                "text": "#DW jobdw type=gfs2 capacity=1TiB name=ab flag",
                "command": "jobdw",
                "line": 1,
                "bytes": 1024 * GIB,
                "args": {
                    "type": "gfs2",
                    "capacity": "1TiB",
                    "name": "ab",
                    "flag": "",
                },
            },
            {
                "text": "#DW copy_in source=/a destination=$DW_JOB_ab/",
                "command": "copy_in",
                "line": 2,
                "bytes": 0,
                "args": {"source": "/a", "destination": "$DW_JOB_ab/"},
            },
        ],
        "warnings": [
            "#DW directive 1: key 'flag' is not known here and is left for the"
            " storage system to judge"
        ],
    }
    with pytest.raises(ValueError, match="'jobwd', did you mean 'jobdw'"):
        dws.parse_directives("#DW jobwd name=ab")


COPY = "#DW jobdw type=xfs capacity=1GiB name=ab\n#DW copy_in destination=$DW_JOB_ab"


def test_variables_of_paths():
    text = f"{COPY} source=/l/$USER/${{USER}}x.{{{{id}}}}"
    values = {"USER": "ann", "JOBID": "fXy"}
    plain = dws.parse_directives(text)["directives"][1]
    assert plain["args"]["source"] == "/l/$USER/${USER}x.{{id}}"
    filled = dws.parse_directives(text, None, values)["directives"][1]
    assert filled["args"]["source"] == "/l/ann/annx.fXy"
    assert filled["text"].endswith(" source=/l/ann/annx.fXy")
    with pytest.raises(ValueError, match="'a/b' is no part of a path"):
        dws.parse_directives(text, None, {"USER": "a/b"})


def test_characters_that_are_not_seen():
    """libdws has the table of Unicode: white space, control and format characters."""
    seen = []
    for number in range(0x80, sys.maxunicode + 1):
        char = chr(number)
        category = unicodedata.category(char)
        if category in ("Zs", "Zl", "Zp", "Cc", "Cf") or number == 0xFFFD:
            with pytest.raises(dws.DirectiveError, match=rf"U\+{number:04X}\b"):
                dws.parse_directives(f"{COPY} source=/l/a{char}b")
        elif category not in ("Cs", "Cn"):
            seen.append(char)
    for i in range(0, len(seen), 50):
        part = "".join(seen[i : i + 50])
        found = dws.parse_directives(f"{COPY} source=/l/{part}")["directives"][1]
        assert found["args"]["source"] == f"/l/{part}"


def test_location_constraint():
    mapping = {
        "computes": {"a1": "r1", "b1": "r2"},
        "rabbits": {
            "r1": {"capacity": 1, "hostlist": "a1"},
            "r2": {"capacity": 1, "hostlist": "b1"},
        },
    }
    location = {
        "access": [{"type": "physical", "priority": "mandatory"}],
        "reference": {
            "kind": "Servers",
            "name": "pfs",
            "namespace": "default",
            "fieldPath": "servers.spec.allocationSets[0]",
        },
    }
    persistent = {
        "metadata": {"name": "w-0"},
        "status": {
            "ready": True,
            "compute": {"constraints": {"location": [location]}},
        },
    }
    servers = {
        "metadata": {"name": "pfs", "namespace": "default"},
        "spec": {"allocationSets": [{"storage": [{"name": "r2"}]}]},
    }
    assert dws.location_constraint([persistent], [servers], mapping) == {
        "hostlist": ["b1"]
    }
    assert dws.location_constraint([], [], mapping) is None


def test_daemon_units():
    required = {"status": {"ready": True, "requires": ["copy-offload"]}}
    assert dws.daemon_units([]) == []
    assert dws.daemon_units([required], {"copy-offload": "dm.service"}) == [
        "dm.service"
    ]
    assert dws.daemon_units([required]) == []


def test_reserved_bytes_are_used_first():
    mapping = {
        "computes": {"a1": "r1", "a2": "r1", "b1": "r2"},
        "rabbits": {
            "r1": {"capacity": 1, "hostlist": "a[1-2]"},
            "r2": {"capacity": 1, "hostlist": "b1"},
        },
    }
    vertices = [("node", "a1", "c0/a1", 1), ("ssd", "ssd0", "c0/ssd0", 20)]
    vertices += [("node", "b1", "c1/b1", 1), ("ssd", "ssd9", "c1/ssd9", 10)]
    nodes = [
        {
            "metadata": {
                "type": kind,
                "name": name,
                "size": size,
                "paths": {"containment": f"/c/{path}"},
            }
        }
        for kind, name, path, size in vertices
    ]
    R = {"scheduling": {"graph": {"nodes": nodes}}}
    reserved = dws.reserved_bytes(R, mapping)
    assert reserved == {"r1": 20 * GIB, "r2": 10 * GIB}
    assert dws.reserved_bytes({}, mapping) == {}
    ost = {
        "allocationStrategy": "AllocateAcrossServers",
        "label": "ost",
        "minimumCapacity": 30 * GIB,
    }
    result = dws.allocation_sets(
        [breakdown("w-0", ost)], {"r1": 2, "r2": 1}, reserved=reserved
    )
    # two of 15 do not fit into 20 + 10, three of 10 do
    assert result[0]["allocationSets"] == [
        {
            "label": "ost",
            "allocationSize": 10 * GIB,
            "storage": [
                {"name": "r1", "allocationCount": 2},
                {"name": "r2", "allocationCount": 1},
            ],
        }
    ]


def test_text_that_is_not_json_is_a_value_error():
    with pytest.raises(ValueError, match="rabbitmapping: .*nonsense"):
        dws.nodes_per_rabbit("a1", dws.Raw(b"nonsense"))
