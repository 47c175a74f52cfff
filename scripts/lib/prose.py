# Looks for archaic, hedging, inflated and illogical wording in the pages, with a few
# checks of proselint. Run by scripts/docs.
# SPDX-License-Identifier: LGPL-3.0-only
"""prose.py FILE...: a line for each finding; exit status 1 if there are any."""

from __future__ import annotations

import pathlib
import sys

from proselint.tools import lint

# The other checks of proselint are about typography, or read code as text.
CHECKS = ["archaism.misc", "corporate_speak.misc", "hedging.misc", "misc.illogic"]
CHECKS += ["misc.bureaucratese", "misc.metadiscourse", "needless_variants.misc"]
CHECKS += ["nonwords.misc", "weasel_words.misc", "weasel_words.very"]


def main(paths: list[str]) -> int:
    config = {"max_errors": 1000, "checks": dict.fromkeys(CHECKS, True)}
    found = 0
    for path in paths:
        text = pathlib.Path(path).read_text(encoding="utf8")
        for check, message, line, column, *_ in lint(text, config=config):
            print(f"{path}:{line + 1}:{column + 1}: {check}: {message}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
