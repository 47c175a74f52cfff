# SPDX-License-Identifier: LGPL-3.0-only
"""The soak test: jobs, faults, and the search for what was lost."""
