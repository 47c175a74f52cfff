# Injects a fault into a job in every phase, in a cluster where no state can be held:
# acts on each job as soon as its workflow is seen in the state.
# SPDX-License-Identifier: LGPL-3.0-only
"""catch.py DIR ACTION [PHASE...]; DIR is the folder of a rig that runs.

ACTION is done to a job in each PHASE (default: all):
cancel          the job is cancelled
delete          its workflow is deleted, as by an admin
label:VALUE     its workflow gets that label of an instance, or none (label:)
kill:PART       a part of the rig is killed; for one PHASE
spread:PART     the same, once jobs are at work in STATES, whichever those are; no
                PHASE
spread:FILE.pid the same, the process of that file is stopped

Jobs are added to the file "crowd", a line for each: PHASE JOBID, for outcome of
t/scripts/crowd.py. Prints the state in which each was found, which after spread is
also its PHASE.
"""

from __future__ import annotations

import os
import pathlib
import signal
import sys
import threading
import time

import flux
import flux.job

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))

import crowd
from rig import LIMIT_S, PAUSE_S, Object, Processes, User

# Each state takes a while: two file systems, of which one is copied to and from.
# No Lustre: see README.md.
DIRECTIVES = """\
#DW jobdw type=xfs capacity=1GiB name=own
#DW jobdw type=gfs2 capacity=1GiB name=fast
#DW copy_in source=$DW_JOB_fast/a destination=$DW_JOB_fast/b
#DW copy_out source=$DW_JOB_fast/b destination=$DW_JOB_fast/c"""
LONG_S = 300
# States in which jobs should be when "spread" kills a part. The longer the wait, the
# fewer states suffice, as nothing holds jobs in their states.
STATES = {"Setup", "DataIn", "PreRun", "PostRun", "DataOut", "Teardown"}
ENOUGH = [(6, 60.0), (5, 120.0), (4, 240.0)]
# flux-coral2, which is the one to be stopped, moves them on together every 2 s.
ENOUGH_STOPPED = [(5, 20.0), (4, 60.0), (3, 120.0), (2, 240.0)]
AT_ONCE = 12  # jobs that there are for it


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
        elif self._action == "label":
            labels = {"flux-framework.org/instance": self._what or None}
            patch = {"metadata": {"labels": labels}}
            self._user.merge("workflows", crowd.workflow(jobid), patch).expect(200)
        else:
            self.kill()
        print(f"{phase}: {self._action} in {state}", flush=True)

    def kill(self) -> None:
        if self._what.endswith(".pid"):
            pid = pathlib.Path(self._what).read_text(encoding="ascii")
            os.kill(int(pid), signal.SIGSTOP)
        else:
            self._parts.kill(self._what)

    def at_work(self) -> dict[str, str]:
        """The workflows that are not done with their state, and that."""
        found = {}
        for obj in self._user.list("workflows").expect(200)["items"]:
            state, status = obj["spec"]["desiredState"], obj.get("status", {})
            if status.get("state") != state or not status.get("ready"):
                found[str(obj["metadata"]["name"])] = str(state)
        return found

    def enough(self, waited: float) -> int:
        """Number of states that suffice after this many seconds."""
        stopped = self._what.endswith(".pid")
        for count, limit in ENOUGH_STOPPED if stopped else ENOUGH:
            if waited < limit:
                return count
        sys.exit("jobs are never in several states at the same time")

    def spread(self) -> None:
        """Submit jobs one after the other until the states have one each, and kill the
        part at that moment."""
        ids: dict[str, int] = {}
        at_work: dict[str, str] = {}
        began = time.monotonic()
        missing = STATES
        while len(STATES - missing) < self.enough(time.monotonic() - began):
            active = flux.job.JobList(
                self._handle, max_entries=0, filters=["pending", "running"]
            )
            if len(list(active.jobs())) < AT_ONCE:
                jobid = self._submit(["true"], 1, DIRECTIVES)
                ids[crowd.workflow(jobid)] = jobid
            time.sleep(PAUSE_S)
            at_work = self.at_work()
            missing = STATES - set(at_work.values())
        self.kill()
        for name, jobid in ids.items():
            self.jobs[f"{at_work.get(name, 'idle')}-{jobid}"] = jobid
        for state in sorted(set(at_work.values())):
            print(f"{state}: {list(at_work.values()).count(state)}", flush=True)

    def pending(self) -> None:
        """A job that waits for nodes, which another one has."""
        blocker = self._submit(["sleep", "inf"], 4)
        flux.job.event_wait(self._handle, blocker, "start")
        self.submit("pending")
        flux.job.event_wait(self._handle, self.jobs["pending"], "priority")
        self.act(self._handle, "pending", "Proposal")
        flux.job.cancel(self._handle, blocker)

    def running(self) -> None:
        """Thread: act on the running job, and let it end after that."""
        handle = flux.Flux()
        flux.job.event_wait(handle, self.jobs["running"], "start")
        self.act(handle, "running", "PreRun")
        if self._action != "cancel":
            os.close(os.open(crowd.FIFO, os.O_WRONLY))

    def others(self, phases: list[str]) -> None:
        """Catch the phases that show in a workflow's state. The watch continues from
        the list, so no state is missed."""
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
    if sys.argv[2].startswith("spread:"):
        all_of_them.spread()
    else:
        if "pending" in phases:
            all_of_them.pending()
        all_of_them.others([phase for phase in phases if phase != "pending"])
    with open("crowd", "a", encoding="utf-8") as stream:
        jobs = all_of_them.jobs
        order = [*crowd.PHASES, *(p for p in jobs if p not in crowd.PHASES)]
        stream.writelines(f"{p} {jobs[p]}\n" for p in order if p in jobs)


main()
