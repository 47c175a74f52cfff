# Startup of flux-dws for flux-modprobe(1), where [rabbit] is configured.
# SPDX-License-Identifier: LGPL-3.0-only

from flux.modprobe import task


def setup(context):
    if context.conf_get("rabbit.mapping"):
        context.load_modules(["dws"])


@task(
    "dws-jobtap",
    ranks="0",
    needs_config=["rabbit.mapping"],
    requires=["job-manager"],
    after=["job-manager"],
    before=["dws"],
)
def load_jobtap(context):
    # A configuration that loads it (to set epilog-timeout) has precedence.
    loaded = context.rpc("job-manager.jobtap", {"query_only": True}).get()
    if "dws-jobtap.so" not in loaded["plugins"]:
        context.rpc("job-manager.jobtap", {"load": "dws-jobtap.so"}).get()
