"""What a beat keeps in Redis: the names of its keys, and how the record of a schedule is written and read (S3-024)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from everytick.beat.decision import Recorded
from everytick.beat.definition import ScheduleState
from everytick.beat.redis_client import text_of
from everytick.domain.durations import MICROSECOND
from everytick.domain.ids import EPOCH
from everytick.domain.values import value
from everytick.errors import EverytickError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_PREFIX = "bananas"


@value
class BeatKeys:
    """The names of all keys of a beat. In a Redis cluster the prefix must have braces, as `{bananas}`."""

    prefix: str = DEFAULT_PREFIX

    def state(self, id: str) -> str:
        """What is recorded of one schedule: a hash."""
        return f"{self.prefix}:schedules:{id}"

    def lock(self, id: str) -> str:
        """The token of the beat that is at work on a schedule."""
        return f"{self.prefix}:schedule_lock:{id}"

    @property
    def index(self) -> str:
        """When to look at each schedule again: a sorted set, in microseconds since 1970."""
        return f"{self.prefix}:schedule_index"

    @property
    def epoch(self) -> str:
        """A token that is gone when Redis has lost its data."""
        return f"{self.prefix}:schedule_epoch"


class UnreadableRecord(EverytickError):
    """The hash of a schedule holds something else than a beat writes."""

    code = "unreadable_record"


DECIDING_FIELDS = ("decided_through", "last_run", "definition", "defined_at", "run_count")
"""What a decision needs of a record, in the order in which `read_record` takes it."""


@value
class StoredRecord:
    """What a decision needs of a record. `fence` is the text that a commit must still find there."""

    recorded: Recorded
    fence: str


def read_record(contents: Sequence[Any]) -> StoredRecord:
    """Return what the fields say of which a decision is made.

    A record without `decided_through` was written by another program: its last run counts.
    """
    fields = {name: text_of(content) for name, content in zip(DECIDING_FIELDS, contents, strict=True) if content}
    _count(fields)
    through = _instant(fields, "decided_through") or _instant(fields, "last_run")
    recorded = Recorded(through, fields.get("definition", ""), _instant(fields, "defined_at"))
    return StoredRecord(recorded, fields.get("decided_through") or fields.get("last_run", ""))


def read_state(id: str, hash_: Mapping[Any, Any]) -> ScheduleState:
    """Return everything that a hash says of a schedule."""
    fields = {text_of(name): text_of(content) for name, content in hash_.items()}
    return ScheduleState(
        id,
        last_run=_instant(fields, "last_run"),
        next_run=_instant(fields, "next_run"),
        run_count=_count(fields),
        last_error=fields.get("last_error", ""),
        last_success=_instant(fields, "last_success"),
        last_job_id=fields.get("last_job_id", ""),
        decided_through=_instant(fields, "decided_through"),
    )


def rfc3339(instant: datetime | None) -> str:
    """Return an instant, which is in UTC, as RFC 3339, such as 2025-11-10T15:00:00Z; an empty text for None."""
    return "" if instant is None else f"{instant.isoformat()[:-6]}Z"


def fence_text(instant: datetime) -> str:
    """Return an instant so that earlier ones are smaller texts: always with six digits after the point."""
    return f"{instant.isoformat(timespec='microseconds')[:-6]}Z"


def score(instant: datetime) -> int:
    """Return the microseconds since 1970, exact in a sorted set for the next two hundred years."""
    return (instant - EPOCH) // MICROSECOND


def instant_at(microseconds: int) -> datetime:
    """Return the instant of a score."""
    return EPOCH + timedelta(microseconds=microseconds)


def _instant(fields: Mapping[str, str], name: str) -> datetime | None:
    written = fields.get(name, "")
    if not written:
        return None
    try:
        instant = datetime.fromisoformat(written)
    except ValueError:
        raise UnreadableRecord(f"{name} is {written!r}, which is not a time of RFC 3339") from None
    if instant.tzinfo is None:
        raise UnreadableRecord(f"{name} is {written!r}, which says no zone")
    # Year 1 is how other programs write that there is no time.
    return None if instant.year == 1 else instant if instant.tzinfo is UTC else instant.astimezone(UTC)


def _count(fields: Mapping[str, str]) -> int:
    written = fields.get("run_count", "0")
    try:
        return int(written)
    except ValueError:
        raise UnreadableRecord(f"run_count is {written!r}, which is no number") from None
