# SPDX-License-Identifier: LGPL-3.0-only
"""The interface of an engine at the level of messages, through flux-python:
attributes, RPC, services, events, roles, log.

usage: flux python engine-api.py [TEST...]  (unittest)
"""

import errno
import json
import os
import subprocess
import threading
import unittest

import flux
from flux.constants import (
    FLUX_MSGTYPE_EVENT,
    FLUX_MSGTYPE_REQUEST,
    FLUX_NODEID_ANY,
    FLUX_RPC_NORESPONSE,
    FLUX_RPC_STREAMING,
)

LIMIT = 30.0  # only a failure takes that long
FLUX_ROLE_OWNER, FLUX_ROLE_USER, FLUX_ROLE_LOCAL = 1, 2, 4


class Service:
    """A service of its own name in a thread with a handle of its own."""

    def __init__(self, name, **methods):
        self.name = name
        self.requests = []
        self.methods = methods
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        self.ready.wait(LIMIT)

    def run(self):
        handle = flux.Flux()
        watchers = [
            handle.msg_watcher_create(
                getattr(self, method.__name__, method),
                FLUX_MSGTYPE_REQUEST,
                f"{self.name}.{topic}",
                rolemask=FLUX_ROLE_USER if topic.startswith("guest") else 0,
            )
            for topic, method in {
                "echo": self.echo,
                "stop": self.stop,
                "disconnect": self.note,
                **self.methods,
            }.items()
        ]
        for watcher in watchers:
            watcher.start()
        handle.rpc("service.add", {"service": self.name}).get()
        self.ready.set()
        handle.reactor_run()
        handle.rpc("service.remove", {"service": self.name}).get()
        for watcher in watchers:
            watcher.stop()

    def echo(self, handle, watcher, msg, arg):
        self.requests.append(msg.topic)
        handle.respond(msg, msg.payload if msg.payload_str else None)

    def note(self, handle, watcher, msg, arg):
        self.requests.append(msg.topic)
        handle.reactor_stop()

    def stop(self, handle, watcher, msg, arg):
        handle.reactor_stop()

    def end(self, handle):
        if self.thread.is_alive():
            handle.rpc(f"{self.name}.stop", {}, FLUX_NODEID_ANY, FLUX_RPC_NORESPONSE)
        self.thread.join(LIMIT)


def reply_many(handle, watcher, msg, arg):
    for number in range(msg.payload["count"]):
        handle.respond(msg, {"number": number})
    handle.respond_error(msg, errno.ENODATA, "that was all")


def reply_cred(handle, watcher, msg, arg):
    # flux-python has no accessor for these two
    from _flux._core import ffi, lib

    userid, rolemask = ffi.new("uint32_t *"), ffi.new("uint32_t *")
    lib.flux_msg_get_userid(msg.handle, userid)
    lib.flux_msg_get_rolemask(msg.handle, rolemask)
    handle.respond(msg, {"userid": userid[0], "rolemask": rolemask[0]})


def ignore(handle, watcher, msg, arg):
    pass


def refuse(handle, watcher, msg, arg):
    handle.respond_error(msg, errno.EBUSY, "come back tomorrow")


