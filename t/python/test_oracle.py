# The oracle of runs: each of its rules, over runs of which one thing is wrong; and its
# eyes, on a simulated cluster.
# SPDX-License-Identifier: LGPL-3.0-only
"""A run that was right passes, and one with a single fault is found out by its rule."""

import pathlib
import sys
import threading
from datetime import datetime, timezone

import pytest
from sim_support import Sim

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "scripts" / "lib"))

from oracle.history import History, Recorder, Seen  # noqa: E402
from oracle.rules import WORKFLOW_LABEL, Job, Run, check  # noqa: E402

GIB = 1 << 30
STATES = ["Proposal", "Setup", "DataIn", "PreRun", "PostRun", "DataOut", "Teardown"]
# When each is asked for; it is ready half a second later.
ASKED = dict(zip(STATES, [1, 3, 4, 5, 11, 12, 13]))
EVENTS = [
    (0, "submit", {}),
    (0.1, "dependency-add", {"description": "dws-create"}),
    (2, "dependency-remove", {"description": "dws-create"}),
    (2.5, "alloc", {}),
    (2.6, "prolog-start", {"description": "dws-setup"}),
    (6, "dws_environment", {"variables": {"DW_JOB_work": "/mnt/work"}}),
    (6.1, "prolog-finish", {"description": "dws-setup", "status": 0}),
    (7, "start", {}),
    (10, "finish", {"status": 0}),
    (10.1, "epilog-start", {"description": "dws-epilog"}),
    (14, "epilog-finish", {"description": "dws-epilog", "status": 0}),
    (14.1, "free", {}),
    (14.2, "clean", {}),
]


def stamp(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def job(**changes):
    """Job 1 on node0; NAME=SECONDS moves an event, NAME=None leaves it out."""
    times = {name.replace("_", "-"): at for name, at in changes.items()}
    times["dws_environment"] = times.pop("dws-environment", 6)
    events = [
        {"timestamp": times.get(name, at), "name": name, "context": context}
        for at, name, context in EVENTS
        if times.get(name, at) is not None
    ]
    events.sort(key=lambda event: event["timestamp"])
    lines = ["#DW jobdw type=xfs capacity=10GiB name=work"]
    return Job(1, lines, events, ("node0",))


def later(jobid=2, begin=16):
    """A job that has node0 after that, without storage."""
    events = [
        {"timestamp": begin + at, "name": name, "context": {}}
        for at, name in enumerate(["alloc", "start", "finish", "free", "clean"])
    ]
    return Job(jobid, [], events, ("node0",))


def named(name, **more):
    labels = {f"{WORKFLOW_LABEL}.name": "fluxjob-1"}
    return {"metadata": {"name": name, "uid": name, "labels": labels}, **more}


def put(history, plural, name, *seen):
    """Each of 'seen' is a time and an object, and may have a version."""
    history.seen[(plural, "default", name)] = [Seen(*one) for one in seen]


def servers(size, count=1):
    where = [{"name": "rabbit0", "allocationCount": count}]
    sets = [{"label": "xfs", "allocationSize": size, "storage": where}]
    return named("servers-1", spec={"allocationSets": sets})


def history(ready=0.5, asked=ASKED, unmounted=11.5, size=10 * GIB, left=()):
    """History of job 1's objects in the API server."""
    found = History()
    workflows = []
    for state, at in asked.items():
        status = {"state": state, "desiredStateChange": stamp(at), "ready": False}
        spec = {"desiredState": state}
        workflows.append((at, named("fluxjob-1", spec=spec, status=status)))
        done = {**status, "ready": True, "readyChange": stamp(at + ready)}
        workflows.append((at + ready, named("fluxjob-1", spec=spec, status=done)))
    put(found, "workflows", "fluxjob-1", *workflows, (14, None))
    mounts = {"mounts": [{"state": "mounted", "ready": True}]}
    mount = named("mount-1", spec={"node": "node0"}, status=mounts)
    put(found, "clientmounts", "mount-1", (5.4, mount), (unmounted, None))
    storage = {
        "reference": {"name": "servers-1"},
        "allocationSets": [
            {
                "label": "xfs",
                "allocationStrategy": "AllocatePerCompute",
                "minimumCapacity": 10 * GIB,
            }
        ],
    }
    breakdown = named("breakdown-1", status={"storage": storage})
    put(found, "directivebreakdowns", "breakdown-1", (1.4, breakdown), (14, None))
    put(found, "servers", "servers-1", (3, servers(size)), (14, None))
    rabbit = {"metadata": {"name": "rabbit0"}, "status": {"capacity": 100 * GIB}}
    put(found, "storages", "rabbit0", (0, rabbit))
    for plural in left:
        put(found, plural, "left-1", (3, named("left-1", status={})))
    return found


def verdict(seen=None, *jobs):
    jobs = jobs or (job(), later())
    return check(Run(seen or history(), {j.id: j for j in jobs}))


def test_a_run_that_was_right():
    assert verdict() == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"clean": None}, "has not ended"),
        ({"dependency_remove": None}, "dependency-add of dws-create without"),
        ({"dependency_add": None}, "dependency-remove of dws-create without"),
        ({"prolog_finish": None}, "prolog-start of dws-setup without prolog-finish"),
        ({"epilog_finish": None}, "epilog-start of dws-epilog without epilog-finish"),
        ({"prolog_start": None}, "prolog-finish of dws-setup without prolog-start"),
        ({"alloc": 5.2}, "PreRun was asked for before it had nodes"),
        ({"start": 5.3}, "its tasks began before PreRun was ready"),
        ({"finish": 11.2}, "PostRun was asked for before its tasks had ended"),
        ({"free": 13.3}, "its nodes were free before Teardown was ready"),
        ({"dws_environment": None}, "its tasks began without DW_JOB_work"),
        ({"dws_environment": 7.5}, "its tasks began without DW_JOB_work"),
    ],
)
def test_the_eventlog_of_a_job(changes, text):
    wrong = verdict(None, job(**changes), later())
    assert any(line.startswith("fluxjob-1: ") and text in line for line in wrong)


