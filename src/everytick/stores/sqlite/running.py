"""The executor's and the reaper's verbs: one owner at a time, and every write of an owner carries its fence."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

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
    transaction.executemany(Q.own_occurrence, [(node, now, now, now, seq) for seq in ready])
    transaction.execute(Q.first_beat, (node, now))
    return claims(transaction.connection, definitions, ready)


def _ready(
    transaction: Transaction, definitions: Definitions, queues: Collection[str], limit: int, unknown: Collection[str]
) -> list[int]:
    """Return the handles of what can start; look again as long as a definition turns out to be unreadable."""
    while True:
        asked = (transaction.now, json.dumps(list(unknown)), definitions.refused(), max(limit, 0))
        found = [
            row for queue in dict.fromkeys(queues) for row in transaction.execute(Q.ready_occurrences, (queue, *asked))
        ]
        found.sort(key=lambda row: (-row[3], row[4], row[5]))
        chosen = found[:limit]
        versions = {(row[1], row[2]) for row in chosen}
        if all(definitions.get(transaction.connection, *version) is not None for version in versions):
            return [row[0] for row in chosen]


def claims(connection: sqlite3.Connection, definitions: Definitions, handles: Sequence[int]) -> list[Claim]:
    """Return these occurrences as their owner sees them, in this order; without those that cannot be read."""
    asked = json.dumps(handles)
    found = {row[0]: row for row in connection.execute(Q.records, (asked,))}
    begun = [seq for seq, row in found.items() if row[23]]
    runs: dict[int, dict[str, RunState]] = {}
    if begun:
        for row in connection.execute(Q.runs, (json.dumps(begun),)):
            runs.setdefault(row[0], {})[row[1]] = rows.run_state(row[2:])
    made = (_claim(connection, definitions, found[seq], runs.get(seq, {})) for seq in handles if seq in found)
    return [each for each in made if each is not None]


def _claim(
    connection: sqlite3.Connection, definitions: Definitions, row: Columns, runs: dict[str, RunState]
) -> Claim | None:
    compiled = definitions.get(connection, row[27], row[3])
    if compiled is None:
        return None
    record = rows.occurrence(row)
    seen = snapshot_of(
        record,
        rules_of(compiled.job, record.overrides) if record.overrides.items else compiled.rules,
        runs,
        number=row[23],
        claimed_at=rows.moment_or_none(row[24]),
        lost=row[25],
        cancel=row[26],
    )
    return Claim(row[0], record.fence, record, seen)


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


def commit_steps(transaction: Transaction, steps: Sequence[tuple[Claim, Step]]) -> list[Commit]:
    """Write each step, on the condition that the claim's fence is still the occurrence's."""
    asked = json.dumps([claim.handle for claim, _ in steps])
    held = {row[0]: _Held(*row[1:]) for row in transaction.execute(Q.fences, (asked,))}
    writing = _Writing(transaction)
    answers = [writing.step(held.get(claim.handle), claim, step) for claim, step in steps]
    writing.finish()
    return answers


class _Writing:
    """The rows of one batch of steps, in order, gathered until all of them are known."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._advances: list[Columns] = []
        self._runs: list[Columns] = []
        self._attempts: list[Columns] = []
        self._wakes: dict[int, int] = {}
        self._ends: dict[int, Columns] = {}
        self._successes: dict[int, Columns] = {}

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
        if step.end is not None:
            self._note_end(held, step)
        if step.end is not None or step.resume_at is not None:
            self._wakes[held.job] = self._wakes.get(held.job, 0) + 1
            self._transaction.rang = True
        elif step.release:
            self._transaction.rang = True
        return Commit.COMMITTED

    def finish(self) -> None:
        """Write what was gathered."""
        many, now = self._transaction.executemany, self._transaction.now
        many(Q.advance_occurrence, self._advances)
        many(Q.write_run, self._runs)
        many(Q.write_attempt, self._attempts)
        many(Q.note_end, self._ends.values())
        many(Q.note_success, self._successes.values())
        many(Q.wake_job, [(count, now, job) for job, count in self._wakes.items()])

    def _write_rows(self, handle: int, step: Step) -> None:
        places = step.after.rules.places
        for row in step.rows:
            self._runs.append(rows.run_columns(handle, row.task, places[row.task], row.run))
            if row.attempt is not None:
                code, began = ATTEMPT_CODE[row.attempt], micros_or_none(row.started_at)
                over = micros_or_none(row.ended_at)
                self._attempts.append((handle, row.task, row.number, code, began, over, row.error))

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

    def _note_end(self, held: _Held, step: Step) -> None:
        if step.after.ended_at is None:
            return
        noted = (held.scheduled_for, held.started_at, rows.micros(step.after.ended_at), held.job)
        self._ends[held.job] = noted
        if step.after.status in _WELL:
            self._successes[held.job] = noted


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
    now = transaction.now
    taken: list[int] = []
    for seq, status, job, version in transaction.execute(Q.held_by_silent, (now, rows.length(silence))).fetchall():
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
