# SPDX-License-Identifier: LGPL-3.0-only
#
# For selftest: files of flux-coral2 that must not be there beside ours.
"""Files that a change from flux-coral2 has left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

# Modules that both packages named flux_k8s have, and a text that only ours contain.
MODULES = (
    *("cleanup", "crd", "directivebreakdown", "storage", "systemstatus", "watch"),
    "workflow",
)
OURS = "SPDX-License-Identifier: LGPL-3.0-only"
UNIT = "flux-coral2-dws.service"
# The service of flux-coral2, which its unit of the same name ran.
SERVICE = "coral2_dws.py"
# Folders where systemd reads units and their overrides.
UNIT_FOLDERS = tuple(
    Path(folder) / "systemd" / "system" for folder in ("/etc", "/run", "/usr/lib")
)
# Defines --coral2-chassis, as our plugin does: flux submit takes it from one of them.
CLI_PLUGIN = Path("cli") / "plugins" / "chassis.py"


def _units(folders: tuple[Path, ...]) -> Iterator[Path]:
    for folder in folders:
        yield folder / UNIT
        yield from sorted((folder / f"{UNIT}.d").glob("*.conf"))


def _mentions(path: Path, text: str) -> bool:
    try:
        return text in path.read_text(encoding="utf8", errors="replace")
    except OSError:
        return False


def find(
    confdir: Path | None, package: Path, folders: tuple[Path, ...] = UNIT_FOLDERS
) -> list[Path]:
    """Files of flux-coral2 that stand in the way of ours.

    Args:
        confdir: Flux' own configuration folder (.../etc/flux), if that is known.
        package: the folder of flux_k8s.
        folders: where units are.
    """
    modules = [package / f"{name}.py" for name in MODULES]
    there = [path for path in modules if path.exists() and not _mentions(path, OURS)]
    if confdir is not None and (confdir / CLI_PLUGIN).exists():
        there.append(confdir / CLI_PLUGIN)
    return there + [path for path in _units(folders) if _mentions(path, SERVICE)]
