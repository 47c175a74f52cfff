# The harness of t/*.t: sharness plus what is needed to run a test under Flux,
# with dws-sim in Kubernetes' place. Sourced by each test as its first act.
# SPDX-License-Identifier: LGPL-3.0-only
#
# A test runs under solo, the embedded engine, from the tree installed in
# FLUX_DWS_PREFIX (default: .venv of the checkout), or, unchanged, under the
# flux-core whose flux command is named by FLUX.

DWS_SRCDIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
DWS_SCRIPT=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
DWS_PREFIX=${FLUX_DWS_PREFIX:-$DWS_SRCDIR/.venv}
DWS_SOLO_FLUX=$DWS_PREFIX/bin/flux
: "${FLUX:=$DWS_SOLO_FLUX}"
test -x "$FLUX" || {
    echo "Bail out! $FLUX is not there: run scripts/setup first"
    exit 1
}
export FLUX FLUX_DWS_PREFIX="$DWS_PREFIX"

DWS_MODULES=$DWS_PREFIX/lib/flux/modules
DWS_PLUGINS=$DWS_PREFIX/lib/flux/job-manager/plugins
DWS_SHELL_PLUGINS=$DWS_PREFIX/lib/flux/shell/plugins
DWS_PYTHON=${DWS_PYTHON:-$DWS_SRCDIR/.venv/bin/python3}

if test "$FLUX" = "$DWS_SOLO_FLUX"; then
    DWS_ENGINE=solo
else
    DWS_ENGINE=flux-core
    DWS_FLUX_LIBDIR=$(cd "$(dirname "$FLUX")/../lib" && pwd)
    PATH=$(dirname "$FLUX"):$PATH
fi
PATH=$DWS_PREFIX/bin:$DWS_SRCDIR/.venv/bin:$PATH
test "$DWS_ENGINE" = solo || PATH=$(dirname "$FLUX"):$PATH
export PATH DWS_SRCDIR DWS_ENGINE

dws_options=$*
# Trash away from the checkout, and private; not in the way of another checkout.
dws_checkout=$(printf %s "$DWS_SRCDIR" | cksum)
: "${SHARNESS_TEST_DIRECTORY:=${TMPDIR:-/tmp}/flux-dws-t-$(id -u)-${dws_checkout%% *}}"
mkdir -p -m 700 "$SHARNESS_TEST_DIRECTORY"
SHARNESS_TEST_SRCDIR=$DWS_SRCDIR/t
SHARNESS_BUILD_DIRECTORY=$(dirname "$FLUX") # sharness puts it first in PATH
export SHARNESS_TEST_DIRECTORY SHARNESS_TEST_SRCDIR SHARNESS_BUILD_DIRECTORY
cd "$SHARNESS_TEST_DIRECTORY" || exit 1
. "${SHARNESS_PATH:-/usr/share/sharness/sharness.sh}"

# A test whose commands are not joined by && hides the failure of all but the
# last of them.
chain_lint=t

# mawk itself reads past a buffer: keep it out of what the sanitizers look at.
awk () {
    LD_PRELOAD= command awk "$@"
}

