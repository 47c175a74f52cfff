# SPDX-License-Identifier: LGPL-3.0-only
"""The frame of flux job-frobnicator and flux job-validator: a job as a line of
JSON on standard input, what plugins make of it as another on standard output.
"""

import argparse
import json
import os
import sys
from typing import Any, Callable

import solocmd


def lines() -> Any:
    """Standard input, line by line; what is not UTF-8 passes through."""
    return open(
        sys.stdin.fileno(), buffering=1, encoding="utf-8", errors="surrogateescape"
    )


def serve(
    name: str,
    stack_class: Callable[..., Any],
    process: Callable[[Any, dict[str, Any]], dict[str, Any]],
) -> int:
    """Answer each line with what process(stack, job) returns. With
    --jobspec-only the exit status says whether all were accepted.
    """
    from flux.cli.argparse import FluxArgumentParser

    parser = FluxArgumentParser(prog=name, add_help=False)
    parser.add_argument(
        "--jobspec-only",
        action="store_true",
        help="expect nothing but the jobspec on a line",
    )
    parser.add_argument(
        "--list-plugins", action="store_true", help="list plugins and exit"
    )
    stack = stack_class(sys.argv[1:], parser=parser)
    if stack.args.list_plugins:
        print("Available plugins:")
        for plugin, module in sorted(stack.plugins.items()):
            print(f"{plugin:<20}  {(module.__doc__ or '').partition(chr(10))[0]}")
        return 0
    # Not before: the plugins have to add their options first.
    parser.add_argument(
        "-h", "--help", action=argparse._HelpAction, help="show this help and exit"
    )
    try:
        stack.start()
    except ValueError as exc:
        solocmd.die(name, f"CRITICAL: {exc}")
    status = 0
    for line in lines():
        job = json.loads(line)
        if stack.args.jobspec_only:
            job = {"jobspec": job, "userid": os.getuid(), "urgency": 16, "flags": 0}
        for key in ("jobspec", "userid", "urgency", "flags"):
            if key not in job:
                solocmd.die(name, f"CRITICAL: missing key {key} in input")
        result = process(stack, job)
        if stack.args.jobspec_only and result["errnum"]:
            status = 1
        print(json.dumps(result), flush=True)
    return status
