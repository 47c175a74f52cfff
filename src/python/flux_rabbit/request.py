# SPDX-License-Identifier: LGPL-3.0-only
#
# Collect the directives of a job at submission: #DW lines of its script, options --dw
# and -S dw=. libdws parses the directives; this file maps them to their files and lines
# for error messages. A line that looks like a request for storage and is not read is an
# error or a warning on standard error.
"""The #DW directives of a job that is being submitted."""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from flux_k8s import dws, texts

if TYPE_CHECKING:
    from flux_k8s import shapes

# Each submission with a directive imports this file, so it defers whatever only some
# submissions need: compiled patterns, dataclasses, a connection to the instance.
_MARK = "#DW"
# Invisible or deceptive characters around "#DW": libdws rejects these by name.
_ODD = r"[^\x00-\x7f\w]"
# libdws rejects "#dw" and names the right spelling.
_DIRECTIVE = rf"{_ODD}*#{_ODD}*(?i:DW)(?=\s|{_ODD}|$)"
_UNCERTAIN = r"#DW\S+\s.*="
_STRAY = r"#DW(?=\s|$)"
_CONTINUES = r"\s*[^\s=#]+="
# Stripped from the end of a line; libdws rejects other white space.
_BLANKS = " \t\r"
# Lines that a person may take for directives: "# DW jobdw", and an indented "#DW".
_COMMANDS = "jobdw|(create_|destroy_)persistent|persistentdw|copy_(in|out)|container"
_MISWRITTEN = rf"(?i:\s+#DW(?=\s|$)|\s*#\s+DW\s+({_COMMANDS})\b)"
_LATE = rf"{_STRAY}|(?i:#DW\s+({_COMMANDS})\b)"
_OF_SLURM = r"\s*#BB(_LUA)?(?=\s|$)"
# A line of Flux, which flux batch alone reads.
_OF_FLUX = r"\W*(?:flux|FLUX):.*(?:--(?:dw|coral2)\b|(?:-S|--setattr[=\s])\s*dw\b)"
# Variables of paths, and the text in place of a job id before submission.
_VARIABLE = r"\$\{?USER|\{\{id\}\}"
_NO_ID = "jobid"
# Prefixes of the environment variables of the file systems of directives.
_VARIABLES = {"jobdw": "DW_JOB_", "persistentdw": "DW_PERSISTENT_"}
# A service of dws-jobtap.so, to probe for the plugin: the plugin rejects an empty
# request, without it the service does not exist.
_SERVICE = "job-manager.dws.epilog-remove"


class Source:
    """Text from one place, as lines with their numbers. `of_file` is false for
    the words of an option."""

    def __init__(
        self, name: str, lines: list[tuple[int, str]], of_file: bool = True
    ) -> None:
        self.name = name
        self.lines = lines
        self.of_file = of_file
        # Warnings about lines that are not read.
        self.notes: list[str] = []

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
    """Print a warning on standard error. Flush it: flux run and flux alloc exec another
    program next, which discards buffers."""
    print(f"flux-{prog}: warning: {texts.clean(text)}", file=sys.stderr, flush=True)