# dws_prepare: write the configuration of instances of DWS_NODES simulated nodes with 4
# cores each to DWS_TMP, and set the environment. Nodes: node[0-N-1], or DWS_HOSTS.
dws_prepare () {
    dws_last=$(($DWS_NODES - 1))
    : "${DWS_HOSTS:=node[0-$dws_last]}"
    mkdir "$DWS_TMP/conf.d" "$DWS_TMP/pkgs"
    cat >"$DWS_TMP/R" <<-EOF
	{"version":1,"execution":{"R_lite":[{"rank":"0-$dws_last","children":
	{"core":"0-3"}}],"starttime":0,"expiration":0,
	"nodelist":["$DWS_HOSTS"]}}
	EOF
    cat >"$DWS_TMP/conf.d/test.toml" <<-EOF
	[resource]
	path = "$DWS_TMP/R"
	noverify = true
	EOF
    export DWS_NODES DWS_HOSTS DWS_TMP DWS_MODULES DWS_PLUGINS DWS_SHELL_PLUGINS DWS_FLUX_LIBDIR
    export FLUX_MODULE_PATH_PREPEND="$DWS_MODULES"
    export FLUX_EXEC_PATH_PREPEND="$DWS_PREFIX/libexec/flux/cmd"
    unset FLUX_URI FLUX_JOB_ID
    test "$DWS_ENGINE" = flux-core || return 0
    cat >>"$DWS_TMP/conf.d/test.toml" <<-EOF
	[modules]
	alternatives.sched = "sched-simple"
	alternatives.feasibility = "sched-simple"
	EOF
    # Made-up nodes have more cores than there are to be bound to.
    cat >"$DWS_TMP/initrc.lua" <<-EOF
	shell.options["cpu-affinity"] = "off"
	source ("$("$FLUX" config builtin shell_initrc)")
	EOF
    # Our own packages come first, the engine has its own bindings, and what
    # else they need is in .venv.
    for pkg in "$DWS_PREFIX"/lib/python3*/site-packages/flux_*; do
        case "$pkg" in
        *.dist-info) ;;
        *) ln -s "$pkg" "$DWS_TMP/pkgs/" ;;
        esac
    done
    PYTHONPATH=$DWS_TMP/pkgs:$(echo "$DWS_SRCDIR"/.venv/lib/python3*/site-packages)
    export PYTHONPATH FLUX_MODPROBE_PATH_APPEND="$DWS_PREFIX/etc/flux/modprobe"
    export FLUX_CLI_PLUGINPATH="$DWS_PREFIX/etc/flux/cli/plugins"
    export LD_LIBRARY_PATH="$DWS_FLUX_LIBDIR${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}

# dws_instance [OPTION...] SCRIPT [ARG...]: run it in an instance of those nodes.
dws_instance () {
    if test "$DWS_ENGINE" = flux-core; then
        # After the first broker's end the others have 20 s by default, which
        # are over on a loaded machine.
        set -- --test-exit-timeout=5m -Sconf.shell_initrc="$DWS_TMP/initrc.lua" \
            -Sconf.shell_pluginpath="$DWS_FLUX_LIBDIR/flux/shell/plugins:$DWS_SHELL_PLUGINS" "$@"
    else
        set -- --test-hosts="$DWS_HOSTS" "$@"
    fi
    env -u FLUX_URI "$FLUX" start --test-size="$DWS_NODES" \
        --config-path="$DWS_TMP/conf.d" "$@"
}

# test_under_flux N: go on inside an instance of N nodes. The configuration
# comes from dws_config, which a test may define before.
test_under_flux () {
    if test -n "$DWS_UNDER_FLUX"; then
        trap 'dws_rc=$?; dws_cleanup >/dev/null 2>&1; (exit $dws_rc); die' EXIT
        return 0
    fi
    DWS_NODES=$1
    DWS_TMP=$(mktemp -d "${TMPDIR:-/tmp}/dws-test-XXXXXX")
    dws_prepare
    if type dws_config >/dev/null 2>&1; then
        dws_config >>"$DWS_TMP/conf.d/test.toml"
    fi
    # The instance runs this script again: forget this round's trash.
    trap 'rm -rf "$DWS_TMP"' EXIT
    rm -rf "$SHARNESS_TRASH_DIRECTORY"
    cd "$SHARNESS_TEST_DIRECTORY" || exit 1
    export DWS_UNDER_FLUX=t
    dws_instance ${SHELL_PATH:-/bin/bash} \
        "$DWS_SCRIPT" $dws_options
    exit $?
}

# dws_wait SECONDS COMMAND...: run a command that waits for an event, with a
# limit that only a failure reaches.
dws_wait () {
    dws_limit=$1
    shift
    timeout "$dws_limit" "$@"
}

# dws_start_sim [OPTION...]: a simulated cluster with two nodes per rabbit for
# the nodes of this instance. Leaves kubeconfig, mapping.json, sim.pid.
dws_start_sim () {
    mkfifo sim.ready &&
    {
        dws-sim run --kubeconfig "$PWD/kubeconfig" \
            --nodes "node[0-$(($DWS_NODES - 1))]" --nodes-per-rabbit 2 \
            --mapping "$PWD/mapping.json" --root "$PWD/sim" --ready-fd 9 "$@" \
            9>sim.ready >sim.log 2>&1 &
        echo $! >"$DWS_TMP/sim.pid"
    } &&
    dws_wait 300 cat sim.ready >sim.ready.out &&
    rm sim.ready &&
    grep -q ready sim.ready.out
}

