# SPDX-License-Identifier: LGPL-3.0-only
#
# What a job that is submitted asks for, wherever that is written: #DW lines of its
# script, options --dw and -S dw=. libdws reads the directives; here is only which
# lines they are on, so that a fault can be said with its file and line.
"""The #DW directives of a job that is being submitted."""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from flux_k8s import dws

if TYPE_CHECKING:
    from flux_k8s import shapes

# Imported by each submission with a directive, which need not wait for what only
# some of them use: compiled patterns, dataclasses, a connection to the instance.
_MARK = "#DW"
# "#dw" is one that libdws refuses, with the right word.
_DIRECTIVE = r"(?i:#DW)(?=\s|$)"
_UNCERTAIN = r"#DW\S+\s.*="
_STRAY = r"#DW(?=\s|$)"
_CONTINUES = r"\s*[^\s=#]+="


class Source:
    """Text from one place, as lines with their numbers. `of_file` is false for
    the words of an option."""

    def __init__(
        self, name: str, lines: list[tuple[int, str]], of_file: bool = True
    ) -> None:
        self.name = name
        self.lines = lines
        self.of_file = of_file

    def place(self, number: int) -> str:
        """Where a line is, for a message."""
        if self.of_file:
            return f"{self.name}:{number}"
        if len(self.lines) > 1:
            return f"{self.name}, line {number}"
        return self.name


def numbered(text: str) -> list[tuple[int, str]]:
    """The lines of a text, from 1."""
    return list(enumerate(text.split("\n"), 1))


def warn(prog: str, text: str) -> None:
    """Say it on standard error. flux run and flux alloc become another program
    next, and what is in a buffer then is lost."""
    print(f"flux-{prog}: warning: {text}", file=sys.stderr, flush=True)


def header(name: str, text: str) -> tuple[Source, list[str]]:
    """The #DW lines of a script, and complaints about those that come too late.

    Directives are in the header: up to the first line that is neither blank nor a
    comment. A line that ends in a backslash goes on in the next one, which begins
    with #DW again (as with Slurm) or with a key=value word (as NNF writes them).

    Raises ValueError, with the place.
    """
    found = Source(name, [])
    late = []
    command = 0
    continued = False
    for number, line in numbered(text):
        line = line.rstrip()
        if command:
            if re.match(_STRAY, line):
                late.append(
                    f"{found.place(number)}: '{_MARK}' is not read below the first "
                    f"command, which is on line {command}"
                )
            continue
        directive = re.match(_DIRECTIVE, line) or re.match(_UNCERTAIN, line)
        if continued:
            if re.match(_STRAY, line):
                line = " " * len(_MARK) + line[len(_MARK) :]
            elif not re.match(_CONTINUES, line):
                raise ValueError(
                    f"{found.place(number - 1)}: ends in '\\', but line {number} "
                    f"does not go on with '{_MARK}' and a key=value word"
                )
        elif not directive:
            if line and not line.startswith("#"):
                command = number
            continue
        found.lines.append((number, line))
        continued = line.endswith("\\")
    return found, late


def option(value: str) -> Source:
    """The value of an option --dw. Raises ValueError or OSError."""
    if not value.strip():
        raise ValueError("--dw: there is no directive")
    if "\n" in value or value.lstrip().startswith("#"):
        return Source("--dw", numbered(value), of_file=False)
    if "/" not in value and not os.path.isfile(value):
        return Source("--dw", numbered(value), of_file=False)
    with open(value, encoding="utf-8", errors="replace") as stream:
        return Source(value, numbered(stream.read()))


def attribute(value: Any) -> Source:
    """The value of -S dw=. Raises ValueError."""
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("-S dw: is not a text of directives")
    return Source("-S dw", numbered("\n".join(texts)), of_file=False)


@functools.cache
def _site() -> Any:
    """The table [rabbit] of the instance. One submission may be of many jobs."""
    from flux_rabbit import rpc

    try:
        return rpc.Handle().call("config.get").get("rabbit", {})
    except OSError:
        return None


def configured(key: str) -> Any:
    """A key of the table [rabbit] of the instance, {} if it is not there; None
    without an instance that could be asked."""
    table = _site()
    for name in key.split(".") if table is not None else ():
        table = table.get(name, {})
    return table


@functools.cache
def rabbits_there() -> list[dict[str, Any]] | None:
    """The rabbits of the instance, None if it cannot be asked."""
    from flux_rabbit import rpc

    try:
        return rpc.rabbits(rpc.Handle())
    except OSError:
        return None


