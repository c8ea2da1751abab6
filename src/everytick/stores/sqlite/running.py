"""claim and commit_steps: one owner at a time, and every write of an owner carries its fence.

Two ways are second and faster. Their price in `bench/end_to_end_sqlite.py`, in processor time an occurrence:
`_first_successes`, which writes a first attempt that succeeded with its run, 64 µs with it and 74 without: 14 to 16 %.
`_good_ends`, which writes many good ends in one statement, 64 µs with it and 69 without: 7 %. It also hands the
interpreter's lock over once and not per row, which processor time does not show.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everytick.domain.codes import ATTEMPT_CODE, FIRST_ENDED, STATUS_CODE, STATUSES
from everytick.domain.decisions import Why
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus, may_move
from everytick.domain.steps import Row, Step, failed_at
from everytick.stores.base import Claim, Commit, NodeScope
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.bulk import Bulk, in_order
from everytick.stores.sqlite.claims import Found, begun, readable
from everytick.stores.sqlite.compiled import FileDefinitions
from everytick.stores.sqlite.planning import end
from everytick.stores.sqlite.queries import Q, fetch
from everytick.stores.sqlite.rows import NEVER, NO_TEXT, Columns, micros, micros_or_never
from everytick.stores.sqlite.writer import Transaction

if TYPE_CHECKING:
    from datetime import datetime

_COMPLETED = OccurrenceStatus.COMPLETED
_WELL = frozenset({OccurrenceStatus.COMPLETED, OccurrenceStatus.COMPLETED_WITH_ERRORS})
_RAN_WELL, _TRIED_WELL = RunStatus.SUCCESS, AttemptStatus.SUCCESS
_END_WELL, _FIRST_SUCCESSES, _FIRST_ATTEMPTS = map(Bulk, (Q.end_well, Q.write_first_successes, Q.write_first_attempts))
_HELD = (OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY)

# Places of columns in ready_occurrences.
_SEQ, _ID, _LINE_AT, _PRIORITY = 0, 3, 10, 11

_FEW = 8
"""Up to this many steps are written one by one."""

# The statuses of an owned occurrence: running, or waiting for a retry that its owner keeps.
_STEP_CODE = {
    status: code
    for status, code in STATUS_CODE.items()
    if status in _HELD or any(may_move(held, status) for held in _HELD)
}


def claim(
    transaction: Transaction,
    definitions: FileDefinitions,
    scope: NodeScope,
    limit: int,
    token: int,
) -> list[Claim]:
    """Give the node up to `limit` ready occurrences of its scope, by priority, then age."""
    now, node = transaction.now, scope.node
    ready = _ready(transaction, definitions, scope, limit)
    if not ready:
        return []
    began_at = rows.moment(now)
    handles = [row[_SEQ] for row, _ in ready]
    transaction.run(Q.own_occurrences(node=node, token=token, now=began_at, handles=handles))
    # A claim counts as a beat, so that no reaper takes it from a node that was silent for long.
    transaction.execute(Q.beat, (node, now))
    return begun(transaction.connection, definitions, ready, node, token, began_at)


def _ready(transaction: Transaction, definitions: FileDefinitions, scope: NodeScope, limit: int) -> Found:
    """Return the rows of ready occurrences. Repeat the query if a definition is unreadable."""
    wanted, unknown = scope.met, scope.unknown
    transaction.executemany(Q.come_of_age, [(needs, transaction.now) for needs in wanted])
    while True:
        refused = definitions.refused()
        asked = (
            int(not unknown),
            json.dumps(list(unknown)),
            int(refused == "[]"),
            refused,
            transaction.now,
            max(limit, 0),
        )
        found: list[Columns] = []
        for needs in wanted:
            found += transaction.execute(Q.ready_occurrences, (needs, *asked)).fetchall()
        if len(wanted) > 1:
            found.sort(key=lambda row: (-row[_PRIORITY], row[_LINE_AT], row[_ID]))
            found = found[: max(limit, 0)]
        legible = readable(transaction.connection, definitions, found)
        if len(legible) == len(found):
            return legible


# ------------------------------------------------------------------------------------------------------- the steps


class NotAllWritten(Exception):
    """Some step of a batch was stale or written before, so the batch is undone and looked at one by one."""


def commit_steps(
    transaction: Transaction, definitions: FileDefinitions, steps: Sequence[tuple[Claim, Step]]
) -> list[Commit]:
    """Write each step whose claim still has the fence and token of the occurrence.

    Nearly always all of them hold: then the number of rows that changed says so, and
    nothing is read before. Else the batch is undone, and begun again behind a savepoint.
    """
    if not transaction.is_alone:
        _write(transaction, steps)
        _hold_given_back(transaction, definitions, steps)
        return [Commit.COMMITTED] * len(steps)
    asked = str([claim.handle for claim, _ in steps])
    held = {row[0]: _Held(*row[1:]) for row in transaction.execute(Q.fences, (asked,))}
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
    asked = {"handles": [handle for handle, _ in given_back], "now": rows.moment(transaction.now)}
    for row in fetch(transaction.connection, Q.retired_of(**asked)):
        id_ = rows.id_bytes(row["occurrence_id"])
        end(transaction, definitions, id_, OccurrenceStatus.CANCELED, Why.REMOVED)
        transaction.execute(Q.wake_job, (1, transaction.now, row["job_key"]))
    transaction.run(Q.hold_given_back(**asked))


def commit_new(transaction: Transaction, claim: Claim, step: Step) -> bool:
    """Write a step and return True. Return False and write nothing if it is stale or was written before."""
    row = transaction.execute(Q.fences, (f"[{claim.handle}]",)).fetchone()
    _, is_new = _judged(None if row is None else _Held(*row[1:]), claim, step)
    if is_new:
        _write(transaction, [(claim, step)])
    return is_new


@dataclass(slots=True)
class _Held:
    """The state that a step's condition reads, updated within a batch: it may have two steps of one occurrence."""

    fence: int
    token: int
    number: int
    status: int


