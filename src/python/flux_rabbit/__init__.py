# SPDX-License-Identifier: LGPL-3.0-only
#
# What is behind the flux rabbit command, a module for each concern. Nothing
# here needs access to Kubernetes but selftest.
"""flux rabbit: see rabbits and rabbit jobs, and look after them."""
