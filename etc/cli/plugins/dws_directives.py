# SPDX-License-Identifier: LGPL-3.0-only
#
# #DW lines of scripts, and options --dw and --dw-check, for flux run, submit,
# bulksubmit, alloc and batch. Every submission loads this file, most of them for
# nothing: all that it needs only with directives is imported when there are some.
"""Options --dw, --dw-check and --dw-check-json, and #DW lines in scripts."""

import argparse
import copy
import os
import re
import sys

from flux.cli.plugin import CLIPlugin
from flux.idset import IDset

# Where ours are, if that is where Flux' Python does not look.
PACKAGES = "@PACKAGES@"
WHERE = ("rabbits", "near")
# Lines of a script that ask for storage are among those. Characters that are not seen
# may be around the "#".
MARKS = r"(?im)^[^!-~\n]*#+[^!-~\n]*(?:DW|BB|flux:.*(?:dw|coral2))"
# Of a program that is run, and may not be a script that somebody has written.
MOST_BYTES = 1 << 20
# Where flux batch and flux alloc have their command; it may begin with "--".
WORDS = {"batch": "SCRIPT", "alloc": "COMMAND"}
# Programs that run the command which is behind their own options.
WRAPPERS = (
    *("env", "nice", "timeout", "time", "nohup", "setsid", "stdbuf", "ionice"),
    *("chrt", "taskset", "numactl", "strace", "srun", "mpirun", "mpiexec"),
)
# Programs that run the script which is their first argument.
INTERPRETERS = ("sh", "bash", "dash", "ksh", "zsh", "csh", "tcsh", "python", "perl")


def batch_script(args, jobspec):
    """The name and the text of what flux batch runs; None if that is no script."""
    files = jobspec.attributes.get("system", {}).get("files", {})
    text = files.get("script", {}).get("data")
    if not isinstance(text, str):
        return None
    words = getattr(args, "SCRIPT", None)
    if getattr(args, "wrap", False):
        # Of standard input, behind a line of Flux.
        return None if words else ("stdin", text.partition("\n")[2])
    return (words[0] if words else "stdin"), text


def find_program(word, cwd):
    """The path of a program as the job will find it, from here; None without one."""
    folders = [cwd] if "/" in word else os.environ.get("PATH", "").split(":")
    for folder in folders:
        path = os.path.join(cwd, folder, word)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def read_script(path, magic=b"#!"):
    """The text of a file that begins with that, None of any other."""
    try:
        with open(path, "rb") as stream:
            if stream.read(len(magic)) != magic:
                return None
            text = magic + stream.read(MOST_BYTES)
    except OSError:
        # What may be run need not be readable.
        return None
    return text.decode("utf-8", errors="replace")


def folder_of(jobspec):
    return jobspec.attributes.get("system", {}).get("cwd") or os.getcwd()


def program_script(jobspec, command=None):
    """The same of the others, where the program is a script."""
    if command is None:
        tasks = jobspec.jobspec.get("tasks") or [{}]
        command = tasks[0].get("command")
    if not command or not isinstance(command, list):
        return None
    path = find_program(command[0], folder_of(jobspec))
    text = read_script(path) if path else None
    return None if text is None else (command[0], text)


def unwrapped(jobspec, command):
    """What a wrapper, such as env or timeout, runs: from its first word on that is a
    program. [] if the command has no wrapper."""
    words = command
    while words and os.path.basename(words[0]) in WRAPPERS:
        words = words[1:]
        while words and not find_program(words[0], folder_of(jobspec)):
            words = words[1:]
    return [] if words is command else words


def argument_script(jobspec, command):
    """The same of a script that is the first argument of a shell or the like."""
    name = os.path.basename(command[0]).rstrip("0123456789.") if command else ""
    if name not in INTERPRETERS:
        return None
    for word in command[1:]:
        if word == "-c":
            break
        if not word.startswith("-"):
            path = os.path.join(folder_of(jobspec), word)
            text = read_script(path, b"") if os.path.isfile(path) else None
            return None if text is None else (word, text)
    return None