def check_rabbits(text: str) -> list[str]:
    """The rabbits that --dw-rabbits names. Raises ValueError, with the name of one
    that there is not."""
    from flux.hostlist import Hostlist

    try:
        chosen = list(Hostlist(text))
    except (OSError, ValueError):
        chosen = []
    if not chosen:
        raise ValueError(f"--dw-rabbits: '{text}' is not a hostlist of rabbits")
    there = rabbits_there()
    if there is None:
        return chosen
    known = {rabbit["name"] for rabbit in there}
    for name in chosen:
        if name not in known:
            names = Hostlist(sorted(known)).encode() or "none"
            raise ValueError(
                f"--dw-rabbits: there is no rabbit '{name}', there are {names}"
            )
    return chosen


class Request:
    """What one job asks for."""

    def __init__(
        self,
        prog: str,
        script: tuple[str, str] | None,
        options: list[str],
        jobspec: Any,
    ) -> None:
        """Collect it. `script` is a name and a text.

        Raises ValueError or OSError with a text for the user.
        """
        self.prog = prog
        self.jobspec = jobspec
        self.sources: list[Source] = []
        # None: the instance was not asked, or does not answer.
        self.judged: shapes.Directives | None = None
        # Whether a line may be the name of a preset, which only the instance knows.
        self.presets = False
        # What is asked for by --dw-rabbits and --dw-near, and which rabbits these are.
        self.where: dict[str, str] = {}
        self.rabbits: list[str] | None = None
        attributes = jobspec.attributes.get("system", {})
        if script:
            found, late = header(*script)
            if late and prog == "batch":
                raise ValueError(
                    late[0] + "; move it up, or indent it if it is text for others"
                )
            for text in late:
                warn(prog, text)
            self._add(found)
        for value in options:
            self._add(option(value), may_be_preset=True)
        # Whether anything is added to what Flux itself has been told.
        self.changed = bool(self.sources)
        if attributes.get("dw") is not None:
            self._add(attribute(attributes["dw"]), may_be_preset=True)

    def _add(self, source: Source, may_be_preset: bool = False) -> None:
        words = [line.strip() for _, line in source.lines if line.strip()]
        if words:
            self.sources.append(source)
        if may_be_preset and not all(word.startswith("#") for word in words):
            self.presets = True

    def text(self) -> str:
        """All directives. A blank line ends those of a source."""
        return "\n\n".join(
            "\n".join(line for _, line in source.lines) for source in self.sources
        )

    def place(self, line: int) -> str:
        """Where a line of text() comes from, "" if it is none."""
        for source in self.sources:
            if 0 < line <= len(source.lines):
                return source.place(source.lines[line - 1][0])
            line -= len(source.lines) + 1
        return ""

    def _values(self) -> dict[str, str]:
        """What variables of presets stand for. What a job gets only when it is
        submitted is its name here."""
        system = self.jobspec.attributes.get("system", {})
        return {
            **(configured("preset_variables") or {}),
            **dws.own_variables(),
            "JOBID": "jobid",
            "QUEUE": system.get("queue") or "queue",
            "BANK": system.get("bank") or "bank",
        }

    def _parse(self, presets: dict[str, Any] | None) -> shapes.Directives:
        values = self._values() if presets else None
        try:
            return dws.parse_directives(self.text(), presets, values)
        except dws.DirectiveError as exc:
            at, other = self.place(exc.line), self.place(exc.other)
            text = f"{at}: {exc}" if at else str(exc)
            raise ValueError(f"{text} ({other})" if other else text) from None

    def judge(self) -> None:
        """Check all directives together. Raises ValueError, with the place."""
        try:
            self.judged = self._parse(None)
            return
        except ValueError:
            if not self.presets:
                raise
        presets = configured("presets")
        # Without an instance whoever takes the job will judge it.
        if presets is not None:
            self.judged = self._parse(presets)

    def apply(self) -> None:
        """Put the directives into the jobspec. Raises ValueError."""
        if not self.sources:
            return
        self.judge()
        if self.changed:
            self.jobspec.setattr("system.dw", self.text())

    def place_at(self, where: dict[str, Any]) -> None:
        """Note where the nodes are to be: by "rabbits", a hostlist, and "near", a
        job or persistent storage, which only the instance knows. A value may be
        None. Raises ValueError."""
        self.where = {key: str(text) for key, text in where.items() if text is not None}
        for key, text in self.where.items():
            if not self.sources:
                raise ValueError(f"--dw-{key}: there are no #DW directives")
            self.jobspec.setattr(f"system.dw_{key}", text)
        if "rabbits" in self.where:
            self.rabbits = check_rabbits(self.where["rabbits"])

    def data_first(self) -> None:
        """Have data staged in before there are nodes. Raises ValueError."""
        if not self.sources:
            raise ValueError("--dw-data-first: there are no #DW directives")
        self.jobspec.setattr("system.dw_data_first", True)
