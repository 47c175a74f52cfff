# Drives workflows through a dws-sim over HTTP; run by bench/sim.
# SPDX-License-Identifier: LGPL-3.0-only
"""States per second, time to start, memory."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any

import aiohttp

DWS = "/apis/dataworkflowservices.github.io/v1alpha7"
STATES = ["Proposal", "Setup", "DataIn", "PreRun", "PostRun", "DataOut", "Teardown"]
DIRECTIVE = "#DW jobdw type=xfs capacity=10GiB name=scratch"
SIZE = (10 << 30) + 300 * (1 << 20)
PATCH = {"Content-Type": "application/merge-patch+json"}


class Process:
    """A running dws-sim, and its figures in /proc."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.kubeconfig = args.workdir / "kubeconfig"
        read, write = os.pipe()
        began = time.monotonic()
        self._process = subprocess.Popen(
            [
                *(args.dws_sim, "run", "--kubeconfig", self.kubeconfig),
                *("--nodes", f"node[0-{args.nodes - 1}]"),
                *("--rabbits", f"rabbit[0-{args.rabbits - 1}]"),
                *("--nodes-per-rabbit", "16", "--capacity", "30TB", "--no-tls"),
                *("--ready-fd", str(write)),
            ],
            pass_fds=[write],
        )
        os.close(write)
        with os.fdopen(read) as ready:
            if not ready.read():
                raise RuntimeError("dws-sim did not start")
        self.start_s = time.monotonic() - began

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu_s(self) -> float:
        stat = pathlib.Path(f"/proc/{self.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_bytes(self) -> int:
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


class Driver:
    """The least that a workload manager does, as fast as it may."""

    def __init__(self, session: aiohttp.ClientSession, args: argparse.Namespace):
        self._session = session
        self._nodes, self._prefix = args.nodes, ""
        self._count = args.workflows
        self._seen: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.reached = asyncio.Event()
        self.states = 0
        self._target = self._left = 0

    async def _send(self, method: str, path: str, body: Any = None) -> None:
        async with self._session.request(
            method,
            f"{DWS}/namespaces/default/{path}",
            data=None if body is None else json.dumps(body),
            headers=PATCH if method == "PATCH" else None,
        ) as response:
            text = await response.text()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {text}")

    async def create(self, prefix: str) -> None:
        """Create workflows and wait until all are ready in Proposal."""
        self._prefix = prefix
        self._expect("Proposal")
        numbers = iter(range(self._count))

        async def some() -> None:
            for number in numbers:
                spec = {
                    "desiredState": "Proposal",
                    "dwDirectives": [DIRECTIVE],
                    "wlmID": "bench",
                    "jobID": number,
                    "userID": 1000,
                    "groupID": 1000,
                }
                meta = {"name": f"{prefix}{number}"}
                await self._send("POST", "workflows", {"metadata": meta, "spec": spec})

        await asyncio.gather(*(some() for _ in range(32)))
        await self.reached.wait()

    def _expect(self, state: str) -> None:
        self._target, self._left = STATES.index(state), self._count
        self.reached.clear()

    async def drive(self) -> None:
        """Take all workflows from Proposal through the other states."""
        self._expect("Teardown")
        numbers = iter(range(self._count))

        async def some() -> None:
            for number in numbers:
                name = f"{self._prefix}{number}"
                node = number % self._nodes
                place = {"name": f"rabbit{node // 16}", "allocationCount": 1}
                sets = [{"label": "xfs", "allocationSize": SIZE, "storage": [place]}]
                body = {"spec": {"allocationSets": sets}}
                await self._send("PATCH", f"servers/{name}-0", body)
                nodes = [{"name": f"node{node}"}]
                await self._send("PATCH", f"computes/{name}", {"data": nodes})
                await self._to(name, "Setup")

        await asyncio.gather(*(some() for _ in range(32)))
        await self.reached.wait()

    async def _to(self, name: str, state: str) -> None:
        body = {"spec": {"desiredState": state}}
        await self._send("PATCH", f"workflows/{name}", body)

    async def remove(self) -> None:
        """Delete all workflows."""
        numbers = iter(range(self._count))

        async def some() -> None:
            for number in numbers:
                await self._send("DELETE", f"workflows/{self._prefix}{number}")

        await asyncio.gather(*(some() for _ in range(32)))

    def _event(self, obj: Any) -> None:
        status, name = obj.get("status", {}), obj["metadata"]["name"]
        state = status.get("state")
        if state != obj["spec"]["desiredState"] or not status["ready"]:
            return
        if self._seen.get(name) == state:
            return
        self._seen[name] = state
        self.states += 1
        at = STATES.index(state)
        if at == self._target:
            self._left -= 1
            if not self._left:
                self.reached.set()
        elif at > 0:
            task = asyncio.ensure_future(self._to(name, STATES[at + 1]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def watch(self) -> None:
        """Follow the workflows."""
        query = "watch=true&resourceVersion=0"
        async with self._session.get(f"{DWS}/workflows?{query}") as response:
            buffer = b""
            async for chunk in response.content.iter_any():
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] != "DELETED":
                        self._event(event["object"])


async def state(session: aiohttp.ClientSession, token: str) -> Any:
    """The simulator's own summary."""
    headers = {"Authorization": f"Bearer {token}"}
    async with session.post("/dws-sim/v1/state", headers=headers) as response:
        return await response.json()


async def measure(process: Process, args: argparse.Namespace) -> dict[str, Any]:
    config = json.loads(process.kubeconfig.read_text())
    token, admin = (u["user"]["token"] for u in config["users"])
    result: dict[str, Any] = {
        "start_s": process.start_s,
        "start_cpu_s": process.cpu_s(),
        "memory_start_bytes": process.memory_bytes(),
    }
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    async with aiohttp.ClientSession(
        config["clusters"][0]["cluster"]["server"],
        headers=headers,
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
    ) as session:
        driver = Driver(session, args)
        watching = asyncio.ensure_future(driver.watch())
        version = (await state(session, admin))["version"]
        before = (await state(session, admin))["objects"]
        cpu, wall = process.cpu_s(), time.monotonic()
        await driver.create("wf")
        result["memory_bytes"] = process.memory_bytes()
        result["objects"] = (await state(session, admin))["objects"]
        result["bytes_per_object"] = (
            result["memory_bytes"] - result["memory_start_bytes"]
        ) / max(1, result["objects"] - before)
        await driver.drive()
        cpu, wall = process.cpu_s() - cpu, time.monotonic() - wall
        writes = (await state(session, admin))["version"] - version
        result.update(
            states=driver.states,
            writes=writes,
            states_per_cpu_s=driver.states / cpu,
            states_per_s=driver.states / wall,
            writes_per_cpu_s=writes / cpu,
            memory_peak_bytes=process.memory_bytes(),
        )
        await driver.remove()
        watching.cancel()
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    parser.add_argument("--dws-sim", required=True)
    parser.add_argument("-n", "--workflows", type=int, default=10000)
    parser.add_argument("--nodes", type=int, default=11136)
    parser.add_argument("--rabbits", type=int, default=696)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    process = Process(args)
    try:
        result = asyncio.run(measure(process, args))
    finally:
        process.stop()
    if args.json:
        print(json.dumps(result, indent=1))
        return 0
    mib = 1 << 20
    print(
        f"{args.nodes} nodes, {args.rabbits} rabbits, {args.workflows} workflows\n"
        f"  start             {result['start_s']:.2f} s "
        f"({result['start_cpu_s']:.2f} s CPU)\n"
        f"  memory at start   {result['memory_start_bytes'] / mib:.0f} MiB\n"
        f"  memory at work    {result['memory_peak_bytes'] / mib:.0f} MiB\n"
        f"  memory per object {result['bytes_per_object']:.0f} bytes\n"
        f"  state changes     {result['states']} of workflows, "
        f"{result['writes']} writes\n"
        f"  per CPU second    {result['states_per_cpu_s']:.0f} state changes, "
        f"{result['writes_per_cpu_s']:.0f} writes\n"
        f"  per second        {result['states_per_s']:.0f} state changes"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
