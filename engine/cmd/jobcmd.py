# SPDX-License-Identifier: LGPL-3.0-only
"""flux job: look at jobs, wait for them, and act on them."""

import argparse
import errno
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, Optional

import flux
import solocmd
from flux.constants import FLUX_RPC_STREAMING
from flux.job.JobID import JobID, id_encode

NAME = "flux-job"
Args = argparse.Namespace
WAITCREATE = 1  # flag of job-info.eventlog-watch


def die(text: str, code: int = 1) -> None:
    solocmd.die(NAME, text, code)


def formatter(args: Args) -> Any:
    from flux.eventlog import EventLogFormatter

    return EventLogFormatter(
        format=args.format,
        timestamp_format="human" if args.human else args.time_format,
        color=args.color,
    )


def eventlog_path(path: str) -> str:
    """Where an eventlog is, from its short name."""
    if path == "eventlog" or path.startswith("guest."):
        return path
    if path in ("exec", "exec.eventlog"):
        return "guest.exec.eventlog"
    return f"guest.{path}" if path in ("output", "input") else path


# Watching an eventlog
class Events:
    """The events of an eventlog, as they come, each as its line of JSON."""

    def __init__(
        self,
        handle: flux.Flux,
        jobid: int,
        path: str = "eventlog",
        flags: int = 0,
        timeout: Optional[float] = None,
    ) -> None:
        self.deadline = solocmd.Deadline(timeout)
        self.rpc = handle.rpc(
            "job-info.eventlog-watch",
            {"id": int(jobid), "path": path, "flags": flags},
            flags=FLUX_RPC_STREAMING,
        )

    def __iter__(self) -> Iterator[str]:
        while True:
            try:
                self.deadline.wait(self.rpc)
                line = self.rpc.get()["event"]
            except TimeoutError:
                raise
            except OSError as exc:
                if exc.errno == errno.ENODATA:
                    return
                raise
            yield line
            self.rpc.reset()


def eventlog(args: Args) -> None:
    handle = flux.Flux()
    output = formatter(args)
    path = eventlog_path(args.path)
    if args.follow:
        try:
            for line in Events(handle, args.jobid, path, WAITCREATE):
                print(output.format(line), flush=True)
        except FileNotFoundError:
            die(f"eventlog path {path} not found")
        return
    request = {"id": int(args.jobid), "keys": [path], "flags": 0}
    try:
        text = handle.rpc("job-info.lookup", request).get()[path]
    except FileNotFoundError:
        if path == "eventlog":
            die(f"job {args.jobid.f58} id not found")
        die(f"eventlog path {path} not found")
    for line in text.splitlines():
        print(output.format(line))


def matches(entry: dict[str, Any], context: list[str]) -> bool:
    for item in context:
        key, _, text = item.partition("=")
        if key not in entry.get("context", {}):
            return False
        value = entry["context"][key]
        if text not in (value, json.dumps(value)):
            return False
    return True


def wait_event(args: Args) -> None:
    handle = flux.Flux()
    output = formatter(args)
    path = eventlog_path(args.path)
    flags = WAITCREATE if args.waitcreate else 0
    left = args.count
    for item in args.match_context:
        if "=" not in item:
            die("want KEY=VALUE to match in the context")
    try:
        for line in Events(handle, args.jobid, path, flags, args.timeout):
            entry = json.loads(line)
            found = entry["name"] == args.event and matches(entry, args.match_context)
            left -= 1 if found else 0
            if args.verbose or (found and left == 0 and not args.quiet):
                print(output.format(line), flush=True)
            else:
                output.format(line)  # offsets count from the first event
            if left == 0:
                return
    except TimeoutError:
        die(f"timeout: no event {args.event}")
    except FileNotFoundError:
        if path == "eventlog":
            die(f"job {args.jobid.f58} id not found")
        die(f"eventlog path {path} not found")
    die(f"event '{args.event}' never received")


def info(args: Args) -> None:
    from flux.job import job_kvs_lookup

    handle = flux.Flux()
    if args.key in ("jobspec", "R"):
        data = job_kvs_lookup(
            handle,
            args.jobid,
            keys=[args.key],
            decode=False,
            original=args.original,
            base=args.base,
        )
        if not data or args.key not in data:
            die("No such file or directory")
        print(data[args.key].rstrip("\n"))
        return
    request = {"id": int(args.jobid), "keys": [args.key], "flags": 0}
    rpc = handle.rpc("job-info.lookup", request)
    try:
        value = rpc.get()[args.key]
    except OSError:
        die(rpc.error_string())
    print(value if isinstance(value, str) else json.dumps(value), end="")
    if not str(value).endswith("\n"):
        print()


