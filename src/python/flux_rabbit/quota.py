# SPDX-License-Identifier: LGPL-3.0-only
#
# flux rabbit quota: the limits of [rabbit.limits] for a user, and their use. The module
# counts the use; this command looks up the user's groups and finds the rules with the
# code that the module uses (libdws/config/limits.h).
"""Limits, and their use."""

from __future__ import annotations

import argparse
import os
import pwd
import sys
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from flux_k8s import dws, names

from flux_rabbit import cli, rpc, table
from flux_rabbit.units import Size

if TYPE_CHECKING:
    from flux_k8s import shapes

Object = dict[str, Any]


def _most(limit: Object) -> Any:
    value = limit["rule"] and limit["rule"]["value"]
    return "unlimited" if value is None else Size(value)


def _free(limit: Object) -> Any:
    most = _most(limit)
    if not limit["use"] or most == "unlimited":
        return ""
    return Size(max(0, most - limit["use"]["bytes"]))


def _in_use(key: str) -> Callable[[Object], Any]:
    return lambda limit: (limit["use"] or {}).get(key, "")


LIST = table.Table(
    "quota",
    {
        "limit": ("LIMIT", itemgetter("limit")),
        "whose": ("WHOSE", itemgetter("whose")),
        "max": ("MAX", _most),
        "used": ("USED", lambda q: Size(q["use"]["bytes"]) if q["use"] else ""),
        "free": ("FREE", _free),
        "jobs": ("JOBS", _in_use("jobs")),
        "persistent": ("PERSIST", _in_use("persistent")),
        "waiting": ("WAITING", _in_use("waiting")),
        "rule": ("RULE", lambda q: q["rule"]["rule"] if q["rule"] else ""),
    },
    {
        "default": (
            "What is allowed, in use and free, and by which rule",
            "{limit:<8} +:{whose:<8} {max:>9} {used:>7} {free:>7} {jobs:>4} "
            "{persistent:>7} {waiting:>7} ?:{rule}",
        ),
    },
)
NOTHING: Object = {"bytes": 0, "jobs": 0, "persistent": 0, "waiting": 0}


def configure(
    parser: argparse.ArgumentParser, command: str
) -> tuple[str, tuple[str, ...]]:
    """Options."""
    table.configure(parser)
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("-u", "--user", metavar="USER", help="of this one (owner only)")
    whose.add_argument(
        "-A", "--all", action="store_true", help="of all users and banks (owner only)"
    )
    parser.add_argument("-q", "--queue", metavar="QUEUE", help="for jobs in this queue")
    parser.add_argument("-B", "--bank", metavar="BANK", help="for jobs in this bank")
    return (
        "Tell what [rabbit.limits] allows you of rabbit storage: at one time, in a "
        "job and on a node, and what of it is in use by jobs and by persistent file "
        "systems. Rules may depend on queue and bank: without --queue it is the "
        "default one, without --bank none, and each bank in which you have jobs is "
        "listed with what it has at one time.",
        (
            "flux rabbit quota",
            "flux rabbit quota --queue pdebug --bank chemistry",
            "flux rabbit quota --all --sort=-used",
        ),
    )


def groups_of(user: pwd.struct_passwd, wanted: Iterable[str]) -> Iterator[str]:
    """The groups in `wanted`, names or numbers, of which the user is a member."""
    import grp

    own = set(os.getgrouplist(user.pw_name, user.pw_gid))
    for group in wanted:
        try:
            gid = int(group) if group.isdigit() else grp.getgrnam(group).gr_gid
        except KeyError:
            continue
        if gid in own:
            yield group


class Rules:
    """[rabbit.limits], for jobs in a queue."""

    def __init__(self, limits: Object, queue: str | None) -> None:
        rules = [rule for rule in limits.values() if isinstance(rule, dict)]
        self.limits = limits
        self.queue = queue
        self.groups = {str(rule["group"]) for rule in rules if "group" in rule}

    def find(self, userid: int, bank: str | None) -> dict[str, shapes.Limit]:
        """The limits for jobs of a user in a bank."""
        try:
            user = pwd.getpwuid(userid)
        except KeyError:
            return dws.limits_of(self.limits, userid, None, [], bank, self.queue)
        groups = groups_of(user, self.groups)
        return dws.limits_of(
            self.limits, userid, user.pw_name, groups, bank, self.queue
        )


def _row(
    limit: str, whose: str, rule: shapes.Limit | None, use: Object | None
) -> table.Row:
    """The fields of a limit. `use`: None for a limit without a use, {} if unknown."""
    limit_of = {"limit": limit, "whose": whose, "rule": rule, "use": use}
    return LIST.row(limit_of)


def rows_of_user(answer: Object, rules: Rules, userid: int, bank: str | None) -> Any:
    """Everything that limits a user.

    Args:
        answer: of dws.quota.
        bank: the bank of --bank, None without.
    """
    user = cli.user_name(userid)
    found = rules.find(userid, bank)
    allow = found.get("allow")
    if allow:
        row = _row("allowed", user, allow, None)
        row.max = "yes" if allow["value"] else "no"
        yield row
    for use in answer["users"] or [NOTHING]:
        yield _row("at once", user, found.get("user"), use)
    banks = {use["bank"]: use for use in answer["banks"]}
    if bank is not None:
        banks.setdefault(bank, {})
    for name, use in sorted(banks.items()):
        yield _row("at once", f"bank {name}", rules.find(userid, name).get("bank"), use)
    for key in ("job", "node"):
        if key in found:
            yield _row(f"per {key}", user, found[key], None)


def rows_of_all(answer: Object, rules: Rules, bank: str | None) -> Iterator[table.Row]:
    """The present use of every user and bank that holds storage or waits for it."""
    for use in answer["users"]:
        rule = rules.find(use["userid"], bank).get("user")
        yield _row("at once", cli.user_name(use["userid"]), rule, use)
    for use in sorted(answer["banks"], key=lambda use: str(use["bank"])):
        rule = rules.find(os.getuid(), use["bank"]).get("bank")
        yield _row("at once", f"bank {use['bank']}", rule, use)


def _default_queue(handle: rpc.Handle) -> str | None:
    value: Any = handle.call("config.get")
    for key in ("policy", "jobspec", "defaults", "system", "queue"):
        value = value.get(key, {}) if isinstance(value, dict) else {}
    return value if isinstance(value, str) else None


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    handle = rpc.Handle()
    userid = cli.userid(args.user)
    if userid is None:
        userid = os.getuid()
    request: Object = {"all": True} if args.all else {"userid": userid}
    answer = handle.call(names.TOPIC_QUOTA, request)
    rules = Rules(answer.get("limits", {}), args.queue or _default_queue(handle))
    if args.all:
        rows = list(rows_of_all(answer, rules, args.bank))
    else:
        rows = list(rows_of_user(answer, rules, userid, args.bank))
    if args.json:
        cli.print_json(
            {"known": answer["known"], "limits": [vars(row) for row in rows]}
        )
        return 0
    if not answer["known"]:
        print(
            "flux rabbit: what persistent storage takes is not known: is "
            "flux-coral2-dws running?",
            file=sys.stderr,
        )
    if any(isinstance(rule, dict) for rule in rules.limits.values()):
        table.show(LIST, args, [rows], nothing="nobody has rabbit storage")
    else:
        print("no limits: there is no rule in [rabbit.limits]")
    return 0
