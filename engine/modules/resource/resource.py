# SPDX-License-Identifier: LGPL-3.0-only
"""The resource module: the nodes of the instance, for the scheduler and for flux
resource.

With the argument "statedir" R comes from the file R in the directory that the attribute
of that name says, otherwise from the KVS. The nodes are online from the start.
resource.eventlog records their changes; the scheduler gets these in answers to its
resource.acquire request (RFC 28).
"""

import errno
import json
import os
import time
from dataclasses import dataclass
from typing import Any, Optional

from _flux._core import ffi, lib
from flux.brokermod import BrokerModule, request_handler
from flux.hostlist import Hostlist
from flux.idset import IDset
from flux.kvs import KVSTxn

OVERWRITE = {None: 0, "update": 0, "overwrite": 1, "force-overwrite": 2}
REASON, REASON_AND_TIME = 1, 2


class Refused(Exception):
    def __init__(self, errnum: int, text: Optional[str] = None) -> None:
        super().__init__(text)
        self.errnum, self.text = errnum, text


@dataclass
class Node:
    host: str
    drained: bool = False
    drain_time: float = 0.0
    reason: Optional[str] = None
    offline: bool = False
    excluded: bool = False

    def up(self) -> bool:
        return not (self.offline or self.drained or self.excluded)

    def drain(self, when: float, reason: Optional[str], overwrite: int) -> None:
        if self.drained and self.reason and not overwrite:
            return
        self.reason = reason
        if not self.drained or overwrite == REASON_AND_TIME:
            self.drain_time = when
        self.drained = True

    def undrain(self) -> None:
        self.drained, self.reason = False, None


def encode(ranks: Any) -> str:
    return str(IDset(",".join(map(str, sorted(ranks)))))


def read_R(text: str) -> tuple[dict, list]:
    """R, and the host of each rank."""
    try:
        R = json.loads(text)
        execution = R["execution"]
        hosts = [str(host) for part in execution["nodelist"] for host in Hostlist(part)]
        ranks = [rank for part in execution["R_lite"] for rank in IDset(part["rank"])]
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ValueError("R is not valid") from None
    if not hosts or sorted(ranks) != list(range(len(hosts))):
        raise ValueError("R is not valid")
    return R, hosts


