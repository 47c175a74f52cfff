# Reduces a failed run to the jobs and disturbances that are needed for the failure.
# SPDX-License-Identifier: LGPL-3.0-only
"""Delta debugging (Zeller and Hildebrandt, ddmin) over what a run has done."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

T = TypeVar("T")

# How long a trial waits for jobs that hang.
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Event:
    """An action of a run.

    Attributes:
        time: in s since the run began.
        what: "job", "cancel", or the name of a disturbance.
        number: of the job, or of the step.
        jobid: of the job, in that run.
    """

    time: float
    what: str
    number: int
    jobid: int = 0

    def __str__(self) -> str:
        return f"{self.what} {self.number}"


def save(path: pathlib.Path, events: Sequence[Event]) -> None:
    path.write_text(json.dumps([asdict(event) for event in events]))


def load(path: pathlib.Path) -> list[Event]:
    return [Event(**item) for item in json.loads(path.read_text())]


def kind_of(text: str) -> str:
    """An error text without jobs and numbers, so that errors of one kind are equal."""
    line = text.splitlines()[0]
    while line != (line := re.sub(r"\([^()]*\)", "", line)):
        pass
    line = re.sub(r"ƒ\w+|\b(rabbit|node|lent)?\d[\w.]*", "", line)
    return re.sub(r"[^a-zA-Z]+", " ", line).strip()


def ddmin(whole: list[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """Reduce a list by leaving out parts, as long as the rest still fails."""
    parts = 2
    while len(whole) > 1:
        size = -(-len(whole) // parts)
        for begin in range(0, len(whole), size):
            rest = whole[:begin] + whole[begin + size :]
            if rest and fails(rest):
                whole, parts = rest, max(parts - 1, 2)
                break
        else:
            if size == 1:
                break
            parts = min(2 * parts, len(whole))
    return whole


class Cut:
    """Runs trials, each in a process and a directory of its own.

    Args:
        wrong: errors of the run that failed.
        minutes: no trial begins after this time.
        say: prints progress.
    """

    def __init__(
        self,
        workdir: pathlib.Path,
        wrong: Sequence[str],
        minutes: float,
        say: Callable[[str], None],
    ) -> None:
        self._workdir = workdir
        self._texts = " ".join(wrong)
        self._kinds = {kind_of(text) for text in wrong}
        self._end = time.monotonic() + minutes * 60
        self._say = say
        self._trials = 0

    def shortest(self, events: list[Event]) -> list[Event]:
        """The shortest list found that fails with an error of the same kind; [] if the
        events do not fail again."""
        named = [e for e in events if e.jobid and f"{e.jobid}" in self._texts]
        jobs = [e for e in events if e.what == "job"]
        # Trials are slow, and often a single job reproduces the failure: try few
        # events first.
        for some in (named[:1], named, jobs, events):
            if some and self._fails(some):
                return ddmin(some, self._fails)
        return []

    def _fails(self, events: list[Event]) -> bool:
        left = self._end - time.monotonic()
        if left <= 0:
            return False
        self._trials += 1
        trial = self._workdir / f"trial-{self._trials}"
        trial.mkdir()
        save(trial / "plan.json", events)
        # A trial creates its own directory: below this one, socket paths get too long.
        words = [w for w in sys.orig_argv if not w.startswith("--workdir")]
        words += ["--plan", str(trial / "plan.json"), "--cut=0"]
        with open(trial / "out", "wb") as out:
            child = subprocess.Popen(words, stdout=out, stderr=out)
            try:
                child.wait(left)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGINT)
                child.wait()
        found = (trial / "out").read_text(errors="replace").splitlines()
        texts = [t.removeprefix("wrong: ") for t in found if t.startswith("wrong: ")]
        for logs in (t.removeprefix("logs: ") for t in found if t.startswith("logs: ")):
            shutil.rmtree(logs, ignore_errors=True)
        failed = bool(self._kinds & {kind_of(text) for text in texts})
        self._say(f"cut: {len(events)} events {'fail' if failed else 'pass'}")
        return failed
