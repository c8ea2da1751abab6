"""The executor's and the reaper's verbs: one owner at a time, and every write of an owner carries its fence."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from everytick.domain.notes import Note
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.statuses import OccurrenceStatus, may_move
from everytick.domain.steps import NOT_STARTED, OccurrenceSnapshot, RunState, Step, rules_of
from everytick.stores.base import Claim, Commit, Orders
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.compiled import Compiled, Definitions
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.rows import (
    ATTEMPT_CODE,
    CAUSES,
    FIRST_END,
    NEVER,
    NO_OVERRIDES,
    NO_TEXT,
    STATUS_CODE,
    STATUSES,
    Columns,
    micros,
    micros_or_never,
)
from everytick.stores.sqlite.writer import Transaction

_WELL = frozenset({OccurrenceStatus.COMPLETED, OccurrenceStatus.COMPLETED_WITH_ERRORS})
_AWAITING_RETRY = STATUS_CODE[OccurrenceStatus.AWAITING_RETRY]
_RUNNING = STATUS_CODE[OccurrenceStatus.RUNNING]
_HELD = (OccurrenceStatus.RUNNING, OccurrenceStatus.AWAITING_RETRY)

# Places of columns in ready_occurrences and held_occurrences.
_SEQ, _JOB, _VERSION, _ID, _LINE_AT, _STARTED_AT, _NUMBER, _PRIORITY = 0, 1, 2, 3, 10, 14, 23, 27

# What the step of an owner may come to: it holds what runs, and the waits that it keeps.
_STEP_CODE = {
    status: code
    for status, code in STATUS_CODE.items()
    if status in _HELD or any(may_move(held, status) for held in _HELD)
}


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
    transaction.execute(Q.own_occurrences, (node, now, now, now, json.dumps([row[_SEQ] for row, _ in ready])))
    # A claim is a sign of life: a node that was silent for long must not lose at once what it just took.
    transaction.execute(Q.beat, (node, now))
    return _claims(transaction.connection, ready, (node, now))


_Found: TypeAlias = list[tuple[Columns, Compiled]]
"""Rows of occurrences, each with the definition it runs under."""


def _ready(
    transaction: Transaction, definitions: Definitions, queues: Collection[str], limit: int, unknown: Collection[str]
) -> _Found:
    """Return the rows of what can start; look again as long as a definition turns out to be unreadable."""
    wanted = tuple(dict.fromkeys(queues))
    transaction.executemany(Q.come_of_age, [(queue, transaction.now) for queue in wanted])
    while True:
        refused = definitions.refused()
        asked = (int(not unknown), json.dumps(list(unknown)), int(refused == "[]"), refused, max(limit, 0))
        found: list[Columns] = []
        for queue in wanted:
            found += transaction.execute(Q.ready_occurrences, (queue, *asked)).fetchall()
        if len(wanted) > 1:
            found.sort(key=lambda row: (-row[_PRIORITY], row[_LINE_AT], row[_ID]))
            found = found[: max(limit, 0)]
        readable = _readable(transaction.connection, definitions, found)
        if len(readable) == len(found):
            return readable


def _readable(connection: sqlite3.Connection, definitions: Definitions, found: Sequence[Columns]) -> _Found:
    get = definitions.get
    return [(row, compiled) for row in found if (compiled := get(connection, row[_JOB], row[_VERSION])) is not None]


def claims(connection: sqlite3.Connection, definitions: Definitions, handles: Sequence[int]) -> list[Claim]:
    """Return these occurrences as their owner sees them, in this order; without those that cannot be read."""
    found = {row[_SEQ]: row for row in connection.execute(Q.held_occurrences, (json.dumps(handles),))}
    readable = _readable(connection, definitions, [found[seq] for seq in handles if seq in found])
    return _claims(connection, readable, None)


def _claims(connection: sqlite3.Connection, found: _Found, owned: tuple[str, int] | None) -> list[Claim]:
    """Return claims of these rows: every value is made once, from the places of its columns.

    `owned` are the node and the time that own_occurrences has just written: reading them
    back would cost as much again.
    """
    runs = _runs(connection, [row[_SEQ] for row, _ in found if row[_NUMBER]])
    at, id_text, made = rows.Moments(), rows.id_text, []
    for row, compiled in found:
        (
            seq, _, version, id_, scheduled_for, status, cause, late, covers_after, covers_through, line_at, ready_at,
            owner, fence, started_at, ended_at, error, overrides, payload, replay_of, reason, created_at, updated_at,
            number, claimed_at, lost, cancel, _
        ) = row  # fmt: skip
        if owned is not None:
            owner, claimed_at = owned
            status, fence, updated_at = _RUNNING, fence + 1, claimed_at
            if started_at is None:
                started_at = claimed_at
        stands, caused, instant, job = STATUSES[status], CAUSES[cause], at[scheduled_for], compiled.job
        ready, began, ended, given = at[ready_at], at[started_at], at[ended_at], NO_OVERRIDES
        rules, unstarted = compiled.rules, compiled.not_started
        if overrides is not None or payload is not None:
            given = rows.read_overrides(overrides, payload)
            # No rule looks at a payload, which is what most of them have of their own.
            rules = rules if overrides is None else rules_of(job, given)
        if seq in runs:
            unstarted = tuple(runs[seq].get(task.name, NOT_STARTED) for task in rules.tasks)
        record = Occurrence(
            id_text(id_), job.id, version, instant, stands, caused, late == 1, at[covers_after], at[covers_through],
            at[line_at], ready, owner, fence, began, ended, error, given, replay_of, reason, at[created_at],
            at[updated_at],
        )  # fmt: skip
        seen = OccurrenceSnapshot(
            record.id, instant, rules, unstarted, stands, number, owner is not None, ready, began, at[claimed_at],
            ended, error, lost, cancel, late == 1 and caused is Cause.SCHEDULE, False, None, job.id,
        )  # fmt: skip
        made.append(Claim(seq, fence, record, seen, job))
    return made


def _runs(connection: sqlite3.Connection, begun: Sequence[int]) -> dict[int, dict[str, RunState]]:
    """Return where the tasks of these occurrences stand, by handle and name."""
    runs: dict[int, dict[str, RunState]] = {}
    if begun:
        for row in connection.execute(Q.runs, (json.dumps(begun),)):
            runs.setdefault(row[0], {})[row[1]] = rows.run_state(row[2:])
    return runs


# ------------------------------------------------------------------------------------------------------- the steps


class NotAllWritten(Exception):
    """Some step of a batch was stale or written before, so the batch is undone and looked at one by one."""


def commit_steps(transaction: Transaction, steps: Sequence[tuple[Claim, Step]]) -> list[Commit]:
    """Write each step, on the condition that the claim's fence is still the occurrence's.

    Nearly always all of them hold: then the number of rows that changed says so, and
    nothing is read before. Else the batch is undone, and begun again behind a savepoint.
    """
    if not transaction.is_alone:
        _write(transaction, steps)
        return [Commit.COMMITTED] * len(steps)
    asked = json.dumps([claim.handle for claim, _ in steps])
    held = {row[0]: _Held(*row[1:]) for row in transaction.execute(Q.fences, (asked,))}
    answers, new = [], []
    for claim, step in steps:
        answer, is_new = _judged(held.get(claim.handle), claim, step)
        answers.append(answer)
        if is_new:
            new.append((claim, step))
    _write(transaction, new)
    return answers


def commit_new(transaction: Transaction, claim: Claim, step: Step) -> bool:
    """Write a step and return True; False, and nothing is written, if it is stale or was written before."""
    row = transaction.execute(Q.fences, (json.dumps([claim.handle]),)).fetchone()
    _, is_new = _judged(None if row is None else _Held(*row[1:]), claim, step)
    if is_new:
        _write(transaction, [(claim, step)])
    return is_new


@dataclass(slots=True)
class _Held:
    """What a step is conditional on, kept up to date while a batch is read: it may hold two steps of one owner."""

    fence: int
    number: int
    status: int


def _judged(held: _Held | None, claim: Claim, step: Step) -> tuple[Commit, bool]:
    """Return the answer to a step, and whether it is to be written."""
    if held is None:
        return Commit.STALE, False
    if held.fence != claim.fence:
        # An end raises the fence and keeps the number: its repeat finds its own effect.
        again = held.status >= FIRST_END and held.fence == claim.fence + 1 and held.number == step.number
        return Commit.COMMITTED if again else Commit.STALE, False
    if step.number <= held.number:
        return Commit.COMMITTED, False
    before, after = STATUSES[held.status], step.after.status
    assert after is before or may_move(before, after), f"{claim.occurrence.id}: {before} cannot become {after}"
    held.number, held.status = step.number, STATUS_CODE[after]
    held.fence += step.end is not None
    return Commit.COMMITTED, True


def _write(transaction: Transaction, steps: Sequence[tuple[Claim, Step]]) -> None:
    """Write these steps, all of them; one that does not hold any more raises, and whoever called undoes the rest."""
    now = transaction.now
    advances: list[Columns] = []
    ends: list[Columns] = []
    runs: list[Columns] = []
    attempts: list[Columns] = []
    jobs: dict[str, list[Columns]] = {}
    for claim, step in steps:
        _add_rows(runs, attempts, claim.handle, step)
        if step.end is not None:
            columns, note = _ended(claim, step, now)
            ends.append(columns)
            jobs.setdefault(claim.occurrence.job_id, []).append(note)
        else:
            advances.append(_advanced(claim, step, now))
            if step.resume_at is not None:
                jobs.setdefault(claim.occurrence.job_id, []).append(())
            elif step.release:
                transaction.rang = True
    if jobs:
        transaction.rang = True
    many = transaction.executemany
    written = many(Q.advance_occurrence, advances).rowcount if advances else 0
    written += many(Q.end_owned, ends).rowcount if ends else 0
    if written != len(steps):
        raise NotAllWritten
    many(Q.write_run, runs)
    many(Q.write_attempt, attempts)
    _wake(transaction, jobs)


def _add_rows(runs: list[Columns], attempts: list[Columns], handle: int, step: Step) -> None:
    places = step.after.rules.places
    for row in step.rows:
        task, run = row.task, row.run
        place = places[task]
        columns = rows.run_columns(handle, task, place, run)
        runs.append(columns)
        if row.attempt is not None:
            began, over, error = row.started_at, row.ended_at, row.error
            # Most often the run's own last attempt, whose times are in its columns already.
            started_at = columns[9] if began is run.attempt_started_at else micros_or_never(began)
            ended_at = columns[10] if over is run.ended_at else micros_or_never(over)
            code = ATTEMPT_CODE[row.attempt]
            attempts.append(
                (handle, task, row.number, place, code, started_at, ended_at, NO_TEXT if error is None else error)
            )


def _advanced(claim: Claim, step: Step, now: int) -> Columns:
    """Return the columns of a step that is not the last."""
    after, number = step.after, step.number
    ready_at = micros_or_never(step.resume_at or after.ready_at)
    is_free = 1 if step.resume_at is not None or step.release else 0
    error = NO_TEXT if after.error is None else after.error
    superseded = 1 if step.superseded_by_next else 0
    return (
        _STEP_CODE[after.status], is_free, ready_at, ready_at, now, error, number, after.lost, superseded, now,
        claim.handle, claim.fence, number,
    )  # fmt: skip


def _ended(claim: Claim, step: Step, now: int) -> tuple[Columns, Columns]:
    """Return the columns of an end, and what the job notes of it: instant, start, end and whether it was good."""
    after, number, instant = step.after, step.number, step.after.scheduled_for
    assert after.ended_at is not None, f"{claim.occurrence.id} has ended and does not say when"
    ended_at, scheduled_for = micros(after.ended_at), micros(instant)
    ready = after.ready_at
    ready_at = scheduled_for if ready is instant else NEVER if ready is None else micros(ready)
    error = NO_TEXT if after.error is None else after.error
    superseded = 1 if step.superseded_by_next else 0
    columns = (
        _STEP_CODE[after.status], ready_at, ended_at, error, number, after.lost, superseded, now,
        1 if after.rules.reports else 0, claim.handle, claim.fence, number,
    )  # fmt: skip
    return columns, (scheduled_for, micros_or_never(after.started_at), ended_at, after.status in _WELL)


def _wake(transaction: Transaction, jobs: Mapping[str, Sequence[Columns]]) -> None:
    """Wake each job as often as something of it ended or was parked; its last end and last good one are noted."""
    now = transaction.now
    waits: list[Columns] = []
    ends: list[Columns] = []
    successes: list[Columns] = []
    for id_, notes in jobs.items():
        last = good = notes[-1]
        if len(notes) > 1 or not good or not good[3]:
            last = next((note for note in reversed(notes) if note), ())
            good = next((note for note in reversed(notes) if note and note[3]), ())
        if good:
            successes.append((len(notes), now, last[0], last[1], last[2], good[0], good[1], good[2], id_))
        elif last:
            ends.append((len(notes), now, last[0], last[1], last[2], id_))
        else:
            waits.append((len(notes), now, id_))
    many = transaction.executemany
    many(Q.wake_after_wait, waits)
    many(Q.wake_after_end, ends)
    many(Q.wake_after_success, successes)


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
    transaction: Transaction,
    definitions: Definitions,
    node: str,
    job_ids: Collection[str],
    limit: int,
    occurrence_ids: Collection[str] | None,
) -> list[Claim]:
    """Take over what other nodes hold of these jobs, silent or not; with `occurrence_ids` only these."""
    wanted = None if occurrence_ids is None else {rows.id_bytes(id_) for id_ in occurrence_ids}
    found = transaction.execute(Q.held_by_others, (json.dumps(list(job_ids)), node)).fetchall()
    held = [row[:4] for row in found if wanted is None or row[4] in wanted]
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
