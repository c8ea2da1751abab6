"""claim and commit_steps: one owner at a time, and every write of an owner carries its fence."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everytick.domain.decisions import Why
from everytick.domain.statuses import ENDED, WELL, OccurrenceStatus, may_move
from everytick.domain.steps import RunRow, Step, failed_at
from everytick.stores.base import Claim, Commit, NodeScope
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.claims import HANDLE, ReadableRows, begun, not_plain, place_in_line
from everytick.stores.sqlite.definition_cache import FileDefinitions
from everytick.stores.sqlite.planning import end
from everytick.stores.sqlite.queries import Q, fetch, selected
from everytick.stores.sqlite.reading_claims import claims, readable
from everytick.stores.sqlite.row_statements import in_order
from everytick.stores.sqlite.rows import NEVER, Columns, micros, micros_or_never
from everytick.stores.sqlite.rows_written import advance_columns, attempt_columns, end_columns, run_columns
from everytick.stores.sqlite.writer import Transaction

if TYPE_CHECKING:
    from datetime import datetime


def claim(
    transaction: Transaction,
    definitions: FileDefinitions,
    scope: NodeScope,
    limit: int,
    token: int,
) -> list[Claim] | None:
    """Give the node up to `limit` ready occurrences of its scope, by priority, then age. None: a limit holds."""
    began_at, node = rows.moment(transaction.now), scope.node
    ready = _ready(transaction, definitions, scope, limit)
    if not ready:
        [limits] = fetch(transaction.connection, Q.limits_hold())
        return None if limits["is_limited"] else []
    handles = [row[HANDLE] for row, _ in ready]
    transaction.run(Q.own_occurrences(node=node, token=token, now=began_at, handles=handles))
    # A claim counts as a beat, so that no reaper takes it from a node that was silent for long.
    transaction.run(Q.beat(node=node, now=began_at))
    others = not_plain(ready)
    read_again = claims(transaction.connection, definitions, others) if others else ()
    return begun(ready, {claim.handle: claim for claim in read_again}, node, token, began_at)


def _ready(transaction: Transaction, definitions: FileDefinitions, scope: NodeScope, limit: int) -> ReadableRows:
    """Return the rows of ready occurrences. Repeat the query if a definition is unreadable."""
    wanted, now = scope.met, rows.moment(transaction.now)
    transaction.run_each(Q.release_early, [{"needs": needs, "now": now} for needs in wanted])
    while True:
        refused = definitions.refused()
        asked = {
            "knows_all": not scope.unknown,
            "unknown": scope.unknown,
            "reads_all": refused == "[]",
            "refused": refused,
            "now": now,
            "limit": max(limit, 0),
        }
        ready: list[Columns] = []
        for needs in wanted:
            ready += selected(transaction.connection, Q.ready_occurrences(needs=needs, **asked))
        if len(wanted) > 1:
            ready.sort(key=place_in_line)
            ready = ready[: max(limit, 0)]
        legible = readable(transaction.connection, definitions, ready)
        if len(legible) == len(ready):
            return legible


# ------------------------------------------------------------------------------------------------------- the steps


class NotAllWritten(Exception):
    """A step of the batch was stale or written before. The batch is undone, and its steps are judged one by one."""


def commit_steps(
    transaction: Transaction, definitions: FileDefinitions, steps: Sequence[tuple[Claim, Step]]
) -> list[Commit]:
    """Write each step whose claim still has the fence and token of the occurrence.

    Nearly always all claims hold. So the steps are written without a look first, and the number of rows that changed
    says whether they did; else the batch is undone, and begun again behind a savepoint.
    """
    if not transaction.is_alone:
        _write(transaction, steps)
        _hold_given_back(transaction, definitions, steps)
        return [Commit.COMMITTED] * len(steps)
    held = _held(transaction.connection, [claim.handle for claim, _ in steps])
    answers, new = [], []
    for claim, step in steps:
        answer, is_new = _judged(held.get(claim.handle), claim, step)
        answers.append(answer)
        if is_new:
            new.append((claim, step))
    _write(transaction, new)
    _hold_given_back(transaction, definitions, new)
    return answers


def _hold_given_back(
    transaction: Transaction, definitions: FileDefinitions, steps: Sequence[tuple[Claim, Step]]
) -> None:
    """Hold or end occurrences that were given back, if their job was paused, disabled or removed."""
    given_back = [(claim.handle, step) for claim, step in steps if step.release]
    if not given_back:
        return
    restored = [(handle, step.after.started_at) for handle, step in given_back if step.restores]
    unstarted = [handle for handle, started_at in restored if started_at is None]
    transaction.run(Q.forget_claims(unstarted=unstarted, handles=[handle for handle, _ in restored]))
    asked: dict[str, Any] = {"handles": [handle for handle, _ in given_back], "now": rows.moment(transaction.now)}
    for row in fetch(transaction.connection, Q.retired_of(**asked)):
        end(transaction, definitions, row["occurrence_id"], OccurrenceStatus.CANCELED, Why.REMOVED)
        transaction.run(Q.wake_job(job_key=row["job_key"], now=asked["now"]))
    transaction.run(Q.hold_given_back(**asked))


def commit_new(transaction: Transaction, claim: Claim, step: Step) -> bool:
    """Write a step and return True. Return False and write nothing if it is stale or was written before."""
    held = _held(transaction.connection, [claim.handle])
    _, is_new = _judged(held.get(claim.handle), claim, step)
    if is_new:
        _write(transaction, [(claim, step)])
    return is_new


@dataclass(slots=True)
class _Held:
    """The state that a step's condition reads, updated within a batch: it may have two steps of one occurrence."""

    fence: int
    token: int
    number: int
    status: OccurrenceStatus


