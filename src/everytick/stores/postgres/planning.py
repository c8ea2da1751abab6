"""commit_plans: each plan written whole or not at all, as the revision of its job decides."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from everytick.domain.decisions import Plan
from everytick.domain.needs import needs_in
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import StoreUnavailable
from everytick.stores.base import Claim, Commit, Offer, new_token
from everytick.stores.postgres.base import columns, lean_columns
from everytick.stores.postgres.claims import place_in_line
from everytick.stores.postgres.door import Connection, patiently
from everytick.stores.postgres.due import Batch, Due
from everytick.stores.postgres.rows import CAUSE_CODE, STATUS_CODE, Row
from everytick.stores.postgres.settling import Ends, Held, Settling, created_row, keeping, settled_row

_NOBODY = -1
_FEW = 50
_CREATED = 20
_PENDING = STATUS_CODE[OccurrenceStatus.PENDING]


@dataclass(slots=True)
class _Written:
    """What was written and not yet known to be committed: by which transaction or mark, and what it answered."""

    by: str | None = None
    answers: list[Commit] = field(default_factory=list)
    mark: int | None = None
    jobs: list[int] = field(default_factory=list)


class Planning(Due, Settling):
    """What the planner asks."""

    @patiently
    async def commit_plans(self, batch: Sequence[JobSnapshot], plans: Sequence[Plan]) -> list[Commit]:
        """Write each plan whole, on the condition that its job's revision is still the snapshot's.

        Ends the batch: its jobs are free again. A hold that was lost meanwhile costs
        nothing but time, since the revision decides. A commit that was cut off is looked
        up: it may have been written, and then it is not stale.
        """
        if not plans:
            return []
        await self._tell_needs(batch, plans)
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
        await self._tell_needs(batch, plans)
        written = _Written()
        try:
            async with self._door.connection() as db:
                commits, found = await self._settle_few(db, batch.keys, batch, plans, written, offer)
                claims, unreadable = await self._claims(db, sorted(found, key=place_in_line))
                if unreadable:
                    await db.execute(self._sql.give_back, unreadable, offer.scope.node)
        except StoreUnavailable:
            return await self._commit_anew(batch, plans, written), []
        return commits, claims

    async def _tell_needs(self, batch: Sequence[JobSnapshot], plans: Sequence[Plan]) -> None:
        """Let nodes know the needs of what will wait in another queue than its job; before any lock is taken."""
        moved = [plan for plan in plans if any(each.overrides is not None for each in plan.creations)]
        if moved:
            jobs = {snapshot.job_id: snapshot.editions[-1].job for snapshot in batch}
            queues = ((plan.job_id, each.overrides.get("queue")) for plan in moved for each in plan.creations
                      if each.overrides is not None)  # fmt: skip
            texts = {needs_in(jobs[id_].labels, str(queue)) for id_, queue in queues if queue is not None}
            if texts:
                async with self._door.connection() as db:
                    await db.execute(self._sql.add_needs, list(texts))

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
        held: list[Held] = []
        answers: list[Commit] = []
        for job, plan in zip(jobs, plans, strict=True):
            # The first of two plans for one job makes the second one stale, as it raises the revision.
            found = locked.pop(job, None)
            answers.append(Commit.STALE if found is None else Commit.COMMITTED)
            if found is not None:
                seen = snapshots[plan.job_id]
                _require_progress(plan, seen)
                held.append(Held(job, found[0], found[1], plan, seen, Ends(), told is None or job in told))
        if held:
            await self._write(db, held)
            if not plain:
                await db.execute(self._sql.settle_plans, *lean_columns(map(settled_row, held)))
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
        next_runs = [plan.next_run for plan in plans]
        for job, plan in zip(jobs, plans, strict=True):
            seen = snapshots[plan.job_id]
            _require_progress(plan, seen)
            settled.append((job, plan.revision, plan.woken, plan.watermark, plan.wake_at, plan.rescheduled))
            for creation in plan.creations:
                made = created_row(job, seen.editions[-1].job, creation, plan.awaits_ends)
                created.append((*made, (offer is not None and _is_wanted(offer, plan, made)) or None))
            answered += [(job, answer.key, CAUSE_CODE[answer.cause]) for answer in plan.answers]
            awaiting += [job] if plan.awaits_ends else []
        is_taking = offer is not None and 0 < sum(1 for made in created if made[-1]) <= offer.limit
        taker = (offer.scope.node, offer.scope.met) if offer is not None and is_taking else (None, None)
        *asked, causes = columns(answered, 3)
        given = *columns(settled, 6), *columns(created, _CREATED), *asked, awaiting, mark
        found = await db.fetch(self._sql.settle_few, *given, *taker, next_runs, causes, new_token())
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
            (job, plan.revision, plan.watermark, plan.wake_at, plan.rescheduled, plan.next_run)
            for job, plan in zip(jobs, plans, strict=True)
        ]
        return {row[0]: (row[1], 0) for row in await db.fetch(self._sql.settle_plain, *lean_columns(asked))}

    async def _keys(self, db: Connection, batch: Sequence[JobSnapshot], plans: Sequence[Plan]) -> dict[str, int]:
        """Return the inner keys of the jobs: a batch of ours knows them."""
        if isinstance(batch, Batch):
            return batch.keys
        return {row[0]: row[1] for row in await db.fetch(self._sql.job_keys, [plan.job_id for plan in plans])}


def _are_plain(jobs: Sequence[int], plans: Sequence[Plan], told: set[int]) -> bool:
    """Tell whether no plan says more of its job than how far it is decided; most do not, when many are due."""
    unique = len(set(jobs)) == len(jobs)
    return unique and told.isdisjoint(jobs) and not any(plan.endings or keeping(plan) for plan in plans)


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
            or plan.narrowed
            or keeping(plan)
            or any(answer.done_through for answer in plan.answers)
            for plan in plans
        )
        and not any(snapshot.pauses or snapshot.adjustments for snapshot in batch)
    )


def _is_wanted(offer: Offer, plan: Plan, made: tuple[object, ...]) -> bool:
    """Tell whether the node could claim at once what is made here, in the columns of `_created`."""
    return made[4] == _PENDING and made[12] in offer.scope.met and plan.job_id not in offer.scope.unknown


def _require_progress(plan: Plan, seen: JobSnapshot) -> None:
    assert plan.watermark >= seen.watermark, f"{plan.job_id}: the watermark moved back"
