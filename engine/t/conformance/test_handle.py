# SPDX-License-Identifier: LGPL-3.0-only
"""flux.core: the handle, its reactor and watchers"""

import errno
import os
import signal
import threading

import flux
from _flux._core import ffi
from flux.constants import (
    FLUX_MSGTYPE_EVENT,
    FLUX_MSGTYPE_RESPONSE,
    FLUX_O_NONBLOCK,
    FLUX_POLLIN,
    FLUX_POLLOUT,
    FLUX_RPC_STREAMING,
)
from flux.core.handle import Flux
from flux.message import Message
from support import Case


class TestHandle(Case):
    def test_open(self):
        with self.fails(
            errno.ENOENT,
            "Unable to connect to Flux: Unable to find connector name 'foo'",
        ):
            flux.Flux("foo")
        with self.fails(errno.ENOENT, "Unable to connect to Flux"):
            flux.Flux("local:///nosuch/socket")
        with self.fails(errno.ENOENT, "Unable to find connector name 'foo'"):
            flux.Flux("foo://bar")
        with self.assertRaises(RuntimeError):
            self.handle.close()

    def test_attributes(self):
        self.assertEqual(self.handle.get_rank(), 0)
        self.assertEqual(self.handle.attr_get("size"), "4")
        self.handle.attr_set("test.attr", "x")
        self.assertEqual(self.handle.attr_get("test.attr"), "x")
        self.handle.attr_set("test.attr", "y")
        self.assertEqual(flux.Flux().attr_get("test.attr"), "y")
        with self.fails(errno.EINVAL):
            self.handle.attr_set("rank", "1")
        with self.fails(errno.ENOENT):
            self.handle.attr_set("nosuch", "1")
        with self.fails(errno.EINVAL):
            self.handle.attr_set("log-level", "1")
        for bad in (("x", 1), (1, "x")):
            with self.assertRaises(ValueError):
                self.handle.attr_set(*bad)

    def test_conf(self):
        self.assertTrue(self.handle.conf_get("resource.noverify"))
        self.assertTrue(self.handle.conf_get()["resource"]["noverify"])
        self.assertIsNone(self.handle.conf_get("no.such"))
        self.assertEqual(self.handle.conf_get("no.such", default=3), 3)
        conf = self.handle.conf_get()
        changed = dict(conf, t={"x": 1})
        self.handle.rpc("config.load", changed).get()
        self.addCleanup(lambda: self.handle.rpc("config.load", conf).get())
        self.assertIsNone(self.handle.conf_get("t.x"))
        self.assertEqual(self.handle.conf_get("t.x", update=True), 1)

    def test_log(self):
        self.handle.log(6, "handle test in text")
        self.handle.log(6, b"handle test in bytes")

        for text in ("in text", "in bytes"):
            self.assertTrue(any(text in line for line in self.dmesg()), text)

    def dmesg(self):
        rpc = self.handle.rpc("log.dmesg", {"follow": False}, flags=FLUX_RPC_STREAMING)
        while True:
            try:
                yield rpc.get_str()
            except OSError as exc:
                self.assertEqual(exc.errno, errno.ENODATA)
                return
            rpc.reset()

    def test_request_by_hand(self):
        request = Message()
        request.topic = "broker.ping"
        request.payload = {"a": 1}
        request.pimpl.set_matchtag(4000000)
        self.handle.send(request)
        response = self.handle.recv(type_mask=FLUX_MSGTYPE_RESPONSE)
        self.assertEqual((response.topic, response.payload["a"]), ("broker.ping", 1))
        self.handle.send(request.handle)
        response = self.handle.recv(match_tag=4000000)
        self.assertEqual(response.type_str, "response")
        with self.fails(errno.EAGAIN):
            self.handle.recv(flags=FLUX_O_NONBLOCK)

    def test_events(self):
        self.handle.event_subscribe("t-handle")
        message = self.handle.event_create("t-handle.a", {"x": 1})
        self.assertEqual(message.type, FLUX_MSGTYPE_EVENT)
        self.handle.event_send("t-handle.b", {"x": 2})
        self.handle.event_send("t-other", {"x": 3})
        self.handle.event_send("t-handle.c")
        event = self.handle.event_recv()
        self.assertEqual((event.topic, event.payload), ("t-handle.b", {"x": 2}))
        event = self.handle.event_recv(ffi.new("char[]", b"t-handle.*"))
        self.assertEqual((event.topic, event.payload_str), ("t-handle.c", None))
        self.handle.event_unsubscribe("t-handle")
        with self.fails(errno.ENOENT):
            self.handle.event_unsubscribe("t-never")
        with self.fails(errno.EINVAL):
            self.handle.event_subscribe(None)
        with self.fails(errno.EAGAIN):
            self.handle.recv(flags=FLUX_O_NONBLOCK)

    def test_service(self):
        other = flux.Flux()
        other.service_register("t-handle").get()
        with self.fails(errno.EEXIST):
            self.handle.service_register("t-handle").get()
        rpc = self.handle.rpc("t-handle.x", {"a": 1})
        request = other.recv(topic_glob=ffi.new("char[]", b"t-handle.*"))
        self.assertEqual(request.payload, {"a": 1})
        other.respond(request, {"b": 2})
        self.assertEqual(rpc.get(), {"b": 2})
        rpc = self.handle.rpc("t-handle.y")
        other.respond(other.recv().handle)
        self.assertIsNone(rpc.get())
        with self.fails(errno.ENOENT):
            self.handle.service_unregister("t-handle").get()
        other.service_unregister("t-handle").get()
        with self.fails(errno.ENOSYS):
            self.handle.rpc("t-handle.z").get()

    def test_exceptions(self):
        self.assertIsNone(Flux.set_exception(ValueError("a")))
        self.assertIsInstance(Flux.set_exception(None), ValueError)
        Flux.raise_if_exception()
        with self.handle.in_reactor():
            self.assertTrue(Flux.reactor_running())
        self.assertFalse(Flux.reactor_running())

    def test_threads(self):
        """A handle in a thread of its own has its own reactor."""
        seen = []

        def run():
            handle = flux.Flux()

            def done(future):
                seen.append(future.get()["a"])
                handle.reactor_stop()

            handle.rpc("broker.ping", {"a": 1}).then(done)
            seen.append(handle.reactor_run())

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(seen)[-4:], [1, 1, 1, 1])
        self.assertEqual(len(seen), 8)


