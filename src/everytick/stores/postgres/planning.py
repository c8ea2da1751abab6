"""due and commit_plans: jobs held by one planner from the look to the commit, and settled by the revision."""

import random
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from everytick.domain.decisions import Creation, Plan, Span
from everytick.domain.snapshots import PLAN_LIMIT, Active, Ended, JobSnapshot, Reschedule
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.errors import StoreUnavailable
from everytick.stores.base import Claim, Commit, Offer
from everytick.stores.beginnings import NOTHING_TO_KEEP, own_overrides
from everytick.stores.postgres import rows
from everytick.stores.postgres.base import Base, columns, lean_columns, occurrence_key
from everytick.stores.postgres.claims import place_in_line
from everytick.stores.postgres.compiled import Kept, Key
from everytick.stores.postgres.door import Connection, patiently
from everytick.stores.postgres.rows import CAUSE_CODE, STATUS_CODE, Row

HELD_FOR = timedelta(seconds=5)
"""A planner that falls silent while it holds jobs loses them after this time, and another one takes its turn."""

UNHELD = 20
"""So many due jobs are not worth holding: to plan them twice costs less than the way to the server and back."""

_BUSY_SHOWN = 100
_ASKED = "asked by the schedule"
_Line: TypeAlias = tuple[tuple[Active, ...], int, tuple[Active, ...], int, bool]
_NO_LINE: _Line = ((), 0, (), 0, True)
_NOBODY = -1
_NO_ROWS: Mapping[int, list[Row]] = {}
_BEGINNING = datetime.min, ""  # noqa: DTZ901, without beginning, to the driver
_FEW = 50
_CREATED = 19
_PENDING = STATUS_CODE[OccurrenceStatus.PENDING]
_WELL = (STATUS_CODE[OccurrenceStatus.COMPLETED], STATUS_CODE[OccurrenceStatus.COMPLETED_WITH_ERRORS])


class Batch(list[JobSnapshot]):
    """Snapshots, and the connection whose transaction holds their jobs until the batch ends."""

    held: Connection | None = None

    def __init__(self) -> None:
        super().__init__()
        self.keys: dict[str, int] = {}
        self.told: set[int] = set()


@dataclass(slots=True)
class _Written:
    """What was written and not yet known to be committed: by which transaction or mark, and what it answered."""

    by: str | None = None
    answers: list[Commit] = field(default_factory=list)
    mark: int | None = None
    jobs: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Ends:
    """The last end and the last success to note for one job, each as scheduled_for, started_at and ended_at."""

    end: tuple[datetime | None, datetime | None, datetime | None] = (None, None, None)
    success: tuple[datetime | None, datetime | None, datetime | None] = (None, None, None)

    def note(self, row: Row, well: bool) -> None:
        self.end = row["scheduled_for"], row["started_at"], row["ended_at"]
        if well:
            self.success = self.end


@dataclass(slots=True)
class _Held:
    """A plan whose job is locked and still is as the plan saw it."""

    job: int
    now: datetime
    woken: int
    plan: Plan
    snapshot: JobSnapshot
    ends: _Ends
    is_told: bool


@dataclass(slots=True)
class _Moves:
    """What plans change of occurrences that exist already, by their keys."""

    stops: list[tuple[int, datetime]]
    releases: list[str]
    endings: list[tuple[str, int, str | None]]
    cancels: list[str]
    awaiting: list[int]

    @classmethod
    def of(cls, held: Sequence[_Held]) -> "_Moves":
        return cls(
            [(each.job, each.plan.cancels_before) for each in held if each.plan.cancels_before is not None],
            [occurrence_key(id_) for each in held for id_ in each.plan.releases],
            [
                (occurrence_key(end.id), STATUS_CODE[end.status], rows.text(f"{end.why} {end.detail}".strip()))
                for each in held
                for end in each.plan.endings
            ],
            [occurrence_key(id_) for each in held for id_ in each.plan.cancels],
            [each.job for each in held if each.plan.awaits_ends],
        )

    def __bool__(self) -> bool:
        return bool(self.stops or self.releases or self.endings or self.cancels or self.awaiting)

    def ids(self) -> list[str]:
        return [*self.releases, *self.cancels, *(end[0] for end in self.endings)]


