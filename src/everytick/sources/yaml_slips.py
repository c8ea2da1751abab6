"""Slips: what people mistype in YAML so often that the message says what to type instead."""

from __future__ import annotations

import re

from everytick.errors import shown

_ALIAS = re.compile(r"(?<![^\s,\[])\*[0-9]*$")
# Split as the parser counts lines: `splitlines` knows more ends than YAML has.
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_ITEM = re.compile(r"[ ]*(?:- +)+")
_KEYED = re.compile(r"[ ]*(?:- +)*[^\s:#\"'\[{][^:]*:[ ]+(?P<value>[^\s\"'\[{|>].*)$")


def known_slip(text: str, line: int, column: int, problem: str) -> str | None:
    """Return what to type instead where the line shows a frequent slip, None if it shows none."""
    lines = _LINE_END.split(text)[:line]
    if len(lines) < line:
        return None
    before, after = lines[-1][: column - 1], lines[-1][column - 1 :]
    if not before.strip() and "\t" in before + after[:1]:
        return "YAML takes no tabs for indentation: use spaces"
    return _unquoted(before, after) or _misplaced(lines, problem) or _colon(lines, problem)


def _unquoted(before: str, after: str) -> str | None:
    """Return how to write a value that YAML takes for something else by its first character."""
    # The parser stops before a `@`, and behind a `*` that it took for the beginning of an alias.
    alias = _ALIAS.search(before)
    if alias is None and not after.startswith(("@", "%", "`")):
        return None
    value = ("" if alias is None else alias.group()) + after
    told = value.partition(" #")[0].rstrip(" ]},")
    return f'a value that begins with {told[0]} needs quotes: "{shown(told, 60)}"'


def _misplaced(lines: list[str], problem: str) -> str | None:
    """Return the advice about a line that begins in a column where no line above it lets it begin."""
    if "expected key" not in problem and "mapping values" not in problem:
        return None
    *above, last = (line for line in lines if line.strip() and not line.lstrip().startswith("#"))
    columns: list[int] = []
    for line in above:
        columns = [column for column in columns if column < _column(line)]
        item = _ITEM.match(line)
        columns += [_column(line), *([] if item is None else [item.end()])]
    opens = not above or above[-1].rstrip().endswith((":", "|", ">", "-"))
    if _column(last) in columns or (opens and _column(last) > max(columns, default=-1)):
        return None
    return f"this line begins in column {_column(last) + 1}, and no line above it does: line up the keys of a table"


def _colon(lines: list[str], problem: str) -> str | None:
    """Return the advice about a value with a colon in it, or about a line above that has none behind its key."""
    if "mapping values" not in problem:
        return None
    found = _KEYED.match(lines[-1])
    if found is not None and ": " in found["value"]:
        value = found["value"].partition(" #")[0].rstrip()
        quote = "'" if '"' in value else '"'
        return f"a value with a colon and a space in it needs quotes: {quote}{shown(value, 60)}{quote}"
    above = [line for line in lines[:-1] if line.strip()]
    if above and ":" not in above[-1]:
        return f"the line above this one has no colon behind its key: {shown(above[-1].strip(), 60)}"
    return None


def _column(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
