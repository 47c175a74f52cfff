# Rabbit jobs for t/*.t: submit one, catch it in a phase, check that nothing is left.
# SPDX-License-Identifier: LGPL-3.0-only

DWS_DIRECTIVE='#DW jobdw type=xfs capacity=10GiB name=scratch'
DWS_LIMIT=300

# Phases of Flux and states of the workflow in which dws_catch can hold a job.
DWS_PHASES='depend pending setup datain prerun running postrun dataout teardown'

# dws_setup: start everything that a rabbit job needs.
dws_setup () {
    dws_start_sim "$@" && dws_load && dws_start_agent
}

# dws_workflow JOBID: print the name of its workflow.
dws_workflow () {
    echo "fluxjob-$(flux job id --to=dec "$1")"
}

dws_submit () {
    flux submit -N2 -S dw="$DWS_DIRECTIVE" "$@"
}

dws_wait_event () {
    flux job wait-event -t $DWS_LIMIT "$@"
}

# dws_held_state PHASE: the workflow state that is held to catch a job there.
dws_held_state () {
    case "$1" in
    depend) echo Proposal ;;
    setup) echo Setup ;;
    datain) echo DataIn ;;
    prerun) echo PreRun ;;
    postrun) echo PostRun ;;
    dataout) echo DataOut ;;
    teardown) echo Teardown ;;
    esac
}

# dws_catch PHASE: submit a job and return when it is in that phase, where it
# stays until dws_let_go. Sets jobid, and blocker for pending.
dws_catch () {
    blocker=
    held=$(dws_held_state "$1")
    if test -n "$held"; then
        dws_ctl hold "$held" || return 1
    fi
    case "$1" in
    pending)
        blocker=$(flux submit -N"$DWS_NODES" sleep inf) &&
        dws_wait_event "$blocker" start &&
        jobid=$(dws_submit true) &&
        dws_wait_event "$jobid" priority
        ;;
    running)
        jobid=$(dws_submit sleep inf) &&
        dws_wait_event "$jobid" start
        ;;
    *)
        jobid=$(dws_submit true) &&
        dws_ctl wait-state "$(dws_workflow "$jobid")" "$held" \
            --timeout $DWS_LIMIT
        ;;
    esac
}

# dws_let_go: release the job that dws_catch holds.
dws_let_go () {
    if test -n "$held"; then
        dws_ctl release "$held" || return 1
    fi
    if test -n "$blocker"; then
        flux cancel "$blocker"
    fi
}

# dws_clean: wait until no workflow, mount or allocation is left, no job is known to
# flux-dws, and no node is allocated.
dws_clean () {
    dws_ctl wait-idle --timeout $DWS_LIMIT &&
    dws_wait_status '.jobs == 0' &&
    flux queue drain -t $DWS_LIMIT &&
    test "$(flux resource list -s allocated -no '{nnodes}')" = 0
}

# dws_until COMMAND...: repeat until it succeeds, with a limit that only a failure
# reaches. Use it for conditions without an event alone (the state of the simulator
# or of the scheduler, a file that a job writes). No other function pauses.
dws_until () {
    dws_end=$((SECONDS + DWS_LIMIT))
    until "$@"; do
        if test $SECONDS -ge $dws_end; then
            echo >&2 "dws_until: not after $DWS_LIMIT s: $*"
            return 1
        fi
        sleep 0.1
    done
}

