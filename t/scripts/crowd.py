# SPDX-License-Identifier: LGPL-3.0-only
"""A job in every phase at once, for tests of what a fault does to each.

crowd.py catch      submit them, return when each is where it is to stay
crowd.py release    let all of them go on
crowd.py outcome    wait for their end; a line for each: PHASE, "completed" or
                    "failed", types of its fatal exceptions

In between the ids are in the file "crowd", a line for each: PHASE JOBID. The
simulated cluster is that of the file "kubeconfig".
"""

import base64
import errno
import json
import os
import ssl
import sys
import urllib.request

import flux
import flux.job

LIMIT_S = 60
DIRECTIVE = "#DW jobdw type=xfs capacity=10GiB name=scratch"
# A job is caught in a phase by holding its workflow in a state.
HELD = {
    "depend": "Proposal",
    "setup": "Setup",
    "datain": "DataIn",
    "prerun": "PreRun",
    "postrun": "PostRun",
    "dataout": "DataOut",
    "teardown": "Teardown",
}
PHASES = ["depend", "pending", "setup", "datain", "prerun", "running"]
PHASES += ["postrun", "dataout", "teardown"]
FIFO = "go"  # the running job runs until somebody has opened it


def ctl(command: str, **args: object) -> dict:
    with open("kubeconfig", encoding="utf-8") as stream:
        config = json.load(stream)
    users = {user["name"]: user["user"].get("token") for user in config["users"]}
    contexts = {c["name"]: c["context"] for c in config["contexts"]}
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    trust = ssl.create_default_context(cadata=authority)
    server = cluster["server"]
    request = urllib.request.Request(
        f"{server}/dws-sim/v1/{command}",
        data=json.dumps(args).encode(),
        headers={"Authorization": f"Bearer {users[contexts['admin']['user']]}"},
    )
    with urllib.request.urlopen(request, context=trust) as response:
        result: dict = json.load(response)
    if result.get("done") is False:
        sys.exit(f"{command} {args}: timed out")
    return result


def workflow(jobid: int) -> str:
    return f"fluxjob-{int(jobid)}"


def submit(handle: flux.Flux, phase: str) -> int:
    command = ["cat", os.path.abspath(FIFO)] if phase == "running" else ["true"]
    spec = flux.job.JobspecV1.from_command(command, num_nodes=1)
    spec.cwd = os.getcwd()
    spec.environment = dict(os.environ)
    spec.attributes["system"]["dw"] = DIRECTIVE
    urgency = 16 if phase == "depend" else 0
    return int(flux.job.submit(handle, spec, urgency=urgency))


def wait_state(jobid: int, state: str) -> None:
    ctl("wait-state", workflow=workflow(jobid), state=state, timeout=LIMIT_S)


def catch(handle: flux.Flux) -> None:
    if not os.path.exists(FIFO):
        os.mkfifo(FIFO)
    ctl("hold", state="Proposal")
    jobs = {"depend": submit(handle, "depend")}
    wait_state(jobs["depend"], "Proposal")
    ctl("hold", state="Proposal", workflow=workflow(jobs["depend"]))
    ctl("release", state="Proposal", workflow="*")
    for phase in PHASES[1:]:
        jobs[phase] = submit(handle, phase)
    for phase in PHASES[1:]:
        if phase in HELD:
            ctl("hold", state=HELD[phase], workflow=workflow(jobs[phase]))
        flux.job.event_wait(handle, jobs[phase], "depend")
        if phase != "pending":
            urge(handle, jobs[phase])
    for phase in PHASES[2:]:
        if phase in HELD:
            wait_state(jobs[phase], HELD[phase])
        else:
            flux.job.event_wait(handle, jobs[phase], "start")
    with open("crowd", "w", encoding="utf-8") as stream:
        stream.writelines(f"{phase} {jobs[phase]}\n" for phase in PHASES)


def caught() -> dict:
    with open("crowd", encoding="utf-8") as stream:
        return {phase: int(jobid) for phase, jobid in map(str.split, stream)}


def urge(handle: flux.Flux, jobid: int) -> None:
    try:
        handle.rpc("job-manager.urgency", {"id": jobid, "urgency": 16}).get()
    except OSError as exc:
        if exc.errno not in (errno.EINVAL, errno.ENOENT):  # it is over already
            raise


def release(handle: flux.Flux) -> None:
    ctl("release", state="all")
    urge(handle, caught()["pending"])
    try:
        os.close(os.open(FIFO, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as exc:
        if exc.errno != errno.ENXIO:  # it does not run any more
            raise


def outcome(handle: flux.Flux) -> None:
    for phase, jobid in caught().items():
        status = None
        types = []
        for event in flux.job.event_watch(handle, jobid):
            if event.name == "finish":
                status = event.context["status"]
            elif event.name == "exception" and event.context["severity"] == 0:
                types.append(event.context["type"])
            elif event.name == "clean":
                break
        word = "completed" if status == 0 and not types else "failed"
        print(" ".join([phase, word, *sorted(set(types))]))


def main() -> None:
    {"catch": catch, "release": release, "outcome": outcome}[sys.argv[1]](flux.Flux())


if __name__ == "__main__":
    main()
