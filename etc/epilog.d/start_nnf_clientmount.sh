#!/bin/bash
# Epilog, on every node of a job: nnf-clientmount does the unmounting, so it
# has to run between jobs. The daemons that the job required end first, as they
# may be using what is mounted.
# SPDX-License-Identifier: LGPL-3.0-only

# Not a rabbit system?
flux config get rabbit.mapping >/dev/null 2>&1 || exit 0

if units=$(flux job info "${FLUX_JOB_ID:-none}" rabbit_daemons 2>/dev/null); then
    for unit in $(jq -r '.[]' <<<"$units"); do
        systemctl stop "$unit"
    done
fi
systemctl start nnf-clientmount
