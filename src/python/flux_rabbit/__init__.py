# SPDX-License-Identifier: LGPL-3.0-only
#
# Implementation of the flux rabbit command, a module for each concern. Only
# selftest needs access to Kubernetes.
"""flux rabbit: see rabbits and rabbit jobs, and look after them."""
