# One attachment of the agent to the broker module: makes reports of what watches see
# and of the results of commands. agent.py creates one for each attachment.
# SPDX-License-Identifier: LGPL-3.0-only
"""Sessions of the agent."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Callable

from flux_k8s import names
from flux_k8s.commands import CommandQueue
from flux_k8s.kube import Kube
from flux_k8s.listwatch import Sink, Watchers
from flux_k8s.loop import Loop
from flux_k8s.objects import (
    Name,
    Object,
    name_of,
    to_json,
    version_number,
    version_of,
)
from flux_k8s.reports import Mailbox, Report, in_parts

REPORT_TYPES = {
    "workflows": "workflow",
    "storages": "storage",
    "persistentstorageinstances": "persistent",
    "servers": "servers",
}

# Stands for the version and digest() of a workflow that was not reported yet.
UNREPORTED = (0, 0)


def digest(workflow: Object) -> int:
    """A hash of the fields of a workflow that the module reads, without its version, to
    skip reports: DWS often writes workflows in which only the version changes."""
    return hash(to_json({**workflow, "version": ""}))


class Session(Sink):
    """One attachment: its watches, its commands, its first snapshot."""

    def __init__(
        self,
        kube: Kube,
        instance: str,
        loop: Loop,
        workers: int,
        box: Mailbox,
        divided: Collection[str] = ("workflows",),
        stale: Callable[[str], None] = lambda why: None,
    ) -> None:
        """Args:
        divided: the kinds of which the module accepts a snapshot in parts.
        stale: called with the reason when Kubernetes has gone back: the module keeps
            newer versions that it has seen until another attachment begins.
        """
        self._kube = kube
        self._instance = instance
        self._divided = divided
        self._box = box
        self._stale = stale
        self._open = True
        self._first: dict[str, list[Object]] | None = {}
        self._unhealthy: dict[str, str] = {}
        # the newest reported version of each workflow, and its digest()
        self._reported: dict[Name, tuple[int, int]] = {}
        # workflows in results of commands since the present list was requested
        self._meanwhile: dict[Name, Object] | None = None
        # workflows without our label: created by flux-coral2, or ours with a lost label
        self._strays: list[Object] = []
        selectors = dict.fromkeys(REPORT_TYPES, "")
        selectors["workflows"] = f"{names.INSTANCE_LABEL}={instance}"
        self._kinds = set(selectors)
        self._watchers = Watchers(kube, selectors, self)
        self.commands = CommandQueue(
            kube,
            loop,
            workers,
            self._report,
            trouble=self._report,
            outage=lambda error: self.health("commands", error),
            known=self._watchers.version,
            went_back=self.went_back,
        )
        self._watchers.start(loop)

    def close(self) -> None:
        """Report nothing more."""
        self._open = False
        self.commands.stop()
        self._watchers.stop()

    def summary(self) -> dict[str, Any]:
        """The agent's numbers, for dws.status."""
        return {**self._kube.stats.summary(), "queue": self.commands.depths()}

    def _report(self, report: Report) -> None:
        obj = report.get("object")
        if not self._open:
            return
        if obj is not None and obj.get("kind") == "Workflow":
            self._tell(obj)
        self._box.put(report)

    def _tell(self, workflow: Object) -> None:
        """Note a workflow from the result of a command as reported."""
        name, version = name_of(workflow), version_of(workflow)
        if self._meanwhile is not None:
            self._meanwhile[name] = workflow
        # A workflow under deletion may be gone already: let the watch report it.
        if "deleting" in workflow:
            return
        if version > self._reported.get(name, UNREPORTED)[0]:
            self._reported[name] = version, digest(workflow)

    async def listing(self, plural: str) -> None:
        if plural == "workflows":
            self._meanwhile = {}
            # Before the list by label, so that a workflow labelled in between is in one
            # of the two. A list that is some seconds old suffices: flux-coral2 creates
            # no workflows any more, and the module reads those of known jobs by name.
            others, _ = await self._kube.apick_all(
                "workflows", f"{names.INSTANCE_LABEL}!={self._instance}", recent=True
            )
            self._strays = [obj for obj in others if self._may_be_ours(obj)]

    def _may_be_ours(self, workflow: Object) -> bool:
        """Whether this instance created the workflow, or nothing names its creator."""
        if "maker" in workflow:
            return bool(workflow["maker"] == self._instance)
        return "label" not in workflow

    def _complete(self, workflows: list[Object], version: str) -> None:
        """Add workflows created since the list was requested: the module takes a known
        workflow that a list lacks for gone."""
        strays, self._strays = self._strays, []
        since, self._meanwhile = self._meanwhile or {}, None
        asof = version_number(version)
        newer = (obj for obj in since.values() if version_of(obj) > asof)
        names = {name_of(obj) for obj in workflows}
        for obj in (*strays, *newer):
            if name_of(obj) not in names:
                names.add(name_of(obj))
                workflows.append(obj)
        self._reported = {
            name: (reported, 0)
            for name, (reported, _) in self._reported.items()
            if name in names
        }

    def listed(self, plural: str, objects: list[Object], version: str) -> None:
        if not self._open:
            return
        if plural == "workflows":
            self._complete(objects, version)
        if self._first is None:
            self._box.put(*in_parts({plural: objects}, self._divided))
            return
        self._first[plural] = objects
        if set(self._first) == self._kinds:
            self._box.put(*in_parts(self._first, self._divided))
            self._first = None

    def changed(self, plural: str, event: str, obj: Object) -> None:
        if not self._open:
            return
        if (
            self._first is None
            and plural == "workflows"
            and self._is_reported(event, obj)
        ):
            return
        if self._first is not None:
            # The snapshot waits for another kind: bring it up to date.
            name = name_of(obj)
            objects = self._first[plural]
            objects[:] = [o for o in objects if name_of(o) != name]
            if event != "DELETED":
                objects.append(obj)
            return
        report = {"type": REPORT_TYPES[plural], "event": event, "object": obj}
        self._box.put(report)

    def _is_reported(self, event: str, obj: Object) -> bool:
        """Whether to skip a change of a workflow: a result has reported this version or
        a newer one, or only the version differs from the last report."""
        name, version = name_of(obj), version_of(obj)
        if event == "DELETED":
            self._reported.pop(name, None)
            return False
        reported, as_it_was = self._reported.get(name, UNREPORTED)
        if 0 < version <= reported:
            return True
        as_it_is = digest(obj)
        self._reported[name] = version, as_it_is
        return as_it_is == as_it_was

    def health(self, plural: str, error: str | None) -> None:
        if not self._open:
            return
        before = bool(self._unhealthy)
        if error is None:
            self._unhealthy.pop(plural, None)
        else:
            self._unhealthy[plural] = error
        after = bool(self._unhealthy)
        if before != after:
            report = {"type": "health", "ok": not after, "message": error or ""}
            self._box.put(report)

    def went_back(self, plural: str, why: str) -> None:
        if self._open:
            self._stale(f"{plural}: {why}")
