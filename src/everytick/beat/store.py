"""What a beat asks of Redis: which schedules are due, what is recorded of them, and commits that check it again.

Every write that says that a time had its run is one script, which does nothing unless the record is still the one that
was decided from. The locks only keep beats from deciding the same thing at the same moment.
"""

from __future__ import annotations

import json
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeVar

from everytick.beat.lock import ScheduleLock, milliseconds
from everytick.beat.records import (
    DECIDING_FIELDS,
    StoredRecord,
    UnreadableRecord,
    fence_text,
    instant_at,
    read_record,
    read_state,
    rfc3339,
    score,
)
from everytick.beat.redis_client import ScriptCall, Unanswered, answered, called, text_of
from everytick.beat.scripts import COMMIT, FAIL, FORGET, HOLD, LOOK, RESTORE
from everytick.domain.values import value
from everytick.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from everytick.beat.decision import Decision
    from everytick.beat.definition import ScheduleState
    from everytick.beat.records import BeatKeys
    from everytick.beat.redis_client import RedisClient

T = TypeVar("T")

CHUNK = 200
"""Most schedules in one question: Redis answers no other client meanwhile, and 200 take it some milliseconds."""

_LONGEST_ERROR_CHARACTERS = 2_000
"""How much of an error a record keeps: it is for people who read it there."""


@value
class TickLook:
    """What a tick sees first: the server's time, the epoch of its data, and the ids of what is due."""

    now: datetime
    epoch: str
    due: tuple[str, ...]


@value
class HeldSchedule:
    """A schedule whose lock was taken, and what was read of it then. Without a record, `problem` says why."""

    id: str
    lock: ScheduleLock
    record: StoredRecord | None
    problem: str = ""


@value
class NotHeldSchedule:
    """A schedule whose lock was not taken: another beat has it, or `problem` says why Redis refused."""

    id: str
    problem: str = ""


@value
class BeatCommit:
    """What to record of a schedule: by which rule, decided from what, and when its job was put into the queue."""

    held: HeldSchedule
    record: StoredRecord
    decision: Decision
    definition: str
    decided_at: datetime
    success_at: datetime | None = None


