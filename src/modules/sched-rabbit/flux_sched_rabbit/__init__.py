# The allocator behind sched-rabbit: nodes, cores, gpus and rabbit capacity.
# SPDX-License-Identifier: LGPL-3.0-only
"""Allocates compute nodes together with GiB on the rabbits next to them.

``request``, ``constraint`` and ``machine`` do not use Flux; ``pool`` adapts the
machine to :class:`flux.scheduler.Scheduler`.
"""
