# SPDX-License-Identifier: LGPL-3.0-only
"""The public calls of flux-python, which of them a run exercises, and which
need not be.

A call is a function, method, or side of a property that is defined in a module
named here and has no leading underscore; special methods count, too.
"""

import importlib
import inspect
import pkgutil
import sys
import threading
import types

MODULES = [
    "flux.core.handle",
    "flux.core.watchers",
    "flux.eventlog",
    "flux.future",
    "flux.hostlist",
    "flux.idset",
    "flux.job",
    "flux.kvs",
    "flux.message",
    "flux.resource",
    "flux.rpc",
]

# Code of flux-python that asks the engine for nothing but sets of numbers and hosts,
# which have tests of their own. A name stands for all that begins with it.
PURE = (
    "flux.job.Jobspec.",
    "flux.job.directives.",
    "flux.resource.ResourceCount.",
    "flux.resource.ResourcePool",
    "flux.resource.ResourceSet",
    "flux.resource.Rv1Pool.",
    "flux.resource.Rv1Set.",
    "flux.resource.TreePool.",
)

# Calls that no test here makes, and why.
EXCUSED = {
    **dict.fromkeys(PURE, "flux-python alone"),
    "flux.job.JobID.JobID.emoji": "solo has no job IDs of that form",
    "flux.job.JobID.JobID.words": "solo has no job IDs of that form",
    "flux.core.handle.Flux.attr_remove": "solo's attributes stay",
    "flux.job.output.RedirectEvent.": "solo's shell has no files",
    "flux.job.timeleft.": "solo does not tell how long a job may run",
    "flux.job.watcher.JobProgressBar.start": "draws on a terminal",
    "flux.kvs.kvs_checkpoint_lookup": "solo has no content store",
    "flux.kvs.WatchImplementation.watch_": "abstract: KVSWatchFuture has the code",
    "flux.job._": "private modules",
}


def excuse(name):
    return next((why for key, why in EXCUSED.items() if name.startswith(key)), None)


def modules():
    for name in MODULES:
        module = importlib.import_module(name)
        yield module
        for info in pkgutil.walk_packages(getattr(module, "__path__", []), name + "."):
            # plugins are programs' business
            if ".plugins" not in info.name:
                yield importlib.import_module(info.name)


def codes(function, filename):
    """The code of a function behind its decorators, as far as it is written
    in that file: neither C nor made by namedtuple() and the like is."""
    found = set()
    pending = [function]
    while pending:
        function = pending.pop()
        if isinstance(function, (staticmethod, classmethod)):
            pending.append(function.__func__)
        elif isinstance(function, types.FunctionType):
            if function.__code__.co_filename == filename:
                found.add(function.__code__)
            pending.append(getattr(function, "__wrapped__", None))
    return found


def is_public(name):
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def public_calls():
    """{name: set of code objects}"""
    calls = {}

    def add(name, function, filename):
        code = codes(function, filename)
        if code:
            calls[name] = code

    def add_class(prefix, cls, filename):
        for name, value in vars(cls).items():
            if not is_public(name):
                continue
            if isinstance(value, property):
                add(f"{prefix}.{name}", value.fget, filename)
                add(f"{prefix}.{name}=", value.fset, filename)
            elif inspect.isclass(value):
                if value.__qualname__.startswith(cls.__qualname__ + "."):
                    add_class(f"{prefix}.{name}", value, filename)
            else:
                add(f"{prefix}.{name}", value, filename)

    for module in modules():
        for name, value in vars(module).items():
            if name.startswith("_") or (
                getattr(value, "__module__", None) != module.__name__
            ):
                continue
            if inspect.isclass(value):
                add_class(f"{module.__name__}.{name}", value, module.__file__)
            else:
                add(f"{module.__name__}.{name}", value, module.__file__)
    return calls


class Recorder:
    """Notes which calls are made between start() and stop(), in any thread."""

    def __init__(self):
        self.names = {}  # some code has several
        for name, found in public_calls().items():
            for code in found:
                self.names.setdefault(code, set()).add(name)
        self.seen = set()

    def note(self, frame, event, arg):
        if event == "call" and frame.f_code in self.names:
            self.seen |= self.names[frame.f_code]

    def start(self):
        threading.setprofile(self.note)
        sys.setprofile(self.note)

    def stop(self):
        sys.setprofile(None)
        threading.setprofile(None)