def test_teardown_of_a_job_that_runs():
    asked = {**ASKED, "Teardown": 8}
    del asked["PostRun"], asked["DataOut"]
    wrong = verdict(history(asked=asked))
    assert "fluxjob-1: Teardown was asked for before its tasks had ended" in wrong


@pytest.mark.parametrize("unmount", [[], [(0, 11.4)], [(12.5, 20)]])
def test_nodes_that_are_free_too_early(unmount):
    early = job(free=11.6)
    run = Run(history(), {1: early}, unmount=unmount)
    assert check(run) == ["fluxjob-1: its nodes were free before Teardown was ready"]


@pytest.mark.parametrize("unmount", [(0, 20), (0, 11.5), (11.55, 20)])
def test_nodes_that_are_free_when_unmounted(unmount):
    """release_nodes was "unmount" at some time between unmount and free."""
    assert check(Run(history(), {1: job(free=11.6)}, unmount=[unmount])) == []
    mounted = job(free=11.2)
    (wrong,) = check(Run(history(), {1: mounted}, unmount=[unmount]))
    assert wrong.startswith("fluxjob-1: its nodes were free before")


def test_nodes_that_are_free_when_nobody_saw_the_unmount():
    seen = history()
    versions = seen.seen["workflows", "default", "fluxjob-1"]
    versions[:] = [
        one
        for one in versions
        if not one.object
        or one.object["status"]["state"] != "PostRun"
        or not one.object["status"]["ready"]
    ]
    assert check(Run(seen, {1: job(free=11.6)}, unmount=[(0, 20)])) == []
    (wrong,) = check(Run(seen, {1: job(free=11.6)}))
    assert "before Teardown" in wrong
    # nor saw it asked for
    asked = {name: at for name, at in ASKED.items() if name != "PostRun"}
    seen = history(asked=asked)
    seen.gaps["workflows"] = [(10.5, 11.8)]
    assert check(Run(seen, {1: job(free=11.6)}, unmount=[(0, 20)])) == []
    (wrong,) = check(Run(seen, {1: job(free=11.6)}))
    assert "before Teardown" in wrong


