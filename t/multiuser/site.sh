# shellcheck shell=bash
# The harness of t/multiuser/*.t, and what makes the site that they run on: a management
# node mgmt, and node0 to node3, whose brokers run as flux. On a site with the controllers
# of DWS and NNF (DWS_NNF: their folder) the nodes have the names of theirs. Each node is a
# namespace with a host name, a /run and a /var/lib/flux of its own; users, file systems and
# mounts are everywhere the same.
# SPDX-License-Identifier: LGPL-3.0-only

DWS_SRCDIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$DWS_SRCDIR/t/install/machine.sh"
SITE_DIR=/var/tmp/site
SITE_COMPUTES="node[0-3]"
SITE_NODES=(mgmt node0 node1 node2 node3)
if test -n "${DWS_NNF:-}"; then
    SITE_COMPUTES="compute-[01-04]"
    SITE_NODES=(mgmt compute-01 compute-02 compute-03 compute-04)
fi
DWS_SIM=$DWS_SRCDIR/.venv/bin/dws-sim
PATH=$FLUX_PREFIX/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$DWS_SRCDIR/.venv/bin
FLUX_URI=local:///nodes/mgmt/run/flux/local
export FLUX FLUX_PREFIX FLUX_URI DWS_SRCDIR PATH
unset PYTHONPATH LD_LIBRARY_PATH FLUX_DWS_PREFIX

# node_make NAME: a machine of that name, that has not been started
node_make () {
    mkdir -p "/nodes/$1"/run/{flux,munge,journal,active} "/nodes/$1/state"
    chown flux: "/nodes/$1/run/flux" "/nodes/$1/state"
    chmod 700 "/nodes/$1/state"
    unshare --mount --uts --propagation private bash -c '
        hostname "$1" &&
        mount --bind /run/munge "/nodes/$1/run/munge" &&
        mount --bind "/nodes/$1/state" /var/lib/flux &&
        mount --rbind "/nodes/$1/run" /run &&
        touch "/nodes/$1/made" &&
        exec sleep infinity' node "$1" >"/nodes/$1/node.log" 2>&1 &
    echo $! >"/nodes/$1/pid"
    site_wait test -e "/nodes/$1/made"
}

# on NODE USER COMMAND...: as he who has logged in there, in his home directory
on () {
    local node=$1 user=$2 home=/root
    shift 2
    test "$user" = root || home=$(getent passwd "$user" | cut -d: -f6)
    nsenter --mount --uts --root --target "$(cat "/nodes/$node/pid")" \
        setpriv --reuid "$user" --regid "$user" --init-groups \
        env -i --chdir="$home" HOME="$home" USER="$user" LOGNAME="$user" SHELL=/bin/bash \
        LANG=C.UTF-8 FLUX_URI=local:///run/flux/local PYTHONDONTWRITEBYTECODE=t \
        PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin "$@"
}

# as USER COMMAND...: on the node that jobs are submitted from
as () {
    on mgmt "$@"
}

# node_start NAME: its broker, by the unit of flux-core, and what that wants
node_start () {
    local line
    touch "/nodes/$1/run/active/nnf-clientmount"
    line=$(site_unit "$FLUX_PREFIX/lib/systemd/system/flux.service")
    # In the place of this shell, so that its process is that of the broker.
    on "$1" flux env -u FLUX_URI --chdir / STATE_DIRECTORY=/var/lib/flux \
        bash -c "exec $line" >>"/nodes/$1/broker.log" 2>&1 &
    echo $! >"/nodes/$1/broker.pid"
}

# processes NODE NAME: those of that name there
processes () {
    local pid mine
    mine=$(readlink "/proc/$(cat "/nodes/$1/pid")/ns/uts")
    for pid in $(pgrep -x "$2"); do
        test "$(readlink "/proc/$pid/ns/uts")" != "$mine" || echo "$pid"
    done
}

# node_crash NAME: all of it ends at once, but for its files
node_crash () {
    local pid mine
    mine=$(readlink "/proc/$(cat "/nodes/$1/pid")/ns/uts")
    for pid in /proc/[0-9]*; do
        test "$(readlink "$pid/ns/uts")" != "$mine" || test "${pid#/proc/}" = "$(cat "/nodes/$1/pid")" ||
            kill -KILL "${pid#/proc/}"
    done
}

site_up () {
    test "$(as flux flux resource list -s free -no "{nnodes}")" = 4
}

# The agent, by its unit
agent_start () {
    local line
    line=$(site_unit "$FLUX_PREFIX/lib/systemd/system/flux-coral2-dws.service")
    as flux bash -c "exec $line" >>"$SITE_DIR/agent.log" 2>&1 &
    echo $! >"$SITE_DIR/agent.pid"
}

# agent_crash: what has started it is a shell
agent_crash () {
    pkill -KILL -P "$(cat "$SITE_DIR/agent.pid")"
}
site_ready () {
    test "$(as flux flux rabbit status --json | jq ".synced and .agent.synced")" = true
}

# dws_ctl COMMAND...: of the simulated cluster
dws_ctl () {
    "$DWS_SIM" ctl --kubeconfig "$SITE_DIR/kubeconfig" "$@"
}

# rig COMMAND...: see t/nnf/rig.py
rig () {
    "$DWS_SRCDIR/.venv/bin/flux" python "$DWS_SRCDIR/t/nnf/rig.py" "$DWS_NNF" "$@"
}

# requests of a user, with his own number and not with one that he says he has
# ask USER TOPIC [PAYLOAD]
ask () {
    as "$1" flux python "$DWS_SRCDIR/t/scripts/rpc.py" "${@:2}"
}

# said JOBID NAME: the value of that variable of the job
said () {
    as flux flux job eventlog --format=json "$1" |
        jq -r "select(.name == \"dws_environment\") | .context.variables.$2"
}

# wait_event JOBID EVENT [OPTION...]
wait_event () {
    as flux timeout 100 flux job wait-event -q "${@:3}" "$1" "$2"
}

# units NODE UNIT: what became of it there, a word each
units () {
    sed -n "s/ $2\$//p" "/nodes/$1/run/units.log"
}

# joined: all brokers are there
joined () {
    as flux flux overlay status --summary >overlay && grep -q full overlay
}
# broker_kill NODE: and no more of it
broker_kill () {
    kill -KILL $(processes "$1" "flux-broker.*")
}

all_ended () {
    test -z "$(as flux flux jobs -Ano "{id}")"
}

# all_clean: no job is left, nothing of one in Kubernetes, no node drained
all_clean () {
    dws_ctl wait-idle --timeout 30 &&
    all_ended &&
    test -z "$(as flux flux resource drain -no "{nodelist}")"
}

# Each of t/multiuser/*.t says what it is about before it sources this.
if test -n "${test_description:-}"; then
    SHARNESS_TEST_DIRECTORY=$(mktemp -d /var/tmp/dws-multi-XXXXXX)
    chmod 755 "$SHARNESS_TEST_DIRECTORY"
    SHARNESS_TEST_SRCDIR=$DWS_SRCDIR/t
    export SHARNESS_TEST_DIRECTORY SHARNESS_TEST_SRCDIR
    cd "$SHARNESS_TEST_DIRECTORY" || exit 1
    . "${SHARNESS_PATH:-/usr/share/sharness/sharness.sh}"
    chain_lint=t
fi
