# Compares what --dw-check says of requests with what becomes of them.
# SPDX-License-Identifier: LGPL-3.0-only
#
# Usage: check_table.py TABLE
# A line of the table is "VERDICT | OPTIONS | DIRECTIVES": VERDICT is "good", or what
# the refusal of --dw-check says. A request is submitted, too: it is good if each of
# its jobs gets nodes, and refused if flux submit fails or a job has an exception.
import subprocess
import sys

import flux
import flux.job


def parse(path):
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            line = line.rstrip("\n")
            if line.strip() and not line.startswith("#"):
                verdict, options, dw = (part.strip() for part in line.split(" | ", 2))
                yield verdict, options.split(), dw.replace("; ", "\n")


def submit(options, dw, *more):
    return subprocess.run(
        ["flux", "submit", *options, f"--dw={dw}", *more, "true"],
        capture_output=True,
        text=True,
        check=False,
    )


def outcome(handle, words):
    """Why the job gets no nodes, nothing if it does."""
    for event in flux.job.event_watch(handle, flux.job.JobID(words)):
        if event.name == "alloc":
            return ""
        if event.name == "exception" and event.context["severity"] == 0:
            return event.context["note"]
    return "it has ended"


def main() -> int:
    handle = flux.Flux()
    cases = []
    for verdict, options, dw in parse(sys.argv[1]):
        checked = submit(options, dw, "--dw-check")
        cases.append((verdict, options, dw, checked, submit(options, dw)))
    wrong = 0
    for verdict, options, dw, checked, submitted in cases:
        jobs = submitted.stdout.split()
        whys = [submitted.stderr] if submitted.returncode else []
        whys += [why for job in jobs if (why := outcome(handle, job))]
        if verdict == "good":
            good = checked.returncode == 0 and not whys
        else:
            good = checked.returncode != 0 and bool(whys) and verdict in checked.stderr
        wrong += not good
        if good:
            continue
        print(f"WRONG: {' '.join(options)} | {dw!r}: {verdict}")
        print(f"    check: {checked.returncode} {checked.stderr.strip()}")
        print(f"    submitted: {submitted.returncode} {'; '.join(whys).strip()}")
    print(f"{len(cases)} requests, {wrong} wrong")
    return 1 if wrong or len(cases) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
