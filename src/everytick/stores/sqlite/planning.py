"""The planner's verbs: snapshots of due jobs, and plans that are written whole or not at all."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import NamedTuple, TypeVar

from everytick.domain.backfills import OpenBackfill
from everytick.domain.codes import CAUSE_CODE, STATUS_CODE
from everytick.domain.decisions import Creation, Plan, put_off
from everytick.domain.job import Job
from everytick.domain.needs import late_needs, needs_in
from everytick.domain.snapshots import PLAN_LIMIT, Edition, Ended, JobSnapshot, Past, Request, Rescheduled
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.domain.steps import closed
from everytick.domain.texts import PLAN_REFUSED
from everytick.stores.base import Ahead, Batch, Commit, CommitAnswer, CommitFailed, NodeScope, new_token
from everytick.stores.open_requests import (
    PAST_LIMIT,
    PastAsked,
    past_of,
    pasts_asked,
    shows_backfill,
    without_backfills,
)
from everytick.stores.sql import rows as shared
from everytick.stores.sql.rows import EMPTY_LINE, write_overrides
from everytick.stores.sql.statements import Query, Row
from everytick.stores.sql.verbs import coming
from everytick.stores.sql.verbs.backfills import open_backfills, write_filling
from everytick.stores.sql.verbs.coming import JobComing
from everytick.stores.sql.verbs.depending import Asked, dependence
from everytick.stores.sql.verbs.trials import trials
from everytick.stores.sql.verbs.turning import turning
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.active import lines
from everytick.stores.sqlite.compiled import FileDefinitions
from everytick.stores.sqlite.queries import COLD, Q, carried_out, fetch
from everytick.stores.sqlite.rows import NEVER, NO_TEXT, Columns, micros, micros_or_never
from everytick.stores.sqlite.writer import Transaction
from everytick.stores.storing_rules import NOTHING_TO_KEEP, own_overrides

T = TypeVar("T")

_LONGEST_WAITING = attrgetter("wake_at", "id")

# Places in the columns of a new occurrence, as `creation_columns` returns them.
_ID, _LINE_AT, _NEEDS = 0, 9, 19
_IN_LINE = itemgetter(_LINE_AT, _ID)

_EVER = 2**62
"""After every moment that a request can name, in microseconds."""

_NO_BACKFILLS: dict[int, tuple[OpenBackfill, bool]] = {}


class _JobRow(NamedTuple):
    """One row of `due_jobs` or `look_at_jobs`, as the driver gives it."""

    job_key: int
    id: str
    version: int
    oldest_version: int
    revision: int
    woken: int
    watermark: int
    wake_at: int | None
    retire_at: int | None
    reschedule_made_at: int | None
    reschedule_for: int
    reschedule_by: str
    last_end_scheduled_for: int
    last_end_started_at: int | None
    last_end_at: int | None
    last_end_id: bytes
    last_success_scheduled_for: int
    last_success_started_at: int | None
    last_success_at: int | None
    last_success_id: bytes
    other_success_scheduled_for: int
    other_success_started_at: int | None
    other_success_at: int | None
    other_success_id: bytes
    narrowed_at: int | None
    is_needed: int


def due(
    connection: sqlite3.Connection,
    definitions: FileDefinitions,
    scope: NodeScope,
    limit: int,
    by: datetime | None,
    clock: int,
) -> Batch:
    """Return up to `limit` due jobs of the scope, read at one moment, which is `clock` by the store's clock."""
    until = clock if by is None else micros(by)
    refused = definitions.refused()
    asked = {
        "until_at": by or rows.moment(clock),
        "knows_all": not scope.unknown,
        "unknown": scope.unknown,
        "reads_all": refused == "[]",
        "refused": refused,
        "limit": limit,
    }
    jobs: list[_JobRow] = []
    for needs in scope.met:
        jobs += _job_rows(connection, Q.due_jobs(needs=needs, **asked))
    if len(scope.met) > 1:
        jobs.sort(key=_LONGEST_WAITING)
        del jobs[limit:]
    snapshots = _snapshots(connection, definitions, jobs, clock, until)
    return Batch(rows.moment(until), snapshots, new_token(), len(jobs) == limit, clock < until)


