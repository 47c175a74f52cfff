# SPDX-License-Identifier: LGPL-3.0-only
#
# Tables with Flux's --format options. Rows arrive in pages and are printed at once,
# unless the format depends on all of them.
"""Tables."""

from __future__ import annotations

import argparse
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from flux_rabbit import term

Row = SimpleNamespace
# Formats with collapsible or widened fields, or a sort order, depend on all rows.
_NEEDS_ALL = re.compile(r"(\?\+?|\+\??):\{|^sort:")


class JobId(int):
    """A job id that has its notations as attributes."""

    @property
    def f58(self) -> str:
        from flux_rabbit import rpc

        return rpc.f58(self)

    @property
    def dec(self) -> int:
        return int(self)


@dataclass(frozen=True)
class Table:
    """The columns and formats of a table.

    Attributes:
        columns: (heading, function of an object) by field; the function is None for a
            part of another field, such as "id.f58".
        formats: (description, format) by name; there is a "default".
    """

    name: str
    columns: dict[str, tuple[str, Callable[[Any], Any] | None]]
    formats: dict[str, tuple[str, str]]

    @property
    def headings(self) -> dict[str, str]:
        return {field: heading for field, (heading, _) in self.columns.items()}

    def row(self, obj: Any) -> Row:
        """The fields of an object."""
        return Row(
            **{field: get(obj) for field, (_, get) in self.columns.items() if get}
        )


def optional(key: str, default: Any = "") -> Callable[[dict[str, Any]], Any]:
    """A column of a key that an object may lack."""
    return lambda obj: obj.get(key, default)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of a table."""
    parser.add_argument(
        "-o",
        "--format",
        default="default",
        metavar="FORMAT",
        help="a format in Python's style, or the name of one: "
        "-o help lists names and fields",
    )
    parser.add_argument(
        "-n", "--no-header", action="store_true", help="print no line of headings"
    )
    parser.add_argument(
        "--sort", metavar="KEY,...", help="sort by these fields, by -FIELD in reverse"
    )


def _format(table: Table, args: argparse.Namespace) -> Any:
    # Import late: most commands print no table, and this import is slow.
    import yaml
    from flux.util import OutputFormat, UtilConfig

    class Config(UtilConfig):  # type: ignore[misc]
        builtin_formats = {
            name: {"description": text, "format": fmt}
            for name, (text, fmt) in table.formats.items()
        }

        def validate(self, path: str, conf: Any) -> None:
            """Check the user's own formats."""
            own = (conf.get(table.name) or {}) if isinstance(conf, dict) else None
            if not isinstance(own, dict):
                what = table.name if isinstance(conf, dict) else "the file"
                raise ValueError(f"{path}: {what}: expected a table")
            if own.get("formats") is not None:
                self.validate_formats(path, own["formats"])

    config = Config(
        "flux-rabbit",
        subcommand=table.name,
        initial_dict={table.name: {"formats": dict(Config.builtin_formats)}},
    )
    if args.format == "help":
        print("fields: " + ", ".join(table.headings))
    try:
        config.load()
    except yaml.YAMLError as exc:
        raise ValueError(str(exc)) from None
    text = config.get_format_string(args.format)
    result = OutputFormat(text, headings=table.headings)
    if args.sort:
        result.set_sort_keys(args.sort)
    return result


def _row_format(form: Any) -> Callable[[Row], str]:
    """A faster form.format(): parses the format once and not for each row, and avoids
    Flux's formatter where Python's is equivalent. Without it ten thousand rows would
    take five times as long. Texts are cleaned."""
    formatter = form.formatter()
    parts = [
        (text, field and attrgetter(field.removeprefix("0.")), conv or None, spec)
        for text, field, spec, conv in form.format_list
    ]

    def cell(value: Any, conv: str | None, spec: str) -> str:
        if type(value) is str:
            value = term.clean(value)
        if conv is not None:
            value = formatter.convert_field(value, conv)
        elif type(value) is str and not spec.endswith("h"):
            text = format(value, spec.removesuffix("+"))
            if len(text) >= len(value):  # else "+" is to be seen
                return text
        return str(formatter.format_field(value, spec))

    def line(row: Row) -> str:
        words = []
        for text, get, conv, spec in parts:
            words.append(text)
            if get:
                words.append(cell(get(row), conv, spec))
        return "".join(words)

    return line


def _cleaned(row: Row) -> Row:
    texts = {k: term.clean(v) for k, v in vars(row).items() if type(v) is str}
    return Row(**{**vars(row), **texts})


def show(
    table: Table,
    args: argparse.Namespace,
    pages: Iterable[list[Row]],
    style: Callable[[Row], tuple[str, str]] | None = None,
    nothing: str = "",
    cut: bool = False,
    last: Sequence[Row] = (),
) -> int:
    """Print rows; returns how many.

    Args:
        style: what to print before and after a row.
        nothing: the text in place of a table without rows.
        cut: truncate lines to the terminal: another command prints the rest.
        last: rows that stay at the end, however the others are sorted.
    """
    form = _format(table, args)
    columns = term.size(sys.stdout)[0] if cut and sys.stdout.isatty() else 0
    count = 0
    if form.sort_keys or _NEEDS_ALL.search(form.get_format(orig=True)):
        rows = form.sort_items([_cleaned(row) for page in pages for row in page])
        rows += map(_cleaned, last)
        text = form.filter(rows, no_header=args.no_header)
        form = type(form)(text, headings=table.headings)
        pages = [rows]
    else:
        pages = itertools.chain(pages, [list(last)])
    to_line = _row_format(form)
    for page in pages:
        if page and not count and not args.no_header:
            print(form.header().rstrip(), flush=True)
        count += len(page)
        lines = []
        for row in page:
            line = to_line(row).rstrip()
            if 0 < columns < len(line):
                line = line[: columns - 1] + "+"
            if style and line:
                before, after = style(row)
                line = before + line + after
            lines.append(line)
        if lines:
            print("\n".join(lines), flush=True)
    if not count and not args.no_header:
        print(nothing or form.header().rstrip())
    return count


def stream_json(key: str, pages: Iterator[list[Any]]) -> None:
    """Print {KEY: [...]} page by page. Print nothing if there is no first page."""
    separator = ""
    first = next(pages, [])
    print(json.dumps({key: []})[:-2], end="")
    for page in itertools.chain([first], pages):
        if page:
            text = json.dumps(page)[1:-1]
            print(separator + text, end="", flush=True)
            separator = ", "
    print("]}")
