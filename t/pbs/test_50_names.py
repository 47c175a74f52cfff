# The hook's notices to ATOM from a host with other names than a single short one,
# which hosts have in the other tests.
# SPDX-License-Identifier: LGPL-3.0-only
import pytest
from pbs_cluster import OTHER, SERVER, USER_ID

# Name of the node in PBS, hostname of its host, and the host's names that the server
# resolves.
NAMES = {
    "qualified host": ("cn2", "cn2.example.com", ["cn2.example.com", "cn2"]),
    "qualified node": (
        "cn2.example.com",
        "cn2.example.com",
        ["cn2.example.com", "cn2"],
    ),
    "other host": ("cn2", "rack7-u3", ["rack7-u3", "cn2"]),
    "other node and host": ("node7", "rack7-u3", ["cn2"]),
}


@pytest.mark.parametrize("what", NAMES)
def test_a_host_by_its_names(cluster, what):
    """Only the server knows the vnode's default sharing, so place= does not suffice."""
    node, host, known = NAMES[what]
    with cluster.named(node, host, known, [f"{node}: sharing = default_excl"]):
        for place, alone in (("", True), ("shared", False), ("excl", True)):
            option = f"-l place={place}" if place else ""
            job = cluster.submit(f"-l select=1:ncpus=1:vnode={node} {option}")
            cluster.started(job)
            exclusive = cluster.nodes()[node]["state"] == "job-exclusive"
            assert exclusive == alone
            assert cluster.told(OTHER, job) == [
                {"jobid": job, "uid": USER_ID, "exclusive": alone}
            ]
            assert cluster.said(OTHER, job) == ["POST: ATOM answered 200"]
            cluster.release(job)
            cluster.wait_told(OTHER, job, ["POST", "DELETE"])
        job = cluster.submit("-l select=2:ncpus=1 -l place=scatter")
        cluster.started(job)
        for on, alone in ((SERVER, False), (OTHER, True)):
            assert cluster.told(on, job) == [
                {"jobid": job, "uid": USER_ID, "exclusive": alone}
            ]
        cluster.release(job)
        for on in (SERVER, OTHER):
            cluster.wait_told(on, job, ["POST", "DELETE"])
        cluster.wait_job(job, "F")
