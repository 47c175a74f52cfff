#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-3.0-only
"""flux-python on solo's libraries: each symbol that its compiled extensions
need is there, and handles, watchers, RPC, futures and sets work from Python.

Exit status 77 (skipped) without flux-python.
"""

import errno
import importlib
import importlib.util
import os
import sys
import unittest

# All symbols at once: the dynamic linker would otherwise wait for a call.
sys.setdlopenflags(os.RTLD_NOW)

if importlib.util.find_spec("flux") is None:
    print("no flux-python")
    sys.exit(77)

flux = importlib.import_module("flux")
for extension in ("_core", "_hostlist", "_idset"):
    importlib.import_module(f"_flux.{extension}")
FLUX_MSGTYPE_REQUEST = importlib.import_module("flux.constants").FLUX_MSGTYPE_REQUEST
Hostlist = importlib.import_module("flux.hostlist").Hostlist
IDset = importlib.import_module("flux.idset").IDset
Message = importlib.import_module("flux.message").Message


class TestPython(unittest.TestCase):
    def setUp(self):
        self.handle = flux.Flux("loop://")

    def serve(self, topic, callback):
        watcher = self.handle.msg_watcher_create(callback, FLUX_MSGTYPE_REQUEST, topic)
        watcher.start()
        self.addCleanup(watcher.stop)

    def test_library(self):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            paths = {line.split()[-1] for line in maps if "libflux-core" in line}
        self.assertEqual(len(paths), 1, paths)

    def test_sets(self):
        self.assertEqual(Hostlist("foo[1-3,5]").expand()[3], "foo5")
        self.assertEqual(str(IDset("0-3") | IDset("7")), "0-3,7")

    def test_rpc_then(self):
        def echo(handle, watcher, msg, arg):
            handle.respond(msg, {"got": msg.payload["x"]})

        results = []

        def done(future):
            results.append(future.get())
            self.handle.reactor_stop()

        self.serve("test.echo", echo)
        self.handle.rpc("test.echo", {"x": 1}).then(done)
        self.handle.reactor_run()
        self.assertEqual(results, [{"got": 1}])

    def test_rpc_error(self):
        def refuse(handle, watcher, msg, arg):
            handle.respond_error(msg, errno.EPERM, "not you")

        errors = []

        def done(future):
            try:
                future.get()
            except OSError as exc:
                errors.append((exc.errno, str(exc)))
            self.handle.reactor_stop()

        self.serve("test.refuse", refuse)
        self.handle.rpc("test.refuse").then(done)
        self.handle.reactor_run()
        self.assertEqual(errors[0][0], errno.EPERM)
        self.assertIn("not you", errors[0][1])

    def test_wait_timeout(self):
        with self.assertRaises(TimeoutError):
            self.handle.rpc("nobody").wait_for(0.01)

    def test_timer(self):
        calls = []

        def tick(handle, watcher, revents, arg):
            calls.append(arg)
            handle.reactor_stop()

        with self.handle.timer_watcher_create(0.001, tick, args="x"):
            self.handle.reactor_run()
        self.assertEqual(calls, ["x"])

    def test_message(self):
        msg = Message(FLUX_MSGTYPE_REQUEST)
        msg.topic = "a.b"
        msg.payload = {"x": [1, 2]}
        self.assertEqual(msg.payload["x"], [1, 2])


if __name__ == "__main__":
    unittest.main()
