# shellcheck shell=bash
# Chooses the engine for programs that run in an instance of simulated nodes, and
# runs them there. Sourced by scripts/demo and bench/*, which have set top.
# SPDX-License-Identifier: LGPL-3.0-only

# shellcheck source=scripts/lib/engines.sh
. "$top/scripts/lib/engines.sh"

# choose_engine ARG...: sets flux to the flux command to use, and args to the
# arguments without --solo. Uses solo with --solo, if FLUX names solo, and where
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

# run_bench NAME [ARG...]: bench/lib/NAME.py with these arguments, in an instance of
# four nodes with room for a thousand jobs at the same time; or its help.
run_bench () {
    local program=$top/bench/lib/$1.py
    shift
    choose_engine "$@"
    "$top/scripts/setup" -q
    case " $* " in
    *" -h "* | *" --help "*)
        PYTHONPATH=$top/scripts/lib exec "$top/.venv/bin/flux" python "$program" --help
        ;;
    esac
    # The program runs in a folder of its own: names of files are from here.
    run_in_instance --cores 256 "$program" --from "$PWD" "${args[@]}"
}
