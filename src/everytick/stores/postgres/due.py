"""due, glance and look: what a plan may see of jobs whose time has come, held by one planner or only read."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from everytick.domain.snapshots import PLAN_LIMIT, Active, Ended, JobSnapshot, Past, Reschedule
from everytick.errors import StoreUnavailable
from everytick.stores.base import NodeScope
from everytick.stores.open_requests import PAST_LIMIT, past_of, reaches_back
from everytick.stores.postgres import rows
from everytick.stores.postgres.base import Base
from everytick.stores.postgres.compiled import Kept, Key
from everytick.stores.postgres.door import Connection, patiently
from everytick.stores.postgres.rows import Row

HELD_FOR = timedelta(seconds=5)
"""A planner that falls silent while it holds jobs loses them after this time, and another one takes its turn."""

UNHELD = 20
"""So many due jobs are not worth holding: to plan them twice costs less than the way to the server and back."""

_TRIED_AGAIN = timedelta(seconds=10)
_BUSY_SHOWN = 100
_Line: TypeAlias = tuple[tuple[Active, ...], int, tuple[Active, ...], int, bool]
_NO_LINE: _Line = ((), 0, (), 0, True)
_NO_ROWS: Mapping[int, list[Row]] = {}
_BEGINNING = datetime.min, ""  # noqa: DTZ901, without beginning, to the driver


class Batch(list[JobSnapshot]):
    """Snapshots, and the connection whose transaction holds their jobs until the batch ends."""

    held: Connection | None = None

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, int] = {}
        self.told: set[int] = set()


class Due(Base):
    """What a plan is made from."""

    held_for = HELD_FOR
    unheld = UNHELD
    _are_many = False
    _reached: tuple[datetime | None, datetime, str] = (None, *_BEGINNING)

    @asynccontextmanager
    async def due(self, scope: NodeScope, now: datetime, limit: int) -> AsyncIterator[Sequence[JobSnapshot]]:
        """Give up to `limit` jobs of the scope whose `wake_at` has come, longest-waiting first.

        A few are simply read: should another planner see them too, the revision settles it.
        Of more no other planner sees any until the batch ends or this node has been silent for
        `held_for`; people may change them meanwhile, and then the plan is stale.
        """
        broken: dict[int, str] = {}
        self._look_again(now)
        glanced = None if self._are_many or not self.unheld else await self._glanced(scope, now, limit, broken)
        if glanced is not None:
            yield glanced[1]
        else:
            async with self._held(scope, now, limit, broken) as batch:
                self._are_many = len(batch) >= min(limit, self.unheld + 1)
                yield batch
        await self._park(broken, now)

    @patiently
    async def glance(self, scope: NodeScope, limit: int) -> tuple[datetime, Sequence[JobSnapshot]] | None:
        """Return the store's time and what is due of the scope by then, if it is little; None where it is not."""
        if self._are_many or not self.unheld:
            return None
        broken: dict[int, str] = {}
        found = await self._glanced(scope, None, limit, broken)
        self._are_many = found is None
        if found is None:
            return None
        now = found[0]
        await self._park(broken, now)
        self._look_again(now)
        return now, found[1]

    async def _glanced(
        self, scope: NodeScope, now: datetime | None, limit: int, broken: dict[int, str]
    ) -> "tuple[datetime, Batch] | None":
        """Return what is due if it is little: the time until it is planned is what counts then."""
        async with self._door.connection() as db:
            asked = now, self.unheld, list(self._unreadable), scope.met, list(scope.unknown)
            found = await db.fetch(self._sql.glance, *asked)
            if len(found) > self.unheld:
                return None
            standing = [row for row in found if row[0] is not None]
            standing.sort(key=_longest_waiting)
            batch = Batch()
            batch.keys.update((row[1], row[0]) for row in standing[:limit])
            batch.told.update(batch.keys.values())
            only = {row[0]: [row] for row in standing if row["is_only"]}
            batch.extend(await self._seen(db, standing[:limit], broken, only) if standing else ())
        return found[0]["now"], batch

    @asynccontextmanager
    async def _held(
        self, scope: NodeScope, now: datetime, limit: int, broken: dict[int, str]
    ) -> AsyncIterator["Batch"]:
        db = await self._door.borrow()
        batch = Batch()
        batch.held = db
        try:
            with self._door.answering():
                await db.execute(f"begin; set local idle_in_transaction_session_timeout = {self._patience()}")
                batch.extend(await self._snapshots(db, scope, now, limit, broken, batch))
            yield batch
        finally:
            try:
                await self._let_go(batch)
            finally:
                await self._door.give_back(db)

    @patiently
    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return what a plan would see of those jobs that exist now and can be read, and hold nothing."""
        async with self._door.connection() as db, db.transaction(isolation="repeatable_read", readonly=True):
            standing = await db.fetch(self._sql.standing_by_id, list(job_ids))
            found = {seen.job_id: seen for seen in await self._seen(db, standing, {})}
        return {id_: found[id_] for id_ in job_ids if id_ in found}

    def _patience(self) -> int:
        return max(int(self.held_for / timedelta(milliseconds=1)), 1)

    async def _let_go(self, batch: Batch) -> None:
        """End what the batch still holds; a connection that cannot even do that is thrown away."""
        db, batch.held = batch.held, None
        if db is None:
            return
        try:
            with self._door.answering():
                await db.execute("rollback")
        except StoreUnavailable:
            self._door.drop(db)
        except BaseException:
            # Canceled on the way: nobody knows whether it is still in its transaction.
            self._door.drop(db)
            raise

    async def _park(self, broken: dict[int, str], now: datetime) -> None:
        """Leave what cannot be read here to others, and let people see why; nobody else is kept from it."""
        if broken:
            self._unreadable.update(dict.fromkeys(broken, now))
            async with self._door.transaction() as db:
                for job, reason in sorted(broken.items()):
                    await db.execute(self._sql.park_job, job, rows.text(reason))

    def _look_again(self, now: datetime) -> None:
        """Try those again after a while that could not be read: somebody may have edited them."""
        if self._unreadable:
            later = now - _TRIED_AGAIN
            # One that lies ahead of now is from before the server's clock was set back.
            self._unreadable = {job: since for job, since in self._unreadable.items() if later < since <= now}

    # ------------------------------------------------------------------------------------------------- the snapshots

    async def _snapshots(
        self, db: Connection, scope: NodeScope, now: datetime, limit: int, broken: dict[int, str], batch: Batch
    ) -> list[JobSnapshot]:
        """Return what a plan may see of each job.

        Where each stands is read first: whatever changes before the rest is read has
        changed the revision or added a fact, so the commit finds out.
        """
        ripe, told = await self._hold_due(db, scope, now, limit)
        standing: list[Row] = []
        if ripe:
            standing += await db.fetch(self._sql.standing_of_ripe, ripe, now)
        is_full = len(ripe) + len(told) >= limit > self.unheld
        self._reached = now, *(max(map(_longest_waiting, standing)) if is_full and standing else _BEGINNING)
        if told:
            standing += await db.fetch(self._sql.standing_of_told, told, now)
        standing.sort(key=_longest_waiting)
        del standing[limit:]
        batch.keys.update((row[1], row[0]) for row in standing)
        batch.told.update(told)
        return await self._seen(db, standing, broken) if standing else []

    async def _hold_due(
        self, db: Connection, scope: NodeScope, now: datetime, limit: int
    ) -> tuple[list[int], list[int]]:
        """Hold jobs whose time has come, and those that facts make due; look further where others hold many."""
        window = limit * 2
        after = self._reached[1:] if self._reached[0] == now else _BEGINNING
        known = list(self._unreadable), scope.met, list(scope.unknown)
        while True:
            held = await db.fetch(self._sql.hold_due, now, limit, window, *after, *known)
            ripe, told, [seen] = ([job for job, kind in held if kind is wanted] for wanted in (False, True, None))
            if seen < window or len(ripe) == limit:
                return ripe, told
            window *= 8

    async def _seen(
        self, db: Connection, standing: Sequence[Row], broken: dict[int, str], only: Mapping[int, list[Row]] = _NO_ROWS
    ) -> list[JobSnapshot]:
        """Return the snapshots of jobs from where they stand; `only` are requests that are known already."""
        definitions, unreadable = await self._compiled.read(db, _editions(standing))
        broken.update({job: reason for (job, _), reason in unreadable.items()})
        active = [row[0] for row in standing if row["is_active"]]
        paused = [row[0] for row in standing if row["has_pauses"]]
        adjusted = [row[0] for row in standing if row["has_adjustments"]]
        asked = [row[0] for row in standing if row["has_requests"] and row[0] not in only]
        facts = _Facts(
            active=_by_job(await db.fetch(self._sql.active, active) if active else ()),
            pauses=_by_job(await db.fetch(self._sql.pauses, paused) if paused else ()),
            adjustments=_by_job(await db.fetch(self._sql.adjustments, adjusted) if adjusted else ()),
            requests={**only, **_by_job(await db.fetch(self._sql.requests, asked) if asked else ())},
        )
        facts.pasts = await self._pasts(db, [row for row in standing if row[0] not in broken], definitions, facts)
        # Over since its job's standing was read: neither busy, nor the end that the standing tells of.
        if gone := [row[1] for row in standing if row["is_active"] and row[0] not in facts.active]:
            facts.ended.update((row[0], row) for row in await db.fetch(self._sql.standing_by_id, gone))
        return [_snapshot(row, definitions, facts) for row in standing if row[0] not in broken]

    async def _pasts(
        self, db: Connection, standing: Sequence[Row], definitions: dict[Key, Kept], facts: "_Facts"
    ) -> dict[int, list[Past]]:
        """Return the definitions that open backfills need and the editions no longer hold, by job."""
        wanted = [
            (row[0], asked, row[6])
            for row in standing
            for asked in map(rows.request, facts.requests.get(row[0], ())[:PLAN_LIMIT])
            if reaches_back(asked, (definitions[row[0], row[6]].edition,))
        ]
        if not wanted:
            return {}
        asked = [job for job, _, _ in wanted], [each.after for _, each, _ in wanted], [first for _, _, first in wanted]
        found = await db.fetch(self._sql.past_versions, *asked, PAST_LIMIT + 1)
        older, _ = await self._compiled.read(db, [(wanted[row["place"] - 1][0], row["version"]) for row in found])
        pasts: dict[int, list[Past]] = {}
        for place, (job, request, _) in enumerate(wanted, 1):
            versions = [row for row in found if row["place"] == place]
            editions = [(row["in_force_after"], older.get((job, row["version"]))) for row in versions]
            named = [(since, None if kept is None else kept.edition) for since, kept in editions]
            pasts.setdefault(job, []).append(past_of(request.key, named))
        return pasts


@dataclass(slots=True)
class _Facts:
    """What was read beside the standing of the jobs, by job."""

    active: dict[int, list[Row]]
    pauses: dict[int, list[Row]]
    adjustments: dict[int, list[Row]]
    requests: dict[int, list[Row]]
    ended: dict[int, Row] = field(default_factory=dict)
    pasts: dict[int, list[Past]] = field(default_factory=dict)


def _by_job(found: Iterable[Row]) -> dict[int, list[Row]]:
    by_job: dict[int, list[Row]] = {}
    for row in found:
        by_job.setdefault(row["job"], []).append(row)
    return by_job


def _longest_waiting(row: Row) -> tuple[datetime, str]:
    return row[5], row[1]


def _editions(standing: Iterable[Row]) -> list[Key]:
    """Versions are counted without a gap, so the first and the last name all of them."""
    return [(row[0], version) for row in standing for version in range(row[6], row[7] + 1)]


def _snapshot(row: Row, definitions: dict[Key, Kept], facts: _Facts) -> JobSnapshot:
    """Return what a plan may see, from the columns of a standing, which are taken by their place."""
    job, id_, revision, woken, watermark, wake_at, first, last, retire_at, *rest = row
    editions = tuple([definitions[job, version].edition for version in range(first, last + 1)])
    busy, busy_count, waiting, waiting_count, awaited = _line(facts.active[job]) if job in facts.active else _NO_LINE
    requests = facts.requests.get(job, ())
    ends: Row = facts.ended.get(job) or row
    return JobSnapshot(
        id_,
        revision,
        woken,
        watermark,
        editions,
        wake_at,
        retire_at,
        tuple(map(rows.pause, facts.pauses.get(job, ()))),
        tuple(map(rows.adjustment, facts.adjustments.get(job, ()))),
        None if rest[1] is None else Reschedule(rest[0], rest[1], rest[2]),
        tuple(map(rows.request, requests[:PLAN_LIMIT])),
        len(requests) > PLAN_LIMIT,
        busy,
        busy_count,
        waiting,
        waiting_count,
        None if ends[14] is None else Ended(ends[12], ends[13], ends[14], f"occ_{ends[15]}"),
        None if ends[18] is None else Ended(ends[16], ends[17], ends[18], f"occ_{ends[19]}"),
        awaited,
        None if ends[22] is None else Ended(ends[20], ends[21], ends[22], f"occ_{ends[23]}"),
        row[24],
        tuple(facts.pasts.get(job, ())),
    )


def _line(active: Sequence[Row]) -> _Line:
    """Return the busy and their count, the same of those that wait, and whether the end of all the busy is awaited."""
    busy = [each for each in active if not each["waits"]]
    waiting = [each for each in active if each["waits"]]
    return (
        tuple(map(rows.active, busy[:_BUSY_SHOWN])),
        busy[0]["of"] if busy else 0,
        tuple(rows.active(each) for each in waiting if each["shown"]),
        waiting[0]["of"] if waiting else 0,
        busy[0]["all_awaited"] if busy else True,
    )