dws_stop_sim () {
    kill "$(cat "$DWS_TMP/sim.pid")" &&
    { wait "$(cat "$DWS_TMP/sim.pid")" || :; }
}

dws_ctl () {
    dws-sim ctl --kubeconfig "$PWD/kubeconfig" "$@"
}

# dws_configure: the table [rabbit] for the cluster that dws_start_sim has started,
# with what rabbit.toml has.
dws_configure () {
    cat >>"$DWS_TMP/conf.d/test.toml" <<-EOF &&

	[rabbit]
	mapping = "$PWD/mapping.json"
	kubeconfig = "$PWD/kubeconfig"
	$(cat rabbit.toml 2>/dev/null)
	EOF
    flux config reload
}

# dws_load: sched-rabbit, or Fluxion where DWS_SCHEDULER says so, the broker
# module, the jobtap plugin, configured for the cluster that dws_start_sim has
# started.
dws_load () {
    dws_configure &&
    if test "$DWS_SCHEDULER" = fluxion; then
        flux kvs get resource.R >R &&
        flux dws2jgf --cluster-name=c mapping.json <R >R.graph &&
        dws_use_fluxion R.graph
    else
        dws_use_sched_rabbit
    fi &&
    flux module load "$DWS_MODULES/dws.so" &&
    flux jobtap load "$DWS_PLUGINS/dws-jobtap.so" "$@"
}

# dws_remove_scheduler: whichever the instance has started with.
dws_remove_scheduler () {
    flux module list >"$DWS_TMP/modules" || return 1
    for module in sched-rabbit sched-simple sched-fluxion-qmanager \
        sched-fluxion-feasibility sched-fluxion-resource; do
        if grep -q "^$module " "$DWS_TMP/modules"; then
            flux module remove $module || return 1
        fi
    done
}

dws_use_sched_rabbit () {
    dws_remove_scheduler &&
    flux module load "$DWS_MODULES/sched-rabbit.py"
}

# dws_use_fluxion FILE: with R from there, in which flux dws2jgf has put a graph.
dws_use_fluxion () {
    dws_remove_scheduler &&
    cp "$1" "$DWS_TMP/R" &&
    flux module reload resource &&
    dws_load_fluxion
}

# By what the environment says: DWS_MATCH_FORMAT, DWS_QUEUE_POLICY.
dws_load_fluxion () {
    flux module load sched-fluxion-resource match-format=${DWS_MATCH_FORMAT:-rv1} &&
    flux module load sched-fluxion-qmanager queue-policy=${DWS_QUEUE_POLICY:-fcfs}
}

# dws_start_agent: returns when the agent is attached and has reported what
# Kubernetes has.
dws_start_agent () {
    flux-coral2-dws --kubeconfig "$PWD/kubeconfig" -v >>agent.log 2>&1 &
    echo $! >"$DWS_TMP/agent.pid"
    dws_wait_status '.agent.synced == true'
}

dws_kill_agent () {
    kill -9 "$(cat "$DWS_TMP/agent.pid")" &&
    { wait "$(cat "$DWS_TMP/agent.pid")" 2>/dev/null || :; } &&
    dws_wait_status '.agent.attached == false'
}

dws_status () {
    flux python -c '
import flux, json
print(json.dumps(flux.Flux().rpc("dws.status", {}).get()))'
}

# dws_wait_status FILTER: until the jq filter is true of dws.status.
dws_wait_status () {
    flux python "$DWS_SRCDIR/t/scripts/wait_status.py" "$@"
}

# Whatever became of the test: end what it started, unload what it loaded.
dws_cleanup () {
    for pid in "$DWS_TMP"/*.pid; do
        test -f "$pid" && kill -9 "$(cat "$pid")"
    done
    flux jobtap remove dws-jobtap.so
    flux module remove dws
    flux module remove sched-rabbit
}

# dws_has_fluxion: whether the engine's Flux has it.
dws_has_fluxion () {
    test "$DWS_ENGINE" = flux-core &&
        test -e "$DWS_FLUX_LIBDIR/flux/modules/sched-fluxion-resource.so"
}

test_set_prereq "$(test "$DWS_ENGINE" = solo && echo SOLO || echo FLUX_CORE)"
