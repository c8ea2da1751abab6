"""The executor's and the reaper's verbs: one owner at a time, and every write of an owner carries its fence."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from everytick.domain.notes import Note
from everytick.domain.statuses import OccurrenceStatus, may_move
from everytick.domain.steps import OccurrenceSnapshot, RunState, Step, rules_of, snapshot_of
from everytick.stores.base import Claim, Commit, Orders
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.compiled import Definitions
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import (
    ATTEMPT_CODE,
    FIRST_END,
    STATUS_CODE,
    STATUSES,
    Columns,
    micros_or_none,
)
from everytick.stores.sqlite.writer import Transaction

_WELL = frozenset({OccurrenceStatus.COMPLETED, OccurrenceStatus.COMPLETED_WITH_ERRORS})
_AWAITING_RETRY = STATUS_CODE[OccurrenceStatus.AWAITING_RETRY]
_RUNNING = STATUS_CODE[OccurrenceStatus.RUNNING]

# Places of columns in occurrence_record; the last one is there for what is ready only.
_SEQ, _ID, _VERSION, _STATUS, _LINE_AT, _OWNER, _FENCE, _STARTED_AT = 0, 1, 3, 5, 10, 12, 13, 14
_UPDATED_AT, _NUMBER, _CLAIMED_AT, _JOB, _PRIORITY = 22, 23, 24, 27, 28


def claim(
    transaction: Transaction,
    definitions: Definitions,
    node: str,
    queues: Collection[str],
    limit: int,
    unknown: Collection[str],
) -> list[Claim]:
    """Give the node up to `limit` ready occurrences of these queues, by priority, then age."""
    now = transaction.now
    ready = _ready(transaction, definitions, queues, limit, unknown)
    if not ready:
        return []
    transaction.executemany(Q.own_occurrence, [(node, now, now, now, row[_SEQ]) for row in ready])
    # A claim is a sign of life: a node that was silent for long must not lose at once what it just took.
    transaction.execute(Q.beat, (node, now))
    for row in ready:
        # What own_occurrence has just written: reading it back would cost as much again.
        row[_STATUS], row[_OWNER], row[_FENCE] = _RUNNING, node, row[_FENCE] + 1
        row[_STARTED_AT] = now if row[_STARTED_AT] is None else row[_STARTED_AT]
        row[_UPDATED_AT] = row[_CLAIMED_AT] = now
    return _claims(transaction.connection, definitions, ready)


def _ready(
    transaction: Transaction, definitions: Definitions, queues: Collection[str], limit: int, unknown: Collection[str]
) -> list[list[Any]]:
    """Return the rows of what can start; look again as long as a definition turns out to be unreadable."""
    transaction.executemany(Q.come_of_age, [(queue, transaction.now) for queue in queues])
    while True:
        asked = (json.dumps(list(unknown)), definitions.refused(), max(limit, 0))
        found = [
            list(row)
            for queue in dict.fromkeys(queues)
            for row in transaction.execute(Q.ready_occurrences, (queue, *asked))
        ]
        found.sort(key=lambda row: (-row[_PRIORITY], row[_LINE_AT], row[_ID]))
        chosen = found[: max(limit, 0)]
        versions = {(row[_JOB], row[_VERSION]) for row in chosen}
        if all(definitions.get(transaction.connection, *version) is not None for version in versions):
            return chosen


def claims(connection: sqlite3.Connection, definitions: Definitions, handles: Sequence[int]) -> list[Claim]:
    """Return these occurrences as their owner sees them, in this order; without those that cannot be read."""
    found = {row[_SEQ]: row for row in connection.execute(Q.records, (json.dumps(handles),))}
    return _claims(connection, definitions, [found[seq] for seq in handles if seq in found])


def _claims(connection: sqlite3.Connection, definitions: Definitions, found: Sequence[Columns]) -> list[Claim]:
    begun = [row[_SEQ] for row in found if row[_NUMBER]]
    runs: dict[int, dict[str, RunState]] = {}
    if begun:
        for row in connection.execute(Q.runs, (json.dumps(begun),)):
            runs.setdefault(row[0], {})[row[1]] = rows.run_state(row[2:])
    made = (_claim(connection, definitions, row, runs.get(row[_SEQ], {})) for row in found)
    return [each for each in made if each is not None]


def _claim(
    connection: sqlite3.Connection, definitions: Definitions, row: Columns, runs: dict[str, RunState]
) -> Claim | None:
    compiled = definitions.get(connection, row[_JOB], row[_VERSION])
    if compiled is None:
        return None
    record = rows.occurrence(row, compiled.job.id)
    seen = snapshot_of(
        record,
        rules_of(compiled.job, record.overrides) if record.overrides.items else compiled.rules,
        runs,
        number=row[_NUMBER],
        claimed_at=rows.moment_or_none(row[_CLAIMED_AT]),
        lost=row[25],
        cancel=row[26],
    )
    return Claim(row[_SEQ], record.fence, record, seen, compiled.job)


# ------------------------------------------------------------------------------------------------------- the steps


@dataclass(slots=True)
class _Held:
    """What a step is conditional on, kept up to date while a batch is read: it may hold two steps of one owner."""

    fence: int
    number: int
    status: int
    ready_at: int | None
    job: int
    scheduled_for: int
    started_at: int | None


@dataclass(slots=True)
class _Job:
    """What a batch of steps comes to for one job: how often it is woken, its last end and its last good one."""

    wakes: int = 0
    end: Columns | None = None
    success: Columns | None = None


def commit_steps(transaction: Transaction, steps: Sequence[tuple[Claim, Step]]) -> list[Commit]:
    """Write each step, on the condition that the claim's fence is still the occurrence's."""
    asked = json.dumps([claim.handle for claim, _ in steps])
    held = {row[0]: _Held(*row[1:]) for row in transaction.execute(Q.fences, (asked,))}
    writing = _Writing(transaction)
    answers = [writing.step(held.get(claim.handle), claim, step) for claim, step in steps]
    writing.finish()
    return answers


def commit_new(transaction: Transaction, claim: Claim, step: Step) -> bool:
    """Write a step and return True; False, and nothing is written, if it is stale or was written before."""
    row = transaction.execute(Q.fences, (json.dumps([claim.handle]),)).fetchone()
    held = None if row is None else _Held(*row[1:])
    if held is None or held.fence != claim.fence or step.number <= held.number:
        return False
    writing = _Writing(transaction)
    writing.step(held, claim, step)
    writing.finish()
    return True


class _Writing:
    """The rows of one batch of steps, in order, gathered until all of them are known."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._advances: list[Columns] = []
        self._runs: list[Columns] = []
        self._attempts: list[Columns] = []
        self._jobs: dict[int, _Job] = {}

    def step(self, held: _Held | None, claim: Claim, step: Step) -> Commit:
        """Take one step, or say that it is stale or was written before."""
        if held is None:
            return Commit.STALE
        if held.fence != claim.fence:
            # An end raises the fence and keeps the number: its repeat finds its own effect.
            again = held.status >= FIRST_END and held.fence == claim.fence + 1 and held.number == step.number
            return Commit.COMMITTED if again else Commit.STALE
        if step.number <= held.number:
            return Commit.COMMITTED
        self._write_rows(claim.handle, step)
        self._advance(held, claim, step)
        if step.end is not None or step.resume_at is not None:
            self._note(held, step)
        if step.end is not None or step.resume_at is not None or step.release:
            self._transaction.rang = True
        return Commit.COMMITTED

    def finish(self) -> None:
        """Write what was gathered."""
        many, execute, now = self._transaction.executemany, self._transaction.execute, self._transaction.now
        many(Q.advance_occurrence, self._advances)
        many(Q.write_run, self._runs)
        many(Q.write_attempt, self._attempts)
        for job, noted in self._jobs.items():
            if noted.success is not None:
                execute(Q.wake_after_success, (noted.wakes, now, *(noted.end or ()), *noted.success, job))
            elif noted.end is not None:
                execute(Q.wake_after_end, (noted.wakes, now, *noted.end, job))
            else:
                execute(Q.wake_job, (noted.wakes, now, job))

    def _write_rows(self, handle: int, step: Step) -> None:
        places = step.after.rules.places
        for row in step.rows:
            place = places[row.task]
            self._runs.append(rows.run_columns(handle, row.task, place, row.run))
            if row.attempt is not None:
                code, began = ATTEMPT_CODE[row.attempt], micros_or_none(row.started_at)
                over = micros_or_none(row.ended_at)
                self._attempts.append((handle, row.task, row.number, place, code, began, over, row.error))

    def _advance(self, held: _Held, claim: Claim, step: Step) -> None:
        after, before = step.after, STATUSES[held.status]
        is_end = step.end is not None
        assert after.status is before or may_move(before, after.status), (
            f"{claim.occurrence.id}: {before} cannot become {after.status}"
        )
        ready_at = step.resume_at or after.ready_at
        held.status, held.number = STATUS_CODE[after.status], step.number
        held.ready_at = held.ready_at if ready_at is None else rows.micros(ready_at)
        self._advances.append(
            (
                held.status,
                is_end or step.resume_at is not None or step.release,
                held.ready_at,
                not is_end and held.ready_at is not None and held.ready_at > self._transaction.now,
                micros_or_none(after.ended_at),
                after.error,
                step.number,
                after.lost,
                step.superseded_by_next,
                self._transaction.now,
                is_end,
                is_end,
                claim.handle,
                claim.fence,
            )
        )
        held.fence += is_end

    def _note(self, held: _Held, step: Step) -> None:
        """The job is woken; if this was an end, it is the job's last one."""
        noted = self._jobs.setdefault(held.job, _Job())
        noted.wakes += 1
        if step.end is not None and step.after.ended_at is not None:
            noted.end = (held.scheduled_for, held.started_at, rows.micros(step.after.ended_at))
            if step.after.status in _WELL:
                noted.success = noted.end


