"""Rows of occurrences as the claims that their owners hold.

`begun` is a second, faster way for first claims without overrides: it does not read back what was just written.
Price: `bench/end_to_end_sqlite.py`, 64 µs of processor time an occurrence with it and 83 without: 23 %.
"""

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TypeAlias

from everytick.domain.codes import CAUSES, STATUSES
from everytick.domain.config import Overrides
from everytick.domain.occurrence import Cause, Occurrence
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import OccurrenceHeader, OccurrenceLife, RunState, rules_of, runs_of
from everytick.stores.base import Claim, ClaimKey
from everytick.stores.sql.definitions import Compiled
from everytick.stores.sql.rows import NO_OVERRIDES, read_overrides, run_state
from everytick.stores.sqlite import rows
from everytick.stores.sqlite.compiled import FileDefinitions
from everytick.stores.sqlite.queries import COLD, Q, fetch
from everytick.stores.sqlite.rows import Columns

_SCHEDULE = Cause.SCHEDULE
_RUNNING = OccurrenceStatus.RUNNING

# Places of columns in ready_occurrences and held_occurrences, then in one of them alone.
_SEQ, _JOB, _VERSION = 0, 1, 2
_IS_PLAIN = 12
_NUMBER = 23

ReadableRows: TypeAlias = list[tuple[Columns, Compiled]]
"""Rows of occurrences, each with the definition it runs under."""


def readable(connection: sqlite3.Connection, definitions: FileDefinitions, found: Sequence[Columns]) -> ReadableRows:
    """Return the rows whose definition can be read, each with that definition."""
    get = definitions.get
    return [(row, compiled) for row in found if (compiled := get(connection, row[_JOB], row[_VERSION])) is not None]


def claims(connection: sqlite3.Connection, definitions: FileDefinitions, handles: Sequence[int]) -> list[Claim]:
    """Return these occurrences as claims, in this order, without unreadable ones."""
    found = {row[_SEQ]: row for row in connection.execute(Q.held_occurrences, (str(list(handles)),))}
    legible = readable(connection, definitions, [found[seq] for seq in handles if seq in found])
    return _claims(connection, legible)


def begun(
    connection: sqlite3.Connection,
    definitions: FileDefinitions,
    ready: ReadableRows,
    node: str,
    token: int,
    now: datetime,
) -> list[Claim]:
    """Return the claims of rows that this node has just come to own.

    Most are plain: their columns and what the claim has just written say everything. The others are read again.
    """
    others = [row[_SEQ] for row, _ in ready if not row[_IS_PLAIN]]
    read_again = {claim.handle: claim for claim in claims(connection, definitions, others)} if others else {}
    at, id_text, all_claims = rows.Moments(), rows.id_text, []
    for row, compiled in ready:
        seq, _, _, id_, scheduled_for, cause, late, _, _, _, _, _, is_plain = row
        if not is_plain:
            all_claims.append(read_again[seq])
            continue
        job, rules, instant = compiled.job, compiled.rules, at[scheduled_for]
        header = OccurrenceHeader(
            id=id_text(id_),
            job_id=job.id,
            scheduled_for=instant,
            rules=rules,
            is_recovery_run=late == 1 and CAUSES[cause] is _SCHEDULE,
            cause=CAUSES[cause],
        )
        life = OccurrenceLife(
            status=_RUNNING,
            runs=rules.not_started,
            number=0,
            is_owned=True,
            ready_at=instant,
            started_at=now,
            claimed_at=now,
        )
        record = partial(_plain_record, row, job.id, node, now)
        all_claims.append(Claim(ClaimKey(seq, 1, token), record, header, life, job))
    return all_claims