def look(
    connection: sqlite3.Connection, definitions: FileDefinitions, job_ids: Collection[str], clock: int
) -> dict[str, JobSnapshot]:
    """Return the snapshots of the jobs that exist, due or not, read at one moment."""
    jobs = _job_rows(connection, Q.look_at_jobs(job_ids=job_ids))
    seen = {snapshot.job_id: snapshot for snapshot in _snapshots(connection, definitions, jobs, clock, clock)}
    return {id_: seen[id_] for id_ in job_ids if id_ in seen}


def ahead(connection: sqlite3.Connection, now: int, scope: NodeScope) -> tuple[Ahead, bool]:
    """Return the earliest `wake_at` and `ready_at` of the scope after now, and whether limits hold."""
    asked = {"now": rows.moment(now)}
    wakes = [row["wake_at"] for needs in scope.met for row in fetch(connection, Q.next_wake(needs=needs, **asked))]
    ready = [row["ready_at"] for needs in scope.met for row in fetch(connection, Q.next_ready(needs=needs, **asked))]
    [counts] = fetch(connection, Q.count_needs())
    texts = fetch(connection, Q.all_needs()) if counts["count"] != scope.seen else ()
    answer = Ahead(
        now=rows.moment(now),
        wake_at=min(filter(None, wakes), default=None),
        ready_at=min(ready, default=None),
        needs=tuple(row["text"] for row in texts),
        limit_changes=counts["limit_changes"],
    )
    return answer, counts["is_limited"]


def _job_rows(connection: sqlite3.Connection, query: Query) -> list[_JobRow]:
    return list(map(_JobRow._make, connection.execute(query.statement.sql, query.arguments)))


def _snapshots(
    connection: sqlite3.Connection, definitions: FileDefinitions, jobs: Sequence[_JobRow], clock: int, until: int
) -> list[JobSnapshot]:
    related = _RelatedRows(connection, jobs, clock, until)
    snapshots = []
    asked: dict[int, Asked] = {}
    for row in jobs:
        editions = _editions(connection, definitions, row)
        if editions is not None:
            pasts = _pasts(connection, definitions, row, editions, related) if row.job_key in related.requests else ()
            snapshot = _snapshot(row, editions, related, pasts)
            if editions[-1].rollout is not None:
                counts = carried_out(connection, trials(COLD, [(row.job_key, editions)]))
                snapshot = replace(snapshot, trial=counts[row.job_key])
            snapshots.append(snapshot)
            if depends_on := editions[-1].job.settings.depends_on:
                in_line = related.lines.get(row.job_key, EMPTY_LINE).waiting
                asked[row.job_key] = Asked(depends_on, [active.id for active in in_line])
    return _with_dependence(connection, jobs, snapshots, asked, clock) if asked else snapshots


def _with_dependence(
    connection: sqlite3.Connection,
    jobs: Sequence[_JobRow],
    snapshots: Sequence[JobSnapshot],
    asked: Mapping[int, Asked],
    clock: int,
) -> list[JobSnapshot]:
    """Return the snapshots with what the plans of these jobs must know of others."""
    known = carried_out(connection, dependence(COLD, asked, rows.moment(clock)))
    by_id = {row.id: known[row.job_key] for row in jobs if row.job_key in known}
    return [
        replace(snapshot, dependence=by_id[snapshot.job_id]) if snapshot.job_id in by_id else snapshot
        for snapshot in snapshots
    ]


def _pasts(
    connection: sqlite3.Connection,
    definitions: FileDefinitions,
    row: _JobRow,
    editions: tuple[Edition, ...],
    related: "_RelatedRows",
) -> tuple[Past, ...]:
    """Return the old definitions that requests and the open backfill need beside the editions."""
    asked = pasts_asked(related.asked(row.job_key)[:PLAN_LIMIT], related.backfill(row.job_key)[0], editions)
    return tuple(_past(connection, definitions, row, each) for each in asked)


