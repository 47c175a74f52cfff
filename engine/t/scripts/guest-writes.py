# SPDX-License-Identifier: LGPL-3.0-only
"""Write to the namespaces of a guest's jobs until they are gone:
``guest-writes.py ROUNDS``. Prints how many writes were answered well, and how many
of these are not in the jobs' directories.
"""

import base64
import os
import sys

import flux
import flux.job
from flux.job import JobID, JobspecV1

USERID = "12345"
UNDER_WAY = 8
EMPTY = {"ver": 1, "type": "val", "data": ""}
READDIR = 1


def open_as(role):
    """A handle of the guest, who signs what he submits, or is one."""
    os.environ["FLUX_HANDLE_USERID"] = USERID
    os.environ["FLUX_HANDLE_ROLEMASK"] = role
    handle = flux.Flux()
    del os.environ["FLUX_HANDLE_USERID"], os.environ["FLUX_HANDLE_ROLEMASK"]
    return handle


def encode(text):
    return base64.b64encode(text.encode()).decode()


def submit(handle):
    jobspec = JobspecV1.from_command(["true"])
    jobspec.setattr("system.exec.test.run_duration", "0.02s")
    header = f"version\0i1\0userid\0i{USERID}\0mechanism\0snone\0"
    signed = f"{encode(header)}.{encode(jobspec.dumps())}.none"
    request = {"J": signed, "urgency": 16, "flags": 0}
    return handle.rpc("job-ingest.submit", request).get()["id"]


class Writer:
    def __init__(self, handle, jobid):
        self.handle = handle
        self.namespace = f"job-{jobid}"
        self.sent = 0

    def write(self):
        op = {"key": f"written{self.sent}", "flags": 0, "dirent": EMPTY}
        payload = {"namespace": self.namespace, "flags": 0, "ops": [op]}
        self.sent += 1
        return op["key"], self.handle.rpc("kvs.commit", payload)

    def until_gone(self):
        """The keys of the writes that were answered well."""
        under_way = [self.write() for _ in range(UNDER_WAY)]
        done = []
        gone = False
        while under_way:
            key, future = under_way.pop(0)
            try:
                future.get()
                done.append(key)
            except OSError as exc:
                assert exc.strerror == "Operation not supported", exc
                gone = True
            if not gone:
                under_way.append(self.write())
        return done


owner = flux.Flux()
submitter, guest = open_as("0x1"), open_as("0x2")
total = lost = 0
for _ in range(int(sys.argv[1])):
    jobid = submit(submitter)
    flux.job.event_wait(owner, jobid, "start")
    done = Writer(guest, jobid).until_gone()
    flux.job.event_wait(owner, jobid, "clean")
    request = {"namespace": "primary", "key": JobID(jobid).kvs + ".guest"}
    kept = owner.rpc("kvs.lookup", {**request, "flags": READDIR}).get()["val"]["data"]
    total += len(done)
    lost += len(set(done) - set(kept))
print(f"{total} written, {lost} lost")
sys.exit(lost > 0 or total == 0)
