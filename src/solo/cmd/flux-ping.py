# SPDX-License-Identifier: LGPL-3.0-only
"""flux ping: measure the time to a service and back."""

import time

import flux
import solocmd


def main() -> None:
    top = solocmd.parser("flux-ping")
    top.add_argument("-c", "--count", type=int, default=0, help="number of pings")
    top.add_argument(
        "-i", "--interval", type=float, default=1.0, help="seconds between"
    )
    top.add_argument("-p", "--pad", type=int, default=0, help="bytes of padding")
    top.add_argument("target", metavar="SERVICE")
    args = top.parse_args()
    handle = flux.Flux()
    service = "broker" if args.target.isdigit() else args.target
    pad = "p" * args.pad
    seq = 0
    while not args.count or seq < args.count:
        if seq > 0:
            time.sleep(args.interval)
        start = time.monotonic()
        request = {"seq": seq, "pad": pad, "time.tv_sec": 0, "time.tv_nsec": 0}
        handle.rpc(f"{service}.ping", request).get()
        elapsed = (time.monotonic() - start) * 1e3
        print(
            f"{args.target}.ping pad={args.pad} seq={seq} time={elapsed:0.3f} ms",
            flush=True,
        )
        seq += 1


if __name__ == "__main__":
    solocmd.run("flux-ping", main)
