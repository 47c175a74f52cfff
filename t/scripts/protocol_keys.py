# SPDX-License-Identifier: LGPL-3.0-only
"""protocol_keys.py JOBID: compares what dws.status tells, of a job that runs and of
all, with the keys that doc/protocol.md gives. A key that ends in "?" there may be left
out."""

import os
import pathlib
import re
import sys

import flux
import flux.job

DOC = pathlib.Path(os.environ["DWS_SRCDIR"], "doc", "protocol.md")


def keys_after(text: str, words: str) -> list[str]:
    """The keys in the braces that follow these words."""
    match = re.search(re.escape(words) + r"\s*`\{([^`]*)\}`", text)
    if not match:
        sys.exit(f"{DOC.name}: nothing like: {words} `{{...}}`")
    # Compare the top level only.
    flat = re.sub(r"\{[^{}]*\}", "", match[1])
    flat = re.sub(r"\{[^{}]*\}", "", flat)
    return [key.split(":")[0].strip() for key in flat.split(",")]


def compare(name: str, told: dict, keys: list[str]) -> bool:
    must = {key for key in keys if not key.endswith("?")}
    may = {key.rstrip("?") for key in keys}
    missing, unknown = must - told.keys(), told.keys() - may
    if missing or unknown:
        print(
            f"{name}: not told: {sorted(missing)}, not in the page: {sorted(unknown)}"
        )
    return not missing and not unknown


def main() -> int:
    text = " ".join(DOC.read_text(encoding="utf-8").split())
    handle = flux.Flux()
    number = int(flux.job.JobID(sys.argv[1]))
    status = handle.rpc("dws.status", {}).get()
    job = handle.rpc("dws.status", {"jobid": number}).get()
    listed = handle.rpc("dws.status", {"list": "rabbits"}).get()
    plain = keys_after(text, "JOB is")
    rows = [
        ("dws.status", status, keys_after(text, "Without `jobid` it is")),
        ("releases", status["releases"], keys_after(text, "`releases` is")),
        ("agent", status["agent"], keys_after(text, "`agent` has")),
        ("rabbits", status["rabbits"], keys_after(text, "`rabbits` is")),
        (
            "persistent",
            status["persistent"][0],
            keys_after(text, "`persistent` lists the persistent file systems,"),
        ),
        ("health", status["health"], keys_after(text, "`health` has")),
        ("losses", status["losses"], keys_after(text, "`losses` in `dws.status` is")),
        ("JOB", job, [*plain, *keys_after(text, "the instance owner, `JOB` and")]),
        ("workflow", job["workflow"], keys_after(text, "`workflow` has")),
        ("rabbits", listed, keys_after(text, '`"rabbits"`:')),
        ("a rabbit", listed["rabbits"][0], keys_after(text, "each of `rabbits` is")),
    ]
    wrong = [row for row in rows if not compare(*row)]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
