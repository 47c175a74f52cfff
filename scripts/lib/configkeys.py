# The list of keys in flux-config-rabbit(5), from their declarations in libdws.
# Prints it; with --write puts it into the page. Run by the flux of .venv:
# .venv/bin/flux python scripts/lib/configkeys.py --write
# SPDX-License-Identifier: LGPL-3.0-only
"""Write the KEYS section of flux-config-rabbit(5)."""

from __future__ import annotations

import argparse
import pathlib
import re
import textwrap

from flux_k8s import dws, shapes

PAGE = pathlib.Path(__file__).parents[2] / "doc" / "man5" / "flux-config-rabbit.rst"
BEGIN = "KEYS\n====\n"
NEXT = re.compile(r"\n[A-Z ]+\n=+\n")  # the heading of what follows


def duration(seconds: float) -> str:
    for unit, factor in (("hour", 3600), ("minute", 60)):
        if seconds >= factor and seconds % factor == 0:
            count = int(seconds // factor)
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{seconds:g} seconds"


def default_of(key: shapes.ConfigKey) -> str:
    value = key["default"]
    if value is None:
        return ""
    if key["type"] == "time":
        if value < 0:
            return "No limit by default."
        return f"Default: {duration(value)}."
    if isinstance(value, bool):
        return f"Default: {'true' if value else 'false'}."
    if isinstance(value, list):
        texts = ", ".join(f'"{entry}"' for entry in value)
        return f"Default: ``[{texts}]``."
    return f"Default: {value}."


def bounds_of(key: shapes.ConfigKey) -> str:
    """Bounds of a key that its type does not imply, as text for the page."""
    if '"' in key["bounds"]:  # a choice
        return key["bounds"]
    words = key["bounds"].split()
    if ">=" in words:
        return f"{words[-1]} or more"
    return ""


def escape(text: str) -> str:
    """No mark-up in a text: * and a trailing _ mean something there."""
    return re.sub(r"(\*|_(?!\w))", r"\\\1", text)


def keys() -> str:
    """The entries of all keys."""
    entries = []
    for key in dws.config_keys():
        bounds = bounds_of(key)
        kind = f"{key['type']}, {bounds}" if bounds else key["type"]
        text = f"{escape(key['help'])} {default_of(key)}".strip()
        lines = textwrap.wrap(
            text,
            78,
            initial_indent="  ",
            subsequent_indent="  ",
            break_long_words=False,
        )
        entries.append("\n".join([f"**{key['name']}** ({kind})", *lines]))
    return "\n\n".join(entries) + "\n"


def page(text: str) -> str:
    """The manual page with a new section KEYS."""
    head, rest = text.split(BEGIN)
    following = NEXT.search(rest)
    assert following
    return f"{head}{BEGIN}\n{keys()}{rest[following.start() :]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="change the page")
    if parser.parse_args().write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf8")), encoding="utf8")
    else:
        print(keys(), end="")


if __name__ == "__main__":
    main()
