# Finds circular dependencies in a library: between object files, by their symbols
# (nm), and between the folders of their sources, by symbols and #include. A header
# included for its types alone is therefore an arrow between folders, and none between
# object files. A header *_private.h belongs to its own folder.
# SPDX-License-Identifier: LGPL-3.0-only
"""Usage: cycles.py [--arrows] BUILD TARGET

TARGET is a library's file within BUILD, e.g. src/common/libdws/libdws.a. With
--arrows: print which folder needs which, and by what, instead.
Exit status 1 if there is a circle, or a private header is included from another
folder; each is printed, with what ties it.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

Arrows = dict[str, dict[str, set[str]]]  # from -> to -> names of what is needed
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def target_objects(
    build: pathlib.Path, target: str
) -> dict[pathlib.Path, pathlib.Path]:
    """The sources of a target, each with its object file."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    return {
        pathlib.Path(os.path.normpath(build / entry["file"])): build / entry["output"]
        for entry in commands
        if entry["output"].startswith(f"{target}.p/")
    }


def symbols(obj: pathlib.Path) -> tuple[set[str], set[str]]:
    """Symbols that an object file exports, and symbols that it leaves undefined."""
    listing = subprocess.run(
        [os.environ.get("NM", "nm"), "-g", "-P", str(obj)],
        capture_output=True,
        text=True,
        check=True,
    )
    defined = set()
    needed = set()
    for line in listing.stdout.splitlines():
        name, kind = line.split()[:2]
        (needed if kind in "Uwv" else defined).add(name)
    return defined, needed


def link_arrows(objects: dict[str, pathlib.Path]) -> Arrows:
    """Arrows between sources, by the symbols of their object files."""
    table = {name: symbols(obj) for name, obj in objects.items()}
    home = {symbol: name for name, (defined, _) in table.items() for symbol in defined}
    arrows: Arrows = {name: collections.defaultdict(set) for name in table}
    for name, (_, needed) in table.items():
        for symbol in needed:
            if home.get(symbol, name) != name:
                arrows[name][home[symbol]].add(symbol)
    return arrows


def add_includes(
    folders: Arrows, top: pathlib.Path, sources: list[pathlib.Path]
) -> None:
    """Add the arrows that go by #include, headers of headers too."""
    files = set(sources)
    for source in sources:
        files.update(source.parent.glob("*.h"))
    for file in sorted(files):
        for text in INCLUDE.findall(file.read_text(encoding="utf-8")):
            # from the folder itself, or from the one that holds the library
            for base in (file.parent, top, top.parent):
                header = pathlib.Path(os.path.normpath(base / text))
                if header.is_file() and header.is_relative_to(top):
                    here = file.parent.relative_to(top).as_posix()
                    there = header.parent.relative_to(top).as_posix()
                    if here != there:
                        folders[here][there].add(text)
                    break


def folder_arrows(
    arrows: Arrows, top: pathlib.Path, sources: list[pathlib.Path]
) -> Arrows:
    """The arrows between folders, by symbols and by includes."""
    folders: Arrows = collections.defaultdict(lambda: collections.defaultdict(set))
    for name, needs in arrows.items():
        here = pathlib.PurePath(name).parent.as_posix()
        folders[here].update()
        for other, names in needs.items():
            there = pathlib.PurePath(other).parent.as_posix()
            if here != there:
                folders[here][there] |= names
    add_includes(folders, top, sources)
    return folders


def circles(arrows: Arrows) -> list[list[str]]:
    """The strongly connected parts of more than one node (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in arrows.get(node, {}):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            part = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(arrows):
        if node not in order:
            visit(node)
    return found


def trespasses(folders: Arrows) -> list[str]:
    """The private headers that another folder includes."""
    return [
        f"{here} includes {name}, which is private to {there}"
        for here, needs in sorted(folders.items())
        for there, names in sorted(needs.items())
        for name in sorted(names)
        if name.endswith("_private.h")
    ]


def show(arrows: Arrows, nodes: list[str]) -> None:
    """Print each arrow between these nodes with up to four of its reasons."""
    for node in sorted(nodes):
        for other in sorted(set(arrows[node]) & set(nodes)):
            names = sorted(arrows[node][other])
            more = f" and {len(names) - 4} more" if len(names) > 4 else ""
            print(f"  {node} -> {other}: {', '.join(names[:4])}{more}")


def main() -> int:
    parser = argparse.ArgumentParser(usage=str(__doc__))
    parser.add_argument("--arrows", action="store_true")
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("target")
    args = parser.parse_args()
    objects = target_objects(args.build.resolve(), args.target)
    if not objects:
        sys.exit(f"cycles.py: {args.build} has no object files of {args.target}")
    top = pathlib.Path(os.path.commonpath([source.parent for source in objects]))
    names = {source.relative_to(top).as_posix(): obj for source, obj in objects.items()}
    files = link_arrows(names)
    folders = folder_arrows(files, top, list(objects))
    if args.arrows:
        show(folders, list(folders))
        return 0
    bad = 0
    for what, arrows in (("object files", files), ("folders", folders)):
        knots = circles(arrows)
        tied = sum(map(len, knots))
        print(f"{args.target}: {tied} of {len(arrows)} {what} in {len(knots)} circles")
        for knot in knots:
            print(f"circle of {what}: {' '.join(knot)}")
            show(arrows, knot)
        bad += tied
    for line in trespasses(folders):
        print(f"{args.target}: {line}")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
