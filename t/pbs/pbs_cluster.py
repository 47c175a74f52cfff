# Drives the PBS cluster of two hosts that t/pbs/run has started.
# SPDX-License-Identifier: LGPL-3.0-only
"""Commands to a cluster whose hosts are namespaces of this machine.

DWS_PBS names the folder of its programs, PBS_CLUSTER_STATE that of its state.
Each wait polls for a visible change, for LIMIT_S at the most.
"""

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import time

SRC = pathlib.Path(__file__).resolve().parents[2] / "src" / "atom" / "pbs"
HOOK = "cray_atom"
SERVER, OTHER = "pbs", "cn2"
HOSTS = (SERVER, OTHER)
OTHER_IP = "10.99.0.2"
USER, USER_ID = "pbsuser", 4242
LIMIT_S = 60
BIN = "/opt/pbs/bin"
# The attributes that the administrator's guide has one set.
ATTRIBUTES = (
    "event = 'execjob_begin,execjob_end'",
    "order = 100",
    "alarm = 300",
    "fail_action = offline_vnodes",
)


def wait(what, ask, limit_s=LIMIT_S):
    """Poll ask() until its result is true, and return that; `what` is for the
    message."""
    end = time.monotonic() + limit_s
    while True:
        result = ask()
        if result:
            return result
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit_s} s: {what}")
        time.sleep(0.1)


# A hook that runs before ours on one host, and waits at the begin of a job until a
# test has stopped the server.
WAITER = """
import os, pbs, time
event = pbs.event()
if os.path.exists({wait!r}) and os.uname()[1] == {host!r}:
    open({there!r}, "w").close()
    while os.path.exists({wait!r}):
        time.sleep(0.05)
event.accept()
"""


def on_host(host):
    """The options of a job for a host."""
    return f"-l select=1:ncpus=1:host={host}"


