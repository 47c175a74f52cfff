# The kinds that dws-sim serves and the shape of their objects.
# SPDX-License-Identifier: LGPL-3.0-only
"""Schemas and resources."""
