# CPU time and memory by component, from /proc. Other load on a shared machine distorts
# wall-clock time far more than CPU time.
# SPDX-License-Identifier: LGPL-3.0-only
"""CPU seconds (user and system) of processes and of a broker's threads."""

from __future__ import annotations

import os
import pathlib
from collections import Counter

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _stat(path: pathlib.Path) -> tuple[str, int, float]:
    """Name, parent and CPU seconds, as /proc/PID/stat has them."""
    text = path.read_text()
    name = text[text.index("(") + 1 : text.rindex(")")]
    fields = text[text.rindex(")") + 2 :].split()
    return name, int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def of_process(pid: int) -> float:
    return _stat(pathlib.Path(f"/proc/{pid}/stat"))[2]


def of_threads(pid: int) -> Counter[str]:
    """By thread name. A broker's modules in C are threads named after them."""
    cpu: Counter[str] = Counter()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            name, _parent, seconds = _stat(task / "stat")
        except OSError:
            continue  # it has just ended
        cpu[name] += seconds
    return cpu


def children(pid: int) -> dict[int, str]:
    """The command lines of a process's children, by pid."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                _name, parent, _seconds = _stat(entry / "stat")
                if parent == pid:
                    line = (entry / "cmdline").read_bytes()
                    found[int(entry.name)] = line.replace(b"\0", b" ").decode()
            except OSError:
                continue
    return found


def of_children(pid: int) -> Counter[str]:
    """By process name."""
    cpu: Counter[str] = Counter()
    for child in children(pid):
        try:
            name, _parent, seconds = _stat(pathlib.Path(f"/proc/{child}/stat"))
        except OSError:
            continue  # it has just ended
        cpu[name] += seconds
    return cpu


def resident_bytes(pid: int) -> int:
    """Resident memory of the process."""
    pages = pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes(pid: int) -> int:
    """Highest resident memory of the process so far."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise ValueError(f"{pid}: no VmHWM")