def marked(script):
    """The script, if there may be a line in it that asks for storage."""
    return script if script and re.search(MARKS, script[1]) else None


def words_of(prog, args, jobspec):
    """What the job runs: the words of its user."""
    if prog in WORDS:
        words = getattr(args, WORDS[prog], None) or []
        return words[1:] if words[:1] == ["--"] else words
    tasks = jobspec.jobspec.get("tasks") or [{}]
    return tasks[0].get("command") or []


def scripts_of(prog, args, jobspec):
    """The script that the job runs, and one that another program runs for it: each
    is None, or a name and a text."""
    words = words_of(prog, args, jobspec)
    if prog == "batch" and not (getattr(args, "wrap", False) and words):
        return marked(batch_script(args, jobspec)), None
    script = program_script(jobspec, words)
    if script:
        return marked(script), None
    inner = unwrapped(jobspec, words)
    other = (inner and program_script(jobspec, inner)) or argument_script(
        jobspec, inner or words
    )
    return None, marked(other)


class Copied(argparse.Action):
    """An option that each job of flux submit --cc, --bcc and flux bulksubmit has.

    These commands hand a job only the options in Xcmd.mutable_args, and expand
    {cc}, {} and the like in them. A list as default collects the values.
    """

    def __call__(self, parser, namespace, value, option_string=None):
        copies = getattr(sys.modules.get("flux.cli.base"), "Xcmd", None)
        if copies:
            copies.mutable_args[self.dest] = f"{self.option_strings[0]}="
        if self.nargs == 0:
            value = True
        elif isinstance(self.default, list):
            value = [*(getattr(namespace, self.dest, None) or []), value]
        setattr(namespace, self.dest, value)


def wants_check(args):
    return getattr(args, "dw_check", False) or getattr(args, "dw_check_json", False)


def judge_copies(prog, args, script, jobspec):
    """Refuse what only a later job of --cc or --bcc asks for: {cc} is another there."""
    copies = IDset(getattr(args, "cc", None) or getattr(args, "bcc", None) or "")
    original = getattr(args, "_orig_args", None)
    if original is None or "{cc" not in f"{original.dw} {original.dw_rabbits}":
        return
    from flux.cli.base import Xcmd
    from flux_rabbit import request

    for number in copies:
        copied = Xcmd(original, cc=number)
        spec = copy.deepcopy(jobspec)
        spec.attributes.get("system", {}).pop("dw", None)
        try:
            request.Request(prog, script, copied.dw or [], spec).apply()
            if copied.dw_rabbits:
                request.check_rabbits(copied.dw_rabbits)
        except ValueError as exc:
            raise ValueError(f"cc={number}: {exc}") from None


