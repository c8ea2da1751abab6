"""request: one fact about a job or an occurrence. It wakes the job; only a plan decides what follows."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from everytick.domain import facts
from everytick.domain.backfills import BackfillRecord
from everytick.domain.facts import ASKS, LIMITING, REVISES, Fact, adjusted, request_of
from everytick.domain.lookups import NewestBackfills
from everytick.domain.occurrence import Cause
from everytick.domain.snapshots import PausedSpan, Request, Rescheduled
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.errors import JobDisabled, NotFound
from everytick.stores.backfill_rules import stopped_because
from everytick.stores.base import Receipt
from everytick.stores.memory.backfills import backfill_record, plan_backfill, steer_backfill
from everytick.stores.memory.base import Shared
from everytick.stores.memory.limiting import LimitVerbs
from everytick.stores.memory.occurrences import UNSTARTED, Occurrences
from everytick.stores.memory.revising import Revisions, bring_back
from everytick.stores.memory.rows import JobRow
from everytick.stores.open_requests import KEEPS_ITS_KEY, KeyUse, as_waiting, has_key_of_its_own, under_key
from everytick.stores.storing_rules import as_stored

_S = OccurrenceStatus


class FactVerbs:
    """What people and programs ask of jobs and occurrences."""

    def __init__(self, shared: Shared, occurrences: Occurrences, limits: LimitVerbs, revisions: Revisions) -> None:
        self._shared, self._tables = shared, shared.tables
        self._occurrences, self._limits, self._revisions = occurrences, limits, revisions

    def request(self, subject: str, fact: Fact) -> Receipt:
        """Write one fact about a job or an occurrence, and make its job due."""
        now = self._shared.now()
        if isinstance(fact, facts.Cancel):
            return Receipt(subject, self._cancel(subject, fact.reason, now))
        if isinstance(fact, LIMITING):
            return self._limits.say(subject, fact, now)
        row = self._shared.job(subject)
        receipt = self.write(row, fact, now)
        if receipt.changed:
            (self._revisions.revise if type(fact) in REVISES else self._shared.wake)(row, now)
        return receipt

    def write(self, row: JobRow, fact: Fact, now: datetime) -> Receipt:
        """Write one fact about a job."""
        if isinstance(fact, ASKS):
            return self._ask(row, request_of(fact, now), now)
        changed = True
        match fact:
            case facts.Pause():
                self._pause(row, fact, now)
            case facts.Resume():
                changed = self._resume(row, fact, now)
            case facts.Reschedule():
                row.reschedule = Rescheduled(now, fact.to, fact.by)
            case facts.UndoReschedule():
                changed = row.reschedule is not None and row.reschedule.to == fact.to
                row.reschedule = None if changed else row.reschedule
            case facts.Rewind():
                changed = self._rewind(row, now)
            case facts.Skip() | facts.Move() | facts.Amend() | facts.Undo():
                made = adjusted(row.adjustments.get(fact.at), fact, now, row.watermark)
                changed = made is not None
                if made is not None:
                    row.adjustments[fact.at] = made
            case facts.PlanBackfill():
                return plan_backfill(row, fact, now)
            case facts.SteerBackfill():
                receipt, unclaimed = steer_backfill(row, fact, now)
                self._occurrences.end_unclaimed(unclaimed, stopped_because(fact.by), now)
                return receipt
        return Receipt(row.id, changed)

    def _pause(self, row: JobRow, fact: facts.Pause, now: datetime) -> None:
        running = row.pause_at(now)
        if running is not None:
            row.pauses.remove(running)
        since = running.since if running else now
        row.pauses.append(PausedSpan(since, fact.until, fact.missed, fact.reason, fact.by))
        self._occurrences.put_back_in_line(row, now)

    def _resume(self, row: JobRow, fact: facts.Resume, now: datetime) -> bool:
        running = row.pause_at(now)
        if running is None:
            return False
        missed = fact.missed or running.missed
        row.pauses[row.pauses.index(running)] = replace(running, until=now, missed=missed, resumed_by=fact.by)
        return True

    def _rewind(self, row: JobRow, now: datetime) -> bool:
        """Set a watermark that lies ahead back to now. Return whether it lay ahead."""
        if row.watermark <= now:
            return False
        undone = [span for span in row.spans if span.through > now]
        row.spans = [span for span in row.spans if span.through <= now]
        row.watermark = min([now, *(span.after for span in undone)])
        bring_back(row, now)
        if row.last_end is not None:
            row.last_end = replace(row.last_end, ended_at=min(row.last_end.ended_at, now))
        if row.last_failure_at is not None:
            row.last_failure_at = min(row.last_failure_at, now)
        return True

    def _ask(self, row: JobRow, request: Request, now: datetime) -> Receipt:
        if row.removed_at is not None:
            raise NotFound("job", row.name)
        if not row.job.enabled:
            raise JobDisabled(row.name)
        request = as_stored(row.editions[-1], request, now)
        request, is_known = under_key(row.id, request, self.key_use(row, request))
        if not is_known:
            if has_key_of_its_own(request):
                row.keys[request.cause, request.key] = request.nth, request.call
            self._tables.ask(row, replace(request, call=None))
        return Receipt(request.occurrence_id(row.id), not is_known)

    def key_use(self, row: JobRow, request: Request) -> KeyUse | None:
        """Return the newest use of the request's key."""
        key = request.cause, request.key
        if (open_ := row.requests.get(key)) is not None:
            return KeyUse(open_.nth, None, True, open_.payload)
        if request.cause is Cause.BACKFILL:
            return None
        nth, call = row.keys.get(key, (1, None))
        made = self._tables.occurrences.get(replace(request, nth=nth).occurrence_id(row.id))
        if made is None:
            return None if call is None else KeyUse(nth, call, False, None)
        return KeyUse(nth, call, made.status in KEEPS_ITS_KEY, made.own_payload)

    def _cancel(self, occurrence_id: str, reason: str, now: datetime) -> bool:
        """End an occurrence that no node has claimed, or ask its owner to stop. Return whether it was active."""
        if occurrence_id not in self._tables.occurrences:
            self._cancel_request(occurrence_id, reason, now)
            return True
        row = self._shared.occurrence(occurrence_id)
        if row.status in ENDED:
            return False
        if row.owner is None and row.status in UNSTARTED:
            self._occurrences.end(row, _S.CANCELED, reason, now)
            self._shared.wake(row.job, now)
        else:
            row.cancel = reason
            self._shared.bell.ring()
        return True

    def _cancel_request(self, occurrence_id: str, reason: str, now: datetime) -> None:
        """Create the occurrence of an unplanned request as canceled, so that no older plan creates it."""
        asked = self._tables.asked_for(occurrence_id)
        if not asked:
            raise NotFound("occurrence", occurrence_id)
        row, request = asked[0]
        self._occurrences.create(row, as_waiting(row.job, request), now)
        for _, open_request in asked:
            self._tables.answer(row, open_request.cause, open_request.key)
        self._occurrences.end(self._shared.occurrence(occurrence_id), _S.CANCELED, reason, now)
        self._shared.wake(row, now)

    def newest_backfills(self, asked: NewestBackfills) -> Sequence[BackfillRecord]:
        """Return the newest backfills of a job, or of all."""
        rows = [self._tables.jobs[id_] for id_ in self._tables.jobs if asked.job_id in (None, id_)]
        records = [backfill_record(self._tables, row, backfill) for row in rows for backfill in row.backfills.values()]
        return sorted(records, key=lambda record: (record.planned_at, record.id), reverse=True)[: asked.limit]