class Resource(BrokerModule):
    def __init__(self, h: Any, *args: str) -> None:
        super().__init__(h, *args)
        self.eventlog: list[dict] = []
        self.acquirer: Any = None
        self.up: set[int] = set()  # as the acquirer knows
        self.journals: list = []
        self.asking: list = []  # for the status
        self.mute = False
        for arg in args:
            if arg != "statedir":
                raise ValueError(f"unknown module argument: {arg}")
        self.R, hosts = self.load(bool(args))
        self.nodes = [Node(host) for host in hosts]
        self.replay()
        self.exclude(h.conf_get())
        now, ranks = time.time(), encode(range(len(hosts)))
        where = {"nodelist": self.hosts(range(len(hosts)))}
        self.post(
            (now, "restart", {"ranks": ranks, "online": "", **where}),
            (now, "online", {"idset": ranks, **where}),
            (now, "resource-define", {"method": "configuration"}),
        )

    # Storage
    def lookup(self, key: str) -> Optional[str]:
        f = lib.flux_kvs_lookup(self.handle.handle, ffi.NULL, 0, key.encode())
        value = ffi.new("char *[1]")
        try:
            if lib.flux_kvs_lookup_get(f, value) == 0:
                return ffi.string(value[0]).decode() if value[0] != ffi.NULL else ""
            if ffi.errno == errno.ENOENT:
                return None
            raise OSError(ffi.errno, f"{key}: {os.strerror(ffi.errno)}")
        finally:
            lib.flux_future_destroy(f)

    def load(self, from_file: bool) -> tuple[dict, list]:
        if not from_file:
            text = self.lookup("resource.R")
            if text is None:
                raise ValueError("no resources in resource.R")
            return read_R(text)
        path = os.path.join(self.handle.attr_get("statedir"), "R")
        try:
            with open(path) as file:
                text = file.read()
        except OSError as exc:
            raise ValueError(f"{path}: {exc.strerror}") from None
        R, hosts = read_R(text)
        txn = KVSTxn(self.handle)
        txn.put("resource.R", R)
        txn.commit()
        return R, hosts

    def replay(self) -> None:
        """Apply what happened before a restart."""
        for line in (self.lookup("resource.eventlog") or "").splitlines():
            try:
                entry = json.loads(line)
                if entry["name"] in ("drain", "undrain"):
                    self.apply(entry["name"], entry["timestamp"], entry["context"])
                self.eventlog.append(entry)
            except (ValueError, LookupError, TypeError):
                self.log.error("resource.eventlog: an entry is not valid")

    def post(self, *events: tuple) -> None:
        """Write to the eventlog, and wait until that is safe."""
        keys = ("timestamp", "name", "context")
        entries = [dict(zip(keys, event)) for event in events]
        lines = "".join(json.dumps(entry) + "\n" for entry in entries).encode()
        txn = KVSTxn(self.handle)
        append, key = lib.FLUX_KVS_APPEND, b"resource.eventlog"
        if lib.flux_kvs_txn_put_raw(txn.txn, append, key, lines, len(lines)) < 0:
            raise OSError(ffi.errno, os.strerror(ffi.errno))
        txn.commit()
        self.eventlog += entries
        for msg in self.journals:
            self.handle.respond(msg, {"events": entries})

    # Nodes
    def hosts(self, ranks: Any) -> str:
        return str(Hostlist([self.nodes[rank].host for rank in sorted(ranks)]))

    def ranks(self, test: Any) -> set[int]:
        return {rank for rank, node in enumerate(self.nodes) if test(node)}

    def targets(self, text: Any) -> set[int]:
        """Idset or hostlist to ranks."""
        if not isinstance(text, str):
            raise Refused(errno.EPROTO)
        try:
            ranks = set(IDset(text))
        except ValueError:
            ranks = self.named(text)
        if not ranks:
            raise Refused(errno.EINVAL, "idset is empty")
        if max(ranks) >= len(self.nodes):
            raise Refused(errno.EINVAL, "idset is out of range")
        return ranks

    def named(self, text: str) -> set[int]:
        try:
            hosts = list(Hostlist(text))
        except (ValueError, OSError):
            text = f"invalid targets: invalid hostlist: {text}"
            raise Refused(errno.EINVAL, text) from None
        # several made-up nodes may have the name of this host
        known = {node.host for node in self.nodes}
        unknown = [host for host in hosts if host not in known]
        if unknown:
            text = f"invalid targets: invalid hosts: {Hostlist(unknown)}"
            raise Refused(errno.EINVAL, text)
        return self.ranks(lambda node: node.host in hosts)

    def exclude(self, conf: dict) -> None:
        table = conf.get("resource", {})
        text = table.get("exclude", "") if isinstance(table, dict) else None
        if not isinstance(text, str):
            raise ValueError("resource.exclude: not a string")
        try:
            excluded = self.targets(text) if text else set()
        except Refused as exc:
            raise ValueError(exc.text) from None
        for rank, node in enumerate(self.nodes):
            node.excluded = rank in excluded

    def select(self, ranks: Any) -> dict:
        """R with only these ranks."""
        from flux.resource.Rv1Set import Rv1Set  # takes long, and most never ask

        return Rv1Set(self.R).copy_ranks(encode(ranks)).to_dict()

    # Requests
    def answer(self, msg: Any, function: Any) -> None:
        """None: it has been answered, or will be."""
        try:
            payload = function(msg)
        except Refused as exc:
            self.handle.respond_error(msg, exc.errnum, exc.text)
        except OSError as exc:
            self.handle.respond_error(msg, exc.errno, exc.strerror)
        except (ValueError, LookupError, TypeError, AttributeError):
            self.handle.respond_error(msg, errno.EPROTO, None)
        else:
            if payload is not None:
                self.handle.respond(msg, payload or None)

    @request_handler("get", allow_guest=True)
    def on_get(self, msg: Any) -> None:
        self.handle.respond(msg, self.R)

    @request_handler("status", allow_guest=True)
    def on_status(self, msg: Any) -> None:
        self.handle.respond(
            msg,
            {
                "R": {k: v for k, v in self.R.items() if k != "scheduling"},
                "drain": self.drain_info(),
                "torpid": "",
                "online": encode(self.ranks(lambda node: not node.offline)),
                "offline": encode(self.ranks(lambda node: node.offline)),
                "exclude": encode(self.ranks(lambda node: node.excluded)),
            },
        )

    @request_handler("sched-status", allow_guest=True)
    def on_sched_status(self, msg: Any) -> None:
        self.asking.append(msg)
        if len(self.asking) == 1:
            self.handle.rpc("job-manager.resource-status").then(self.on_allocated)

    def on_allocated(self, future: Any) -> None:
        from flux.resource.Rv1Set import Rv1Set

        allocated = Rv1Set()
        try:
            for R in future.get()["allocated"]:
                allocated.add(Rv1Set(R))
        except OSError:
            pass  # without a job manager no job has resources
        answer_R = allocated.to_dict() if allocated.nnodes() else self.select(())
        properties = self.select(allocated.ranks())["execution"].get("properties")
        if properties:
            answer_R["execution"]["properties"] = properties
        down = self.ranks(lambda node: not (node.up() or node.excluded))
        answer = {
            "all": self.select(self.ranks(lambda node: not node.excluded)),
            "down": self.select(down),
            "allocated": answer_R,
        }
        asking, self.asking = self.asking, []
        for msg in asking:
            self.handle.respond(msg, answer)

    @request_handler("journal")
    def on_journal(self, msg: Any) -> None:
        if not lib.flux_msg_is_streaming(msg.handle):
            self.handle.respond_error(msg, errno.EPROTO, None)
            return
        self.handle.respond(msg, {"events": self.eventlog, "R": self.R})
        self.handle.respond(msg, {"events": []})
        self.journals.append(msg)

    @request_handler("journal-cancel")
    def on_journal_cancel(self, msg: Any) -> None:
        self.cancel(msg)

    @request_handler("acquire-cancel")
    def on_acquire_cancel(self, msg: Any) -> None:
        self.cancel(msg)

    def cancel(self, msg: Any) -> None:
        for one in self.drop(lib.flux_cancel_match, msg):
            self.handle.respond_error(one, errno.ENODATA, None)

    @request_handler("disconnect", allow_guest=True)
    def on_disconnect(self, msg: Any) -> None:
        self.drop(lib.flux_disconnect_match, msg)
        self.asking = [
            one
            for one in self.asking
            if not lib.flux_disconnect_match(msg.handle, one.handle)
        ]

    def drop(self, match: Any, msg: Any) -> list:
        """Streams that end by this message."""
        streams = [*self.journals, *([self.acquirer] if self.acquirer else [])]
        ended = [one for one in streams if match(msg.handle, one.handle)]
        self.journals = [one for one in self.journals if one not in ended]
        if self.acquirer in ended:
            self.acquirer = None
        return ended

    @request_handler("config-reload")
    def on_config(self, msg: Any) -> None:
        try:
            self.exclude(msg.payload)
        except ValueError as exc:
            self.handle.respond_error(msg, errno.EINVAL, str(exc))
            return
        self.update()
        self.handle.respond(msg)

    # The scheduler
    @request_handler("acquire")
    def on_acquire(self, msg: Any) -> None:
        self.answer(msg, self.acquire)

    def acquire(self, msg: Any) -> dict:
        if not lib.flux_msg_is_streaming(msg.handle):
            raise Refused(errno.EPROTO)
        if self.acquirer:
            raise Refused(errno.EBUSY)
        self.acquirer, self.up = msg, self.ranks(Node.up)
        R, some = self.R, self.ranks(lambda node: not node.excluded)
        if len(some) < len(self.nodes):
            R = self.select(some)
            if "scheduling" in self.R:
                R["scheduling"] = self.R["scheduling"]
        return {"resources": R, "up": encode(self.up)}

    @request_handler("acquire-mute")
    def on_mute(self, msg: Any) -> None:
        self.mute = True
        self.handle.respond(msg)

    def update(self) -> None:
        """Tell the scheduler what has come up or gone down."""
        if not self.acquirer or self.mute:
            return
        up = self.ranks(Node.up)
        changes = {"up": encode(up - self.up), "down": encode(self.up - up)}
        self.up = up
        changes = {key: value for key, value in changes.items() if value}
        if changes:
            self.handle.respond(self.acquirer, changes)

    # Drain
    def drain_info(self) -> dict:
        same: dict[tuple, list] = {}
        for rank, node in enumerate(self.nodes):
            if node.drained:
                key = float(round(node.drain_time)), node.reason or ""
                same.setdefault(key, []).append(rank)
        return {
            encode(ranks): {"timestamp": when, "reason": reason}
            for (when, reason), ranks in same.items()
        }

    def apply(self, name: str, when: float, context: dict) -> None:
        """A drain or undrain: by host where the nodes have changed places."""
        ranks = list(IDset(context["idset"]))
        hosts = list(Hostlist(context["nodelist"])) if "nodelist" in context else []
        found = set()
        for n, rank in enumerate(ranks):
            known = rank < len(self.nodes)
            if n >= len(hosts) or (known and self.nodes[rank].host == hosts[n]):
                found |= {rank} if known else set()
            else:
                names = [node.host for node in self.nodes]
                found |= {names.index(hosts[n])} if hosts[n] in names else set()
        for rank in found:
            node = self.nodes[rank]
            if name == "drain":
                reason = context.get("reason")
                node.drain(when, reason, context.get("overwrite", REASON))
            else:
                node.undrain()

    def check(self, ranks: set, drain: bool) -> None:
        """Refuse with those that cannot be drained (or undrained), and why."""
        nodes = {rank: self.nodes[rank] for rank in ranks}
        drained = {rank for rank, n in nodes.items() if n.drained and n.reason}
        excluded = {rank for rank, n in nodes.items() if n.excluded}
        bad = {rank for rank, n in nodes.items() if not n.drained}
        why = ["not drained"]
        if drain:
            bad = drained | excluded
            why = ["already drained"] * bool(drained) + ["excluded"] * bool(excluded)
        if bad:
            text = f"rank{'s' * (len(bad) > 1)} {encode(bad)} {' or '.join(why)}"
            errnum = errno.EEXIST if drained or not drain else errno.EINVAL
            raise Refused(errnum, text)

    @request_handler("drain")
    def on_drain(self, msg: Any) -> None:
        self.answer(msg, lambda msg: self.change(msg, "drain"))

    @request_handler("undrain")
    def on_undrain(self, msg: Any) -> None:
        self.answer(msg, lambda msg: self.change(msg, "undrain"))

    def change(self, msg: Any, name: str) -> dict:
        """A request is checked, its event is written, then the change is made."""
        request = msg.payload
        ranks, mode = self.targets(request["targets"]), request.get("mode")
        if mode not in OVERWRITE:
            raise Refused(errno.EINVAL, "Invalid mode specified")
        if mode is None:
            self.check(ranks, name == "drain")
        context = {
            "idset": encode(ranks),
            "nodelist": self.hosts(ranks),
            "overwrite": OVERWRITE[mode],
        }
        if request.get("reason") is not None:
            context["reason"] = str(request["reason"])
        now = time.time()
        self.post((now, name, context))
        self.apply(name, now, context)
        words = " ".join(f"{key}={value}" for key, value in context.items())
        self.log.info(f"{name} {words}".replace("%", "%%"))  # it is a format
        self.update()
        return {}

    @request_handler("monitor-force-down")
    def on_force_down(self, msg: Any) -> None:
        """Tests play lost nodes with this: {"ranks": IDSET}, or with "up" nodes that
        have come back."""
        self.answer(msg, self.force_down)

    def force_down(self, msg: Any) -> dict:
        ranks, up = self.targets(msg.payload["ranks"]), msg.payload.get("up", False)
        context = {"idset": encode(ranks), "nodelist": self.hosts(ranks)}
        self.post((time.time(), "online" if up else "offline", context))
        for rank in ranks:
            self.nodes[rank].offline = not up
        self.update()
        return {}

    def run(self) -> None:
        super().run()
        if self.acquirer:
            text = "the resource module was unloaded"
            self.handle.respond_error(self.acquirer, errno.ECANCELED, text)
