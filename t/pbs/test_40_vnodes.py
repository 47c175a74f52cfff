# A host that is more than one vnode to PBS: all of it is taken out of use, and
# brought back.
# SPDX-License-Identifier: LGPL-3.0-only
from pbs_cluster import BIN, OTHER, SERVER, wait

LINES = [
    "cn2: resources_available.ncpus = 1",
    "cn2[0]: resources_available.ncpus = 1",
    "cn2[1]: resources_available.ncpus = 1",
]
VNODES = ("cn2", "cn2[0]", "cn2[1]")


def states(cluster):
    nodes = cluster.nodes()
    return {name: nodes[name]["state"] for name in VNODES}


def test_a_begin_that_fails_takes_all_vnodes_out(cluster):
    cluster.answer(OTHER, {"method": "POST", "status": 500})
    with cluster.divided(LINES, dict.fromkeys(VNODES, "default_shared")):
        job = cluster.submit("-l select=1:ncpus=1:vnode=cn2[1]", "true")
        offline = dict.fromkeys(VNODES, "offline")
        wait("all vnodes are offline", lambda: states(cluster) == offline)
        cluster.wait_job(job, "Q", run_count=1)
        cluster.answer(OTHER)
        cluster.on(SERVER, f"{BIN}/pbsnodes", "-r", OTHER)
        free = dict.fromkeys(VNODES, "free")
        wait("all vnodes are back", lambda: states(cluster) == free)
        cluster.schedule()
        cluster.wait_job(job, "F", Exit_status=0)
        cluster.wait_free()
