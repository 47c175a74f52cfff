# The library for sites, with dws-sim as Kubernetes and a stand-in for dws.so.
# SPDX-License-Identifier: LGPL-3.0-only
"""flux_k8s.storage, workflow, cleanup, watch, systemstatus and limits."""

from __future__ import annotations

import errno
import importlib
import json
import pathlib
import select
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from flux_k8s import cleanup, crd, directivebreakdown, rabbitmap, storage
from flux_k8s.directivebreakdown import ResourceLimits
from flux_k8s.systemstatus import SystemStatusManager
from flux_k8s.watch import Watch, Watchers
from flux_k8s.workflow import WorkflowInfo
from kubernetes.client import ApiException
from sim_support import Api, Sim

MAPPING = {
    "computes": {"c1": "r1", "c2": "r1"},
    "rabbits": {"r1": {"hostlist": "c[1-2]", "capacity": 1}, "r2": {"capacity": 1}},
}
JOBS = [
    {"id": 1, "rabbits": "r[1-2]"},
    {"id": 2},
    {"id": 3, "rabbits": "r2", "phase": "gone"},
]
OTHERS = 6  # a job of another user
LABEL = "flux-framework.org/instance"


class Answer:
    def __init__(self, value: Any) -> None:
        self.value = value

    def get(self) -> Any:
        if isinstance(self.value, OSError):
            raise self.value
        return self.value


class Handle:
    """dws.so of the instance "us", which lists JOBS two at a time."""

    def __init__(self, synced: bool = True, absent: bool = False) -> None:
        self.synced = synced
        self.absent = absent
        self.raised: list[Any] = []

    def rpc(self, topic: str, request: dict[str, Any]) -> Answer:
        if topic == "job-manager.raise":
            self.raised.append(request)
            return Answer({})
        assert topic == "dws.status"
        if self.absent:
            return Answer(OSError(errno.ENOSYS, "no service"))
        if request.get("list") == "jobs":
            left = [job for job in JOBS if job["id"] > request.get("after", 0)]
            more = {"next": left[1]["id"]} if len(left) > 2 else {}
            return Answer({"jobs": left[:2], **more})
        if "jobid" in request:
            found = [job for job in JOBS if job["id"] == request["jobid"]]
            if not found:
                others = request["jobid"] == OTHERS
                number = errno.EPERM if others else errno.ENOENT
                return Answer(OSError(number, "no such job of yours"))
            return Answer({"phase": "running", **found[0]})
        return Answer({"synced": self.synced, "instance": "us"})


def test_which_job_has_which_rabbit() -> None:
    handle: Any = Handle()
    assert WorkflowInfo.known_workflows(handle) == [1, 2, 3]
    manager = storage.RabbitManager(handle, None)
    assert manager.jobids_to_rabbits() == {1: ["r1", "r2"], 3: ["r2"]}
    with pytest.raises(ValueError, match="drain_queues"):
        storage.RabbitManager(handle, {"c1"})


def test_a_job_without_workflow() -> None:
    handle: Any = Handle()
    info = WorkflowInfo(2, handle=handle)
    assert (info.state, info.deleted, info.rabbits) == ("", True, [])
    info = WorkflowInfo(9, handle=handle)
    assert (info.name, info.status(), info.toredown) == ("fluxjob-9", {}, False)


def test_a_number_alone_is_no_name_of_a_job(api: Api) -> None:
    made = make(api, "1")
    cleanup.teardown_workflow(made, api.custom, Handle())
    cleanup.delete_workflow(made, api.custom, Handle())
    with pytest.raises(ApiException, match="404"):
        api.get("workflows", "1")


def test_without_the_module_nothing_is_told() -> None:
    handle: Any = Handle(absent=True)
    with pytest.raises(OSError, match="no service"):
        _ = WorkflowInfo(1, handle=handle).state


