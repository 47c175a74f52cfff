# SPDX-License-Identifier: LGPL-3.0-only
"""flux.resource: what the instance says of its resources"""

import errno

from flux.idset import IDset
from flux.resource import (
    ResourceJournalConsumer,
    ResourceSet,
    SchedResourceList,
    resource_list,
    resource_status,
)
from flux.resource.journal import ResourceJournalEvent
from flux.resource.status import DrainInfo, ResourceStatus
from support import LIMIT, Case


class TestInstance(Case):
    def rpc(self, topic, **payload):
        return self.handle.rpc(topic, payload, nodeid=0).get()

    def drain(self, targets, reason=None):
        args = {"reason": reason} if reason else {}
        self.rpc("resource.drain", targets=targets, **args)

    def undrain(self, targets):
        self.rpc("resource.undrain", targets=targets)

    def test_list(self):
        resources = resource_list(self.handle).get()
        self.assertEqual(str(resources.all), "rank[0-3]/core[0-3]")
        self.assertEqual(resources["all"].ncores, 16)
        self.assertEqual(str(resources.all.nodelist), "node[0-3]")
        for state, count in (("up", 4), ("down", 0), ("allocated", 0), ("free", 4)):
            self.assertEqual(resources[state].nnodes, count, state)
            self.assertEqual(resources[state].state, state)
        with self.assertRaises(AttributeError):
            resources.nosuch  # noqa: B018
        resources.filter("1-2")
        self.assertEqual(str(resources.all.ranks), "1-2")
        again = resource_list(self.handle).get()
        again.filter("node3,nosuch")
        self.assertEqual(str(again.all.ranks), "3")
        some = resource_list(self.handle).get().copy_constraint({"ranks": ["0,2"]})
        self.assertEqual(str(some.up.ranks), "0,2")
        self.assertIsInstance(SchedResourceList({}), SchedResourceList)

    def test_list_in_reactor(self):
        seen = []

        def done(future):
            seen.append(future.get().all.nnodes)
            self.handle.reactor_stop()

        resource_list(self.handle).then(done)
        self.run_reactor()
        self.assertEqual(seen, [4])

    def test_status(self):
        self.drain("node[1-2]", "to be mended")
        try:
            rpc = resource_status(self.handle)
            self.assertEqual(rpc.get_status()["online"], "0-3")
            self.assertEqual(rpc.get_allocated_ranks(), IDset())
            self.assertEqual(rpc.get_housekeeping_ranks(), IDset())
            status = rpc.get()
            down = resource_list(self.handle).get().down
        finally:
            self.undrain("1-2")
        self.assertEqual(str(status.nodelist), "node[0-3]")
        for name, ranks in (
            ("all", "0-3"),
            ("online", "0-3"),
            ("offline", ""),
            ("exclude", ""),
            ("torpid", ""),
            ("drained", "1-2"),
            ("draining", ""),
            ("avail", "0,3"),
        ):
            self.assertEqual(str(status[name]), ranks, name)
        self.assertEqual(str(status.get_idset("avail", "drained")), "0-3")
        info = status.get_drain_info(2)
        self.assertIsInstance(info, DrainInfo)
        self.assertEqual((str(info.ranks), info.reason), ("1-2", "to be mended"))
        self.assertGreater(info.timestamp, 0)
        self.assertIsNone(status.get_drain_info(0))
        with self.assertRaises(ValueError):
            status.get_drain_info(7)
        status.filter("node[2-3]")
        self.assertEqual((str(status.all), str(status.drained)), ("2-3", "2"))
        self.assertEqual(str(ResourceStatus().all), "")
        self.assertEqual(str(down.ranks), "1-2")

    def test_drain_errors(self):
        for targets, errnum, text in (
            ("nosuch", errno.EINVAL, "invalid hosts: nosuch"),
            ("0-7", errno.EINVAL, "out of range"),
            ("", errno.EINVAL, "empty"),
        ):
            with self.fails(errnum, text):
                self.drain(targets)
        with self.fails(errno.EINVAL):
            self.undrain("nosuch")
        with self.fails(errno.EEXIST, "rank 0 not drained"):
            self.undrain("0")

    def test_journal(self):
        consumer = ResourceJournalConsumer(self.handle, include_sentinel=True)
        with self.assertRaises(RuntimeError):
            consumer.poll()
        consumer.start()
        names = []
        R = None
        while not (event := consumer.poll(LIMIT)).is_empty():
            names.append(event.name)
            R = R or event.R
            self.assertIn(event.name, str(event))
        self.assertIn("resource-define", names)
        self.assertEqual(ResourceSet(R).nnodes, 4)
        self.assertIn("End of historical data stream", str(event))
        self.drain("3", "x")
        event = consumer.poll(LIMIT)
        self.undrain("3")
        self.assertEqual(event.name, "drain")
        self.assertEqual((event.context["idset"], event.context["reason"]), ("3", "x"))
        self.assertEqual(consumer.poll(LIMIT).name, "undrain")
        consumer.stop()
        self.assertIsNone(consumer.poll(LIMIT))
        self.assertTrue(ResourceJournalEvent({}).is_empty())

    def test_journal_in_reactor(self):
        seen = []

        def callback(event, arg):
            seen.append((event.name, arg))
            if event.name == "drain" and event.context.get("reason") == "reactor":
                self.handle.reactor_stop()

        consumer = ResourceJournalConsumer(self.handle).start()
        consumer.set_callback(callback, 7)
        self.drain("2", "reactor")
        self.run_reactor()
        consumer.stop()
        self.undrain("2")
        self.assertEqual(seen[-1], ("drain", 7))

    def test_since(self):
        consumer = ResourceJournalConsumer(self.handle, since=2e9 * 2).start()
        with self.fails(errno.ETIMEDOUT):
            consumer.poll(0.05)
        consumer.stop()
