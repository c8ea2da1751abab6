"""Tables as CSV files."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

from fastapi.responses import StreamingResponse

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_ROWS_AT_ONCE = 500
"""How many rows are sent together, so that a long table begins to come at once."""


def csv_answer(name: str, heading: Sequence[str], rows: Iterable[Sequence[object]]) -> StreamingResponse:
    """Return the rows as a CSV file of this name.

    A text that a spreadsheet would compute, such as `=1+1`, has an apostrophe before it.
    """
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_written(heading, rows), media_type="text/csv; charset=utf-8", headers=headers)


def _written(heading: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(heading)
    for place, row in enumerate(rows, 1):
        writer.writerow([_safe(cell) for cell in row])
        if place % _ROWS_AT_ONCE == 0:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()


def _safe(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
