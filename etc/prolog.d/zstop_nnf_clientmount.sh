#!/bin/bash
# Prolog, on every node of a job: nnf-clientmount does not run beside jobs. A
# job with #DW directives first waits here until its file systems are mounted,
# hence the z in the name: other prolog scripts should not wait for this one.
# The daemons that the directives require are started then.
# SPDX-License-Identifier: LGPL-3.0-only

set -o pipefail

# An answer is needed to tell a system without rabbits from a Flux that cannot be asked.
if ! mapping=$(flux config get --default= rabbit.mapping); then
    echo "$0: could not ask Flux for rabbit.mapping: is flux on PATH, and FLUX_URI right?" >&2
    exit 1
fi
test -n "$mapping" || exit 0

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

# Print the daemons that the job's directives require. A job must not start without
# them because nobody could be asked.
required_daemons () {
    local units
    if units=$(flux job info "$FLUX_JOB_ID" rabbit_daemons 2>&1); then
        printf '%s' "$units" | jq -r '.[]'
    elif [[ $units != *"key not found"* ]]; then
        echo "$units" >&2
        return 1
    fi
}

# The same, if rank 0 says that the file systems are mounted. The KVS of another rank
# can miss a change (flux-core 0.88), and is as it was until the next one.
ask_leader () {
    flux python -c '
import json, sys, flux, flux.job
number, handle = int(flux.job.JobID(sys.argv[1])), flux.Flux()
def look(key):
    request = {"id": number, "keys": [key], "flags": 0}
    return handle.rpc("job-info.lookup", request, nodeid=0).get()[key]
events = [json.loads(line)["name"] for line in look("eventlog").splitlines()]
if "dws_environment" not in events:
    sys.exit(1)
try:
    print(" ".join(json.loads(look("rabbit_daemons"))))
except FileNotFoundError:
    pass' "$FLUX_JOB_ID" 2>/dev/null
}

# True if the dws module ends the job itself when its prolog takes too long, or has let it
# start. The module knows whether data is still being staged in, which may take longer.
is_limited () {
    ask_module | jq -e '(.exception | not)
        and (.limited or .phase == "running" or .phase == "epilog")' >/dev/null
}

# ms BEGUN: how many milliseconds have passed since the boot, less BEGUN. bash before 5.0,
# that of RHEL 8, has no clock that is finer than a second.
ms () {
    local up
    read -r up _ </proc/uptime
    echo $((10#${up/./}0 - $1))
}

# wait_mounted LIMIT: wait until the file systems are mounted, for so many ms, 0 for
# ever. After 10 s, and then less and less often, rank 0 is asked as well; units has
# the daemons if that knew more.
wait_mounted () {
    local begun part=10000 before
    begun=$(ms 0)
    unset units
    while before=$(ms "$begun"); (($1 == 0 || before < $1)); do
        (($1 == 0 || part < $1 - before)) || part=$(($1 - before))
        flux job wait-event -q -t ${part}ms "$FLUX_JOB_ID" dws_environment && return
        units=$(ask_leader) && return
        unset units
        # It has not waited?
        (($(ms "$begun") >= before + part)) || return
        ((part = part < 30000 ? part * 2 : 60000))
    done
    return 1
}

if ! dw=$(has_directives 2>/dev/null); then
    if ! is_plain; then
        has_directives >/dev/null
        echo "$0: could not read the jobspec of $FLUX_JOB_ID; root needs" \
            "access.allow-root-owner = true for that" >&2
        exit 1
    fi
    dw=false
fi
if test "$dw" = true; then
    # It should be running. If it is not, the mounts would never come.
    systemctl start nnf-clientmount
    timeout=$(flux config get --default=1800 rabbit.prolog_timeout)
    # FSD in quotes is printed with them.
    timeout=${timeout//\"/}
    limit=$(awk -v time="$timeout" 'BEGIN {
        unit = time
        sub(/^[0-9.]*/, "", unit)
        ms["ms"] = 1; ms["m"] = 60000; ms["h"] = 3600000; ms["d"] = 86400000
        printf "%.0f", time * (unit in ms ? ms[unit] : 1000) }')
    [[ $limit =~ ^[0-9]+$ ]] || limit=0
    while ! wait_mounted "$limit"; do
        is_limited && continue
        # A short job may have ended meanwhile.
        units=$(ask_leader) && break
        unset units
        flux job raise --severity=0 --type=prolog-timeout "$FLUX_JOB_ID" \
            "rabbit file systems were not mounted within $timeout"
        systemctl stop nnf-clientmount
        exit 1
    done
    # The key is there before the event, if any daemon is required.
    if test -z "${units+set}" && ! units=$(required_daemons); then
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
