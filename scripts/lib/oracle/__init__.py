# Says whether a run was right, from what anybody can see: jobspecs and eventlogs of
# Flux, and the objects in the API server. It imports nothing of flux-dws.
# SPDX-License-Identifier: LGPL-3.0-only
"""An oracle for runs on dws-sim and on NNF."""
