# Runs parts of the release before this one, which scripts/setup --tests builds.
# SPDX-License-Identifier: LGPL-3.0-only

NEIGHBOUR=$DWS_SRCDIR/.venv/neighbour

neighbour_found () {
    test -e "$NEIGHBOUR/commit"
}

# neighbour_python COMMAND...: run with its Python packages in place of ours.
neighbour_python () {
    env PYTHONPATH="$NEIGHBOUR/python:$PYTHONPATH" flux python "$@"
}

# use old|new agent|module|plugin: replaces that part, or starts it.
use () {
    case "$1 $2" in
    *agent) neighbour_agent $1 ;;
    "old module") neighbour_module "$NEIGHBOUR/modules/dws.so" ;;
    "new module") neighbour_module "$DWS_MODULES/dws.so" ;;
    "old plugin") neighbour_plugin "$NEIGHBOUR/plugins/dws-jobtap.so" ;;
    "new plugin") neighbour_plugin "$DWS_PLUGINS/dws-jobtap.so" ;;
    *) echo >&2 "use: $*" && return 1 ;;
    esac
}
neighbour_agent () {
    if test -e "$DWS_TMP/agent.pid"; then
        dws_kill_agent || return 1
    fi
    case $1 in
    new) dws_start_agent ;;
    old) PYTHONPATH=$NEIGHBOUR/python:$PYTHONPATH dws_start_agent ;;
    esac
}
neighbour_module () {
    flux module list >modules.out &&
    if grep -q "^dws " modules.out; then
        flux module remove dws
    fi &&
    flux module load "$1" &&
    { ! test -e "$DWS_TMP/agent.pid" || dws_wait_status '.agent.synced == true'; }
}
# In one step, so that a plugin is loaded all the time.
neighbour_plugin () {
    flux jobtap list >plugins.out &&
    if grep -q "^dws-jobtap.so$" plugins.out; then
        flux jobtap load --remove=dws-jobtap.so "$1"
    else
        flux jobtap load "$1"
    fi
}
