# SPDX-License-Identifier: LGPL-3.0-only
"""flux.resource: what the instance says, and sets of resources"""

import errno
import json

from flux.idset import IDset
from flux.resource import (
    ResourceJournalConsumer,
    ResourcePool,
    ResourceSet,
    Rv1Set,
    SchedResourceList,
    resource_list,
    resource_status,
)
from flux.resource.journal import ResourceJournalEvent
from flux.resource.ResourceCount import ResourceCount
from flux.resource.Rv1Pool import ResourceRequest
from flux.resource.status import DrainInfo, ResourceStatus
from support import LIMIT, Case

R = {
    "version": 1,
    "execution": {
        "R_lite": [
            {"rank": "0-1", "children": {"core": "0-3", "gpu": "0"}},
            {"rank": "2", "children": {"core": "0-1"}},
        ],
        "nodelist": ["a[0-2]"],
        "properties": {"big": "0-1", "odd": "1"},
        "starttime": 10,
        "expiration": 20,
    },
}


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


class TestResourceSet(Case):
    def setUp(self):
        super().setUp()
        self.rset = ResourceSet(R)

    def test_numbers(self):
        rset = self.rset
        self.assertEqual((rset.nnodes, rset.ncores, rset.ngpus), (3, 10, 2))
        self.assertEqual((rset.count("core"), rset.count("nosuch")), (10, 0))
        self.assertEqual((str(rset.ranks), str(rset.nodelist)), ("0-2", "a[0-2]"))
        text = "rank[0-1]/core[0-3],gpu0 rank2/core[0-1]"
        self.assertEqual([str(rset), rset.dumps(), rset.rlist], [text] * 3)
        self.assertEqual((rset.starttime, rset.expiration), (10, 20))
        rset.starttime, rset.expiration = 1, 2
        self.assertEqual((rset.starttime, rset.expiration), (1, 2))
        rset.state = "up"
        self.assertEqual((rset.state, rset.copy().state), ("up", "up"))
        self.assertEqual(ResourceSet().nnodes, 0)

    def test_encode(self):
        expected = json.loads(json.dumps(R))
        self.assertEqual(json.loads(self.rset.encode()), expected)
        self.assertEqual(self.rset.to_dict(), expected)
        self.assertEqual(ResourceSet(self.rset.encode()).to_dict(), expected)
        self.assertEqual(ResourceSet(Rv1Set(R)).to_dict(), expected)
        for bad, error in (
            (7, TypeError),
            ("[", ValueError),
            ({"version": 2}, ValueError),
        ):
            with self.assertRaises(error):
                ResourceSet(bad)

    def test_algebra(self):
        rset = self.rset
        one = rset.copy_ranks("1")
        self.assertEqual(str(one), "rank1/core[0-3],gpu0")
        self.assertEqual(str((rset - one).ranks), "0,2")
        self.assertEqual(str(rset.diff(one).ranks), "0,2")
        self.assertEqual(str((rset & one).ranks), "1")
        self.assertEqual(str(rset.intersect(one).ranks), "1")
        self.assertEqual(str((one | rset.copy_ranks(IDset("2"))).ranks), "1-2")
        self.assertEqual(str(one.union(rset).ranks), "0-2")
        part = rset.copy()
        part.remove_ranks("0")
        self.assertEqual(str(part.ranks), "1-2")
        part.append(rset.copy_ranks("0"))
        self.assertEqual(part.ncores, 10)
        part.remove_ranks(IDset("0-1"))
        part.add(rset.copy_ranks("0"))
        self.assertEqual(str(part.ranks), "0,2")
        self.assertEqual(rset.nnodes, 3)

    def test_properties(self):
        rset = self.rset
        self.assertEqual(json.loads(rset.get_properties()), {"big": "0-1", "odd": "1"})
        self.assertEqual(rset.properties, "big,odd")
        rset.set_property("new", "2").set_property("all")
        self.assertEqual(json.loads(rset.get_properties())["all"], "0-2")
        with self.assertRaises(ValueError):
            rset.set_property("x", "7")
        with self.assertRaises(ValueError):
            rset.set_property("^x")

    def test_constraints(self):
        for constraint, ranks in (
            ({"properties": ["big"]}, "0-1"),
            ({"properties": ["big", "^odd"]}, "0"),
            ({"hostlist": ["a[1-2]"]}, "1-2"),
            ({"ranks": ["0,2"]}, "0,2"),
            ({"and": [{"properties": ["big"]}, {"ranks": ["1-2"]}]}, "1"),
            ({"or": [{"properties": ["odd"]}, {"ranks": ["2"]}]}, "1-2"),
            ({"not": [{"properties": ["big"]}]}, "2"),
            ('{"ranks": ["0"]}', "0"),
        ):
            self.assertEqual(str(self.rset.copy_constraint(constraint).ranks), ranks)
        with self.assertRaises(ValueError):
            self.rset.copy_constraint({"nosuch": []})

    def test_hosts(self):
        self.assertEqual(self.rset.host_ranks("a[1-2]"), [1, 2])
        self.assertEqual(self.rset.host_ranks("a0,x", ignore_nomatch=True), [0])
        with self.assertRaises(FileNotFoundError):
            self.rset.host_ranks("x")

    def test_scheduling(self):
        """A key of its own, which only those see who ask for it."""
        with_key = dict(R, scheduling={"x": 1})
        self.assertIsNone(Rv1Set(with_key).scheduling)
        rset = Rv1Set(with_key, keep_scheduling=True)
        self.assertEqual(rset.to_dict()["scheduling"], {"x": 1})
        rset.scheduling = {"x": 2}
        self.assertEqual(json.loads(rset.encode())["scheduling"], {"x": 2})


