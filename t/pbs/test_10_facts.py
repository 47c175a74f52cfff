# Facts about PBS that our hook and its unit tests assume.
# SPDX-License-Identifier: LGPL-3.0-only
import json

from atom_support import NUMBERS, SHARING
from pbs_cluster import HOSTS, OTHER, wait

PROBE = """
import json, os, pbs
event = pbs.event()
if os.uname()[1] == {host!r}:
    names = ["EXECJOB_BEGIN", "EXECJOB_END"] + [
        "ND_" + word.upper() for word in {words!r}
    ]
    seen = {{name: int(getattr(pbs, name)) for name in names}}
    seen["nodename"] = pbs.get_local_nodename()
    seen["vnodes"] = {{
        name: [event.vnode_list[name].sharing,
               str(event.vnode_list[name].resources_assigned["host"]),
               int(pbs.server().vnode(name).sharing)]
        for name in event.vnode_list.keys()
    }}
    with open({out!r} + ".new", "w") as stream:
        json.dump(seen, stream)
    os.rename({out!r} + ".new", {out!r})
event.accept()
"""


def test_numbers_and_vnodes_are_those_of_the_unit_tests(cluster):
    out = cluster.work / "seen.json"
    source = PROBE.format(host=OTHER, words=list(SHARING), out=str(out))
    with cluster.extra_hook("probe", source):
        job = cluster.submit("-l select=2:ncpus=1 -l place=scatter", "true")
        cluster.schedule()
        wait("what the probe saw", out.exists)
        cluster.wait_job(job, "F")
    constants = {f"ND_{word.upper()}": number for word, number in SHARING.items()}
    assert json.loads(out.read_text()) == {
        **NUMBERS,
        **constants,
        "nodename": OTHER,
        # the mom has no sharing of any vnode, and those of all hosts
        "vnodes": {host: [None, host, SHARING["default_shared"]] for host in HOSTS},
    }