def id_cmd(args: Args) -> None:
    texts = args.jobids or [line.strip() for line in sys.stdin]
    for text in texts:
        try:
            print(id_encode(int(JobID(text)), args.to))
        except (OSError, ValueError):
            die(f'error parsing jobid: "{text}"')


# Acting on jobs
def each_job(args: Args, topic: str, request: dict[str, Any], verb: str) -> None:
    """Send a request per job; complain about each that fails."""
    handle = flux.Flux()
    rpcs = [
        (jobid, handle.rpc(topic, dict(request, id=int(jobid))))
        for jobid in args.jobids
    ]
    failed = False
    for jobid, rpc in rpcs:
        try:
            rpc.get()
        except OSError:
            text = rpc.error_string()
            print(f"{NAME}: {jobid.orig}: {verb}: {text}", file=sys.stderr)
            failed = True
    sys.exit(1 if failed else 0)


def raise_cmd(args: Args) -> None:
    request = {"severity": args.severity, "type": args.type}
    note = args.message
    for pos, text in enumerate(args.words):
        try:
            args.jobids.append(JobID(text))
        except (OSError, ValueError):
            note = " ".join(args.words[pos:])
            break
    if note:
        request["note"] = note
    if not args.jobids:
        die("raise: a job ID is required")
    each_job(args, "job-manager.raise", request, "raise")


def kill(args: Args) -> None:
    each_job(args, "job-manager.kill", {"signum": args.signal}, "kill")


URGENCIES = {"hold": 0, "default": 16, "expedite": 31}


def urgency(args: Args) -> None:
    text = args.urgency.lower()
    if text not in URGENCIES and not (text.isdigit() and int(text) <= 31):
        die("invalid urgency specified")
    value = URGENCIES.get(text, int(text) if text.isdigit() else 0)
    rpc = flux.Flux().rpc(
        "job-manager.urgency", {"id": int(args.jobid), "urgency": value}
    )
    try:
        old = rpc.get()["old_urgency"]
    except OSError:
        die(f"{args.jobid.orig}: {rpc.error_string()}")
    names = {0: "held", 31: "expedited"}
    if args.verbose:
        print(f"old urgency: {old}", file=sys.stderr)
    elif old in names and old != value:
        print(f"{NAME}: job was {names[old]}", file=sys.stderr)


def memo(args: Args) -> None:
    values: dict[str, Any] = {}
    for item in args.memo:
        key, sep, text = item.partition("=")
        if not sep:
            die(f"{item}: expected KEY=VALUE")
        try:
            values[key] = json.loads(text)
        except json.JSONDecodeError:
            values[key] = text
    rpc = flux.Flux().rpc(
        "job-manager.memo",
        {"id": int(args.jobid), "volatile": args.volatile, "memo": values},
    )
    try:
        rpc.get()
    except OSError:
        die(f"memo: {rpc.error_string()}")


# Results
def result(handle: flux.Flux, jobid: int) -> dict[str, Any]:
    """The result of a job: waits until its eventlog ends."""
    summary: dict[str, Any] = {
        "id": int(jobid),
        "exception_occurred": False,
        "success": False,
    }
    for line in Events(handle, jobid):
        entry = json.loads(line)
        context = entry.get("context", {})
        if entry["name"] == "submit":
            summary["t_submit"] = entry["timestamp"]
        elif entry["name"] == "start":
            summary["t_run"] = entry["timestamp"]
        elif entry["name"] == "finish":
            summary["waitstatus"] = context["status"]
            summary["t_cleanup"] = entry["timestamp"]
        elif entry["name"] == "exception" and context["severity"] == 0:
            if not summary["exception_occurred"]:
                summary["exception_occurred"] = True
                summary["exception_type"] = context["type"]
                summary["exception_note"] = context.get("note", "")
                summary["exception_severity"] = 0
        elif entry["name"] == "clean":
            break
    summary["success"] = (
        summary.get("waitstatus") == 0 and not summary["exception_occurred"]
    )
    return summary


def exit_code(waitstatus: int) -> int:
    if os.WIFSIGNALED(waitstatus):
        return 128 + os.WTERMSIG(waitstatus)
    return os.WEXITSTATUS(waitstatus)


