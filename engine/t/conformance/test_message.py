# SPDX-License-Identifier: LGPL-3.0-only
"""flux.message"""

import errno
import os

import flux
from flux.constants import (
    FLUX_MSGTYPE_ANY,
    FLUX_MSGTYPE_CONTROL,
    FLUX_MSGTYPE_EVENT,
    FLUX_MSGTYPE_REQUEST,
    FLUX_MSGTYPE_RESPONSE,
)
from flux.message import Message, MessageWatcher, msg_typestr
from support import Case


class TestMessage(Case):
    def test_types(self):
        for kind, name in (
            (FLUX_MSGTYPE_REQUEST, "request"),
            (FLUX_MSGTYPE_RESPONSE, "response"),
            (FLUX_MSGTYPE_EVENT, "event"),
            (FLUX_MSGTYPE_CONTROL, "control"),
        ):
            self.assertEqual(msg_typestr(kind), name)
            message = Message(kind)
            self.assertEqual((message.type, message.type_str), (kind, name))
        message.type = FLUX_MSGTYPE_EVENT
        self.assertEqual(message.type, FLUX_MSGTYPE_EVENT)
        self.assertEqual(msg_typestr(0x40), "unknown")
        with self.fails(errno.EINVAL):
            Message(FLUX_MSGTYPE_ANY)
        with self.fails(errno.EINVAL):
            message.type = 0x40

    def test_topic(self):
        message = Message()
        with self.fails(errno.EPROTO):
            message.topic  # noqa: B018
        message.topic = "foo.bar"
        self.assertEqual(message.topic, "foo.bar")
        message.topic = b"x"
        self.assertEqual(message.topic, "x")
        with self.fails(errno.EINVAL):
            message.topic = None

    def test_payload(self):
        message = Message()
        self.assertIsNone(message.payload_str)
        for value in ({"a": [1, "ü"]}, {}, "{}"):
            message.payload = value
        message.payload = {"a": [1, "ü"]}
        self.assertEqual(message.payload, {"a": [1, "ü"]})
        message.payload_str = "text"
        self.assertEqual(message.payload_str, "text")
        with self.assertRaises(ValueError):
            message.payload  # noqa: B018
        message.payload_str = None
        self.assertIsNone(message.payload_str)

    def test_credentials(self):
        message = Message()
        message.userid = 42
        message.rolemask = 3
        self.assertEqual((message.userid, message.rolemask), (42, 3))

    def test_credentials_of_what_comes(self):
        self.handle.event_subscribe("t-message")
        self.handle.event_send("t-message.x")
        event = self.handle.event_recv()
        self.assertEqual(event.userid, os.getuid())
        self.assertEqual(event.rolemask & 1, 1)

    def test_encode(self):
        event = Message.from_event_encode("a.b", {"x": 1})
        self.assertEqual(event.decode()[:2], (FLUX_MSGTYPE_EVENT, "a.b"))
        self.assertEqual(event.payload, {"x": 1})
        self.assertIsNone(Message.from_event_encode("a.b").decode()[2])
        self.assertEqual(Message.from_event_encode("a.b", "[]").payload, [])

    def test_decode(self):
        request = Message()
        request.topic = "x"
        self.assertEqual(request.decode(), (FLUX_MSGTYPE_REQUEST, "x", None))
        request.payload_str = "text"
        self.assertEqual(request.decode(), (FLUX_MSGTYPE_REQUEST, "x", "text"))
        response = Message(FLUX_MSGTYPE_RESPONSE)
        response.topic = "x"
        self.assertEqual(response.decode(), (FLUX_MSGTYPE_RESPONSE, "x", None))
        response.pimpl.set_errnum(errno.EXDEV)
        with self.fails(errno.EXDEV):
            response.decode()
        with self.fails(errno.EPROTO):
            Message().decode()


