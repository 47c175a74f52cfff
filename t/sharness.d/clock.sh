# Adjustable clocks, by t/scripts/jump-clock.c. A test calls dws_clock in dws_config,
# before the instance is started.
# SPDX-License-Identifier: LGPL-3.0-only

dws_clock () {
    export JUMP_CLOCK=$DWS_TMP/clock
    dws_jump 0
    dws_preload jump-clock
}

# dws_jump SECONDS: shift the wall clock of all processes by this from now on.
dws_jump () {
    "$DWS_PYTHON" "$DWS_SRCDIR/t/scripts/set_clock.py" "$JUMP_CLOCK" jump $1
}

# dws_pass SECONDS: let this time pass for brokers and their modules. Other processes
# see a jump of the wall clock.
dws_pass () {
    "$DWS_PYTHON" "$DWS_SRCDIR/t/scripts/set_clock.py" "$JUMP_CLOCK" pass $1 &&
    flux config reload
}
