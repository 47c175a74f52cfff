# SPDX-License-Identifier: LGPL-3.0-only
"""An agent with a Kubernetes of its own, for tests of dws.so alone.

Workflows reach each desired state at once, but for the states held until nodes are
left out, and those that end in an error. --state keeps the objects in a file from
one agent to the next. --count ends the agent after so many workflows were deleted.
--relist lists all anew during each patch of a workflow: the list is older than the
patch, and told after it. --shown answers a patch of a workflow when its controllers
are through, and does not tell again what the answer shows.
"""

import argparse
import json
import os
import sys
from collections import deque
from datetime import datetime, timezone

import flux
import flux.constants
from flux_k8s.fields import project

LEFT_OUT = "flux-framework.org/failed-nodes"


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Cluster:
    """The objects, and what DWS would do to them."""

    def __init__(self, args):
        self.args = args
        self.version = 100
        self.objects = {}
        self.events = deque()
        self.deleted = 0
        if args.state and os.path.exists(args.state):
            with open(args.state, encoding="utf-8") as fp:
                self.version, entries = json.load(fp)
            self.objects = {tuple(key): obj for key, obj in entries}

    def save(self):
        if self.args.state:
            with open(self.args.state, "w", encoding="utf-8") as fp:
                json.dump([self.version, list(self.objects.items())], fp)

    def touch(self, kind, obj, event):
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        if kind == "workflows":
            copy = project(kind, json.loads(json.dumps(obj)))
            self.events.append({"type": "workflow", "event": event, "object": copy})

    def find(self, cmd):
        key = (cmd["kind"], cmd["namespace"], cmd["name"])
        if key not in self.objects:
            raise Refused(404, f"{cmd['kind']} {cmd['name']} not found")
        return self.objects[key]

    def add(self, kind, obj):
        meta = obj["metadata"]
        meta.setdefault("namespace", "default")
        meta["uid"] = f"uid-{self.version}"
        self.objects[kind, meta["namespace"], meta["name"]] = obj
        self.touch(kind, obj, "ADDED")
        return obj

    def run(self, cmd):
        do = getattr(self, "do_" + cmd["op"].replace("-", "_"), None)
        if do is None:
            raise Refused(501, f"the stand-in has no command {cmd['op']}")
        return do(cmd)

    def do_kubeconfig(self, cmd):
        return []  # any can be used

    def do_create(self, cmd):
        if self.args.refuse:
            raise Refused(
                403,
                'admission webhook "vworkflow.kb.io" denied the request: '
                + self.args.refuse,
            )
        if (cmd["kind"], cmd["namespace"], cmd["name"]) in self.objects:
            raise Refused(409, "already exists")
        obj = {"kind": "Workflow", **cmd["object"]}
        obj["status"] = {"ready": False, "env": {}, "computes": {}}
        obj["metadata"]["finalizers"].append("dws")
        return self.add(cmd["kind"], obj)

    def do_patch(self, cmd):
        obj = self.find(cmd)
        for key, value in cmd["patch"].items():
            if isinstance(value, dict):
                obj.setdefault(key, {}).update(value)
            else:
                obj[key] = value
        self.touch(cmd["kind"], obj, "MODIFIED")
        return obj

    def do_get(self, cmd):
        return self.find(cmd)

    def do_drop_finalizer(self, cmd):
        try:
            obj = self.find(cmd)
        except Refused:
            return None
        finalizers = obj["metadata"]["finalizers"]
        if cmd["finalizer"] in finalizers:
            finalizers.remove(cmd["finalizer"])
            self.touch(cmd["kind"], obj, "MODIFIED")
        return obj

    def do_delete(self, cmd):
        try:
            obj = self.find(cmd)
        except Refused:
            return None
        obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.touch(cmd["kind"], obj, "MODIFIED")
        return obj

    def do_list(self, cmd):
        if cmd["kind"] == "servers" and self.args.lagging:
            return [self.servers([self.args.lagging])]
        return [obj for key, obj in self.objects.items() if key[0] == cmd["kind"]]

    def control(self):
        """Run a pass of the controllers."""
        for key, obj in list(self.objects.items()):
            if key[0] != "workflows":
                continue
            if obj["metadata"].get("deletionTimestamp"):
                self.collect(key, obj)
            else:
                self.advance(key[2], obj)

    def collect(self, key, obj):
        if obj["metadata"]["finalizers"] == ["dws"]:
            del self.objects[key]
            for kind in (
                "computes",
                "servers",
                "directivebreakdowns",
                "nnfdatamovements",
            ):
                for other in [k for k in self.objects if k[2].startswith(key[2])]:
                    if other[0] == kind:
                        del self.objects[other]
            self.touch("workflows", obj, "DELETED")
            self.deleted += 1

    def advance(self, name, obj):
        status = obj["status"]
        desired = obj["spec"]["desiredState"]
        annotations = obj["metadata"].get("annotations", {})
        if status.get("state") != desired:
            status.update(state=desired, ready=False, status="DriverWait", message="")
            status["desiredStateChange"] = datetime.now(timezone.utc).strftime(
                "%FT%T.%fZ"
            )
            self.touch("workflows", obj, "MODIFIED")
        held = desired in self.args.hold and LEFT_OUT not in annotations
        if status["ready"] or held:
            return
        if desired in self.args.error:
            if status["status"] != "Error":
                status.update(status="Error", message="made to fail")
                self.touch("workflows", obj, "MODIFIED")
            return
        if desired == "Proposal":
            self.propose(name, obj)
        elif desired == "DataIn":
            for number, word in enumerate(("Success", "Failed")):
                movement = {"metadata": {"name": f"{name}-{number}"}}
                self.add("nnfdatamovements", movement)["status"] = {"status": word}
        elif desired == "PreRun":
            status["env"] = {"DW_JOB_scratch": f"/mnt/{name}", "PATH": "/bad"}
        status.update(
            ready=True, status="Completed", message="", elapsedTimeLastState="1.5ms"
        )
        self.touch("workflows", obj, "MODIFIED")

    def propose(self, name, obj):
        refs = []
        self.add("computes", {"metadata": {"name": name}, "data": []})
        for i, _ in enumerate(obj["spec"]["dwDirectives"]):
            child = f"{name}-{i}"
            self.add("servers", {"metadata": {"name": child}, "spec": {}})
            breakdown = self.breakdown(child)
            if self.args.no_storage:
                del breakdown["status"]["storage"]
            if self.args.requires:
                breakdown["status"]["requires"] = self.args.requires
            if self.args.next_to:
                breakdown["status"]["compute"] = self.next_to_storage()
            self.add("directivebreakdowns", breakdown)
            refs.append({"name": child, "namespace": "default"})
        obj["status"]["computes"] = {"name": name, "namespace": "default"}
        obj["status"]["directiveBreakdowns"] = refs

    def next_to_storage(self):
        """The constraint of storage that is there already, in Servers keep."""
        if self.args.next_to != ["nothing"]:
            self.objects["servers", "default", "keep"] = self.servers(self.args.next_to)
        reference = {
            "kind": "Servers",
            "name": "keep",
            "namespace": "default",
            "fieldPath": "servers.spec.allocationSets[0]",
        }
        access = [{"type": "physical", "priority": "mandatory"}]
        location = {"access": access, "reference": reference}
        return {"constraints": {"location": [location]}}

    @staticmethod
    def servers(rabbits):
        """A Servers with storage on these rabbits, not reported as ready."""
        storage = [{"name": name} for name in rabbits]
        return {
            "metadata": {"name": "keep", "namespace": "default"},
            "spec": {"allocationSets": [{"label": "xfs", "storage": storage}]},
        }

    @staticmethod
    def breakdown(name):
        return {
            "kind": "DirectiveBreakdown",
            "metadata": {"name": name},
            "status": {
                "ready": True,
                "storage": {
                    "lifetime": "job",
                    "reference": {"name": name, "namespace": "default"},
                    "allocationSets": [
                        {
                            "allocationStrategy": "AllocatePerCompute",
                            "label": "xfs",
                            "minimumCapacity": 10 << 30,
                            "constraints": {
                                "labels": [
                                    "dataworkflowservices.github.io/storage=Rabbit"
                                ]
                            },
                        }
                    ],
                },
            },
        }


