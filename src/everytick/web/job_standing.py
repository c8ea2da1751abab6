"""How a job stands: whether its last run was good, what of it runs or is late, and what it does next."""

from __future__ import annotations

from datetime import timedelta
from heapq import nsmallest
from itertools import takewhile
from typing import TYPE_CHECKING

from everytick.domain.ids import job_id
from everytick.domain.occurrence import Cause
from everytick.domain.statuses import OccurrenceStatus
from everytick.web.pictures.timeline import MOST_LANES, LaneCandidate, Urgency
from everytick.web.words import LATE_AFTER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from everytick.domain.occurrence import Occurrence
    from everytick.domain.questions import Glance, JobLengths
    from everytick.stores.base import JobRecord
    from everytick.web.now_board import FleetState
    from everytick.web.pictures.axis import Axis

_OVER, _LEAST_OVER = 1.5, timedelta(seconds=10)
"""A run needs a look that takes half as long again as nearly all others, and at least ten seconds longer."""

_OF_THE_PAST = frozenset({Cause.BACKFILL, Cause.REPLAY})

_WIDE = 2
"""A run is drawn as long if it is wider than two pixels."""


def late_by(run: Glance, now: datetime) -> timedelta:
    """Return how long after its instant a run began, or waits by now. Under a minute it counts if it was told late.

    A backfill and a replay are asked for long after the instants that they are about: that makes them not late.
    """
    if run.cause in _OF_THE_PAST:
        return timedelta(0)
    begun = run.started_at or (now if run.ended_at is None else run.scheduled_for)
    late = begun - run.scheduled_for
    return late if late >= LATE_AFTER or (run.late and late > timedelta(0)) else timedelta(0)


def overruns(run: Glance | Occurrence, usual: JobLengths | None, now: datetime) -> bool:
    """Whether a run takes so much longer than nearly all before it that a person should look."""
    if run.status is not OccurrenceStatus.RUNNING or run.started_at is None or usual is None or usual.count < 5:
        return False
    taken = now - run.started_at
    return taken > usual.p95 * _OVER and taken > usual.p95 + _LEAST_OVER


def candidates(fleet: FleetState, axis: Axis, needing: Mapping[str, int], pins: Collection[str]) -> list[LaneCandidate]:
    """Return the jobs with what makes each urgent. `needing` are the jobs that need a look, each with its rank.

    Of more jobs than may have a lane, quiet ones are left out: of ten thousand nearly all are quiet.
    """
    active: dict[str, list[Glance]] = {}
    for run in fleet.active:
        active.setdefault(run.job_id, []).append(run)
    wanted: Iterable[str] = fleet.records
    if len(fleet.records) > MOST_LANES:
        wanted = dict.fromkeys((*needing, *active, *_long(fleet, axis), *map(job_id, pins)))
    return [
        LaneCandidate(
            id_,
            _urgency(record, active.get(id_, ()), fleet, axis, id_ in needing),
            record.next_run,
            record.job.name in pins,
            needing.get(id_, 0),
        )
        for id_ in wanted
        if (record := fleet.records.get(id_)) is not None
    ]


def _long(fleet: FleetState, axis: Axis) -> list[str]:
    """Return the jobs whose runs are wide and that come next: so many as may have a lane. The others get none."""
    wide, through, records = _WIDE * axis.pixel, axis.through, fleet.records
    due = (
        (record.next_run, id_)
        for id_, _ in takewhile(lambda item: item[1].p50 > wide, fleet.lengths.items())
        if (record := records.get(id_)) is not None
        and record.next_run is not None
        and record.next_run <= through
        and record.pause is None
    )
    return [id_ for _, id_ in nsmallest(MOST_LANES, due)]


def _urgency(record: JobRecord, active: Sequence[Glance], fleet: FleetState, axis: Axis, needs_look: bool) -> Urgency:
    if needs_look:
        return Urgency.NEEDS_LOOK
    usual = fleet.lengths.get(record.job.id)
    if any(run.status is OccurrenceStatus.AWAITING_RETRY for run in active):
        return Urgency.RETRYING
    begun = [run.started_at for run in active if run.started_at is not None]
    if begun and usual is not None and fleet.now - min(begun) > usual.p50:
        return Urgency.OVERRUNNING
    if begun:
        return Urgency.RUNNING
    is_due = record.next_run is not None and record.next_run <= axis.through and record.pause is None
    return Urgency.LONG if is_due and usual is not None and usual.p50 > _WIDE * axis.pixel else Urgency.QUIET


def state_of(record: JobRecord, active: Sequence[Glance], now: datetime, *, trouble: str | None) -> str:
    """Return the name of the glyph for how a job stands. `trouble` is that of what was wrong with it last."""
    if record.pause is not None and record.pause.holds(now):
        return "paused"
    if any(run.status is OccurrenceStatus.AWAITING_RETRY for run in active):
        return "awaiting_retry"
    if any(late_by(run, now) for run in active):
        return "late"
    if any(run.status is OccurrenceStatus.RUNNING for run in active):
        return "running"
    if trouble:
        return trouble
    return "fine" if record.job.enabled else "paused"