def test_a_job_is_given_up_by_an_exception() -> None:
    handle: Any = Handle()
    WorkflowInfo(1).move_to_teardown(handle, reason="so")
    WorkflowInfo(3).move_to_teardown(handle, reason="it has ended")
    WorkflowInfo(1).notify_of_node_failure(handle, ["c1", "c2", "c1"])
    assert handle.raised == [
        {"id": 1, "type": "dws-release", "severity": 0, "note": "so"},
        {"id": 1, "type": "dws-node-failure", "severity": 1, "note": "c[1-2]"},
    ]


def test_the_dictionaries_are_those_of_the_mapping(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mapping.json"
    path.write_text(json.dumps(MAPPING))
    monkeypatch.setattr(rabbitmap, "configured_path", lambda: str(path))
    anew: Any = importlib.reload(storage)
    computes, hosts = anew.HOSTNAMES_TO_RABBITS, anew.RABBITS_TO_HOSTLISTS
    assert json.dumps(computes) == json.dumps(MAPPING["computes"])
    assert {name: list(value) for name, value in hosts.items()} == {
        "r1": ["c1", "c2"],
        "r2": [],
    }
    path.write_text(json.dumps({"computes": {"c9": "r9"}, "rabbits": {}}))
    assert anew.HOSTNAMES_TO_RABBITS["c1"] == "r1"
    anew.populate_rabbits_dict()
    assert computes == {"c9": "r9"} and hosts == {}
    path.unlink()
    with pytest.raises(rabbitmap.MappingError, match=r"mapping\.json"):
        anew.populate_rabbits_dict()
    assert computes == {"c9": "r9"}


def test_the_kubeconfig_that_is_named_is_used(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("named", "other"):
        cluster = {"name": "k", "cluster": {"server": f"http://{name}:1"}}
        context = {"name": "c", "context": {"cluster": "k", "user": "u"}}
        (tmp_path / name).write_text(
            json.dumps(
                {
                    "current-context": "c",
                    "clusters": [cluster],
                    "contexts": [context],
                    "users": [{"name": "u", "user": {"token": "t"}}],
                }
            ),
            encoding="utf8",
        )
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "other"))

    def server(path: str | None) -> str:
        api = cleanup.get_k8s_api(path)
        return str(api.api_client.configuration.host)

    assert server(str(tmp_path / "named")) == "http://named:1"
    assert server(None) == "http://other:1"


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute NO"):
        _ = storage.NO


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    sim = Sim(tmp_path_factory.mktemp("sim"), "--rabbits", "rabbit[0-1]")
    yield Api(sim)
    sim.stop()


def test_the_dictionaries_can_be_those_of_kubernetes(api: Api) -> None:
    importlib.reload(storage)
    storage.populate_rabbits_dict(api.custom)
    assert set(storage.HOSTNAMES_TO_RABBITS.values()) == {"rabbit0", "rabbit1"}


def make(api: Api, name: str, state: str = "Proposal", owner: str = "") -> Any:
    metadata: dict[str, Any] = {"name": name, "finalizers": [cleanup.FINALIZER]}
    if owner:
        metadata["annotations"] = {LABEL: owner}
    spec = {"desiredState": "Proposal", "wlmID": "flux", "jobID": "f1"}
    spec.update({"userID": 0, "groupID": 0, "dwDirectives": []})  # type: ignore
    return api.create(
        "workflows", {"kind": "Workflow", "metadata": metadata, "spec": spec}
    )


@pytest.mark.parametrize(
    "name, owner, handle, text",
    [
        ("fluxjob-1", "", Handle(), "knows its job"),
        ("fluxjob-7", "us", Handle(), "flux rabbit release"),
        ("fluxjob-7", "them", Handle(), "of_instance='them'"),
        ("fluxjob-7", "", Handle(synced=False), "try again"),
    ],
)
def test_who_is_looked_after_stays(
    api: Api, name: str, owner: str, handle: Any, text: str
) -> None:
    made = make(api, name, owner=owner)
    for remove in (cleanup.teardown_workflow, cleanup.delete_workflow):
        with pytest.raises(cleanup.CleanupError, match=text):
            remove(made, api.custom, handle)
    found = api.get("workflows", name)
    assert found["spec"]["desiredState"] == "Proposal"
    assert cleanup.FINALIZER in found["metadata"]["finalizers"]
    api.patch("workflows", name, {"metadata": {"finalizers": []}})
    api.delete("workflows", name)