def _past(connection: sqlite3.Connection, definitions: FileDefinitions, row: _JobRow, asked: PastAsked) -> Past:
    known = {"job_key": row.job_key, "oldest_version": row.oldest_version, "limit": PAST_LIMIT + 1}
    if asked.newest_first:
        query = COLD.newest_past_versions(**known, left_after=asked.after, left_through=asked.through)
    else:
        query = Q.past_versions(**known, fill_after=asked.after)
    versions = []
    for past in fetch(connection, query):
        compiled = definitions.get(connection, row.job_key, past["version"])
        versions.append((past["in_force_after"], None if compiled is None else compiled.edition))
    return past_of(asked, versions)


class _RelatedRows:
    """The rows of other tables that belong to the jobs of one batch, read in one statement per table."""

    def __init__(self, connection: sqlite3.Connection, jobs: Sequence[_JobRow], clock: int, until: int) -> None:
        job_keys = [row.job_key for row in jobs]
        self.pauses = _by_job(connection, Q.pauses_of_jobs(job_keys=job_keys), shared.pause)
        self.adjustments = _by_job(connection, Q.adjustments_of_jobs(job_keys=job_keys), shared.adjustment)
        # A job that has retired by then shows all its requests.
        seen = [
            {"job_key": row.job_key, "until": until if row.retire_at is None or row.retire_at > until else _EVER}
            for row in jobs
        ]
        self.requests = _by_job(
            connection, Q.requests_of_jobs(seen=seen), lambda row: (shared.request(row), row["is_to_come"])
        )
        filling = [job for job, asked in self.requests.items() if any(map(shows_backfill, asked))]
        self._backfills = (
            carried_out(connection, open_backfills(COLD, filling, rows.moment(until))) if filling else _NO_BACKFILLS
        )
        now = rows.moment(clock)
        paused = {job for job, pauses in self.pauses.items() if any(pause.holds(now) for pause in pauses)}
        self.lines = lines(connection, json.dumps(job_keys), clock, paused)

    def asked(self, job: int) -> list[Request]:
        """Return the open requests that have come, and one more than a plan sees if there are more."""
        return [request for request, is_to_come in self.requests.get(job, ()) if not is_to_come]

    def backfill(self, job: int) -> tuple[OpenBackfill | None, bool]:
        """Return the first open backfill, and whether others wait behind it."""
        return self._backfills.get(job, (None, False))

    def next_request_at(self, job: int) -> datetime | None:
        """Return when the first request comes that is still to come."""
        return next((request.due_at for request, is_to_come in self.requests.get(job, ()) if is_to_come), None)


def _by_job(connection: sqlite3.Connection, query: Query, read: Callable[[Row], T]) -> dict[int, list[T]]:
    by_job: dict[int, list[T]] = defaultdict(list)
    for row in fetch(connection, query):
        by_job[row["job_key"]].append(read(row))
    return by_job


def _editions(connection: sqlite3.Connection, definitions: FileDefinitions, row: _JobRow) -> tuple[Edition, ...] | None:
    """Return the editions of the job. None if one is unreadable: then the job is parked."""
    job, newest, oldest = row.job_key, row.version, row.oldest_version
    editions = []
    for version in range(oldest, newest + 1):
        compiled = definitions.get(connection, job, version)
        if compiled is None:
            definitions.refuse_editions(job, newest, version)
            return None
        editions.append(compiled.edition)
    return tuple(editions)


def _snapshot(
    row: _JobRow, editions: tuple[Edition, ...], related: _RelatedRows, pasts: tuple[Past, ...]
) -> JobSnapshot:
    job = row.job_key
    line = related.lines.get(job, EMPTY_LINE)
    requests = related.asked(job)
    backfill, more_backfills = related.backfill(job)
    return JobSnapshot(
        job_id=row.id,
        revision=row.revision,
        woken=row.woken,
        watermark=rows.moment(row.watermark),
        editions=editions,
        wake_at=rows.moment_or_none(row.wake_at),
        retire_at=rows.moment_or_none(row.retire_at),
        pauses=tuple(related.pauses.get(job, ())),
        adjustments=tuple(related.adjustments.get(job, ())),
        reschedule=_reschedule(row),
        requests=tuple(without_backfills(requests[:PLAN_LIMIT])),
        more_requests=len(requests) > PLAN_LIMIT,
        busy=line.busy,
        busy_count=line.busy_count,
        waiting=line.waiting,
        waiting_count=line.waiting_count,
        last_end=_ended(row.last_end_scheduled_for, row.last_end_started_at, row.last_end_at, row.last_end_id),
        last_success=_ended(
            row.last_success_scheduled_for, row.last_success_started_at, row.last_success_at, row.last_success_id
        ),
        awaited=line.awaited,
        pasts=pasts,
        other_success=_ended(
            row.other_success_scheduled_for, row.other_success_started_at, row.other_success_at, row.other_success_id
        ),
        narrowed_at=rows.moment_or_none(row.narrowed_at),
        next_request_at=related.next_request_at(job),
        is_needed=row.is_needed == 1,
        backfill=backfill,
        more_backfills=more_backfills,
    )