def _plain_record(row: Columns, job_id: str, node: str, now: datetime) -> Occurrence:
    """Return what people see of a plain occurrence that this node has just come to own."""
    _, _, version, id_, scheduled_for, cause, late, covers_after, reason, created_at, _, _, _ = row
    instant = rows.moment(scheduled_for)
    return Occurrence(
        id=rows.id_text(id_),
        job_id=job_id,
        version=version,
        scheduled_for=instant,
        status=_RUNNING,
        cause=CAUSES[cause],
        late=late == 1,
        covers_after=rows.moment_or_none(covers_after),
        covers_through=instant,
        line_at=instant,
        ready_at=instant,
        owner=node,
        fence=1,
        started_at=now,
        ended_at=None,
        error=None,
        overrides=NO_OVERRIDES,
        replay_of=None,
        reason=reason,
        created_at=rows.moment(created_at),
        updated_at=now,
        node=node,
    )


def _claims(connection: sqlite3.Connection, held: ReadableRows) -> list[Claim]:
    """Return the claims of rows of `held_occurrences`."""
    runs = _runs(connection, [row[_SEQ] for row, _ in held if row[_NUMBER]])
    at, all_claims = rows.Moments(), []
    for row, compiled in held:
        (
            seq, _, _, id_, scheduled_for, status, cause, late, _, _, _, ready_at, owner, fence, started_at, ended_at,
            error, overrides, payload, _, _, _, _, number, claimed_at, lost, cancel, token, _, found_as, holds_place,
        ) = row  # fmt: skip
        job, rules, own = compiled.job, compiled.rules, NO_OVERRIDES
        if overrides is not None or payload is not None:
            own = read_overrides(overrides, payload)
            # No rule looks at a payload, which is what most of them have of their own.
            rules = rules if overrides is None else rules_of(job, own)
        header = OccurrenceHeader(
            id=rows.id_text(id_),
            job_id=job.id,
            scheduled_for=at[scheduled_for],
            rules=rules,
            is_recovery_run=late == 1 and CAUSES[cause] is _SCHEDULE,
            found=STATUSES[found_as],
            holds_place=holds_place == 1,
            cause=CAUSES[cause],
        )
        life = OccurrenceLife(
            status=STATUSES[status],
            runs=runs_of(rules, runs.get(seq, {})),
            number=number,
            is_owned=owner is not None,
            ready_at=at[ready_at],
            started_at=at[started_at],
            claimed_at=at[claimed_at],
            ended_at=at[ended_at],
            error=error,
            lost=lost,
            cancel=cancel,
        )
        all_claims.append(Claim(ClaimKey(seq, fence, token), partial(_record, row, job.id, own), header, life, job))
    return all_claims


def _record(row: Columns, job_id: str, own: Overrides) -> Occurrence:
    """Return what people see of an occurrence, from the columns of a claim."""
    (
        _, _, version, id_, scheduled_for, status, cause, late, covers_after, covers_through, line_at, ready_at,
        owner, fence, started_at, ended_at, error, _, _, replay_of, reason, created_at, updated_at, _, _, _, _, _,
        node, _, _,
    ) = row  # fmt: skip
    at = rows.Moments()
    return Occurrence(
        id=rows.id_text(id_),
        job_id=job_id,
        version=version,
        scheduled_for=at[scheduled_for],
        status=STATUSES[status],
        cause=CAUSES[cause],
        late=late == 1,
        covers_after=at[covers_after],
        covers_through=at[covers_through],
        line_at=at[line_at],
        ready_at=at[ready_at],
        owner=owner,
        fence=fence,
        started_at=at[started_at],
        ended_at=at[ended_at],
        error=error,
        overrides=own,
        replay_of=replay_of,
        reason=reason,
        created_at=at[created_at],
        updated_at=at[updated_at],
        node=node,
    )


def _runs(connection: sqlite3.Connection, begun: Sequence[int]) -> dict[int, dict[str, RunState]]:
    """Return where the tasks of these occurrences stand, by handle and name."""
    runs: dict[int, dict[str, RunState]] = {}
    if begun:
        for row in fetch(connection, COLD.runs_of(handles=begun)):
            runs.setdefault(row["handle"], {})[row["task"]] = run_state(row)
    return runs
