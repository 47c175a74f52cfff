# SPDX-License-Identifier: LGPL-3.0-only
"""The rights of a guest in the KVS: ``guest-kvs.py OWN OTHER`` are two jobs that
run, the first of them this guest's. A line for each request: what, and the answer.
"""

import base64
import sys

import flux
from flux.job import JobID

READDIR, TREEOBJ = 1, 16
handle = flux.Flux()
own, other = (f"job-{int(JobID(arg))}" for arg in sys.argv[1:])


def treeobj(kind, data):
    return {"ver": 1, "type": kind, "data": data}


def say(what, topic, payload):
    try:
        handle.rpc(topic, payload).get()
        answer = "ok"
    except OSError as exc:
        answer = exc.strerror
    print(f"{what}: {answer}")


def commit(what, namespace, dirent):
    op = {"key": "made." + what.replace(" ", "-"), "flags": 0, "dirent": dirent}
    payload = {"namespace": namespace, "flags": 0, "ops": [op]}
    say(f"commit {what}", "kvs.commit", payload)


def lookup(what, namespace, key, flags=0):
    payload = {"namespace": namespace, "key": key, "flags": flags}
    say(f"lookup {what}", "kvs.lookup", payload)
    say(f"watch {what}", "kvs-watch.lookup", payload)


text = treeobj("val", base64.b64encode(b"text").decode())
root = handle.rpc("kvs.lookup", {"namespace": own, "key": ".", "flags": TREEOBJ})
ref = root.get()["val"]["data"]
link = treeobj("symlink", {"target": "secret", "namespace": "primary"})

for namespace in ("primary", other):
    name = "another job's" if namespace == other else namespace
    commit(name, namespace, text)
    lookup(name, namespace, "exec.eventlog" if namespace == other else "secret")
    lookup(f"{name} root", namespace, ".", READDIR)
for what, dirent in {
    "value": text,
    "empty directory": treeobj("dir", {}),
    "link": link,
    "link within": treeobj("symlink", {"target": "exec.eventlog"}),
    "directory": treeobj("dir", {"a": link}),
    "reference": treeobj("dirref", ref),
    "value by reference": treeobj("valref", ref),
}.items():
    commit(what, own, dirent)
lookup("its own", own, "exec.eventlog")