class Planning(Base):
    """What the planner asks."""

    held_for = HELD_FOR
    unheld = UNHELD
    _are_many = False
    _reached: tuple[datetime | None, datetime, str] = (None, *_BEGINNING)

    @asynccontextmanager
    async def due(self, now: datetime, limit: int) -> AsyncIterator[Sequence[JobSnapshot]]:
        """Give up to `limit` jobs whose `wake_at` has come, longest-waiting first.

        A few are simply read: should another planner see them too, the revision settles it.
        Of more no other planner sees any until the batch ends or this node has been silent for
        `held_for`; people may change them meanwhile, and then the plan is stale.
        """
        broken: dict[int, str] = {}
        glanced = None if self._are_many or not self.unheld else await self._glanced(now, limit, broken)
        if glanced is not None:
            yield glanced[1]
        else:
            async with self._held(now, limit, broken) as batch:
                self._are_many = len(batch) >= min(limit, self.unheld + 1)
                yield batch
        await self._park(broken)

    @patiently
    async def glance(self, limit: int) -> tuple[datetime, Sequence[JobSnapshot]] | None:
        """Return the store's time and what is due by then, if it is little; None where it is not."""
        if self._are_many or not self.unheld:
            return None
        broken: dict[int, str] = {}
        found = await self._glanced(self._latest, limit, broken)
        self._are_many = found is None
        await self._park(broken)
        return None if found is None else (self._never_back(found[0]), found[1])

    async def _glanced(
        self, now: datetime | None, limit: int, broken: dict[int, str]
    ) -> "tuple[datetime, Batch] | None":
        """Return what is due if it is little: the time until it is planned is what counts then."""
        async with self._door.connection() as db:
            found = await db.fetch(self._sql.glance, now, self.unheld)
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
    async def _held(self, now: datetime, limit: int, broken: dict[int, str]) -> AsyncIterator["Batch"]:
        db = await self._door.borrow()
        batch = Batch()
        batch.held = db
        try:
            with self._door.answering():
                await db.execute(f"begin; set local idle_in_transaction_session_timeout = {self._patience()}")
                batch.extend(await self._snapshots(db, now, limit, broken, batch))
            yield batch
        finally:
            try:
                await self._let_go(batch)
            finally:
                await self._door.give_back(db)

    @patiently
    async def commit_plans(self, batch: Sequence[JobSnapshot], plans: Sequence[Plan]) -> list[Commit]:
        """Write each plan whole, on the condition that its job's revision is still the snapshot's.

        Ends the batch: its jobs are free again. A hold that was lost meanwhile costs
        nothing but time, since the revision decides. A commit that was cut off is looked
        up: it may have been written, and then it is not stale.
        """
        if not plans:
            return []
        written = _Written()
        if isinstance(batch, Batch) and batch.held is not None:
            try:
                with self._door.answering():
                    return await self._commit_held(batch, batch.held, plans, written)
            except StoreUnavailable:
                await self._let_go(batch)
        try:
            if written.by is None and isinstance(batch, Batch) and _are_few(batch, plans):
                return await self._commit_few(batch, plans, written)
            return await self._commit_anew(batch, plans, written)
        except StoreUnavailable:
            if written.by is None and written.mark is None:
                raise
        return await self._commit_anew(batch, plans, written)

    @patiently
    async def commit_and_claim(
        self, batch: Sequence[JobSnapshot], plans: Sequence[Plan], offer: Offer
    ) -> tuple[list[Commit], list[Claim]]:
        """Write the plans, and give the node what they make, if nothing else is ready.

        An answer that is lost costs nothing: a plan that was written is looked up, and what
        the node was given comes with its next beats.
        """
        if not (isinstance(batch, Batch) and plans and batch.held is None and _are_few(batch, plans)):
            return await self.commit_plans(batch, plans), []
        written = _Written()
        try:
            async with self._door.connection() as db:
                commits, found = await self._settle_few(db, batch.keys, batch, plans, written, offer)
                claims, unreadable = await self._claims(db, sorted(found, key=place_in_line))
                if unreadable:
                    await db.execute(self._sql.give_back, unreadable, offer.node)
        except StoreUnavailable:
            return await self._commit_anew(batch, plans, written), []
        return commits, claims

    @patiently
    async def look(self, job_ids: Collection[str]) -> dict[str, JobSnapshot]:
        """Return what a plan would see of those jobs that exist now and can be read, and hold nothing."""
        async with self._door.connection() as db, db.transaction(isolation="repeatable_read", readonly=True):
            standing = await db.fetch(self._sql.standing_by_id, list(job_ids))
            found = {seen.job_id: seen for seen in await self._seen(db, standing, {})}
        return {id_: found[id_] for id_ in job_ids if id_ in found}

    async def _commit_held(
        self, batch: Batch, db: Connection, plans: Sequence[Plan], written: _Written
    ) -> list[Commit]:
        await self._door.tell_time(db)
        done = await self._commit(db, batch, plans, written)
        await db.execute("commit")
        batch.held = None
        return done

    async def _commit_few(self, batch: Batch, plans: Sequence[Plan], written: _Written) -> list[Commit]:
        """Commit by one statement; the mark it leaves tells whether it did, should the answer be lost."""
        async with self._door.connection() as db:
            return (await self._settle_few(db, batch.keys, batch, plans, written))[0]

    async def _commit_anew(
        self, batch: Sequence[JobSnapshot], plans: Sequence[Plan], written: _Written
    ) -> list[Commit]:
        """Commit in a transaction of its own, unless it turns out that the one before was written."""
        before = replace(written)
        async with self._door.connection() as db:
            if await self._is_written(db, before):
                return before.answers
            async with db.transaction():
                answers = await self._commit(db, batch, plans, written)
            # Ours waited for the locks of the one before, if that was still under way: now its fate is known.
            return before.answers if await self._is_written(db, before) else answers

    async def _is_written(self, db: Connection, before: _Written) -> bool:
        if before.by is not None:
            return await self._door.fate(db, before.by) == "committed"
        if before.mark is None:
            return False
        marked = {row[0] for row in await db.fetch(self._sql.marked_plans, before.jobs, before.mark)}
        before.answers = [Commit.COMMITTED if job in marked else Commit.STALE for job in before.jobs]
        return bool(marked)

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

    async def _park(self, broken: dict[int, str]) -> None:
        if broken:
            async with self._door.transaction() as db:
                for job, reason in sorted(broken.items()):
                    await db.execute(self._sql.park_job, job, rows.text(reason))

    # ------------------------------------------------------------------------------------------------- the snapshots

    async def _snapshots(
        self, db: Connection, now: datetime, limit: int, broken: dict[int, str], batch: Batch
    ) -> list[JobSnapshot]:
        """Return what a plan may see of each job.

        Where each stands is read first: whatever changes before the rest is read has
        changed the revision or added a fact, so the commit finds out.
        """
        ripe, told = await self._hold_due(db, now, limit)
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

    async def _hold_due(self, db: Connection, now: datetime, limit: int) -> tuple[list[int], list[int]]:
        """Hold jobs whose time has come, and those that facts make due; look further where others hold many."""
        window = limit * 2
        after = self._reached[1:] if self._reached[0] == now else _BEGINNING
        while True:
            held = await db.fetch(self._sql.hold_due, now, limit, window, *after)
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
        # Over since its job's standing was read: neither busy, nor the end that the standing tells of.
        if gone := [row[1] for row in standing if row["is_active"] and row[0] not in facts.active]:
            facts.ended.update((row[0], row) for row in await db.fetch(self._sql.standing_by_id, gone))
        return [_snapshot(row, definitions, facts) for row in standing if row[0] not in broken]

    # ---------------------------------------------------------------------------------------------------- the commit

    async def _commit(
        self, db: Connection, batch: Sequence[JobSnapshot], plans: Sequence[Plan], written: _Written
    ) -> list[Commit]:
        keys = await self._keys(db, batch, plans)
        told = batch.told if isinstance(batch, Batch) else None
        if _are_few(batch, plans):
            return (await self._settle_few(db, keys, batch, plans, written))[0]
        jobs = [keys.get(plan.job_id, _NOBODY) for plan in plans]
        snapshots = {snapshot.job_id: snapshot for snapshot in batch}
        plain = told is not None and _are_plain(jobs, plans, told)
        locked = await (self._settle_plain(db, jobs, plans) if plain else self._hold_plans(db, jobs, plans))
        held: list[_Held] = []
        answers: list[Commit] = []
        for job, plan in zip(jobs, plans, strict=True):
            # The first of two plans for one job makes the second one stale, as it raises the revision.
            found = locked.pop(job, None)
            answers.append(Commit.STALE if found is None else Commit.COMMITTED)
            if found is not None:
                seen = snapshots[plan.job_id]
                _require_progress(plan, seen)
                held.append(_Held(job, found[0], found[1], plan, seen, _Ends(), told is None or job in told))
        if held:
            await self._write(db, held)
            if not plain:
                await db.execute(self._sql.settle_plans, *lean_columns(map(_settled, held)))
            written.by, written.answers = (await db.fetchrow(self._sql.ring_by_name))[1], answers
        return answers

    async def _settle_few(
        self,
        db: Connection,
        keys: Mapping[str, int],
        batch: Sequence[JobSnapshot],
        plans: Sequence[Plan],
        written: _Written,
        offer: Offer | None = None,
    ) -> tuple[list[Commit], list[Row]]:
        """Write the plans by one statement, as the time until they are known is what counts when they are few.

        The rows are those that were given to the node which offers to take them.
        """
        jobs = [keys.get(plan.job_id, _NOBODY) for plan in plans]
        snapshots = {snapshot.job_id: snapshot for snapshot in batch}
        mark = random.getrandbits(63)
        alone = not db.is_in_transaction()
        written.mark, written.jobs = (mark, jobs) if alone else (None, [])
        settled, created, answered, awaiting = [], [], [], []
        for job, plan in zip(jobs, plans, strict=True):
            seen = snapshots[plan.job_id]
            _require_progress(plan, seen)
            settled.append((job, plan.revision, plan.woken, plan.watermark, plan.wake_at, plan.rescheduled))
            for creation in plan.creations:
                made = _created(job, seen, creation, plan.awaits_ends)
                created.append((*made, (offer is not None and _is_wanted(offer, plan, made)) or None))
            answered += [(job, answer.key) for answer in plan.answers]
            awaiting += [job] if plan.awaits_ends else []
        is_taking = offer is not None and 0 < sum(1 for made in created if made[-1]) <= offer.limit
        taker = (offer.node, offer.queues) if offer is not None and is_taking else (None, None)
        given = *columns(settled, 6), *columns(created, _CREATED), *columns(answered, 2), awaiting, mark
        found = await db.fetch(self._sql.settle_few, *given, *taker)
        done = {row["settled"]: row["by"] for row in found}
        answers = [Commit.COMMITTED if job in done else Commit.STALE for job in jobs]
        if done and not alone:
            written.by, written.answers = next(iter(done.values())), answers
        return answers, [row for row in found if row[0] is not None]

    async def _hold_plans(
        self, db: Connection, jobs: Sequence[int], plans: Sequence[Plan]
    ) -> dict[int, tuple[datetime, int]]:
        """Lock the jobs that are as their plans saw them; return the time and how often each was woken."""
        asked = [(job, plan.revision) for job, plan in zip(jobs, plans, strict=True)]
        return {row[0]: (row[2], row[1]) for row in await db.fetch(self._sql.hold_plans, *lean_columns(asked))}

    async def _settle_plain(
        self, db: Connection, jobs: Sequence[int], plans: Sequence[Plan]
    ) -> dict[int, tuple[datetime, int]]:
        """Do the same and settle the plans at once: what else they say changes nothing about their jobs."""
        asked = [
            (job, plan.revision, plan.watermark, plan.wake_at, plan.rescheduled)
            for job, plan in zip(jobs, plans, strict=True)
        ]
        return {row[0]: (row[1], 0) for row in await db.fetch(self._sql.settle_plain, *lean_columns(asked))}

    async def _keys(self, db: Connection, batch: Sequence[JobSnapshot], plans: Sequence[Plan]) -> dict[str, int]:
        """Return the inner keys of the jobs: a batch of ours knows them."""
        if isinstance(batch, Batch):
            return batch.keys
        return {row[0]: row[1] for row in await db.fetch(self._sql.job_keys, [plan.job_id for plan in plans])}

    async def _write(self, db: Connection, held: Sequence[_Held]) -> None:
        await self._fold_wakes(db, held)
        moved = _Moves.of(held)
        if moved:
            await db.execute(self._sql.hold_occurrences, moved.ids(), *columns(moved.stops, 2), moved.awaiting)
        if moved.stops:
            await db.execute(self._sql.ask_all_to_stop, *columns(moved.stops, 2), _ASKED)
        if created := [
            _created(each.job, each.snapshot, creation, each.plan.awaits_ends)
            for each in held
            for creation in each.plan.creations
        ]:
            await db.execute(self._sql.create_occurrences, held[0].now, *lean_columns(created))
            for creation in (each for held_ in held for each in _keeping(held_.plan)):
                await self._keep(db, creation, moved)
        await self._move_occurrences(db, held, moved)
        if moved.awaiting:
            await db.execute(self._sql.mark_awaited, moved.awaiting)
        if spans := [_spanned(each.job, span) for each in held for span in each.plan.spans]:
            await db.execute(self._sql.add_spans, *columns(spans, 8))
        await self._answer(db, held)
        await self._settle_facts(db, held)

    async def _keep(self, db: Connection, creation: Creation, moved: "_Moves") -> None:
        """Take the results over that a replay keeps of its original; where they are gone it must not run at all."""
        made, original = occurrence_key(creation.id), occurrence_key(creation.replay_of or "")
        kept = await db.fetchval(self._sql.keep_runs, made, original, list(creation.keeps))
        if kept is not None and kept < len(creation.keeps):
            moved.endings.append((made, STATUS_CODE[OccurrenceStatus.CANCELED], NOTHING_TO_KEEP))

    async def _fold_wakes(self, db: Connection, held: Sequence[_Held]) -> None:
        """Count the facts into `woken` and keep what the endings among them said.

        Facts about a job that had none when it was read stay: they make it due again.
        """
        by_key = {each.job: each for each in held if each.is_told}
        for row in await db.fetch(self._sql.fold_wakes, list(by_key)) if by_key else ():
            each = by_key[row["job"]]
            each.woken += row["wakes"]
            if row["ended_at"] is not None:
                each.ends.note(row, row["well"])

    async def _move_occurrences(self, db: Connection, held: Sequence[_Held], moved: "_Moves") -> None:
        now = held[0].now
        if moved.releases:
            await db.execute(self._sql.release, moved.releases, now)
        if moved.endings:
            by_key = {each.job: each for each in held}
            found = await db.fetch(self._sql.end_unowned, *columns(moved.endings, 3), now)
            ended = {str(row["id"]): row for row in found}
            for row in [ended[end[0]] for end in moved.endings if end[0] in ended]:
                by_key[row["job"]].ends.note(row, row["status"] in _WELL)
        if moved.cancels:
            await db.execute(self._sql.ask_to_stop, moved.cancels, _ASKED)

    async def _answer(self, db: Connection, held: Sequence[_Held]) -> None:
        answers = [(each.job, a.key, a.done_through) for each in held for a in each.plan.answers]
        if not answers:
            return
        for row in await db.fetch(self._sql.answer_requests, *columns(answers, 3)):
            rest = replace(rows.request(row), after=row["done_through"], requested_at=held[0].now)
            await db.execute(self._sql.add_request, *rows.request_row(row["job"], rest))

    async def _settle_facts(self, db: Connection, held: Sequence[_Held]) -> None:
        """Forget the facts that are decided: nothing at or before the watermark is asked about again."""
        used = [(each.job, adjustment.at) for each in held for adjustment in each.plan.used]
        if used:
            await db.execute(self._sql.mark_adjustments, *columns(used, 2))
        if adjusted := [(each.job, each.plan.watermark) for each in held if each.snapshot.adjustments]:
            await db.execute(self._sql.settle_adjustments, *columns(adjusted, 2))
        if paused := [(each.job, each.plan.watermark) for each in held if each.snapshot.pauses]:
            await db.execute(self._sql.settle_pauses, *columns(paused, 2))


