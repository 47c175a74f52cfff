# Support for the ATOM tests: a stand-in ATOM in a thread, a stand-in for pbs.
# SPDX-License-Identifier: LGPL-3.0-only
import asyncio
import contextlib
import importlib.util
import pathlib
import socket
import sys
import threading
import types
from importlib.machinery import SourceFileLoader

SRC = pathlib.Path(__file__).resolve().parents[2] / "src" / "atom"
HOOK = SRC / "pbs" / "PBS_cray_atom.PY"
LIMIT_S = 20


def load(path, name, register=False):
    """Load a Python file under a module name."""
    loader = SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(name, loader)
    )
    if register:
        sys.modules[name] = module
    loader.exec_module(module)
    return module


standin = load(SRC / "flux_atom" / "standin.py", "atom_standin", register=True)


@contextlib.contextmanager
def atom(path, answers=(), jobs=None):
    """A stand-in ATOM on the socket `path`; yields it."""
    server = standin.StandIn(list(answers), jobs)
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    def serve():
        asyncio.set_event_loop(loop)
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    task = loop.create_task(standin.serve(str(path), server, ready.set))
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert ready.wait(LIMIT_S)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(LIMIT_S)
        assert not thread.is_alive()
        loop.close()


@contextlib.contextmanager
def dripping(path, data, pause_s=0.05):
    """Something on the socket `path` that answers with `data` byte by byte."""
    done = threading.Event()

    def answer(conn):
        with conn, contextlib.suppress(OSError):
            asked = b""
            while not asked.endswith(b"}" if asked[:1] == b"P" else b"\r\n\r\n"):
                asked += conn.recv(65536)
            for byte in data:
                conn.sendall(bytes([byte]))
                if done.wait(pause_s):
                    return

    def serve():
        while True:
            try:
                conn, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=answer, args=(conn,)))
            threads[-1].start()

    threads = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        server = threading.Thread(target=serve)
        server.start()
        try:
            yield
        finally:
            done.set()
            listener.shutdown(socket.SHUT_RDWR)
            server.join(LIMIT_S)
            for thread in threads:
                thread.join(LIMIT_S)


class Ended(BaseException):
    """How pbs ends a hook: accept () and reject () do not return."""


class Rejected(Ended):
    pass


class Accepted(Ended):
    pass


class Event:
    def __init__(self, kind, job, vnodes):
        self.type = kind
        self.job = job
        self.vnode_list = vnodes

    def accept(self):
        raise Accepted

    def reject(self, message=""):
        raise Rejected(message)


# Values of a real PBS; t/pbs/test_10_facts.py compares them.
SHARING = {
    "default_shared": 1,
    "default_excl": 2,
    "ignore_excl": 3,
    "force_excl": 4,
    "default_exclhost": 5,
    "force_exclhost": 6,
}
NUMBERS = {"EXECJOB_BEGIN": 64, "EXECJOB_END": 512}
HOST = "cn1"


def fake_vnode(host):
    """A vnode of an event: the mom knows where it is, and nothing of sharing."""
    return types.SimpleNamespace(sharing=None, resources_assigned={"host": host})


def fake_pbs(kind, user, place=None, sharing=("default_shared",), config=None):
    """A `pbs` module for one event: only what the hook uses, as seen of a real
    PBS. The job has vnodes with these sharing attributes on this host, and one
    on another; `sharing` None is a server that is dead."""
    pbs = types.ModuleType("pbs")
    for name, number in NUMBERS.items():
        setattr(pbs, name, number)
    for row, number in SHARING.items():
        setattr(pbs, "ND_" + row.upper(), number)
    pbs.log = []
    # PBS takes what is UTF-8, and writes it as it is
    pbs.logjobmsg = lambda job, text: pbs.log.append((job, text.encode().decode()))
    pbs.hook_config_filename = config
    pbs.get_local_nodename = lambda: HOST
    pbs.hold_types = lambda text: text
    job = types.SimpleNamespace(
        id="12.server", euser=user, Resource_List={"place": place}, Hold_Types=None
    )
    here = {f"{HOST}[{i}]": SHARING.get(word) for i, word in enumerate(sharing or ())}
    server = types.SimpleNamespace(
        vnode=lambda name: types.SimpleNamespace(sharing=here[name])
    )
    pbs.server = lambda: None if sharing is None else server
    vnodes = {name: fake_vnode(HOST) for name in here or [HOST]}
    vnodes["cn2"] = fake_vnode("cn2")
    event = Event(getattr(pbs, f"EXECJOB_{kind.upper()}"), job, vnodes)
    pbs.event = lambda: event
    return pbs


def run_hook(pbs):
    """Run the hook as PBS does. Returns how it ended: "accept", the text of a
    reject, or the unhandled exception that makes PBS do fail_action."""
    sys.modules["pbs"] = pbs
    try:
        load(HOOK, "PBS_cray_atom")
    except Accepted:
        return "accept"
    except Rejected as exc:
        return f"reject: {exc}"
    except Exception as exc:
        return exc
    finally:
        del sys.modules["pbs"]
    raise AssertionError("the hook neither accepted nor rejected")


def log_of(pbs):
    assert {job for job, _ in pbs.log} <= {"12.server"}
    return "\n".join(text for _, text in pbs.log)