# dws_limit [KEY SECONDS]: set the only time limit of a state. A test of one node
# sets the limit when the other nodes are done, as these may be slow.
dws_limit () {
    sed -i "/_timeout/d" "$DWS_TMP/conf.d/test.toml" &&
    { test $# = 0 || echo "$1 = $2" >>"$DWS_TMP/conf.d/test.toml"; } &&
    flux config reload
}

# dws_drained HOSTS: these nodes are drained for one reason, and no others.
dws_drained () {
    test "$(flux resource drain -no '{nodelist}')" = "$1"
}

# dws_kube_clean KIND...: dws_clean where the cluster is no simulation; it has no
# object of these kinds.
dws_kube_clean () {
    flux python "$DWS_SRCDIR/t/scripts/kube-empty.py" kubeconfig "$@" &&
    dws_wait_status '.jobs == 0' &&
    flux queue drain -t $DWS_LIMIT &&
    test "$(flux resource list -s allocated -no '{nnodes}')" = 0
}

# dws_ended_well JOBID: the job succeeds, and its workflow passes all states.
dws_ended_well () {
    flux job attach $1 &&
    dws_wait_event $1 clean &&
    flux job eventlog $1 >eventlog &&
    grep "epilog-finish.*dws-epilog" eventlog &&
    test_must_fail grep " exception " eventlog
}

# dws_run_job DIRECTIVES COMMAND: run a job that succeeds. Sets jobid.
dws_run_job () {
    jobid=$(flux submit -N2 -S dw="$1" bash -c "$2") &&
    dws_ended_well $jobid
}

# dws_k8s VERB KIND [NAME] [JSON]: send a request as the cluster's admin.
dws_k8s () {
    "$DWS_PYTHON" "$DWS_SRCDIR/t/scripts/k8s.py" "$PWD/kubeconfig" "$@"
}

# dws_kube COMMAND...: the same for kinds of any group, see t/scripts/kube_object.py.
dws_kube () {
    "$DWS_PYTHON" "$DWS_SRCDIR/t/scripts/kube_object.py" "$PWD/kubeconfig" "$@"
}

# dws_crowd COMMAND: hold a job in every phase at once, see t/scripts/crowd.py.
dws_crowd () {
    dws_wait 300 flux python "$DWS_SRCDIR/t/scripts/crowd.py" "$@"
}

# dws_fault NAME TITLE COMMAND: check the effect of a fault on jobs in each phase.
# COMMAND injects the fault while a job is held in each phase; the jobs are released
# then, unless COMMAND does that. Each job has to end as the test file says for NAME:
#
#   # FAULT NAME: text for doc/faults.md
#   #   PHASE...: RESULT: text for doc/faults.md
#
# where RESULT is the outcome of the job in the words of t/scripts/crowd.py.
dws_fault () {
    test_expect_success "$1: a job in every phase" '
        dws_crowd catch
    '
    test_expect_success "$1: $2" "$3"
    test_expect_success "$1: each job ends as it should, nothing is left" "
        dws_crowd release &&
        dws_outcomes $1 \"\$DWS_SRCDIR/t/$(basename "$0")\"
    "
}

# dws_hang on|off: hang the mounts of all nodes, so that the outcome does not depend on
# the progress of the cluster meanwhile.
dws_hang () {
    for node in $(seq -f node%g 0 $(($DWS_NODES - 1))); do
        dws_ctl hang-mount $node $1 || return 1
    done
}

# dws_mounted COUNT: this many nodes have a file system mounted.
dws_mounted () {
    dws_ctl state >state.out && jq -e ".mounts == $1" state.out >/dev/null
}

# dws_disabled [NODE...]: these are or will be in SystemStatus, and no others.
dws_disabled () {
    dws_until dws_is_disabled "$(echo $(printf '%s\n' "$@" | sort))" && dws_wait_status ".health.settled"
}

dws_is_disabled () {
    dws_k8s get systemstatuses default >disabled.out &&
    test "$(jq -r '.data.nodes // {} | with_entries(select(.value == "Disabled"))
        | keys | join(" ")' disabled.out)" = "$1"
}

# dws_outcomes NAME FILE: the crowd ends as that test file says, and leaves nothing.
dws_outcomes () {
    dws_crowd outcome >outcome &&
    "$DWS_PYTHON" "$DWS_SRCDIR/scripts/lib/faults.py" --expect "$1" "$2" \
        >outcome.want &&
    diff -u outcome.want outcome &&
    dws_clean
}
