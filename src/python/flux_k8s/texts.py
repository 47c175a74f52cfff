# SPDX-License-Identifier: LGPL-3.0-only
#
# Cleans text from users and from Kubernetes for screens, pages and logs.
# src/common/libdws/util/clean.c does the same in C.
"""Cleaning of text from outside."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Union

# Characters to replace: controls, format characters (Unicode category Cf, which
# includes changes of direction and characters without width), separators of lines and
# paragraphs, and surrogates, which UTF-8 cannot encode.
_HIDDEN = (
    *((0x0, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x600, 0x605), (0x61C, 0x61C)),
    *((0x6DD, 0x6DD), (0x70F, 0x70F), (0x890, 0x891), (0x8E2, 0x8E2)),
    *((0x180E, 0x180E), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F)),
    *((0xD800, 0xDFFF), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0x110BD, 0x110BD)),
    *((0x110CD, 0x110CD), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3)),
    *((0x1D173, 0x1D17A), (0xE0000, 0xE007F)),
)
_TABLE = dict.fromkeys(
    (code for first, last in _HIDDEN for code in range(first, last + 1)), "\ufffd"
)
_TABLE.update(dict.fromkeys(map(ord, "\t\n\r"), " "))

_ExcInfo = Union[
    tuple[type[BaseException], BaseException, Union[TracebackType, None]],
    tuple[None, None, None],
]


def clean(text: str) -> str:
    """The text in one line of the same length, without invisible characters: these
    become U+FFFD; tab, line feed and carriage return become a blank."""
    return text if text.isprintable() else text.translate(_TABLE)


class LogFormatter(logging.Formatter):
    """Formats a record as one cleaned line, and a traceback as indented lines below."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = clean(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: _ExcInfo) -> str:
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"  {clean(line)}" for line in lines)
