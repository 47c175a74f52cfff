#!/bin/bash
# Prolog, on every node of a job: nnf-clientmount does not run beside jobs. A
# job with #DW directives first waits here until its file systems are mounted,
# hence the z in the name: other prolog scripts should not wait for this one.
# The daemons that the directives require are started then.
# SPDX-License-Identifier: LGPL-3.0-only

set -o pipefail

# Not a rabbit system?
flux config get rabbit.mapping >/dev/null 2>&1 || exit 0

if test -z "$FLUX_JOB_ID"; then
    echo "$0: FLUX_JOB_ID is not set" >&2
    exit 1
fi

# Print true if the job has directives; an empty dw counts as none.
has_directives () {
    flux job info "$FLUX_JOB_ID" jobspec |
        jq '[.attributes.system.dw // empty | if type == "array" then .[] else . end]
            | any(. != null and (tostring | test("\\S")))'
}

# Print the daemons that the job's directives require. A job must not start without
# them because nobody could be asked.
required_daemons () {
    local units
    if units=$(flux job info "$FLUX_JOB_ID" rabbit_daemons 2>&1); then
        jq -r '.[]' <<<"$units"
    elif [[ $units != *"key not found"* ]]; then
        echo "$units" >&2
        return 1
    fi
}

# True if the dws module ends the job itself when its prolog takes too long. It knows
# whether data is still being staged in, which may take longer.
is_limited () {
    flux python -c '
import sys, flux, flux.job
number = int(flux.job.JobID(sys.argv[1]))
job = flux.Flux().rpc("dws.status", {"jobid": number}).get()
sys.exit(not job.get("limited") or job["exception"])' "$FLUX_JOB_ID" 2>/dev/null
}

if ! dw=$(has_directives); then
    echo "$0: could not read the jobspec of $FLUX_JOB_ID" >&2
    exit 1
fi
if test "$dw" = true; then
    # It should be running. If it is not, the mounts would never come.
    systemctl start nnf-clientmount
    timeout=$(flux config get --default=1800 rabbit.prolog_timeout)
    # FSD in quotes is printed with them.
    timeout=${timeout//\"/}
    limit=(-t "$timeout")
    if [[ $timeout =~ ^0*(\.0*)?(ms|s|m|h|d)?$ ]]; then
        limit=()                # 0 is no limit
    fi
    while ! flux job wait-event -q "${limit[@]}" "$FLUX_JOB_ID" dws_environment
    do
        is_limited && continue
        flux job raise --severity=0 --type=prolog-timeout "$FLUX_JOB_ID" \
            "rabbit file systems were not mounted within $timeout"
        systemctl stop nnf-clientmount
        exit 1
    done
    # The key is there before the event, if any daemon is required.
    if ! units=$(required_daemons); then
        echo "$0: could not read which daemons $FLUX_JOB_ID requires" >&2
        systemctl stop nnf-clientmount
        exit 1
    fi
    for unit in $units; do
        if ! systemctl start "$unit"; then
            echo "$0: could not start $unit" >&2
            systemctl stop nnf-clientmount
            exit 1
        fi
    done
fi
# The mounts outlive the service.
systemctl stop nnf-clientmount
