# What the ATOM tests share: a stand-in ATOM in a thread, a stand-in for pbs.
# SPDX-License-Identifier: LGPL-3.0-only
import asyncio
import contextlib
import importlib.util
import pathlib
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
def atom(path, answers=()):
    """A stand-in ATOM on the socket `path`; yields it."""
    server = standin.StandIn(list(answers))
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


def fake_pbs(kind, user, place=None, sharing=("default_shared",), config=None):
    """A `pbs` module for one event: only what the hook uses, with the names
    and types of the published hooks guide."""
    pbs = types.ModuleType("pbs")
    pbs.EXECJOB_BEGIN, pbs.EXECJOB_END = 64, 512
    pbs.LOG_DEBUG, pbs.LOG_ERROR = 7, 3
    for number, row in enumerate(
        [
            "default_shared",
            "default_excl",
            "default_exclhost",
            "ignore_excl",
            "force_excl",
            "force_exclhost",
        ]
    ):
        setattr(pbs, "ND_" + row.upper(), number)
    pbs.log = []
    pbs.logmsg = lambda level, text: pbs.log.append((level, text))
    pbs.hook_config_filename = config
    job = types.SimpleNamespace(
        id="12.server", euser=user, Resource_List={"place": place}
    )
    vnodes = {
        f"vn{i}": types.SimpleNamespace(
            sharing=getattr(pbs, "ND_" + word.upper(), None)
        )
        for i, word in enumerate(sharing)
    }
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
