# The states of a workflow, in order. By itself, so that `dws-sim ctl` starts
# without the rest of the simulator.
# SPDX-License-Identifier: LGPL-3.0-only
"""Workflow states and presets by name."""

from __future__ import annotations

STATES = ("Proposal", "Setup", "DataIn", "PreRun", "PostRun", "DataOut", "Teardown")
FS_TYPES = ("xfs", "gfs2", "raw", "lustre")
PRESETS = ("instant", "demo", "nnf", "tuolumne", "elcap")
