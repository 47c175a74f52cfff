# The demo: one rabbit job in a simulated cluster, followed and checked.
# SPDX-License-Identifier: LGPL-3.0-only
"""Run by scripts/demo as the initial program of a Flux instance."""

from __future__ import annotations

import argparse
import json
import pathlib
import queue
import signal
import sys
import threading
import time
from typing import Any

import flux
import flux.job
from cluster import LIMIT_S, Cluster, Failed, run
from flux.eventlog import EventLogEvent
from flux_k8s.errors import ApiError
from flux_k8s.kube import Kube
from flux_k8s.loop import Loop
from flux_rabbit.term import use_colour
from instance import kept
from say import BAD, GOOD, say

STATES = ["Proposal", "Setup", "DataIn", "PreRun", "PostRun", "DataOut", "Teardown"]
MEANING = {
    "Proposal": "the directive is checked, capacity worked out",
    "Setup": "file systems are made on the rabbits",
    "DataIn": "data is copied in",
    "PreRun": "file systems are mounted on the nodes",
    "PostRun": "file systems are unmounted",
    "DataOut": "data is copied out",
    "Teardown": "file systems are destroyed",
}
DIRECTIVE = "#DW jobdw type=xfs capacity=10GiB name=scratch"
TASK = """
echo "rank $FLUX_TASK_RANK wrote this" >$DW_JOB_scratch/result.$FLUX_TASK_RANK
echo "rank $FLUX_TASK_RANK has $DW_JOB_scratch"
"""