def status(args: Args) -> None:
    handle = flux.Flux()
    worst = 0
    for jobid in args.jobids:
        try:
            summary = result(handle, jobid)
        except FileNotFoundError:
            die(f"{jobid.orig}: No such job")
        if "waitstatus" in summary:
            code = exit_code(summary["waitstatus"])
        elif args.exception_exit_code is not None:
            code = args.exception_exit_code
        else:
            code = 1
        worst = max(worst, code)
        if args.json:
            print(json.dumps(summary))
        if args.verbose:
            text = f"{jobid.orig}: exited with exit code {code}"
            if summary["exception_occurred"]:
                text = f"{jobid.orig}: exception type={summary['exception_type']}"
            print(text, file=sys.stderr)
    sys.exit(worst)


def wait(args: Args) -> None:
    from flux.job import wait as job_wait

    handle = flux.Flux()
    failed = False
    if not args.all:
        try:
            done = job_wait(handle, args.jobid) if args.jobid else job_wait(handle)
        except ChildProcessError:
            die(
                "there are no more waitable jobs"
                if not args.jobid
                else "invalid job id, or job may be inactive and not waitable",
                2,
            )
        if not args.jobid:
            print(JobID(done.jobid).f58)
        if not done.success:
            die(done.errstr.decode() if isinstance(done.errstr, bytes) else done.errstr)
        return
    while True:
        try:
            done = job_wait(handle)
        except ChildProcessError:
            break
        jobid = JobID(done.jobid).f58
        if not done.success:
            text = done.errstr
            text = text.decode() if isinstance(text, bytes) else text
            print(f"{jobid}: {text}", file=sys.stderr)
            failed = True
        elif args.verbose:
            print(f"{jobid}: job completed successfully", file=sys.stderr)
    sys.exit(1 if failed else 0)


def last(args: Args) -> None:
    handle = flux.Flux()
    try:
        jobs = handle.rpc("job-manager.history.get", {"slice": args.slice}).get()
        jobs = jobs["jobs"]
    except OSError as exc:
        if exc.errno != errno.ENOSYS:
            raise
        jobs = list_mine(handle)[parse_slice(args.slice)]
    if not jobs and args.slice == "[0:1]":
        die("job history is empty")
    for jobid in jobs:
        print(JobID(jobid).f58)


def list_mine(handle: flux.Flux) -> list[int]:
    """My jobs, the one submitted last first."""
    request = {
        "max_entries": 0,
        "attrs": ["t_submit"],
        "since": 0.0,
        "constraint": {"userid": [os.getuid()]},
    }
    jobs = handle.rpc("job-list.list", request).get()["jobs"]
    jobs.sort(key=lambda job: (job["t_submit"], job["id"]), reverse=True)
    return [job["id"] for job in jobs]


def parse_slice(text: str) -> slice:
    parts = text.strip("[]").split(":")
    if len(parts) == 1:
        return slice(int(parts[0]), int(parts[0]) + 1 or None)
    return slice(*(int(part) if part else None for part in parts))


def last_slice(text: str) -> str:
    """N means the last N jobs; otherwise a slice in brackets."""
    if text.startswith("["):
        return text
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"invalid slice: {text}")
    return f"[:{text}]"


def attach(args: Args) -> None:
    import jobattach

    sys.exit(jobattach.attach(flux.Flux(), args))


# Command line
def event_options(cmd: argparse.ArgumentParser) -> None:
    cmd.add_argument("-f", "--format", default="text", choices=("text", "json"))
    cmd.add_argument(
        "-T", "--time-format", default="raw", choices=("raw", "iso", "offset", "human")
    )
    cmd.add_argument("-H", "--human", action="store_true", help="readable times")
    cmd.add_argument(
        "-p", "--path", default="eventlog", help="another eventlog, as exec or output"
    )
    solocmd.color_option(cmd)


def switches(cmd: argparse.ArgumentParser, *options: tuple[str, str]) -> None:
    for names, text in options:
        cmd.add_argument(*names.split(), action="store_true", help=text)


