# Containers that are processes: what dws-sim runs, and what it does not.
# SPDX-License-Identifier: LGPL-3.0-only
"""dws-sim run --containers run."""

from __future__ import annotations

import base64
import itertools
import os
import pathlib
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from dws_sim import podlog
from dws_sim.controllers.shutdown import trust
from dws_sim.mounts import Mounts
from dws_sim.processes import expand
from sim_support import LIMIT_S, SOURCE, Api, Job, Sim, error_in

GFS2 = "#DW jobdw type=gfs2 capacity=1GiB name=local"
PROFILES = "nnfcontainerprofiles"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """API of a simulator that runs containers."""
    sim = Sim(tmp_path_factory.mktemp("sim"), "--containers", "run")
    yield Api(sim)
    assert sim.stop() == 0


def profile(api: Api, *containers: dict[str, Any], **data: Any) -> str:
    """Make one that does not try again."""
    name = f"profile{next(_numbers)}"
    storage = {"name": "DW_JOB_foo_local_storage", "optional": False}
    body = {
        "createContainer": True,
        "retryLimit": 0,
        "storages": [storage],
        "spec": {"containers": [{"image": "none", **c} for c in containers]},
    }
    meta = {"name": name, "namespace": "nnf-system"}
    obj = {"kind": "NnfContainerProfile", "metadata": meta, "data": {**body, **data}}
    api.create(PROFILES, obj, "nnf-system")
    return name


def start(api: Api, profile: str, *more: str, **spec: Any) -> Job:
    """A job with two nodes on a rabbit, up to PreRun."""
    line = f"#DW container name=mine profile={profile} DW_JOB_foo_local_storage=local"
    job = Job(api, f"wf{next(_numbers)}", GFS2, line, *more, **spec)
    job.wait("Proposal")
    job.give({"rabbit0": 2}, ["node0", "node1"])
    job.through("PreRun")
    return job


def shell(name: str, script: str) -> dict[str, Any]:
    return {"name": name, "command": ["/bin/sh", "-c"], "args": [script]}


def log(api: Api, job: Job, container: str) -> str:
    pod = f"{job.name}-rabbit0-0"
    text: str = api.core.read_namespaced_pod_log(pod, "default", container=container)
    return text


def test_each_container_has_its_log(api: Api) -> None:
    name = profile(api, shell("one", "echo 1"), shell("two", "echo 2"))
    job = start(api, name)
    job.to("PostRun")
    assert [log(api, job, c) for c in ("one", "two")] == ["1\n", "2\n"]
    job.remove()


def test_one_of_two_fails(api: Api) -> None:
    name = profile(api, shell("one", "exit 0"), shell("two", "exit 7"))
    job = start(api, name)
    job.to("PostRun", ready=False)
    assert error_in(api, job.name) == "DW Directive 1: Internal error: "
    job.remove()


def test_those_of_others_are_not_run(api: Api, tmp_path: pathlib.Path) -> None:
    made = tmp_path / "made"
    name = profile(api, shell("one", f"touch {made}"))
    other = os.getuid() + 1
    job = start(api, name, userID=other)
    job.to("PostRun", ready=False)
    error_in(api, job.name)
    assert f"runs nothing for user {other}" in log(api, job, "one")
    assert not made.exists()
    job.remove()


@pytest.mark.parametrize(
    ("container", "text"),
    [
        ({"name": "one"}, "the profile names no command"),
        ({"name": "one", "command": ["/nowhere"]}, "No such file"),
        ({"name": "one", "command": [1]}, "the profile names no command"),
    ],
)
def test_what_cannot_be_run_says_so(
    api: Api, container: dict[str, Any], text: str
) -> None:
    job = start(api, profile(api, container))
    job.to("PostRun", ready=False)
    error_in(api, job.name)
    assert text in log(api, job, "one")
    job.remove()


def test_no_shell_sees_a_command(api: Api) -> None:
    word = "$(NNF_NODE_NAME); id `id` $(id)"
    container = {"name": "one", "command": ["printf", "%s\n", word]}
    job = start(api, profile(api, container))
    job.to("PostRun")
    assert log(api, job, "one") == "rabbit0; id `id` $(id)\n"
    job.remove()


def with_token(api: Api, name: str) -> Job:
    """A job with a token and a container of that profile, up to PostRun."""
    job = Job(
        api,
        f"wf{next(_numbers)}",
        f"{GFS2} requires=user-container-auth",
        f"#DW container name=mine profile={name} DW_JOB_foo_local_storage=local",
    )
    job.wait("Proposal")
    job.give({"rabbit0": 1}, ["node0"])
    job.through("PostRun")
    return job


def test_files_of_the_token(api: Api) -> None:
    name = profile(api, shell("one", "cat $(TOKEN_KEY_PATH)"))
    job = with_token(api, name)
    assert "EC PRIVATE KEY" in log(api, job, "one")
    job.remove()