def test_without_the_module_nothing_is_removed(api: Api) -> None:
    made = make(api, "fluxjob-7")
    with pytest.raises(OSError, match="no service"):
        cleanup.teardown_workflow(made, api.custom, Handle(absent=True))
    with pytest.raises(cleanup.CleanupError, match="teardown_workflow"):
        cleanup.delete_workflow(made, api.custom, Handle())


def test_a_job_that_one_may_not_see_is_no_orphan(api: Api) -> None:
    made = make(api, f"fluxjob-{OTHERS}")
    with pytest.raises(OSError, match="no such job of yours"):
        WorkflowInfo(OTHERS).move_to_teardown(Handle(), api.custom, made)
    api.patch("workflows", f"fluxjob-{OTHERS}", {"metadata": {"finalizers": []}})
    api.delete("workflows", f"fluxjob-{OTHERS}")


def test_an_orphan_goes(api: Api) -> None:
    handle, made = Handle(), api.get("workflows", "fluxjob-7")
    WorkflowInfo(7).move_to_teardown(handle, api.custom)
    api.sim.ctl("wait-state", "fluxjob-7", "Teardown", "--timeout", "30")
    api.patch("workflows", "fluxjob-7", {"metadata": {"annotations": {"a": "b"}}})
    cleanup.delete_workflow(made, api.custom, handle)
    with pytest.raises(ApiException, match="404"):
        api.get("workflows", "fluxjob-7")
    cleanup.delete_workflow(made, api.custom, handle)
    cleanup.teardown_workflow(made, api.custom, handle)


def test_a_watch_misses_nothing(api: Api) -> None:
    """Not even what happens while the server forgets."""
    told: list[tuple[str, str]] = []

    def note(event: Any, prefix: str) -> None:
        told.append((event["type"], prefix + event["object"]["metadata"]["name"]))

    watch = Watch(api.custom, crd.WORKFLOW_CRD, 0, note, "w:")
    make(api, "fluxjob-20")
    make(api, "fluxjob-21")
    watch.watch()
    assert sorted(set(told)) == [("ADDED", "w:fluxjob-20"), ("ADDED", "w:fluxjob-21")]
    told.clear()
    api.patch("workflows", "fluxjob-20", {"metadata": {"finalizers": []}})
    api.delete("workflows", "fluxjob-20")
    make(api, "fluxjob-22")
    watch.resource_version = "0"  # as after 410
    watch.watch()
    kinds = {name: kind for kind, name in told if kind != "MODIFIED"}
    assert kinds == {"w:fluxjob-20": "DELETED", "w:fluxjob-22": "ADDED"}
    told.clear()
    api.patch("workflows", "fluxjob-22", {"metadata": {"finalizers": []}})
    api.delete("workflows", "fluxjob-22")
    watch.watch()
    assert ("DELETED", "w:fluxjob-22") in told


class Reactor:
    """A flux.Flux whose reactor never runs."""

    def fd_watcher_create(self, *_: Any) -> Any:
        return self

    def start(self) -> None:
        pass

    stop = destroy = start


class Waiting(Reactor):
    """A flux.Flux whose reactor waits for one event."""

    def fd_watcher_create(self, fd: int, callback: Any, *_: Any) -> Any:
        self.fd, self.callback = fd, callback
        return self

    def reactor_run(self) -> None:
        assert select.select([self.fd], [], [], 60)[0]
        self.callback()


class Faulty:
    """Fails twice, then has one event, and stays."""

    crd = crd.RABBIT_CRD

    def __init__(self) -> None:
        self.tries = 0
        self.told: list[Any] = []

    def changes(self, timeout_s: int) -> Iterator[Any]:
        self.tries += 1
        if self.tries < 3:
            raise ApiException(status=500, reason="broken")
        if self.tries == 3:
            yield "event"
        threading.Event().wait(timeout_s)

    def tell(self, event: Any) -> None:
        self.told.append(event)


