"""Statements that write many rows in one go.

A statement for each row would hand the interpreter's lock back and forth as often as there
are rows, between a thread that writes and a loop that has other things to do.
"""

import re
from collections.abc import Callable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

_ROW = re.compile(r"\(values (\(\?(?:, \?)*\))\)")
_SIZES = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)


class Bulk:
    """A query that reads `(values (?, …))` as one with as many such rows as there are to write.

    There is one text for each of a few sizes, so that the driver prepares each of them once.
    Placeholders before the rows are the same for all of them.
    """

    __slots__ = ("_texts", "_width")

    def __init__(self, query: str) -> None:
        found = _ROW.findall(query)
        assert len(found) == 1, f"a query in bulk has one list of rows: {query}"
        [row] = found
        self._width = row.count("?")
        parts = query.split(f"(values {row})")
        self._texts = [(size, f"(values {', '.join([row] * size)})".join(parts)) for size in _SIZES]

    def write(self, execute: Callable[[str, Sequence[Any]], Any], columns: list[Any], *shared: Any) -> int:
        """Write the rows, whose columns stand one behind the other; return how many rows of the table changed."""
        changed, begin, end = 0, 0, len(columns)
        for size, text in self._texts:
            length = size * self._width
            while begin + length <= end:
                changed += execute(text, [*shared, *columns[begin : begin + length]]).rowcount
                begin += length
        return changed


def in_order(rows: list[Sequence[Any]]) -> list[Any]:
    """Return the columns of these rows one behind the other, by their first: neighbours are found without a search."""
    rows.sort(key=itemgetter(0))
    return list(chain.from_iterable(rows))
