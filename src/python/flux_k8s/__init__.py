# flux_k8s: what flux-dws does in Python; see doc/protocol.md.
# SPDX-License-Identifier: LGPL-3.0-only
"""Kubernetes side of flux-dws."""