def _reschedule(row: _JobRow) -> Rescheduled | None:
    if row.reschedule_made_at is None:
        return None
    return Rescheduled(rows.moment(row.reschedule_made_at), rows.moment(row.reschedule_for), row.reschedule_by)


def _ended(scheduled_for: int, started_at: int | None, ended_at: int | None, id_: bytes) -> Ended | None:
    if ended_at is None:
        return None
    times = rows.moment(scheduled_for), rows.moment_or_none(started_at), rows.moment(ended_at)
    return Ended(*times, rows.id_text(id_))


# ------------------------------------------------------------------------------------------------------ the commit


def commit_plans(
    transaction: Transaction, definitions: FileDefinitions, batch: Batch, plans: Sequence[Plan]
) -> list[Commit]:
    """Write each whole plan whose job still has the revision of the snapshot.

    Creations, spans and watermarks of all plans go down in one go each; nothing reads them in between.
    """
    if batch.is_ahead and transaction.now < micros(batch.now):
        return [Commit.STALE] * len(plans)
    seen = {snapshot.job_id: snapshot for snapshot in batch.snapshots}
    asked = json.dumps([plan.job_id for plan in plans])
    states = {state[0]: state for state in transaction.execute(Q.states_of_jobs, (asked,))}
    gathered = _PlanRows(transaction, definitions, batch.token)
    # Of two plans of one job the second comes from a snapshot that the first has made old.
    answers = [gathered.add(plan, states.pop(plan.job_id, None), seen.get(plan.job_id)) for plan in plans]
    gathered.write()
    return answers


def set_aside(
    transaction: Transaction, definitions: FileDefinitions, snapshot: JobSnapshot, reason: str
) -> CommitAnswer:
    """Look at the job of a refused plan again in a minute, and say why, unless it has changed since."""
    now = rows.moment(transaction.now)
    aside = Batch(now, (snapshot,), new_token())
    [answer] = commit_plans(transaction, definitions, aside, [put_off(snapshot, now)])
    if answer is not Commit.COMMITTED:
        return answer
    transaction.run(Q.park_plan(reason=PLAN_REFUSED.format(reason=reason), job_id=snapshot.job_id))
    return CommitFailed(reason)