def _held(connection: sqlite3.Connection, handles: Sequence[int]) -> dict[int, _Held]:
    """Return the state that the steps of these occurrences depend on, by handle."""
    return {
        row["handle"]: _Held(row["fence"], row["claim_token"], row["step_number"], row["status"])
        for row in fetch(connection, Q.step_marks(handles=handles))
    }


def _judged(held: _Held | None, claim: Claim, step: Step) -> tuple[Commit, bool]:
    """Return the answer to a step, and whether it is to be written."""
    if held is None or held.token != claim.key.token:
        return Commit.STALE, False
    if held.fence != claim.fence:
        # An end raises the fence and keeps the number: its repeat finds its own effect.
        again = held.status in ENDED and held.fence == claim.fence + 1 and held.number == step.number
        return Commit.COMMITTED if again else Commit.STALE, False
    if step.number <= held.number:
        return Commit.COMMITTED, False
    before, after = held.status, step.after.status
    assert after is before or may_move(before, after), f"{claim.occurrence.id}: {before} cannot become {after}"
    held.number, held.status = step.number, after
    held.fence += step.end is not None
    return Commit.COMMITTED, True


def _write(transaction: Transaction, steps: Sequence[tuple[Claim, Step]]) -> None:
    """Write all of these steps. Raise if one is stale: the caller then rolls back."""
    gathered = _StepRows(transaction.now)
    for claim, step in steps:
        if step.end is None:
            gathered.advance(claim, step)
        else:
            gathered.end(claim, step)
    gathered.write(transaction)
    if gathered.written != len(steps):
        raise NotAllWritten


