# SPDX-License-Identifier: LGPL-3.0-only
"""flux setattr: set a broker attribute."""

import flux
import solocmd


def main() -> None:
    top = solocmd.parser("flux-setattr")
    top.add_argument("name", metavar="NAME")
    top.add_argument("value", metavar="VALUE")
    args = top.parse_args()
    flux.Flux().attr_set(args.name, args.value)


if __name__ == "__main__":
    solocmd.run("flux-setattr", main)
