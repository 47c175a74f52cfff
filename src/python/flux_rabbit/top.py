# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit top: a screen that is redrawn at an interval, and the keys that change it.
# screen() depends on the Model alone, so tests need no terminal.
"""Live view."""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import re
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from flux_k8s.workflow import raise_exception

from flux_rabbit import cli, rpc, skip_stage_out, status, term
from flux_rabbit.listing import age_of, reasons_for, state_of, waits_for
from flux_rabbit.term import Line
from flux_rabbit.timeline import STATES
from flux_rabbit.units import Size, duration

Object = dict[str, Any]


def _or_none(age_s: float | None) -> float:
    """Jobs without an age come last."""
    return -math.inf if age_s is None else age_s


SORTS: dict[str, Callable[[Object], Any]] = {
    "time": lambda job: -_or_none(age_of(job)),
    "state": lambda job: state_of(job),
    "user": lambda job: cli.user_name(job["userid"]),
    "id": lambda job: job["id"],
    "rabbits": lambda job: job.get("rabbits", ""),
}
FILTERS = ("", "depend", "queued", "run", *STATES)
MAPS = ("use", "health")
KEYS = (
    "q:quit enter:show c:cancel m:mine s:sort r:reverse f:state /:find h:map p:pause "
    "jk:move +-:speed"
)
MARK = "▶"  # before the job that the keys are about
BLOCK = "■"
# Blocks without colour, from heat0 (empty) to heat5 (full, or broken).
BLOCKS = "·▁▃▅▆█"
HEALTH = {"Ready": "heat1", "Disabled": "heat3", "Drained": "heat3"}
EVENTS_KEPT = 200
FASTEST_S, SLOWEST_S = 0.25, 60.0


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    parser.add_argument(
        "-i",
        "--interval",
        type=cli.seconds,
        default=2.0,
        metavar="SECONDS",
        help="between two looks (default: 2)",
    )
    parser.add_argument(
        "-c", "--count", type=cli.count, metavar="N", help="end after so many looks"
    )
    parser.add_argument("--sort", choices=tuple(SORTS), default="time")
    parser.add_argument("--svg", metavar="FILE", help="write the last screen as SVG")
    parser.add_argument(
        "--size",
        metavar="COLSxROWS",
        help="of the screen (default: that of the terminal)",
    )
    return (
        "Watch rabbits and jobs: a map of all rabbits by how full or how healthy they "
        "are, the jobs in their states, and what has changed. Where the output is not "
        "a terminal, or one that cannot move, one screen is printed. Keys:\n  "
        + KEYS.replace(" ", "\n  "),
        (
            "flux rabbit top -i 1",
            "flux rabbit top -c 1 --size 120x40",
            "flux rabbit top -c 10 -i 0.5 --svg top.svg --size 100x30",
        ),
    )


