"""Short ways to make registrations, records and occurrences."""

from datetime import UTC, datetime, timedelta
from typing import Any

from everytick.declarative.documents import document_of
from everytick.declarative.jobs import job_of
from everytick.declarative.registrations import Registration, read_registrations
from everytick.domain.occurrence import Occurrence
from everytick.domain.snapshots import Ended
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import JobRecord

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


async def nothing() -> None:
    """Do nothing."""


def at(text: str) -> datetime:
    """Return a moment of the test's day, like 12:30 or 12:30:59."""
    hour, minute, *second = map(int, text.split(":"))
    return NOON.replace(hour=hour, minute=minute, second=second[0] if second else 0)


def read(*registrations: Any) -> dict[str, Registration]:
    """Return the registrations, read."""
    return read_registrations(list(registrations), lambda: NOON)


def registration(name: str = "a", expression: str = "0 * * * *", delay: object = "5m") -> Registration:
    """Return one registration: hourly, unless said otherwise."""
    return read((name, expression, nothing, delay))[name]


def record(one: Registration, watermark: datetime = NOON, *, ended: Ended | None = None, **more: Any) -> JobRecord:
    """Return the task as a store holds it, written by an instance called `first`."""
    job = job_of("default", one, document_of(one, "first"))
    return JobRecord(job, 1, watermark, None, last_end=ended, **more)


def ran(when: datetime) -> Ended:
    """Return an occurrence that ran and ended within a minute."""
    return Ended(when, when, when + timedelta(seconds=30))


def occurrence(id_: str, when: datetime, status: str, **more: Any) -> Occurrence:
    """Return an occurrence that is not over."""
    return Occurrence(id_, "job", 1, when, OccurrenceStatus(status), **more)
