# Checks a run from the outside: by jobspecs and eventlogs of Flux and by the objects in
# the API server. The oracle imports nothing of flux-dws, so as to share no bug with it.
# SPDX-License-Identifier: LGPL-3.0-only
"""An oracle for runs on dws-sim and on NNF."""
