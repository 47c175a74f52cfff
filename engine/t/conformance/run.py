# SPDX-License-Identifier: LGPL-3.0-only
"""Run the conformance tests, or say what they leave out.

usage: flux python run.py --record FILE test_MODULE...
       flux python run.py --report FILE
       flux python run.py test_MODULE[.CLASS[.TEST]]...

FILE collects the public calls of flux-python that the tests have made.
"""

import argparse
import sys
import unittest

from calls import Recorder, excuse, public_calls


def report(path):
    with open(path) as file:
        seen = set(file.read().split())
    counts = {"exercised": 0, "excused": 0, "missing": 0}
    missing = []
    for name in sorted(public_calls()):
        if name in seen:
            counts["exercised"] += 1
        elif excuse(name):
            counts["excused"] += 1
        else:
            counts["missing"] += 1
            missing.append(name)
    print(", ".join(f"{count} {what}" for what, count in counts.items()))
    for name in missing:
        print("no test calls", name)
    return 1 if missing or not counts["exercised"] else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--record")
    parser.add_argument("--report")
    parser.add_argument("tests", nargs="*")
    args = parser.parse_args()
    if args.report:
        return report(args.report)
    recorder = Recorder()
    suite = unittest.defaultTestLoader.loadTestsFromNames(args.tests)
    if args.record:
        recorder.start()
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    recorder.stop()
    if args.record:
        with open(args.record, "a") as file:
            file.writelines(name + "\n" for name in sorted(recorder.seen))
    return 0 if result.wasSuccessful() and result.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
