# Starts a Flux instance of simulated nodes with flux-dws, under solo or a flux-core.
# Used by the demo, the benchmarks and soak.
# SPDX-License-Identifier: LGPL-3.0-only
"""Run as a program: instance.py [OPTIONS] PROGRAM [ARG...] starts an instance and
runs a Python program in it, with --workdir and --prefix as its first arguments."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys

# Variables that are prepended to, not replaced.
SEARCH_PATHS = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")


def span(count: int) -> str:
    """Ranks 0 to count-1 as an idset."""
    return f"0-{count - 1}" if count > 1 else "0"


def machine_R(nodes: int, cores: int) -> str:
    """R (RFC 20) of a whole instance of the nodes node[0-N-1], as JSON."""
    execution = {
        "R_lite": [{"rank": span(nodes), "children": {"core": span(cores)}}],
        "starttime": 0,
        "expiration": 0,
        "nodelist": [f"node[{span(nodes)}]"],
    }
    return json.dumps({"version": 1, "execution": execution})


def command(*words: str) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


class Engine:
    """A flux command, and the settings with which its instances find flux-dws.

    Args:
        flux: the flux command, of solo or of a flux-core.
        prefix: where flux-dws and its Python packages are installed.
    """

    def __init__(self, flux: pathlib.Path, prefix: pathlib.Path) -> None:
        self.flux = flux
        self.prefix = prefix
        self.is_solo = flux.parent == prefix / "bin"

    def describe(self) -> str:
        """Name, version and path, for people."""
        lines = command(str(self.flux), "--version").splitlines()
        words = dict(line.split(":", 1) for line in lines if ":" in line)
        if self.is_solo:
            return f"{words['engine'].strip()}, the embedded engine"
        return f"flux-core {words['commands'].strip()} ({self.flux})"

    def prepare(self, workdir: pathlib.Path, nodes: int, cores: int) -> None:
        """Write the configuration of simulated nodes node[0-N-1] to
        workdir/conf.d/engine.toml, and more files that a flux-core needs."""
        conf, packages = workdir / "conf.d", workdir / "packages"
        conf.mkdir(exist_ok=True)
        (workdir / "R").write_text(machine_R(nodes, cores))
        text = f'[resource]\npath = "{workdir / "R"}"\nnoverify = true\n'
        if not self.is_solo:
            text += (
                '[modules]\nalternatives.sched = "sched-simple"\n'
                'alternatives.feasibility = "sched-simple"\n'
            )
            # Simulated nodes have more cores than this host: binding would fail.
            initrc = command(str(self.flux), "config", "builtin", "shell_initrc")
            (workdir / "initrc.lua").write_text(
                f'shell.options["cpu-affinity"] = "off"\nsource ("{initrc.strip()}")\n'
            )
            # Link our own packages alone: the engine brings its own bindings.
            packages.mkdir(exist_ok=True)
            for package in self.prefix.glob("lib/python3*/site-packages/flux_*"):
                link = packages / package.name
                if package.suffix != ".dist-info" and not link.is_symlink():
                    link.symlink_to(package)
        (conf / "engine.toml").write_text(text)

    def options(self, workdir: pathlib.Path, nodes: int) -> list[str]:
        """Options of flux start, after prepare()."""
        options = [f"--test-size={nodes}", f"--config-path={workdir / 'conf.d'}"]
        if self.is_solo:
            return [*options, f"--test-hosts=node[{span(nodes)}]"]
        folders = [self._libdir() / "flux", self.prefix / "lib" / "flux"]
        plugins = ":".join(str(folder / "shell" / "plugins") for folder in folders)
        return [
            *options,
            f"-Sconf.shell_initrc={workdir / 'initrc.lua'}",
            f"-Sconf.shell_pluginpath={plugins}",
        ]

    def variables(self, workdir: pathlib.Path) -> dict[str, str]:
        """Variables to add to the environment. The caller prepends search paths."""
        ours = self.prefix / "lib" / "flux"
        found = {
            "FLUX_MODULE_PATH_PREPEND": str(ours / "modules"),
            "FLUX_EXEC_PATH_PREPEND": str(self.prefix / "libexec" / "flux" / "cmd"),
            "PATH": str(self.prefix / "bin"),
        }
        if not self.is_solo:
            packages = [workdir / "packages"]
            packages += self.prefix.glob("lib/python3*/site-packages")
            found["PATH"] = f"{self.flux.parent}:{found['PATH']}"
            found["PYTHONPATH"] = ":".join(map(str, packages))
            found["LD_LIBRARY_PATH"] = str(self._libdir())
            cli = self.prefix / "etc" / "flux" / "cli" / "plugins"
            found["FLUX_CLI_PLUGINPATH"] = str(cli)
        return found

    def environment(self, workdir: pathlib.Path) -> dict[str, str]:
        """The environment of this process with variables(), outside of any
        instance."""
        env = {**os.environ}
        for name in ("FLUX_URI", "FLUX_JOB_ID"):
            env.pop(name, None)
        for name, value in self.variables(workdir).items():
            if name in SEARCH_PATHS and env.get(name):
                value = f"{value}:{env[name]}"
            env[name] = value
        return env

    def _libdir(self) -> pathlib.Path:
        return self.flux.parent.parent / "lib"


def current() -> Engine:
    """Engine of the instance that runs this process, which main() has started."""
    flux, prefix = os.environ["DWS_FLUX"], os.environ["DWS_PREFIX"]
    return Engine(pathlib.Path(flux), pathlib.Path(prefix))


def here() -> str:
    """Engine and scheduler of the surrounding instance, for people."""
    return f"{current().describe()}, scheduler {scheduler()}"


def scheduler() -> str:
    """The scheduler of the surrounding instance."""
    return scheduler_among(command("flux", "module", "list"))


def scheduler_among(listing: str) -> str:
    """The scheduler in the output of flux module list."""
    words = (line.split()[0] for line in listing.splitlines() if line)
    return " and ".join(name for name in words if name.startswith("sched-")) or "none"


def kept(workdir: pathlib.Path) -> pathlib.Path:
    """Ask supervise() to pass signals to this process. Returns a file that a shell
    sources in order to connect to the instance."""
    lines = [f"export FLUX_URI={os.environ['FLUX_URI']}"]
    for name, value in current().variables(workdir).items():
        more = f'"${{{name}:+:${name}}}"' if name in SEARCH_PATHS else ""
        lines.append(f"export {name}='{value}'{more}")
    (workdir / "kept.pid").write_text(str(os.getpid()))
    path = workdir / "env.sh"
    path.write_text("\n".join(lines) + "\n")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flux", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path, required=True)
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--cores", type=int, default=4, help="of each node")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    engine = Engine(args.flux, args.prefix)
    engine.prepare(args.workdir, args.nodes, args.cores)
    env = engine.environment(args.workdir)
    libs = str(pathlib.Path(__file__).parent)
    env["PYTHONPATH"] = ":".join(filter(None, [libs, env.get("PYTHONPATH")]))
    env["DWS_FLUX"], env["DWS_PREFIX"] = str(args.flux), str(args.prefix)
    # flux-modprobe does not load dws, as there is no cluster yet, but unloads it when
    # the instance ends.
    env["FLUX_MODPROBE_PATH_APPEND"] = str(args.prefix / "etc" / "flux" / "modprobe")
    # for t/scripts/doc_examples.py
    env["DWS_ENGINE"] = "solo" if engine.is_solo else "flux-core"
    env["DWS_PLUGINS"] = str(args.prefix / "lib" / "flux" / "job-manager" / "plugins")
    program, *words = args.program
    sys.exit(
        supervise(
            [str(args.flux), "start", *engine.options(args.workdir, args.nodes)]
            + [str(args.flux), "python", program]
            + ["--workdir", str(args.workdir), "--prefix", str(args.prefix), *words],
            env,
            args.workdir,
        )
    )


def supervise(words: list[str], env: dict[str, str], workdir: pathlib.Path) -> int:
    """Run flux start and return its exit status. Pass a terminal's signals to the
    program that has called kept(), or else to all processes. Brokers of a flux-core
    that get a signal themselves exit without ending the instance in order."""
    child = subprocess.Popen(words, env=env, start_new_session=True)

    def pass_on(number: int, frame: object) -> None:
        try:
            os.kill(int((workdir / "kept.pid").read_text()), number)
        except FileNotFoundError:
            os.killpg(child.pid, number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    main()
