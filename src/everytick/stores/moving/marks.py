"""The marks of a move: one row in the store that moves, one in the store that it moves into.

The old store is in use until its mark says `moved`; that mark and the triggers that refuse every further write are
committed together. The new store is in use from the same moment on: its own mark says `arrived` a moment later, written
by the mover, by a node that follows, or by the next call of the mover.
"""

import re
from collections.abc import Mapping

from everytick.domain.values import value
from everytick.errors import StoreArriving, StoreMoved, StoreUnavailable

TABLE = "store_move"
CHANGES = "store_move_change"

SOURCE, TARGET = "from", "to"
FOLLOWING, MOVED = "following", "moved"
FILLING, ARRIVED = "filling", "arrived"

SQLSTATE = "EVMVD"
"""What PostgreSQL answers to a write in a store that has moved. No class of its own states begins with E."""

_REFUSAL = re.compile(r"everytick-moved (\S+) (.*)", re.DOTALL)


@value(frozen=True)
class MoveMark:
    """One row: which move, how far it is, and where the other store is, without a password."""

    move_id: str
    state: str
    other: str


MoveMarks = Mapping[str, MoveMark]
"""By role: `from` in a store that moves, `to` in a store into which another one moves."""


def refusal(move_id: str, where: str) -> str:
    """Return the words with which a moved store refuses a write."""
    return f"everytick-moved {move_id} {where}"


def refused(store: str, text: str) -> StoreMoved | None:
    """Return the error that these words of a database stand for; None for other words."""
    found = _REFUSAL.search(text)
    return None if found is None else StoreMoved(store, found[2], found[1])


def not_in_use(store: str, marks: MoveMarks) -> StoreUnavailable | None:
    """Return why a store with these marks must not be opened; None if it may be."""
    moved, arriving = marks.get(SOURCE), marks.get(TARGET)
    if moved is not None and moved.state == MOVED:
        return StoreMoved(store, moved.other, moved.move_id)
    if arriving is not None and arriving.state != ARRIVED:
        return StoreArriving(store, arriving.other, arriving.move_id)
    return None