@dataclass(slots=True)
class _Facts:
    """What was read beside the standing of the jobs, by job."""

    active: dict[int, list[Row]]
    pauses: dict[int, list[Row]]
    adjustments: dict[int, list[Row]]
    requests: dict[int, list[Row]]
    ended: dict[int, Row] = field(default_factory=dict)


def _by_job(found: Iterable[Row]) -> dict[int, list[Row]]:
    by_job: dict[int, list[Row]] = {}
    for row in found:
        by_job.setdefault(row["job"], []).append(row)
    return by_job


def _are_plain(jobs: Sequence[int], plans: Sequence[Plan], told: set[int]) -> bool:
    """Tell whether no plan says more of its job than how far it is decided; most do not, when many are due."""
    unique = len(set(jobs)) == len(jobs)
    return unique and told.isdisjoint(jobs) and not any(plan.endings or _keeping(plan) for plan in plans)


def _keeping(plan: Plan) -> list[Creation]:
    """Return what is to keep results of an original, which only something asked for does."""
    return [each for each in plan.creations if each.keeps and each.status not in ENDED] if plan.answers else []


def _are_few(batch: Sequence[JobSnapshot], plans: Sequence[Plan]) -> bool:
    """Tell whether one statement can write these: few, and none changes what exists already."""
    return (
        len(plans) <= _FEW
        and len({plan.job_id for plan in plans}) == len(plans)
        and not any(
            plan.endings
            or plan.releases
            or plan.cancels
            or plan.cancels_before
            or plan.spans
            or plan.used
            or _keeping(plan)
            or any(answer.done_through for answer in plan.answers)
            for plan in plans
        )
        and not any(snapshot.pauses or snapshot.adjustments for snapshot in batch)
    )


