# Support for t/nnf/*.t: an instance with the nodes of a rig, that is, of the
# controllers of DWS and NNF, which t/nnf/run has started. Sourced after
# sharness.sh.
# SPDX-License-Identifier: LGPL-3.0-only

# A longer limit, as no state can be held, and controllers share this host with jobs.
DWS_LIMIT=240

# As rigs name them: two compute nodes to a rabbit. With more than two rabbits
# (DWS_NNF_RABBITS) only those tests can do that count them.
NNF_NODES=$((2 * ${DWS_NNF_RABBITS:-2}))
NNF_RABBITS=$(seq -s ' ' -f 'rabbit-node-%g' ${DWS_NNF_RABBITS:-2})
export DWS_HOSTS=$(printf 'compute-[01-%02d]' $NNF_NODES)

# Capacity of a rabbit's mocked drives, in bytes.
NNF_RAW=39582418599936

# Kinds of the objects that a job creates in Kubernetes.
NNF_KINDS='workflows directivebreakdowns servers computes clientmounts
persistentstorageinstances nnfaccesses nnfstorages nnfnodestorages
nnfnodeblockstorages nnfdatamovements jobs'

# Under Fluxion a job that has to wait, and has no time limit, is unsatisfiable.
NNF_OPTIONS=
test "$DWS_SCHEDULER" != fluxion || NNF_OPTIONS='-t 5m'

test -n "$DWS_NNF" || {
    skip_all='no NNF controllers: t/nnf/run starts them'
    test_done
}

# nnf_by_hand NAME: the rest of the file is only run if this is set.
nnf_by_hand () {
    test -n "${!1}" || {
        skip_all="by hand: $1"
        test_done
    }
}

# The cluster is there: what is wanted of it are the workload manager's rights,
# and which nodes belong to which rabbit.
dws_start_sim () {
    cp "$DWS_NNF/wlm.kubeconfig" kubeconfig &&
    flux rabbitmapping -k kubeconfig >mapping.json
}

# nnf_setup [LINE...]: all that a rabbit job needs, and more configuration.
nnf_setup () {
    printf '%s\n' 'restrict_persistent_creation = false' "$@" >rabbit.toml &&
    dws_setup &&
    dws_wait_status '.health.settled'
}

# rig COMMAND...: see rig.py.
rig () {
    flux python "$DWS_SRCDIR/t/nnf/rig.py" "$DWS_NNF" "$@"
}

# nnf_submit DIRECTIVES [OPTION...] COMMAND
nnf_submit () {
    nnf_directives=$1
    shift
    flux submit $NNF_OPTIONS -S dw="$nnf_directives" "$@"
}

# nnf_submit_many COUNT DIRECTIVES: submit jobs for one node each, all at once, and
# add them to the file crowd.
nnf_submit_many () {
    nnf_submit "$2" -N1 --cc=1-$1 true >jobids &&
    flux job id --to=dec <jobids >jobids.dec &&
    sed 's/.*/many-& &/' jobids.dec >>crowd
}

# nnf_clean: nothing is left of any job, in Kubernetes and in Flux.
nnf_clean () {
    dws_kube_clean $NNF_KINDS
}

# nnf_refused JOBID TYPE REGEX: it ends, cleanly, with this fatal exception.
nnf_refused () {
    dws_wait_event $1 clean &&
    flux job eventlog $1 >eventlog &&
    grep -E "exception type=\"$2\" severity=0 .*$3" eventlog ||
        { cat eventlog; return 1; }
}

# nnf_crowd ACTION...: see catch.py. Its jobs are added to the file crowd.
nnf_crowd () {
    flux python "$DWS_SRCDIR/t/nnf/catch.py" "$DWS_NNF" "$@"
}

# nnf_all_completed: those in the file crowd do well; it is empty after that.
nnf_all_completed () {
    test -s crowd &&
    flux python "$DWS_SRCDIR/t/scripts/crowd.py" outcome >outcome &&
    cat outcome &&
    test_must_fail grep -v ' completed$' outcome &&
    rm crowd &&
    nnf_clean
}

# nnf_outcome NAME FILE: the crowd ends as the comments of t/FILE say for the
# fault NAME, and clean.
nnf_outcome () {
    flux python "$DWS_SRCDIR/t/scripts/crowd.py" outcome >outcome &&
    "$DWS_PYTHON" "$DWS_SRCDIR/scripts/lib/faults.py" --expect "$1" \
        "$DWS_SRCDIR/t/$2" >outcome.want &&
    diff -u outcome.want outcome &&
    nnf_clean
}

# nnf_ten_jobs SEED [KEEP]: see random_jobs.py; all do well, and what they are is
# shown. The largest: Fluxion has 36 parts of whole GiB, and a little is padding.
nnf_ten_jobs () {
    set -- $1 "$2" $NNF_RABBITS
    nnf_rc=0
    flux python "$DWS_SRCDIR/t/nnf/random_jobs.py" $1 $(($# - 2)) 10 32759 "$2" \
        >jobs.out || nnf_rc=1
    cat jobs.out
    return $nnf_rc
}

# nnf_agrees: jobs have given back all storage of theirs, and each node controller
# that starts counts as free what we do, which is the same after a restart of ours.
nnf_agrees () {
    dws_until nnf_given_back &&
    flux rabbit list --json >before &&
    for rabbit in $NNF_RABBITS; do
        have=$(jq ".rabbits[] | select(.name == \"$rabbit\") | .used + .foreign" \
            before) &&
        rig kill $rabbit &&
        rig start $rabbit &&
        rig until storages $rabbit ".status.status == \"Ready\" and
            .status.capacity == $NNF_RAW - $have" || return 1
    done &&
    flux module reload dws &&
    dws_wait_status ".agent.synced and .health.settled" $DWS_LIMIT &&
    dws_until nnf_unchanged
}
nnf_given_back () {
    dws_status >status.out &&
    jq -e ".rabbits.used == 0" <status.out
}
nnf_unchanged () {
    flux rabbit list --json >after &&
    jq -c ".rabbits[] | [.name, .used, .foreign]" before >before.out &&
    jq -c ".rabbits[] | [.name, .used, .foreign]" after >after.out &&
    test_cmp before.out after.out
}
