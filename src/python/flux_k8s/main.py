# The command flux-coral2-dws: options, configuration, logging.
# SPDX-License-Identifier: LGPL-3.0-only
"""Entry point of the agent."""

from __future__ import annotations

import argparse
import gc
import logging
import signal
import sys

import flux

from flux_k8s import configcheck, program
from flux_k8s.agent import Agent, Overrides
from flux_k8s.kubeconfig import ConfigError
from flux_k8s.texts import LogFormatter

LOGGER = logging.getLogger("flux_k8s")

MAX_WORKERS = 1024
# Options of the service of flux-coral2, which a site's unit may still contain: names,
# argparse's nargs, and the replacement.
OLD_OPTIONS = (
    (("-w", "--watch-interval"), None, "nothing is polled any more"),
    (
        ("-m", "--min-allocation-size"),
        None,
        "sizes are those of the storage profiles of DWS",
    ),
    (("--drain-queues",), "+", "set rabbit.drain_queues in the configuration"),
    (
        ("--disable-fluxion",),
        0,
        "the scheduler gets a job's storage as resources; see flux-sched-rabbit(1)",
    ),
    (("--retry-delay",), None, "pauses grow from a second up by themselves"),
)


def add_old_options(parser: argparse.ArgumentParser) -> None:
    """Accept the options of flux-coral2, and collect given ones in args.old."""

    class Old(argparse.Action):
        def __call__(
            self,
            parser: argparse.ArgumentParser,
            namespace: argparse.Namespace,
            values: object,
            option_string: str | None = None,
        ) -> None:
            namespace.old = [*namespace.old, f"{option_string}: {self.const}"]

    parser.set_defaults(old=[])
    for names, values, instead in OLD_OPTIONS:
        parser.add_argument(
            *names,
            action=Old,
            nargs=values,
            default=argparse.SUPPRESS,
            const=instead,
            help=argparse.SUPPRESS,
        )


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="flux-coral2-dws",
        description="Connects a Flux instance that has the broker module dws "
        "loaded to the Kubernetes cluster that manages its rabbits. Run it as "
        "the instance owner, on the node of rank 0. It may be stopped and "
        "started at any time; jobs wait meanwhile.",
    )
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="how to reach Kubernetes (default: rabbit.kubeconfig of the Flux "
        "configuration, then $KUBECONFIG, then ~/.kube/config)",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=int,
        default=Overrides.workers,
        help="Kubernetes requests under way at the same time, besides the watches "
        f"(from 1 to {MAX_WORKERS}, default: %(default)s)",
    )
    parser.add_argument(
        "--allow-insecure-kubernetes",
        action="store_true",
        help="take a kubeconfig with insecure-skip-tls-verify, or with http to "
        "anything but the loopback: whoever answers gets the agent's token",
    )
    parser.add_argument(
        "--check-config",
        metavar="PATH",
        nargs="?",
        const="",
        help="check the table [rabbit] and the files that it names, tell every "
        "fault, and exit: of a TOML file or a directory of them, or else of the "
        "running instance",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="log more; twice: everything",
    )
    add_old_options(parser)
    args = parser.parse_args(argv)
    if not 1 <= args.workers <= MAX_WORKERS:
        parser.error(f"--workers: expected 1 to {MAX_WORKERS}, got {args.workers}")
    return args


def spare_collector() -> None:
    """Run Python's cycle collector less often, and never on objects from the start:
    reference counts free nearly all objects that the agent reads."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def main(argv: list[str] | None = None) -> int:
    """Run the agent. Returns the exit code."""
    program.open_streams()
    args = parse_args(argv)
    if args.check_config is not None:
        return configcheck.run(
            args.check_config, args.kubeconfig, args.allow_insecure_kubernetes
        )
    levels = [logging.WARNING, logging.INFO, logging.DEBUG]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("flux-coral2-dws: %(levelname)s: %(message)s"))
    logging.basicConfig(level=levels[min(args.verbose, 2)], handlers=[handler])
    for option in args.old:
        LOGGER.warning("option of flux-coral2 without effect: %s", option)
    spare_collector()
    try:
        handle = flux.Flux()
        overrides = Overrides(
            args.kubeconfig, args.workers, args.allow_insecure_kubernetes
        )
        return Agent(handle, overrides).run()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except ConfigError as exc:
        LOGGER.error("%s", exc)
        return 1
    except OSError as exc:
        LOGGER.error("connection to the Flux broker: %s", exc.strerror or exc)
        return 1


if __name__ == "__main__":
    sys.exit(main())