class Cluster:
    def __init__(self):
        self.tool = os.path.join(os.environ["DWS_PBS"], "pbs-cluster")
        self.state = pathlib.Path(os.environ["PBS_CLUSTER_STATE"])
        self.work = self.state / "work"
        self.work.mkdir(exist_ok=True)
        # Pipe that each job without a script reads, and the descriptor that holds it.
        self.pipes = {}
        self.numbers = itertools.count()
        self.held = {}

    # Commands

    def call(self, *args, check=True):
        done = subprocess.run(
            [self.tool, *args], text=True, capture_output=True, timeout=LIMIT_S
        )
        if check and done.returncode:
            raise AssertionError(f"{args}: {done.returncode}: {done.stderr}")
        return done.stdout

    def on(self, host, *argv, check=True):
        """Run a command as root on a host."""
        return self.call("in", host, *argv, check=check)

    def qmgr(self, command, check=True):
        return self.on(SERVER, f"{BIN}/qmgr", "-c", command, check=check)

    def submit(self, options="", script=None):
        """Submit a job as the user. Returns its id. Without a script it runs until
        it is released or deleted."""
        pipe = None
        if script is None:
            # Not by the job's id, which may come again after a restart of the server,
            # and not as in an earlier run of a test.
            pipe = self.work / f"pipe-{os.getpid()}-{next(self.numbers)}"
            os.mkfifo(pipe)
            pipe.chmod(0o666)
            script = f"cat {pipe}"
        command = f"echo '{script}' | qsub -j oe -o /home/{USER}/out {options}"
        job = self.call("as-user", SERVER, command).strip()
        self.pipes[job] = pipe
        return job

    def schedule(self):
        """Start a scheduling cycle now."""
        self.qmgr("set server scheduling = true")

    def release(self, job):
        """Let a job without a script end; one that has been killed is forgotten."""
        self.started(job)
        os.close(self.held.pop(job))

    def started(self, job):
        """Wait until a job without a script runs, and handles signals. The job ends
        after release() has closed its pipe."""

        def opened():
            with contextlib.suppress(OSError):
                return os.open(self.pipes[job], os.O_WRONLY | os.O_NONBLOCK)
            return None

        if job not in self.held:
            self.held[job] = wait(f"{job} reads its pipe", opened)

    def nodes(self):
        """The vnodes by name, from pbsnodes."""
        out = self.on(SERVER, f"{BIN}/pbsnodes", "-av", "-F", "json")
        return json.loads(out)["nodes"]

    def job(self, job):
        """qstat's record of a job; None once PBS has forgotten it."""
        out = self.on(SERVER, f"{BIN}/qstat", "-xf", "-F", "json", job, check=False)
        with contextlib.suppress(ValueError):
            return json.loads(out).get("Jobs", {}).get(job)
        return None

    def wait_job(self, job, state, **attributes):
        """Wait until a job has a state, such as R, and some attributes."""

        def ask():
            seen = self.job(job) or {}
            good = seen.get("job_state") == state and all(
                seen.get(key) == value for key, value in attributes.items()
            )
            return seen if good else None

        return wait(f"{job} in state {state}", ask)

    def wait_node(self, host, state):
        return wait(
            f"{host} is {state}",
            lambda: (lambda n: n["state"] == state and n)(self.nodes()[host]),
        )

    def wait_free(self):
        wait(
            "all nodes are free and no job is left on them",
            lambda: all(
                n["state"] == "free" and not n.get("jobs")
                for n in self.nodes().values()
            ),
        )

    # The hook

    def mom_file(self, host, name):
        path = self.state / host / "home" / "mom_priv" / "hooks" / name
        return path.read_text() if path.exists() else ""

    def import_hook(self, source):
        self._import("application/x-python", source, f"{HOOK}.PY")

    def configure(self, text=None, **keys):
        """Import a configuration: this text, or the shipped one with these keys
        changed."""
        if text is None:
            shipped = json.loads((SRC / "PBS_cray_atom.CF").read_text())
            text = json.dumps({**shipped, **keys})
        path = self.work / "given.CF"
        path.write_text(text)
        self._import("application/x-config", path, f"{HOOK}.CF")

    def _import(self, kind, source, name):
        copy = self.work / f"import-{name}"
        shutil.copy(source, copy)
        hook = name.split(".")[0]
        self.qmgr(f"import hook {hook} {kind} default {copy}")
        text = copy.read_text()
        for host in HOSTS:
            wait(f"{name} on {host}", lambda h=host: self.mom_file(h, name) == text)

    def install(self):
        """Import our hook as in the administrator's guide."""
        # a repeated run finds an existing hook
        self.qmgr(f"create hook {HOOK}", check=False)
        for attribute in ATTRIBUTES:
            self.qmgr(f"set hook {HOOK} {attribute}")
        self.import_hook(SRC / "PBS_cray_atom.PY")
        self.configure()
        self.qmgr(f"set hook {HOOK} enabled = true")
        for host in HOSTS:
            wait(
                f"attributes of the hook on {host}",
                lambda h=host: (
                    "alarm=300" in (hk := self.mom_file(h, f"{HOOK}.HK"))
                    and "enabled=false" not in hk.lower()
                ),
            )

    @contextlib.contextmanager
    def extra_hook(self, name, source):
        """Have another hook before ours at each begin."""
        path = self.work / f"{name}.source"
        path.write_text(source)
        self.qmgr(f"create hook {name}")
        try:
            self.qmgr(f"set hook {name} event = execjob_begin")
            self.qmgr(f"set hook {name} order = 50")
            self.qmgr(f"set hook {name} alarm = 200")
            self._import("application/x-python", path, f"{name}.PY")
            for host in HOSTS:
                wait(
                    f"when to run {name} on {host}", lambda h=host: self._told(h, name)
                )
            yield
        finally:
            self.qmgr(f"delete hook {name}")
            for host in HOSTS:
                wait(f"{host} forgets {name}", lambda h=host: self._forgot(h, name))

    def _told(self, host, name):
        text = self.mom_file(host, f"{name}.HK")
        return "alarm=200" in text and "execjob_begin" in text

    def _forgot(self, host, name):
        return not self.mom_file(host, f"{name}.PY")

    # ATOM

    def start_atom(self, host):
        """Start the recorder on a host, for as long as the host is up."""
        program = self.work / "atomd.py"
        shutil.copy(os.path.join(os.environ["DWS_PBS"], "atomd.py"), program)
        self.answer(host)
        process = subprocess.Popen(
            [
                *(self.tool, "in", host, "/usr/bin/python3", str(program)),
                "/var/run/atomd/atomd.sock",
                *(str(self._rules(host)), str(self._record(host))),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        socket = self.state / host / "atomd" / "atomd.sock"
        wait(f"the recorder on {host}", socket.is_socket)
        return process

    def _rules(self, host):
        return self.work / f"rules.{host}.json"

    def _record(self, host):
        return self.work / f"atom.{host}.log"

    def answer(self, host, *rules):
        """How ATOM answers there from now on (see atomd.py of the engine)."""
        self._rules(host).write_text(json.dumps(rules))

    def told(self, host, job):
        """The requests about a job on a host: POST's body, or DELETE."""
        path = self._record(host)
        lines = path.read_text().splitlines() if path.exists() else []
        records = [json.loads(line) for line in lines]
        told = []
        for record in records:
            if record.get("method") == "POST":
                body = json.loads(record["body"])
                if body["jobid"] == job:
                    told.append(body)
            elif (
                record.get("path")
                == f"/rm/v1/jobs/{job.replace('[', '%5B').replace(']', '%5D')}"
            ):
                told.append(record["method"])
        return told

    def methods(self, host, job):
        """The methods of told()."""
        return [t if t == "DELETE" else "POST" for t in self.told(host, job)]

    def mom_log(self, host):
        logs = sorted((self.state / host / "home" / "mom_logs").iterdir())
        return "".join(path.read_text(errors="replace") for path in logs)

    def said(self, host, job):
        """The hook's lines on a job in a mom's log."""
        return [
            line.split("PBS_cray_atom: ", 1)[1]
            for line in self.mom_log(host).splitlines()
            if f";pbs_python;Job;{job};PBS_cray_atom: " in line
        ]

    def wait_told(self, host, job, methods):
        """Wait until ATOM has got these requests about a job on a host."""
        wait(
            f"{job} on {host}: {methods}",
            lambda: self.methods(host, job) == methods,
        )

    # Faults

    def wait_offline(self, host, job):
        """A begin that failed: the node is taken out at the first, the job is
        queued again."""
        node = self.wait_node(host, "offline")
        assert node["comment"] == f"offlined by hook '{HOOK}' due to hook error"
        return self.wait_job(job, "Q", run_count=1)

    @contextlib.contextmanager
    def server_away(self, host, kill):
        """For one job that begins on this host, make the server be away. Yields
        what does it: it waits for the job to begin. With `kill` the server is
        dead, else it only does not answer."""
        waiting, there = self.work / "waiting", self.work / "there"
        waiting.touch()
        source = WAITER.format(wait=str(waiting), there=str(there), host=host)
        lock = self.state / SERVER / "home" / "server_priv" / "server.lock"
        server = lock.read_text().strip()

        def away():
            wait(f"a job begins on {host}", there.exists)
            self.on(SERVER, "kill", "-KILL" if kill else "-STOP", server)
            waiting.unlink()

        with self.extra_hook("waiter", source):
            try:
                yield away
            finally:
                waiting.unlink(missing_ok=True)
                there.unlink(missing_ok=True)
                if kill:
                    self.on(SERVER, "/opt/pbs/sbin/pbs_server")
                else:
                    self.on(SERVER, "kill", "-CONT", server)
                self.wait_server()

    def wait_server(self):
        """Wait until the server answers, and hears all moms."""
        wait("the server", lambda: self.qmgr("list server", check=False))
        wait(
            "all moms are heard",
            lambda: not any("down" in n["state"] for n in self.nodes().values()),
        )

    @contextlib.contextmanager
    def over(self, host, path, other):
        """Have something else at a path of a host."""
        self.on(host, "mount", "--bind", str(other), path)
        try:
            yield
        finally:
            self.on(host, "umount", path)

    def restart_mom(self, host, *options, signal="TERM", between=None):
        """End a mom, and start it again with options."""
        lock = self.state / host / "home" / "mom_priv" / "mom.lock"
        mom = lock.read_text().strip()
        self.on(host, "kill", f"-{signal}", mom)
        wait("the mom has ended", lambda: not self._alive(host, mom))
        if between:
            between()
        self.on(host, "/opt/pbs/sbin/pbs_mom", *options)
        wait(f"a new mom on {host}", lambda: lock.read_text().strip() not in ("", mom))
        self.wait_server()

    def _alive(self, host, pid):
        return self.on(host, "sh", "-c", f"kill -0 {pid} && echo yes", check=False)

    def _define(self, lines):
        """Define these vnodes on the second host, whose mom is stopped: a running mom
        that rereads its configuration keeps its old vnodes."""
        path = self.work / "vnodes"
        path.write_text("\n".join(["$configversion 2", *lines, ""]))
        mom = "/opt/pbs/sbin/pbs_mom"
        self.on(OTHER, mom, "-s", "remove", "vnodes", check=False)
        self.on(OTHER, mom, "-s", "insert", "vnodes", str(path))

    def vnodes(self, lines):
        """Define the vnodes of the second host."""
        self.restart_mom(OTHER, between=lambda: self._define(lines))

    @contextlib.contextmanager
    def divided(self, lines, sharing):
        """Have these vnodes on the second host, and their `sharing` by name."""

        def seen():
            nodes = self.nodes().items()
            return {
                name: node.get("sharing")
                for name, node in nodes
                if name != SERVER and node["state"] == "free"
            }

        self.vnodes(lines)
        wait(f"vnodes {lines}", lambda: seen() == sharing)
        try:
            yield
        finally:
            self.vnodes([])
            for name in sharing:
                if name != OTHER:
                    self.qmgr(f"delete node {name}")
            wait(
                "one vnode for each host",
                lambda: (
                    {n: v["sharing"] for n, v in self.nodes().items()}
                    == dict.fromkeys(HOSTS, "default_shared")
                ),
            )

    def _call_other(self, node, host, known, lines):
        """Give the second host these names while its mom is away."""
        old = next(name for name, n in self.nodes().items() if n["Mom"] != SERVER)
        conf = self.state / OTHER / "pbs.conf"
        kept = [line for line in conf.read_text().splitlines() if "NODE_" not in line]

        def change():
            self.qmgr(f"delete node {old}")
            for where, names in ((SERVER, known), (OTHER, [host, *known])):
                hosts = self.state / where / "hosts"
                first = hosts.read_text().splitlines()[:2]
                line = " ".join([OTHER_IP, *dict.fromkeys(names)])
                hosts.write_text("\n".join([*first, line, ""]))
            own = [] if node == host.split(".")[0] else [f"PBS_MOM_NODE_NAME={node}"]
            conf.write_text("\n".join([*kept, *own, ""]))
            self.on(OTHER, "hostname", host)
            self._define(lines)
            self.qmgr(f"create node {node} Mom={known[0]}")

        self.restart_mom(OTHER, between=change)

    @contextlib.contextmanager
    def named(self, node, host, known, lines):
        """Have the second host under other names, and with these vnodes.

        Args:
            node: what PBS calls it; PBS_MOM_NODE_NAME where that is needed.
            host: what it calls itself.
            known: what the server knows it by, and it itself, too.
        """
        self._call_other(node, host, known, lines)
        try:
            wait(f"{node} is free", lambda: self.nodes()[node]["state"] == "free")
            yield
        finally:
            self.delete_jobs()
            self.wait_free()
            self._call_other(OTHER, OTHER, [OTHER], [])
            self.wait_free()

    @contextlib.contextmanager
    def alarm(self, seconds):
        """Set the alarm of our hook to this time instead of the guide's."""

        def set_to(value):
            self.qmgr(f"set hook {HOOK} alarm = {value}")
            for host in HOSTS:
                wait(
                    f"the alarm of the hook on {host}",
                    lambda h=host: f"alarm={value}" in self.mom_file(h, f"{HOOK}.HK"),
                )

        set_to(seconds)
        try:
            yield
        finally:
            set_to(300)

    def delete_jobs(self):
        jobs = json.loads(
            self.on(SERVER, f"{BIN}/qstat", "-f", "-t", "-F", "json", check=False)
            or "{}"
        )
        for job in jobs.get("Jobs", {}):
            self.on(SERVER, f"{BIN}/qdel", "-x", job, check=False)

    def repair(self):
        """After a test: no job, ATOM well, all nodes in use."""
        for host in HOSTS:
            self.answer(host)
        self.delete_jobs()
        for host in HOSTS:
            self.on(SERVER, f"{BIN}/pbsnodes", "-r", host)
            self.qmgr(f"unset node {host} comment", check=False)
        self.wait_free()