class TestMessageWatcher(Case):
    def test_requests(self):
        """Matching requests are ours; the latest handler is asked first."""
        other = flux.Flux()
        other.service_register("t-msgw").get()
        seen = []

        def answer(name):
            def callback(handle, watcher, message, arg):
                seen.append((name, message.topic, arg))
                handle.respond(message, {})
                if message.topic == "t-msgw.stop":
                    handle.reactor_stop()

            return callback

        watchers = [
            MessageWatcher(
                other, FLUX_MSGTYPE_REQUEST, answer("any"), "t-msgw.*", args=1
            ),
            MessageWatcher(other, FLUX_MSGTYPE_REQUEST, answer("stop"), b"t-msgw.stop"),
            MessageWatcher(other, FLUX_MSGTYPE_EVENT, answer("event"), "t-msgw.*"),
        ]
        for watcher in watchers:
            watcher.start()
        futures = [self.handle.rpc(f"t-msgw.{name}") for name in ("a", "stop")]
        self.run_reactor(other)
        for future in futures:
            future.get()
        self.assertEqual(seen, [("any", "t-msgw.a", 1), ("stop", "t-msgw.stop", None)])
        watchers[1].stop()
        future = self.handle.rpc("t-msgw.stop")
        self.run_reactor(other)
        future.get()
        self.assertEqual(seen[-1][0], "any")
        for watcher in watchers:
            watcher.stop()
            watcher.destroy()
            watcher.destroy()

    def test_unmatched(self):
        """A request that nobody handles is answered with ENOSYS."""
        other = flux.Flux()
        other.service_register("t-msgw2").get()

        def stop(handle, watcher, message, arg):
            handle.respond(message)
            handle.reactor_stop()

        watcher = other.msg_watcher_create(stop, FLUX_MSGTYPE_REQUEST, "t-msgw2.stop")
        watcher.start()
        futures = [self.handle.rpc(f"t-msgw2.{name}") for name in ("a", "stop")]
        self.run_reactor(other)
        with self.fails(errno.ENOSYS):
            futures[0].get()
        watcher.stop()

    def test_roles(self):
        """Guests are refused, unless the handler lets them in."""
        other = flux.Flux()
        other.service_register("t-msgw3").get()

        def answer(handle, watcher, message, arg):
            handle.respond(message, {"userid": message.userid})
            if message.topic == "t-msgw3.stop":
                handle.reactor_stop()

        for name, rolemask in (("owner", None), ("all", 7), ("stop", None)):
            watcher = other.msg_watcher_create(
                answer, FLUX_MSGTYPE_REQUEST, f"t-msgw3.{name}", rolemask=rolemask
            )
            watcher.start()
            self.addCleanup(watcher.stop)
        os.environ.update(FLUX_HANDLE_USERID="12345", FLUX_HANDLE_ROLEMASK="0x2")
        try:
            guest = flux.Flux()
        finally:
            del os.environ["FLUX_HANDLE_USERID"], os.environ["FLUX_HANDLE_ROLEMASK"]
        futures = [guest.rpc(f"t-msgw3.{name}") for name in ("owner", "all")]
        self.pump(guest, other)
        self.handle.rpc("t-msgw3.stop").then(lambda future: None)
        self.run_reactor(other)
        with self.fails(errno.EPERM):
            futures[0].get()
        self.assertEqual(futures[1].get()["userid"], 12345)

    def pump(self, *handles):
        """Everything the instance has for us is here when this is back."""
        for handle in handles:
            handle.rpc("broker.ping", {}).get()

    def test_exception(self):
        def fail(handle, watcher, message, arg):
            raise RuntimeError("in a handler")

        watcher = self.handle.msg_watcher_create(fail, FLUX_MSGTYPE_EVENT, "t-msgw3.x")
        watcher.start()
        self.handle.event_subscribe("t-msgw3")
        self.handle.event_send("t-msgw3.x")
        with self.assertRaisesRegex(RuntimeError, "in a handler"):
            self.run_reactor()
        watcher.stop()
