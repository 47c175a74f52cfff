# Does something to a job in every phase, in a cluster where nothing can be held:
# whoever is to be caught in a state is dealt with as soon as it is seen in it.
# SPDX-License-Identifier: LGPL-3.0-only
"""catch.py DIR ACTION [PHASE...]; DIR is the folder of a rig that runs.

ACTION is done to a job in each PHASE (default: all):
cancel          the job is cancelled
delete          its workflow is deleted, as by an admin
kill:PART       a part of the rig is killed; for one PHASE

Jobs are added to the file "crowd", a line for each: PHASE JOBID, for outcome of
t/scripts/crowd.py. Prints the state in which each was found.
"""

from __future__ import annotations

import os
import pathlib
import sys
import threading

import flux
import flux.job

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))

import crowd
from rig import LIMIT_S, Object, Processes, User

# Each state takes a while: two file systems, of which one is copied to and from.
# No Lustre: see README.md.
DIRECTIVES = """\
#DW jobdw type=xfs capacity=1GiB name=own
#DW jobdw type=gfs2 capacity=1GiB name=fast
#DW copy_in source=$DW_JOB_fast/a destination=$DW_JOB_fast/b
#DW copy_out source=$DW_JOB_fast/b destination=$DW_JOB_fast/c"""
LONG_S = 300


class Crowd:
    """The jobs, and what becomes of each."""

    def __init__(self, folder: pathlib.Path, action: str) -> None:
        self._handle = flux.Flux()
        self._user = User(folder / "kubeconfig", "admin")
        self._parts = Processes(folder)
        self._action, _, self._what = action.partition(":")
        self.jobs: dict[str, int] = {}

    def submit(self, phase: str) -> None:
        command = ["cat", os.path.abspath(crowd.FIFO)]
        command = command if phase == "running" else ["true"]
        self.jobs[phase] = self._submit(command, 1, DIRECTIVES)

    def _submit(self, command: list[str], nodes: int, directives: str = "") -> int:
        spec = flux.job.JobspecV1.from_command(
            command,
            num_tasks=nodes,
            num_nodes=nodes,
            exclusive=not directives,
            duration=LONG_S,
        )
        spec.cwd = os.getcwd()
        spec.environment = dict(os.environ)
        if directives:
            spec.attributes["system"]["dw"] = directives
        return int(flux.job.submit(self._handle, spec))

    def act(self, handle: flux.Flux, phase: str, state: str) -> None:
        jobid = self.jobs[phase]
        if self._action == "cancel":
            flux.job.cancel(handle, jobid)
        elif self._action == "delete":
            self._user.delete("workflows", crowd.workflow(jobid)).expect(200)
        else:
            self._parts.kill(self._what)
        print(f"{phase}: {self._action} in {state}", flush=True)

    def pending(self) -> None:
        """A job that waits for nodes, which another one has."""
        blocker = self._submit(["sleep", "inf"], 4)
        flux.job.event_wait(self._handle, blocker, "start")
        self.submit("pending")
        flux.job.event_wait(self._handle, self.jobs["pending"], "priority")
        self.act(self._handle, "pending", "Proposal")
        flux.job.cancel(self._handle, blocker)

    def running(self) -> None:
        """For a thread: the job runs, and is let go after the deed."""
        handle = flux.Flux()
        flux.job.event_wait(handle, self.jobs["running"], "start")
        self.act(handle, "running", "PreRun")
        if self._action != "cancel":
            os.close(os.open(crowd.FIFO, os.O_WRONLY))

    def others(self, phases: list[str]) -> None:
        """Those that a state tells of. Only what comes after the list counts,
        so no state of theirs is missed."""
        since = self._user.list("workflows").expect(200)["metadata"]["resourceVersion"]
        for phase in phases:
            self.submit(phase)
        thread = threading.Thread(target=self.running)
        if "running" in phases:
            thread.start()
        waiting = {p for p in phases if p in crowd.HELD}
        names = {crowd.workflow(self.jobs[p]): p for p in waiting}
        events = self._user.watch("workflows", seconds=LIMIT_S, resourceVersion=since)
        while waiting:
            event = next(events, None)
            if event is None:
                sys.exit(f"never seen in their states: {sorted(waiting)}")
            obj: Object = event["object"]
            phase = names.get(obj["metadata"]["name"])
            state = obj["spec"]["desiredState"]
            if phase in waiting and state == crowd.HELD[phase]:
                waiting.remove(phase)
                self.act(self._handle, phase, state)
        if "running" in phases:
            thread.join()


def main() -> None:
    phases = sys.argv[3:] or crowd.PHASES
    if not os.path.exists(crowd.FIFO):
        os.mkfifo(crowd.FIFO)
    all_of_them = Crowd(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2])
    if "pending" in phases:
        all_of_them.pending()
    all_of_them.others([phase for phase in phases if phase != "pending"])
    with open("crowd", "a", encoding="utf-8") as stream:
        jobs = all_of_them.jobs
        stream.writelines(f"{p} {jobs[p]}\n" for p in crowd.PHASES if p in jobs)


main()