class BeatStore:
    """The keys of one beat in one Redis."""

    def __init__(self, client: RedisClient, keys: BeatKeys, lock_ttl: timedelta) -> None:
        self._client, self._keys, self._lock_ttl = client, keys, lock_ttl

    async def look(self, now: datetime | None = None) -> TickLook:
        """Return what is due by the server's clock, or at the given time."""
        given = "" if now is None else score(now)
        at, epoch, due = await self._ask(ScriptCall(LOOK, [self._keys.index, self._keys.epoch], given))
        return TickLook(instant_at(int(at)), text_of(epoch), tuple(map(text_of, due)))

    async def begin_epoch(self, token: str) -> str:
        """Name the epoch of the data if it has no name; return its name."""
        pipe = self._client.pipeline(transaction=False)
        pipe.set(self._keys.epoch, token, nx=True)
        pipe.get(self._keys.epoch)
        return text_of((await answered(pipe.execute()))[1])

    async def hold(self, ids: Sequence[str]) -> list[HeldSchedule | NotHeldSchedule]:
        """Take the locks of schedules and read, in the same moment, what is recorded of them."""
        token = token_hex(16)
        locks = [ScheduleLock(self._client, self._keys.lock(id), self._lock_ttl, token) for id in ids]
        keys = [key for id, lock in zip(ids, locks, strict=True) for key in (lock.key, self._keys.state(id))]
        try:
            answers = json.loads(await self._ask(ScriptCall(HOLD, keys, token, milliseconds(self._lock_ttl))))
        except Unanswered as error:
            await self._release_maybe_taken(locks)
            return [NotHeldSchedule(id, str(error) or type(error).__name__) for id in ids]
        return [_held(id, lock, *answer) for id, lock, answer in zip(ids, locks, answers, strict=True)]

    async def _ask(self, call: ScriptCall) -> Any:
        """Return the answer to one call; raise the error that Redis has for it."""
        [answer] = await called(self._client, [call])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _release_maybe_taken(self, locks: Sequence[ScheduleLock]) -> None:
        """Release locks of which Redis may have taken some before the answer was lost. They end by themselves too."""
        try:
            await called(self._client, [lock.release_call() for lock in locks])
        except Unanswered:
            return

    async def commit(self, commits: Sequence[BeatCommit]) -> list[bool | str]:
        """Record decisions and let go of their locks.

        Tell for each whether its record was still the same, or why Redis did not write it.
        """
        keys = [self._keys.index]
        for commit in commits:
            keys += (self._keys.state(commit.held.id), commit.held.lock.key)
        changes = json.dumps([_written(commit) for commit in commits])
        answers = json.loads(await self._ask(ScriptCall(COMMIT, keys, changes)))
        return [answer if isinstance(answer, str) else answer == 1 for answer in answers]

    async def fail(self, failures: Sequence[tuple[HeldSchedule, str]]) -> list[str]:
        """Record why nothing was put into the queue, and let go of the locks. The schedules stay due.

        Return for each why Redis did not write that, or an empty text.
        """
        if not failures:
            return []
        calls = [
            ScriptCall(
                FAIL,
                [self._keys.state(held.id), held.lock.key],
                "" if held.record is None else held.record.fence,
                held.lock.token,
                error[:_LONGEST_ERROR_CHARACTERS],
            )
            for held, error in failures
        ]
        return [str(answer) if isinstance(answer, Exception) else "" for answer in await called(self._client, calls)]

    async def release(self, held: Sequence[HeldSchedule]) -> None:
        """Let go of locks, if they are still ours."""
        if not held:
            return
        await called(self._client, [schedule.lock.release_call() for schedule in held])

    async def indexed(self, ids: Sequence[str]) -> list[bool]:
        """Tell for each schedule whether the index has it."""
        is_indexed: list[bool] = []
        for chunk in chunks(ids):
            scores: list[Any] = await answered(self._client.zmscore(self._keys.index, list(chunk)))
            is_indexed += [score_ is not None for score_ in scores]
        return is_indexed

    async def records(self, ids: Sequence[str]) -> list[StoredRecord | None]:
        """Return what is recorded of schedules; None for a record that cannot be read."""
        records: list[StoredRecord | None] = []
        for chunk in chunks(ids):
            pipe = self._client.pipeline(transaction=False)
            for id in chunk:
                pipe.hmget(self._keys.state(id), DECIDING_FIELDS)
            answers = await answered(pipe.execute(raise_on_error=False))
            records += [None if isinstance(answer, Exception) else _readable(answer)[0] for answer in answers]
        return records

    async def state(self, id: str) -> ScheduleState:
        """Return what is recorded of one schedule.

        Raise UnreadableRecord if that is not what a beat writes, and StoreUnavailable if Redis does not answer.
        """
        try:
            fields: Any = await answered(self._client.hgetall(self._keys.state(id)))
        except Unanswered as error:
            raise StoreUnavailable("Redis", str(error) or type(error).__name__) from error
        return read_state(id, fields)

    async def enroll(self, looks: Sequence[tuple[str, datetime]]) -> None:
        """Let schedules be looked at no later than at these times."""
        for chunk in chunks(looks):
            scores: Any = {id: score(look_at) for id, look_at in chunk}
            await answered(self._client.zadd(self._keys.index, scores, lt=True))

    async def restore(self, known: Sequence[tuple[str, datetime, datetime]], settled: datetime) -> None:
        """Record through when each schedule was decided, and its next time, as far as that was lost.

        None of them is looked at before `settled`.
        """
        for chunk in chunks(known):
            calls = [self._restore_call(id, through, next_run, settled) for id, through, next_run in chunk]
            for answer in await called(self._client, calls):
                if isinstance(answer, Exception):
                    raise answer

    def _restore_call(self, id: str, through: datetime, next_run: datetime, settled: datetime) -> ScriptCall:
        keys = [self._keys.state(id), self._keys.index]
        return ScriptCall(RESTORE, keys, id, fence_text(through), rfc3339(next_run), score(max(next_run, settled)))

    async def forget(self, ids: Sequence[str], due_before: datetime) -> None:
        """Take schedules out of the index that were due before this time. A beat that knows one puts it back."""
        await called(self._client, [ScriptCall(FORGET, [self._keys.index], id, score(due_before)) for id in ids])


def chunks(items: Sequence[T]) -> list[Sequence[T]]:
    """Cut a sequence into parts that Redis answers quickly."""
    return [items[start : start + CHUNK] for start in range(0, len(items), CHUNK)]


def _held(id: str, lock: ScheduleLock, word: str, contents: Sequence[Any] | str = "") -> HeldSchedule | NotHeldSchedule:
    if word == "held":
        return HeldSchedule(id, lock, *_readable(contents))
    if word == "unreadable":
        return HeldSchedule(id, lock, None, str(contents))
    return NotHeldSchedule(id, str(contents))


def _readable(contents: Sequence[Any]) -> tuple[StoredRecord | None, str]:
    try:
        return read_record(contents), ""
    except UnreadableRecord as error:
        return None, str(error)


def _written(commit: BeatCommit) -> dict[str, str]:
    """Return what the script of a commit reads."""
    held, decision, run = commit.held, commit.decision, commit.decision.run
    look_at = decision.look_at
    return {
        "id": held.id,
        "token": held.lock.token,
        "fence": commit.record.fence,
        "through": fence_text(decision.through),
        "look_at": "" if look_at is None else str(score(look_at)),
        "next_run": rfc3339(look_at),
        "definition": commit.definition,
        "decided_at": fence_text(commit.decided_at),
        "run": "" if run is None else rfc3339(run.scheduled_at),
        "job_id": "" if run is None else run.job_id,
        "success_at": rfc3339(commit.success_at),
    }