class _PlanRows:
    """The rows of one batch of plans, gathered until all of them are known."""

    def __init__(self, transaction: Transaction, definitions: FileDefinitions, token: int) -> None:
        self._transaction, self._definitions, self._token = transaction, definitions, token
        self._creations: list[Columns] = []
        self._needs: set[str] = set()
        self._keeping: list[Creation] = []
        self._spans: list[Columns] = []
        self._moves: list[Columns] = []
        self._editions: list[Columns] = []
        self._awaiting: list[Columns] = []
        self._telling: list[Columns] = []
        self._coming: list[JobComing] = []

    def add(self, plan: Plan, state: Columns | None, snapshot: JobSnapshot | None) -> Commit:
        """Add the rows of a plan; nothing if it is stale."""
        if state is None:
            return Commit.STALE
        _, job, revision, watermark, version, oldest, token = state
        if revision != plan.revision:
            # The token says that this very plan was written before and its answer was lost.
            return Commit.COMMITTED if token == self._token else Commit.STALE
        through, now = micros(plan.watermark), self._transaction.now
        assert through >= watermark, f"{plan.job_id}: the watermark moved back"
        if plan.turned is not None:
            carried_out(self._transaction.connection, turning(COLD, job, plan.turned, rows.moment(now)))
        if plan.cancels_before is not None:
            before = {"before_at": plan.cancels_before, "reason": plan.cancels_because}
            self._transaction.run(Q.ask_all_to_cancel(job_key=job, **before))
        if plan.filling is not None:
            carried_out(self._transaction.connection, write_filling(COLD, job, plan.filling, rows.moment(now)))
        if plan.creations:
            self._creations += [
                creation_columns(job, self._defining(job, creation.version), creation, now)
                for creation in plan.creations
            ]
            # An occurrence with its own queue has its own needs.
            self._needs.update(columns[_NEEDS] for columns in self._creations[-len(plan.creations) :])
            self._needs.discard(self._defining(job, plan.creations[0].version).needs)
            if plan.answers:
                self._keeping += [made for made in plan.creations if made.keeps and made.status not in ENDED]
        self._spans += [
            (job, span.version, STATUS_CODE[span.status], span.why, span.detail, micros(span.after),
             micros(span.through), span.count)
            for span in plan.spans
        ]  # fmt: skip
        wake_at, next_run = micros_or_never(plan.wake_at), micros_or_never(plan.next_run)
        self._moves.append((through, plan.woken, wake_at, now, next_run, self._token, plan.woken, job))
        if oldest != version:
            self._editions.append((job,))
        if plan.awaits_ends:
            self._awaiting.append((job,))
        if plan.lifts:
            self._transaction.run(COLD.lift_late(job_key=job))
            # One in a queue of its own may have needs that only the lane for late ones had.
            self._transaction.run(COLD.add_needs_of_active(job_key=job))
        if plan.tells:
            self._telling.append((now, plan.job_id))
        if plan.coming is not None:
            self._coming.append(JobComing(job, plan.job_id, plan.coming))
        if plan.releases or plan.endings or plan.cancels or plan.answers:
            self._change_others(job, plan)
        # The revision proves that the facts are those of the snapshot: tables without rows then need no statement.
        if snapshot is None or plan.used or snapshot.adjustments:
            self._settle_adjustments(job, plan)
        if snapshot is None or snapshot.pauses:
            self._transaction.run(Q.forget_pauses(job_key=job, watermark=plan.watermark))
        if plan.rescheduled:
            self._transaction.run(Q.forget_reschedule(job_key=job))
        if plan.narrowed:
            self._transaction.run(Q.forget_narrowing(job_key=job))
        self._transaction.rang = True
        return Commit.COMMITTED

    def _defining(self, job: int, version: int) -> Job:
        """Return the definition that an occurrence is created by: all of a plan have the same, unless one is tried."""
        compiled = self._definitions.get(self._transaction.connection, job, version)
        assert compiled is not None, f"job {job}: planned by version {version}, which cannot be read"
        return compiled.job

    def write(self) -> None:
        """Write the gathered rows."""
        many = self._transaction.executemany
        # In the order of claims: rows that are claimed together are then on the same pages of the file.
        self._creations.sort(key=_IN_LINE)
        many(Q.create_occurrence, self._creations)
        many(Q.add_needs, [(text,) for text in self._needs])
        for creation in self._keeping:
            self._keep(creation)
        many(Q.add_span, self._spans)
        many(Q.await_ends, self._awaiting)
        many(Q.move_watermark, self._moves)
        many(Q.tell_dependents, self._telling)
        many(Q.forget_editions, self._editions)
        if self._coming:
            self._write_coming()

    def _write_coming(self) -> None:
        """Write the runs to come that jobs with a horizon show."""
        before = fetch(self._transaction.connection, coming.written_before(COLD, self._coming))
        for statement, changed in coming.changes(COLD, before, self._coming):
            self._transaction.executemany(statement.sql, [statement(**row).arguments for row in changed])

    def _keep(self, creation: Creation) -> None:
        """Copy the results that a replay keeps from its original. If they are deleted, cancel it."""
        run = self._transaction.run
        if run(Q.begin_kept(occurrence_id=creation.id)):
            kept = run(
                Q.keep_runs(
                    occurrence_id=creation.id, original_occurrence_id=creation.replay_of or "", tasks=creation.keeps
                )
            )
            if kept < len(creation.keeps):
                made = rows.id_bytes(creation.id)
                end(self._transaction, self._definitions, made, OccurrenceStatus.CANCELED, NOTHING_TO_KEEP)

    def _change_others(self, job: int, plan: Plan) -> None:
        """Release, end and cancel existing occurrences, and delete answered requests."""
        run, now = self._transaction.run, rows.moment(self._transaction.now)
        for id_ in plan.releases:
            run(Q.release_occurrence(occurrence_id=id_, now=now))
        for ending in plan.endings:
            reason = f"{ending.why} {ending.detail}".strip()
            end(self._transaction, self._definitions, rows.id_bytes(ending.id), ending.status, reason)
        for id_ in plan.cancels:
            run(Q.ask_to_cancel(occurrence_id=id_, reason=plan.cancels_because))
        for answer in plan.answers:
            run(Q.forget_request(job_key=job, cause=answer.cause, key=answer.key))

    def _settle_adjustments(self, job: int, plan: Plan) -> None:
        for used in plan.used:
            self._transaction.run(Q.use_adjustment(job_key=job, instant_at=used.at))
        self._transaction.run(Q.forget_adjustments(job_key=job, watermark=plan.watermark))


