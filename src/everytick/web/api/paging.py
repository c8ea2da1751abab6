"""Pages: cursors that callers cannot read or make up, and the bounds of what one request may ask for."""

import base64
import binascii
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Annotated, Any, TypeVar

from fastapi import Query

from everytick.answers.wire import plain
from everytick.web.problems import Problem

T = TypeVar("T")

MOST_ITEMS = 1_000
USUAL_ITEMS = 100
_LONGEST_CURSOR_CHARACTERS = 500

Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="How many at most.", examples=[100])]
CursorParameter = Annotated[
    str | None,
    Query(
        max_length=_LONGEST_CURSOR_CHARACTERS, alias="cursor", description="That of the page before.", examples=["MDAx"]
    ),
]


def written(kind: str, place: Any) -> str:
    """Return the cursor of a place in a list of this kind."""
    return base64.urlsafe_b64encode(json.dumps([kind, plain(place)]).encode()).decode().rstrip("=")


def read(kind: str, cursor: str | None, wanted: type[T]) -> T | None:
    """Return the place that a cursor names; None where there is none. Raise 422 for one that is not of this list."""
    if cursor is None:
        return None
    try:
        found_kind, place = json.loads(
            base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        )
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise _unknown(cursor) from None
    if found_kind != kind or not isinstance(place, wanted):
        raise _unknown(cursor)
    return place


def _unknown(cursor: str) -> Problem:
    return Problem(422, "invalid_cursor", "this is the cursor of no page of this list: begin without one")


def page_after(
    kind: str,
    sorted_items: Sequence[T],
    key: Callable[[T], str],
    limit: int,
    cursor: str | None,
    is_meant: Callable[[T], bool] = lambda item: True,
) -> tuple[list[T], str | None]:
    """Return the items of a sorted list that follow the cursor and are meant, and the cursor of the next page.

    It looks no further than one item beyond the page: a list may have ten thousand.
    """
    after = read(kind, cursor, str)
    first = 0 if after is None else bisect_right(sorted_items, after, key=key)
    meant = filter(is_meant, islice(sorted_items, first, None))
    some = list(islice(meant, limit))
    return some, written(kind, key(some[-1])) if next(meant, None) is not None else None