# Serves HTTPS as a program in NNF's user containers does: answers 503 first, then
# prints the request and ends.
SERVER = """
import http.server, os, ssl

class Handler(http.server.BaseHTTPRequestHandler):
    answers = [503, 200]

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        print(self.path, body.decode(), self.headers["X-Auth-Type"], flush=True)
        print(self.headers["Authorization"], flush=True)
        self.send_response(self.answers.pop(0))
        self.end_headers()

    def log_message(self, *words):
        pass

at = "127.0.0.1", int(os.environ["NNF_CONTAINER_PORTS"])
server = http.server.HTTPServer(at, Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.environ["TLS_CERT_PATH"], os.environ["TLS_KEY_PATH"])
server.socket = context.wrap_socket(server.socket, server_side=True)
while Handler.answers:
    server.handle_request()
"""


def test_a_program_that_goes_on_is_asked_to_end(api: Api) -> None:
    """As often as it takes; by HTTPS, with the token of the job."""
    container = {"name": "one", "command": [sys.executable, "-c", SERVER]}
    name = profile(api, container, numPorts=1)
    job = with_token(api, name)
    secret = api.core.read_namespaced_secret(f"{job.name}-token", "default")
    token = base64.b64decode(secret.data["token"]).decode()
    assert log(api, job, "one").split("\n") == [
        *('/shutdown {"message": "shutdown"} XOAUTH2', f"Bearer {token}") * 2,
        "",
    ]
    job.remove()


@pytest.mark.parametrize(
    "secret",
    [{}, {"data": None}]
    + [{"data": {"tls.crt": text}} for text in ("", "none", "eA==", "=", None)],
)
def test_without_a_certificate_nobody_is_asked(secret: dict[str, Any]) -> None:
    assert trust(secret) is None


def running(api: Api, **data: Any) -> tuple[Job, int]:
    """A job whose container never ends, and the pid of one of its processes."""
    name = profile(api, shell("one", "sleep 1000 & echo $!; wait"), **data)
    job = start(api, name)
    text, limit = "", time.monotonic() + LIMIT_S
    while not text.endswith("\n"):
        assert time.monotonic() < limit
        text = log(api, job, "one")
    return job, os.pidfd_open(int(text))


def ends(process: int) -> bool:
    """Wait for the end of a process."""
    with os.fdopen(process, "rb", buffering=0) as file:
        ready, _, _ = select.select([file], [], [], LIMIT_S)
    return bool(ready)


def test_none_stays_when_its_job_is_deleted(api: Api) -> None:
    job, process = running(api, postRunTimeoutSeconds=0)
    job.to("PostRun")
    job.remove()
    assert ends(process)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_none_outlives_the_simulator(
    tmp_path: pathlib.Path, number: signal.Signals
) -> None:
    sim = Sim(tmp_path, "--containers", "run")
    _, process = running(Api(sim))
    sim.process.send_signal(number)
    sim.process.wait(LIMIT_S)
    assert ends(process)


def test_it_is_off_unless_asked_for(sim: Sim, tmp_path: pathlib.Path) -> None:
    api, made = Api(sim), tmp_path / "made"
    job = start(api, profile(api, shell("one", f"touch {made}")))
    job.to("PostRun")
    assert not made.exists()
    job.remove()


def test_it_needs_a_folder(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-m", "dws_sim", "run", "--containers", "run"]
    done = subprocess.run(
        [*command, "--kubeconfig", str(tmp_path / "kubeconfig")],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "needs --root" in done.stderr


def test_words_of_kubernetes() -> None:
    env = {"A": "x", "B": "$(A)"}
    assert expand("$(A)-$$(A)-$(C)-$(B)", env) == "x-$(A)-$(C)-$(A)"


def test_what_a_rabbit_sees(tmp_path: pathlib.Path) -> None:
    mounts = Mounts(str(tmp_path))
    path = f"{mounts.mount_root}/one"
    mounts.mount("rabbit0", f"{path}/rabbit0-0", "data")
    mounts.mount("rabbit1", f"{path}/rabbit1-0", "data")
    mounts.mount("rabbit0", f"{path}two/rabbit0-0", "other")
    assert mounts.seen("rabbit0", path) == {"rabbit0-0": mounts.backing("data")}
    assert mounts.seen("rabbit0", f"{path}/rabbit0-0") == {"": mounts.backing("data")}
    mounts.unmount("rabbit0", f"{path}/rabbit0-0")
    assert mounts.seen("rabbit0", path) == {}


def test_output_without_a_newline_is_bounded() -> None:
    output = podlog.Output()
    for _ in range(3):
        output.add(b"x" * podlog.LOG_BYTES)
    output.add(b"end\n")
    (line,) = output.lines()
    assert len(line.text) == podlog.LOG_BYTES + len(b"end\n")
    assert line.text.endswith(b"xend\n")
