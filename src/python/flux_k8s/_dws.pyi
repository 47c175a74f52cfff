# SPDX-License-Identifier: LGPL-3.0-only
#
# The extension's contents come from cffi at run time; dws.py gives them
# types.
"""Types of the extension module."""

from typing import Any

ffi: Any
lib: Any
