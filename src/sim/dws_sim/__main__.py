# Makes `python3 -m dws_sim` the same as the dws-sim command.
# SPDX-License-Identifier: LGPL-3.0-only
from dws_sim.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
