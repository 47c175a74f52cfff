# Startup of flux-dws for flux-modprobe(1), where [rabbit] is configured.
# SPDX-License-Identifier: LGPL-3.0-only

import subprocess
import syslog

from flux.modprobe import task

JOBTAP = "@JOBTAP@"
# A folder in which Flux does not look for plugins of the job shell, or nothing.
SHELL_PLUGINS = "@SHELL_PLUGINS@"


def setup(context):
    if context.conf_get("rabbit.mapping"):
        context.load_modules(["dws"])


@task(
    "dws-jobtap",
    ranks="0",
    needs_config=["rabbit.mapping"],
    requires=["job-manager"],
    after=["job-manager"],
    before=["dws", "sched"],
)
def load_jobtap(context):
    # Before the scheduler: it keeps jobs from one that would refuse them.
    # A configuration that loads it (to set epilog-timeout) has precedence.
    loaded = context.rpc("job-manager.jobtap", {"query_only": True}).get()
    if "dws-jobtap.so" not in loaded["plugins"]:
        context.rpc("job-manager.jobtap", {"load": JOBTAP}).get()


def systemctl(context, verb, unit, good):
    """Start or stop a unit, without waiting for it. What cannot be done is logged,
    unless the unit is there and in that state, or is not there at all."""
    try:
        done = subprocess.run(
            ["systemctl", "--no-block", verb, unit], capture_output=True, text=True
        )
        if done.returncode not in (0, 5):
            active = subprocess.run(["systemctl", "--quiet", "is-active", unit])
            if (active.returncode == 0) != good:
                text = f"dws: {verb} {unit}: {done.stderr.strip()}"
                context.handle.log(syslog.LOG_ERR, text)
    except OSError as exc:
        context.print(f"systemctl: {exc}")


@task("dws-node", ranks="all", needs_config=["rabbit.mapping"])
def undo_prolog(context):
    # After a crash no epilog script undoes on this node what the prolog script of its
    # last job has done: nothing would unmount the job's file systems.
    for unit in (context.conf_get("rabbit.daemons") or {}).values():
        systemctl(context, "stop", unit, good=False)
    systemctl(context, "start", "nnf-clientmount", good=True)


if SHELL_PLUGINS:

    @task("dws-shell", ranks="all")
    def find_shell_plugin(context):
        path = context.attr_get("conf.shell_pluginpath", "").split(":")
        if SHELL_PLUGINS not in path:
            path.append(SHELL_PLUGINS)
            context.handle.attr_set("conf.shell_pluginpath", ":".join(path))
