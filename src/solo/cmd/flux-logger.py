# SPDX-License-Identifier: LGPL-3.0-only
"""flux logger: write a message to the broker's log."""

import syslog

import flux
import solocmd

SEVERITIES = {
    name: getattr(syslog, f"LOG_{name.upper()}")
    for name in ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
}


def main() -> None:
    top = solocmd.parser("flux-logger")
    top.add_argument("-s", "--severity", default="info", choices=SEVERITIES)
    top.add_argument("-n", "--appname", default="logger", metavar="NAME")
    top.add_argument("message", nargs="+", metavar="MESSAGE")
    args = top.parse_args()
    from flux.core.inner import raw

    handle = flux.Flux()
    raw.flux_log_set_appname(handle, args.appname)
    handle.log(SEVERITIES[args.severity], " ".join(args.message))
    # The broker answers requests of one client in order.
    handle.rpc("attr.get", {"name": "rank"}).get()


if __name__ == "__main__":
    solocmd.run("flux-logger", main)