# ------------------------------------------------------------------------------------------- beats, orphans, reports


def beat(transaction: Transaction, definitions: Definitions, node: str, held: Collection[int]) -> Orders:
    """Say that the node lives and what it holds; the answer says what the store knows better."""
    transaction.execute(Q.beat, (node, transaction.now))
    own = dict(transaction.execute(Q.held_by, (node,)).fetchall())
    named = set(held)
    unnamed = [seq for seq in own if seq not in named]
    return Orders(
        cancel=tuple((seq, cancel) for seq, cancel in own.items() if cancel is not None and seq in named),
        gone=tuple(sorted(named - own.keys())),
        adopt=tuple(claims(transaction.connection, definitions, unnamed)),
    )


def orphans(
    transaction: Transaction, definitions: Definitions, node: str, limit: int, silence: timedelta
) -> list[Claim]:
    """Take over what silent nodes held, with a new fence: of many reapers one gets it."""
    held = transaction.execute(Q.held_by_silent, (transaction.now, rows.length(silence))).fetchall()
    return _take_over(transaction, definitions, node, held, limit)


def take(
    transaction: Transaction, definitions: Definitions, node: str, job_ids: Collection[str], limit: int
) -> list[Claim]:
    """Take over what other nodes hold of these jobs, silent or not."""
    held = transaction.execute(Q.held_by_others, (json.dumps(list(job_ids)), node)).fetchall()
    return _take_over(transaction, definitions, node, held, limit)


