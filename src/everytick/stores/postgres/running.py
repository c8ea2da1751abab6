"""claim, commit_steps and transaction: one owner at a time, and nothing recorded without its fence.

A second, faster way: `commit_plain`, for steps that say only that a first attempt succeeded.
Price: `bench/end_to_end_postgres.py` with 50 slots, processor time an occurrence, the server's included, 73 µs with it
and 90 without: 19 %. With three tasks in order: 171 and 229.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from everytick.domain.codes import ATTEMPT_CODE, RUN_CODE, STATUS_CODE
from everytick.domain.decisions import Why
from everytick.domain.statuses import AttemptStatus, OccurrenceStatus, RunStatus
from everytick.domain.steps import RunRow as Written
from everytick.domain.steps import Step
from everytick.stores.base import Claim, Commit, CommitAnswer, NodeScope, new_token
from everytick.stores.each_alone import each_alone
from everytick.stores.postgres import rows
from everytick.stores.postgres.base import Shared, lean_columns
from everytick.stores.postgres.claims import place_in_line
from everytick.stores.postgres.connections import Connection, in_transaction, patiently
from everytick.stores.postgres.rows import Row
from everytick.stores.postgres.transaction import PostgresClaimTransaction, is_repeat
from everytick.stores.protocols import ClaimTransaction
from everytick.stores.sql.rows import write_waits

Steps = Sequence[tuple[Claim, Step]]

_PLAIN = (
    "handles",
    "fences",
    "numbers",
    "is_ends",
    "tasks",
    "starts",
    "ends",
    "results",
    "owed",
    "tokens",
)
_STEP = (
    "handles",
    "fences",
    "numbers",
    "moves",
    "statuses",
    "readies",
    "ends",
    "errors",
    "losts",
    "supersedings",
    "tasks",
    "run_statuses",
    "attempt_counts",
    "retries",
    "last_statuses",
    "out_of_times",
    "resumes",
    "run_starts",
    "attempt_starts",
    "run_ends",
    "run_errors",
    "causes",
    "results",
    "waits",
    "attempts",
    "attempt_statuses",
    "starts",
    "attempt_ends",
    "attempt_errors",
    "owed",
    "failures",
    "tokens",
)
_NO_TASK = (None,) * 19
_NO_MOVE = (None,) * 7
_KEPT, _GIVEN_BACK, _PARKED, _ENDED, _RESTORED, _UNSTARTED = range(6)


class Execution:
    """Claims, their steps, and the transactions of their tasks."""

    def __init__(self, shared: Shared) -> None:
        self._shared, self._connections, self._sql = shared, shared.connections, shared.sql

    @patiently
    async def claim(self, scope: NodeScope, limit: int) -> list[Claim] | None:
        """Give the node up to `limit` ready occurrences of its scope, by priority, then age. None: a limit holds."""
        async with self._connections.connection() as db:
            found = await self._take_ready(db, scope, limit)
            if found is None:
                return None
            found.sort(key=place_in_line)
            claims, unreadable = await self._shared.claims(db, found)
            if unreadable:
                await db.execute(*self._sql.give_back(handles=unreadable, node=scope.node))
        return claims

    async def _take_ready(self, db: Connection, scope: NodeScope, limit: int) -> list[Row] | None:
        """Claim. If early occurrences have become ready, move them to the claimable ones first."""
        claim = partial(
            self._sql.claim,
            node=scope.node,
            needs=scope.met,
            limit=limit,
            unknown_ids=list(scope.unknown),
            token=new_token(),
        )
        found = await db.fetch(*claim(is_released=False))
        if found[0]["is_limited"]:
            return None
        if found[0]["has_early_due"]:
            await db.execute(*self._sql.release_early(needs=scope.met))
            found = await db.fetch(*claim(is_released=True))
            if found[0]["is_limited"]:
                return None
        return [] if found[0]["handle"] is None else list(found)

    async def commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:
        """Write each step whose claim still has the fence and token of the occurrence."""
        return await each_alone(steps, self._commit_steps, "steps")

    @patiently
    async def _commit_steps(self, steps: Sequence[tuple[Claim, Step]]) -> list[Commit]:
        answers: dict[int, Commit] = {}
        async with self._connections.connection() as db:
            for places in _rounds(steps):
                round_ = [steps[place] for place in places]
                commit = self._give_back if any(step.release for _, step in round_) else self._commit_round
                answers.update(zip(places, await commit(db, round_), strict=True))
        return [answers[place] for place in range(len(steps))]

    @asynccontextmanager
    async def transaction(self, claim: Claim) -> AsyncIterator[ClaimTransaction]:
        """Begin a transaction for a task of the claim. Leaving it without a commit rolls it back."""
        db = await self._connections.borrow()
        begun = PostgresClaimTransaction(self._connections, db, claim, self._write_steps)
        try:
            await begun.begin()
            yield begun
        finally:
            await begun.leave()

    async def _give_back(self, db: Connection, steps: Steps) -> list[Commit]:
        """Commit these steps, and hold or end occurrences that were given back, as their job wants it.

        Pause, disable and removal hold unclaimed occurrences. Their jobs are locked here, so that none of the three
        misses one.
        """
        given_back = [claim.handle for claim, step in steps if step.release]
        async with in_transaction(db):
            await db.execute(*self._sql.hold_jobs_of(handles=given_back))
            answers = await self._commit_round(db, steps)
            written = [
                claim.handle
                for (claim, step), answer in zip(steps, answers, strict=True)
                if step.release and answer is Commit.COMMITTED
            ]
            for row in await db.fetch(*self._sql.retired_of(handles=written)):
                canceled = STATUS_CODE[OccurrenceStatus.CANCELED]
                if await self._shared.end_unowned(db, [(row["id"], canceled, Why.REMOVED)], row["now"]):
                    await db.execute(*self._sql.wake_job(job_key=row["job_key"], now=row["now"]))
            await db.execute(*self._sql.hold_given_back(handles=written))
        return answers

    async def _commit_round(self, db: Connection, steps: Steps) -> list[Commit]:
        # In the sessions of a proxy, and in those that tasks write in, the server chooses other query plans: then the
        # order in which rows are locked is unknown.
        plain = None if self._connections.address.pooling else _plain_entries(sorted(steps, key=_handle))
        if plain is None:
            written = await self._write_steps(db, steps)
        else:
            query = self._sql.commit_plain(**lean_columns(_PLAIN, plain))
            written = {row["handle"] for row in await db.fetch(*query)}
        left = [claim.handle for claim, _ in steps if claim.handle not in written]
        found = await db.fetch(*self._sql.step_marks(handles=left)) if left else ()
        marks = {row["handle"]: row for row in found}
        return [
            Commit.COMMITTED
            if claim.handle in written or is_repeat(marks.get(claim.handle), claim, step)
            else Commit.STALE
            for claim, step in steps
        ]

    async def _write_steps(self, db: Connection, steps: Steps) -> set[int]:
        entries = [entry for claim, step in sorted(steps, key=_handle) for entry in _entries(claim, step)]
        query = self._sql.commit_steps(**lean_columns(_STEP, entries))
        return {row["handle"] for row in await db.fetch(*query)}


def _handle(step: tuple[Claim, Step]) -> int:
    return step[0].handle


def _rounds(steps: Steps) -> Iterator[list[int]]:
    """Give the places of the steps in rounds: one statement cannot write two steps of one occurrence."""
    left = list(range(len(steps)))
    while left:
        seen: set[int] = set()
        now: list[int] = []
        later: list[int] = []
        for place in left:
            handle = steps[place][0].handle
            (later if handle in seen else now).append(place)
            seen.add(handle)
        yield now
        left = later


def _plain_entries(steps: Steps) -> list[tuple[object, ...]] | None:
    """Return one row per step as `commit_plain` takes them. None if one of the steps is not plain."""
    entries: list[tuple[object, ...]] = []
    for claim, step in steps:
        if not _is_plain(step):
            return None
        [written], is_end = step.rows, step.end is not None
        result = None if written.run.result is None else written.run.result.text
        owed = True if is_end and claim.header.rules.reports else None
        times = written.started_at, written.ended_at
        handle, fence, token = claim.key
        entries.append((handle, fence, step.number, is_end, written.task, *times, result, owed, token))
    return entries


def _is_plain(step: Step) -> bool:
    """Tell whether all that the step says is that one task has succeeded at its first try."""
    if len(step.rows) != 1 or step.resume_at is not None or step.release or step.superseded_by_next:
        return False
    [written], after = step.rows, step.after
    if step.end is None:
        stays = after.status is OccurrenceStatus.RUNNING and after.ended_at is None
    else:
        stays = after.status is OccurrenceStatus.COMPLETED and after.ended_at == written.ended_at
    return stays and after.error is None and after.lost == 0 and _is_first_success(written)


def _is_first_success(written: Written) -> bool:
    run = written.run
    return (
        written.attempt is AttemptStatus.SUCCESS
        and written.number == run.attempts == 1
        and written.error is run.error is run.because_of is None
        and run.resume_at is run.attempt_started_at is None
        and run.status is RunStatus.SUCCESS
        and run.last is AttemptStatus.SUCCESS
        and not (run.retries or run.out_of_time or run.waits)
        and run.started_at == written.started_at
        and run.ended_at == written.ended_at
    )


def _entries(claim: Claim, step: Step) -> Iterator[tuple[object, ...]]:
    """Give one row per task. The first has the columns of the occurrence itself.

    A value that is the column's default is None: a column of nothing else need not be sent.
    """
    after, (handle, fence, token) = step.after, claim.key
    whole: tuple[object, ...] = (
        _move(step),
        STATUS_CODE[after.status],
        step.resume_at or after.ready_at,
        after.ended_at,
        rows.text(after.error),
        after.lost or None,
        step.superseded_by_next or None,
    )
    owed = True if step.end is not None and claim.header.rules.reports else None
    failure = rows.text(step.failure)
    for written in step.rows or (None,):
        task = _NO_TASK if written is None else _task_columns(written)
        yield (handle, fence, step.number, *whole, *task, owed, failure, token)
        whole, owed, failure = _NO_MOVE, None, None


def _move(step: Step) -> int:
    if step.end is not None:
        return _ENDED
    if step.resume_at is not None:
        return _PARKED
    if step.restores:
        return _UNSTARTED if step.after.started_at is None else _RESTORED
    return _GIVEN_BACK if step.release else _KEPT


def _task_columns(written: Written) -> tuple[object, ...]:
    run = written.run
    return (
        written.task,
        RUN_CODE[run.status],
        run.attempts,
        run.retries or None,
        None if run.last is None else ATTEMPT_CODE[run.last],
        run.out_of_time or None,
        run.resume_at,
        run.started_at,
        run.attempt_started_at,
        run.ended_at,
        rows.text(run.error),
        run.because_of,
        None if run.result is None else run.result.text,
        write_waits(run.waits),
        written.number,
        None if written.attempt is None else ATTEMPT_CODE[written.attempt],
        written.started_at,
        written.ended_at,
        rows.text(written.error),
    )