class Agent:
    def __init__(self, args):
        self.args = args
        self.handle = flux.Flux()
        self.cluster = Cluster(args)
        self.rpc = self.handle.rpc(
            "dws.agent",
            json.loads(args.hello),
            flags=flux.constants.FLUX_RPC_STREAMING,
        )
        self.rpc.then(self.command_cb)

    def report(self, reports):
        self.handle.rpc("dws.report", {"reports": reports}).then(lambda f: f.get())

    def snapshot(self):
        workflows = [
            project("workflows", obj)
            for key, obj in self.cluster.objects.items()
            if key[0] == "workflows"
        ]
        report = {"type": "snapshot", "workflows": workflows, "storages": []}
        return json.loads(json.dumps(report))

    def command_cb(self, future):
        try:
            cmd = future.get()
        except OSError as exc:
            print(f"stream ends: {exc.strerror}", file=sys.stderr)
            self.handle.reactor_stop()
            return
        future.reset()
        commands = cmd.get("commands") or [cmd]
        if len(commands) > 1:
            print(f"{len(commands)} commands at once", file=sys.stderr, flush=True)
        for one in commands:
            self.carry_out(one)

    def carry_out(self, cmd):
        print(json.dumps(cmd), flush=True)
        snapshot = self.snapshot()
        if cmd["op"] == "hello":
            self.report([snapshot])
        else:
            self.report([self.result(cmd)])
            if self.args.relist and is_patch(cmd):
                self.report([snapshot])
        self.cluster.control()
        self.report(list(self.cluster.events))
        self.cluster.events.clear()
        self.cluster.save()
        if self.args.count and self.cluster.deleted >= self.args.count:
            self.handle.reactor_stop()

    def result(self, cmd):
        try:
            obj = self.cluster.run(cmd)
        except Refused as exc:
            return {
                "type": "result",
                "seq": cmd["seq"],
                "ok": False,
                "status": exc.status,
                "message": str(exc),
            }
        if self.args.shown and is_patch(cmd):
            self.cluster.control()
            self.cluster.events.clear()
        result = {"type": "result", "seq": cmd["seq"], "ok": True}
        if isinstance(obj, list) and cmd.get("whole"):
            result["texts"] = [json.dumps(entry) for entry in obj]
        elif isinstance(obj, list):
            result["objects"] = obj
        elif obj is not None:
            copy = json.loads(json.dumps(obj))
            result["object"] = project(cmd["kind"], copy, cmd.get("whole", False))
        return result


def is_patch(cmd):
    return (cmd["op"], cmd.get("kind")) == ("patch", "workflows")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hello", default='{"version": 2}')
    parser.add_argument("--state")
    parser.add_argument("--hold", action="append", default=[])
    parser.add_argument("--error", action="append", default=[])
    parser.add_argument("--refuse")
    parser.add_argument("--relist", action="store_true")
    parser.add_argument("--shown", action="store_true")
    parser.add_argument(
        "--lagging", metavar="RABBIT", help="the rabbit that makes no storage"
    )
    parser.add_argument(
        "--no-storage",
        action="store_true",
        help="directives that allocate nothing, as persistentdw does",
    )
    parser.add_argument(
        "--requires",
        action="append",
        metavar="WORD",
        help="a daemon that every directive requires",
    )
    parser.add_argument(
        "--next-to",
        action="append",
        metavar="RABBIT",
        help="every directive uses storage on this rabbit; with the word "
        "nothing, storage that does not exist",
    )
    parser.add_argument("--count", type=int, default=0)
    agent = Agent(parser.parse_args())
    agent.handle.reactor_run()


if __name__ == "__main__":
    main()