class TestReactor(Case):
    def test_result(self):
        for stop, result in (
            (lambda handle, *args: handle.reactor_stop(), 0),
            (lambda handle, *args: handle.reactor_stop_error(), -1),
        ):
            with (
                self.handle.timer_watcher_create(60, lambda *args: None),
                self.handle.timer_watcher_create(0, stop),
            ):
                self.assertEqual(self.handle.reactor_run(), result)
        self.assertEqual(self.handle.reactor_run(), 0)

    def test_timer(self):
        seen = []

        def expire(handle, watcher, revents, arg):
            seen.append(arg)
            if len(seen) == 3:
                watcher.stop()

        timer = self.handle.timer_watcher_create(0.001, expire, repeat=0.001, args=7)
        self.assertIs(timer.start(), timer)
        self.handle.reactor_run()
        self.assertEqual(seen, [7, 7, 7])
        timer.reset(0.0, 0.0)
        timer.start()
        self.handle.reactor_run()
        self.assertEqual(len(seen), 4)
        with self.fails(errno.EINVAL):
            self.handle.timer_watcher_create(-1, expire)

    def test_unref(self):
        """A watcher without reference does not keep the reactor going."""
        timer = self.handle.timer_watcher_create(60, lambda *args: None)
        timer.start()
        self.assertIs(timer.unref(), timer)
        self.assertEqual(self.handle.reactor_run(), 0)
        self.assertIs(timer.ref(), timer)
        timer.stop()
        timer.destroy()
        timer.destroy()

    def test_phases(self):
        """Prepare before waiting, check after it, idle keeps it from it."""
        seen = []

        def note(name):
            def callback(handle, watcher, revents, arg):
                seen.append(name)
                if len(seen) >= 6:
                    handle.reactor_stop()

            return callback

        with (
            self.handle.prepare_watcher_create(note("prepare")),
            self.handle.check_watcher_create(note("check")),
            self.handle.idle_watcher_create(),
        ):
            self.handle.reactor_run()
        self.assertEqual(seen[:4], ["prepare", "check"] * 2)
        seen.clear()
        with self.handle.idle_watcher_create(note("idle"), args=1):
            self.handle.reactor_run()
        self.assertEqual(seen, ["idle"] * 6)

    def test_fd(self):
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        seen = []

        def readable(handle, watcher, fd, revents, arg):
            seen.append((fd == read, revents, arg, os.read(read, 10)))
            watcher.stop()

        def writable(handle, watcher, fd, revents, arg):
            seen.append((fd == write, revents))
            os.write(write, b"x")
            watcher.stop()

        with (
            self.handle.fd_watcher_create(read, readable, FLUX_POLLIN, args="a"),
            self.handle.fd_watcher_create(write, writable, FLUX_POLLOUT),
        ):
            self.handle.reactor_run()
        self.assertEqual(seen, [(True, FLUX_POLLOUT), (True, FLUX_POLLIN, "a", b"x")])
        with self.handle.fd_watcher_create(write, writable):
            self.handle.reactor_run()
        self.assertEqual(len(seen), 3)

    def test_signal(self):
        seen = []

        def caught(handle, watcher, signum, arg):
            seen.append((signum, arg))
            watcher.stop()

        with self.handle.signal_watcher_create(signal.SIGUSR1, caught, "a"):
            os.kill(os.getpid(), signal.SIGUSR1)
            self.handle.reactor_run()
        self.assertEqual(seen, [(signal.SIGUSR1, "a")])

    def test_interrupt(self):
        def interrupt(handle, watcher, revents, arg):
            os.kill(os.getpid(), signal.SIGINT)

        with (
            self.handle.timer_watcher_create(0, interrupt),
            self.handle.timer_watcher_create(60, lambda *args: None),
            self.assertRaises(KeyboardInterrupt),
        ):
            self.handle.reactor_run()

    def test_exception(self):
        """Out of a callback of a watcher, through the reactor, to the caller."""

        def fail(*args):
            raise RuntimeError("in a callback")

        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        for watcher in (
            self.handle.timer_watcher_create(0, fail),
            self.handle.fd_watcher_create(write, fail, FLUX_POLLOUT),
        ):
            with watcher, self.assertRaisesRegex(RuntimeError, "in a callback"):
                self.handle.reactor_run()

    def test_watchers_of_the_handle(self):
        """The handle keeps them while they live."""
        timer = self.handle.timer_watcher_create(60, lambda *args: None)
        self.assertIs(self.handle.add_watcher(timer), timer)
        self.handle.del_watcher(timer)
        self.handle.del_watcher(timer)
