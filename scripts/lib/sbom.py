# Prints the bill of materials of a release (CycloneDX 1.5), reproducibly.
# SPDX-License-Identifier: LGPL-3.0-only
"""Usage: sbom.py TREE TARBALL TIME: prints what a release needs, as JSON

TREE is what TARBALL has in it, TIME that of its commit, in seconds. Nothing of others
is in a tarball. The components are the libraries that meson.build asks for, with the
versions that will do, and the Python packages of scripts/lock/base.txt, with which it
was built and tested.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
import subprocess
import sys
from datetime import datetime, timezone
from typing import Any

Object = dict[str, Any]

PACKAGE = re.compile(r"^([a-z0-9-]+)==([^ ]+)(?: ; (.*))? *\\$", re.MULTILINE)
# Parts of flux-core and of the C library, and what only tests use.
PASSED_OVER = ("cmocka", "flux-hostlist", "flux-idset", "threads")


def properties(**values: str) -> list[Object]:
    return [
        {"name": f"flux-dws:{name}", "value": value}
        for name, value in values.items()
        if value
    ]


def libraries(tree: pathlib.Path) -> list[Object]:
    """Libraries that meson.build looks for on the machine."""
    command = ["meson", "introspect", "--scan-dependencies", tree / "meson.build"]
    found = json.loads(subprocess.check_output(command, stderr=subprocess.DEVNULL))
    wanted = {
        entry["name"]: " ".join(entry["version"])
        for entry in reversed(found)
        if entry["name"] not in PASSED_OVER
    }
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:generic/{name}",
            "name": name,
            "purl": f"pkg:generic/{name}",
            "properties": properties(requires=version or "any version"),
        }
        for name, version in sorted(wanted.items())
    ]


def packages(tree: pathlib.Path) -> list[Object]:
    """The Python packages, each version with the Pythons that it is for."""
    text = (tree / "scripts/lock/base.txt").read_text(encoding="utf8")
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:pypi/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:pypi/{name}@{version}",
            "properties": properties(marker=marker),
        }
        for name, version, marker in PACKAGE.findall(text)
    ]


def bill(tree: pathlib.Path, tarball: pathlib.Path, time: int) -> Object:
    name, version = tree.name.rsplit("-", 1)
    components = libraries(tree) + packages(tree)
    itself = f"pkg:generic/{name}@{version}"
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(time, timezone.utc).isoformat(),
            "component": {
                "type": "application",
                "bom-ref": itself,
                "name": name,
                "version": version,
                "purl": itself,
                "licenses": [{"license": {"id": "LGPL-3.0-only"}}],
                "hashes": [
                    {
                        "alg": "SHA-256",
                        "content": hashlib.sha256(tarball.read_bytes()).hexdigest(),
                    }
                ],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": itself, "dependsOn": [entry["bom-ref"] for entry in components]}
        ],
    }


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    tree, tarball = map(pathlib.Path, sys.argv[1:3])
    print(json.dumps(bill(tree, tarball, int(sys.argv[3])), indent=2))


if __name__ == "__main__":
    main()
