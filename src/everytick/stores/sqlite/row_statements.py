"""Statements that write rows: each row is a tuple in the driver's form, and is written alone or with many others.

A text says `:handle` as any other. Here it gets `?` in the order of the row, since a driver takes twice as long over a
mapping. The names of the row's columns are declared beside the function that gives it.
"""

import re
from collections.abc import Callable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

_NAMED = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_OF_ROW = re.compile(r"\be\.(\w+)")
_SIZES = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)


class RowStatement:
    """A statement that is carried out once for each row. Its parameters are the columns of the row, in their order."""

    __slots__ = ("columns", "sql")

    def __init__(self, name: str, text: str, columns: Sequence[str]) -> None:
        taken = tuple(_NAMED.findall(text))
        if taken != tuple(columns):
            raise ImportError(f"the statement {name} takes {taken}, and its rows have {tuple(columns)}")
        self.columns = taken
        self.sql = _NAMED.sub("?", text)


class Bulk:
    """A statement that reads many rows as the table `{rows} e`, and their columns as `e.handle`.

    With a statement for each row, the thread that writes and the event loop would pass the interpreter's lock back and
    forth for each row. There is one text for each of a few sizes, so that the driver prepares each text once.
    Parameters before the rows have one value for all rows.
    """

    __slots__ = ("_texts", "columns", "shared")

    def __init__(self, name: str, text: str, columns: Sequence[str]) -> None:
        places = {column: f"e.column{place}" for place, column in enumerate(columns, 1)}
        unknown = sorted({column for column in _OF_ROW.findall(text) if column not in places})
        before, table, after = text.partition("{rows} e")
        if unknown or not table or "{rows}" in after or _NAMED.search(after):
            raise ImportError(
                f"the statement {name} has one table {{rows}} e, its other parameters before that, and of the rows"
                f" only the columns {tuple(columns)}: unknown {unknown}"
            )
        self.columns, self.shared = tuple(columns), tuple(_NAMED.findall(before))
        parts = [_OF_ROW.sub(lambda named: places[named[1]], _NAMED.sub("?", part)) for part in (before, after)]
        row = f"({', '.join('?' * len(columns))})"
        self._texts = [(size, f"(values {', '.join([row] * size)}) e".join(parts)) for size in _SIZES]

    @property
    def sql(self) -> str:
        """The text for one row."""
        return self._texts[-1][1]

    def write(self, execute: Callable[[str, Sequence[Any]], Any], columns: list[Any], *shared: Any) -> int:
        """Write the rows, whose columns stand one behind the other; return how many rows of the table changed."""
        changed, begin, end = 0, 0, len(columns)
        for size, text in self._texts:
            length = size * len(self.columns)
            while begin + length <= end:
                changed += execute(text, [*shared, *columns[begin : begin + length]]).rowcount
                begin += length
        return changed


def in_order(rows: list[Sequence[Any]]) -> list[Any]:
    """Return the columns of these rows one behind the other, by their first: neighbours are found without a search."""
    rows.sort(key=itemgetter(0))
    return list(chain.from_iterable(rows))
