# The demo: one rabbit job in a simulated cluster, followed and checked.
# SPDX-License-Identifier: LGPL-3.0-only
"""Run by scripts/demo as the initial program of a Flux instance."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import flux
import flux.job
from flux.eventlog import EventLogEvent
from flux_k8s.kube import ApiError, Kube
from rich.console import Console
from rich.table import Table

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
LIMIT_S = 120.0


class Failed(Exception):
    """Something did not go as it should; the text says what."""


def run(*command: str) -> str:
    """Run a command that must succeed; its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout}")
    return done.stdout


class Cluster:
    """The simulated cluster and everything of flux-dws, connected to it."""

    def __init__(self, workdir: pathlib.Path, prefix: pathlib.Path, preset: str):
        self.kubeconfig = workdir / "kubeconfig"
        self._workdir = workdir
        self._prefix = prefix
        self._preset = preset
        self._children: list[subprocess.Popen[bytes]] = []

    def _spawn(self, *command: str, **kwargs: Any) -> None:
        with open(self._workdir / f"{command[0]}.log", "wb") as log:
            child = subprocess.Popen(command, stdout=log, stderr=log, **kwargs)
        self._children.append(child)

    def start(self) -> None:
        ready, theirs = os.pipe()
        self._spawn(
            *["dws-sim", "run", "--nodes", "node[0-3]", "--nodes-per-rabbit", "2"],
            *["--kubeconfig", str(self.kubeconfig), "--preset", self._preset],
            *["--mapping", str(self._workdir / "mapping.json")],
            *["--root", str(self._workdir / "sim"), "--ready-fd", str(theirs)],
            pass_fds=[theirs],
        )
        os.close(theirs)
        with os.fdopen(ready) as stream:
            if "ready" not in stream.readline():
                raise Failed(f"dws-sim: {(self._workdir / 'dws-sim.log').read_text()}")
        config = {
            "rabbit": {
                "mapping": str(self._workdir / "mapping.json"),
                "kubeconfig": str(self.kubeconfig),
            }
        }
        path = self._workdir / "config.json"
        path.write_text(json.dumps(config))
        run("flux", "config", "load", str(path))
        lib = self._prefix / "lib" / "flux"
        run("flux", "module", "reload", str(lib / "modules" / "sched-rabbit.py"))
        run("flux", "module", "load", str(lib / "modules" / "dws.so"))
        plugins = lib / "job-manager" / "plugins"
        run("flux", "jobtap", "load", str(plugins / "dws-jobtap.so"))
        self._spawn("flux-coral2-dws", "-v", "--kubeconfig", str(self.kubeconfig))

    def wait_synced(self, handle: flux.Flux) -> None:
        """Until the module knows what Kubernetes has."""
        limit = time.monotonic() + LIMIT_S
        while not handle.rpc("dws.status", {}).get()["agent"]["synced"]:
            if time.monotonic() > limit:
                raise Failed("the agent did not connect")
            time.sleep(0.02)

    def ctl(self, *words: str) -> str:
        return run("dws-sim", "ctl", "--kubeconfig", str(self.kubeconfig), *words)

    def stop(self) -> None:
        for child in reversed(self._children):
            child.terminate()
        for child in self._children:
            child.wait()


