# Puts a simulator together: store, API server, controllers, machine.
# SPDX-License-Identifier: LGPL-3.0-only
"""The simulator."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from dataclasses import dataclass, field

from aiohttp import web

from dws_sim import admission, profile_admission, world
from dws_sim.control import Control
from dws_sim.controllers.access import AccessController
from dws_sim.controllers.breakdown import BreakdownController
from dws_sim.controllers.clientmount import ClientMountController
from dws_sim.controllers.cluster import Cluster, LocalCluster
from dws_sim.controllers.containers import Container
from dws_sim.controllers.datamovement import Copy, MovementController
from dws_sim.controllers.filesystem import JobDw
from dws_sim.controllers.health import Hardware, HealthController
from dws_sim.controllers.lustre import LustreController
from dws_sim.controllers.manager import Controller, Manager
from dws_sim.controllers.mgt import MgtController
from dws_sim.controllers.nnf import NnfController
from dws_sim.controllers.pace import Paced
from dws_sim.controllers.persistent import (
    CreatePersistent,
    DestroyPersistent,
    PersistentController,
    PersistentDw,
)
from dws_sim.controllers.pods import JobController, PodController, played_log
from dws_sim.controllers.ports import PortController
from dws_sim.controllers.step import Command
from dws_sim.controllers.storage import (
    ServersController,
    StorageController,
    bring_back,
    recover,
)
from dws_sim.controllers.systemstorage import SystemStorageController
from dws_sim.controllers.tester import TesterController
from dws_sim.controllers.workflow import WorkflowController
from dws_sim.drives import Ledger
from dws_sim.faults import Faults
from dws_sim.gc import Collector
from dws_sim.http import ApiServer
from dws_sim.mounts import Mounts
from dws_sim.persist import StateFile
from dws_sim.podlog import Line
from dws_sim.processes import Runner
from dws_sim.rbac import ADMIN, Role, Users, wlm_role
from dws_sim.schema.resources import RESOURCES
from dws_sim.store import Backup, Store
from dws_sim.world import Machine

WLM_USER = "system:serviceaccount:default:flux-wlm"
ADMIN_USER = "dws-sim-admin"
PACED_WORKERS = 32
# by the context in the kubeconfig
USERS = {"wlm": WLM_USER, "admin": ADMIN_USER}


def commands() -> dict[str, Command]:
    """The directive commands that NNF knows."""
    return {
        "jobdw": JobDw(),
        "create_persistent": CreatePersistent(),
        "destroy_persistent": DestroyPersistent(),
        "persistentdw": PersistentDw(),
        "container": Container(),
        "copy_in": Copy("DataIn"),
        "copy_out": Copy("DataOut"),
    }


@dataclass
class Controllers:
    """The controller half, on any cluster."""

    cluster: Cluster
    machine: Machine
    faults: Faults
    mounts: Mounts
    # whether to be DWS too, or NNF alone beside another's DWS
    dws: bool = True
    # whether there is the driver for tests
    tester: bool = False
    # what runs containers, or None: nothing does
    runner: Runner | None = None
    manager: Manager = field(default_factory=Manager)
    hardware: Hardware = field(default_factory=Hardware)

    def __post_init__(self) -> None:
        manager, faults = self.manager, self.faults
        self.ledger = Ledger(self.machine.capacity_bytes, self.machine.rabbits)
        if faults.requests_per_s:
            # a worker that waits for its turn must not block the others
            manager.workers = max(manager.workers, PACED_WORKERS)
        # DWS and NNF are two clients of the API server, each node is one more
        dws, cluster = (Paced(self.cluster, faults) for _ in range(2))
        self._workflows: list[Controller] = []
        if self.dws:
            self._workflows.append(WorkflowController(dws, manager, faults))
        root = self.mounts.mount_root
        self._workflows.append(
            NnfController(cluster, manager, faults, commands(), root)
        )
        if self.tester:
            self._workflows.append(TesterController(cluster, manager))
        BreakdownController(cluster, manager)
        ServersController(cluster, manager)
        StorageController(
            cluster, manager, self.ledger, self.mounts, faults, self.hardware
        )
        AccessController(cluster, manager, faults)
        PersistentController(cluster, manager)
        MovementController(cluster, manager, faults, self.mounts)
        PortController(cluster, manager)
        LustreController(cluster, manager)
        MgtController(cluster, manager)
        SystemStorageController(cluster, manager)
        PodController(cluster, manager)
        JobController(cluster, manager, faults, self.runner)
        ClientMountController(self.cluster, manager, faults, self.mounts)
        self.health = HealthController(
            cluster, manager, self.machine, self.hardware, self.free
        )
        faults.listeners.append(self.wake_workflows)

    async def go_back(self, store: Store, backup: Backup) -> None:
        """Restore the store, and adapt the machine: mounts of nodes to ClientMounts,
        allocations of rabbits to NnfStorages."""
        then = backup.objects["clientmounts"]
        for key, obj in store.tables["clientmounts"].objects.items():
            if then.get(key) is not obj:
                for mount in obj["spec"]["mounts"]:
                    self.mounts.unmount(obj["spec"]["node"], mount["mountPath"])
        store.go_back(backup)
        for obj in backup.objects["nnfstorages"].values():
            bring_back(obj, self.mounts)
        self.ledger.recovered = False
        await recover(self.cluster, self.ledger)

    async def free(self, rabbit: str) -> int:
        """Free bytes of a rabbit."""
        await recover(self.cluster, self.ledger)
        return self.ledger.free(rabbit)

    def wake_workflows(self) -> None:
        """Look at every workflow again: a switch was turned."""
        asyncio.ensure_future(self._wake())

    async def _wake(self) -> None:
        for obj in await self.cluster.find("workflows"):
            meta = obj["metadata"]
            for controller in self._workflows:
                controller.enqueue(meta["namespace"], meta["name"])


class Simulator:
    """A simulated system. Create and use it in a running event loop."""

    def __init__(
        self,
        machine: Machine,
        faults: Faults | None = None,
        mounts: Mounts | None = None,
        system_status: bool = True,
        state: StateFile | None = None,
        tester: bool = False,
        runner: Runner | None = None,
    ) -> None:
        self.machine = machine
        self.faults = faults or Faults()
        self.store = Store(seed=self.faults.seed)
        self.users = Users()
        self._state = state
        self.wlm_token = self._user(state, WLM_USER, wlm_role())
        self.admin_token = self._user(state, ADMIN_USER, ADMIN)
        self.server = ApiServer(self.store, self.users)
        self.collector = Collector(self.store)
        admission.install(self.store)
        profile_admission.install(self.store)
        self.mounts = mounts or Mounts()
        self.controllers = Controllers(
            LocalCluster(self.store),
            machine,
            self.faults,
            self.mounts,
            tester=tester,
            runner=runner,
        )
        known = state is not None and state.load(self.store)
        if state is not None:
            state.follow(self.store)
        if not known:
            certificate = runner.certificate if runner else (b"", b"")
            world.populate(self.store, machine, system_status, tester, certificate)
        self._runner: web.AppRunner | None = None
        self._site: web.TCPSite | None = None
        self._context: ssl.SSLContext | None = None
        self._away: asyncio.Future[None] | None = None
        self.port = 0
        self.control = Control(self)
        self.server.pod_log = self._pod_log

    def set_wlm_role(self, role: Role) -> None:
        """Give the workload manager other rights."""
        self.users.set_role(WLM_USER, role)

    def _user(self, state: StateFile | None, name: str, role: Role) -> str:
        """Add a user, with the token of the state file, if any."""
        token = secrets.token_urlsafe(32)
        if state is not None:
            token = state.fact(f"token {name}", token)
        return self.users.add(name, role, token)

    def renew_token(self, context: str) -> str:
        """Make the token of a user invalid; returns the new one."""
        name = USERS[context]
        token = self.users.renew(name)
        if self._state is not None:
            self._state.set_fact(f"token {name}", token)
        return token

    async def start(
        self,
        port: int = 0,
        context: ssl.SSLContext | None = None,
        control: bool = True,
    ) -> None:
        """Serve on 127.0.0.1, with TLS if there is a context. Returns when
        requests are answered.

        Args:
            control: False: leave the controllers to another process.
        Raises:
            OSError: the port is taken.
        """
        if control:
            self.controllers.manager.start()
            await self.controllers.manager.settled()
        self._runner = web.AppRunner(
            self.server.application(), access_log=None, handler_cancellation=True
        )
        await self._runner.setup()
        self._context = context
        await self._listen(self._runner, port)
        self.port = self._runner.addresses[0][1]

    async def _listen(self, runner: web.AppRunner, port: int) -> None:
        self._site = web.TCPSite(
            runner,
            "127.0.0.1",
            port,
            shutdown_timeout=1.0,
            ssl_context=self._context,
        )
        await self._site.start()

    def go_away(self, after_s: float, seconds: float) -> None:
        """Break all connections after after_s, and accept none for 'seconds'. The delay
        lets the response to this request through. The controllers go on."""
        if self._away is not None and not self._away.done():
            raise ValueError("the API server is away, or about to be")
        self._away = asyncio.ensure_future(self._be_away(after_s, seconds))

    async def _be_away(self, after_s: float, seconds: float) -> None:
        await asyncio.sleep(after_s)
        if self._runner is None or self._runner.server is None or self._site is None:
            return
        await self._site.stop()
        for connection in list(self._runner.server.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(seconds)
        await self._listen(self._runner, self.port)

    def _pod_log(self, namespace: str, name: str, container: str) -> list[Line]:
        pod = self.store.get(RESOURCES["pods"], namespace, name)
        runner = self.controllers.runner
        lines = runner.log(pod, container) if runner is not None else None
        return played_log(pod) if lines is None else lines

    async def stop(self) -> None:
        if self._away is not None:
            self._away.cancel()
        self.server.drop_watches()
        await self.controllers.manager.stop()
        if self.controllers.runner is not None:
            await self.controllers.runner.stop()
        if self._runner is not None:
            await self._runner.cleanup()
