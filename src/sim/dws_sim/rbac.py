# Authenticates and authorizes requests: bearer tokens, the workload manager's role, and
# the error texts.
# SPDX-License-Identifier: LGPL-3.0-only
"""Authentication and authorization."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

from dws_sim.errors import ApiError, forbidden
from dws_sim.schema.resources import DWS_GROUP, NNF_GROUP, RESOURCES

_READ = "get list watch"
_WRITE = "get list patch update watch"
Rule = tuple[str, str, str]


@dataclass(frozen=True)
class Role:
    """Verbs by (API group, resource or resource/subresource, namespace);
    namespace "" holds everywhere. A role without rules may do everything."""

    name: str
    rules: dict[Rule, frozenset[str]] = field(default_factory=dict)

    @property
    def is_admin(self) -> bool:
        return not self.rules

    def allows(self, group: str, resource: str, namespace: str, verb: str) -> bool:
        if self.is_admin:
            return True
        for place in {"", namespace}:
            if verb in self.rules.get((group, resource, place), ()):
                return True
        return False


def wlm_role(without: tuple[str, ...] = (), more: tuple[str, ...] = ()) -> Role:
    """The role of a workload manager.

    Args:
        without: "resource:verb" words to leave out.
        more: "resource:verb" words to add.
    """
    rules: dict[Rule, frozenset[str]] = {}

    def grant(group: str, names: str, verbs: str, namespace: str = "") -> None:
        for name in names.split():
            rules[(group, name, namespace)] = frozenset(
                v for v in verbs.split() if f"{name}:{v}" not in without
            )

    readable = (
        "clientmounts directivebreakdowns persistentstorageinstances "
        "systemconfigurations"
    )
    grant(DWS_GROUP, "workflows", "create delete " + _WRITE)
    grant(DWS_GROUP, "computes servers storages", _WRITE)
    grant(DWS_GROUP, readable, _READ)
    for name in f"servers storages {readable}".split():
        grant(DWS_GROUP, f"{name}/status", "get")
    grant(DWS_GROUP, "systemstatuses", _WRITE)
    grant(NNF_GROUP, "nnfdatamovements", _READ)
    grant(NNF_GROUP, "nnfdatamovements/status", "get")
    grant("", "secrets", _READ)
    grant("", "pods pods/log", _READ, "default")
    for word in more:
        name, verb = word.split(":")
        rule = (RESOURCES[name.split("/")[0]].group, name, "")
        rules[rule] = rules.get(rule, frozenset()) | {verb}
    return Role("wlm", rules)


ADMIN = Role("admin")


@dataclass(frozen=True)
class User:
    name: str
    role: Role


class Users:
    """Bearer tokens and whose they are."""

    def __init__(self) -> None:
        self._users: list[tuple[str, User]] = []

    def add(self, name: str, role: Role, token: str = "") -> str:
        """A new user; returns the token: a new one if none is given."""
        token = token or secrets.token_urlsafe(32)
        self._users.append((token, User(name, role)))
        return token

    def named(self, name: str) -> User | None:
        """The user of that name, which a certificate has vouched for."""
        return next((u for _, u in self._users if u.name == name), None)

    def set_role(self, name: str, role: Role) -> None:
        """Give a user other rights."""
        self._users = [
            (t, User(name, role) if u.name == name else u) for t, u in self._users
        ]

    def renew(self, name: str) -> str:
        """Make a user's tokens invalid and return a new one."""
        role = next(u.role for _, u in self._users if u.name == name)
        self._users = [(t, u) for t, u in self._users if u.name != name]
        return self.add(name, role)

    def find(self, authorization: str) -> User | None:
        """The user of an Authorization header."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        given = token.strip().encode()
        for known, user in self._users:
            if hmac.compare_digest(known.encode(), given):
                return user
        return None


def refusal(
    user: User, verb: str, group: str, resource: str, namespace: str, name: str
) -> ApiError:
    """The 403 for a user who lacks the right, in Kubernetes' words."""
    kind = resource.split("/")[0]
    place = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    shown = f' "{name}"' if name else ""
    qualified = f"{kind}.{group}" if group else kind
    details = {"group": group, "kind": kind, "name": name}
    return forbidden(
        f'{qualified}{shown} is forbidden: User "{user.name}" cannot {verb} resource '
        f'"{resource}" in API group "{group}" {place}',
        {k: v for k, v in details.items() if v},
    )