def _take_over(
    transaction: Transaction, definitions: Definitions, node: str, held: Sequence[Columns], limit: int
) -> list[Claim]:
    now = transaction.now
    taken: list[int] = []
    for seq, status, job, version in held:
        if len(taken) >= limit:
            break
        if definitions.get(transaction.connection, job, version) is None:
            # Left to a reaper that can decide about it.
            continue
        if status == _AWAITING_RETRY:
            # It lost nothing: no attempt of it was running.
            transaction.execute(Q.take_over, (None, now, seq))
            transaction.rang = True
        else:
            transaction.execute(Q.take_over, (node, now, seq))
            taken.append(seq)
    return claims(transaction.connection, definitions, taken)


def note(transaction: Transaction, notes: Sequence[tuple[Claim, Note]]) -> None:
    """Show people what is running; what is no longer the claim's is left alone."""
    written = [
        rows.note_columns(claim.handle, claim.fence, claim.snapshot.rules.places[each.task], each)
        for claim, each in notes
    ]
    transaction.executemany(Q.note_attempt, written)


def reports(
    connection: sqlite3.Connection, definitions: Definitions, limit: int, unknown: Collection[str]
) -> list[OccurrenceSnapshot]:
    """Return ended occurrences whose report was not delivered yet, oldest end first."""
    asked = (json.dumps(list(unknown)), definitions.refused(), limit)
    owed = [row[0] for row in connection.execute(Q.owed_reports, asked)]
    return [claim.snapshot for claim in claims(connection, definitions, owed)]


def reported(transaction: Transaction, occurrence_ids: Iterable[str]) -> None:
    """Note that these reports were delivered."""
    transaction.executemany(Q.report_delivered, [(rows.id_bytes(id_),) for id_ in occurrence_ids])