def creation_columns(job: int, definition: Job, creation: Creation, now: int) -> Columns:
    """Return the columns of a new occurrence, with `NEVER` and `NO_TEXT` instead of None."""
    own, overrides, payload = definition.settings, None, None
    if creation.overrides is not None or creation.payload is not None:
        of_its_own = own_overrides(creation, own)
        overrides, payload = write_overrides(of_its_own)
        own = own.overridden_by(of_its_own)
    instant, status = creation.scheduled_for, creation.status
    scheduled_for = micros(instant)
    needs = definition.needs if own is definition.settings else needs_in(definition.labels, own.queue)
    line_at = scheduled_for if creation.line_at is instant else micros(creation.line_at)
    ready_at = scheduled_for if creation.ready_at is instant else micros(creation.ready_at)
    return (
        rows.new_id(creation.id),
        job,
        creation.version,
        scheduled_for,
        STATUS_CODE[status],
        CAUSE_CODE[creation.cause],
        1 if creation.late else 0,
        micros_or_never(creation.covers_after),
        scheduled_for if creation.covers_through is instant else micros(creation.covers_through),
        line_at,
        ready_at,
        now if status in ENDED else NEVER,
        NO_TEXT if overrides is None else overrides,
        NO_TEXT if payload is None else payload,
        NO_TEXT if creation.replay_of is None else creation.replay_of,
        f"{creation.why}, {creation.detail}" if creation.detail else str(creation.why),
        now,
        now,
        own.priority,
        needs if not creation.in_lane else late_needs(needs),
        1 if ready_at > now else 0,
        rows.timeout_or_never(own.execution_timeout),
    )


def end(
    transaction: Transaction, definitions: FileDefinitions, id_: bytes | None, status: OccurrenceStatus, reason: str
) -> int | None:
    """End an occurrence and its runs without its owner and without success. Return its job, None if it had ended."""
    now = transaction.now
    ended = transaction.execute(Q.end_occurrence, (STATUS_CODE[status], now, reason, now, id_)).fetchone()
    if ended is None:
        return None
    job, scheduled_for, started_at, seq, version, number, reports = ended
    if reports:
        transaction.execute(Q.owe_reports, (f"[{seq}]",))
    if number:
        _close_runs(transaction, definitions, seq, job, version)
    transaction.execute(Q.note_end, (started_at, scheduled_for, started_at, now, id_, job))
    return int(job)


def _close_runs(transaction: Transaction, definitions: FileDefinitions, seq: int, job: int, version: int) -> None:
    """End the runs of an occurrence that waited for a retry, or for a node to go on with it."""
    compiled = definitions.get(transaction.connection, job, version)
    runs = {row["task"]: shared.run_state(row) for row in fetch(transaction.connection, COLD.runs_of(handles=[seq]))}
    ended = closed(None if compiled is None else compiled.rules, runs, rows.moment(transaction.now))
    transaction.executemany(Q.write_run, [rows.run_columns(seq, task, run) for task, run in ended.items()])