def test_a_watch_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    faulty: Any = Faulty()
    with Watchers(Reactor(), watch_interval=0.001) as watchers:
        watchers.add_watch(faulty)
        while not faulty.told:
            watchers.watch()
    assert faulty.told == ["event"]
    assert len([r for r in caplog.records if "broken" in r.getMessage()]) == 1


def test_a_watch_goes_on_after_its_newest_event() -> None:
    watch = Watch(None, crd.RABBIT_CRD, 5, lambda event: None)
    obj = {"metadata": {"name": "a", "resourceVersion": "8"}}
    watch._note("MODIFIED", obj)
    assert watch.resource_version == "8"
    watch.resource_version = "0"  # until a list is over
    watch._note("MODIFIED", obj)
    assert watch.resource_version == "0"


def test_a_watch_wakes_the_reactor() -> None:
    faulty: Any = Faulty()
    handle = Waiting()
    with Watchers(handle, watch_interval=0.001) as watchers:
        watchers.add_watch(faulty)
        handle.reactor_run()
    assert faulty.told == ["event"]


def test_a_version_that_the_server_has_forgotten() -> None:
    class Forgetful:
        def list_namespaced_custom_object(self, *_: Any, **options: Any) -> Any:
            """(...) -> object"""
            if options.get("watch"):
                raise ApiException(status=410, reason="Gone")
            metadata = {"name": "a", "resourceVersion": "8"}
            return {
                "metadata": {"resourceVersion": "9"},
                "items": [{"metadata": metadata}],
            }

    told: list[str] = []
    watch = Watch(
        Forgetful(), crd.RABBIT_CRD, 5, lambda event: told.append(event["type"])
    )
    watch.watch()
    assert told == [] and watch.resource_version == "0"
    watch.watch()
    watch.watch()
    assert told == ["ADDED"]


def test_system_status_is_read(api: Api) -> None:
    manager = SystemStatusManager(None, api.custom)
    before = manager.nodes()
    nodes = {"n1": "Disabled", "n2": "Enabled"}
    api.patch("systemstatuses", "default", {"data": {"nodes": nodes}})
    assert manager.nodes() == {**before, **nodes}
    assert manager.disabled() == ["n1"]
    api.delete("systemstatuses", "default")
    assert manager.disabled() == []


def test_the_versions_are_those_of_the_server(api: Api) -> None:
    crd.WORKFLOW_CRD.version = "v0"
    crd.determine_api_versions(None, api.custom)
    assert list(crd.WORKFLOW_CRD)[1:] == ["v1alpha7", "default", "workflows"]


class Limits(ResourceLimits):
    xfs = 20
    lustre = 10


@pytest.mark.parametrize(
    "asked, nodes, text",
    [
        ([("xfs", 20)], 1, ""),
        ([("xfs", 12), ("xfs", 12)], 2, "24 GiB of xfs"),
        ([("gfs2", 500)], 1, ""),
        ([("ost", 16), ("mdt", 4)], 2, ""),
        ([("ost", 40)], 2, "20 GiB of lustre"),
    ],
)
def test_limits(asked: list[tuple[str, int]], nodes: int, text: str) -> None:
    limits = Limits()
    for label, gib in asked:
        limits.increment(label, gib)
    if not text:
        limits.validate(nodes)
        return
    with pytest.raises(ValueError, match=text):
        limits.validate(nodes)


def test_what_was_asked_for() -> None:
    limits = ResourceLimits()
    for label, gib in (("xfs", 1), ("xfs", 2), ("mgt", 1), ("ost", 4)):
        limits.increment(label, gib)
    assert (limits.xfs, limits.gfs2, limits.lustre, ResourceLimits.xfs) == (
        *(3, 0, 5),
        None,
    )
    with pytest.raises(AttributeError):
        limits.increment("floppy", 1)


def test_lustre_or_not() -> None:
    assert directivebreakdown.check_is_lustre([{"label": "mgt"}])
    assert not directivebreakdown.check_is_lustre([{"label": "xfs"}, {"label": "raw"}])
    assert [s.value for s in directivebreakdown.AllocationStrategy] == [
        "AllocatePerCompute",
        "AllocateSingleServer",
        "AllocateAcrossServers",
    ]
