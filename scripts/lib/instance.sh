# shellcheck shell=bash
# Chooses the engine for programs that run in an instance of made-up nodes, and
# runs them there. Sourced by scripts/demo and bench/*, which have set top.
# SPDX-License-Identifier: LGPL-3.0-only

# shellcheck source=scripts/lib/engines.sh
. "$top/scripts/lib/engines.sh"

# choose_engine ARG...: sets flux to the flux command to use, and args to the
# arguments without --solo. That is ours with --solo, if FLUX names it, and where
# there is no flux-core.
choose_engine () {
    local arg solo=
    args=()
    for arg in "$@"; do
        if test "$arg" = --solo; then
            solo=t
        else
            args+=("$arg")
        fi
    done
    case "${FLUX:-}" in "$top"/*) solo=t ;; esac
    if test -n "$solo" || ! flux=$(find_flux_core); then
        flux=$top/.venv/bin/flux
    fi
}

# run_in_instance [OPTION...] PROGRAM [ARG...]: a Python program in an instance of
# the chosen engine, see instance.py; its files are in a folder that is removed.
run_in_instance () {
    local work rc=0
    work=$(mktemp -d "${TMPDIR:-/tmp}/flux-dws-XXXXXX")
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$work'" EXIT
    "$top/.venv/bin/python3" "$top/scripts/lib/instance.py" --flux "$flux" \
        --prefix "$top/.venv" --workdir "$work" "$@" || rc=$?
    return $rc
}
