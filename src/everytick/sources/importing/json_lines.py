"""The members of a JSON text with their lines, which `json` alone does not tell."""

from __future__ import annotations

import re
from json import JSONDecodeError, JSONDecoder
from typing import TYPE_CHECKING, Any

from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLANK = re.compile(r"[ \t\n\r]*")
_DECODER = JSONDecoder()


@value
class JsonMember:
    """One member of an object, or one item of a list: its key, its value, its line, and where the value begins."""

    key: str
    value: Any
    line: int
    start: int


def members(text: str, start: int = 0) -> Iterator[JsonMember]:
    """Give the members of the object, or the items of the list, that begins at `start`."""
    position = _past(text, start)
    opening = text[position : position + 1]
    closing = {"{": "}", "[": "]"}.get(opening)
    if closing is None:
        raise JSONDecodeError("Expecting an object or a list", text, position)
    if start == 0:
        # Any mistake in the text is raised before the first member is given.
        _, end = _decoded(text, position)
        if _past(text, end) != len(text):
            raise JSONDecodeError("Extra data", text, end)
    position = _past(text, position + 1)
    while text[position] != closing:
        begun, key = position, ""
        if opening == "{":
            key, position = _decoded(text, position)
            position = _past(text, _past(text, position) + 1)
        found, end = _decoded(text, position)
        yield JsonMember(key, found, text.count("\n", 0, begun) + 1, position)
        position = _past(text, end)
        if text[position] == ",":
            position = _past(text, position + 1)


def _decoded(text: str, position: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except RecursionError:
        raise JSONDecodeError("Values stand in each other too deeply", text, position) from None


def _past(text: str, position: int) -> int:
    """The position of the next character that is no blank."""
    match = _BLANK.match(text, position)
    assert match is not None, "nothing at all matches too"
    return match.end()
