# dws-sim: a Kubernetes API subset with the DWS and NNF controllers.
# SPDX-License-Identifier: LGPL-3.0-only
"""A stand-in for a Kubernetes cluster that manages Rabbit storage."""
