"""Backfills in memory: how people plan and steer them, and what plans read and write of them."""

from dataclasses import replace
from datetime import datetime
from itertools import islice

from everytick.domain import facts, ids
from everytick.domain.backfills import (
    WINDOW,
    BackfillRecord,
    BackfillStatus,
    Filling,
    OpenBackfill,
    Recent,
    shown_status,
)
from everytick.domain.durations import MICROSECOND
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.errors import JobDisabled, NotFound
from everytick.stores.backfill_rules import EXISTING_LIMIT, FAILED, known_stretch, looked_at, refuse_crowd, steered
from everytick.stores.base import Receipt
from everytick.stores.memory.rows import BackfillRow, JobRow, OccurrenceRow
from everytick.stores.memory.tables import Tables

_S, _O = BackfillStatus, OccurrenceStatus
_DONE = frozenset({_O.COMPLETED})


# ------------------------------------------------------------------------------------------------------------- people


def plan_backfill(row: JobRow, fact: facts.PlanBackfill, now: datetime) -> Receipt:
    """Keep a backfill of the job, once per key."""
    order = fact.order
    id_ = ids.backfill_id(row.id, order.key)
    if order.key in row.backfills:
        return Receipt(id_, changed=False)
    _refuse_out_of_service(row)
    if fact.approved:
        refuse_crowd(row.name, len(row.open_backfills()))
    made = BackfillRow(id_, order, now, order.after, order.through, order.rate, now)
    if fact.approved:
        _approve(row, made, order.by, now)
    row.backfills[order.key] = made
    return Receipt(id_, changed=True)


def steer_backfill(row: JobRow, fact: facts.SteerBackfill, now: datetime) -> tuple[Receipt, list[str]]:
    """Let a backfill run, pause or end. Return also the occurrences that it has made, if they are to end."""
    backfill = next((known for known in row.backfills.values() if known.id == fact.id), None)
    if backfill is None:
        raise NotFound("backfill", fact.id)
    receipt = steered(fact.id, backfill.status, fact.to)
    if not receipt.changed:
        return receipt, []
    if fact.to is _S.RUNNING:
        _refuse_out_of_service(row)
        refuse_crowd(row.name, len(row.open_backfills()))
        _approve(row, backfill, fact.by, now)
    backfill.status, backfill.changed_by = fact.to, fact.by
    if fact.to is _S.CANCELED:
        backfill.ended_at = now
        return receipt, list(backfill.filled)
    return receipt, []


def _approve(row: JobRow, backfill: BackfillRow, by: str, now: datetime) -> None:
    if backfill.approved_at is None:
        backfill.approved_at, backfill.approved_by = now, by
    backfill.status, backfill.paced_at = _S.RUNNING, now
    backfill.place = 1 + max((other.place for other in row.backfills.values()), default=0)


def _refuse_out_of_service(row: JobRow) -> None:
    if row.removed_at is not None:
        raise NotFound("job", row.name)
    if not row.job.enabled:
        raise JobDisabled(row.name)


def backfill_record(tables: Tables, row: JobRow, backfill: BackfillRow) -> BackfillRecord:
    """Return the backfill as people see it."""
    statuses = [_status(tables, id_, kept) for id_, kept in backfill.filled.items()]
    waiting = sum(1 for status in statuses if status in (_O.PENDING, _O.QUEUED))
    running = sum(1 for status in statuses if status not in ENDED) - waiting
    first = next(iter(row.open_backfills()), None)
    return BackfillRecord(
        id=backfill.id,
        job_id=row.id,
        job=row.name,
        order=backfill.order,
        status=shown_status(backfill.status, waiting + running),
        planned_at=backfill.planned_at,
        after=backfill.after,
        through=backfill.through,
        pace=backfill.pace,
        created=len(statuses),
        done=sum(1 for status in statuses if status in _DONE),
        failed=sum(1 for status in statuses if status in FAILED),
        canceled=sum(1 for status in statuses if status in ENDED and status not in _DONE and status not in FAILED),
        running=running,
        waiting=waiting,
        approved_at=backfill.approved_at,
        approved_by=backfill.approved_by,
        changed_by=backfill.changed_by,
        ended_at=backfill.ended_at,
        behind=None if backfill.status is not _S.RUNNING or first is None or first is backfill else first.id,
    )


def _status(tables: Tables, id_: str, kept: OccurrenceStatus | None) -> OccurrenceStatus:
    """Return the status of an occurrence, or the one it had when it was deleted."""
    made = tables.occurrences.get(id_)
    return made.status if made is not None else kept or _O.CANCELED


# -------------------------------------------------------------------------------------------------------------- plans


def open_backfill(tables: Tables, row: JobRow, until: datetime) -> tuple[OpenBackfill | None, bool]:
    """Return what a plan for this moment sees of the first open backfill, and whether others wait behind it."""
    open_ = row.open_backfills()
    if not open_:
        return None, False
    first = open_[0]
    newest = list(islice(reversed(first.filled), looked_at(first.order.rate)))
    made = [tables.occurrences[id_] for id_ in newest if id_ in tables.occurrences]
    seen = OpenBackfill(
        id=first.id,
        order=first.order,
        after=first.after,
        through=first.through,
        created=len(first.filled),
        pace=first.pace,
        paced_at=first.paced_at,
        filled_at=first.filled_at,
        recent=_recent(made, first.paced_at, until),
    )
    return (seen if first.order.again else _with_existing(row, seen)), len(open_) > 1


def _recent(made: list[OccurrenceRow], paced_at: datetime, until: datetime) -> Recent:
    ended = [run for run in made if run.ended_at is not None and run.ended_at > paced_at]
    return Recent(
        sum(1 for run in made if run.status in (_O.PENDING, _O.QUEUED)),
        sum(1 for run in made if run.started_at is not None and run.started_at > until - WINDOW),
        len(ended),
        sum(1 for run in ended if run.status in FAILED),
    )


def _with_existing(row: JobRow, seen: OpenBackfill) -> OpenBackfill:
    """Add the occurrences that exist already of what is left, as many as a plan walks past."""
    if seen.order.newest_first:
        rows = row.history.before((seen.through + MICROSECOND,))
        runs = [run for run in islice(rows, EXISTING_LIMIT) if run.creation.scheduled_for > seen.after]
    else:
        rows = row.history.since((seen.after + MICROSECOND,))
        runs = [run for run in islice(rows, EXISTING_LIMIT) if run.creation.scheduled_for <= seen.through]
    last = runs[-1].creation.scheduled_for if len(runs) == EXISTING_LIMIT else None
    known_after, known_through = known_stretch(seen, last)
    existing = frozenset(run.id for run in runs)
    return replace(seen, existing=existing, known_after=known_after, known_through=known_through)


def write_filling(tables: Tables, row: JobRow, filling: Filling, now: datetime) -> None:
    """Write what a plan did for a backfill, before its occurrences are made: those that exist are not its own."""
    backfill = row.backfills[filling.key]
    backfill.filled.update((id_, None) for id_ in filling.ids if id_ not in tables.occurrences)
    backfill.after, backfill.through = filling.after, filling.through
    backfill.pace, backfill.paced_at, backfill.filled_at = filling.pace, filling.paced_at, filling.filled_at
    if filling.status is not _S.RUNNING:
        backfill.status, backfill.ended_at = filling.status, now
