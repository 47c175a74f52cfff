# SPDX-License-Identifier: LGPL-3.0-only
"""flux.future and flux.rpc"""

import errno
import gc

from flux.constants import FLUX_NODEID_ANY, FLUX_RPC_NORESPONSE, FLUX_RPC_STREAMING
from flux.core.handle import Flux
from flux.future import Future, FutureExt, WaitAllFuture
from flux.rpc import RPC
from support import LIMIT, Case


class TestRPC(Case):
    def test_get(self):
        rpc = RPC(self.handle, "broker.ping", {"a": 1})
        self.assertEqual(rpc.get()["a"], 1)
        self.assertIn('"a":1', rpc.get_str().replace(" ", ""))
        self.assertEqual(rpc.pimpl.get_nodeid(), FLUX_NODEID_ANY)
        self.assertGreater(rpc.pimpl.get_matchtag(), 0)
        self.assertEqual(rpc.get()["a"], 1)  # as often as one likes

    def test_payload(self):
        """Text, bytes, and what JSON can say."""
        for payload in ('{"a": 1}', b'{"a": 1}', {"a": 1}):
            self.assertEqual(self.handle.rpc("broker.ping", payload).get()["a"], 1)
        with self.fails(errno.EPROTO):
            self.handle.rpc("broker.ping").get()
        with self.assertRaises(TypeError):
            self.handle.rpc("broker.ping", object())

    def test_topic(self):
        with self.fails(errno.EINVAL):
            self.handle.rpc(None)
        with self.fails(errno.ENOSYS, "No service matching nosuch.x is registered"):
            self.handle.rpc("nosuch.x").get()
        with self.fails(errno.ENOSYS):
            self.handle.rpc("nosuch").get()

    def test_no_payload(self):
        """A response without one is None."""
        topic, payload = "event.publish", {"topic": "x", "flags": 0}
        self.assertIn("seq", self.handle.rpc(topic, payload).get())
        rpc = self.handle.rpc("kvs.namespace-remove", {"namespace": "nosuch"})
        self.assertIsNone(rpc.get())
        self.assertIsNone(rpc.get_str())

    def test_no_response(self):
        rpc = self.handle.rpc(
            "broker.ping", {}, FLUX_NODEID_ANY, flags=FLUX_RPC_NORESPONSE
        )
        self.assertTrue(rpc.is_ready())
        self.assertEqual(rpc.pimpl.get_matchtag(), 0)

    def test_flags(self):
        with self.fails(errno.EINVAL):
            self.handle.rpc("broker.ping", {}, flags=0x1000)
        both = FLUX_RPC_NORESPONSE | FLUX_RPC_STREAMING
        with self.fails(errno.EINVAL):
            self.handle.rpc("broker.ping", {}, flags=both).get()

    def test_matchtags(self):
        """Tags come back: more requests than there could be at a time."""
        tags = set()
        for _ in range(300):
            rpc = self.handle.rpc("broker.ping", {})
            rpc.get()
            tags.add(rpc.pimpl.get_matchtag())
            del rpc
        gc.collect()
        self.assertLess(len(tags), 100)


