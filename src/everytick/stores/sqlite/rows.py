"""Values to columns and back: microseconds since 1970, 16-byte ids, small numbers for statuses."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

from everytick.domain.durations import MICROSECOND
from everytick.domain.ids import EPOCH
from everytick.domain.steps import bounded

Columns: TypeAlias = Sequence[Any]
"""One row as the driver gives it."""

NEVER = -(2**63)
"""Stands for no moment in the hot statements: far before the year 1."""

NO_TEXT = "\0"
"""No text, in the same statements."""


class Moments(dict[int | None, Any]):
    """The moments of one batch by their microseconds: its rows share most of theirs, and nothing stays nothing."""

    def __init__(self) -> None:
        super().__init__({None: None})

    def __missing__(self, stored: int) -> datetime:
        made = self[stored] = EPOCH + stored * MICROSECOND
        return made


def micros(moment: datetime) -> int:
    """Return the moment as whole microseconds since 1970."""
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def micros_or_never(moment: datetime | None) -> int:
    """Return the moment as microseconds, or `NEVER`."""
    return NEVER if moment is None else micros(moment)


@lru_cache(maxsize=4096)
def moment(stored: int) -> datetime:
    """Return the moment of these microseconds. Cached, since the rows of a batch share most of theirs.

    A product, here and wherever a store reads times: `timedelta(microseconds=...)` takes three times as long.
    """
    return EPOCH + stored * MICROSECOND


def moment_or_none(stored: int | None) -> datetime | None:
    """Return the moment, if there is one."""
    return None if stored is None else moment(stored)


def length(stored: timedelta) -> int:
    """Return a length of time as whole microseconds."""
    return (stored.days * 86_400 + stored.seconds) * 1_000_000 + stored.microseconds


def timeout_or_never(given: timedelta | None) -> int:
    """Return an execution_timeout as whole microseconds. `NEVER` for none, and for one beyond the range of dates."""
    limit = bounded(given)
    return NEVER if limit is None else length(limit)


def id_bytes(occurrence_id: str) -> bytes | None:
    """Return the 16 bytes of an occurrence's id. None for a text that is no id."""
    if len(occurrence_id) != 40 or not occurrence_id.startswith("occ_"):
        return None
    try:
        found = bytes.fromhex(occurrence_id[4:].replace("-", ""))
    except ValueError:
        return None
    return found if len(found) == 16 else None


def new_id(occurrence_id: str) -> bytearray:
    """Return the 16 bytes of an id from a plan, in the type that the driver takes fastest."""
    return bytearray.fromhex(occurrence_id[4:].replace("-", ""))


def id_text(stored: bytes) -> str:
    """Return the id whose bytes these are."""
    digits = stored.hex()
    return f"occ_{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
