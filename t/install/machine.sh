# shellcheck shell=bash
# What the machines of tests that install something need: their flux-core, users, units,
# waiting. Sourced by t/install/site.sh and by t/multiuser.
# SPDX-License-Identifier: LGPL-3.0-only

. "$DWS_SRCDIR/scripts/lib/engines.sh"
FLUX=$(find_flux_core)
FLUX_PREFIX=$(cd "$(dirname "$FLUX")/.." && pwd)
PKG_CONFIG_PATH=$(flux_core_pc "$FLUX")
export PKG_CONFIG_PATH
SITE_CONF=$(pkg-config --variable=fluxconfdir flux-core)/system
: "${SITE_LIMIT:=120}"

# quietly COMMAND...: what it prints is shown only if it fails.
quietly () {
    "$@" >quietly.log 2>&1 || { cat quietly.log; return 1; }
}

# site_as USER COMMAND...: with his rights, groups and home.
site_as () {
    site_user=$1
    shift
    $site_exec setpriv --reuid "$site_user" --regid "$site_user" --init-groups \
        env HOME="$(getent passwd "$site_user" | cut -d: -f6)" USER="$site_user" "$@"
}

# site_unit FILE: the command line that systemd runs for a unit.
site_unit () {
    sed -e ':a' -e '/\\$/{N;s/\\\n/ /;ba' -e '}' "$1" | sed -n 's/^ExecStart=//p'
}

# site_wait COMMAND...: again and again until it succeeds, with a limit that only a
# failure reaches.
site_wait () {
    site_end=$((SECONDS + SITE_LIMIT))
    until "$@" >site_wait.out 2>&1; do
        if test $SECONDS -ge $site_end; then
            cat site_wait.out
            tail -n 20 -- *.log
            echo "site_wait: not after $SITE_LIMIT s: $*"
            return 1
        fi
        sleep 0.2
    done
}