class _StepRows:
    """The rows of one batch of steps, gathered into few long statements.

    Of several steps of one occurrence the last is written last: an end comes after the others, and
    the rows of an occurrence keep their order.
    """

    def __init__(self, now: int) -> None:
        self._now = now
        self.written = 0
        self._advances: list[Columns] = []
        self._ends: list[Columns] = []
        self._runs: list[Columns] = []
        self._attempts: list[Columns] = []
        self._last_ends: dict[str, int] = {}
        self._more_ends: dict[str, int] = {}
        self._failures: dict[str, str] = {}
        self._failed_at: dict[str, datetime] = {}
        self._good_ends: set[int] = set()
        # The last two successes of each job before its last end. The job keeps two, and its last end may be no success.
        self._earlier_successes: dict[str, list[int]] = {}
        self._wakes: list[int] = []
        self._owed: list[int] = []
        self._rings = False

    def advance(self, claim: Claim, step: Step) -> None:
        """Take a step that is not the last."""
        self._advances.append(advance_columns(claim, step, self._now))
        self._add_rows(claim, step, NEVER)
        if step.resume_at is not None:
            self._wakes.append(claim.handle)
        self._rings |= step.resume_at is not None or step.release

    def end(self, claim: Claim, step: Step) -> None:
        """Take the last step of an occurrence."""
        after, handle, job_id = step.after, claim.handle, claim.header.job_id
        assert after.ended_at is not None, f"{claim.occurrence.id} has ended and does not say when"
        ended_at = micros(after.ended_at)
        self._add_rows(claim, step, ended_at)
        if (before := self._last_ends.get(job_id)) is not None:
            self._more_ends[job_id] = self._more_ends.get(job_id, 0) + 1
            if before in self._good_ends:
                self._earlier_successes[job_id] = [*self._earlier_successes.get(job_id, [])[-1:], before]
        self._last_ends[job_id] = handle
        status = after.status
        if status in WELL:
            self._good_ends.add(handle)
        if status is not OccurrenceStatus.COMPLETED and (failure := step.failure) is not None:
            self._failures[job_id] = failure
        self._wakes.append(handle)
        self._rings |= claim.header.holds_place
        if claim.header.rules.reports:
            self._owed.append(handle)
        self._ends.append(end_columns(claim, step, ended_at))

    def _add_rows(self, claim: Claim, step: Step, ended_at: int) -> None:
        """Add the task rows of a step. `ended_at` is when the occurrence ended, if it did."""
        handle, end = claim.handle, step.after.ended_at
        for row in step.rows:
            over = ended_at if row.ended_at is end and end is not None else micros_or_never(row.ended_at)
            self._add_row(handle, row, over)
        if (failed := failed_at(step.rows)) is not None:
            job_id = claim.header.job_id
            self._failed_at[job_id] = max(self._failed_at.get(job_id, failed), failed)

    def _add_row(self, handle: int, row: RunRow, ended_at: int) -> None:
        run = run_columns(handle, row.task, row.run)
        self._runs.append(run)
        if (attempt := attempt_columns(handle, row, run, ended_at)) is not None:
            self._attempts.append(attempt)

    def write(self, transaction: Transaction) -> None:
        """Write the gathered rows."""
        execute, many = transaction.execute, transaction.executemany
        self.written += many(Q.advance_occurrence.sql, self._advances).rowcount if self._advances else 0
        self.written += Q.end_owned.write(execute, in_order(self._ends), self._now)
        Q.write_run.write(execute, in_order(self._runs))
        Q.write_attempt.write(execute, in_order(self._attempts))
        if self._owed:
            transaction.run(Q.owe_reports(handles=self._owed))
        self._tell_jobs(transaction)

    def _tell_jobs(self, transaction: Transaction) -> None:
        """Set the last end and last success of each job, and wake it for each awaited end or parked retry."""
        run, run_each = transaction.run, transaction.run_each
        earlier = self._earlier_successes.values()
        for handles in ([two[0] for two in earlier if len(two) > 1], [last[-1] for last in earlier]):
            if handles:
                run(Q.note_last_successes(handles=handles))
        if self._last_ends:
            run(Q.note_last_ends(handles=self._last_ends.values()))
        run_each(Q.count_runs, ({"job_id": job_id, "count": count} for job_id, count in self._more_ends.items()))
        run_each(Q.note_failure, ({"job_id": job_id, "error": text} for job_id, text in self._failures.items()))
        run_each(Q.note_failed_attempt, ({"job_id": job_id, "failed_at": at} for job_id, at in self._failed_at.items()))
        woken = run(Q.wake_jobs_of(handles=self._wakes, now=rows.moment(self._now))) if self._wakes else 0
        transaction.rang |= self._rings or woken > 0
