# Runs jobs and faults for a time, waits for recovery, and looks for leftovers: a job
# that never ends, a workflow, a drain, a mount, a byte.
# SPDX-License-Identifier: LGPL-3.0-only
"""The command behind scripts/soak."""

from __future__ import annotations

import argparse
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import Any, NoReturn

import flux.job
import oracle.witness
from elsewhere import make_profile
from flux_k8s.kube import Kube
from oracle.history import Recorder

from soak import admin, features, probe, rules, witness
from soak.admin import Admin
from soak.cut import PATIENCE_S, Cut, Event, load, save
from soak.draws import Draws
from soak.faults import Faults
from soak.jobs import CREATE, DESTROY, GIB, Draft, Job, verdict
from soak.world import TOP, Lost, World

CLOCK = TOP / "t" / "scripts" / "jump-clock.c"
RECOVERY_S = 300.0
# Seconds of history that a killed flux-core may lose, late checkpoints included.
FORGETS_S = 15.0
# Foreign workflows, which must not change: one without a known owner, and one of
# another Flux instance on the same cluster.
OTHERS: dict[str, dict[str, str]] = {
    "somebodys": {},
    "fluxjob-1": {"flux-framework.org/instance": "another"},
}
# Longest time between two events when a run is repeated.
AGAIN_S = 3.0
# Seconds between two steps of the run: a load, not a flood.
STEP_S = 0.2


