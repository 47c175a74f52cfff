# SPDX-License-Identifier: LGPL-3.0-only
"""Start instances for tests of the engine.

What these tests ask for holds for flux-core too: they run on whatever `flux`
is on PATH, but for those that say otherwise.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Optional

import flux

FLUX = os.environ.get("FLUX", "flux")


def is_solo() -> bool:
    """True if the flux command on PATH is solo's."""
    out = subprocess.run([FLUX, "version"], capture_output=True, text=True)
    return "solo" in out.stdout


def available() -> bool:
    return shutil.which(FLUX) is not None


class Instance:
    """A running instance; close() ends it and returns its exit status."""

    def __init__(
        self,
        *options: str,
        size: int = 1,
        env: Optional[dict] = None,
        restore_signals: bool = True,
    ):
        environ = dict(os.environ, **(env or {}))
        environ.pop("FLUX_URI", None)
        self.process = subprocess.Popen(
            [FLUX, "start", f"--test-size={size}", *options]
            + ["sh", "-c", "echo $FLUX_URI; exec cat >/dev/null"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environ,
            restore_signals=restore_signals,
        )
        assert self.process.stdout is not None
        self.uri = self.process.stdout.readline().strip()
        if not self.uri:
            raise RuntimeError(self.process.communicate()[1])

    def open(self) -> flux.Flux:
        return flux.Flux(self.uri)

    def kill(self) -> None:
        """End the instance as a crash would."""
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(os.path.dirname(self.uri[len("local://") :]))

    def close(self) -> int:
        """End the instance in the ordinary way."""
        _, self.stderr = self.process.communicate("", timeout=60)
        return self.process.returncode

    def __enter__(self) -> "Instance":
        return self

    def __exit__(self, *args) -> None:
        if self.process.poll() is None:
            self.close()


def start(*args: str, **kwargs) -> subprocess.CompletedProcess:
    """Run `flux start ARGS` to its end."""
    return subprocess.run(
        [FLUX, "start", *args], capture_output=True, text=True, timeout=60, **kwargs
    )


def load_module(handle: flux.Flux, path: str, args: Sequence[str] = ()) -> None:
    handle.rpc("module.load", {"path": path, "args": list(args)}).get()


def remove_module(handle: flux.Flux, name: str) -> None:
    handle.rpc("module.remove", {"name": name}).get()
