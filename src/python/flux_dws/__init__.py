# What pip installs beside the Python packages: the embedded engine and the C
# parts, laid out below this directory as below a prefix.
# SPDX-License-Identifier: LGPL-3.0-only
"""Starts the flux command of the embedded engine that lies in this package."""

import os
import pathlib
import sys

PREFIX = pathlib.Path(__file__).resolve().parent


def main(*words: str) -> None:
    """Become the flux command, with the Python that we were installed for."""
    os.environ.setdefault("FLUX_PYTHON", sys.executable)
    flux = str(PREFIX / "bin" / "flux")
    os.execv(flux, [flux, *words, *sys.argv[1:]])


def agent() -> None:
    """Become the agent, which needs the libraries that flux python knows."""
    main("python", "-m", "flux_k8s.main")