class Run:
    """One soak run."""

    def __init__(self, world: World, args: argparse.Namespace):
        self._world = world
        self._draws = Draws(args.seed, guests=world.engine.is_solo)
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
        self._admin = Admin(
            world, self._draws.rng, self._active, self._ended, self._note
        )
        self._kinds = {**self._faults.kinds, **self._admin.kinds}
        # what was done, in its order
        self._events: list[Event] = []
        self._counts: Counter[str] = Counter()
        # a disturbance, and a feature of a job that was active then
        self._met: set[tuple[str, str]] = set()
        self._wrong: list[str] = []
        self._others: dict[str, Any] = {}
        self._rules = rules.Rules(self._kube, self._jobs, self._completed)
        self._patience = PATIENCE_S if args.plan else RECOVERY_S
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:7.1f}  {text}", flush=True)

    # -- jobs -------------------------------------------------------------

    def _records(self, *filters: str) -> dict[int, dict[str, Any]]:
        listing = flux.job.JobList(
            self._world.handle, filters=list(filters), max_entries=0, user="all"
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
        """Jobs that may be active after a kill: the active ones and, with an engine
        that restarts from a checkpoint, jobs that have just ended."""
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

    def _ended(self) -> list[Job]:
        return [
            job
            for jobid in self._records("inactive")
            if (job := self._jobs.get(jobid)) and not job.record
        ]

    def _note(self, job: Job) -> None:
        job.seen = oracle.witness.job(self._world.handle, job.id)
        job.record = self._records("inactive")[job.id]

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
        """Mark the jobs that an engine has lost by restarting from a checkpoint. Their
        storage must be cleaned up all the same."""
        known = self._records("pending", "running", "inactive")
        there = (j for j in self._jobs.values() if not j.record)
        forgotten = [j for j in there if j.id not in known]
        for job in forgotten:
            if not job.forgotten:
                self._counts["job forgotten by Flux"] += 1
            job.forgotten = True

    def _awaited(self, draft: Draft) -> Job | None:
        """The job whose data this one waits for, if there is such a job."""
        kind = draft.kind
        copy = {"dws-in": "copy_in", "dws-out": "copy_out"}.get(kind.after, "")
        found = [
            job
            for job in self._jobs.values()
            if kind.after and copy in job.kind.dw and job.kind.staged
            if job.unharmed and not job.record and job.kind.guest == kind.guest
        ]
        return found[-min(draft.back, len(found))] if found else None

    def submit(self, draft: Draft) -> None:
        """Submit a draft. Flux must reject an invalid one."""
        error, kind = "", draft.kind
        if awaited := self._awaited(draft):
            name = flux.job.JobID(awaited.id).f58
            wanted = [{"scheme": kind.after, "value": name}]
            draft.spec.setattr("system.dependencies", wanted)
        made = time.monotonic() - self._began
        try:
            for jobid in self._world.submit(draft.spec, kind.guest, kind.copies):
                job = self._jobs[jobid] = draft.submitted(jobid)
                job.awaits = awaited
                self._events.append(Event(made, "job", draft.number, jobid))
        except OSError as exc:
            error = exc.strerror or str(exc)
            self._events.append(Event(made, "job", draft.number))
        if awaited and not awaited.unharmed and f"{kind.after}:" in error:
            return
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
        drawn = self._draws.configuration(admin.KEYS)
        self._world.write_config(rules.CONFIG, drawn)
        self.say(f"configuration {', '.join(drawn)}")
        self._world.start_instance()
        self.say(self._world.describe())
        self._world.start_agent()
        self._world.until("agent not in step", self._not_synced, self._patience)
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
        self.submit(self._draws.job(CREATE))
        self._events.clear()
        self._world.until("jobs are active", self._stuck, self._patience)

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
        return [n for n in self._kinds if not n.startswith(without)]

    def storm(self) -> None:
        """Submit jobs and inject faults until the time is over."""
        end = time.monotonic() + self._args.minutes * 60
        kinds = self._wanted()
        while time.monotonic() < end:
            for _ in range(self._args.active - len(self._active())):
                self.submit(self._draws.job())
            self._step(*self._draws.step(kinds))
            time.sleep(STEP_S)

    def _step(self, cancel: bool, name: str) -> None:
        number, made = self._draws.steps - 1, time.monotonic() - self._began
        if cancel:
            self._events.append(Event(made, "cancel", number))
            self.cancel()
        if name:
            self._events.append(Event(made, name, number))
            there = self._active()
            detail = self._kinds[name]()
            self._met |= {(name, f) for j in there for f in j.kind.features}
            self._counts[name] += 1
            self.say(f"{name} {detail}")
        self._unblock()
        self._check()

    def _check(self) -> None:
        for text in self._rules.check():
            self.say(text)
            self._wrong.append(text)

    def again(self, events: list[Event]) -> None:
        """Repeat the events of another run, with long pauses cut to AGAIN_S."""
        kinds, last = self._wanted(), 0.0
        for event in events:
            end = time.monotonic() + min(event.time - last, AGAIN_S)
            while time.monotonic() < end:
                time.sleep(STEP_S)
                self._check()
            last = event.time
            if event.what == "job":
                self.submit(self._draws.number(event.number))
                continue
            self._draws.steps = event.number
            self._draws.step(kinds)
            cancel = event.what == "cancel"
            self._step(cancel, "" if cancel else event.what)

    def _unblock(self) -> None:
        if job := self._faults.unblock():
            self._counts["scheduling stopped by Flux"] += 1
            self.say(f"scheduling stopped by Flux at {job}: unblocked")

    def recover(self) -> None:
        self.say(f"recovery; {len(self._active())} jobs are active")
        self._faults.heal()
        self._world.until("jobs are active", self._stuck, self._patience)
        self.submit(self._draws.job(DESTROY))
        self._world.until("jobs are active", self._stuck, self._patience)

    def _stuck(self) -> str:
        self._unblock()
        return ", ".join(
            f"{flux.job.JobID(job.id).f58} ({job.kind.name}; {job.struck})"
            for job in self._active()
        )

    def judge(self) -> None:
        """Check the outcome of every job, and look for leftovers."""
        records = self._records("pending", "running", "inactive")
        for job in self._jobs.values():
            if job.forgotten:
                continue
            record = job.record or records.get(job.id)
            if record is None:
                self._wrong.append(f"{job.id} ({job.kind.name}): is not known")
            elif wrong := verdict(job, record):
                name = flux.job.JobID(job.id).f58
                _, log, _ = self._world.attempt("flux", "job", "eventlog", name)
                self._wrong.append(f"{job.id} ({job.kind.name}): {wrong}\n{log}")
            purged = job.record and not (job.taken_back or job.brought_back)
            if purged and self._world.is_there(flux.job.JobID(job.id)):
                self._wrong.append(f"{job.id}: was purged, and is in the KVS")
        self._faults.clear_up()
        # A restarted module disables rabbits with leftovers of released jobs.
        self._world.until("workflows are left", self._workflows, self._patience)
        self._faults.enable_rabbits()
        self._world.until("left over", self._left, self._patience)
        jobs = (job for job in self._jobs.values() if not job.forgotten)
        # Versions recorded while the clock was being set carry a time before the jump.
        for begin, end in self._world.jumps:
            self._recorder.history.gap(begin, end)
        self._wrong += witness.check(
            *(self._world.handle, jobs, self._recorder.history),
            *({*OTHERS}, self._world.unmount()),
        )
        if self._others_now() != self._others:
            self._wrong.append("workflows of others were touched")
        self._wrong += probe.check(self._world)

    def _workflows(self) -> int:
        counts: dict[str, int] = self._world.cluster()["workflows"]
        return sum(counts.values()) - len(OTHERS)

    def _left(self) -> str:
        """Description of all leftovers; "" if there are none."""
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
        """Users whose storage the limits still count."""
        quota = self._world.handle.rpc("dws.quota", {"all": True}).get()
        keys = ("bytes", "jobs", "waiting")
        return [u for u in quota["users"] if any(u[key] for key in keys)]

    def _disabled(self) -> list[str]:
        """Nodes that DWS records as down, and disabled rabbits."""
        kube = self._kube()
        nodes = kube.get("systemstatuses", "default", "default")["data"]["nodes"]
        storages, _ = kube.list_all("storages")
        rabbits = {o["metadata"]["name"]: o["spec"]["state"] for o in storages}
        return [n for n, state in {**nodes, **rabbits}.items() if state != "Enabled"]

    def report(self) -> bool:
        """Print the events and the errors of the run. True if there are no errors."""
        names = (job.kind.name for job in self._jobs.values())
        # The name of a row lists its directives first, then all other features.
        kinds = Counter(name.partition(",")[0] for name in names) + self._refused
        print("\njobs: " + ", ".join(f"{n} {name}" for name, n in kinds.items()))
        print("faults: " + ", ".join(f"{n} {name}" for name, n in self._counts.items()))
        never = [name for name in self._wanted() if not self._counts[name]]
        print("not met: " + (", ".join(never) or "none"))
        pairs = len(self._wanted()) * sum(map(len, features.PARAMETERS.values()))
        print(f"met: {len(self._met)} of {pairs} pairs of a disturbance and a feature")
        keys = [key for key in admin.KEYS if self._admin.changed[key]]
        print(f"configuration: {len(keys)} of {len(admin.KEYS)} keys have changed")
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
            if self._args.plan:
                self.again(load(self._args.plan))
            else:
                self.storm()
            self.recover()
            self.judge()
        except Lost as exc:
            self._wrong.append(str(exc))
        good = self.report()
        if not good and self._events and self._args.cut > 0:
            self._cut()
        return good

    def _cut(self) -> None:
        self._world.stop()
        save(self._world.workdir / "plan.json", self._events)
        cut = Cut(self._world.workdir, self._wrong, self._args.cut, self.say)
        if not (events := cut.shortest(self._events)):
            print("cut: what was done does not fail like that again, or in time")
            return
        path = self._world.workdir / "shortest.json"
        save(path, events)
        print(f"cut: {len(events)} of {len(self._events)} events fail:")
        draws = Draws(self._args.seed, guests=self._world.engine.is_solo)
        for event in events:
            if event.what == "job":
                print(f"  {event}: {draws.number(event.number).kind.name}")
            else:
                print(f"  {event}")
        print(f"again: scripts/soak --seed {self._args.seed} --plan {path}")


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
    parser.add_argument("--cut", type=float, default=10.0)
    parser.add_argument("--plan", type=pathlib.Path)
    parser.add_argument("--workdir", type=pathlib.Path)
    return parser.parse_args()


def begin(args: argparse.Namespace) -> NoReturn:
    """Execute this program again, with a work directory and an adjustable clock."""
    workdir = pathlib.Path(tempfile.mkdtemp(prefix="flux-dws-soak-"))
    library, clock = workdir / "clock.so", workdir / "clock"
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(library), str(CLOCK), "-ldl"],
        check=True,
    )
    clock.write_bytes(bytes(16))
    # flux-core lets modules resolve symbols in the C library before preloaded ones.
    env = {"LD_PRELOAD": str(library), "JUMP_CLOCK": str(clock)}
    env["FLUX_LOAD_WITH_DEEPBIND"] = "0"
    words = [*sys.orig_argv, f"--seed={args.seed}", f"--workdir={workdir}"]
    os.execve(sys.executable, words, {**os.environ, **env})


def main() -> int:
    args = parse_args()
    if args.workdir is None:
        begin(args)
    print(f"seed {args.seed}, {args.minutes:g} minutes", flush=True)
    workdir = args.workdir
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