class TestEngine(unittest.TestCase):
    def setUp(self):
        self.handle = flux.Flux()

    def service(self, name, **methods):
        service = Service(name, **methods)
        self.addCleanup(service.end, self.handle)
        return service

    def assert_fails(self, errnum, future, text=None):
        with self.assertRaises(OSError) as caught:
            future.get()
        self.assertEqual(caught.exception.errno, errnum)
        if text:
            self.assertIn(text, str(caught.exception))

    def run_reactor(self):
        """Until somebody stops it; a timer ends the test that nobody does."""

        def expire(handle, watcher, revents, arg):
            handle.reactor_stop_error()

        with self.handle.timer_watcher_create(LIMIT, expire):
            self.handle.reactor_run()

    def test_attr(self):
        self.assertEqual(self.handle.attr_get("rank"), "0")
        self.assertGreater(int(self.handle.attr_get("size")), 0)
        self.assertTrue(self.handle.attr_get("local-uri").startswith("local://"))
        with self.assertRaises(FileNotFoundError):
            self.handle.attr_get("nosuch")
        with self.assertRaises(OSError):
            self.handle.attr_set("rank", "7")

    def test_rpc(self):
        self.service("t-rpc", refuse=refuse)
        for payload in ({}, {"a": [1, 2.5, None, "ü"]}, {"b": "x" * 3000000}):
            self.assertEqual(self.handle.rpc("t-rpc.echo", payload).get(), payload)
        self.assert_fails(
            errno.EBUSY, self.handle.rpc("t-rpc.refuse"), "come back tomorrow"
        )
        self.assert_fails(errno.ENOSYS, self.handle.rpc("nosuch.method"))
        self.assert_fails(errno.ENOSYS, self.handle.rpc("t-rpc.nosuch"))
        self.assert_fails(errno.EHOSTUNREACH, self.handle.rpc("t-rpc.echo", {}, 1000))

    def test_rpc_many(self):
        self.service("t-many")
        left = 2000
        wrong = []

        def done(future, number):
            nonlocal left
            left -= 1
            if future.get()["n"] != number:
                wrong.append(number)
            if left == 0:
                self.handle.reactor_stop()

        for number in range(left):
            self.handle.rpc("t-many.echo", {"n": number}).then(done, number)
        self.run_reactor()
        self.assertEqual((left, wrong), (0, []))

    def test_streaming(self):
        self.service("t-stream", many=reply_many)
        future = self.handle.rpc(
            "t-stream.many", {"count": 100}, flags=FLUX_RPC_STREAMING
        )
        for number in range(100):
            self.assertEqual(future.get()["number"], number)
            future.reset()
        self.assert_fails(errno.ENODATA, future, "that was all")

    def test_service_name(self):
        self.service("t-name")
        add = self.handle.rpc("service.add", {"service": "t-name"})
        self.assert_fails(errno.EEXIST, add)
        remove = self.handle.rpc("service.remove", {"service": "t-nobody"})
        self.assert_fails(errno.ENOENT, remove)

    def test_service_gone(self):
        service = self.service("t-gone")
        self.handle.rpc("t-gone.echo", {}).get()
        service.end(self.handle)
        self.assert_fails(errno.ENOSYS, self.handle.rpc("t-gone.echo", {}))

    def test_disconnect(self):
        """A service hears of clients that are gone, if they have used it."""
        service = self.service("t-disc")
        client = subprocess.run(
            [
                "flux",
                "python",
                "-c",
                "import flux; flux.Flux().rpc('t-disc.echo').get()",
            ],
            check=False,
        )
        self.assertEqual(client.returncode, 0)
        service.thread.join(LIMIT)
        self.assertEqual(service.requests, ["t-disc.echo", "t-disc.disconnect"])

    def test_events(self):
        seen = []

        def event(handle, watcher, msg, arg):
            text = msg.payload_str
            seen.append((msg.topic, json.loads(text) if text else None))
            if msg.topic == "t-event.last":
                handle.reactor_stop()

        watcher = self.handle.msg_watcher_create(event, FLUX_MSGTYPE_EVENT, "t-event.*")
        watcher.start()
        self.handle.event_subscribe("t-event")
        for topic, payload in (
            ("t-event.one", {"x": 1}),
            ("t-other", {}),
            ("t-event.two", None),
            ("t-event.last", {"x": "ü"}),
        ):
            self.publish(topic, payload)
        self.run_reactor()
        watcher.stop()
        self.assertEqual(
            seen,
            [
                ("t-event.one", {"x": 1}),
                ("t-event.two", None),
                ("t-event.last", {"x": "ü"}),
            ],
        )
        self.handle.event_unsubscribe("t-event")

    def publish(self, topic, payload):
        text = None if payload is None else json.dumps(payload)
        return flux.future.Future(self.handle.flux_event_publish(topic, 0, text)).get()

    def test_cred(self):
        self.service("t-cred", guest_cred=reply_cred)
        cred = self.handle.rpc("t-cred.guest_cred").get()
        self.assertEqual(cred["userid"], os.getuid())
        self.assertEqual(
            cred["rolemask"] & (FLUX_ROLE_OWNER | FLUX_ROLE_LOCAL),
            FLUX_ROLE_OWNER | FLUX_ROLE_LOCAL,
        )

    def test_guest(self):
        """The owner may pose as a guest, who is refused what is not for him."""
        self.service("t-guest", guest_cred=reply_cred)
        script = """
import flux
handle = flux.Flux()
cred = handle.rpc("t-guest.guest_cred").get()
assert cred["userid"] == 12345, cred
assert cred["rolemask"] & 3 == 2, cred
for topic in "t-guest.echo", "attr.set", "module.load":
    try:
        handle.rpc(topic, {}).get()
    except PermissionError:
        pass
    else:
        raise AssertionError(topic)
"""
        env = dict(os.environ, FLUX_HANDLE_USERID="12345", FLUX_HANDLE_ROLEMASK="0x2")
        client = subprocess.run(["flux", "python", "-c", script], env=env, check=False)
        self.assertEqual(client.returncode, 0)

    def test_log(self):
        self.handle.log(6, "a line from the engine test\nand a second")
        for text in ("a line from the engine test", "and a second"):
            out = subprocess.run(
                ["flux", "dmesg"], check=True, capture_output=True, text=True
            ).stdout
            self.assertIn(text, out)

    def test_timeout(self):
        self.service("t-late", never=ignore)
        future = self.handle.rpc("t-late.never")
        with self.assertRaises(TimeoutError):
            future.wait_for(0.01)
        # who waits no longer does not disturb others
        self.assertEqual(self.handle.rpc("t-late.echo", {"a": 1}).get(), {"a": 1})


if __name__ == "__main__":
    unittest.main()
