# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit selftest.
"""A smoke test of a whole installation, with a verdict per line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

# Importing graphcheck, nodecheck and rootcheck registers their checks.
from flux_rabbit import (  # noqa: F401
    checks,
    cli,
    graphcheck,
    nodecheck,
    rootcheck,
    rpc,
    term,
    timeline,
)
from flux_rabbit.checks import Verdict
from flux_rabbit.listing import state_of, waits_for
from flux_rabbit.submit import TYPES, submit
from flux_rabbit.term import Line
from flux_rabbit.units import duration

Object = dict[str, Any]

# The least capacity, so that the job fits on a full rabbit.
CAPACITY = "1GiB"
# Fails unless the job was told where its file system is, and it is there.
TASK = 'test -n "$DW_JOB_selftest" || exit 78; test -e "$DW_JOB_selftest" || exit 79'
NOT_TOLD, NOT_THERE = 78, 79
POLL_S = 0.2


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument(
        "-t",
        "--types",
        default=",".join(TYPES),
        metavar="TYPE,...",
        help="run a job for these file systems (default: all); none: no jobs",
    )
    parser.add_argument(
        "--timeout",
        type=cli.seconds,
        default=600.0,
        metavar="SECONDS",
        help="for all jobs together (default: 600)",
    )
    parser.add_argument(
        "--requires", metavar="CONSTRAINT", help="run the jobs on nodes like these"
    )
    return (
        "Test a whole installation: versions, configuration, what is loaded, the way "
        "to Kubernetes and what may be done there, whether the mapping is that of the "
        "cluster, and a tiny job for each type of file system. Run it as the instance "
        "owner on the node of rank 0. The exit status is 0 if nothing has failed, 3 if "
        "something has.",
        (
            "flux rabbit selftest",
            "flux rabbit selftest --types none     only look, run nothing",
            "flux rabbit selftest -t xfs --requires=host:node7",
        ),
    )


class Jobs:
    """A tiny job for each type of file system, all at the same time."""

    def __init__(self, handle: rpc.Handle, args: argparse.Namespace) -> None:
        self._handle = handle
        self._limit = time.monotonic() + args.timeout
        self._timeout = args.timeout
        self._requires = args.requires

    def _submit(self, kind: str) -> int:
        """Submit a job. Raises OSError or ValueError with why not."""
        return submit(
            ["sh", "-c", TASK],
            f"#DW jobdw type={kind} capacity={CAPACITY} name=selftest",
            f"rabbit-selftest-{kind}",
            duration_s=max(60.0, self._timeout),
            requires=self._requires,
        )

    def run(self, kinds: list[str]) -> Iterator[Verdict]:
        """Verdicts in the order of the types."""
        running: dict[str, int | Verdict] = {}
        for kind in kinds:
            try:
                running[kind] = self._submit(kind)
            except (OSError, ValueError) as exc:
                text = f"not submitted: {exc}"
                running[kind] = Verdict(f"{kind} job", False, text)
        try:
            while running:
                kind = next(iter(running))
                job = running[kind]
                verdict = job if isinstance(job, Verdict) else self._wait(kind, job)
                del running[kind]
                yield verdict
        finally:
            # The user interrupts the test: cancel the jobs that still run.
            for job in running.values():
                if not isinstance(job, Verdict):
                    self._cancel(job)

    def _cancel(self, number: int) -> None:
        request = {"id": number, "type": "cancel", "severity": 0, "note": "selftest"}
        try:
            self._handle.call("job-manager.raise", request)
        except rpc.RpcError:
            pass  # the job has ended by itself

    def _wait(self, kind: str, number: int) -> Verdict:
        name = f"{kind} job"
        while True:
            job = rpc.job_list_or_none(self._handle, number)
            if job and job.get("t_inactive"):
                # The job's last events reach the eventlog a little later.
                line = timeline.fetch(self._handle, [number])[0]
                if not line.active:
                    return self._over(name, number, job, line)
            if time.monotonic() >= self._limit:
                return self._late(name, number)
            time.sleep(POLL_S)

    def _late(self, name: str, number: int) -> Verdict:
        """The verdict on a job at its time limit; cancels it."""
        active = rpc.active_job(self._handle, number)
        where = "the queue"
        what = "resources: has the scheduler a node with a rabbit that is ready?"
        if active:
            where, what = state_of(active), waits_for(active)
            message = (active.get("workflow") or {}).get("message")
            what += f": {message}" if message else ""
        self._cancel(number)
        return Verdict(
            name,
            False,
            f"{rpc.f58(number)} hangs in {where}, waiting for {what}",
            f"it was canceled after {duration(self._timeout)}: "
            f"flux rabbit show {rpc.f58(number)}",
        )

    def _over(
        self, name: str, number: int, job: Object, line: timeline.Timeline
    ) -> Verdict:
        if job.get("success") and not line.marks:
            took = duration(line.end - line.begin)
            parts = (f"{s.name} {duration(s.length(line.end))}" for s in line.spans)
            longest = ", ".join(p for p in parts if p.split()[0] in timeline.STATES)
            return Verdict(name, True, f"{took} ({longest})")
        code = int(job.get("waitstatus", 0)) >> 8
        hint = f"flux rabbit show {rpc.f58(number)}"
        if line.marks:
            return Verdict(name, False, line.marks[0].text, hint)
        if code == NOT_TOLD:
            return Verdict(
                name,
                False,
                "the job was not told its path: the shell has not loaded "
                "dws_environment.so",
                "is it in the shell's plugin path?",
            )
        if code == NOT_THERE:
            text = "the file system is not at the path that the job was told"
            return Verdict(name, False, text, "is nnf-clientmount running there?")
        return Verdict(name, False, f"the job failed (exit status {code})", hint)


def _kinds(text: str) -> list[str]:
    kinds = [word for word in text.split(",") if word and word != "none"]
    for kind in kinds:
        if kind not in TYPES:
            raise cli.Failure(f"--types: '{kind}' is none of {', '.join(TYPES)}")
    return kinds


def _verdicts(args: argparse.Namespace) -> Iterator[Verdict]:
    handle = rpc.Handle()
    kinds = _kinds(args.types)
    failed = 0
    for verdict in checks.run(checks.Site(handle)):
        failed += verdict.good is False
        yield verdict
    if failed and kinds:
        text = f"after {failed} failed check{'s' * (failed > 1)}"
        yield Verdict("jobs", None, text)
    elif kinds:
        yield from Jobs(handle, args).run(kinds)


def line_of(verdict: Verdict) -> list[Line]:
    """The line of a verdict, with its remedy below."""
    mark, style = {True: ("✓", "good"), False: ("✗", "bad"), None: ("–", "dim")}[
        verdict.good
    ]
    skipped = "not checked: " if verdict.good is None else ""
    label = f"{mark} {verdict.name:23} "
    lines: list[Line] = [[(label, style), (skipped + verdict.text, style)]]
    if verdict.hint:
        lines.append([(" " * len(label), ""), (verdict.hint, "dim")])
    return lines


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    colour = cli.colour(args)
    found = []
    for verdict in _verdicts(args):
        found.append(verdict)
        if not args.json:
            term.show(line_of(verdict), colour)
            sys.stdout.flush()
    failed = sum(verdict.good is False for verdict in found)
    if args.json:
        cli.print_json({"failed": failed, "checks": [v.as_json() for v in found]})
    else:
        passed = sum(verdict.good is True for verdict in found)
        print(
            f"{passed} passed, {failed} failed, {len(found) - passed - failed} skipped"
        )
    return cli.EXIT_BAD if failed else 0
