# SPDX-License-Identifier: LGPL-3.0-only
"""Attack the services as a guest, with requests alone:

bombs.py PIDS USERID PAYLOAD... <TOPICS

Sends each topic, as that user, many requests with those payloads (JSON objects), in
turn: too large, too deep, too many, and streams that are never ended. Requests stay
open until the end. Between them the instance owner requests dws.status.

Prints an object: "answers", by topic and kind of bomb how many requests were answered
how by the end (a name of errno, "answer", or "none"), and "grown", how many MB each
process of PIDS (a list with commas) has grown at most. How long dws.status took is a
comment above.
"""

import collections
import errno
import gc
import json
import os
import statistics
import sys
import time

import flux
from flux.constants import FLUX_RPC_STREAMING

LARGE = 100_000  # bytes
DEEP = 40_000  # arrays in arrays
CHUNK = 100  # requests between two looks


class Pair:
    """The guest, who bombs, and the owner, who looks."""

    def __init__(self, userid: str, pids: list) -> None:
        self.owner = flux.Flux()
        os.environ.update(FLUX_HANDLE_USERID=userid, FLUX_HANDLE_ROLEMASK="0x2")
        self.guest = flux.Flux()
        del os.environ["FLUX_HANDLE_USERID"], os.environ["FLUX_HANDLE_ROLEMASK"]
        self.futures: list = []  # the guest never lets go of one
        self.times: list = []
        self.slowest, self.slowest_topic = 0.0, ""
        self.before = {pid: memory_mb(pid) for pid in pids}
        self.grown = dict.fromkeys(pids, 0.0)

    def look(self, topic: str = "") -> None:
        start = time.monotonic()
        self.owner.rpc("dws.status").get()
        self.times.append(time.monotonic() - start)
        if self.times[-1] > self.slowest:
            self.slowest, self.slowest_topic = self.times[-1], topic
        for pid, before in self.before.items():
            more = round(memory_mb(pid) - before, 1)
            self.grown[pid] = max(self.grown[pid], more)

    def barrier(self, topic: str) -> None:
        """Wait until the service has seen all that was sent before. Its answer to a
        method that it does not have comes after all those that it gives at once."""
        seen: list = []
        future = self.guest.rpc(topic.rpartition(".")[0] + ".no-such-method")
        future.then(lambda future: seen.append(future))
        while not seen:
            self.guest.reactor_run(flags=flux.constants.FLUX_REACTOR_ONCE)

    def bomb(self, topic: str, payloads: list, number: int, flags: int) -> dict:
        answers: collections.Counter = collections.Counter(none=number)

        def note(future: flux.future.Future) -> None:
            answers["none"] -= 1
            try:
                future.get()
                answers["answer"] += 1
            except OSError as exc:
                answers[errno.errorcode[exc.errno]] += 1

        for i in range(number):
            future = self.guest.rpc(topic, payloads[i % len(payloads)], flags=flags)
            future.then(note)
            self.futures.append(future)
            if i % CHUNK == CHUNK - 1:
                self.barrier(topic)
                self.look(topic)
        return answers


def memory_mb(pid: str) -> float:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as stream:
            pages = int(stream.read().split()[1])
    except FileNotFoundError:  # of a job that has just ended
        return 0.0
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def pad(payload: str, more: str) -> str:
    return payload.rstrip().removesuffix("}") + f', "more": {more}}}'


def main() -> None:
    pids, userid, *small = sys.argv[1:]
    topics = sys.stdin.read().split()
    large = [pad(p, '"' + "x" * LARGE + '"') for p in small]
    deep = [pad(p, "[" * n + "]" * n) for p in small for n in (1_500, DEEP)]
    deep += ["[" * DEEP, '{"kind": ' * 400]
    pair = Pair(userid, pids.split(","))
    for _ in range(20):
        pair.look()
    quiet = statistics.median(pair.times)
    pair.times.clear()
    pair.slowest = 0.0
    gc.disable()  # going through all futures would be taken for the time of a service
    said: dict = {}
    for topic in topics:
        said[topic] = {
            "size": pair.bomb(topic, large, 300, 0),
            "depth": pair.bomb(topic, deep, 100, 0),
            "number": pair.bomb(topic, small, 400, 0),
            "streams": pair.bomb(topic, small, 100, FLUX_RPC_STREAMING),
        }
    print(
        f"# dws.status took {statistics.median(pair.times) / quiet:.1f} times as long "
        f"as before ({1000 * quiet:.1f} ms), {pair.slowest / quiet:.1f} at most, of "
        f"{len(pair.times)}: {pair.slowest_topic}"
    )
    print(json.dumps({"answers": said, "grown": pair.grown}, indent=1))


if __name__ == "__main__":
    main()
