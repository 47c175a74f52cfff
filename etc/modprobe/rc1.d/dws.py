# Startup of flux-dws for flux-modprobe(1), where [rabbit] is configured.
# SPDX-License-Identifier: LGPL-3.0-only

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


if SHELL_PLUGINS:

    @task("dws-shell", ranks="all")
    def find_shell_plugin(context):
        path = context.attr_get("conf.shell_pluginpath", "").split(":")
        if SHELL_PLUGINS not in path:
            path.append(SHELL_PLUGINS)
            context.handle.attr_set("conf.shell_pluginpath", ":".join(path))
