# The allocator behind sched-rabbit: nodes, cores, gpus and rabbit capacity.
# SPDX-License-Identifier: LGPL-3.0-only
"""Allocates compute nodes together with GiB on the rabbits next to them.

``request``, ``constraint`` and ``machine`` are plain Python without Flux;
``pool`` is what :class:`flux.scheduler.Scheduler` works with.
"""
