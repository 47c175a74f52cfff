# dws-sim controllers: the controller half beside an API server that is
# already there.
# SPDX-License-Identifier: LGPL-3.0-only
"""Controllers for another API server."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import signal
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from dws_sim import world
from dws_sim.controllers.remote import RemoteCluster
from dws_sim.errors import ApiError
from dws_sim.faults import Faults
from dws_sim.mounts import Mounts
from dws_sim.scenario import Step
from dws_sim.schema.crd import custom_resources, definition
from dws_sim.schema.resources import DWS_GROUP, Resource
from dws_sim.serve import faults_of, machine_of, runner_of, start_log
from dws_sim.sim import Controllers
from dws_sim.switches import Switches
from dws_sim.tls import server_context
from dws_sim.webhook import CONVERT, Webhooks
from dws_sim.world import Machine

log = logging.getLogger("dws-sim")

CORE = ("secrets", "services", "pods", "jobs", "nodes")
_EXTENSIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
SERVED_LIMIT_S = 60
SERVED_PAUSE_S = 0.1


@contextlib.asynccontextmanager
async def session(
    path: str, context: str | None
) -> AsyncIterator[aiohttp.ClientSession]:
    """A session with the server that a kubeconfig names, as its user.

    Raises:
        ValueError: the kubeconfig cannot be used.
    """
    # imported here: it takes longer than all else together
    from kubernetes import client, config

    settings: Any = client.Configuration()
    try:
        config.load_kube_config(path, context, client_configuration=settings)
    except config.ConfigException as exc:
        raise ValueError(f"{path}: {exc}") from exc
    headers = {
        auth["key"]: auth["value"]
        for auth in settings.auth_settings().values()
        if auth["in"] == "header" and auth["value"]
    }
    tls: ssl.SSLContext | bool = True
    if settings.host.startswith("https:"):
        tls = ssl.create_default_context(cafile=settings.ssl_ca_cert)
        if settings.cert_file:
            tls.load_cert_chain(settings.cert_file, settings.key_file)
    async with aiohttp.ClientSession(
        settings.host,
        headers=headers,
        connector=aiohttp.TCPConnector(ssl=tls, limit=0),
        timeout=aiohttp.ClientTimeout(total=60),
    ) as made:
        yield made


async def _served(cluster: RemoteCluster, resources: list[Resource]) -> None:
    """Wait until the server serves what has just been defined.

    Raises:
        ApiError: it does not.
    """
    end = asyncio.get_running_loop().time() + SERVED_LIMIT_S
    for res in resources:
        while True:
            try:
                await cluster.read(f"/apis/{res.api_version}/{res.plural}?limit=1")
                break
            except ApiError as exc:
                if asyncio.get_running_loop().time() > end:
                    raise
                log.debug("%s is not served yet: %s", res, exc)
            await asyncio.sleep(SERVED_PAUSE_S)


async def _install(
    cluster: RemoteCluster, args: argparse.Namespace, machine: Machine, hooks: Webhooks
) -> None:
    """Define the kinds, and create what a system has before the first job.
    Kinds of DWS are left to DWS where it is not part of this process."""
    resources = custom_resources()
    convert = None if args.no_dws else hooks.client_config(CONVERT)
    for res in resources:
        if not args.no_dws or res.group != DWS_GROUP:
            await cluster.install(_EXTENSIONS, definition(res, convert))
    await _served(cluster, resources)
    for plural, obj in world.objects(machine, not args.no_system_status, args.tester):
        await cluster.create(plural, obj)
    config = await cluster.get("systemconfigurations", "default", "default")
    assert config is not None
    for obj in world.storages(machine, config):
        await cluster.create("storages", obj)
    if not args.no_dws:
        config = {**config, "status": world.SYSTEM_STATUS}
        await cluster.update_status("systemconfigurations", config)
    for obj in hooks.configurations():
        kind = obj["kind"].lower() + "s"
        await cluster.install(f"{_ADMISSION}/{kind}", obj)


async def _attach(
    args: argparse.Namespace, machine: Machine, faults: Faults, steps: list[Step]
) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with contextlib.AsyncExitStack() as stack:
        http = await stack.enter_async_context(session(args.kubeconfig, args.context))
        followed = [r.plural for r in custom_resources()] + list(CORE)
        cluster = RemoteCluster(http, followed)
        dws = not args.no_dws
        hooks = Webhooks(lambda: cluster.known("dwdirectiverules"), dws)
        await hooks.start(*server_context())
        stack.push_async_callback(hooks.stop)
        if args.install:
            await _install(RemoteCluster(http, ()), args, machine, hooks)
        mounts = Mounts(args.root, args.keep_data)
        runner = runner_of(args, mounts)
        controllers = Controllers(
            cluster,
            machine,
            faults,
            mounts,
            dws=dws,
            tester=args.tester,
            runner=runner,
        )
        if runner is not None:
            stack.push_async_callback(runner.stop)
        switches = Switches(controllers)
        switches.check(steps)
        await cluster.start()
        stack.push_async_callback(cluster.stop)
        controllers.manager.start()
        stack.push_async_callback(controllers.manager.stop)
        if args.mapping:
            with open(args.mapping, "w", encoding="utf-8") as stream:
                json.dump(machine.mapping(), stream)
        log.info("following %d kinds", len(followed))
        if args.ready_fd is not None:
            with os.fdopen(args.ready_fd, "w") as ready:
                ready.write("ready\n")
        playing = asyncio.ensure_future(switches.play(steps))
        await stop.wait()
        playing.cancel()


def attach(args: argparse.Namespace) -> None:
    """Run the controllers with the options of the command line.

    Raises:
        OSError, ValueError: a file or a value cannot be used.
        ApiError: the server refuses something that is needed.
    """
    start_log(args)
    asyncio.run(_attach(args, machine_of(args), *faults_of(args)))
