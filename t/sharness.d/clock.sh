# Clocks that a test sets. It calls dws_clock in dws_config, when the instance is about
# to be started.
# SPDX-License-Identifier: LGPL-3.0-only

dws_clock () {
    export JUMP_CLOCK=$DWS_TMP/clock
    dws_jump 0
    dws_preload jump-clock
}

# dws_jump SECONDS: so far off is the wall clock of all processes from now on.
dws_jump () {
    "$DWS_PYTHON" "$DWS_SRCDIR/t/scripts/set_clock.py" "$JUMP_CLOCK" jump $1
}

# dws_pass SECONDS: so much more time has passed for brokers and their modules. All
# others see that the wall clock was set.
dws_pass () {
    "$DWS_PYTHON" "$DWS_SRCDIR/t/scripts/set_clock.py" "$JUMP_CLOCK" pass $1 &&
    flux config reload
}