def attach_options(cmd: argparse.ArgumentParser) -> None:
    switches(
        cmd,
        ("-E --show-events", "show the job's events on stderr"),
        ("-X --show-exec", "show the events of its execution on stderr"),
        ("--show-status", "accepted, without effect"),
        ("-l --label-io", "label output by task rank"),
        ("-q --quiet", "no warnings"),
        ("-r --read-only", "leave standard input and signals alone"),
        ("-u --unbuffered", "do not wait for full lines of standard input"),
        ("--debug", "accepted, without effect"),
        ("--debug-emulate", "accepted, without effect"),
    )
    cmd.add_argument("-v", "--verbose", action="count", default=0)
    cmd.add_argument(
        "-w",
        "--wait-event",
        default="finish",
        metavar="NAME",
        help="event after which to stop (default: finish)",
    )
    cmd.add_argument("-i", "--stdin-ranks", default="all", metavar="RANKS")
    cmd.add_argument("--tail", nargs="?", type=int, const=10, metavar="NUM")


def main() -> None:
    top = solocmd.parser(NAME)
    sub = top.add_subparsers(metavar="COMMAND")

    def command(name: str, func: Any, text: str, ids: str = "") -> Any:
        cmd = sub.add_parser(name, help=text)
        cmd.set_defaults(func=func)
        if ids == "one":
            cmd.add_argument("jobid", type=solocmd.jobid, metavar="JOBID")
        elif ids:
            cmd.add_argument("jobids", type=solocmd.jobid, nargs=ids, metavar="JOBID")
        return cmd

    attach_options(command("attach", attach, "show a job's output", "one"))
    cmd = command("eventlog", eventlog, "print a job's eventlog", "one")
    event_options(cmd)
    switches(cmd, ("-F --follow", "go on until the job is inactive"))
    cmd = command("wait-event", wait_event, "wait for an event of a job", "one")
    event_options(cmd)
    cmd.add_argument("event", metavar="EVENT")
    cmd.add_argument("-t", "--timeout", type=solocmd.duration, metavar="DURATION")
    cmd.add_argument("-m", "--match-context", action="append", default=[])
    cmd.add_argument("-c", "--count", type=int, default=1)
    switches(
        cmd,
        ("-q --quiet", "do not print the event"),
        ("-v --verbose", "print all events up to it"),
        ("-W --waitcreate", "wait for the eventlog to exist"),
    )
    cmd = command("info", info, "print jobspec, R, eventlog ... of a job", "one")
    cmd.add_argument("key", metavar="KEY")
    switches(
        cmd,
        ("-o --original", "jobspec as submitted"),
        ("-b --base", "without later updates"),
    )
    cmd = command("id", id_cmd, "convert job IDs")
    cmd.add_argument("jobids", nargs="*", metavar="JOBID")
    forms = ("dec", "hex", "kvs", "dothex", "words", "f58", "f58plain", "emoji")
    cmd.add_argument("-t", "--to", default="dec", choices=forms)
    cmd = command("raise", raise_cmd, "raise an exception on jobs")
    cmd.set_defaults(jobids=[])
    cmd.add_argument("words", nargs="+", metavar="JOBID... [--] [MESSAGE...]")
    cmd.add_argument("-s", "--severity", type=int, default=0, choices=range(8))
    cmd.add_argument("-t", "--type", default="cancel")
    cmd.add_argument("-m", "--message", default="", metavar="NOTE")
    cmd = command("kill", kill, "send a signal to jobs", "+")
    cmd.add_argument("-s", "--signal", type=solocmd.signum, default=15)
    cmd = command("urgency", urgency, "set a job's urgency", "one")
    cmd.add_argument("urgency", metavar="URGENCY")
    switches(cmd, ("-v --verbose", "print the old urgency"))
    cmd = command("memo", memo, "attach values to a job", "one")
    cmd.add_argument("memo", nargs="+", metavar="KEY=VALUE")
    switches(cmd, ("--volatile", "do not record in the eventlog"))
    cmd = command("status", status, "wait for jobs and exit as the worst did", "+")
    cmd.add_argument("-e", "--exception-exit-code", type=int, metavar="N")
    switches(cmd, ("-v --verbose", "say more"), ("-j --json", "print results"))
    cmd = command("wait", wait, "wait for waitable jobs", "")
    cmd.add_argument("jobid", type=solocmd.jobid, nargs="?", metavar="JOBID")
    switches(cmd, ("-a --all", "all of them"), ("-v --verbose", "say more"))
    cmd = command("last", last, "print the jobs that I submitted last")
    cmd.add_argument("slice", nargs="?", type=last_slice, default="[0:1]")
    solocmd.dispatch(top)
