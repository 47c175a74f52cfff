#!/bin/bash
# Epilog, on every node of a job: nnf-clientmount does the unmounting, so it
# has to run between jobs.
# SPDX-License-Identifier: LGPL-3.0-only

# Not a rabbit system?
flux config get rabbit.mapping >/dev/null 2>&1 || exit 0

systemctl start nnf-clientmount