def _judged(held: _Held | None, claim: Claim, step: Step) -> tuple[Commit, bool]:
    """Return the answer to a step, and whether it is to be written."""
    if held is None or held.token != claim.key.token:
        return Commit.STALE, False
    if held.fence != claim.fence:
        # An end raises the fence and keeps the number: its repeat finds its own effect.
        again = held.status >= FIRST_ENDED and held.fence == claim.fence + 1 and held.number == step.number
        return Commit.COMMITTED if again else Commit.STALE, False
    if step.number <= held.number:
        return Commit.COMMITTED, False
    before, after = STATUSES[held.status], step.after.status
    assert after is before or may_move(before, after), f"{claim.occurrence.id}: {before} cannot become {after}"
    held.number, held.status = step.number, STATUS_CODE[after]
    held.fence += step.end is not None
    return Commit.COMMITTED, True


def _write(transaction: Transaction, steps: Sequence[tuple[Claim, Step]]) -> None:
    """Write all of these steps. Raise if one is stale: the caller then rolls back.

    What ends well at the first attempt, as most do, is gathered into few long statements.
    """
    writing = _Writing(transaction.now, len(steps))
    # Of several steps of one occurrence the last must be written last.
    may_be_plain = len({claim.handle for claim, _ in steps}) == len(steps)
    for claim, step in steps:
        if step.end is None:
            writing.advance(claim, step, may_be_plain=may_be_plain)
        else:
            writing.end(claim, step, may_be_plain=may_be_plain)
    writing.finish(transaction)
    if writing.written != len(steps):
        raise NotAllWritten


