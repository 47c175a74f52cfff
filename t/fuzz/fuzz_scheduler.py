# Fuzz target: what jobs ask of sched-rabbit, as structures, in any order with what
# else a scheduler is told.
# SPDX-License-Identifier: LGPL-3.0-only
"""Usage: fuzz_scheduler.py SECONDS [SEED]"""

from __future__ import annotations

import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))

from sched_support import Session

STEPS = 200  # of one session
TIME_LIMIT = 1.0  # seconds of CPU that one request may take of all who wait


def main() -> int:
    seconds = float(sys.argv[1])
    end = time.monotonic() + seconds
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    steps = 0
    while time.monotonic() < end:
        session = Session(random.Random(seed), TIME_LIMIT)
        try:
            for _ in range(STEPS):
                session.step()
                steps += 1
            session.finish()
        except BaseException:
            print(f"seed {seed}", file=sys.stderr)
            raise
        if len(sys.argv) > 2:
            break
        seed += 1
    print(f"stat::number_of_executed_units: {steps}")
    print(f"stat::average_exec_per_sec: {int(steps / seconds)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