class Follower:
    """Collects the events of a job, in Flux and in Kubernetes. Create the follower
    before the job, or early events are lost."""

    def __init__(self, kubeconfig: pathlib.Path) -> None:
        self._kube = Kube(str(kubeconfig), connections=2)
        _, self._version = self._kube.list_all("workflows")
        self._queue: queue.Queue[tuple[str, float, Any]] = queue.Queue()
        self.began: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        threading.Thread(target=self._watch_workflow, daemon=True).start()

    def follow(self, jobid: flux.job.JobID) -> None:
        """Set the job to follow."""
        self._jobid = jobid
        threading.Thread(target=self._watch_job, daemon=True).start()

    def _watch_workflow(self) -> None:
        try:
            Loop().run(self._watch())
        except ApiError as exc:
            self._queue.put(("error", time.time(), exc.message))

    async def _watch(self) -> None:
        while True:
            stream = await self._kube.awatch("workflows", self._version, "", 60)
            while (events := await stream.next()) is not None:
                for kind, obj in events:
                    self._version = obj["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        self._queue.put(("workflow", time.time(), (kind, obj)))

    def _watch_job(self) -> None:
        for event in flux.job.event_watch(flux.Flux(), self._jobid):
            self._queue.put(("job", time.time(), event))
        self._queue.put(("end", time.time(), None))

    def events(self) -> Any:
        """Yield ("state", name), ("ready", name), ("gone", "") and ("job",
        event) until the job is clean and the workflow gone."""
        clean = gone = False
        while not (clean and gone):
            try:
                source, when, what = self._queue.get(timeout=LIMIT_S)
            except queue.Empty:
                raise Failed(f"nothing happened for {LIMIT_S:.0f} s") from None
            if source == "error":
                raise Failed(f"watching the workflow: {what}")
            elif source == "end":
                clean = True
            elif source == "job":
                yield "job", what
            else:
                kind, obj = what
                state = obj["spec"]["desiredState"]
                status = obj.get("status") or {}
                if state not in self.began:
                    self.began[state] = when
                    yield "state", state
                done = status.get("ready") and status.get("state") == state
                if done and state not in self.ended:
                    self.ended[state] = when
                    yield "ready", state
                if kind == "DELETED":
                    gone = True


def follow(cluster: Cluster, follower: Follower) -> dict[str, Any]:
    """Print the job's events. Returns its variables and the files it has written."""
    seen: dict[str, Any] = {"variables": {}, "files": {}, "exception": None}
    for what, value in follower.events():
        if what == "ready":
            took = follower.ended[value] - follower.began[value]
            say("  ", GOOD, f" {value:9} {took * 1000:7.0f} ms   {MEANING[value]}")
        elif what == "state" and value == "DataOut":
            # The nodes have unmounted the storage; read its files on the rabbit.
            for path in json.loads(cluster.ctl("state"))["backing"]:
                for file in sorted(pathlib.Path(path).glob("result.*")):
                    seen["files"][file.name] = file.read_text().strip()
            cluster.ctl("release", "DataOut")
        elif what == "job":
            note_job_event(value, seen)
    return seen


def note_job_event(event: EventLogEvent, seen: dict[str, Any]) -> None:
    if event.name == "dws_environment":
        seen["variables"] = event.context["variables"]
    elif event.name == "exception":
        seen["exception"] = event.context
    elif event.name in ("alloc", "start", "finish"):
        text = {"alloc": "has its nodes", "start": "runs", "finish": "has ended"}
        say("  ", ("●", "DataOut"), f" the job {text[event.name]}")


def show_eventlog(jobid: str) -> None:
    say(("\nWhat Flux says happened", "bold"), " (flux job eventlog)")
    lines = run("flux", "job", "eventlog", "-H", jobid).splitlines()
    for line in lines:
        say(f"  {line[:100]}")


def show_timeline(jobid: str, picture: pathlib.Path) -> None:
    say(("\nWhere the time went", "bold"), " (flux rabbit timeline)")
    colour = "always" if use_colour(sys.stdout) else "never"
    command = ("flux", "rabbit", "timeline")
    print(run(*command, "-w", "100", f"--color={colour}", jobid), end="", flush=True)
    files = [str(picture.with_suffix(kind)) for kind in (".html", ".svg")]
    run(*command, "--html", files[0], "--svg", files[1], jobid)
    say(f"As a picture: {files[0]} (open it in a browser)")


def check(checks: list[tuple[str, bool]]) -> bool:
    say(("\nNothing is left", "bold"))
    for text, good in checks:
        say("  ", GOOD if good else BAD, f" {text}")
    return all(good for _, good in checks)


def demo(cluster: Cluster, picture: pathlib.Path) -> bool:
    handle = flux.Flux()
    say(("Starting", "bold"), " a simulated cluster: node[0-3], 2 rabbits")
    cluster.start()
    cluster.wait_synced(handle)
    say(f"Running on {cluster.engine}")
    cluster.ctl("hold", "DataOut")
    follower = Follower(cluster.kubeconfig)
    say((f"\n$ flux submit -N2 -S dw=\"{DIRECTIVE}\" bash -c '{TASK}'", "bold"))
    jobid = flux.job.JobID(
        run(
            "flux", "submit", "-N2", "-S", f"dw={DIRECTIVE}", "bash", "-c", TASK
        ).strip()
    )
    follower.follow(jobid)
    seen = follow(cluster, follower)
    name = str(jobid.f58)
    show_eventlog(name)
    missing = [state for state in STATES if state not in follower.ended]
    if missing or seen["exception"]:
        raise Failed(f"missing states: {missing}; exception: {seen['exception']}")
    show_timeline(name, picture)
    say(("\nThe environment that the job saw", "bold"))
    for key, value in sorted(seen["variables"].items()):
        say(f"  {key}={value}")
    say(("\nWhat its tasks printed", "bold"), " (flux job attach)")
    output = run("flux", "job", "attach", name)
    say("  " + output.strip().replace("\n", "\n  "))
    say(("\nThe files that it wrote", "bold"), ", as the rabbits had them")
    for file, text in seen["files"].items():
        say(f"  {file}: {text}")
    cluster.ctl("wait-idle")
    state = json.loads(cluster.ctl("state"))
    free = run("flux", "resource", "list", "-s", "free", "-no", "{nnodes}").strip()
    mount = seen["variables"].get("DW_JOB_scratch", "")
    good = check(
        [
            ("no workflow", not any(state["workflows"].values())),
            ("no mount", bool(mount) and not pathlib.Path(mount).exists()),
            ("no capacity in use", not any(state["allocated"].values())),
            ("all four nodes are free", free == "4"),
            ("each task wrote its file", len(seen["files"]) == 2),
            ("each task was told its path", output.count(mount) == 2),
        ],
    )
    total = follower.ended["Teardown"] - follower.began["Proposal"]
    say(f"\nFrom Proposal to the end of Teardown: {total:.3f} s")
    return good


def keep(workdir: pathlib.Path) -> None:
    """Print how to connect, and wait for SIGINT or SIGTERM."""
    endings = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, endings)
    say(
        ("\nEverything stays up.", "bold"),
        " In another terminal, in this directory:\n"
        f"  . {kept(workdir)}\n"
        f'  flux run -N1 -S dw="{DIRECTIVE}" printenv DW_JOB_scratch\n'
        "Ctrl-C here ends it.",
    )
    signal.sigwait(endings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--picture", type=pathlib.Path, required=True)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--fast", action="store_true")
    args = parser.parse_args()
    preset = "instant" if args.fast else "demo"
    cluster = Cluster(args.workdir, args.prefix, preset)
    try:
        good = demo(cluster, args.picture)
        if args.keep:
            keep(args.workdir)
    except Failed as exc:
        say(("failed:", "bad"), f" {exc}")
        return 1
    finally:
        cluster.stop()
    say(("All is well.", "good") if good else ("Not all is well.", "bad"))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
