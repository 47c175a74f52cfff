# Arguments and results of the code for a directive command: a directive of a workflow
# in a state.
# SPDX-License-Identifier: LGPL-3.0-only
"""Steps of the NNF workflow driver."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass

from dws_sim.controllers.cluster import Cluster
from dws_sim.controllers.common import is_deleting, workflow_labels
from dws_sim.directive import Directive, parse
from dws_sim.jsontree import Object


@dataclass(frozen=True)
class Wait:
    """Not done yet: the reason for the workflow's message, and when to reconcile again
    without an event."""

    reason: str
    after_s: float | None = None


@dataclass
class Step:
    """A directive in a state of its workflow.

    Attributes:
        workflow: a copy; changes to it are written after the step.
        mount_root: directory below which mount paths are made.
        outdates: whether a read of Servers now returns a cached version from before it
            was filled in.
    """

    cluster: Cluster
    workflow: Object
    index: int
    directive: Directive
    mount_root: str
    outdates: Callable[[], bool] = lambda: False

    @property
    def name(self) -> str:
        """<workflow>-<index>, the name of most children."""
        return f"{self.workflow['metadata']['name']}-{self.index}"

    @property
    def namespace(self) -> str:
        return str(self.workflow["metadata"]["namespace"])

    @property
    def labels(self) -> dict[str, str]:
        return workflow_labels(self.workflow, self.index)

    @property
    def mount_path(self) -> str:
        """Where computes see the file system of this directive."""
        uid = self.workflow["metadata"]["uid"]
        return f"{self.mount_root.rstrip('/')}/{uid}-{self.index}"

    def directives(self) -> list[Directive]:
        """The directives of the workflow, in order."""
        return [parse(t) for t in self.workflow["spec"]["dwDirectives"]]

    def at(self, index: int) -> Step:
        """The step of another directive of the same workflow."""
        return Step(
            self.cluster,
            self.workflow,
            index,
            self.directives()[index],
            self.mount_root,
        )

    async def gone(self, plural: str, namespace: str, name: str) -> bool:
        """Delete an object. Returns whether it is gone."""
        obj = await self.cluster.get(plural, namespace, name)
        if obj is None:
            return True
        if not is_deleting(obj):
            await self.cluster.delete(plural, namespace, name)
            obj = await self.cluster.get(plural, namespace, name)
        return obj is None


class Command(abc.ABC):
    """NNF's actions for a directive command. Steps may run any number of times; None
    means done."""

    async def check(self, step: Step) -> None:  # noqa: B027
        """Whether a directive makes sense, in Proposal, before any is begun.

        Raises:
            ResourceError: it does not.
        """

    async def start(self, state: str, step: Step) -> Wait | None:
        """First part: for all directives before any second part."""
        return None

    async def finish(self, state: str, step: Step) -> Wait | None:
        """Second part: wait for the result."""
        return None

    @abc.abstractmethod
    async def remove(self, step: Step) -> Wait | None:
        """Take everything away: the workflow is being deleted."""
