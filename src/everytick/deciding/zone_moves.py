"""Which runs to come move because the zone tables changed: those written by the old ones beside those named now."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from everytick.domain.snapshots import JobSnapshot
from everytick.domain.upcoming import upcoming
from everytick.domain.values import value
from everytick.schedules.timezones import Zone

_LISTED = 3


@value
class ZoneMove:
    """The runs to come of a job that other zone tables took away, and those that they name instead."""

    job_id: str
    job: str
    gone: tuple[datetime, ...]
    came: tuple[datetime, ...]
    zones: tuple[str, ...]

    def __str__(self) -> str:
        return f"{_listed(self.gone)} moved to {_listed(self.came)} ({', '.join(self.zones)})"


def zone_move(snapshot: JobSnapshot, written: Sequence[datetime], now: datetime) -> ZoneMove | None:
    """Return what moved of the runs to come that were `written` down before, or None if nothing did.

    A job that is due is left out: its plan writes all of it anew. So is one whose schedule knows no zone. As many runs
    are compared as were written.
    """
    job = snapshot.editions[-1].job
    zones = tuple(sorted({zone.name for zone in _zones(job.schedule)} - {"UTC"}))
    before = [at for at in written if at > now]
    if not zones or not before or (snapshot.wake_at is not None and snapshot.wake_at <= now):
        return None
    was, will = set(before), set(upcoming(snapshot, now, len(before)))
    if was == will:
        return None
    return ZoneMove(snapshot.job_id, job.name, tuple(sorted(was - will)), tuple(sorted(will - was)), zones)


def _zones(schedule: object) -> Iterator[Zone]:
    """Give the zones of a schedule, also those of the schedules inside it."""
    zone = getattr(schedule, "tz", None)
    if isinstance(zone, Zone):
        yield zone
    inner = getattr(schedule, "schedule", None)
    for part in (*getattr(schedule, "parts", ()), *([] if inner is None else [inner])):
        yield from _zones(part)


def _listed(times: Sequence[datetime]) -> str:
    shown = ", ".join(at.isoformat() for at in times[:_LISTED])
    more = f" and {len(times) - _LISTED} more" if len(times) > _LISTED else ""
    return f"{shown}{more}" if times else "no other time"
