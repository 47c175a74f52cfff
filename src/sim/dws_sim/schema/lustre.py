# The schema of lus.cray.hpe.com's kind: file systems that exist for all jobs.
# SPDX-License-Identifier: LGPL-3.0-only
"""LustreFileSystem, version v1beta1."""

from __future__ import annotations

from dws_sim.schema.types import schema, string

LUSTRE_FILE_SYSTEM = {
    "spec!": {
        "mgsNids!": "str",
        "mountRoot!": "str",
        "name!": "str",
        "namespaces": {"*": {"modes": ["str"]}},
        "storageClassName": string(default="nnf-lustre-fs"),
    },
    "status": {
        "namespaces": {
            "*": {
                "modes": {
                    "*": {
                        "persistentVolumeClaimRef": {"name": "str"},
                        "persistentVolumeRef": {"name": "str"},
                        "state!": "str",
                    }
                }
            }
        }
    },
}

SCHEMAS = {"lustrefilesystems": schema(LUSTRE_FILE_SYSTEM)}
