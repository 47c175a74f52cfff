# Generates the mutants of a source file, by rule, from its syntax tree.
# SPDX-License-Identifier: LGPL-3.0-only
"""C and Python have one set of rules: tree-sitter parses both."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import tree_sitter
import tree_sitter_c
import tree_sitter_python

PARSERS = {
    ".c": tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language())),
    ".py": tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language())),
}
# Calls that get no mutants: sanitizers find missing releases, and no test has to check
# log lines.
UNJUDGED = re.compile(
    rb"free|decref|destroy|va_end|log|debug|warn|errno_safe", re.IGNORECASE
)
# Nodes that get no mutants; sizeof does not evaluate its expression.
UNREAD = ("assert_statement", "preproc_include", "comment", "sizeof_expression")
# C functions that build payloads from their arguments.
PACKS = re.compile(rb"pack|json_object_set")
KEY = re.compile(rb'"([a-z][A-Za-z_-]*)"$')


@dataclasses.dataclass(frozen=True)
class Mutant:
    path: str
    start: int
    end: int
    new: str
    rule: str
    number: int
    line: str

    def key(self) -> str:
        """Identifies the mutant by the text of its line, not by the line's number."""
        return f"{self.path} | {self.line} | {self.rule}: {self.new}"

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]


Change = tuple[tree_sitter.Node, bytes, str]


def text(node: tree_sitter.Node) -> bytes:
    return node.text or b""


def callee(call: tree_sitter.Node) -> bytes:
    function = call.child_by_field_name("function")
    return text(function) if function else b""


def negated(node: tree_sitter.Node, python: bool) -> Iterator[Change]:
    condition = node.child_by_field_name("condition")
    if node.type == "conditional_expression" and python:
        condition = node.named_children[1]
    if condition is None or b"TYPE_CHECKING" in text(condition):
        return
    word = b"(not (%s))" if python else b"(!(%s))"
    yield condition, word % text(condition), "negate"


def operands(node: tree_sitter.Node) -> Iterator[Change]:
    operator = node.child_by_field_name("operator")
    if operator is not None and text(operator) in (b"&&", b"||", b"and", b"or"):
        for side in ("left", "right"):
            kept = node.child_by_field_name(side)
            if kept is not None:
                yield node, b"(%s)" % text(kept), "operand"


def constants(node: tree_sitter.Node) -> Iterator[Change]:
    parent = node.parent
    if parent is None or parent.type in (
        "array_declarator",  # room in a buffer
        "unary_operator",
        "enumerator",
        "bitfield_clause",
    ):
        return
    if text(node) == b"-1" or (
        parent.type == "return_statement" and text(node) == b"0"
    ):
        return  # callers test for less than 0
    yield node, b"(%s + 1)" % text(node), "constant"


def left_out(node: tree_sitter.Node, python: bool) -> Iterator[Change]:
    call = node.named_children[0] if node.named_children else None
    if call is not None and call.type == "await":
        call = call.named_children[0]
    if call is None or call.type not in ("call_expression", "call"):
        return
    if not UNJUDGED.search(callee(call)):
        yield node, b"pass" if python else b";", "call"


def fields(node: tree_sitter.Node) -> Iterator[Change]:
    if node.type == "pair":
        yield node, b"**{}", "field"
        return
    arguments = node.child_by_field_name("arguments")
    if arguments is None or not PACKS.search(callee(node)):
        return
    for argument in arguments.named_children:
        found = KEY.match(text(argument))
        if found and argument.type == "string_literal":
            yield argument, b'"x-%s"' % found[1], "field"


def changes(node: tree_sitter.Node, python: bool) -> Iterator[Change]:
    kind = node.type
    if kind in (
        "if_statement",
        "elif_clause",
        "while_statement",
        "do_statement",
        "conditional_expression",
    ):
        yield from negated(node, python)
    elif kind in ("binary_expression", "boolean_operator"):
        yield from operands(node)
    elif kind in ("number_literal", "integer", "float"):
        yield from constants(node)
    elif kind == "preproc_def":
        value = node.child_by_field_name("value")
        if value is not None and re.fullmatch(rb"\s*[0-9.]+\s*", text(value)):
            yield value, b"(%s + 1)" % text(value).strip(), "default"
    elif kind == "expression_statement":
        yield from left_out(node, python)
    elif kind in ("pair", "call_expression"):
        yield from fields(node)
    elif kind in ("true", "false"):
        other = {b"true": b"false", b"false": b"true", b"True": b"False"}
        yield node, other.get(text(node), b"True"), "default"
    elif kind in ("default_parameter", "typed_default_parameter"):
        value = node.child_by_field_name("value")
        if value is not None and value.type == "string":
            yield value, b"(%s + 'x')" % text(value), "default"


def mutants(path: str, source: bytes) -> list[Mutant]:
    """The mutants of a file, in its order."""
    python = not path.endswith(".c")
    lines = source.decode().splitlines()
    found: list[Mutant] = []
    nodes = [PARSERS[".py" if python else ".c"].parse(source).root_node]
    while nodes:
        node = nodes.pop()
        if node.type in UNREAD:
            continue
        for where, new, rule in changes(node, python):
            number = where.start_point[0]
            found.append(
                Mutant(
                    path,
                    where.start_byte,
                    where.end_byte,
                    " ".join(new.decode().split()) if rule != "call" else new.decode(),
                    rule,
                    number + 1,
                    lines[number].strip(),
                )
            )
        nodes.extend(reversed(node.children))
    return found
