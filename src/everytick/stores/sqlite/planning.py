"""The planner's verbs: snapshots of due jobs, and plans that are written whole or not at all."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import TypeVar

from everytick.domain.backfills import OpenBackfill
from everytick.domain.decisions import Creation, Plan, put_off
from everytick.domain.job import Job
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
from everytick.stores.sql.rows import EMPTY_LINE
from everytick.stores.sql.statements import Query, Row
from everytick.stores.sql.verbs import coming_runs
from everytick.stores.sql.verbs.backfills import open_backfills, write_filling
from everytick.stores.sql.verbs.coming_into_force import come_into_force
from everytick.stores.sql.verbs.coming_runs import JobComing
from everytick.stores.sql.verbs.depending import Asked, dependence
from everytick.stores.sql.verbs.trials import trials
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.active import lines
from everytick.stores.sqlite.definition_cache import FileDefinitions
from everytick.stores.sqlite.queries import COLD, Q, carried_out, fetch, selected
from everytick.stores.sqlite.row_statements import in_order
from everytick.stores.sqlite.rows import Columns, micros
from everytick.stores.sqlite.rows_read import DueJob, PlannedJob
from everytick.stores.sqlite.rows_written import (
    CREATION_COLUMNS,
    creation_columns,
    move_columns,
    run_columns,
    span_columns,
)
from everytick.stores.sqlite.writer import Transaction
from everytick.stores.storing_rules import NOTHING_TO_KEEP

T = TypeVar("T")

_LONGEST_WAITING = attrgetter("wake_at", "id")

_NEEDS = CREATION_COLUMNS.index("needs")
_IN_LINE = itemgetter(*map(CREATION_COLUMNS.index, ("line_at", "id")))

_EVER = 2**62
"""After every moment that a request can name, in microseconds."""

_NO_BACKFILLS: dict[int, tuple[OpenBackfill, bool]] = {}


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
    jobs: list[DueJob] = []
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
    jobs = _job_rows(connection, Q.standing_by_id(job_ids=job_ids))
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


def _job_rows(connection: sqlite3.Connection, query: Query) -> list[DueJob]:
    return list(map(DueJob._make, selected(connection, query)))


def _snapshots(
    connection: sqlite3.Connection, definitions: FileDefinitions, jobs: Sequence[DueJob], clock: int, until: int
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
    jobs: Sequence[DueJob],
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
    row: DueJob,
    editions: tuple[Edition, ...],
    related: "_RelatedRows",
) -> tuple[Past, ...]:
    """Return the old definitions that requests and the open backfill need beside the editions."""
    asked = pasts_asked(related.asked(row.job_key)[:PLAN_LIMIT], related.backfill(row.job_key)[0], editions)
    return tuple(_past(connection, definitions, row, past) for past in asked)


def _past(connection: sqlite3.Connection, definitions: FileDefinitions, row: DueJob, asked: PastAsked) -> Past:
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

    def __init__(self, connection: sqlite3.Connection, jobs: Sequence[DueJob], clock: int, until: int) -> None:
        job_keys = [row.job_key for row in jobs]
        self.pauses = _by_job(connection, Q.pauses(job_keys=job_keys), shared.pause)
        self.adjustments = _by_job(connection, Q.adjustments(job_keys=job_keys), shared.adjustment)
        # A job that has retired by then shows all its requests.
        seen = [
            {"job_key": row.job_key, "until": until if row.retire_at is None or row.retire_at > until else _EVER}
            for row in jobs
        ]
        self.requests = _by_job(connection, Q.requests(seen=seen), lambda row: (shared.request(row), row["is_to_come"]))
        filling = [job for job, asked in self.requests.items() if any(map(shows_backfill, asked))]
        self._backfills = (
            carried_out(connection, open_backfills(COLD, filling, rows.moment(until))) if filling else _NO_BACKFILLS
        )
        self.lines = lines(connection, job_keys, rows.moment(clock))

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


def _editions(connection: sqlite3.Connection, definitions: FileDefinitions, row: DueJob) -> tuple[Edition, ...] | None:
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
    row: DueJob, editions: tuple[Edition, ...], related: _RelatedRows, pasts: tuple[Past, ...]
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
        stopped_at=rows.moment_or_none(row.stopped_at),
        next_request_at=related.next_request_at(job),
        is_needed=row.is_needed == 1,
        backfill=backfill,
        more_backfills=more_backfills,
    )


def _reschedule(row: DueJob) -> Rescheduled | None:
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
    query = Q.states_of_jobs(job_ids=[plan.job_id for plan in plans])
    states = {state.id: state for state in map(PlannedJob._make, selected(transaction.connection, query))}
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
        self._editions: list[Row] = []
        self._awaiting: list[Row] = []
        self._telling: list[Row] = []
        self._coming: list[JobComing] = []

    def add(self, plan: Plan, state: PlannedJob | None, snapshot: JobSnapshot | None) -> Commit:
        """Add the rows of a plan; nothing if it is stale."""
        if state is None:
            return Commit.STALE
        job = state.job_key
        if state.revision != plan.revision:
            # The token says that this very plan was written before and its answer was lost.
            return Commit.COMMITTED if state.plan_token == self._token else Commit.STALE
        through, now = micros(plan.watermark), self._transaction.now
        assert through >= state.watermark, f"{plan.job_id}: the watermark moved back"
        if plan.turned is not None:
            carried_out(self._transaction.connection, come_into_force(COLD, job, plan.turned, rows.moment(now)))
        if plan.cancels_before is not None:
            before = {"before_at": plan.cancels_before, "reason": plan.cancels_because}
            self._transaction.run(Q.ask_all_to_stop(job_key=job, **before))
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
                self._keeping += [
                    creation for creation in plan.creations if creation.keeps and creation.status not in ENDED
                ]
        self._spans += [span_columns(job, span) for span in plan.spans]
        self._moves.append(move_columns(job, plan, through, self._token, now))
        if state.oldest_version != state.version:
            self._editions.append({"job_key": job})
        if plan.awaits_ends:
            self._awaiting.append({"job_key": job})
        if plan.lifts:
            self._transaction.run(COLD.lift_late(job_key=job))
            # One in a queue of its own may have needs that only the lane for late ones had.
            self._transaction.run(COLD.add_needs_of_active(job_key=job))
        if plan.tells:
            self._telling.append({"job_id": plan.job_id, "now": rows.moment(now)})
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
        if plan.stopped_at is not None:
            self._transaction.run(Q.note_stop(job_key=job, stopped_at=plan.stopped_at))
        self._transaction.rang = True
        return Commit.COMMITTED

    def _defining(self, job: int, version: int) -> Job:
        """Return the definition that an occurrence is created by: all of a plan have the same, unless one is tried."""
        compiled = self._definitions.get(self._transaction.connection, job, version)
        assert compiled is not None, f"job {job}: planned by version {version}, which cannot be read"
        return compiled.job

    def write(self) -> None:
        """Write the gathered rows."""
        many, run_each = self._transaction.executemany, self._transaction.run_each
        # In the order of claims: rows that are claimed together are then on the same pages of the file.
        self._creations.sort(key=_IN_LINE)
        many(Q.create_occurrence.sql, self._creations)
        run_each(Q.add_needs, ({"text": text} for text in self._needs))
        for creation in self._keeping:
            self._keep(creation)
        many(Q.add_span.sql, self._spans)
        run_each(Q.mark_awaited, self._awaiting)
        many(Q.move_watermark.sql, self._moves)
        run_each(Q.tell_dependents, self._telling)
        run_each(Q.forget_editions, self._editions)
        if self._coming:
            self._write_coming()

    def _write_coming(self) -> None:
        """Write the runs to come that jobs with a horizon show."""
        before = fetch(self._transaction.connection, coming_runs.written_before(COLD, self._coming))
        for statement, changed in coming_runs.changes(COLD, before, self._coming):
            self._transaction.run_each(statement, changed)

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
                end(self._transaction, self._definitions, creation.id, OccurrenceStatus.CANCELED, NOTHING_TO_KEEP)

    def _change_others(self, job: int, plan: Plan) -> None:
        """Release, end and cancel existing occurrences, and delete answered requests."""
        run, now = self._transaction.run, rows.moment(self._transaction.now)
        for id_ in plan.releases:
            run(Q.release(occurrence_id=id_, now=now))
        for ending in plan.endings:
            reason = f"{ending.why} {ending.detail}".strip()
            end(self._transaction, self._definitions, ending.id, ending.status, reason)
        for id_ in plan.cancels:
            run(Q.ask_to_stop(occurrence_id=id_, reason=plan.cancels_because))
        for answer in plan.answers:
            run(Q.forget_request(job_key=job, cause=answer.cause, key=answer.key))

    def _settle_adjustments(self, job: int, plan: Plan) -> None:
        for used in plan.used:
            self._transaction.run(Q.use_adjustment(job_key=job, instant_at=used.at))
        self._transaction.run(Q.forget_adjustments(job_key=job, watermark=plan.watermark))


def end(
    transaction: Transaction, definitions: FileDefinitions, occurrence_id: str, status: OccurrenceStatus, reason: str
) -> None:
    """End an occurrence and its runs without its owner and without success, unless it has ended or a node runs it."""
    now = rows.moment(transaction.now)
    asked = Q.end_unowned(occurrence_id=occurrence_id, status=status, reason=reason, now=now)
    for ended in fetch(transaction.connection, asked):
        handle, job_key = ended["handle"], ended["job_key"]
        if ended["reports"]:
            transaction.run(Q.owe_reports(handles=[handle]))
        if ended["step_number"]:
            _close_runs(transaction, definitions, handle, job_key, ended["version"])
        times = {"scheduled_for": ended["scheduled_for"], "started_at": ended["started_at"], "now": now}
        transaction.run(Q.note_end(job_key=job_key, occurrence_id=occurrence_id, **times))


def _close_runs(transaction: Transaction, definitions: FileDefinitions, handle: int, job: int, version: int) -> None:
    """End the runs of an occurrence that waited for a retry, or for a node to go on with it."""
    compiled = definitions.get(transaction.connection, job, version)
    runs = {row["task"]: shared.run_state(row) for row in fetch(transaction.connection, COLD.runs_of(handles=[handle]))}
    ended = closed(None if compiled is None else compiled.rules, runs, rows.moment(transaction.now))
    rows_of_runs = [run_columns(handle, task, run) for task, run in ended.items()]
    Q.write_run.write(transaction.execute, in_order(rows_of_runs))