def test_data_that_nobody_has_staged_out():
    asked = {name: at for name, at in ASKED.items() if name != "DataOut"}
    seen = history(asked=asked)
    assert verdict(seen) == ["fluxjob-1: its storage is gone without DataOut"]
    seen.gaps["workflows"] = [(12, 12.5)]
    assert verdict(seen) == []


def test_more_allocations_than_nodes():
    seen = history()
    seen.seen = {
        (plural, space, name.replace("servers-1", "fluxjob-1-0")): found
        for (plural, space, name), found in seen.seen.items()
    }
    put(seen, "servers", "fluxjob-1-0", (3, servers(10 * GIB, 2)), (14, None))
    storage = seen.seen["directivebreakdowns", "default", "breakdown-1"][0].object
    storage["status"]["storage"]["reference"]["name"] = "fluxjob-1-0"
    assert verdict(seen) == ["fluxjob-1-0: 2 allocations for xfs, and 1 nodes"]


def test_what_was_done_by_hand_is_nobodys_fault():
    asked = {**ASKED, "Teardown": 8}
    touched = job()
    touched.touched = True
    assert verdict(history(asked=asked), touched, later()) == []


def test_a_mount_under_the_next_job():
    (wrong,) = verdict(history(unmounted=30))
    assert "fluxjob-2: began on node0 with a mount of fluxjob-1" in wrong


def test_a_mount_whose_end_is_seen_late():
    """The workflow was in Teardown at 13.5, after the mount was gone."""
    seen = history(unmounted=30)
    mount = ("clientmounts", "default", "mount-1")
    seen.seen[mount][-1] = Seen(30, None, 100)
    seen.marks = [(99, 12.5), (101, 13.5)]
    assert verdict(seen) == []
    seen.marks = [(99, 13.5), (101, 29.0)]
    assert "it was gone 12.0 s later" in verdict(seen)[0]


def test_the_end_of_tasks_that_the_instance_forgot():
    again = job(finish=11.2)
    again.eventlog.append(
        {"timestamp": 11.1, "name": "exception", "context": {"severity": 0}}
    )
    assert "PostRun was asked for before its tasks had ended" in verdict(None, again)[0]
    again.killed = True
    assert verdict(None, again) == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"userID": 7}, ""),
        ({"userID": 8}, "its workflow has user 8, and the job 7"),
        ({"dwDirectives": ["#DW jobdw type=xfs capacity=10GiB name=work"]}, ""),
        ({"dwDirectives": []}, "is '' in its workflow"),
        ({"dwDirectives": ["#DW jobdw type=xfs name=work"]}, "in its workflow"),
    ],
)
def test_the_wishes_of_a_job(spec, text):
    seen = history()
    for one in seen.seen["workflows", "default", "fluxjob-1"][:-1]:
        one.object["spec"].update(spec)
    mine = job()
    mine.eventlog[0]["context"] = {"userid": 7}
    wrong = verdict(seen, mine, later())
    assert len(wrong) == bool(text) and text in "".join(wrong)


def test_versions_of_a_history():
    seen = History()
    for version, at in enumerate([1, 1, 2], start=5):
        item = named("fluxjob-1", status={"readyChange": stamp(at)})
        item["metadata"]["resourceVersion"] = str(version)
        seen.note("workflows", item, before=10)
    assert seen.marks == [(15, 1), (17, 2)]
    assert [seen.latest(Seen(9, None, n)) for n in (0, 14, 15, 17)] == [9, 1, 2, 9]


def test_mounts_of_jobs_that_share_a_node_are_no_fault():
    assert verdict(history(), job(), later(begin=6)) == []


