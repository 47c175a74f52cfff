# A site's report: each rabbit, its nodes, and the jobs that have storage there.
# SPDX-License-Identifier: LGPL-3.0-only
"""who_holds.py [JOBID...]: of these jobs how long their states took."""

import sys

import flux
import flux.job
from flux_k8s import storage
from flux_k8s.workflow import WorkflowInfo


def main():
    handle = flux.Flux()
    holders = {}
    manager = storage.RabbitManager(handle, None)
    known = manager.rabbits()
    for jobid, rabbits in manager.jobids_to_rabbits().items():
        for rabbit in rabbits:
            holders.setdefault(rabbit, []).append(jobid)
    for rabbit, hosts in sorted(storage.RABBITS_TO_HOSTLISTS.items()):
        print(rabbit, hosts.encode(), known[rabbit]["state"])
        assert all(storage.HOSTNAMES_TO_RABBITS[host] == rabbit for host in hosts)
        for jobid in sorted(holders.get(rabbit, [])):
            info = WorkflowInfo.get(jobid)
            path = info.paths.get("DW_JOB_scratch", "")
            print(f"  {flux.job.JobID(jobid).f58plain} {info.state} {path}")
    for word in sys.argv[1:]:
        info = WorkflowInfo(flux.job.JobID(word))
        print(word, info.deleted, " ".join(info.timings))


main()
