# SPDX-License-Identifier: LGPL-3.0-only
#
# release.py is made when the project is built.
"""The release that this is part of, and what its parts are loaded by."""

RELEASE: str
JOBTAP: str  # what flux jobtap load finds our plugin by
