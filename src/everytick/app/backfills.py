"""Backfills: past instants that run after all, planned, approved, and watched until they are done."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from everytick.app.guarding import Guarding
from everytick.app.text_reading import moment_of
from everytick.domain.backfills import FASTEST_RATE, RATE, BackfillOrder, BackfillStatus
from everytick.domain.durations import duration, format_duration
from everytick.domain.lookups import NewestBackfills
from everytick.domain.names import checked_name
from everytick.errors import Conflict, InvalidInstant, InvalidPolicies, NeedsApproval, NotFound, shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime, timedelta

    from everytick.domain.backfills import BackfillRecord
    from everytick.domain.job import Job
    from everytick.domain.policies import Overlap
    from everytick.stores.addresses import AnyStore

_LOOKED_FOR = 1_000
"""Most backfills of the store that are looked through for one id."""

_FIRST_LOOK_SECONDS, _LONGEST_LOOK_SECONDS = 0.05, 1.0
"""Seconds between two looks at a backfill that is waited for: 0.05 at first, doubled each time, at most 1."""


class AsOf(StrEnum):
    """Which definition names the past instants of a backfill: that of their time, or the newest."""

    THEN = "then"
    NOW = "now"


class Backfill:
    """A backfill: `instants` are what it asks for, at most 10,000 of them shown; `more` says that there are more.

    `id` is None if it was a dry run, or there was nothing to fill.
    """

    def __init__(
        self,
        id: str | None,
        job_id: str,
        opened: Callable[[], Awaitable[AnyStore]],
        by: str,
        instants: tuple[datetime, ...] = (),
        more: bool = False,
    ) -> None:
        self.id, self.instants, self.more = id, instants, more
        self._job_id, self._opened, self._by = job_id, opened, by

    def __repr__(self) -> str:
        return f"Backfill({self.id!r}, {len(self.instants)}{' or more' if self.more else ''} instants)"

    async def progress(self) -> BackfillRecord:
        """Return where it stands: how many are done, have failed, run, and are left."""
        found = await (await self._opened()).ask(NewestBackfills(self._job_id, _LOOKED_FOR))
        for record in found:
            if record.id == self.id:
                return record
        raise NotFound("backfill", str(self.id))

    async def approve(self, by: str | None = None) -> bool:
        """Let it run. Return whether it was not running."""
        return await self._steer(BackfillStatus.RUNNING, by)

    async def pause(self, by: str | None = None) -> bool:
        """Let it make no further occurrences until it is resumed. Those that it has made run. Return if it changed."""
        return await self._steer(BackfillStatus.PAUSED, by)

    async def resume(self, by: str | None = None) -> bool:
        """Let it go on. Return whether it was paused."""
        return await self._steer(BackfillStatus.RUNNING, by)

    async def cancel(self, by: str | None = None) -> bool:
        """End it, and what it has made and no node has claimed. What runs is left to end. Return if it changed."""
        return await self._steer(BackfillStatus.CANCELED, by)

    async def wait(self, timeout: timedelta | str | None = None) -> BackfillRecord:  # noqa: ASYNC109 - a duration
        """Return it once nothing of it is left to do. Raise TimeoutError if that takes too long."""
        import asyncio

        within, pause = None if timeout is None else duration(timeout), _FIRST_LOOK_SECONDS
        try:
            async with asyncio.timeout(None if within is None else within.total_seconds()) as limit:
                while not (record := await self.progress()).is_over:
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_LOOK_SECONDS)
                return record
        except TimeoutError:
            if within is None or not limit.expired():
                raise
            raise TimeoutError(f"backfill {self.id} is not done within {format_duration(within)}") from None

    async def _steer(self, to: BackfillStatus, by: str | None) -> bool:
        from everytick.domain.facts import SteerBackfill

        if self.id is None:
            raise NotFound("backfill", "that was never planned")
        who = self._by if by is None else by
        if to is BackfillStatus.RUNNING:
            await self._refuse_alone(who)
        fact = SteerBackfill(self.id, to, who)
        return (await (await self._opened()).request(self._job_id, fact)).changed

    async def _refuse_alone(self, by: str) -> None:
        """Raise Conflict if its job needs two people, and only the person who planned it wants it to run."""
        from everytick.deciding.guards import why_not_approved
        from everytick.domain.policies import Protected
        from everytick.domain.proposals import LASTS, Proposal

        store = await self._opened()
        job = (await store.get([self._job_id]))[self._job_id].job
        if job.settings.protected is not Protected.TWO_PEOPLE:
            return
        record = await self.progress()
        if record.approved_at is not None:
            return
        at, planned_by = record.planned_at, record.order.by
        proposal = Proposal(record.id, _what(job), (job.name,), planned_by, at, at + LASTS)
        if (reason := why_not_approved(proposal, by, await store.now())) is not None:
            raise Conflict(f"backfill {record.id} is not approved: {reason}")


class Backfills(Guarding):
    """Backfills of the jobs in the store."""

    async def backfill(
        self,
        name: str,
        after: datetime | str,
        through: datetime | str,
        *,
        again: bool = False,
        overlap: Literal["queue", "allow"] | None = None,
        as_of: Literal["then", "now"] = "then",
        rate: int = RATE,
        newest_first: bool = False,
        dry_run: bool = False,
        approve: bool = True,
        confirmed: bool = False,
        reason: str = "",
        key: str | None = None,
        by: str | None = None,
    ) -> Backfill:
        """Ask for the past instants in `(after, through]` and return a handle. With `approve=False` it is only planned.

        The definition that was in force then names them, before the first version the first; with
        `as_of="now"` the newest does. Those that have an occurrence are left alone unless `again`
        says otherwise; one that was moved has it elsewhere. At most `rate` of them start in a minute. They take a
        place of the job only where its schedule wants none, or overlap where the job does or `overlap` says so.
        Many instants at once, and those of a protected job, must be `confirmed`; where the job needs two people it
        is planned, and another person approves it. The same `key` again is the same backfill.
        """
        from everytick.app.past_instants import unfilled
        from everytick.domain.facts import PlanBackfill
        from everytick.domain.policy_checks import choice

        rule, as_of_now = _filling_rule(overlap), choice("as_of", AsOf, as_of) is AsOf.NOW
        own = _key() if key is None else checked_name("request key", key)
        _refuse_rate(rate)
        store = await self._opened()
        record = await self._find(store, name)
        now, begin, end = await store.now(), moment_of(after), moment_of(through)
        if begin >= min(end, now):
            limit = "the end of the backfill" if end <= now else "now: a backfill asks for the past"
            raise InvalidInstant(after, f"must come before {min(end, now).isoformat()}, {limit}")
        end = min(end, now)
        missing, more = await unfilled(store, record, begin, end, again=again, as_of_now=as_of_now)
        who, job_id = self._by(by), record.job.id
        if dry_run or not missing:
            return Backfill(None, job_id, self._opened, who, tuple(missing), more)
        count = None if more else len(missing)
        order = BackfillOrder(
            key=own,
            after=begin,
            through=end,
            again=again,
            as_of_now=as_of_now,
            newest_first=newest_first,
            overlap=rule,
            rate=rate,
            count=count,
            reason=reason,
            by=who,
        )
        is_for_two = approve and await self._is_for_two(store, record.job, len(missing), more, confirmed)
        made = await store.request(job_id, PlanBackfill(order, approve and not is_for_two))
        if is_for_two:
            from everytick.domain.proposals import LASTS

            raise NeedsApproval(_what(record.job), made.id, who, now + LASTS, "backfill approve")
        return Backfill(made.id, job_id, self._opened, who, tuple(missing), more)

    async def _is_for_two(self, store: AnyStore, job: Job, count: int, more: bool, confirmed: bool) -> bool:
        """Tell whether a second person must approve it. Raise NeedsConfirmation without `confirmed`."""
        created = {job.id: count}
        return await self._cost_for_two(store, _what(job), [job], created, more=more, confirmed=confirmed) is not None

    async def backfills(self, name: str | None = None, *, limit: int = 100) -> Sequence[BackfillRecord]:
        """Return the newest backfills, of one job or of all, newest first; at most 1,000."""
        from everytick.domain.policy_checks import whole

        store, most = await self._opened(), whole("limit", limit, 1, _LOOKED_FOR)
        return await store.ask(NewestBackfills(None if name is None else (await self._find(store, name)).job.id, most))

    async def find_backfill(self, id: str, *, by: str | None = None) -> Backfill:
        """Return the handle of the backfill that has this id."""
        found = await (await self._opened()).ask(NewestBackfills(None, _LOOKED_FOR))
        for record in found:
            if record.id == id:
                return Backfill(id, record.job_id, self._opened, self._by(by))
        raise NotFound("backfill", id)


def _what(job: Job) -> str:
    return f"the backfill of job '{shown(job.name)}'"


def _filling_rule(given: str | None) -> Overlap | None:
    """Return the overlap rule of a backfill: nothing of it is left out, and none of it cancels another."""
    if given is None:
        return None
    from everytick.domain.policies import Overlap
    from everytick.domain.policy_checks import choice

    rule = choice("overlap", Overlap, given)
    if rule not in (Overlap.QUEUE, Overlap.ALLOW):
        text = f"overlap={given} is not for a backfill, which leaves no instant out and cancels none"
        raise InvalidPolicies("", text, ('overlap="queue"', 'overlap="allow"'))
    return rule


def _refuse_rate(rate: int) -> None:
    if type(rate) is not int or not 1 <= rate <= FASTEST_RATE:
        text = f"rate={rate} is how many start in a minute: a whole number from 1 to {FASTEST_RATE:,}"
        raise InvalidPolicies("", text)


def _key() -> str:
    """Return a key, made before the first write, so that a repeated write finds its own effect."""
    from uuid import uuid4

    return uuid4().hex
