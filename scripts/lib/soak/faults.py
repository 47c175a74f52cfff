# Injects faults into the components of a soak run, one at a time. Each fault either
# passes by itself or is repaired by heal().
# SPDX-License-Identifier: LGPL-3.0-only
"""The faults, and how to undo them."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from typing import Any

from flux_k8s import names
from flux_k8s.errors import ApiError
from flux_k8s.kube import Kube

from soak.jobs import LENT_S, Job
from soak.world import Lost, World

STATES = ["Proposal", "Setup", "DataIn", "PreRun", "PostRun", "DataOut", "Teardown"]
# A foreign finalizer.
THEIRS = "example.org/soak"
# Reasons of drains that flux-dws undoes by itself, and how long that may take.
UNDONE = ("lost its PCIe link", "still mounted by", "may be mounted by")
UNDONE_S = 120.0
# How long to wait for a job in its epilog.
ENDING_S = 10.0
STATUSES = ["409", "429", "500", "503", "504"]


def _patch(kube: Kube, plural: str, name: str, patch: Any) -> None:
    kube.patch(plural, "default", name, patch)


def _delete(kube: Kube, plural: str, name: str) -> None:
    kube.delete(plural, "default", name)


def _hold(kube: Kube, name: str, finalizers: list[str]) -> None:
    _patch(kube, "workflows", name, {"metadata": {"finalizers": finalizers}})


def _belongs(metadata: dict[str, Any], workflow: str) -> bool:
    """Whether that workflow, or one of its breakdowns, owns an object."""
    owners = [owner["name"] for owner in metadata.get("ownerReferences", [])]
    return any(
        name == workflow or name.startswith(f"{workflow}-")
        for name in [metadata["name"], *owners]
    )


class Faults:
    """Draws and carries out faults.

    Args:
        active: the jobs that may still be active.
        recent: the same, and jobs that may be active again after a kill.
        ending: jobs in CLEANUP.
        given_before: jobs that held nodes when this one was released, and may lose a
            rabbit to its leftovers. Later jobs are placed on other rabbits.
        restarted: is called after a restart of the instance.
    """

    def __init__(
        self,
        world: World,
        rng: random.Random,
        active: Callable[[], list[Job]],
        recent: Callable[[], list[Job]],
        ending: Callable[[], list[Job]],
        given_before: Callable[[Job], list[Job]],
        restarted: Callable[[], None],
    ) -> None:
        self._world = world
        self._rng = rng
        self._active = active
        self._recent = recent
        self._ending = ending
        self._given_before = given_before
        self._restarted = restarted
        self._restores = 0
        self.kinds: dict[str, Callable[[], str]] = {
            "agent killed": self.kill_agent,
            "agent stopped": self.pause_agent,
            "agent twice": self.two_agents,
            "agent meets busy module": self.agent_meets_busy_module,
            "module reloaded": self.reload_module,
            "module twice": self.reload_module_twice,
            "plugin reloaded": self.reload_plugin,
            "plugin away": self.plugin_away,
            "site's plugin reloaded": self.reload_site,
            "scheduler reloaded": self.reload_scheduler,
            "instance killed": self.kill_instance,
            "instance restarted": self.restart_instance,
            "broker killed": self.kill_broker,
            "KVS slow": self.slow_kvs,
            "cluster killed": self.kill_sim,
            "cluster stopped": self.pause_sim,
            "cluster restored": self.restore_sim,
            "API errors": self.api_errors,
            "API slow": self.api_slow,
            "API old": self.api_old,
            "API watches dropped": self.api_drop,
            "API watches expired": self.api_expire,
            "workflow deleted": self.delete_workflow,
            "workflow moved": self.move_workflow,
            "workflow error": self.fail_workflow,
            "workflow unlabelled": self.take_label,
            "workflow relabelled": self.change_label,
            "another's finalizer": self.hold_workflow,
            "Servers deleted": self.delete_servers,
            "Computes deleted": self.delete_computes,
            "Computes emptied": self.empty_computes,
            "job let go": self.let_job_go,
            "job let go unseen": self.let_job_go_unseen,
            "state slow": self.slow_state,
            "rabbit down": self.rabbit_down,
            "link down": self.link_down,
            "mount hangs": self.hang_mount,
        }

    def heal(self) -> None:
        """Repair all faults that do not pass by themselves."""
        world = self._world
        for process in (world.agent, world.sim, world.instance):
            process.send(signal.SIGCONT)
        world.ctl("api", "--clear")
        world.ctl("release", "all")
        world.ctl("fail", "all", "--clear")
        for state in [*STATES, "mount"]:
            world.ctl("latency", state, "0")
        for rabbit in world.rabbits:
            world.ctl("rabbit", rabbit, "up")
        for node in world.nodes:
            world.ctl("link", node, "up")
            world.ctl("hang-mount", node, "off")
        self.let_workflows_go()
        world.attempt("flux", "queue", "start")
        self.enable_rabbits()
        if not world.agent.alive:
            raise Lost(f"the agent has ended by itself:\n{world.agent.tail()}")

    def _drained(self) -> str:
        """Nodes whose drains nobody has to undo."""
        drained = self._world.attempt(
            *["flux", "resource", "drain", "-no", "{nodelist} {reason}"]
        )[1]
        lines = drained.splitlines()
        return ", ".join(x for x in lines if any(why in x for why in UNDONE))

    def _pause(self, low: float, high: float) -> float:
        """Let a fault last a random time. Returns that time in seconds."""
        took = self._rng.uniform(low, high)
        time.sleep(took)
        return took

    # -- components -------------------------------------------------------

    def kill_agent(self) -> str:
        self._world.agent.end(signal.SIGKILL)
        took = self._pause(0, 2)
        self._world.start_agent()
        return f"for {took:.1f} s"

    def pause_agent(self) -> str:
        self._world.agent.send(signal.SIGSTOP)
        took = self._pause(0, 4)
        self._world.agent.send(signal.SIGCONT)
        return f"for {took:.1f} s"

    def two_agents(self) -> str:
        """Start a second agent, which replaces the first if both live until then."""
        world = self._world
        older, took = world.start_second_agent(), self._pause(0, 2)
        newest = self._rng.random() < 0.5
        if newest:
            older.end(signal.SIGKILL)
        else:
            world.agent.end(signal.SIGKILL)
            older.end(signal.SIGKILL)
            world.start_agent()
        return f"for {took:.1f} s, then {'the newer' if newest else 'a third'} one"

    def agent_meets_busy_module(self) -> str:
        """Attach the agent while the module has a backlog of requests."""
        world, count = self._world, self._rng.randint(50, 500)
        world.agent.end(signal.SIGKILL)
        asked = world.ask_much(count)
        world.start_agent()
        asked()
        return f"with {count} requests"

    def reload_module(self) -> str:
        self._world.reload_module()
        return ""

    def reload_module_twice(self) -> str:
        """Reload the module again before it has synchronised."""
        self._world.reload_module()
        took = self._pause(0, 0.5)
        self._world.reload_module()
        return f"after {took:.1f} s"

    def reload_plugin(self) -> str:
        self._world.reload_plugin()
        return ""

    def plugin_away(self) -> str:
        """Remove the plugin for a while: jobs start and end without it, and it finds
        them when it is loaded again."""
        for job in self._active():
            job.struck.append("the plugin was away")
            job.unplugged = True
        self._world.remove_plugin()
        took = self._pause(0, 3)
        self._world.load_plugin()
        return f"for {took:.1f} s"

    def reload_site(self) -> str:
        """Reload the site's plugin: its prologs and epilogs begin after dws-jobtap's
        until that is reloaded."""
        self._world.reload_site()
        return ""

    def reload_scheduler(self) -> str:
        self._world.reload_scheduler()
        return ""

    def _after_restart(self) -> None:
        """Restart the agent, as its supervisor does: the agent ends with the
        instance."""
        self._world.agent.end(signal.SIGTERM)
        self._world.start_instance()
        self._world.start_agent()
        self._restarted()

    def unblock(self) -> str:
        """Repair a flux-core that has stopped scheduling after a restart. Returns the
        job that has caused this, or ""."""
        if self._world.engine.is_solo or not (job := self._world.blocked()):
            return ""
        jobs = self._kill()
        self._world.unblock([active.id for active in jobs])
        self._after_restart()
        return job

    def _kill(self) -> list[Job]:
        """Kill the instance. Returns the jobs that may be active after a restart."""
        solo = self._world.engine.is_solo
        jobs = self._active() if solo else self._recent()
        for job in jobs:
            job.restarted = True
            job.taken_back = not solo
        self._world.kill_instance()
        return jobs

    def kill_instance(self) -> str:
        self._kill()
        self._after_restart()
        return ""

    def kill_broker(self) -> str:
        """Kill a broker other than the leader. Flux fails the jobs that run there."""
        if self._world.engine.is_solo:
            return "none there"
        for job in self._active():
            job.node_lost = True
        rank = self._rng.randrange(1, len(self._world.nodes))
        self._world.kill_broker(rank)
        took = self._pause(0, 3)
        self._world.start_broker(rank)
        return f"{rank} for {took:.1f} s"

    def slow_kvs(self) -> str:
        """Write so much to the KVS that requests of flux-dws are delayed."""
        count, size = self._rng.randint(20, 200), self._rng.randint(1, 64)
        took = self._world.fill_kvs(count, size * 1024)
        return f"{count} times {size} KiB, {took:.1f} s"

    def restart_instance(self) -> str:
        if self._world.miscounts():
            self._kill()
            self._after_restart()
            return "by a kill, as Flux would wait for a job that there is not"
        for job in self._active():
            job.restarted = True
            # flux-core cancels what runs
            job.cancelled |= not self._world.engine.is_solo
        self._world.stop_instance()
        self._after_restart()
        return ""

    def kill_sim(self) -> str:
        self._world.sim.end(signal.SIGKILL)
        took = self._pause(0, 2)
        self._world.start_sim()
        return f"for {took:.1f} s"

    def pause_sim(self) -> str:
        self._world.sim.send(signal.SIGSTOP)
        took = self._pause(0, 4)
        self._world.sim.send(signal.SIGCONT)
        return f"for {took:.1f} s"

    def restore_sim(self) -> str:
        """Restore a recent backup of the API server, with lower resource versions."""
        jobs = self._active()
        for job in jobs:
            job.struck.append("Kubernetes was taken back")
            job.brought_back = True
        self._restores += 1
        self._world.ctl("backup")
        took = self._pause(0, 6)
        self._world.ctl("restore")
        return f"as it was {took:.1f} s ago"

    def clear_up(self) -> None:
        """Clean up after a restore, as an admin does: set a lease on file systems that
        the backup has brought back after their end."""
        for item in self._world.status()["persistent"]:
            if self._restores and not item["expires"]:
                body = {"name": item["name"], "expires": time.time() + LENT_S}
                self._world.handle.rpc("dws.expiry", body).get()

    # -- the API ----------------------------------------------------------

    def api_errors(self) -> str:
        status, count = self._rng.choice(STATUSES), str(self._rng.randint(1, 20))
        self._world.ctl("api", "--status", status, "--count", count)
        return f"{count} times {status}"

    def _api_late(self, option: str, least_s: float, most_s: float) -> str:
        late = self._rng.uniform(least_s, most_s)
        self._world.ctl("api", option, f"{late:.2f}")
        took = self._pause(0.5, 4)
        self._world.ctl("api", "--clear")
        return f"by {late:.2f} s, for {took:.1f} s"

    def api_slow(self) -> str:
        """Delay each answer."""
        return self._api_late("--slow", 0.05, 1.0)

    def api_old(self) -> str:
        """Answer with outdated objects."""
        return self._api_late("--stale", 0.2, 3.0)

    def api_drop(self) -> str:
        self._world.ctl("api", "--drop-watches")
        return ""

    def api_expire(self) -> str:
        self._world.ctl("api", "--expire")
        return ""

    # -- workflows --------------------------------------------------------

    def _victim(self, what: str) -> Job | None:
        jobs = self._active()
        if not jobs:
            return None
        job = self._rng.choice(jobs)
        job.struck.append(what)
        return job

    def _any(self) -> Job | None:
        """A random active job, on which the fault must have no effect."""
        jobs = self._active()
        return self._rng.choice(jobs) if jobs else None

    def _done(self, what: str, act: Callable[[Kube], None]) -> str:
        """Call act(). Returns 'what', with the API server's error if that refuses."""
        try:
            act(self._world.admin())
        except ApiError as exc:
            return f"{what}: {exc.message}"
        return what

    def _patch(self, what: str, job: Job, patch: Any) -> str:
        return self._done(
            what, lambda kube: _patch(kube, "workflows", job.workflow, patch)
        )

    def delete_workflow(self) -> str:
        job = self._victim("its workflow was deleted")
        if job is None:
            return "none there"
        name = job.workflow
        return self._done(name, lambda kube: _delete(kube, "workflows", name))

    def move_workflow(self) -> str:
        job = self._victim("its workflow was moved by hand")
        if job is None:
            return "none there"
        state = self._rng.choice(STATES[1:])
        patch = {"spec": {"desiredState": state}}
        return self._patch(f"{job.workflow} to {state}", job, patch)

    def _label(self, value: str | None) -> str:
        job = self._any()
        if job is None:
            return "none there"
        patch = {"metadata": {"labels": {names.INSTANCE_LABEL: value}}}
        return self._patch(job.workflow, job, patch)

    def take_label(self) -> str:
        return self._label(None)

    def change_label(self) -> str:
        return self._label("another")

    def hold_workflow(self) -> str:
        """Add a foreign finalizer to a workflow, which delays its deletion."""
        job = self._any()
        if job is None:
            return "none there"
        name = job.workflow

        def hold(kube: Kube) -> None:
            there = kube.get("workflows", "default", name)["metadata"]
            _hold(kube, name, [*there.get("finalizers", []), THEIRS])
            self._pause(0, 3)

        done = self._done(name, hold)
        self.let_workflows_go()
        return done

    def let_workflows_go(self) -> None:
        """Remove the foreign finalizers. If the API server refuses, heal() does it
        later."""

        def let_go(kube: Kube) -> None:
            for item in kube.list_all("workflows")[0]:
                held = item["metadata"].get("finalizers", [])
                if THEIRS in held:
                    left = [name for name in held if name != THEIRS]
                    _hold(kube, item["metadata"]["name"], left)

        self._done("", let_go)

    def _part(
        self, what: str, plural: str, act: Callable[[Kube, str, str], None]
    ) -> str:
        """Call act() for the objects of this kind that a job's workflow owns."""
        job = self._victim(what)
        if job is None:
            return "none there"
        name = job.workflow

        def each(kube: Kube) -> None:
            for item in kube.list_all(plural)[0]:
                if _belongs(item["metadata"], name):
                    act(kube, plural, item["metadata"]["name"])

        return self._done(name, each)

    def delete_servers(self) -> str:
        return self._part("its Servers was deleted", "servers", _delete)

    def delete_computes(self) -> str:
        return self._part("its Computes was deleted", "computes", _delete)

    def empty_computes(self) -> str:
        def empty(kube: Kube, plural: str, name: str) -> None:
            _patch(kube, plural, name, {"data": []})

        return self._part("its Computes was emptied", "computes", empty)

    def fail_workflow(self) -> str:
        job = self._victim("its workflow was made to fail")
        if job is None:
            return "none there"
        state, severity = self._rng.choice(STATES), self._rng.choice(["Fatal", "Major"])
        self._world.ctl(
            *["fail", state, "--workflow", job.workflow, "--severity", severity],
            *["--count", str(self._rng.randint(1, 3)), "--message", "soak"],
        )
        return f"{job.workflow} in {state}, {severity}"

    def let_job_go(self) -> str:
        """Release a job in its epilog, while other jobs wait for that rabbit. The other
        faults may strike its remaining Teardown."""
        return self._let_go(lambda number: None)

    def let_job_go_unseen(self) -> str:
        """The same while the agent is stopped: nobody knows what is still mounted, and
        all nodes of the job are drained until the agent goes on."""
        return self._let_go(self._world.agent.send)

    def _let_go(self, agent: Callable[[signal.Signals], None]) -> str:
        # First, or the epilog ends before the release.
        self._world.ctl("hold", "Teardown")
        end = time.monotonic() + ENDING_S
        while not (ending := self._ending()) and time.monotonic() < end:
            time.sleep(0.1)
        if not ending:
            self._world.ctl("release", "Teardown")
            return "none is ending"
        job = self._rng.choice(ending)
        job.struck.append("it was let go")
        agent(signal.SIGSTOP)
        self._world.attempt("flux", "rabbit", "release", "--yes", str(job.id))
        self._world.attempt("flux", "job", "wait-event", "-t20", str(job.id), "clean")
        for other in self._given_before(job):
            other.struck.append("a rabbit was disabled")
        took = self._pause(0, 3)
        agent(signal.SIGCONT)
        self._world.ctl("release", "Teardown")
        self.enable_rabbits()
        return f"{job.workflow}, rabbits enabled after {took:.1f} s"

    def enable_rabbits(self) -> None:
        """Enable rabbits, and undrain nodes, that had leftovers of released jobs. Other
        jobs never get leftovers that still exist. Wait for the drains that end without
        an admin, or they would end here even if nobody else undid them."""
        rabbits = self._world.rabbits
        self._world.attempt("flux", "rabbit", "enable", *rabbits)
        self._world.until("drained, and not undrained", self._drained, UNDONE_S)
        self._world.attempt("flux", "rabbit", "undrain", *rabbits)

    def slow_state(self) -> str:
        state = self._rng.choice([*STATES, "mount"])
        high = self._rng.uniform(0, 1)
        self._world.ctl("latency", state, "0", f"{high:.2f}")
        return f"{state} up to {high:.2f} s"

    # -- hardware ---------------------------------------------------------

    def rabbit_down(self) -> str:
        rabbit = self._rng.choice(self._world.rabbits)
        self._world.ctl("rabbit", rabbit, "down")
        took = self._pause(0, 3)
        self._world.ctl("rabbit", rabbit, "up")
        return f"{rabbit} for {took:.1f} s"

    def link_down(self) -> str:
        node = self._rng.choice(self._world.nodes)
        self._world.ctl("link", node, "down")
        took = self._pause(0, 8)  # often long enough for a drain
        self._world.ctl("link", node, "up")
        return f"{node} for {took:.1f} s"

    def hang_mount(self) -> str:
        node = self._rng.choice(self._world.nodes)
        self._world.ctl("hang-mount", node, "on")
        took = self._pause(0, 3)
        self._world.ctl("hang-mount", node, "off")
        return f"{node} for {took:.1f} s"
