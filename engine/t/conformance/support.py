# SPDX-License-Identifier: LGPL-3.0-only
"""Shared by the conformance tests, which run in an instance of four nodes with
four cores each, node[0-3].
"""

import contextlib
import faulthandler
import unittest

import flux
from flux.job import JobspecV1

LIMIT = 30.0  # only a failure takes that long


class Case(unittest.TestCase):
    def setUp(self):
        faulthandler.dump_traceback_later(2 * LIMIT, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        self.handle = flux.Flux()

    @contextlib.contextmanager
    def fails(self, errnum, text=None):
        """The block raises OSError with that errno, and that in its text."""
        with self.assertRaises(OSError) as caught:
            yield
        self.assertEqual(caught.exception.errno, errnum, caught.exception)
        if text is not None:
            self.assertIn(text, str(caught.exception))

    def run_reactor(self, handle=None):
        """Until somebody stops it; a timer ends a test that nobody does."""
        handle = handle or self.handle

        def expire(handle, watcher, revents, arg):
            self.fail("nobody has stopped the reactor")

        with handle.timer_watcher_create(LIMIT, expire):
            return handle.reactor_run()

    def jobspec(self, *command, simulated=None, **kwargs):
        spec = JobspecV1.from_command(list(command or ["true"]), **kwargs)
        spec.setattr("system.duration", 0)
        if simulated is not None:
            spec.setattr("system.exec.test.run_duration", simulated)
        return spec
