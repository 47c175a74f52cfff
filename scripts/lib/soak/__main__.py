# Runs jobs and faults for a time, lets everything recover, and looks for what
# was lost: a job without its end, a workflow, a drain, a mount, a byte.
# SPDX-License-Identifier: LGPL-3.0-only
"""The command behind scripts/soak."""

from __future__ import annotations

import argparse
import pathlib
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from typing import Any

import flux.job
from elsewhere import make_profile
from flux_k8s.kube import Kube
from oracle.history import Recorder

from soak import features, rules, witness
from soak.draws import Draws
from soak.faults import Faults
from soak.jobs import CREATE, DESTROY, GIB, Job, Kind, verdict
from soak.world import Lost, World

RECOVERY_S = 300.0
# How much a flux-core that is killed may forget, checkpoints that are late included.
FORGETS_S = 15.0
# Workflows of others, which must stay as they are: of nobody known, and of
# another Flux instance on the same cluster.
OTHERS: dict[str, dict[str, str]] = {
    "somebodys": {},
    "fluxjob-1": {"flux-framework.org/instance": "another"},
}
# Seconds between two steps of the run: a load, not a flood.
STEP_S = 0.2


class Run:
    """One soak run."""

    def __init__(self, world: World, args: argparse.Namespace):
        self._world = world
        self._draws = Draws(args.seed)
        self._args = args
        self._jobs: dict[int, Job] = {}
        self._refused: Counter[str] = Counter()
        self._faults = Faults(
            world,
            self._draws.rng,
            self._active,
            self._recent,
            self._ending,
            self._given_before,
            self._restarted,
        )
        self._counts: Counter[str] = Counter()
        # a disturbance, and a feature of a job that was active then
        self._met: set[tuple[str, str]] = set()
        self._wrong: list[str] = []
        self._others: dict[str, Any] = {}
        self._rules = rules.Rules(self._kube, self._jobs, self._completed)
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:7.1f}  {text}", flush=True)

    # -- jobs -------------------------------------------------------------

    def _records(self, *filters: str) -> dict[int, dict[str, Any]]:
        listing = flux.job.JobList(
            self._world.handle, filters=list(filters), max_entries=0
        )
        return {
            int(job.id): {
                "state": job.state,
                "result": job.result,
                "returncode": job.returncode,
                "note": job.exception.note,
                "given": job.t_run,
                "ended": job.t_inactive,
            }
            for job in listing.jobs()
        }

    def _recent(self) -> list[Job]:
        """Jobs that may be active after a kill: those that are now, and where Flux goes
        back in time those that have just ended."""
        since = time.time() - FORGETS_S
        found = self._records("pending", "running", "inactive")
        return [
            self._jobs[jobid]
            for jobid, record in found.items()
            if jobid in self._jobs
            and (record["state"] != "INACTIVE" or record["ended"] > since)
        ]

    def _active(self) -> list[Job]:
        found = self._records("pending", "running")
        return [self._jobs[jobid] for jobid in found if jobid in self._jobs]

    def _ending(self) -> list[Job]:
        found = self._records("running")
        return [
            self._jobs[jobid]
            for jobid, record in found.items()
            if jobid in self._jobs and record["state"] == "CLEANUP"
        ]

    def _given_before(self, job: Job) -> list[Job]:
        found = self._records("running", "inactive")
        end = found[job.id]["ended"] if job.id in found else 0.0
        return [
            self._jobs[jobid]
            for jobid, record in found.items()
            if jobid in self._jobs and 0 < record["given"] <= (end or time.time())
        ]

    def _restarted(self) -> None:
        """An engine that goes back to its last checkpoint has forgotten some jobs;
        what they had must be cleaned up all the same."""
        known = self._records("pending", "running", "inactive")
        forgotten = [j for j in self._jobs.values() if j.id not in known]
        for job in forgotten:
            if not job.forgotten:
                self._counts["job forgotten by Flux"] += 1
            job.forgotten = True

    def submit(self, wanted: Kind | None = None) -> None:
        """Submit one job, of the kind that is wanted or of any; a wrong one must be
        refused."""
        draft, error = self._draws.job(wanted), ""
        kind = draft.kind
        try:
            jobid = int(flux.job.submit(self._world.handle, draft.spec))
            self._jobs[jobid] = draft.submitted(jobid)
        except OSError as exc:
            error = exc.strerror or str(exc)
        if kind.refused:
            self._refused[kind.name] += 1
            if kind.refused not in error:
                self._wrong.append(f"{kind.name}: not refused as it should: {error}")
        elif error:
            self._wrong.append(f"{kind.name}: submit failed: {error}")

    def cancel(self) -> None:
        jobs = self._active()
        if jobs:
            job = self._draws.rng.choice(jobs)
            job.cancelled = True
            self._world.attempt("flux", "cancel", str(job.id))

    # -- the run ----------------------------------------------------------

    def start(self) -> None:
        self._world.start_sim()
        self._recorder = Recorder(self._world.kubeconfig)
        self._world.write_config(rules.CONFIG)
        self._world.start_instance()
        self.say(self._world.describe())
        self._world.start_agent()
        self._world.until("agent not in step", self._not_synced, RECOVERY_S)
        kube = self._kube()
        for name, labels in OTHERS.items():
            spec = {
                "desiredState": "Proposal",
                "wlmID": "flux",
                "jobID": "1",
                "userID": 1000,
                "groupID": 1000,
                "dwDirectives": ["#DW jobdw type=xfs capacity=1GiB name=theirs"],
            }
            metadata = {"name": name, "namespace": "default", "labels": labels}
            kube.create("workflows", "default", {"metadata": metadata, "spec": spec})
        for name in OTHERS:
            self._world.ctl("wait-state", name, "Proposal", "--ready")
        self._others = self._others_now()
        make_profile(self._world.kubeconfig)
        self.submit(CREATE)
        self._world.until("jobs are active", self._stuck, RECOVERY_S)

    def _others_now(self) -> dict[str, Any]:
        kube = self._kube()
        return {name: kube.get("workflows", "default", name) for name in OTHERS}

    def _kube(self) -> Kube:
        return Kube(str(self._world.kubeconfig), connections=1)

    def _completed(self, jobid: int) -> bool:
        record = self._records("inactive").get(jobid)
        return record is not None and record["result"] == "COMPLETED"

    def _not_synced(self) -> str:
        agent = self._world.status()["agent"]
        return "" if agent["synced"] else str(agent)

    def _wanted(self) -> list[str]:
        without = tuple(self._args.without) or (" ",)
        return [
            n for n in self._faults.kinds if not (without and n.startswith(without))
        ]

    def storm(self) -> None:
        """Jobs and faults until the time is over."""
        end = time.monotonic() + self._args.minutes * 60
        kinds = self._wanted()
        while time.monotonic() < end:
            for _ in range(self._args.active - len(self._active())):
                self.submit()
            cancel, name = self._draws.step(kinds)
            if cancel:
                self.cancel()
            if name:
                there = self._active()
                detail = self._faults.kinds[name]()
                self._met |= {(name, f) for j in there for f in j.kind.features}
                self._counts[name] += 1
                self.say(f"{name} {detail}")
            self._unblock()
            self._wrong += self._rules.check(time.time())
            time.sleep(STEP_S)

    def _unblock(self) -> None:
        if job := self._faults.unblock():
            self._counts["scheduling stopped by Flux"] += 1
            self.say(f"scheduling stopped by Flux at {job}: unblocked")

    def recover(self) -> None:
        self.say(f"recovery; {len(self._active())} jobs are active")
        self._faults.heal()
        self._world.until("jobs are active", self._stuck, RECOVERY_S)
        self.submit(DESTROY)
        self._world.until("jobs are active", self._stuck, RECOVERY_S)

    def _stuck(self) -> str:
        self._unblock()
        return ", ".join(
            f"{flux.job.JobID(job.id).f58} ({job.kind.name}; {job.struck})"
            for job in self._active()
        )

    def judge(self) -> None:
        """The end of every job, and what is left over."""
        records = self._records("pending", "running", "inactive")
        for job in self._jobs.values():
            if job.forgotten:
                continue
            if job.id not in records:
                self._wrong.append(f"{job.id} ({job.kind.name}): is not known")
            elif wrong := verdict(job, records[job.id]):
                name = flux.job.JobID(job.id).f58
                log = self._world.flux("job", "eventlog", name)
                self._wrong.append(f"{name} ({job.kind.name}): {wrong}\n{log}")
        self._faults.clear_up()
        # A module that was restarted disables what jobs that were let go have left.
        self._world.until("workflows are left", self._workflows, RECOVERY_S)
        self._faults.enable_rabbits()
        self._world.until("left over", self._left, RECOVERY_S)
        jobs = (job for job in self._jobs.values() if not job.forgotten)
        self._wrong += witness.check(
            self._world.handle, jobs, self._recorder.history, {*OTHERS}
        )
        if self._others_now() != self._others:
            self._wrong.append("workflows of others were touched")

    def _workflows(self) -> int:
        counts: dict[str, int] = self._world.cluster()["workflows"]
        return sum(counts.values()) - len(OTHERS)

    def _left(self) -> str:
        """What should not be there any more."""
        cluster, status = self._world.cluster(), self._world.status()
        left = {
            "workflows": self._workflows(),
            "mounts": cluster["mounts"],
            "clientmounts": cluster["clientmounts"],
            "storages": cluster["storages"],
            "bytes by rabbit": cluster["allocated"],
            "jobs known to dws": status["jobs"],
            "counted for limits": self._counted(),
            "files": cluster["backing"],
            "disabled": self._disabled(),
            "persistent file systems": status["persistent"],
            "another option of the plugin": self._world.options_lost(),
            "drained": self._world.flux(
                "resource", "drain", "-no", "{nodelist} {reason}"
            ).strip(),
            "allocated nodes": self._world.flux(
                *["resource", "list", "-s", "allocated", "-no", "{nodelist}"]
            ).strip(),
            "properties": self._world.flux(
                *["resource", "list", "-s", "all", "-no", "{properties}"]
            ).strip(),
        }
        return ", ".join(f"{what}: {value}" for what, value in left.items() if value)

    def _counted(self) -> list[Any]:
        """What users still have, by the book that limits are kept in."""
        quota = self._world.handle.rpc("dws.quota", {"all": True}).get()
        return [u for u in quota["users"] if u["bytes"] or u["waiting"]]

    def _disabled(self) -> list[str]:
        """Nodes that DWS was told are down, and rabbits that are kept back."""
        kube = self._kube()
        nodes = kube.get("systemstatuses", "default", "default")["data"]["nodes"]
        storages, _ = kube.list_all("storages")
        rabbits = {o["metadata"]["name"]: o["spec"]["state"] for o in storages}
        return [n for n, state in {**nodes, **rabbits}.items() if state != "Enabled"]

    def report(self) -> bool:
        """Print what was done and what went wrong; True if nothing did."""
        kinds = Counter(job.kind.name for job in self._jobs.values()) + self._refused
        print("\njobs: " + ", ".join(f"{n} {name}" for name, n in kinds.items()))
        print("faults: " + ", ".join(f"{n} {name}" for name, n in self._counts.items()))
        pairs = len(self._wanted()) * sum(map(len, features.PARAMETERS.values()))
        print(f"met: {len(self._met)} of {pairs} pairs of a disturbance and a feature")
        print(f"limit: at most {self._rules.most / GIB:g} of {rules.TOTAL_GIB} GiB")
        for text in self._wrong:
            print(f"\nwrong: {text}")
        print(f"\nseed {self._args.seed}, {self._world.engine.describe()}")
        total, bad = sum(kinds.values()), len(self._wrong)
        print(f"{total - bad} passed, {bad} failed")
        return not self._wrong

    def all(self) -> bool:
        try:
            self.start()
            self.storm()
            self.recover()
            self.judge()
        except Lost as exc:
            self._wrong.append(str(exc))
        return self.report()


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/soak")
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--active", type=int, default=24)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--flux", type=pathlib.Path, required=True)
    parser.add_argument("--keep", action="store_true")
    return parser.parse_args()


def main() -> int:
    args = parse_args()
    print(f"seed {args.seed}, {args.minutes:g} minutes", flush=True)
    workdir = pathlib.Path(tempfile.mkdtemp(prefix="flux-dws-soak-"))
    world = World(workdir, args.prefix, args.nodes, args.flux)
    good = False
    try:
        good = Run(world, args).all()
    finally:
        world.stop()
        if good and not args.keep:
            shutil.rmtree(workdir)
        else:
            print(f"logs: {workdir}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
