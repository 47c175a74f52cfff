# SPDX-License-Identifier: LGPL-3.0-only
#
# Jobs that commands of flux rabbit submit themselves.
"""Submit a job with a directive."""

from __future__ import annotations

from typing import Any

TYPES = ("xfs", "gfs2", "raw", "lustre")


def submit(
    command: list[str],
    directive: str,
    name: str,
    nodes: int = 1,
    duration_s: float | None = None,
    requires: str | None = None,
    **system: Any,
) -> int:
    """Submit a job, and return its id.

    Args:
        requires: a constraint in the syntax of --requires.
        system: more attributes below attributes.system; None is left out.
    Raises:
        OSError, ValueError: it was refused.
    """
    # Import late: most commands submit no job, and these imports are slow.
    import flux
    import flux.job
    from flux.constraint.parser import ConstraintSyntaxError
    from flux.job.Jobspec import MiniConstraintParser

    spec = flux.job.JobspecV1.from_command(command, num_nodes=nodes)
    spec.setattr("system.dw", directive)
    spec.setattr("system.job.name", name)
    if duration_s is not None:
        spec.duration = duration_s
    if requires:
        try:
            constraints = MiniConstraintParser().parse(requires)
        except (ConstraintSyntaxError, SyntaxError) as exc:
            raise ValueError(f"--requires: {exc}") from None
        spec.setattr("system.constraints", constraints)
    for key, value in system.items():
        if value is not None:
            spec.setattr(f"system.{key}", value)
    return int(flux.job.submit(flux.Flux(), spec))