@dataclass
class Model:
    """The facts from the module, and the settings of the view."""

    status: Object = field(default_factory=dict)
    rabbits: list[Object] = field(default_factory=list)
    jobs: list[Object] = field(default_factory=list)
    events: deque[tuple[float, Line]] = field(
        default_factory=lambda: deque(maxlen=EVENTS_KEPT)
    )
    rate: float = 0.0
    now: float = 0.0
    sort: str = "time"
    reverse: bool = False
    only: str = ""
    search: str = ""
    typing: bool = False
    map: str = "use"
    paused: bool = False
    scroll: int = 0
    chooses: bool = False  # whether keys act on a selected job
    row: int = 0  # of the selected job, and its id
    selected: int | None = None
    mine: bool = False
    opened: int | None = None  # the job shown in place of the list, and its page
    page: list[Line] = field(default_factory=list)
    asks: Object | None = None  # the job to cancel if the user confirms
    cancels: int | None = None  # the job that the user has confirmed to cancel
    note: str = ""
    interval: float = 2.0
    error: str = ""
    looks: int = 0
    plain: bool = False  # without colour

    def update(
        self, now: float, state: Object, rabbits: list[Object], jobs: list[Object]
    ) -> None:
        """Replace the facts by those of `now`, and record the changes."""
        first = self.looks == 0
        self.looks += 1
        before = {job["id"]: job for job in self.jobs}
        after = {job["id"]: job for job in jobs}
        changes = 0
        if not first:
            for number, job in after.items():
                changes += self._note(now, before.get(number), job)
            for number in before.keys() - after.keys():
                changes += 1
                self._event(now, number, [("gone", "dim")])
            old = {rabbit["name"]: rabbit["state"] for rabbit in self.rabbits}
            for rabbit in rabbits:
                was = old.get(rabbit["name"], rabbit["state"])
                if was != rabbit["state"]:
                    text = f"{rabbit['name']}: {was} → {rabbit['state']}"
                    self.events.append((now, [(text, "warn")]))
            elapsed = now - self.now
            self.rate = changes / elapsed if elapsed > 0 else 0.0
        self.now, self.status = now, state
        self.rabbits, self.jobs, self.error = rabbits, jobs, ""

    def _note(self, now: float, old: Object | None, job: Object) -> int:
        is_now = state_of(job)
        if old is None:
            self._event(now, job["id"], [("new in ", "dim"), (is_now, is_now)])
            return 1
        was = state_of(old)
        if job["exception"] and not old["exception"]:
            self._event(now, job["id"], [("exception", "bad")])
        if was == is_now:
            return 0
        self._event(now, job["id"], [(was, was), (" → ", "dim"), (is_now, is_now)])
        return 1

    def _event(self, now: float, number: int, what: Line) -> None:
        known = [(text, style if style in term.STYLES else "") for text, style in what]
        self.events.append((now, [(f"{rpc.f58(number):>12} ", ""), *known]))

    def chosen(self) -> list[Object]:
        """The jobs to show, in order."""
        jobs = [
            job
            for job in self.jobs
            if (not self.only or state_of(job) == self.only)
            and (not self.mine or job["userid"] == os.getuid())
            and (not self.search or self.search in _searchable(job))
        ]
        jobs.sort(key=SORTS[self.sort], reverse=self.reverse)
        return jobs

    def choose(self, jobs: list[Object], room: int) -> None:
        """Keep the selected job in view. If it is gone, select its successor."""
        ids = [job["id"] for job in jobs]
        if self.selected in ids:
            self.row = ids.index(self.selected)
        self.row = max(0, min(self.row, len(ids) - 1))
        self.selected = ids[self.row] if ids else None
        self.scroll = max(min(self.scroll, self.row), self.row - room + 1)

    def move(self, step: int) -> None:
        """Move down or up, in the list of jobs or in the page of one."""
        if self.page:
            self.scroll = max(0, min(self.scroll + step, len(self.page) - 1))
            return
        self.row, self.selected = max(0, self.row + step), None

    def key(self, key: str) -> bool:
        """Handle a key; False to quit."""
        self.note = ""
        if self.typing:
            self._type(key)
        elif self.asks is not None:
            self.cancels = self.asks["id"] if key == "y" else None
            self.note = "" if self.cancels else "not canceled"
            self.asks = None
        elif self.opened is not None and key in ("q", "\r", "\n", "\x1b"):
            self.opened, self.page, self.scroll = None, [], 0
        elif key in ("q", "\x03", "\x04"):
            return False
        elif key == "s":
            self.sort = _next(tuple(SORTS), self.sort)
        elif key == "r":
            self.reverse = not self.reverse
        elif key == "f":
            self.only = _next(FILTERS, self.only)
        elif key == "h":
            self.map = _next(MAPS, self.map)
        elif key == "p":
            self.paused = not self.paused
        elif key == "/":
            self.typing, self.search = True, ""
        elif key == "m":
            self.mine = not self.mine
        elif key in ("\r", "\n"):
            self.opened, self.scroll = self.selected, 0
        elif key == "c":
            number = self.opened or self.selected
            found = [job for job in self.jobs if job["id"] == number]
            self.asks = found[0] if found else None
            self.note = "" if found else "there is no job to cancel"
        elif key in ("j", "\x1b[B", " ", "\x1b[6~"):
            self.move(1 if key in ("j", "\x1b[B") else 10)
        elif key in ("k", "\x1b[A", "\x1b[5~"):
            self.move(-10 if key == "\x1b[5~" else -1)
        elif key == "+":
            self.interval = max(FASTEST_S, self.interval / 2)
        elif key == "-":
            self.interval = min(SLOWEST_S, self.interval * 2)
        return True

    def _type(self, key: str) -> None:
        if key in ("\r", "\n", "\x1b"):
            self.typing = False
            if key == "\x1b":
                self.search = ""
        elif key in ("\x7f", "\b"):
            self.search = self.search[:-1]
        elif key.isprintable():
            self.search += key


def _searchable(job: Object) -> str:
    words = (rpc.f58(job["id"]), cli.user_name(job["userid"]), waits_for(job))
    return " ".join((*words, job.get("rabbits", ""), state_of(job)))


def _next(words: tuple[str, ...], word: str) -> str:
    return words[(words.index(word) + 1) % len(words)]


# Lines of the screen


