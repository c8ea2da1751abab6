"""Which runs to come move because the zone tables changed: runs written by the old tables beside those named now."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from everytick.domain.policies import UpdateKind, UpdatePolicy
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.upcoming import upcoming
from everytick.domain.values import value
from everytick.schedules.timezones import Zone

_LISTED = 3
"""Runs to come that a message names; the others are counted."""


@value
class ZoneMove:
    """The runs to come of a job that other zone tables took away, and those that they name instead.

    `keeps` are new times, each with its old one, that still run at the old one: a job with the update policy
    `graceful` leaves its next runs alone.
    """

    job_id: str
    job: str
    gone: tuple[datetime, ...]
    came: tuple[datetime, ...]
    zones: tuple[str, ...]
    keeps: tuple[tuple[datetime, datetime], ...] = ()

    def __str__(self) -> str:
        kept_words = f"; by its update policy it runs at {_listed([old for _, old in self.keeps])} all the same"
        text = f"{_listed(self.gone)} moved to {_listed(self.came)} ({', '.join(self.zones)})"
        return text + kept_words if self.keeps else text


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
    gone, came = tuple(sorted(was - will)), tuple(sorted(will - was))
    return ZoneMove(snapshot.job_id, job.name, gone, came, zones, _kept(job.settings.update_policy, gone, came, now))


def _kept(
    policy: UpdatePolicy, gone: Sequence[datetime], came: Sequence[datetime], now: datetime
) -> tuple[tuple[datetime, datetime], ...]:
    """Return the new instants that run at their old times, if each new one stands for one old one."""
    if policy.kind is not UpdateKind.GRACEFUL or len(gone) != len(came):
        return ()
    pairs = tuple(zip(came, gone, strict=True))
    if policy.duration is not None:
        return tuple((new, old) for new, old in pairs if old <= now + policy.duration)
    return pairs[: policy.occurrences]


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