class TestPool(Case):
    def setUp(self):
        super().setUp()
        self.lines = []
        self.pool = ResourcePool(R, log=lambda level, text: self.lines.append(text))

    def request(self, *command, **kwargs):
        spec = self.jobspec(*command, **kwargs)
        return self.pool.parse_resource_request(json.loads(spec.dumps()))

    def test_request(self):
        request = self.request(num_nodes=2, num_tasks=4, cores_per_task=2)
        self.assertIsInstance(request, ResourceRequest)
        self.assertEqual((request.nnodes, request.nnodes_max), (2, 2))
        self.assertEqual((request.nslots, request.nslots_max), (4, 4))
        self.assertEqual((request.ncores, request.ngpus), (8, 0))
        for bad in ({}, {"resources": [{"type": "node", "count": 1}]}):
            with self.assertRaises(ValueError):
                ResourceRequest.from_jobspec(bad)

    def test_alloc(self):
        before = self.pool.generation
        got = self.pool.alloc(1, self.request(num_nodes=1, num_tasks=1, exclusive=True))
        self.assertEqual(got.to_resource_set().nnodes, 1)
        self.assertEqual(str(self.pool.copy_allocated()), got.dumps())
        self.assertGreater(self.pool.generation, before)
        self.assertEqual([jobid for jobid, _ in self.pool.job_end_times()], [1])
        self.pool.update_expiration(1, 99.0)
        self.assertEqual(self.pool.job_end_times(), [(1, 99.0)])
        self.pool.free(1, final=True)
        self.assertEqual(self.pool.copy_allocated().nnodes, 0)
        self.pool.register_alloc(2, got)
        self.assertEqual(str(self.pool.copy_allocated()), got.dumps())
        self.pool.free(2, got)
        self.assertEqual(self.pool.copy_allocated().nnodes, 0)
        self.assertTrue(any("alloc" in line for line in self.lines))

    def test_limits(self):
        big = self.request(num_nodes=4, num_tasks=4)
        for call in (self.pool.check_feasibility, lambda r: self.pool.alloc(1, r)):
            with self.assertRaises(ResourcePool.InfeasibleRequest):
                call(big)
        three = self.request(num_nodes=3, num_tasks=3)
        self.pool.check_feasibility(three)
        self.pool.mark_down("2")
        self.assertEqual(str(self.pool.copy_down().ranks), "2")
        self.pool.check_feasibility(three)
        with self.assertRaises(ResourcePool.InsufficientResources):
            self.pool.alloc(1, three)
        self.pool.mark_up("all")
        self.assertEqual(self.pool.alloc(1, three).to_resource_set().nnodes, 3)
        copy = self.pool.copy()
        copy.remove_ranks("0")
        self.assertEqual(copy.to_resource_set().nnodes, 2)
        self.assertEqual(self.pool.to_resource_set().nnodes, 3)

    def test_times(self):
        self.pool.expiration = 50.0
        self.assertEqual(self.pool.expiration, 50.0)
        self.pool.set_starttime(1.0)
        self.pool.set_expiration(60.0)
        execution = self.pool.to_dict()["execution"]
        self.assertEqual((execution["starttime"], execution["expiration"]), (1, 60))

    def test_tree(self):
        """The same, with what is between node and core."""
        from flux.resource import TreePool

        sockets = [{"cores": "0-1"}, {"cores": "2-3"}]
        children = [
            {"ranks": "0-1", "topo": {"socket": sockets}},
            {"ranks": "2", "topo": {"socket": sockets[:1]}},
        ]
        tree = dict(R, scheduling={"children": children})
        pool = TreePool.TreePool(tree)
        self.assertEqual(pool.to_resource_set().nnodes, 3)
        self.assertEqual(TreePool.amend(R), R)
        request = TreePool.TreeResourceRequest.from_jobspec(
            json.loads(self.jobspec(num_nodes=1, num_tasks=2).dumps())
        )
        self.assertEqual(pool.alloc(1, request).to_resource_set().ncores, 2)


class TestCount(Case):
    def test_counts(self):
        for spec, low, high, values in (
            (3, 3, 3, [3]),
            ("3", 3, 3, [3]),
            ("2-4", 2, 4, [4, 3, 2]),
            ("[1,2,8]", 1, 8, [8, 2, 1]),
            ("2+", 2, None, [10, 9, 8, 7, 6, 5, 4, 3, 2]),
            ("1-8:2:*", 1, 8, [8, 4, 2, 1]),
            ({"min": 1, "max": 7, "operator": "+", "operand": 3}, 1, 7, [7, 4, 1]),
            ({"min": 2}, 2, None, list(range(10, 1, -1))),
        ):
            count = ResourceCount.from_count_spec(spec)
            self.assertEqual((count.min, count.max), (low, high), spec)
            self.assertEqual(list(count.valid_counts(10)), values, spec)
            self.assertEqual(count.scaled(2).min, 2 * low)
            self.assertIn(f"ResourceCount({low}, {high}", repr(count))
        self.assertEqual(list(ResourceCount(5, 6).valid_counts(4)), [])
        for bad in (0, "0", "4-2:1", {"min": 3, "max": 2}, "1-4:1:*", "1-4:1:x"):
            with self.assertRaises(ValueError, msg=bad):
                ResourceCount.from_count_spec(bad)
