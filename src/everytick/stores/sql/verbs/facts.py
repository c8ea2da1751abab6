"""request: writes one fact about a job or an occurrence and wakes the job. Only a plan decides.

A fact about a job locks where the job stands, so that it comes wholly before or after a plan's commit.
"""

from dataclasses import replace
from datetime import datetime

from everytick.domain import facts
from everytick.domain.facts import ASKS, LIMITING, Adjusts, Fact, adjusted, request_of
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import ASKED_NOW, Edition, Request
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.domain.values import value
from everytick.errors import NotFound
from everytick.stores.base import Receipt
from everytick.stores.open_requests import KEEPS_ITS_KEY, KeyUse, as_waiting, has_key_of_its_own, under_key
from everytick.stores.sql import rows
from everytick.stores.sql.commands import Ask, Create, EndUnowned, Rows, Verb
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row
from everytick.stores.sql.verbs import backfills, limiting
from everytick.stores.sql.verbs.locked_job import foretell, held_job, revise, taking_requests, version_of, wake
from everytick.stores.storing_rules import as_stored


def request(q: ColdQueries, subject: str, fact: Fact) -> Verb[Receipt]:
    """Write one fact about a job or an occurrence, and make its job due."""
    if isinstance(fact, facts.Cancel):
        return Receipt(subject, (yield from _cancel(q, subject, fact.reason)))
    if isinstance(fact, LIMITING):
        return (yield from limiting.say(q, subject, fact))
    if isinstance(fact, ASKS):
        return (yield from ask(q, subject, request_of(fact, ASKED_NOW))).receipt
    if isinstance(fact, facts.PlanBackfill | facts.SteerBackfill):
        return (yield from backfills.request(q, subject, fact))
    return (yield from _tell(q, subject, fact))


def _tell(q: ColdQueries, job_id: str, fact: Fact) -> Verb[Receipt]:
    """Write a fact that makes older snapshots of the job stale."""
    job = yield from held_job(q, job_id)
    now: datetime = yield Ask.NOW
    changed = yield from write_fact(q, job["job_key"], fact, now)
    if changed:
        yield from revise(q, job["job_key"], now)
        yield from foretell(q, [job_id])
    return Receipt(job_id, changed)


def write_fact(q: ColdQueries, job_key: int, fact: Fact, now: datetime) -> Verb[bool]:
    """Write the fact about a locked job. Return whether it changes anything."""
    match fact:
        case facts.Pause():
            yield from _pause(q, job_key, fact, now)
        case facts.Resume():
            missed = None if fact.missed is None else str(fact.missed)
            return bool((yield q.resume_pause(job_key=job_key, now=now, resumed_by=fact.by, missed=missed)))
        case facts.Reschedule():
            yield q.reschedule_job(job_key=job_key, now=now, reschedule_for=fact.to, reschedule_by=fact.by)
        case facts.UndoReschedule():
            return bool((yield q.undo_reschedule(job_key=job_key, reschedule_for=fact.to)))
        case facts.Rewind():
            return (yield from _rewind(q, job_key, now))
        case facts.Skip() | facts.Move() | facts.Amend() | facts.Undo():
            return (yield from _adjust(q, job_key, fact, now))
    return True


def _pause(q: ColdQueries, job_key: int, fact: facts.Pause, now: datetime) -> Verb[None]:
    """Hold the schedule from now on. Unclaimed occurrences of the schedule are queued."""
    running: Rows = yield q.end_pause(job_key=job_key, now=now)
    yield q.add_pause(
        job_key=job_key,
        since_at=running[0]["since_at"] if running else now,
        until_at=fact.until,
        missed=str(fact.missed),
        reason=fact.reason,
        paused_by=fact.by,
    )
    yield q.put_back_in_line(job_key=job_key, now=now)


def _adjust(q: ColdQueries, job_key: int, fact: Adjusts, now: datetime) -> Verb[bool]:
    """Add an adjustment to those of its instant. Return whether it changes anything."""
    found: Rows = yield q.adjustment_at(job_key=job_key, instant_at=fact.at)
    [decided] = yield q.decided_through(job_key=job_key, now=now)
    before = rows.adjustment(found[0]) if found else None
    adjustment = adjusted(before, fact, now, decided["watermark"])
    if adjustment is None:
        return False
    overrides, payload = rows.write_overrides(adjustment.overrides)
    yield q.adjust(
        job_key=job_key,
        instant_at=adjustment.at,
        kind=str(adjustment.kind),
        moved_to_at=adjustment.to,
        reason=adjustment.reason,
        adjusted_by=adjustment.by,
        is_done=adjustment.done,
        overrides=overrides,
        payload=payload,
        told_at=adjustment.told_at,
    )
    return True