class DirectivesPlugin(CLIPlugin):
    """Ask for storage of rabbits by #DW lines.

    A script may have its #DW directives as lines of their own, as with Slurm and
    PBS. They are read from the first line to the first that is neither blank nor
    begins with "#". A line that ends in "\\" goes on in the next one, which begins
    with #DW again. flux run, submit, bulksubmit, alloc and batch --wrap look into
    the program that they run if it begins with "#!". Lines that are not read, as
    they are further down, are indented or say "# DW", are refused by flux batch; the
    others warn.

    --dw=TEXT|FILE asks for what a text, or a file, says: #DW directives or the
    name of a preset. It can be given several times. A FILE is a word that has a "/"
    in it, or is the name of a file. With --cc, --bcc and in flux bulksubmit {cc}, {}
    and the like are expanded in TEXT, as in other options.

    All of them together, and what -S dw= says, are what the job asks for. Where
    they do not agree, as two file systems of one name, the job is refused.

    --dw-rabbits=HOSTLIST takes nodes next to these rabbits, and no others.
    --dw-near=JOBID|NAME does so with the rabbits of a job of one's own that has
    started, or has ended, or of a persistent file system that one may use.

    --dw-data-first has the storage made, and the data of copy_in staged in, before the
    job has nodes. It then waits in the queue for nodes next to that.

    --dw-check shows what the job would get, and submits nothing. What the storage
    system adds by its profiles is known to it alone: sizes are the least that
    there will be. --dw-check-json prints the same as JSON. With --cc and --bcc it
    is the first of the jobs that is shown.

    EXAMPLES
    --------

    Look, then submit::

      flux batch -N4 --dw-check job.sh
      flux batch -N4 job.sh

    Next to a rabbit, or to the data of another job::

      flux batch -N2 --dw-rabbits=rabbit1 job.sh
      flux batch -N2 --dw-near=f2dYpXz job.sh

    A directive on the command line::

      flux run -N2 --dw="#DW jobdw type=xfs capacity=10GiB name=scratch" my-app
    """

    def __init__(self, prog):
        super().__init__(prog, prefix="")
        self.add_option(
            "--dw",
            action=Copied,
            default=[],
            metavar="TEXT|FILE",
            help="Ask for rabbit storage by #DW directives, or a file that has them,"
            " besides the #DW lines of a script (multiple use OK)",
        )
        self.add_option(
            "--dw-rabbits",
            action=Copied,
            metavar="HOSTLIST",
            help="Take nodes next to these rabbits only",
        )
        self.add_option(
            "--dw-near",
            action=Copied,
            metavar="JOBID|NAME",
            help="Take nodes next to the rabbits of a job, or of a persistent file"
            " system, only",
        )
        self.add_option(
            "--dw-data-first",
            action=Copied,
            nargs=0,
            default=False,
            help="Make storage and stage data in, then take nodes next to it",
        )
        if self.prog == "bulksubmit":
            return
        self.add_option(
            "--dw-check",
            action=Copied,
            nargs=0,
            default=False,
            help="Show what rabbit storage the job would get, without submitting it",
        )
        self.add_option(
            "--dw-check-json",
            action=Copied,
            nargs=0,
            default=False,
            help="The same as JSON",
        )

    def preinit(self, args):
        if wants_check(args):
            # So that nothing is submitted, whatever else happens.
            args.dry_run = True

    def modify_jobspec(self, args, jobspec):
        given = getattr(args, "dw", None) or []
        check = wants_check(args)
        script, unread = scripts_of(self.prog, args, jobspec)
        where = {key: getattr(args, f"dw_{key}", None) for key in WHERE}
        attributes = jobspec.attributes.get("system", {})
        where = {
            key: attributes.get(f"dw_{key}") if value is None else value
            for key, value in where.items()
        }
        first = getattr(args, "dw_data_first", False)
        asks = given or script or unread or first or "dw" in attributes
        if not (asks or check or any(where.values())):
            return
        if os.path.isabs(PACKAGES) and PACKAGES not in sys.path:
            sys.path.insert(0, PACKAGES)
        # Not before: see above.
        from flux_rabbit import request

        if isinstance(given, str):
            given = [given]
        if unread:
            request.warn_unread(self.prog, unread)
        asked = request.Request(self.prog, script, given, jobspec)
        asked.apply()
        if check:
            judge_copies(self.prog, args, script, jobspec)
        if check or not getattr(args, "dry_run", True):
            asked.find_service(first or any(where.values()))
        asked.place_at(where)
        if first:
            asked.data_first()
        if check:
            from flux_rabbit import foresee

            # Other plugins may yet change the resources. The text of a jobspec is
            # asked for after all of them.
            as_json = getattr(args, "dw_check_json", False)
            copies = getattr(args, "cc", None) or getattr(args, "bcc", None)
            jobspec.dumps = lambda **_: foresee.report(asked, as_json, copies)
