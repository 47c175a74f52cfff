# SPDX-License-Identifier: LGPL-3.0-only
"""flux dmesg: print the broker's log."""

import errno
import re
import sys
from datetime import datetime, timedelta

import flux
import solocmd
from flux.constants import FLUX_RPC_STREAMING

LEVELS = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")
# <pri>1 timestamp host app procid msgid structured-data text (RFC 5424)
ENTRY = re.compile(
    r"<(?P<pri>\d+)>\d+ (?P<time>\S+) (?P<host>\S+) (?P<app>\S+) \S+ \S+ -? ?"
    r"(?P<text>.*)",
    re.DOTALL,
)


class Printer:
    """Prints entries, with times absolute or as --human wants them."""

    def __init__(self, human: bool, color: bool) -> None:
        self.human = human
        self.color = color
        self.minute = datetime.min

    def timestamp(self, text: str) -> str:
        if not self.human:
            return text
        when = datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone()
        naive = when.replace(tzinfo=None)
        if naive - self.minute < timedelta(minutes=1):
            return f"[{(naive - self.minute).total_seconds():>+11.6f}]"
        self.minute = naive
        return when.strftime("[%b%d %H:%M]")

    def show(self, entry: str) -> None:
        match = ENTRY.match(entry)
        if not match:
            print(entry)
            return
        level = int(match["pri"]) >> 3 & 7  # flux keeps it there
        when = self.timestamp(match["time"])
        source = f"{match['app']}.{LEVELS[level]}[{match['host']}]"
        if self.color:
            when = f"\033[32m{when}\033[0m"
            source = f"\033[3{1 if level <= 3 else 3}m{source}\033[0m"
        print(f"{when} {source}: {match['text'].rstrip()}", flush=True)


def main() -> None:
    top = solocmd.parser("flux-dmesg")
    top.add_argument("-C", "--clear", action="store_true", help="clear the log")
    top.add_argument(
        "-c", "--read-clear", action="store_true", help="print the log, then clear it"
    )
    top.add_argument(
        "-f", "--follow", action="store_true", help="go on with new entries"
    )
    top.add_argument("-n", "--new", action="store_true", help="only new entries")
    top.add_argument("-H", "--human", action="store_true", help="readable times")
    solocmd.color_option(top)
    args = top.parse_args()
    color = args.color == "always" or (args.color == "auto" and sys.stdout.isatty())
    handle = flux.Flux()
    if not args.clear:
        printer = Printer(args.human, color)
        request = {"follow": args.follow or args.new, "nobacklog": args.new}
        rpc = handle.rpc("log.dmesg", request, flags=FLUX_RPC_STREAMING)
        try:
            while True:
                printer.show(rpc.get_str())
                rpc.reset()
        except OSError as exc:
            if exc.errno != errno.ENODATA:  # the end
                raise
    if args.clear or args.read_clear:
        handle.rpc("log.clear").get()


if __name__ == "__main__":
    solocmd.run("flux-dmesg", main)
