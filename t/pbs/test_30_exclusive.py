# The hook's "exclusive" for ATOM agrees with PBS' allocation of whole nodes.
# SPDX-License-Identifier: LGPL-3.0-only
import pytest
from pbs_cluster import OTHER, USER_ID, wait

# The vnodes of the second host. A mom refuses to have ..._exclhost on some only.
SHARED_VNODES = ("default_shared", "default_excl", "ignore_excl", "force_excl")
LAYOUTS = {
    "several": [
        *("cn2: resources_available.ncpus = 1",),
        *(f"cn2[{i}]: resources_available.ncpus = 1" for i in range(4)),
        *(f"cn2[{i}]: sharing = {word}" for i, word in enumerate(SHARED_VNODES)),
    ],
    "default_exclhost": ["cn2: sharing = default_exclhost"],
    "force_exclhost": ["cn2: sharing = force_exclhost"],
}
PLACES = ("unset", "shared", "excl", "exclhost")


def vnodes_of(layout):
    """The vnodes to run jobs on: name, and sharing as pbsnodes says it."""
    if layout != "several":
        return {"cn2": layout}
    named = {f"cn2[{i}]": word for i, word in enumerate(SHARED_VNODES)}
    return {"cn2": "default_shared", **named}


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(cluster, request):
    expected = vnodes_of(request.param)
    with cluster.divided(LAYOUTS[request.param], expected):
        yield expected


@pytest.mark.parametrize("place", PLACES)
def test_exclusive_is_what_pbs_makes_of_sharing_and_place(cluster, layout, place):
    option = "" if place == "unset" else f"-l place={place}"
    for vnode, sharing in layout.items():
        job = cluster.submit(f"-l select=1:ncpus=1:vnode={vnode} {option}")
        cluster.wait_job(job, "R")
        wait(f"a POST of {job}", lambda job=job: cluster.told(OTHER, job))
        alone = cluster.nodes()[vnode]["state"] == "job-exclusive"
        assert cluster.told(OTHER, job) == [
            {"jobid": job, "uid": USER_ID, "exclusive": alone}
        ], (sharing, place)
        cluster.release(job)
        cluster.wait_told(OTHER, job, ["POST", "DELETE"])