class _Writing:
    """The rows of one batch of steps, gathered until all of them are known."""

    def __init__(self, now: int, count: int) -> None:
        self._now = now
        # A long statement takes as long to begin as a few short ones to be done.
        self._is_many = count > _FEW
        self.written = 0
        self._advances: list[Columns] = []
        self._ends: list[Columns] = []
        self._runs: list[Columns] = []
        self._attempts: list[Columns] = []
        self._good_ends: list[Columns] = []
        self._first_successes: list[Columns] = []
        self._last_ends: dict[str, int] = {}
        self._more_ends: dict[str, int] = {}
        self._failures: dict[str, str] = {}
        self._failed_at: dict[str, datetime] = {}
        self._last_good_ends: dict[str, int] = {}
        self._good_ends_before: dict[str, int] = {}
        self._wakes: list[int] = []
        self._owed: list[int] = []
        self._rings = False

    def advance(self, claim: Claim, step: Step, *, may_be_plain: bool) -> None:
        """Take a step that is not the last."""
        self._advances.append(_advanced(claim, step, self._now))
        self._add_rows(claim, step, NEVER, may_be_plain=may_be_plain)
        if step.resume_at is not None:
            self._wakes.append(claim.handle)
        self._rings |= step.resume_at is not None or step.release

    def end(self, claim: Claim, step: Step, *, may_be_plain: bool) -> None:
        """Take the last step of an occurrence."""
        after, handle, job_id = step.after, claim.handle, claim.header.job_id
        assert after.ended_at is not None, f"{claim.occurrence.id} has ended and does not say when"
        ended_at = micros(after.ended_at)
        self._add_rows(claim, step, ended_at, may_be_plain=may_be_plain)
        if job_id in self._last_ends:
            self._more_ends[job_id] = self._more_ends.get(job_id, 0) + 1
        self._last_ends[job_id] = handle
        status = after.status
        if status is _COMPLETED or status in _WELL:
            if job_id in self._last_good_ends:
                self._good_ends_before[job_id] = self._last_good_ends[job_id]
            self._last_good_ends[job_id] = handle
        if status is not _COMPLETED and (failure := step.failure) is not None:
            self._failures[job_id] = failure
        self._wakes.append(handle)
        if claim.header.rules.reports:
            self._owed.append(handle)
        if self._is_many and status is _COMPLETED and after.error is None and after.lost == claim.life.lost:
            self._good_ends.append((*claim.key, step.number, ended_at))
        else:
            self._ends.append(_ended(claim, step, ended_at, self._now))

    def _add_rows(self, claim: Claim, step: Step, ended_at: int, *, may_be_plain: bool) -> None:
        """Add the task rows of a step. `ended_at` is when the occurrence ended, if it did."""
        handle, end = claim.handle, step.after.ended_at
        for row in step.rows:
            over = ended_at if row.ended_at is end and end is not None else micros_or_never(row.ended_at)
            if may_be_plain and _is_first_success(row):
                result = row.run.result
                text = NO_TEXT if result is None else result.text
                began = micros_or_never(row.started_at)
                self._first_successes.append((handle, row.task, began, over, text))
            else:
                self._add_row(handle, row, over)
        if (failed := failed_at(step.rows)) is not None:
            job_id = claim.header.job_id
            self._failed_at[job_id] = max(self._failed_at.get(job_id, failed), failed)

    def _add_row(self, handle: int, row: Row, ended_at: int) -> None:
        columns = rows.run_columns(handle, row.task, row.run)
        self._runs.append(columns)
        if row.attempt is not None:
            # Mostly the run's last attempt, whose start is in the run's columns already.
            began = row.started_at
            started_at = columns[8] if began is row.run.attempt_started_at else micros_or_never(began)
            error = NO_TEXT if row.error is None else row.error
            code = ATTEMPT_CODE[row.attempt]
            self._attempts.append((row.task, row.number, code, started_at, ended_at, error, handle))

    def finish(self, transaction: Transaction) -> None:
        """Write the gathered rows."""
        execute, many = transaction.execute, transaction.executemany
        self.written += many(Q.advance_occurrence, self._advances).rowcount if self._advances else 0
        self.written += many(Q.end_owned, self._ends).rowcount if self._ends else 0
        self.written += _END_WELL.write(execute, in_order(self._good_ends), self._now)
        many(Q.write_run, self._runs)
        many(Q.write_attempt, self._attempts)
        successes = in_order(self._first_successes)
        _FIRST_SUCCESSES.write(execute, successes)
        _FIRST_ATTEMPTS.write(execute, successes)
        if self._owed:
            execute(Q.owe_reports, (str(self._owed),))
        self._tell_jobs(transaction)

    def _tell_jobs(self, transaction: Transaction) -> None:
        """Set the last end and last success of each job, and wake it for each awaited end or parked retry."""
        execute, last, good = transaction.execute, self._last_ends, self._last_good_ends
        if self._good_ends_before:
            execute(Q.note_last_successes, (str(list(self._good_ends_before.values())),))
        if last != good:
            execute(Q.note_last_ends, (str(list(last.values())),))
            execute(Q.note_last_successes, (str(list(good.values())),))
        elif self._is_many:
            execute(Q.note_last_good_ends, (str(list(last.values())),))
        else:
            transaction.executemany(Q.note_good_end, [(handle, handle) for handle in last.values()])
        transaction.executemany(Q.count_runs, [(count, job_id) for job_id, count in self._more_ends.items()])
        transaction.executemany(Q.note_failure, [(text, job_id) for job_id, text in self._failures.items()])
        transaction.executemany(Q.note_failed_attempt, [(micros(at), job_id) for job_id, at in self._failed_at.items()])
        woken = self._wake(transaction)
        transaction.rang |= self._rings or woken > 0

    def _wake(self, transaction: Transaction) -> int:
        """Return how many jobs were woken."""
        if self._is_many:
            return int(transaction.execute(Q.wake_jobs_of, (self._now, str(self._wakes))).rowcount)
        each = [(self._now, handle) for handle in self._wakes]
        return int(transaction.executemany(Q.wake_job_of, each).rowcount) if each else 0


def _is_first_success(row: Row) -> bool:
    """Tell whether the row says no more than that a task went well at once, with which result."""
    run = row.run
    return (
        row.number == 1
        and row.attempt is _TRIED_WELL
        and run.status is _RAN_WELL
        and run.attempts == 1
        and run.retries == 0
        and run.started_at is row.started_at
        and run.attempt_started_at is None
        and run.ended_at is row.ended_at
    )


def _advanced(claim: Claim, step: Step, now: int) -> Columns:
    """Return the columns of a step that is not the last."""
    after, number = step.after, step.number
    ready_at = micros_or_never(step.resume_at or after.ready_at)
    is_free = 1 if step.resume_at is not None or step.release else 0
    error = NO_TEXT if after.error is None else after.error
    superseded = 1 if step.superseded_by_next else 0
    return (
        _STEP_CODE[after.status], is_free, ready_at, is_free, ready_at, now, error, number, after.lost, superseded, now,
        *claim.key, number,
    )  # fmt: skip


def _ended(claim: Claim, step: Step, ended_at: int, now: int) -> Columns:
    """Return the columns of an end."""
    after, number = step.after, step.number
    error = NO_TEXT if after.error is None else after.error
    superseded = 1 if step.superseded_by_next else 0
    return (
        _STEP_CODE[after.status], micros_or_never(after.ready_at), ended_at, error, number, after.lost, superseded,
        now, *claim.key, number,
    )  # fmt: skip