def header(name: str, text: str, of_flux: bool = False) -> tuple[Source, list[str]]:
    """The #DW lines of a script, and complaints about misplaced or miswritten ones,
    which are not read. `of_flux`: also note "# flux:" lines that ask for storage, which
    only flux batch reads.

    Directives are in the header: up to the first line that is neither blank nor a
    comment. A line that ends in a backslash goes on in the next one, which begins
    with #DW again (as with Slurm) or with a key=value word (as NNF writes them).

    Raises ValueError, with the place.
    """
    found = Source(name, [])
    unread = []
    command = 0
    continued = False
    for number, line in numbered(text):
        line = line.rstrip(_BLANKS)
        if command:
            if re.match(_LATE, line):
                unread.append(
                    f"{found.place(number)}: '{_MARK}' is not read below the first "
                    f"command, which is on line {command}; move it up, or indent it "
                    "if it is text for others"
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
            if re.match(_MISWRITTEN, line):
                unread.append(
                    f"{found.place(number)}: '{line.strip()[:40]}' is not read: a "
                    f"directive begins with '{_MARK}' at the beginning of its line, "
                    f"a comment about one with '#{_MARK}'"
                )
            elif re.match(_OF_SLURM, line):
                found.notes.append(
                    f"{found.place(number)}: '#BB' is not read, a directive begins "
                    f"with '{_MARK}'"
                )
            elif of_flux and re.match(_OF_FLUX, line):
                found.notes.append(
                    f"{found.place(number)}: '# flux:' is read by flux batch only"
                )
            elif line and not line.startswith("#"):
                command = number
            continue
        found.lines.append((number, line))
        continued = line.endswith("\\")
    return found, unread


def warn_unread(prog: str, script: tuple[str, str]) -> None:
    """Warn about the #DW lines of a script that is an argument of the job's program."""
    try:
        found, unread = header(*script)
    except ValueError as exc:
        unread = [str(exc)]
    else:
        unread = [found.place(number) for number, _ in found.lines] + unread
    if unread:
        place = unread[0].partition(": ")[0]
        warn(
            prog,
            f"{place}: '{_MARK}' is not read in an argument of a program: run "
            f"{script[0]} by its own name, or ask by --dw",
        )


def _asks(lines: list[tuple[int, str]]) -> bool:
    """Whether any line is not a comment. Slurm's "#BB" counts: libdws rejects it."""
    words = [line.strip() for _, line in lines]
    return any(re.match(r"[^#]|(?i:#DW|#BB(\s|$))", word) for word in words)


def option(value: str) -> Source:
    """The value of an option --dw. Raises ValueError or OSError."""
    is_text = "\n" in value or re.match(rf"(\s|{_ODD})*(#|$)", value)
    if is_text or ("/" not in value and not os.path.isfile(value)):
        found = Source("--dw", numbered(value), of_file=False)
    else:
        with open(value, encoding="utf-8", errors="replace") as stream:
            found = Source(value, numbered(stream.read()))
    if not _asks(found.lines):
        at = f"--dw: {found.name}" if found.of_file else "--dw"
        raise ValueError(f"{at}: there is no directive")
    return found


def attribute(value: Any) -> Source:
    """The value of -S dw=. Raises ValueError."""
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("-S dw: is not a text of directives")
    return Source("-S dw", numbered("\n".join(texts)), of_file=False)


@functools.cache
def _site() -> Any:
    """The table [rabbit] of the instance, None if it cannot be asked. Cached, as one
    submission may create many jobs."""
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


@functools.cache
def service_there() -> bool:
    """Whether the instance acts on directives. True if it cannot be asked."""
    from flux_rabbit import rpc

    try:
        rpc.Handle().call(_SERVICE)
    except rpc.Absent:
        return False
    except OSError:
        pass  # a guest may not ask, and nobody may without a job
    return True


def check_rabbits(text: str) -> list[str]:
    """The rabbits that --dw-rabbits names. Raises ValueError with the name of an
    unknown one."""
    from flux.hostlist import Hostlist

    try:
        chosen = dws.expand_hosts(text)
    except ValueError:
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
    """The storage request of one job."""

    def __init__(
        self,
        prog: str,
        script: tuple[str, str] | None,
        options: list[str],
        jobspec: Any,
    ) -> None:
        """Collect the directives. `script` is a name and a text.

        Raises ValueError or OSError with a text for the user.
        """
        self.jobspec = jobspec
        self.sources: list[Source] = []
        # None: the instance was not asked, or does not answer.
        self.judged: shapes.Directives | None = None
        # Whether a line may be the name of a preset, which only the instance knows.
        self.presets = False
        # The values of --dw-rabbits and --dw-near, and the rabbits of --dw-rabbits.
        self.where: dict[str, str] = {}
        self.rabbits: list[str] | None = None
        self.prog = prog
        attributes = jobspec.attributes.get("system", {})
        if script:
            found, unread = header(*script, of_flux=prog != "batch")
            if unread and prog == "batch":
                raise ValueError(unread[0])
            for text in unread + found.notes:
                warn(prog, text)
            self._add(found)
        for value in options:
            self._add(option(value), may_be_preset=True)
        # Whether the jobspec lacks directives that were found here.
        self.changed = bool(self.sources)
        if attributes.get("dw") is not None:
            found = attribute(attributes["dw"])
            if not any(line.strip() for _, line in found.lines):
                warn(prog, "-S dw: is empty, and asks for no storage")
            self._add(found, may_be_preset=True)

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
        """The values of variables in presets. Placeholders stand for values that Flux
        assigns at submission."""
        system = self.jobspec.attributes.get("system", {})
        return {
            **dws.own_variables(),
            "JOBID": _NO_ID,
            "QUEUE": system.get("queue") or "queue",
            "BANK": system.get("bank") or "bank",
        }

    def _parse(self, presets: dict[str, Any] | None) -> shapes.Directives:
        text = self.text()
        values = None
        if presets:
            values = self._values()
        elif re.search(_VARIABLE, text):
            values = {**dws.own_variables(), "JOBID": _NO_ID}
        try:
            return dws.parse_directives(text, presets, values)
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
        # Without an instance, the one that takes the job checks the directives.
        if presets is not None:
            self.judged = self._parse(presets)

    def apply(self) -> None:
        """Put the directives into the jobspec. Raises ValueError."""
        if not self.sources:
            return
        self.judge()
        if self.changed:
            self.jobspec.setattr("system.dw", self.text())

    def inherited(self) -> bool:
        """Whether the enclosing job provides all requested file systems, by name, and
        nothing else is requested."""
        directives = self.judged["directives"] if self.judged else []
        return bool(directives) and all(
            entry["command"] in _VARIABLES
            and _VARIABLES[entry["command"]] + entry["args"]["name"].replace("-", "_")
            in os.environ
            for entry in directives
        )

    def find_service(self, binding: bool) -> None:
        """Ensure that the directives take effect. An instance that is a job has no
        rabbits: its jobs use the file systems of the enclosing job. `binding`: the job
        requests more than the file systems.

        Raises ValueError if no instance would act on the directives.
        """
        if not self.sources or service_there():
            return
        if not binding and self.inherited():
            warn(
                self.prog,
                "this instance has no rabbits: the job has the file systems of the "
                "batch job around it, its directives are not acted on",
            )
            self.jobspec.attributes["system"].pop("dw", None)
            return
        raise ValueError(
            "the job asks for rabbit storage that this instance does not have: "
            "dws-jobtap.so was not loaded. Jobs inside a batch job use what that has, "
            "or are submitted by flux --parent"
        )

    def place_at(self, where: dict[str, Any]) -> None:
        """Record the requested place of the nodes: "rabbits", a hostlist, and "near", a
        job or persistent storage, which only the instance can resolve. A value may be
        None. Raises ValueError."""
        self.where = {key: str(text) for key, text in where.items() if text is not None}
        for key, text in self.where.items():
            if not self.sources:
                raise ValueError(f"--dw-{key}: there are no #DW directives")
            self.jobspec.setattr(f"system.dw_{key}", text)
        if "rabbits" in self.where:
            self.rabbits = check_rabbits(self.where["rabbits"])

    def data_first(self) -> None:
        """Stage data in before nodes are allocated. Raises ValueError."""
        if not self.sources:
            raise ValueError("--dw-data-first: there are no #DW directives")
        self.jobspec.setattr("system.dw_data_first", True)
