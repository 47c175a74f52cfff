# SPDX-License-Identifier: LGPL-3.0-only
"""flux event: publish events, and print those that are published."""

import argparse
import json

import flux
import solocmd
from flux.constants import FLUX_MSGTYPE_EVENT


def pub(args: argparse.Namespace) -> None:
    text = " ".join(args.payload)
    request = {"topic": args.topic, "flags": 1 if args.private else 0}
    if text:
        import base64

        if not args.raw:
            json.loads(text)  # refuse what is not JSON
        data = text.encode() + (b"" if args.raw else b"\0")
        request["payload"] = base64.b64encode(data).decode()
    reply = flux.Flux().rpc("event.publish", request).get()
    if args.synchronous:
        print(reply["seq"])


def sub(args: argparse.Namespace) -> None:
    handle = flux.Flux()
    for topic in args.topics or [""]:
        handle.event_subscribe(topic)
    seen = 0

    def receive(handle, watcher, msg, arg):  # type: ignore
        nonlocal seen
        text = msg.payload_str
        print(f"{msg.topic}\t{text}" if text else msg.topic, flush=True)
        seen += 1
        if args.count and seen >= args.count:
            handle.reactor_stop()

    watcher = handle.msg_watcher_create(receive, FLUX_MSGTYPE_EVENT, "*")
    watcher.start()
    handle.reactor_run()


def main() -> None:
    top = solocmd.parser("flux-event")
    commands = top.add_subparsers(metavar="COMMAND")
    cmd = commands.add_parser("pub", help="publish an event")
    cmd.add_argument("-r", "--raw", action="store_true", help="payload is not JSON")
    cmd.add_argument(
        "-s", "--synchronous", action="store_true", help="print its number"
    )
    cmd.add_argument("-p", "--private", action="store_true", help="only for the owner")
    cmd.add_argument("topic", metavar="TOPIC")
    cmd.add_argument("payload", nargs="*", metavar="PAYLOAD")
    cmd.set_defaults(func=pub)
    cmd = commands.add_parser("sub", help="print events")
    cmd.add_argument("-c", "--count", type=int, default=0, help="exit after N events")
    cmd.add_argument("topics", nargs="*", metavar="TOPIC")
    cmd.set_defaults(func=sub)
    solocmd.dispatch(top)


if __name__ == "__main__":
    solocmd.run("flux-event", main)