@pytest.mark.parametrize("size", [9 * GIB, 13 * GIB])
def test_less_and_more_than_was_asked_for(size):
    (wrong,) = verdict(history(size=size))
    assert wrong.startswith(f"servers-1: {size} bytes for xfs")


def test_a_rabbit_that_is_promised_twice():
    seen = history()
    put(seen, "servers", "servers-2", (4, servers(10 * GIB, 10)), (20, None))
    (wrong,) = verdict(seen)
    assert wrong.startswith("rabbit0: ") and "bytes are given" in wrong


def test_storage_that_was_given_back_before_its_object_went():
    seen = history()
    last = servers(10 * GIB, 10)
    sets = [{"label": "xfs", "storage": {"rabbit0": {"allocationSize": 100 * GIB}}}]
    whole = {**last, "status": {"allocationSets": sets}}
    put(seen, "servers", "servers-0", (0, whole), (2.5, last), (20, None))
    assert verdict(seen) == []


def test_storage_that_goes_on_one_rabbit_first():
    seen = history()
    both = servers(10 * GIB, 10)
    both["spec"]["allocationSets"][0]["storage"].append({"name": "rabbit1"})
    there = {"rabbit0": {"allocationSize": 1}, "rabbit1": {"allocationSize": 1}}
    sets = [{"label": "xfs", "storage": there}]
    rest = [{"label": "xfs", "storage": {**there, "rabbit0": {"allocationSize": 0}}}]
    whole = {**both, "status": {"allocationSets": sets}}
    part = {**both, "status": {"allocationSets": rest}}
    put(seen, "servers", "servers-0", (0, whole), (2.5, part), (20, None))
    assert verdict(seen) == []


@pytest.mark.parametrize("plural", ["clientmounts", "computes", "servers"])
def test_what_is_left(plural):
    assert verdict(history(left=[plural])) == [f"{plural} left-1 is left"]


def test_a_node_that_two_have():
    alone = job()
    alone.exclusive = True
    assert verdict(None, alone, later()) == []
    assert verdict(None, alone, later(begin=8)) == ["given twice: node0: 1 and 2"]
    assert verdict(None, job(), later(begin=8)) == []


def test_it_sees_what_the_cluster_shows(tmp_path):
    sim = Sim(tmp_path)
    recorder = Recorder(pathlib.Path(sim.kubeconfig))
    assert recorder.wait(60)
    rabbits = [item["metadata"]["name"] for item in recorder.history.now("storages")]
    assert sorted(rabbits) == ["rabbit0", "rabbit1"]
    recorder.stop()
    assert not [t for t in threading.enumerate() if t.daemon]
    assert sim.stop() == 0


LINK = "rabbit: lost its PCIe link"
UNMOUNT = "rabbit: failed to unmount in PostRun of fluxjob-1"
STILL = "rabbit: still mounted by fluxjob-1"
MAYBE = "rabbit: may be mounted by fluxjob-1"
TIMED_OUT = "workflow fluxjob-1 timed out and still has an allocation here"


def drained(reason, begin=11, end=12, node="node0"):
    """The events of a drain of a node; end=None: it is left."""
    events = [{"timestamp": begin, "name": "drain", "context": {"reason": reason}}]
    if end:
        events.append({"timestamp": end, "name": "undrain", "context": {}})
    return [{**event, "nodes": [node]} for event in events]


def given_up(type_="dws-epilog-timeout"):
    mine = job()
    context = {"type": type_, "severity": 0}
    mine.eventlog.append({"timestamp": 10.5, "name": "exception", "context": context})
    mine.let_go = True
    return mine


def links(*seen):
    """A history in which the link of node0 had these states, each since a time."""
    found = history()
    for time, status in seen:
        computes = [{"name": "node0", "status": status}]
        item = {
            "metadata": {"name": "rabbit0"},
            "status": {"capacity": 100 * GIB, "access": {"computes": computes}},
        }
        found.seen["storages", "default", "rabbit0"].append(Seen(time, item))
    return found


