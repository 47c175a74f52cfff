# The ATOM notices for Flux; the client is the PBS hook's own.
# SPDX-License-Identifier: LGPL-3.0-only
"""Tell Cray's node services (ATOM) of jobs that begin and end on a node."""
