# Writes the kubeconfig by which clients find the simulator.
# SPDX-License-Identifier: LGPL-3.0-only
"""kubeconfig files."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dws_sim.jsontree import Object

WLM_CONTEXT = "wlm"
ADMIN_CONTEXT = "admin"


def write_private(path: str, text: str) -> None:
    """Write a file that only its owner may read, all at once."""
    directory = os.path.dirname(os.path.abspath(path))
    fd, temporary = tempfile.mkstemp(dir=directory, prefix=".dws-sim-")
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def render(
    server: str,
    wlm_token: str,
    admin_token: str,
    ca_pem: bytes | None = None,
    certificates: Mapping[str, tuple[bytes, bytes]] | None = None,
) -> str:
    """A kubeconfig with two contexts: wlm (current) and admin; and one more for
    each name among the certificates, which are pairs of certificate and key.
    """
    cluster: Object = {"server": server}
    if ca_pem is not None:
        cluster["certificate-authority-data"] = _base64(ca_pem)
    users: list[Object] = [
        {"name": WLM_CONTEXT, "user": {"token": wlm_token}},
        {"name": ADMIN_CONTEXT, "user": {"token": admin_token}},
    ]
    for name, (certificate, key) in (certificates or {}).items():
        user = {
            "client-certificate-data": _base64(certificate),
            "client-key-data": _base64(key),
        }
        users.append({"name": name, "user": user})
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "dws-sim", "cluster": cluster}],
        "users": users,
        "contexts": [
            {
                "name": user["name"],
                "context": {
                    "cluster": "dws-sim",
                    "user": user["name"],
                    "namespace": "default",
                },
            }
            for user in users
        ],
        "current-context": WLM_CONTEXT,
    }
    # JSON is YAML too, and has no surprises
    return json.dumps(config, indent=2) + "\n"


@dataclass(frozen=True)
class Access:
    """How to reach a server as one user."""

    server: str
    token: str
    ca_pem: bytes | None = None


def _named(items: Any, name: str, what: str) -> Object:
    for item in items or ():
        if item.get("name") == name:
            value: Object = item[what]
            return value
    raise ValueError(f"there is no {what} named {name}")


def _load(path: str) -> Object:
    """The kubeconfig in a file: kubectl writes YAML.

    Raises:
        OSError, ValueError: the file cannot be used.
    """
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    try:
        # a tenth of the time that YAML takes, and what render() writes
        config = json.loads(text)
    except ValueError:
        # imported here: ctl starts in half the time without
        import yaml

        try:
            config = yaml.safe_load(text)
        except yaml.YAMLError as exc:
            raise ValueError(f"{path}: {exc}") from exc
    if not isinstance(config, dict):
        raise ValueError(f"{path}: not a kubeconfig")
    return config


def replace_token(path: str, context: str, token: str) -> None:
    """Put a new token into a kubeconfig that render() made."""
    config = _load(path)
    chosen = _named(config.get("contexts"), context, "context")
    _named(config.get("users"), chosen["user"], "user")["token"] = token
    write_private(path, json.dumps(config, indent=2) + "\n")


def read(path: str, context: str = ADMIN_CONTEXT) -> Access:
    """Read one context of a kubeconfig that render() made.

    Raises:
        OSError, ValueError: the file cannot be used.
    """
    config = _load(path)
    chosen = _named(config.get("contexts"), context, "context")
    cluster = _named(config.get("clusters"), chosen["cluster"], "cluster")
    user = _named(config.get("users"), chosen["user"], "user")
    ca_text = cluster.get("certificate-authority-data")
    return Access(
        cluster["server"],
        user["token"],
        base64.b64decode(ca_text) if ca_text else None,
    )