def _rewind(q: ColdQueries, job_key: int, now: datetime) -> Verb[bool]:
    """Set a watermark that lies ahead back to now. Return whether it lay ahead."""
    [decided] = yield q.decided_through(job_key=job_key, now=now)
    if decided["watermark"] <= now:
        return False
    undone_after = decided["undone_after"]
    yield q.undo_spans(job_key=job_key, now=now)
    yield q.rewind_pauses(job_key=job_key, now=now)
    yield q.rewind(job_key=job_key, watermark=now if undone_after is None else min(now, undone_after), now=now)
    return True


# -------------------------------------------------------------------------------------------------------- requests


@value
class AskedUnder:
    """The result of a request, and the newest definition of its job."""

    receipt: Receipt
    job_key: int
    newest: Edition


def ask(q: ColdQueries, job_id: str, request: Request) -> Verb[AskedUnder]:
    """Write a request, once per key, and make its job due."""
    held = yield from held_job(q, job_id)
    job_key: int = held["job_key"]
    now: datetime = yield Ask.NOW
    [newest] = yield q.newest_version(job_key=job_key)
    if held["removed_at"] is not None:
        raise NotFound("job", newest["name"])
    edition = (yield from version_of(job_key, newest["version"])).edition
    taking_requests(edition.job)
    asked, is_known = yield from under_its_key(q, job_key, job_id, as_stored(edition, request, now))
    if not is_known:
        yield from use_key(q, job_key, job_id, asked)
        yield q.keep_request(**rows.request_arguments(job_key, job_id, asked))
        yield from wake(q, job_key, now)
    return AskedUnder(Receipt(asked.occurrence_id(job_id), not is_known), job_key, edition)


def under_its_key(q: ColdQueries, job_key: int, job_id: str, asked: Request) -> Verb[tuple[Request, bool]]:
    """Return the request with its number among the uses of its key, and whether it exists already."""
    return under_key(job_id, asked, (yield from _key_use(q, job_key, job_id, asked)))


def _key_use(q: ColdQueries, job_key: int, job_id: str, asked: Request) -> Verb[KeyUse | None]:
    """Return the newest use of the key."""
    key = {"job_key": job_key, "cause": asked.cause, "key": asked.key}
    for open_ in (yield q.open_request(**key)):
        return KeyUse(open_["nth"], None, True, rows.payload_or_none(open_["payload"]))
    if asked.cause is Cause.BACKFILL:
        return None
    nth, call = 1, None
    for used in (yield q.key_use(**key)):
        nth, call = used["nth"], used["call"]
    id_ = replace(asked, nth=nth).occurrence_id(job_id)
    for occurrence in (yield q.occurrence_payload(occurrence_id=id_)):
        return KeyUse(nth, call, occurrence["status"] in KEEPS_ITS_KEY, rows.payload_or_none(occurrence["payload"]))
    return None if call is None else KeyUse(nth, call, False, None)


def use_key(q: ColdQueries, job_key: int, job_id: str, asked: Request) -> Verb[None]:
    """Count one more use of a key that a caller gave."""
    if has_key_of_its_own(asked):
        key = {"job_key": job_key, "cause": asked.cause, "key": asked.key}
        yield q.use_key(**key, nth=asked.nth, call=asked.call, occurrence_id=asked.occurrence_id(job_id))


# --------------------------------------------------------------------------------------------------------- cancels


def _cancel(q: ColdQueries, occurrence_id: str, reason: str) -> Verb[bool]:
    """End an occurrence that no node has claimed, or ask its owner to stop. Return whether it was active."""
    found: Rows = yield q.hold_occurrence(occurrence_id=occurrence_id)
    row = found[0] if found else (yield from _made_to_cancel(q, occurrence_id))
    if row["status"] in ENDED:
        return False
    if row["owner"] is None and row["status"] is not OccurrenceStatus.RUNNING:
        yield EndUnowned(occurrence_id, row["job_key"], OccurrenceStatus.CANCELED, reason)
    else:
        yield q.ask_owner_to_stop(occurrence_id=occurrence_id, reason=reason)
    yield Ask.RING
    return True


def _made_to_cancel(q: ColdQueries, occurrence_id: str) -> Verb[Row]:
    """Create the occurrence of an unplanned request, or return the one that a plan has just created.

    This happens under the lock of its job: the commit of a plan that answers the request comes before or after.
    """
    for request in (yield q.asked_for(occurrence_id=occurrence_id)):
        yield from held_job(q, request["job_id"])
    for request in (yield q.asked_for(occurrence_id=occurrence_id)):
        job = (yield from version_of(request["job_key"], request["version"])).job
        yield Create(request["job_key"], job, as_waiting(job, rows.request(request)))
        yield q.forget_asked_for(occurrence_id=occurrence_id)
    found: Rows = yield q.hold_occurrence(occurrence_id=occurrence_id)
    if not found:
        raise NotFound("occurrence", occurrence_id)
    return found[0]