class Follower:
    """Everything that happens to a job, in Flux and in Kubernetes."""

    def __init__(self, kubeconfig: pathlib.Path, jobid: flux.job.JobID) -> None:
        self._kube = Kube(str(kubeconfig), connections=2)
        self._jobid = jobid
        self._queue: queue.Queue[tuple[str, float, Any]] = queue.Queue()
        self.began: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        for target in (self._watch_workflow, self._watch_job):
            threading.Thread(target=target, daemon=True).start()

    def _watch_workflow(self) -> None:
        name = f"fluxjob-{int(self._jobid)}"
        version = "0"
        while True:
            try:
                for kind, obj in self._kube.watch("workflows", version, "", 60):
                    version = obj["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK" and obj["metadata"]["name"] == name:
                        self._queue.put(("workflow", time.time(), (kind, obj)))
            except ApiError as exc:
                self._queue.put(("error", time.time(), exc.message))
                return

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


def follow(console: Console, cluster: Cluster, follower: Follower) -> dict[str, Any]:
    """Show the job's way. Returns its variables and the files it left."""
    seen: dict[str, Any] = {"variables": {}, "files": {}, "exception": None}
    for what, value in follower.events():
        if what == "ready":
            took = follower.ended[value] - follower.began[value]
            console.print(
                f"  [green]✓[/] {value:9} {took * 1000:7.0f} ms   {MEANING[value]}"
            )
        elif what == "state" and value == "DataOut":
            # Unmounted from the nodes, but still there: as the rabbit has it.
            for path in json.loads(cluster.ctl("state"))["backing"]:
                for file in sorted(pathlib.Path(path).glob("result.*")):
                    seen["files"][file.name] = file.read_text().strip()
            cluster.ctl("release", "DataOut")
        elif what == "job":
            note_job_event(console, value, seen)
    return seen


def note_job_event(
    console: Console, event: EventLogEvent, seen: dict[str, Any]
) -> None:
    if event.name == "dws_environment":
        seen["variables"] = event.context["variables"]
    elif event.name == "exception":
        seen["exception"] = event.context
    elif event.name in ("alloc", "start", "finish"):
        text = {"alloc": "has its nodes", "start": "runs", "finish": "has ended"}
        console.print(f"  [cyan]●[/] the job {text[event.name]}")


def show_eventlog(console: Console, jobid: str) -> None:
    console.print("\n[bold]What Flux says happened[/] (flux job eventlog)")
    lines = run("flux", "job", "eventlog", "-H", jobid).splitlines()
    for line in lines:
        console.print(f"  {line[:100]}", highlight=False, markup=False)


def show_timeline(console: Console, follower: Follower) -> None:
    start = follower.began["Proposal"]
    total = max(follower.ended.values()) - start
    width = 50
    table = Table(title="The seven states", title_justify="left", box=None)
    table.add_column("state")
    table.add_column("at, s", justify="right")
    table.add_column("took, s", justify="right")
    table.add_column("")
    for state in STATES:
        began, ended = follower.began[state], follower.ended[state]
        left = int((began - start) / total * width)
        bar = max(1, round((ended - began) / total * width))
        table.add_row(
            state,
            f"{began - start:.3f}",
            f"{ended - began:.3f}",
            " " * left + "━" * bar,
        )
    console.print()
    console.print(table)


def check(console: Console, checks: list[tuple[str, bool]]) -> bool:
    console.print("\n[bold]Nothing is left[/]")
    for text, good in checks:
        console.print(f"  {'[green]✓[/]' if good else '[red]✗[/]'} {text}")
    return all(good for _, good in checks)


def demo(console: Console, cluster: Cluster) -> bool:
    handle = flux.Flux()
    console.print("[bold]Starting[/] a simulated cluster: node\\[0-3], 2 rabbits")
    cluster.start()
    cluster.wait_synced(handle)
    cluster.ctl("hold", "DataOut")
    console.print(
        f"\n[bold]$ flux submit -N2 -S dw=\"{DIRECTIVE}\" bash -c '{TASK}'[/]"
    )
    jobid = flux.job.JobID(
        run(
            "flux", "submit", "-N2", "-S", f"dw={DIRECTIVE}", "bash", "-c", TASK
        ).strip()
    )
    follower = Follower(cluster.kubeconfig, jobid)
    seen = follow(console, cluster, follower)
    name = str(jobid.f58)
    show_eventlog(console, name)
    missing = [state for state in STATES if state not in follower.ended]
    if missing or seen["exception"]:
        raise Failed(f"missing states: {missing}; exception: {seen['exception']}")
    show_timeline(console, follower)
    console.print("\n[bold]The environment that the job saw[/]")
    for key, value in sorted(seen["variables"].items()):
        console.print(f"  {key}={value}", highlight=False)
    console.print("\n[bold]What its tasks printed[/] (flux job attach)")
    output = run("flux", "job", "attach", name)
    console.print("  " + output.strip().replace("\n", "\n  "), highlight=False)
    console.print("\n[bold]The files that it wrote[/], as the rabbits had them")
    for file, text in seen["files"].items():
        console.print(f"  {file}: {text}", highlight=False)
    cluster.ctl("wait-idle")
    state = json.loads(cluster.ctl("state"))
    free = run("flux", "resource", "list", "-s", "free", "-no", "{nnodes}").strip()
    mount = seen["variables"].get("DW_JOB_scratch", "")
    good = check(
        console,
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
    console.print(f"\nFrom Proposal to the end of Teardown: {total:.3f} s")
    return good


def keep(console: Console) -> None:
    endings = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, endings)
    console.print(
        "\n[bold]Everything stays up.[/] In another terminal, in this directory:\n"
        f"  export FLUX_URI={os.environ['FLUX_URI']}\n"
        "  export PATH=$PWD/.venv/bin:$PATH\n"
        f'  flux run -N1 -S dw="{DIRECTIVE}" df -h\n'
        "Ctrl-C here ends it.",
        highlight=False,
    )
    signal.sigwait(endings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--fast", action="store_true")
    args = parser.parse_args()
    console = Console(soft_wrap=True)
    preset = "instant" if args.fast else "demo"
    cluster = Cluster(args.workdir, args.prefix, preset)
    try:
        good = demo(console, cluster)
        if args.keep:
            keep(console)
    except Failed as exc:
        console.print(f"[red]failed:[/] {exc}", highlight=False)
        return 1
    finally:
        cluster.stop()
    console.print("[green]All is well.[/]" if good else "[red]Not all is well.[/]")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
