# Actions of admins and users during a soak run: on the queue, the configuration, nodes,
# rabbits and single jobs.
# SPDX-License-Identifier: LGPL-3.0-only
"""Disturbances by hand; none of them but a fatal exception ends a job."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable

from flux.job import JobID
from flux_k8s.errors import ApiError

from soak.jobs import RAISED, Job
from soak.world import World

# Keys of [rabbit] that may change at any time, and to what; @ is the directory of the
# run.
KEYS = {
    "mapping": ['"@/mapping.json"', '"@/mapping-2.json"'],
    "kubeconfig": ['"@/kubeconfig"', '"@/kubeconfig-2"'],
    "metrics": ['"unix:@/metrics"', '"unix:@/metrics-2"'],
    "tc_timeout": ['"10s"', '"60s"'],
    "setup_timeout": ['"20m"', '"1h"'],
    "prerun_timeout": ['"20m"', '"1h"'],
    "postrun_timeout": ['"20m"', '"1h"'],
    "teardown_after": ['"2h"', '"1d"'],
    "stage_out_retry": ['"0s"', '"2s"'],
    "release_nodes": ['"teardown"', '"unmount"'],
    "prolog_timeout": ['"10m"', '"30m"'],
    "drain_compute_nodes": ["true", "false"],
    "drain_queues": ["[]"],
    "soft_drain": ["true", "false"],
    "save_datamovements": ["0", "5"],
    "allow_rabbit_resources": ["true", "false"],
    "lustre_placement": ['"near"', '"anywhere"'],
    "data_first": ['"asked"', '"always"'],
    "data_first_timeout": ['"10s"', '"1h"'],
    "space_timeout": ['"5m"', '"9m"'],
    "restrict_persistent_creation": ["true", "false"],
    "persistent_lifetime": ['"1d"', '"2d"'],
    "notice_command": ['["/usr/bin/true"]', '["/usr/bin/false"]'],
    "policy": ["{ maximums = { xfs = 1024 } }", "{ maximums = { lustre = 4096 } }"],
    "daemons": ['{ copy-offload = "nnf-copy-offload.service" }'],
}
# Why nodes are drained, and rabbits disabled, by hand.
BY_HAND = "soak"
# Number of keys that change together.
TOGETHER = 6
# Longest jump of the clock, which only goes forward.
JUMP_S = 300


class Admin:
    """Draws and carries out actions of people.

    Args:
        active: the jobs that may still be active.
        ended: jobs that have ended and are not purged.
        note: records the outcome of a job before Flux purges it.
    """

    def __init__(
        self,
        world: World,
        rng: random.Random,
        active: Callable[[], list[Job]],
        ended: Callable[[], list[Job]],
        note: Callable[[Job], None],
    ) -> None:
        self._world = world
        self._rng = rng
        self._active = active
        self._ended = ended
        self._note = note
        self.changed: Counter[str] = Counter()
        self.kinds: dict[str, Callable[[], str]] = {
            "node drained": self.drain_node,
            "rabbit disabled": self.disable_rabbit,
            "Storage changed": self.change_storage,
            "queue stopped": self.stop_queue,
            "configuration changed": self.change_config,
            "clock set": self.set_clock,
            "site slow": self.slow_site,
            "exception raised": self.raise_exception,
            "time limit changed": self.change_limit,
            "job purged": self.purge,
        }

    def _pause(self, low: float, high: float) -> float:
        took = self._rng.uniform(low, high)
        time.sleep(took)
        return took

    def _one(self, jobs: list[Job]) -> Job | None:
        return self._rng.choice(jobs) if jobs else None

    # -- nodes and rabbits ------------------------------------------------

    def drain_node(self) -> str:
        node = self._rng.choice(self._world.nodes)
        self._world.attempt("flux", "resource", "drain", node, BY_HAND)
        took = self._pause(0, 3)
        self._world.attempt("flux", "resource", "undrain", node)
        return f"{node} for {took:.1f} s"

    def disable_rabbit(self) -> str:
        rabbit = self._rng.choice(self._world.rabbits)
        self._world.flux("rabbit", "disable", f"--reason={BY_HAND}", rabbit)
        took = self._pause(0, 3)
        self._world.attempt("flux", "rabbit", "enable", rabbit)
        return f"{rabbit} for {took:.1f} s"

    def change_storage(self) -> str:
        """Change a Storage as kubectl would."""
        rabbit = self._rng.choice(self._world.rabbits)
        try:
            self._set_storage(rabbit, "Disabled")
            took = self._pause(0, 3)
            self._set_storage(rabbit, "Enabled")
        except ApiError as exc:
            return f"{rabbit}: {exc.message}"
        return f"{rabbit} for {took:.1f} s"

    def _set_storage(self, rabbit: str, state: str) -> None:
        patch = {"spec": {"state": state}}
        self._world.admin().patch("storages", "default", rabbit, patch)

    # -- the instance -----------------------------------------------------

    def stop_queue(self) -> str:
        self._world.attempt("flux", "queue", "stop")
        took = self._pause(0, 3)
        self._world.attempt("flux", "queue", "start")
        return f"for {took:.1f} s"

    def change_config(self) -> str:
        keys = self._rng.sample(list(KEYS), TOGETHER)
        self._world.change_config({k: self._rng.choice(KEYS[k]) for k in keys})
        self.changed.update(keys)
        return ", ".join(keys)

    def set_clock(self) -> str:
        """Set the clock forward, for all processes at once."""
        jump = self._rng.randint(1, JUMP_S)
        self._world.jump(jump)
        return f"{jump} s forward"

    def slow_site(self) -> str:
        """Let the site's prolog and epilog take time for the current jobs."""
        self._world.reload_site(brief=False)
        took = self._pause(0.5, 3)
        self._world.reload_site()
        held = 0
        for job in self._active():
            for what in self._world.held_by_site(job.id):
                body = {"id": job.id, "what": what}
                self._world.handle.rpc("job-manager.site.end", body).get()
                held += 1
        return f"for {took:.1f} s, {held} waited"

    # -- jobs -------------------------------------------------------------

    def raise_exception(self) -> str:
        """Raise an exception. A fatal one ends the job; others inform its user."""
        job = self._one(self._active())
        if job is None:
            return "none there"
        severity = self._rng.choice(["0", "1"])
        job.raised |= severity == "0"
        self._world.attempt(
            *["flux", "job", "raise", f"--severity={severity}", "--type=soak"],
            *[str(job.id), RAISED],
        )
        return f"{job.workflow}, severity {severity}"

    def change_limit(self) -> str:
        job = self._one([job for job in self._active() if not job.kind.limit])
        if job is None:
            return "none there"
        code, _, text = self._world.attempt(
            *["flux", "update", str(job.id), "duration=1h"]
        )
        return f"{job.workflow} {text.strip() if code else 'to 1h'}"

    def purge(self) -> str:
        job = self._one(self._ended())
        if job is None:
            return "none there"
        self._note(job)
        self._world.purge(JobID(job.id))
        return job.workflow
