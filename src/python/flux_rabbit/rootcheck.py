# Checks of selftest for multi-user instances, where the IMP (flux-imp) runs prolog and
# epilog as root. Our scripts there stop and start nnf-clientmount.
# SPDX-License-Identifier: LGPL-3.0-only
"""The checks of root's prolog and epilog, registered on import."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from flux_k8s import resourceconfig

from flux_rabbit.checks import Object, Site, Skip, Wrong, check

# The PATH that the IMP sets for root's scripts (flux-imp(8)), and the programs and
# variables that our scripts use.
IMP_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
PROGRAMS = ("flux", "jq")
VARIABLES = ("FLUX_JOB_ID", "FLUX_JOB_USERID", "FLUX_URI")
NO_IMP = "there is no exec.imp: the instance owner runs prolog and epilog"
TIMEOUT_S = 10.0


def _imp(site: Site) -> Path | None:
    path = site.config.get("exec", {}).get("imp")
    return Path(path) if isinstance(path, str) else None


def _runs(site: Site) -> list[str]:
    """The names in prolog, epilog that the IMP runs on each node of a job."""
    found = []
    for name in ("prolog", "epilog"):
        table = site.config.get("job-manager", {}).get(name, {})
        if table.get("per-rank") is True and "command" not in table:
            found.append(name)
    return found


def _tables(site: Site, name: str) -> Object:
    """The configuration of flux-security in ETC/flux/NAME/conf.d, with ETC below a
    parent folder of the IMP. Raises Skip or Wrong."""
    toml = resourceconfig.toml_reader()
    imp = _imp(site)
    assert imp is not None
    prefixes = [parent / "etc" for parent in imp.parents if (parent / "etc").is_dir()]
    folders = [etc / "flux" / name / "conf.d" for etc in prefixes]
    folder = next((f for f in folders if f.is_dir()), None)
    if folder is None:
        raise Skip(f"there is no flux/{name}/conf.d in {', '.join(map(str, prefixes))}")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise Skip(f"{folder}: permission denied")
    merged: Object = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            resourceconfig.merge(merged, toml.loads(path.read_text(encoding="utf-8")))
        except OSError as exc:
            raise Skip(str(exc)) from None
        except ValueError as exc:
            raise Wrong(f"{path}: {exc}", "correct the file on each node") from None
    return merged


@check("root's rights")
def _root(site: Site) -> str:
    """With an IMP, prolog and epilog run as root, who must be able to read jobs."""
    if _imp(site) is None:
        return NO_IMP
    access = site.config.get("access", {})
    for key in ("allow-guest-user", "allow-root-owner"):
        if access.get(key) is not True:
            raise Wrong(
                f"access.{key} is not true: root cannot ask for the directives of a "
                "job in the prolog, and no rabbit job starts",
                "set it in the configuration of every node",
            )
    return "root may read jobs in prolog and epilog"


@check("prolog and epilog")
def _perilog(site: Site) -> str:
    if _imp(site) is None:
        return NO_IMP
    answer = site.handle.call("job-manager.jobtap", {"query_only": True})
    if "perilog.so" not in map(str, answer["plugins"]):
        raise Wrong(
            "perilog.so is not loaded: no job has a prolog or an epilog",
            "name it and dws-jobtap.so in one list of job-manager.plugins; of two "
            "files that set the list Flux takes one",
        )
    manager = site.config.get("job-manager", {})
    for name in ("prolog", "epilog"):
        table = manager.get(name, {})
        if table.get("per-rank") is not True and "command" not in table:
            raise Wrong(
                f"job-manager.{name} has neither per-rank nor a command: no {name} "
                "script runs",
                f"set [job-manager.{name}] per-rank = true",
            )
    return "perilog.so runs both"


def _faults(imp: Object, names: list[str]) -> Iterator[tuple[str, str]]:
    """Faults of the IMP's configuration, each with its remedy."""
    for name in names:
        run = imp.get("run")
        table = run.get(name) if isinstance(run, dict) else None
        if not isinstance(table, dict):
            yield f"the IMP has no table run.{name}", f"add [run.{name}] to imp.toml"
            continue
        allowed: Any = table.get("allowed-environment", [])
        for variable in VARIABLES:
            if not any(fnmatch(variable, str(pattern)) for pattern in allowed):
                yield (
                    f"run.{name}.allowed-environment of the IMP leaves {variable} out",
                    'set it to [ "FLUX_*" ]',
                )
                break


@check("IMP")
def _configured(site: Site) -> str:
    if _imp(site) is None:
        return NO_IMP
    for program in PROGRAMS:
        if shutil.which(program, path=IMP_PATH) is None:
            raise Wrong(
                f"{program} is not in {IMP_PATH}: root's scripts do not find it",
                f"link {program} into /usr/bin of each node",
            )
    for text, hint in _faults(_tables(site, "imp"), _runs(site)):
        raise Wrong(text, hint)
    return "root's scripts get FLUX_* and find flux and jq on this node"


@check("munge")
def _munge(site: Site) -> str:
    """The IMP verifies the signature of a user's job by munge."""
    if _imp(site) is None:
        return NO_IMP
    sign = _tables(site, "security").get("sign")
    if isinstance(sign, dict) and sign.get("default-type", "munge") != "munge":
        return f"jobs are signed by {sign['default-type']}"
    try:
        done = subprocess.run(
            ["munge", "--no-input"],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    except FileNotFoundError:
        raise Wrong("there is no program munge", "install munge") from None
    except subprocess.TimeoutExpired:
        raise Wrong(f"munge has not answered in {TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        raise Wrong(done.stderr.strip(), "systemctl start munge, on each node")
    return "munged answers on this node"