@pytest.mark.parametrize(
    ("reason", "mine", "text"),
    [
        ("soak", job(), ""),
        ("somebody", job(), "nothing has this reason"),
        (UNMOUNT, given_up(), ""),
        (UNMOUNT, given_up("dws-node-failure"), ""),
        (UNMOUNT, given_up("exec"), "nobody has given up that job"),
        (UNMOUNT, job(), "nobody has given up that job"),
        (STILL, job(), "nobody has given up that job"),
        (MAYBE, given_up(), ""),
        (MAYBE, job(), "nobody has given up that job"),
        ("rabbit: failed to mount in PreRun of fluxjob-1", job(), "nobody has given"),
    ],
)
def test_drains_and_their_causes(reason, mine, text):
    run = Run(history(), {1: mine}, events=drained(reason), by_hand=["soak"])
    wrong = check(run)
    assert len(wrong) == bool(text) and text in "".join(wrong)
    # of a time before the recorder
    run.history.began = 11.5
    assert check(run) == []


def test_a_drain_while_the_plugin_was_away():
    mine = job()
    mine.unplugged = True
    assert check(Run(history(), {1: mine}, events=drained(STILL))) == []


@pytest.mark.parametrize(
    ("seen", "right"),
    [
        ([(10, "Ready")], False),
        ([(9, "Ready"), (10, "Offline")], True),
        ([(8, "Offline"), (9, "Ready")], True),
        ([(9, "Ready"), (20, "Offline")], False),
    ],
)
def test_drains_for_a_link(seen, right):
    run = Run(links(*seen), {1: job()}, events=drained(LINK))
    text = f"node0 was drained for '{LINK}', and its link was not lost"
    assert check(run) == ([] if right else [text])
    run.history.gaps["storages"] = [(10, 11)]
    assert check(run) == []


@pytest.mark.parametrize("events", [drained(MAYBE, end=None), drained(MAYBE, 12, None)])
def test_a_drain_that_is_left(events):
    run = Run(history(), {1: given_up()}, events=events)
    assert check(run) == [f"node0 was drained for '{MAYBE}', and still is"]
    run.over = False
    assert check(run) == []


@pytest.mark.parametrize("mine", [job(), given_up()])
@pytest.mark.parametrize("reason", ["soak", "somebody", TIMED_OUT])
def test_disabled_rabbits_and_their_causes(reason, mine):
    seen = history()
    meta = {"name": "rabbit0", "annotations": {"disable_reason": reason}}
    item = {"metadata": meta, "status": {"capacity": 100 * GIB}}
    seen.seen["storages", "default", "rabbit0"] += [Seen(12, item), Seen(13, item)]
    wrong = check(Run(seen, {1: mine}, by_hand=["soak"]))
    right = reason == "soak" or (reason == TIMED_OUT and mine.let_go)
    assert len(wrong) == (not right)
    assert right or wrong[0].startswith(f"rabbit0 was disabled for '{reason}', and ")


OFFLINE = [{"timestamp": 3, "name": "offline", "context": {}, "nodes": ["node0"]}]


@pytest.mark.parametrize(
    ("events", "right"),
    [
        ([], False),
        (drained("soak"), True),
        (drained("soak", node="node1"), False),
        (drained("soak", 20, 21), False),
        (OFFLINE, True),
    ],
)
def test_disabled_nodes_and_their_causes(events, right):
    seen = history()
    states = ["Enabled", "Disabled", "Enabled"]
    versions = [
        (at, {"metadata": {"name": "default"}, "data": {"nodes": {"node0": state}}})
        for at, state in enumerate(states, start=12)
    ]
    put(seen, "systemstatuses", "default", *versions)
    run = Run(seen, {1: job()}, events=events, by_hand=["soak"])
    text = "node0 is Disabled in SystemStatus, and was not away"
    assert check(run) == ([] if right else [text])
