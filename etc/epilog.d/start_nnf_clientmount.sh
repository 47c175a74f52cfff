#!/bin/bash
# Epilog, on every node of a job: nnf-clientmount does the unmounting, so it
# has to run between jobs. The daemons that the job required end first, as they
# may be using what is mounted.
# SPDX-License-Identifier: LGPL-3.0-only

rc=0
# An answer is needed to tell a system without rabbits from a Flux that cannot be asked.
if ! mapping=$(flux config get --default= rabbit.mapping); then
    echo "$0: could not ask Flux for rabbit.mapping: is flux on PATH, and FLUX_URI right?" >&2
    rc=1
elif test -z "$mapping"; then
    exit 0
fi

# Print the daemons that the job's directives require. They must not go on because
# nobody could be asked, unless somebody hears of it.
required_daemons () {
    local units
    if units=$(flux job info "$FLUX_JOB_ID" rabbit_daemons 2>&1); then
        printf '%s' "$units" | jq -r '.[]'
    elif [[ $units != *"key not found"* ]]; then
        echo "$units" >&2
        return 1
    fi
}

# Print what the dws module says of the job, null if the job has no directives: it says
# that to root also where access.allow-root-owner is false and root cannot read the job.
# A module that is loaded again does not answer, or does not know its jobs, for a moment.
ask_module () {
    flux python -c '
import errno, json, sys, time, flux, flux.job
number, handle = int(flux.job.JobID(sys.argv[1])), flux.Flux()
end = time.monotonic() + 60
while True:
    try:
        print(json.dumps(handle.rpc("dws.status", {"jobid": number}).get()))
        break
    except FileNotFoundError:
        print("null")
        break
    except OSError as exc:
        if exc.errno not in (errno.ENOSYS, errno.EAGAIN) or time.monotonic() > end:
            sys.exit(1)
    time.sleep(0.2)' "$FLUX_JOB_ID" 2>/dev/null
}

is_plain () {
    test "$(ask_module)" = null
}

if test -n "$FLUX_JOB_ID"; then
    # A prolog whose IMP was killed goes on in its unit, and would stop nnf-clientmount
    # while it unmounts.
    systemctl stop "flux-prolog@$FLUX_JOB_ID" 2>/dev/null
    if ! units=$(required_daemons 2>/dev/null); then
        if ! is_plain; then
            # They may go on running: the node is not to be given to the next job.
            required_daemons >/dev/null
            echo "$0: could not read which daemons $FLUX_JOB_ID requires; root needs" \
                "access.allow-root-owner = true for that" >&2
            rc=1
        fi
        units=
    fi
    for unit in $units; do
        systemctl stop "$unit"
    done
fi
# Whatever has failed, the file systems have to be unmounted.
systemctl start nnf-clientmount || rc=1
exit $rc
