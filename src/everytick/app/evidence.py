"""Evidence: all rows of the store about one instant of a job, for `explain`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everytick.app.history import versions
from everytick.app.outlook import outlook
from everytick.deciding.explanation import Evidence
from everytick.deciding.promises import broken_by
from everytick.domain.config import queue_of
from everytick.domain.durations import MICROSECOND
from everytick.domain.ids import occurrence_id
from everytick.domain.limits import reaches_of_job
from everytick.domain.lookups import Breaches, Editions, LaterRequests, LimitsAndBrakes, Spans
from everytick.domain.nodes import unknown_targets, unmet_needs
from everytick.domain.occurrence import Cause
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import NotFound

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from everytick.deciding.forecast import LikelyBreach
    from everytick.domain.nodes import NodeFacts
    from everytick.domain.occurrence import Occurrence
    from everytick.domain.promises import Breach
    from everytick.domain.snapshots import JobSnapshot
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

_UNCLAIMED = (OccurrenceStatus.PENDING, OccurrenceStatus.AWAITING_RETRY)
_BREACHES_READ = 1_000
"""Most breaches of the job among which those of the instant are looked for, newest first."""

_HISTORY_READ = 100
"""Most occurrences of one instant that are read: its own, and its replays."""

_LATER_READ = 10_000
"""How many runs that were asked for at a time are looked through: enough for people, and a question of some 50 ms."""


async def _occurrences_at(store: AnyStore, job_id: str, at: datetime) -> list[Occurrence]:
    """Return the occurrences that are scheduled for the instant, and those that people asked for at that time."""
    from everytick.stores.base import HistoryFilter

    page = await store.history(HistoryFilter(job_id=job_id, after=at - MICROSECOND, through=at, limit=_HISTORY_READ))
    occurrences = list(page.occurrences)
    try:
        own = (await store.whole(occurrence_id(job_id, at))).occurrence
    except NotFound:
        pass
    else:
        # A moved instant keeps its id and has another scheduled_for: its span says which.
        if own.scheduled_for == at and own not in occurrences:
            occurrences.append(own)
    for _, request in await store.ask(LaterRequests([job_id], _LATER_READ)):
        if request.line_at == at:
            occurrences.append((await store.whole(request.occurrence_id(job_id))).occurrence)
    return occurrences


async def evidence_of(store: AnyStore, record: JobRecord, at: datetime, node_timeout: timedelta) -> Evidence:
    """Return the rows about the instant, and the snapshot that a plan would get now.

    A node that has been silent for `node_timeout` does not count among those that can run the job.
    """
    job_id = record.job.id
    occurrences = await _occurrences_at(store, job_id, at)
    snapshot = (await store.look([job_id]))[job_id]
    spans = await store.ask(Spans(job_id, at - MICROSECOND, at))
    known = versions(record, snapshot)
    oldest = min(known)
    older = await store.ask(Editions(job_id, [span.version for span in spans if span.version < oldest], at=at))
    older = [edition for edition in older if edition.job.version < oldest]
    known |= {edition.job.version: edition.job for edition in older}
    now = await store.now()
    # Of a skipped instant, the occurrence in its way counts.
    asked_about = snapshot.busy if spans else occurrences
    waits = any(occurrence.status is OccurrenceStatus.PENDING for occurrence in asked_about)
    broken, likely = await _promises(store, record, snapshot, at)
    if any(not broken_by(occurrence, broken) for occurrence in occurrences if occurrence.cause is Cause.SCHEDULE):
        broken = ()
    unmet = at <= now and not occurrences and not spans and await _is_unmet(store, record, now - node_timeout)
    unclaimed = [occurrence for occurrence in occurrences if occurrence.status in _UNCLAIMED]
    return Evidence(
        at=at,
        now=now,
        snapshot=snapshot,
        definitions=tuple(known[version] for version in sorted(known)),
        occurrences=tuple(occurrences),
        spans=tuple(spans),
        removed_at=record.removed_at,
        removed_by=record.removed_by,
        older=tuple(older),
        refused=await _refused(store, record, now, now - node_timeout) if waits or unmet else "",
        parked_reason=record.parked_reason or "",
        breaches=broken,
        forecasts=likely,
        held_back=await _held_back(store, record, unclaimed[0]) if unclaimed else "",
        frozen=await _frozen(store, record, snapshot, at) if at > now else "",
        unmet=unmet,
    )


async def _promises(
    store: AnyStore, record: JobRecord, snapshot: JobSnapshot, at: datetime
) -> tuple[tuple[Breach, ...], tuple[LikelyBreach, ...]]:
    """Return the promises that were broken around an instant, with its own moment, and those that are likely to be."""
    from everytick.domain.promise_policies import PromiseKind
    from everytick.domain.promises import promises_of
    from everytick.schedules.deadlines import deadlines

    promised = promises_of(record.job.settings)
    if not promised:
        return (), ()
    found = []
    for broken in await store.ask(Breaches(record.job.id, limit=_BREACHES_READ)):
        breach = broken.breach
        is_instant = breach.kind is not PromiseKind.SUCCESS_WITHIN and breach.kind in promised
        if is_instant and breach.broken_for <= at <= breach.last_for:
            found.append(replace(breach, due_at=deadlines(promised[breach.kind], record.job).of(at)))
    coming = (await outlook(store, record, snapshot))["forecasts"]
    return tuple(found), tuple(forecast for forecast in coming if forecast.instant == at)


async def _held_back(store: AnyStore, record: JobRecord, occurrence: Occurrence) -> str:
    """Return which limit or brake keeps the occurrence from starting, an empty text if none does."""
    settings = record.job.settings
    names = reaches_of_job(settings.tags, record.job.name, queue_of(occurrence.overrides) or settings.queue)
    held = (await store.ask(LimitsAndBrakes())).held_back(names)
    return "" if held is None else held.closed


async def _frozen(store: AnyStore, record: JobRecord, snapshot: JobSnapshot, at: datetime) -> str:
    """Return which brake or freeze window will hold when the instant runs, an empty text if none is known."""
    told = next((adjustment for adjustment in snapshot.adjustments if adjustment.at == at), None)
    settings = record.job.settings
    queue = queue_of(told.overrides) if told is not None else None
    names = reaches_of_job(settings.tags, record.job.name, queue or settings.queue)
    brake = (await store.ask(LimitsAndBrakes())).frozen_at(names, at)
    if brake is None:
        return ""
    why = f" ({brake.reason})" if brake.reason else ""
    return f"a brake{why} until " + ("it is released" if brake.until is None else brake.until.isoformat())


async def _living(store: AnyStore, since: datetime) -> list[NodeFacts]:
    from everytick.stores.base import Nodes

    heard = [node.facts for node in await store.ask(Nodes()) if node.beats and node.beat_at >= since]
    return [facts for facts in heard if facts is not None]


async def _is_unmet(store: AnyStore, record: JobRecord, since: datetime) -> bool:
    """Whether no living node meets the job's needs, or all that meet them have said that they cannot run it."""
    able = [facts for facts in await _living(store, since) if record.needs in facts.met]
    return all(record.job.id in dict(facts.unknown_targets) for facts in able)


async def _refused(store: AnyStore, record: JobRecord, now: datetime, since: datetime) -> str:
    """Return why no living node can run the job, an empty text if one may or no node lives."""
    living, jobs = await _living(store, since), [record.job]
    return (unmet_needs(jobs, living, now) | unknown_targets(jobs, living)).get(record.job.name, "")
