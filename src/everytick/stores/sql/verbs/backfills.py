"""Backfills: how people plan and steer them, and what plans read and write of them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from everytick.domain import facts, ids
from everytick.domain.backfills import (
    WINDOW,
    BackfillOrder,
    BackfillRecord,
    BackfillStatus,
    Filling,
    OpenBackfill,
    Recent,
    shown_status,
)
from everytick.domain.lookups import NewestBackfills
from everytick.domain.occurrence import Cause
from everytick.domain.policies import Overlap
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.errors import NotFound
from everytick.stores.backfill_rules import (
    EXISTING_LIMIT,
    FAILED,
    known_stretch,
    looked_at,
    refuse_crowd,
    steered,
    stopped_because,
)
from everytick.stores.base import Receipt
from everytick.stores.open_requests import DUE_AT_ONCE
from everytick.stores.sql.commands import Ask, EndUnowned, PlainVerb, Rows, Verb, many
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row
from everytick.stores.sql.verbs.locked_job import foretell, held_job, revise, taking_requests, version_of

NO_INSTANT = "occ_00000000-0000-0000-0000-000000000000"
"""The id in the request of a backfill: it asks for no single occurrence."""

_S, _O = BackfillStatus, OccurrenceStatus


# ------------------------------------------------------------------------------------------------------------- people


def request(q: ColdQueries, job_id: str, fact: facts.BackfillFact) -> Verb[Receipt]:
    """Plan a backfill of the job, or steer one."""
    job = yield from held_job(q, job_id)
    now: datetime = yield Ask.NOW
    if isinstance(fact, facts.PlanBackfill):
        receipt = yield from _plan(q, job, fact, now)
    else:
        receipt = yield from _steer(q, job, fact, now)
    if receipt.changed:
        yield from revise(q, job["job_key"], now)
        yield from foretell(q, [job_id])
    return receipt


def _plan(q: ColdQueries, job: Row, fact: facts.PlanBackfill, now: datetime) -> Verb[Receipt]:
    order, job_key = fact.order, job["job_key"]
    id_ = ids.backfill_id(job["job_id"], order.key)
    if (yield q.backfill_of_key(job_key=job_key, key=order.key)):
        return Receipt(id_, changed=False)
    yield from _refuse_out_of_service(q, job)
    yield q.add_backfill(
        job_key=job_key,
        backfill_id=id_,
        key=order.key,
        fill_after=order.after,
        fill_through=order.through,
        again=order.again,
        as_of_now=order.as_of_now,
        newest_first=order.newest_first,
        overlap=None if order.overlap is None else str(order.overlap),
        rate=order.rate,
        count=order.count,
        reason=order.reason,
        planned_by=order.by,
        now=now,
    )
    if fact.approved:
        yield from _approve(q, job, order.key, order.by, now)
    return Receipt(id_, changed=True)


def _steer(q: ColdQueries, job: Row, fact: facts.SteerBackfill, now: datetime) -> Verb[Receipt]:
    found: Rows = yield q.backfill_of_id(job_key=job["job_key"], backfill_id=fact.id)
    if not found:
        raise NotFound("backfill", fact.id)
    [backfill] = found
    receipt = steered(fact.id, _S(backfill["backfill_status"]), fact.to)
    if not receipt.changed:
        return receipt
    if fact.to is _S.RUNNING:
        yield from _refuse_out_of_service(q, job)
        yield from _approve(q, job, backfill["key"], fact.by, now)
        return receipt
    at = {"job_key": job["job_key"], "key": backfill["key"]}
    ended_at = now if fact.to is _S.CANCELED else None
    yield q.stop_backfill(**at, backfill_status=str(fact.to), changed_by=fact.by, ended_at=ended_at)
    yield q.hide_backfill(**at)
    if fact.to is _S.CANCELED:
        for fill in (yield q.unclaimed_fills(backfill_key=backfill["backfill_key"])):
            yield EndUnowned(fill["occurrence_id"], job["job_key"], _O.CANCELED, stopped_because(fact.by))
    return receipt


def _approve(q: ColdQueries, job: Row, key: str, by: str, now: datetime) -> Verb[None]:
    [counted] = yield q.count_open_backfills(job_key=job["job_key"])
    refuse_crowd(job["name"], counted["open_count"])
    at = {"job_key": job["job_key"], "key": key, "now": now}
    yield q.approve_backfill(**at, changed_by=by)
    yield q.show_backfill(**at, cause=Cause.BACKFILL, occurrence_id=NO_INSTANT, due_at=DUE_AT_ONCE)


def _refuse_out_of_service(q: ColdQueries, job: Row) -> Verb[None]:
    if job["removed_at"] is not None:
        raise NotFound("job", job["name"])
    [newest] = yield q.newest_version(job_key=job["job_key"])
    taking_requests((yield from version_of(job["job_key"], newest["version"])).job)


def backfills(q: ColdQueries, asked: NewestBackfills) -> Verb[list[BackfillRecord]]:
    """Return the newest backfills, of one job or of all."""
    found: Rows = yield q.list_backfills(is_any=asked.job_id is None, job_id=asked.job_id, limit=asked.limit)
    counted: dict[int, dict[OccurrenceStatus, int]] = {}
    for row in (yield q.count_fills(backfill_keys=[row["backfill_key"] for row in found])):
        counted.setdefault(row["backfill_key"], {})[row["status"]] = row["count"]
    return [_record(row, counted.get(row["backfill_key"], {})) for row in found]


def _record(row: Row, counts: Mapping[OccurrenceStatus, int]) -> BackfillRecord:
    waiting = _sum(counts, (_O.PENDING, _O.QUEUED))
    running = _sum(counts, (status for status in counts if status not in ENDED)) - waiting
    done, failed = _sum(counts, (_O.COMPLETED,)), _sum(counts, FAILED)
    return BackfillRecord(
        id=row["backfill_id"],
        job_id=row["job_id"],
        job=row["name"],
        order=_order(row),
        status=shown_status(_S(row["backfill_status"]), waiting + running),
        planned_at=row["planned_at"],
        after=row["left_after"],
        through=row["left_through"],
        pace=row["pace"],
        created=row["created"],
        done=done,
        failed=failed,
        canceled=_sum(counts, (status for status in counts if status in ENDED)) - done - failed,
        running=running,
        waiting=waiting,
        approved_at=row["approved_at"],
        approved_by=row["approved_by"],
        changed_by=row["changed_by"],
        ended_at=row["ended_at"],
        behind=row["behind"],
    )


def _sum(counts: Mapping[OccurrenceStatus, int], statuses: Iterable[OccurrenceStatus]) -> int:
    return sum(counts.get(status, 0) for status in statuses)


def _order(row: Row) -> BackfillOrder:
    overlap = row["overlap"]
    return BackfillOrder(
        key=row["key"],
        after=row["fill_after"],
        through=row["fill_through"],
        again=bool(row["again"]),
        as_of_now=bool(row["as_of_now"]),
        newest_first=bool(row["newest_first"]),
        overlap=None if overlap is None else Overlap(overlap),
        rate=row["rate"],
        count=row["count"],
        reason=row["reason"],
        by=row["planned_by"],
    )


# -------------------------------------------------------------------------------------------------------------- plans


def open_backfills(
    q: ColdQueries, job_keys: Iterable[int], until: datetime
) -> PlainVerb[dict[int, tuple[OpenBackfill, bool]]]:
    """Return what a plan for this moment sees of the first open backfill of these jobs, and whether others wait."""
    found: dict[int, list[Row]] = {}
    for row in (yield q.open_backfills(job_keys=list(job_keys))):
        found.setdefault(row["job_key"], []).append(row)
    seen: dict[int, tuple[OpenBackfill, bool]] = {}
    for job_key, [first, *others] in found.items():
        backfill = yield from _opened(q, first, until)
        if not backfill.order.again:
            backfill = yield from _with_existing(q, job_key, backfill)
        seen[job_key] = backfill, bool(others)
    return seen


def _opened(q: ColdQueries, row: Row, until: datetime) -> PlainVerb[OpenBackfill]:
    [recent] = yield q.recent_fills(
        backfill_key=row["backfill_key"],
        window_at=until - WINDOW,
        paced_at=row["paced_at"],
        limit=looked_at(row["rate"]),
    )
    return OpenBackfill(
        id=row["backfill_id"],
        order=_order(row),
        after=row["left_after"],
        through=row["left_through"],
        created=row["created"],
        pace=row["pace"],
        paced_at=row["paced_at"],
        filled_at=row["filled_at"],
        recent=Recent(recent["unstarted"], recent["started"], recent["ended"], recent["failed"]),
    )


def _with_existing(q: ColdQueries, job_key: int, backfill: OpenBackfill) -> PlainVerb[OpenBackfill]:
    """Add the occurrences that exist already of what is left, as many as a plan walks past."""
    read = q.existing_fills_back if backfill.order.newest_first else q.existing_fills
    found: Rows = yield read(
        job_key=job_key, left_after=backfill.after, left_through=backfill.through, limit=EXISTING_LIMIT
    )
    last = found[-1]["scheduled_for"] if len(found) == EXISTING_LIMIT else None
    known_after, known_through = known_stretch(backfill, last)
    existing = frozenset(row["occurrence_id"] for row in found)
    return replace(backfill, existing=existing, known_after=known_after, known_through=known_through)


def write_filling(q: ColdQueries, job_key: int, filling: Filling, now: datetime) -> PlainVerb[None]:
    """Write what a plan did for a backfill, before its occurrences are made: those that exist are not its own."""
    at = {"job_key": job_key, "key": filling.key}
    [row] = yield q.backfill_of_key(**at)
    key, created = row["backfill_key"], row["created"]
    known: Rows = (yield q.existing(occurrence_ids=filling.ids)) if filling.ids else ()
    theirs = {row["occurrence_id"] for row in known}
    own = [id_ for id_ in filling.ids if id_ not in theirs]
    places = enumerate(own, created + 1)
    yield many(q.add_fill, [{"backfill_key": key, "place": nth, "occurrence_id": id_} for nth, id_ in places])
    is_over = filling.status is not _S.RUNNING
    yield q.move_backfill(
        backfill_key=key,
        left_after=filling.after,
        left_through=filling.through,
        pace=filling.pace,
        paced_at=filling.paced_at,
        filled_at=filling.filled_at,
        created=created + len(own),
        backfill_status=str(filling.status),
        ended_at=now if is_over else None,
    )
    if is_over:
        yield q.hide_backfill(**at)
