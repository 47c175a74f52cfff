# SPDX-License-Identifier: LGPL-3.0-only
"""Start instances for tests, of whatever `flux` is on PATH, or in FLUX."""

import os
import shutil
import subprocess
from typing import Optional

import flux

FLUX = os.environ.get("FLUX", "flux")


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
