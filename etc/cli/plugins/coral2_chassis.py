# SPDX-License-Identifier: LGPL-3.0-only
#
# Options of flux run, submit, alloc and batch: spread the nodes of a job evenly
# over chassis, that is over rabbits, and have cores on the rabbits as well.
"""Options --coral2-chassis and --coral2-rabbit-cores."""

import argparse
import sys

import flux
from flux.cli.plugin import CLIPlugin


def positive_integer(text):
    """The type of the options: its name is what argparse calls a bad value.

    Text with {} or {cc} is returned as it is: each copy of the job has its own."""
    if "{" in text:
        return text
    value = int(text)
    if value < 1:
        raise ValueError(f"{text} is not positive")
    return value


class Copied(argparse.Action):
    """An option that each job of flux submit --cc, --bcc and flux bulksubmit has.

    These commands hand a job only the options in Xcmd.mutable_args, and expand
    {cc}, {} and the like in them.
    """

    def __call__(self, parser, namespace, value, option_string=None):
        copies = getattr(sys.modules.get("flux.cli.base"), "Xcmd", None)
        if copies:
            copies.mutable_args[self.dest] = f"{self.option_strings[0]}="
        setattr(namespace, self.dest, value)


def number(args, key):
    """The number that an option of this job has, 0 if it is not given."""
    value = getattr(args, key, None) or 0
    if isinstance(value, str) and not (value.isdecimal() and int(value)):
        option = key.replace("_", "-")
        raise ValueError(f"--coral2-{option}: '{value}' is not a positive number")
    return int(value)


class ChassisPlugin(CLIPlugin):
    """Spread the nodes of a job evenly over chassis.

    A chassis is a rabbit with the compute nodes next to it.

    --coral2-chassis=N takes N chassis for the job, each with the same number
    of its nodes. So it needs -N, --nodes, with a number that N divides: 15
    nodes can be spread over 3 chassis, 5 cannot. Without the option the
    scheduler chooses. Whether a chassis has as many nodes is for the scheduler
    to say: if not, the job is refused as unsatisfiable.

    --coral2-rabbit-cores=M adds M cores of the rabbit in each of the chassis,
    where rabbits are nodes that run jobs.

    EXAMPLES
    --------

    15 nodes next to one rabbit::

      flux alloc -N15 --coral2-chassis=1

    200 nodes, ten next to each of 20 rabbits::

      flux alloc -N200 --coral2-chassis=20
    """

    def __init__(self, prog, prefix="coral2"):
        super().__init__(prog, prefix=prefix)
        self.add_option(
            "--chassis",
            action=Copied,
            metavar="N",
            type=positive_integer,
            default=0,
            help="Spread the nodes (-N) evenly over N chassis",
        )
        self.add_option(
            "--rabbit-cores",
            action=Copied,
            metavar="M",
            type=positive_integer,
            default=0,
            help="Also take M cores of each rabbit (needs --coral2-chassis)",
        )

    def preinit(self, args):
        chassis = number(args, "chassis")
        if not chassis:
            if number(args, "rabbit_cores"):
                raise ValueError("--coral2-rabbit-cores requires --coral2-chassis=N")
            return
        handle = flux.Flux("/")
        if all(
            handle.conf_get(key) is None
            for key in ("resource.scheduling", "rabbit.mapping")
        ):
            raise RuntimeError(
                "--coral2-chassis: the scheduler knows of no chassis, neither "
                "resource.scheduling nor rabbit.mapping is configured"
            )
        try:
            nodes = int(args.nodes)
        except (TypeError, ValueError):
            raise ValueError(
                "--coral2-chassis requires -N, --nodes with a number"
            ) from None
        if nodes % chassis:
            raise ValueError(
                f"{nodes} nodes cannot be spread evenly over {chassis} chassis"
            )

    def modify_jobspec(self, args, jobspec):
        chassis = number(args, "chassis")
        cores = number(args, "rabbit_cores")
        if not chassis:
            return
        resources = jobspec.resources
        if len(resources) != 1 or resources[0]["type"] != "node":
            kinds = ", ".join(entry["type"] for entry in resources)
            raise ValueError(
                f"--coral2-chassis needs nodes at the top of the jobspec, not {kinds}"
            )
        (node,) = resources
        inside = [{**node, "count": node["count"] // chassis}]
        if cores:
            core = {"type": "core", "count": cores, "exclusive": True}
            inside.append({"type": "storage_node", "count": 1, "with": [core]})
            jobspec.setattr("system.allow_rabbits", True)
        jobspec.jobspec["resources"] = [
            {"type": "chassis", "count": chassis, "with": inside}
        ]