def screen(model: Model, width: int, height: int) -> list[Line]:
    """Exactly `height` lines of at most `width` columns."""
    if model.page:
        lines = model.page[model.scroll : model.scroll + height - 1]
        lines = [*lines, *[[] for _ in range(height - 1 - len(lines))]]
        return [term.fit(line, width) for line in [*lines, _foot(model, width)]]
    lines = _head(model, width)
    lines += _map(model, width, max(2, height // 4))
    below = _events(model, max(2, min(len(model.events), height // 5)))
    foot = _foot(model, width)
    room = max(2, height - len(lines) - len(below) - 1)
    lines += _queue(model, room)
    lines = lines[: height - len(below) - 1]
    lines += [[] for _ in range(height - len(below) - 1 - len(lines))]
    return [term.fit(line, width) for line in [*lines, *below, foot]][:height]


def _head(model: Model, width: int) -> list[Line]:
    clock = time.strftime("%H:%M:%S", time.localtime(model.now))
    if not model.status:
        return [[("flux rabbit top  ", "bold"), (model.error or "...", "bad")]]
    good, text = status.health(model.status)
    line: Line = [("flux rabbit top ", "bold"), (f"{clock} ", "")]
    line += [("● ", "good" if good else "bad"), (text, "")]
    if model.paused:
        line.append(("  paused", "warn"))
    if model.error:
        line = [("flux rabbit top ", "bold"), (clock, ""), (f" {model.error}", "bad")]
    return [line, _space(model, width), *_counts(model, width)]


def _space(model: Model, width: int) -> Line:
    total = model.status["rabbits"]
    capacity, used, foreign = total["capacity"], total["used"], total["foreign"]
    line: Line = [("space ", "dim")]
    line += status.bar(
        [(used, "run"), (foreign, "cleanup")],
        capacity,
        max(10, min(50, width - 60)),
    )
    line.append((f" {Size(used)} of {Size(capacity)}", ""))
    if foreign:
        line.append((f", {Size(foreign)} foreign", "dim"))
    return line


def _counts(model: Model, width: int) -> list[Line]:
    line: Line = [("jobs ", "dim"), (f"{len(model.jobs)}", "bold")]
    for state in STATES:
        count = model.status["states"].get(state, 0)
        if count:
            line += [(f"  {state} ", state), (str(count), "bold")]
    rate = (f"  {model.rate:.1f} changes/s", "dim")
    if term.width_of(line) + len(rate[0]) <= width:
        line.append(rate)
    return term.fold(line, width)


def _block(model: Model, style: str) -> str:
    """The block of a rabbit; without colour its shape shows the heat."""
    return BLOCKS[int(style[-1])] if model.plain else BLOCK


def _heat(model: Model, rabbit: Object) -> str:
    if model.map == "health":
        return HEALTH.get(rabbit["state"], "heat5")
    if not rabbit["capacity"]:
        return "heat0"
    part = 1 - rabbit["free"] / rabbit["capacity"]
    # Any use is at least heat1; heat5 is for nearly full rabbits.
    return "heat" + str(0 if part <= 0 else min(5, 1 + math.floor(part * 4.4)))


def _map(model: Model, width: int, rows: int) -> list[Line]:
    """Every rabbit: by name where there is room, as a block where not."""
    total = model.status.get("rabbits", {})
    counts = status.groups(total.get("states", {}))
    words = "  ".join(f"{n} {name}" for name, n in counts.items() if n)
    scale: Line = [(f"rabbits by {model.map}: ", "dim"), (words, ""), ("   ", "")]
    if model.map == "use":
        steps = [f"heat{n}" for n in range(6)]
        scale += [("0% ", "dim"), *[(_block(model, s), s) for s in steps]]
        scale.append((" 100%", "dim"))
    lines: list[Line] = [[], scale]
    longest = max((len(r["name"]) for r in model.rabbits), default=0)
    cell = longest + 8
    across = max(1, width // cell)
    if len(model.rabbits) <= across * rows:
        for at in range(0, len(model.rabbits), across):
            line: Line = []
            for rabbit in model.rabbits[at : at + across]:
                used = 1 - rabbit["free"] / max(1, rabbit["capacity"])
                word = "" if rabbit["state"] == "Ready" else rabbit["state"][:4]
                style = _heat(model, rabbit)
                line.append((f"{_block(model, style)} ", style))
                line.append((f"{rabbit['name']:{longest}} ", ""))
                line.append((f"{word or f'{100 * used:.0f}%':<5}", "dim"))
            lines.append(line)
        return lines
    # Full rows in the order of names, which is mostly the order on the floor.
    cell = 2 if len(model.rabbits) <= width // 2 * rows else 1
    across = width // cell
    # Without room for a block each, a block shows the worst of several neighbours.
    each = math.ceil(len(model.rabbits) / (across * rows))
    styles = [_heat(model, rabbit) for rabbit in model.rabbits]
    styles = [max(styles[at : at + each]) for at in range(0, len(styles), each)]
    for at in range(0, len(styles), across):
        part = styles[at : at + across]
        lines.append([(f"{_block(model, style):{cell}}", style) for style in part])
    if each > 1:
        note = (f"  {each} rabbits a block, the worst shows", "dim")
        if term.width_of(lines[-1]) + len(note[0]) > width:
            lines.append([])
        lines[-1].append(note)
    return lines


def _queue(model: Model, room: int) -> list[Line]:
    jobs = model.chosen()

    def mark(job: Object) -> str:
        return MARK if model.chooses and job["id"] == model.selected else ""

    head = f"{'JOBID':>12} {'USER':8} {'STATE':9} {'TIME':>7} {'RABBITS':16} WAITS FOR"
    lines: list[Line] = [[], [(f"{head:<200}", "head")]]
    room = max(0, room - len(lines))
    if model.chooses:
        model.choose(jobs, room)
    model.scroll = max(0, min(model.scroll, len(jobs) - room))
    for job in jobs[model.scroll : model.scroll + room]:
        workflow = job.get("workflow") or {}
        age_s = age_of(job)
        age = "" if age_s is None else duration(age_s)
        state = state_of(job)
        style = state if state in term.STYLES else ""
        wrong = job["exception"] or workflow.get("status") == "Error"
        lines.append(
            [
                (f"{mark(job)}{rpc.f58(job['id']):>{12 - len(mark(job))}} ", "bold"),
                (f"{cli.user_name(job['userid'])[:8]:8} ", ""),
                (f"{state:9} ", style),
                (f"{age:>7} ", ""),
                (f"{_cut(job.get('rabbits', ''), 16):16} ", "dim"),
                (waits_for(job), "bad" if wrong else ""),
            ]
        )
    return lines


def _cut(text: str, width: int) -> str:
    """The text cut to `width`, with a plus at the end as in flux jobs."""
    return text if len(text) <= width else f"{text[: width - 1]}+"


def _events(model: Model, count: int) -> list[Line]:
    lines: list[Line] = [[("changes", "dim")]]
    for when, what in list(model.events)[-count:]:
        clock = time.strftime("%H:%M:%S", time.localtime(when))
        lines.append([(f"{clock} ", "dim"), *what])
    return lines


def _foot(model: Model, width: int) -> Line:
    if not model.looks:
        return [("reading the jobs", "dim")]
    if model.typing:
        return [("/", "bold"), (model.search, "bold"), ("▏", "dim")]
    if model.asks is not None:
        return [(_question(model.asks), "warn")]
    if model.note:
        return [(model.note, "warn")]
    if model.page:
        return [("enter:back c:cancel jk:scroll", "dim")]
    order = f"by {model.sort}{' reversed' if model.reverse else ''}"
    shown = f" only {model.only}" if model.only else ""
    shown += " mine" if model.mine else ""
    shown += f" /{model.search}" if model.search else ""
    text = f"{order}{shown} {duration(model.interval)} "
    room = width - len(text)
    keys = KEYS if len(KEYS) <= room else KEYS[: room + 1].rpartition(" ")[0]
    return [(text, ""), (keys, "dim")]


def _question(job: Object) -> str:
    """The question before a job is canceled. To cancel it in its epilog skips the rest
    of stage-out, so name the data."""
    left = skip_stage_out.lost(job) if job["phase"] == "epilog" else []
    lost = f"; not copied out then: {', '.join(left)}" if left else ""
    return f"Cancel {rpc.f58(job['id'])}, in {state_of(job)}? y/n{lost}"


# The terminal


# Queued jobs for which a screen explains why they have no nodes yet.
MOST_REASONS = 30


def look(
    handle: rpc.Handle, model: Model, early: Callable[[], None] | None = None
) -> None:
    """Update the model from the module.

    Args:
        early: called the first time before the jobs are read, which takes longest.
    """
    try:
        state = rpc.status(handle)
        rabbits = rpc.rabbits(handle)
        if early and not model.looks:
            model.now, model.status, model.rabbits = time.time(), state, rabbits
            early()
        jobs = [job for page in rpc.job_pages(handle) for job in page]
        reasons_for(handle, MOST_REASONS)(jobs)
        model.update(time.time(), state, rabbits, jobs)
    except rpc.RpcError as exc:
        model.error = f"the dws module does not answer: {exc.strerror}"
        model.now = time.time()


def _obey(handle: rpc.Handle, model: Model, width: int) -> None:
    """Carry out the keys that need Flux: show a job, cancel one."""
    if model.cancels is not None:
        number, model.cancels = model.cancels, None
        try:
            raise_exception(handle, number, "cancel", "")
            model.note = f"{rpc.f58(number)} is canceled"
        except OSError as exc:
            model.note = f"{rpc.f58(number)}: {exc.strerror}"
    if model.opened is not None:
        from flux_rabbit import show

        try:
            model.page = show.Report(handle, model.opened).screen(width, True)
        except OSError as exc:
            model.note = f"{rpc.f58(model.opened)}: {exc.strerror}"
            model.opened, model.page = None, []


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Unbuffered keys and the alternate screen; restores the terminal at the end."""
    import termios
    import tty

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    fd = sys.stdin.fileno()
    saved = termios.tcgetattr(fd)
    signal.signal(signal.SIGTERM, end)
    try:
        tty.setcbreak(fd)
        sys.stdout.write("\033[?1049h\033[?25l")
        yield
    finally:
        sys.stdout.write("\033[?25h\033[?1049l")
        sys.stdout.flush()
        termios.tcsetattr(fd, termios.TCSADRAIN, saved)


_KEY = re.compile(r"\x1b\[[0-9;]*[~A-Za-z]|.", re.DOTALL)


def _keys(timeout_s: float) -> list[str]:
    """The keys typed before the timeout."""
    ready, _, _ = select.select([sys.stdin], [], [], max(0.0, timeout_s))
    if not ready:
        return []
    data = os.read(sys.stdin.fileno(), 1024).decode("utf-8", errors="replace")
    # End of input quits.
    return _KEY.findall(data) if data else ["q"]


def _draw(model: Model, size: tuple[int, int], colour: bool) -> None:
    rows = screen(model, *size)
    body = "\r\n".join(f"{term.ansi(row, colour)}\033[K" for row in rows)
    sys.stdout.write(f"\033[H{body}")
    sys.stdout.flush()


def _interact(
    handle: rpc.Handle, model: Model, args: argparse.Namespace, colour: bool
) -> tuple[int, int]:
    """Draw and listen until the end; returns the size of the screen."""
    looks = 0
    following = 0.0
    model.chooses = True
    with _raw_terminal():
        while True:
            size = _size(args)
            if time.monotonic() >= following:
                if not model.paused:
                    look(handle, model, lambda: _draw(model, _size(args), colour))
                    _obey(handle, model, size[0])
                    looks += 1
                following = time.monotonic() + model.interval
                _draw(model, size, colour)
                if args.count and looks >= args.count:
                    return size
            # A window that changes its size is drawn anew without a key.
            for key in _keys(min(following - time.monotonic(), 0.25)):
                if not model.key(key):
                    return size
                if model.cancels or (model.opened and not model.page):
                    _obey(handle, model, size[0])
                _draw(model, _size(args), colour)
            if _size(args) != size:
                sys.stdout.write("\033[2J")
                _draw(model, _size(args), colour)


def _size(args: argparse.Namespace) -> tuple[int, int]:
    if args.size:
        columns, _, rows = args.size.partition("x")
        try:
            return max(20, cli.count(columns)), max(8, cli.count(rows))
        except argparse.ArgumentTypeError:
            raise cli.Failure("--size: expected COLSxROWS") from None
    columns, rows = term.size(sys.stdout)
    return columns, rows


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    handle = rpc.Handle()
    plain = not (args.svg or cli.colour(args))
    model = Model(interval=max(FASTEST_S, args.interval), sort=args.sort, plain=plain)
    size = _size(args)
    if args.json:
        look(handle, model)
        parts = {"status": model.status, "rabbits": model.rabbits, "jobs": model.jobs}
        cli.print_json({**parts, "error": model.error})
    elif term.moves(sys.stdout) and sys.stdin.isatty() and not args.svg:
        size = _interact(handle, model, args, cli.colour(args))
    else:
        for n in range(args.count or 1):
            if n:
                time.sleep(model.interval)
            look(handle, model)
        if not args.svg:
            term.show(screen(model, *size), cli.colour(args))
    if args.svg:
        picture = term.svg(screen(model, *size), size[0], "flux rabbit top")
        pathlib.Path(args.svg).write_text(picture, encoding="utf-8")
        print(args.svg)
    return cli.EXIT_ERROR if model.error else 0
