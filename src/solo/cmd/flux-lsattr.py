# SPDX-License-Identifier: LGPL-3.0-only
"""flux lsattr: list broker attributes."""

import flux
import solocmd


def main() -> None:
    top = solocmd.parser("flux-lsattr")
    top.add_argument("-v", "--values", action="store_true", help="print values too")
    args = top.parse_args()
    handle = flux.Flux()
    for name in sorted(handle.rpc("attr.list").get()["names"]):
        if not args.values:
            print(name)
            continue
        try:
            print(f"{name:<40}{handle.attr_get(name)}")
        except OSError:
            print(f"{name:<40}-")


if __name__ == "__main__":
    solocmd.run("flux-lsattr", main)
