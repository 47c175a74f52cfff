# Each row of the table of commands in doc/admin/rights.rst, done by the owner of the
# instance and by two users: rights.py pretend|real USERID OTHER JOB JOB2 OLD FS
# SPDX-License-Identifier: LGPL-3.0-only
#
# "real" is with setpriv, as these users; "pretend" sends what is sent in their name,
# so that services alone can refuse it. JOB, JOB2 and OLD are jobs of USERID, of which
# OLD is over; FS is his as well, and his jobs 7 and 8 have lost data.
"""Go through the table of rights."""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

from flux_rabbit.cli import COMMANDS

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGE = TOP / "doc" / "admin" / "rights.rst"


@dataclass(frozen=True)
class Trial:
    """How a row is tried.

    Attributes:
        words: the command; {job}, {job2}, {old}, {fs}, {user}, {userid} are filled in.
        shows: what is in the output where the row says yes.
        part: what is in it where the row says part, when `shows` is not.
        owner: what the owner does instead, where it can not be done twice.
        real: only real users can be told apart.
        before: what the owner does first.
        undo: what the owner does after a yes.
        elsewhere: the test that tries it.
        status: an exit status besides 0 that is good as well.
    """

    words: str
    shows: str = ""
    part: str = ""
    owner: str = ""
    real: bool = False
    before: str = ""
    undo: str = ""
    elsewhere: str = ""
    status: int = 0


JOB_JSON = r'"id": {job}\b'
TRIALS = {
    "status": Trial("status --json", r'"jobs": 2\b'),
    "list": Trial("list --json", r'"reason"', r'"free"'),
    "df": Trial("df --json", r'"used"', r'"free"'),
    "jobs": Trial("jobs --json", JOB_JSON),
    "top": Trial("top --json -c 1", JOB_JSON),
    "show": Trial("show --json {job}", JOB_JSON),
    # of a job that was canceled
    "watch": Trial("watch {old}", "Proposal", status=1),
    "timeline": Trial("timeline {job}", "Proposal"),
    "stats": Trial("stats {old}", "Proposal"),
    "report": Trial("report --json", r'"canceled": ', real=True),
    "persistent list": Trial("persistent list", "{fs}"),
    "persistent show": Trial("persistent show {fs}", "{fs}"),
    # Both submit a job, which without flux-security the owner alone can sign.
    "persistent create": Trial("", elsewhere="t/t1032-persistent.t"),
    "persistent destroy": Trial("", elsewhere="t/t1032-persistent.t"),
    "persistent extend": Trial("persistent extend {fs} --expires 2h"),
    "retry": Trial("", elsewhere="t/t3013-retry.t"),
    "quota": Trial("quota --json --user {userid}", r'"limits"'),
    "quota --all": Trial("quota --json --all", r'"limits"'),
    "presets": Trial("presets", "tiny"),
    "profiles": Trial("profiles", "placeholder|default|template"),
    "logs": Trial("", elsewhere="t/t3004-guests.t"),
    "losses": Trial("losses --json", r'"id": 7\b'),
    "losses --ack": Trial("losses --ack 7", owner="losses --ack 8"),
    "drain": Trial("drain --reason x rabbit1", "drained", undo="undrain rabbit1"),
    "undrain": Trial("undrain rabbit1", "undrained", before="drain --reason x rabbit1"),
    "disable": Trial("disable --reason x rabbit1", undo="enable rabbit1"),
    "enable": Trial("enable rabbit1"),
    "release": Trial(
        "release --yes {job}", "The job is ending", owner="release --yes {job2}"
    ),
    "selftest": Trial("selftest --types none --timeout 300", r", 0 failed"),
}

CELL = re.compile(r"^   (?:\* |  )- (.*)")


def rows() -> dict[str, list[str]]:
    """By command the first word for the owner, a user of his own and of others'."""
    text = PAGE.read_text(encoding="utf8")
    table = text.split("Commands\n-----", 1)[1].split("Attributes of jobs\n---", 1)[0]
    cells = [found[1] for found in map(CELL.match, table.splitlines()) if found]
    return {
        cells[i].strip("`"): [re.split(r"\W", cell)[0] for cell in cells[i + 1 : i + 4]]
        for i in range(4, len(cells), 4)
    }


def missing(table: dict[str, list[str]]) -> list[str]:
    """Commands that the page or TRIALS lacks."""
    there = {name.split()[0] for name in table}
    found = [f"no row for {name}" for name in sorted(set(COMMANDS) - there)]
    found += [f"no command {name}" for name in sorted(there - set(COMMANDS))]
    found += [f"no trial of {name}" for name in sorted(set(table) - set(TRIALS))]
    return found + [f"no row for {name}" for name in sorted(set(TRIALS) - set(table))]


class Users:
    """Runs trials as the owner or as another user."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._real = args.mode == "real"
        self._args = args

    def run(self, words: str, user: int | None) -> tuple[int, str]:
        """Exit status and output of a command of a user; None: the owner."""
        command = [os.environ["FLUX"], "rabbit", *words.split()]
        env = dict(os.environ)
        if user is not None and self._real:
            command = [
                *["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"],
                *command,
            ]
            env["HOME"] = "/"
        elif user is not None:
            env.update(FLUX_HANDLE_USERID=str(user), FLUX_HANDLE_ROLEMASK="0x2")
        done = subprocess.run(
            command,
            cwd="/",
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def answer(self, trial: Trial, words: str, user: int | None) -> tuple[str, str]:
        """yes, part or no, and what was printed."""
        values = {**vars(self._args), "user": "owner" if user is None else user}
        if trial.before:
            self.run(trial.before, None)
        code, text = self.run(words.format(**values), user)
        if code in (0, trial.status) and re.search(
            trial.shows.format(**values), text, re.DOTALL
        ):
            if trial.undo:
                undone, said = self.run(trial.undo.format(**values), None)
                assert undone == 0, said
            return "yes", text
        shown = trial.part and re.search(trial.part, text)
        return ("part" if code == 0 and shown else "no"), text

    def check(self, name: str, says: list[str]) -> int:
        """Try a row: who may not before who may. Returns how much is wrong."""
        trial = TRIALS[name]
        tries = [
            ("user, of others", says[2], trial.words, self._args.other),
            ("user, of his own", says[1], trial.words, self._args.userid),
            ("owner", says[0], trial.owner or trial.words, None),
        ]
        bad = 0
        for who, said, words, user in sorted(tries, key=lambda t: t[1] == "yes"):
            found, text = self.answer(trial, words, user)
            if found != said:
                bad += 1
                print(f"{name}: {who}: the page says {said}, it was {found}:\n{text}")
        return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=("pretend", "real"))
    for name in ("userid", "other"):
        parser.add_argument(name, type=int)
    for name in ("job", "job2", "old", "fs"):
        parser.add_argument(name)
    args = parser.parse_args()
    table = rows()
    lacks = missing(table)
    users = Users(args)
    known = {name: TRIALS[name] for name in table if name in TRIALS}
    lacks += [
        f"no test {trial.elsewhere} of {name}"
        for name, trial in known.items()
        if trial.elsewhere and not (TOP / trial.elsewhere).is_file()
    ]
    tried = [
        name
        for name, trial in known.items()
        if not trial.elsewhere and (args.mode == "real" or not trial.real)
    ]
    print("\n".join(lacks))
    bad = len(lacks) + sum(users.check(name, table[name]) for name in tried)
    print(f"{len(tried)} of {len(table)} rows tried, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
