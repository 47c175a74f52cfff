# dws-sim ctl: one request to a running simulator.
# SPDX-License-Identifier: LGPL-3.0-only
"""The control commands of the command line."""

from __future__ import annotations

import argparse
import json
import shlex
import ssl
import sys
import urllib.error
import urllib.request
from typing import Any, NoReturn

from dws_sim import kubeconfig
from dws_sim.faults import CONTAINER_MODES
from dws_sim.jsontree import Object
from dws_sim.states import STATES

RABBIT_WORDS = ("down", "dead", "up", "unbooted", "drained", "fenced")


class _TextParser(argparse.ArgumentParser):
    """Reads commands that do not come from a command line."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def parse_command(text: str) -> tuple[str, Object]:
    """Name and arguments of a command as it is typed after `ctl`.

    Raises:
        ValueError: it is none.
    """
    parser = _TextParser(prog="ctl", add_help=False)
    _add_commands(parser.add_subparsers(dest="ctl", required=True))
    args = parser.parse_args(shlex.split(text))
    return args.ctl, _body(args)


def add_ctl_parser(commands: Any) -> None:
    """Add `ctl` and its own commands."""
    ctl = commands.add_parser("ctl", help="control a running simulator")
    ctl.add_argument("--kubeconfig", required=True, metavar="FILE")
    _add_commands(ctl.add_subparsers(dest="ctl", required=True))


def _add_commands(sub: Any) -> None:
    cmd = sub.add_parser("hold", help="keep workflows from getting ready in a state")
    cmd.add_argument("state", choices=STATES)
    cmd.add_argument("--workflow", default="*", help="a name or pattern")
    cmd.add_argument("--late", action="store_true", help="after the state's work")
    cmd = sub.add_parser("release", help="undo hold")
    cmd.add_argument("state", choices=[*STATES, "all"])
    cmd.add_argument("--workflow", help="only the hold of that name or pattern")
    cmd = sub.add_parser("latency", help="make a state, or a mount, take time")
    cmd.add_argument("state", choices=[*STATES, "mount", "copy"])
    cmd.add_argument("seconds", type=float, nargs="*", help="one, or low and high")
    cmd.add_argument("--median", type=float, help="with --p95: a long tail")
    cmd.add_argument("--p95", type=float, help="exceeded by one in twenty")
    cmd = sub.add_parser("fail", help="make workflows fail in a state")
    cmd.add_argument("state", choices=[*STATES, "all"])
    cmd.add_argument("--severity", default="Fatal", choices=["Fatal", "Major", "Minor"])
    cmd.add_argument("--message", default="simulated failure")
    cmd.add_argument("--count", type=int, help="heal after so many")
    cmd.add_argument("--workflow", default="*", help="a name or pattern")
    cmd.add_argument("--probability", type=float, default=1.0)
    cmd.add_argument("--clear", action="store_true", help="end all failures there")
    cmd = sub.add_parser("fail-copy", help="make data movements fail")
    cmd.add_argument("--message", default="simulated failure")
    cmd.add_argument("--count", type=int, help="heal after so many")
    cmd.add_argument("--job", default="*", help="only of this job id, or pattern")
    cmd.add_argument("--clear", action="store_true", help="end all of them")
    cmd = sub.add_parser("containers", help="how user containers behave")
    cmd.add_argument("mode", choices=CONTAINER_MODES)
    cmd = sub.add_parser("rabbit", help="break or mend a rabbit")
    cmd.add_argument("rabbit")
    cmd.add_argument("to", choices=RABBIT_WORDS)
    cmd = sub.add_parser("link", help="break or mend a compute's PCIe link")
    cmd.add_argument("node")
    cmd.add_argument("to", help="down, up, or a status word")
    cmd = sub.add_parser("drive", help="break or mend a drive of a rabbit")
    cmd.add_argument("rabbit")
    cmd.add_argument("slot", type=int)
    cmd.add_argument("to", choices=["failed", "ok"])
    cmd.add_argument("--wear", type=int, metavar="PERCENT", help="of its endurance")
    cmd = sub.add_parser("hang-mount", help="stop a node's mount daemon")
    cmd.add_argument("node")
    cmd.add_argument("to", choices=["on", "off"])
    cmd = sub.add_parser("child-timeout", help="how long a node may take notice")
    cmd.add_argument("seconds", type=float)
    cmd = sub.add_parser("device-poll", help="how often mounts look for devices")
    cmd.add_argument("seconds", type=float, help="0: they are there at once")
    cmd = sub.add_parser("stumble", help="let healthy workflows show faults")
    cmd.add_argument("probability", type=float, help="0: none does")
    cmd = sub.add_parser("outdate-servers", help="Setup reads an old cache")
    cmd.add_argument("count", type=int, help="so many workflows do")
    cmd = sub.add_parser("api", help="faults of the API server")
    cmd.add_argument("--status", type=int, help="answer this to the next requests")
    cmd.add_argument("--count", type=int, default=1, help="how many requests")
    cmd.add_argument("--rate", type=float, help="this part of all, until --clear")
    cmd.add_argument(
        "--retry-after", type=int, metavar="S", help="asked for with 429 and 503 (1)"
    )
    cmd.add_argument("--slow", type=float, help="seconds before each answer")
    cmd.add_argument(
        "--stale", type=float, metavar="S", help="show what was S seconds ago"
    )
    cmd.add_argument("--away", type=float, metavar="S", help="no connection so long")
    cmd.add_argument(
        "--webhook-down", action="store_true", help="no Workflow can be written"
    )
    cmd.add_argument("--drop-watches", action="store_true")
    cmd.add_argument("--expire", action="store_true", help="410 for all watches")
    cmd.add_argument("--clear", action="store_true", help="end all API faults")
    sub.add_parser("backup", help="of all objects, for restore")
    sub.add_parser("restore", help="go back to the last backup, as an etcd does")
    cmd = sub.add_parser("token", help="make a user's token invalid")
    cmd.add_argument("user", choices=["wlm", "admin"])
    cmd.add_argument(
        "--keep-file", action="store_true", help="leave the old one in the kubeconfig"
    )
    cmd = sub.add_parser("deny", help="take rights from the workload manager")
    cmd.add_argument("rights", nargs="*", metavar="RESOURCE:VERB", help="none: undo")
    cmd = sub.add_parser("grant", help="give the workload manager more rights")
    cmd.add_argument("rights", nargs="*", metavar="RESOURCE:VERB", help="none: undo")
    sub.add_parser("state", help="print a summary as JSON")
    cmd = sub.add_parser("wait-idle", help="until no job has left anything")
    cmd.add_argument("--timeout", type=float, help="seconds; exit status 1 after")
    cmd = sub.add_parser("wait-state", help="until a workflow is in a state")
    cmd.add_argument("workflow")
    cmd.add_argument("state", choices=[*STATES, "gone"])
    cmd.add_argument("--namespace", default="default")
    cmd.add_argument("--ready", action="store_true", help="and ready")
    cmd.add_argument("--timeout", type=float, help="seconds; exit status 1 after")


def request(access: kubeconfig.Access, command: str, args: Object) -> Object:
    """Send one command.

    Raises:
        OSError: no answer, or a refusal, with the server's text.
    """
    context = None
    if access.ca_pem is not None:
        context = ssl.create_default_context(cadata=access.ca_pem.decode())
    req = urllib.request.Request(
        f"{access.server}/dws-sim/v1/{command}",
        data=json.dumps(args).encode(),
        headers={
            "Authorization": f"Bearer {access.token}",
            "Content-Type": "application/json",
        },
        method="POST",
    )
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    try:
        with opener.open(req) as response:
            result: Object = json.load(response)
            return result
    except urllib.error.HTTPError as exc:
        try:
            text = json.load(exc)["message"]
        except (ValueError, KeyError):
            text = str(exc)
        raise OSError(text) from exc


def add_top_parser(commands: Any) -> None:
    """Add `top`."""
    top = commands.add_parser("top", help="follow a running simulator")
    top.add_argument("--kubeconfig", required=True, metavar="FILE")
    top.add_argument("--interval", type=float, default=1.0, metavar="SECONDS")
    top.add_argument("--once", action="store_true", help="print one picture and end")


def _body(args: argparse.Namespace) -> Object:
    """The arguments of a command as it is sent."""
    skipped = ("command", "kubeconfig", "ctl")
    body = {
        k: v
        for k, v in vars(args).items()
        if k not in skipped and v is not None and v is not False
    }
    if args.ctl == "latency":
        if args.median is not None and args.p95 is not None and not args.seconds:
            body["seconds"] = {"median": args.median, "p95": args.p95}
        elif len(args.seconds) == 1:
            body["seconds"] = args.seconds[0]
    return body


def run_ctl(args: argparse.Namespace) -> int:
    """Run one control command; returns the exit status."""
    try:
        body = _body(args)
        result = request(kubeconfig.read(args.kubeconfig), args.ctl, body)
    except (OSError, ValueError) as exc:
        print(f"dws-sim: {exc}", file=sys.stderr)
        return 1
    if args.ctl == "token" and not args.keep_file:
        kubeconfig.replace_token(args.kubeconfig, args.user, result["token"])
    if args.ctl in ("state", "backup", "restore"):
        print(json.dumps(result, indent=2))
    if result.get("done") is False:
        print(f"dws-sim: {args.ctl}: timed out", file=sys.stderr)
        return 1
    return 0
