# The controllers of DWS and NNF, as clients of an API server.
# SPDX-License-Identifier: LGPL-3.0-only
"""Controllers."""