class TestFuture(Case):
    def extension(self, callback=lambda future: None):
        return FutureExt(callback, flux_handle=self.handle)

    def test_then(self):
        seen = []

        def done(future, first, key=None):
            seen.append((future.get()["a"], first, key, self.handle.reactor_running()))
            self.handle.reactor_stop()

        rpc = self.handle.rpc("broker.ping", {"a": 3})
        self.assertIs(rpc.then(done, "x", key="y"), rpc)
        with self.fails(errno.EEXIST):
            rpc.then(done, "x")
        with self.assertRaises(ValueError):
            self.handle.rpc("broker.ping", {}).then(None)
        self.assertFalse(self.handle.reactor_running())
        self.run_reactor()
        self.assertEqual(seen, [(3, "x", "y", True)])

    def test_then_of_the_fulfilled(self):
        seen = []

        def done(future):
            seen.append(future.get()["a"])
            self.handle.reactor_stop()

        rpc = self.handle.rpc("broker.ping", {"a": 4})
        rpc.wait_for(LIMIT)
        rpc.then(done)
        self.assertEqual(seen, [])
        self.run_reactor()
        self.assertEqual(seen, [4])

    def test_timeout_of_then(self):
        def done(future):
            with self.fails(errno.ETIMEDOUT):
                future.get()
            self.handle.reactor_stop()

        future = self.extension().then(done, timeout=0.01)
        self.run_reactor()
        self.assertTrue(future.is_ready())

    def test_exception_in_callback(self):
        """The exception ends the reactor and comes out of it."""

        def done(future):
            raise RuntimeError("oh dear")

        self.handle.rpc("broker.ping", {}).then(done)
        with self.assertRaisesRegex(RuntimeError, "oh dear"):
            self.run_reactor()
        self.assertEqual(self.handle.rpc("broker.ping", {"a": 1}).get()["a"], 1)

    def test_stop(self):
        """No callback after stop()."""
        first = self.handle.rpc("broker.ping", {}).then(
            lambda future: self.fail("called")
        )
        first.stop()
        self.handle.rpc("broker.ping", {}).then(lambda f: self.handle.reactor_stop())
        self.run_reactor()

    def test_wait_for(self):
        future = self.extension()
        with self.fails(errno.ETIMEDOUT):
            future.wait_for(0.01)
        with self.fails(errno.ETIMEDOUT):
            future.wait_for(0.0)
        self.assertFalse(future.is_ready())
        future.fulfill(1)
        self.assertIs(future.wait_for(0.0), future)
        self.assertEqual(future.get(), 1)

    def test_wait_for_nobody(self):
        with self.fails(errno.ETIMEDOUT):
            FutureExt(lambda future: None).wait_for(0.01)

    def test_fulfill(self):
        for value in (None, 1, "ü", {"a": [1.5]}):
            future = self.extension()
            future.fulfill(value)
            self.assertTrue(future.is_ready())
            self.assertEqual(future.get(), value)
        self.assertIsNone(future.error_string())

    def test_fulfill_many(self):
        """Results before the reset wait."""
        future = self.extension()
        for number in range(5):
            future.fulfill(number)
        for number in range(5):
            self.assertEqual((future.get(), future.get()), (number, number))
            future.reset()
        self.assertFalse(future.is_ready())
        future.fulfill("again")
        self.assertEqual(future.get(), "again")

    def test_fulfill_many_then(self):
        seen = []

        def done(future):
            seen.append(future.get())
            if len(seen) == 3:
                self.handle.reactor_stop()
            future.reset()

        future = self.extension()
        for number in range(3):
            future.fulfill(number)
        future.then(done)
        self.run_reactor()
        self.assertEqual(seen, [0, 1, 2])

    def test_fulfill_error(self):
        future = self.extension()
        future.fulfill_error(errno.EXDEV, "wrong device")
        with self.fails(errno.EXDEV, "wrong device"):
            future.get()
        self.assertEqual(future.error_string(), "wrong device")
        future = self.extension()
        future.fulfill_error(errno.EXDEV)
        with self.fails(errno.EXDEV):
            future.get()
        self.assertEqual(future.error_string(), "Invalid cross-device link")
        future = self.extension()
        future.fulfill_error()
        with self.fails(errno.ENOENT):
            future.get()

    def test_error_string(self):
        self.assertIsNone(self.extension().error_string())
        rpc = self.handle.rpc("nosuch.x")

        with self.fails(errno.ENOSYS):
            rpc.get()
        self.assertEqual(
            rpc.error_string(), "No service matching nosuch.x is registered"
        )

    def test_init(self):
        """The callback runs in a reactor of its own for get(), in the handle's
        for then()."""
        contexts = []

        def init(future, topic, key=None):
            handle = future.get_flux()
            contexts.append(handle.get_reactor() == self.handle.get_reactor())
            handle.rpc(topic, {"a": key}).then(
                lambda rpc: future.fulfill(rpc.get()["a"])
            )

        future = FutureExt(init, "broker.ping", flux_handle=self.handle, key=5)
        self.assertEqual(contexts, [])
        self.assertEqual(future.get(), 5)

        def done(future):
            self.assertEqual(future.get(), 6)
            self.handle.reactor_stop()

        later = FutureExt(init, "broker.ping", flux_handle=self.handle, key=6)
        later.then(done)
        self.run_reactor()
        self.assertEqual(contexts, [False, True])

    def test_exception_in_init(self):
        def init(future):
            raise RuntimeError("no start")

        with self.assertRaisesRegex(RuntimeError, "no start"):
            self.extension(init).get()

    def test_flux(self):
        future = FutureExt(lambda future: None)
        self.assertIsNone(future.get_flux())
        future.set_flux(self.handle)
        self.assertEqual(future.get_flux().handle, self.handle.handle)
        self.assertEqual(future.get_reactor(), self.handle.get_reactor())

    def test_references(self):
        rpc = self.handle.rpc("broker.ping", {"a": 1})
        rpc.incref()
        other = Future(rpc.handle)
        del rpc
        gc.collect()
        other.wait_for(LIMIT)
        other.get()

    def test_raise_if_handle_exception(self):
        rpc = self.handle.rpc("broker.ping", {})
        rpc.raise_if_handle_exception()
        Flux.set_exception(ValueError("pending"))
        with self.assertRaisesRegex(ValueError, "pending"):
            rpc.raise_if_handle_exception()
        rpc.raise_if_handle_exception()


class TestWaitAll(Case):
    def ping(self, number):
        return self.handle.rpc("broker.ping", {"a": number})

    def test_get(self):
        both = WaitAllFuture()
        both.push(self.ping(1))
        both.push(self.ping(2), "two")
        both.get()
        self.assertEqual([child.get()["a"] for child in both.children], [1, 2])

    def test_names(self):
        both = WaitAllFuture()
        both.push(self.ping(1), "one")
        with self.fails(errno.EEXIST):
            both.push(self.ping(2), "one")
        both.get()
        self.assertEqual([child.get()["a"] for child in both.children], [1])

    def test_error(self):
        """The future is fulfilled when all are, whatever the result."""
        both = WaitAllFuture()
        both.push(self.handle.rpc("nosuch.x"), "bad")
        both.push(self.ping(2), "good")
        both.wait_for(LIMIT)
        with self.fails(errno.ENOSYS):
            both.get()
        self.assertEqual(both.children[1].get()["a"], 2)

    def test_then(self):
        both = WaitAllFuture()
        for number in range(10):
            both.push(self.ping(number))

        def done(future):
            self.assertTrue(all(child.is_ready() for child in future.children))
            self.handle.reactor_stop()

        both.then(done)
        self.run_reactor()

    def test_timeout(self):
        both = WaitAllFuture()
        both.push(self.ping(1))
        both.push(FutureExt(lambda future: None, flux_handle=self.handle))
        with self.fails(errno.ETIMEDOUT):
            both.wait_for(0.01)
        self.assertFalse(both.is_ready())