def _is_wanted(offer: Offer, plan: Plan, made: tuple[object, ...]) -> bool:
    """Tell whether the node could claim at once what is made here, in the columns of `_created`."""
    return made[4] == _PENDING and made[12] in offer.queues and plan.job_id not in offer.unknown


def _require_progress(plan: Plan, seen: JobSnapshot) -> None:
    assert plan.watermark >= seen.watermark, f"{plan.job_id}: the watermark moved back"


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
        None if ends[14] is None else Ended(ends[12], ends[13], ends[14]),
        None if ends[17] is None else Ended(ends[15], ends[16], ends[17]),
        awaited,
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


def _created(job: int, seen: JobSnapshot, creation: Creation, awaited: bool) -> tuple[object, ...]:
    own = seen.editions[-1].job.settings
    overrides = payload = None
    if creation.payload is not None or creation.overrides is not None:
        given = own_overrides(creation, own)
        overrides, payload = rows.write_overrides(given)
        own = own.overridden_by(given) if given.items else own
    return (
        creation.id[4:],
        job,
        creation.version,
        creation.scheduled_for,
        STATUS_CODE[creation.status],
        CAUSE_CODE[creation.cause],
        own.priority,
        creation.late,
        creation.line_at,
        creation.ready_at,
        creation.covers_after,
        creation.covers_through,
        own.queue,
        rows.text(f"{creation.why}, {creation.detail}" if creation.detail else str(creation.why)),
        overrides,
        payload,
        creation.replay_of,
        awaited,
    )


def _spanned(job: int, span: Span) -> tuple[object, ...]:
    return (
        job,
        STATUS_CODE[span.status],
        str(span.why),
        rows.text(span.detail),
        span.after,
        span.through,
        span.version,
        span.count,
    )


def _settled(held: _Held) -> tuple[object, ...]:
    plan = held.plan
    # An ending, request or edit after the snapshot was read must not be slept through.
    wake_at = plan.wake_at if held.woken == plan.woken else held.now
    return (
        held.job,
        held.woken,
        plan.watermark,
        wake_at,
        plan.rescheduled,
        *held.ends.end,
        *held.ends.success,
    )
