# Submits a job for each line of a table and compares what its user is told.
# SPDX-License-Identifier: LGPL-3.0-only
#
# Usage: refusals.py TABLE
# A line is "TYPE | TEXT | DIRECTIVES": DIRECTIVES, separated by ";", give an
# exception of TYPE whose note has TEXT in it, or, for TYPE submit, a refusal.
# Parts of TEXT, separated by "...", must all be there.
import sys

import flux
import flux.job
from flux.job import JobspecV1


def parse(path):
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            line = line.strip()
            if line and not line.startswith("# "):
                kind, text, directives = (s.strip() for s in line.split("|", 2))
                yield kind, text, [s.strip() for s in directives.split(";")]


def submit(handle, directives):
    jobspec = JobspecV1.from_command(["true"], num_nodes=1)
    jobspec.setattr("system.dw", directives)
    return flux.job.submit_async(handle, jobspec)


def outcome(handle, future):
    """The type and note of the first fatal exception of a job, once it is clean."""
    try:
        jobid = future.get_id()
    except OSError as exc:
        return "submit", str(exc.strerror or exc)
    seen = None
    for event in flux.job.event_watch(handle, jobid):
        context = event.context
        if event.name == "exception" and context["severity"] == 0 and not seen:
            seen = context["type"], context["note"]
        if event.name == "clean":
            break
    return seen or ("none", "")


def main() -> int:
    handle = flux.Flux()
    cases = list(parse(sys.argv[1]))
    futures = [submit(handle, directives) for _, _, directives in cases]
    failed = 0
    for (kind, text, directives), future in zip(cases, futures):
        got, note = outcome(handle, future)
        good = got == kind and all(part.strip() in note for part in text.split(" ... "))
        failed += not good
        print(f"{'ok' if good else 'WRONG'}: {directives}\n    {got}: {note}")
        if not good:
            print(f"    wanted {kind}: {text}")
    print(f"{len(cases)} cases, {failed} wrong")
    return 1 if failed or not cases else 0


sys.exit(main())
