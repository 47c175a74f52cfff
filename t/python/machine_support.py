# An instance whose dws service is made up, for looking at what flux rabbit shows of
# it.
# SPDX-License-Identifier: LGPL-3.0-only
"""Machines that are not there."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Any

import instance_support
from instance_support import Instance
from pty_support import Terminal

FAKE = pathlib.Path(__file__).resolve().parents[1] / "scripts" / "fake-dws-status.py"


class Machine:
    """An instance with a simulated dws service."""

    def __init__(self, rabbits: str, jobs: str, *more: str) -> None:
        """What fake-dws-status.py takes."""
        self._instance = Instance()
        self._before = os.environ.get("FLUX_URI")
        os.environ["FLUX_URI"] = self._instance.uri
        self._service = subprocess.Popen(
            [instance_support.FLUX, "python", str(FAKE), rabbits, jobs, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._service.stdout is not None
        assert self._service.stdout.readline() == "ready\n"

    def terminal(self, size: tuple[int, int], *words: str, **env: str) -> Terminal:
        """`flux rabbit` with these words on a terminal."""
        settings = [f"{name}={value}" for name, value in env.items()]
        argv = ["env", *settings] if settings else []
        return Terminal([*argv, instance_support.FLUX, "rabbit", *words], *size)

    def run(self, *words: str, **options: Any) -> str:
        """Output of a flux command that must succeed."""
        return subprocess.run(
            [instance_support.FLUX, *words],
            check=True,
            capture_output=True,
            encoding="utf-8",
            **options,
        ).stdout

    def change(self) -> None:
        self._instance.open().rpc("dws.status", {"change": True}).get()

    def close(self) -> None:
        self._service.communicate("")
        self._instance.close()
        if self._before is None:
            os.environ.pop("FLUX_URI", None)
        else:
            os.environ["FLUX_URI"] = self._before
