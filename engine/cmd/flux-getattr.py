# SPDX-License-Identifier: LGPL-3.0-only
"""flux getattr: print a broker attribute."""

import os

import flux
import solocmd


def main() -> None:
    top = solocmd.parser("flux-getattr")
    top.add_argument("name", metavar="NAME")
    name = top.parse_args().name
    try:
        value = flux.Flux().attr_get(name)
    except OSError as exc:
        solocmd.die("flux-getattr", f"{name}: {os.strerror(exc.errno)}")
    print(value)


if __name__ == "__main__":
    solocmd.run("flux-getattr", main)
