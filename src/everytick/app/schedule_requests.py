"""What people ask of a job's schedule: pause, resume, reschedule, rewind; skip, move, amend, add and undo of one run.

Each is stored as a fact; a plan decides what follows from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from everytick.app.requests import Requests
from everytick.app.text_reading import future, moment_of, now_or_later
from everytick.domain.config import UNSET
from everytick.domain.lookups import LaterRequests
from everytick.errors import Conflict, InvalidInstant, InvalidPolicies, shown

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.app.handle import Handle
    from everytick.domain.facts import Fact
    from everytick.domain.keywords import OccurrencePolicies, OverlapWord
    from everytick.domain.schedule import Schedule
    from everytick.domain.snapshots import Adjustment, JobSnapshot, Missed, MissedWord, Request
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord

ADDED = "added:"
"""The keys of runs that were added begin with this. The time follows, so that one time is added once."""

_LATER_READ = 10_000
"""How many runs that were asked for at a time are looked through to find one that was added."""


class ScheduleRequests(Requests):
    """Requests about the schedule; `by` says who asks and is stored with the fact: by default this application."""

    async def pause(
        self,
        name: str,
        *,
        until: datetime | str | None = None,
        reason: str = "",
        missed: MissedWord = "skip",
        by: str | None = None,
    ) -> None:
        """Hold the schedule from now on. `missed` says what becomes of its instants, unless `resume` says otherwise.

        They are skipped, or handed to `recovery` once the pause is over: all of them with `catch_up`, the newest
        with `last`.
        """
        from everytick.domain.facts import Pause
        from everytick.domain.policy_checks import choice
        from everytick.domain.snapshots import Missed

        what = choice("missed", Missed, missed)
        store = await self._opened()
        record = await self._find(store, name)
        end = None if until is None else future("the end of a pause", until, await store.now())
        await store.request(record.job.id, Pause(end, what, reason, self._by(by)))

    async def resume(
        self, name: str, *, missed: MissedWord | None = None, confirmed: bool = False, by: str | None = None
    ) -> bool:
        """End a pause now. Return whether there was one.

        `missed` says what becomes of the instants that were held; without it, what the pause says.
        `confirmed` carries out what is guarded: many runs that are caught up, or a protected job.
        """
        from everytick.domain.changes import Tell
        from everytick.domain.facts import Resume
        from everytick.domain.policy_checks import choice
        from everytick.domain.snapshots import Missed

        what = None if missed is None else choice("missed", Missed, missed)
        store = await self._opened()
        record = await self._find(store, name)
        fact = Resume(self._by(by), what)
        if record.pause is not None:
            await self._agree(
                store,
                f"the resumption of job '{shown(name)}'",
                [record.job],
                [Tell(record.job.name, fact, record.job.version)],
                created={record.job.id: await _caught_up(store, record.job.id, what)},
                confirmed=confirmed,
                by=fact.by,
            )
        return (await store.request(record.job.id, fact)).changed

    async def reschedule(self, name: str, at: datetime | str, *, by: str | None = None) -> None:
        """Set the next run; the instants before it give way, those after it stay.

        A time of the last minute means now.
        """
        from everytick.domain.facts import Reschedule

        store = await self._opened()
        record = await self._find(store, name)
        to = await next_run_at(store, record, at)
        await store.request(record.job.id, Reschedule(to, self._by(by)))

    async def rewind(self, name: str, *, by: str | None = None) -> bool:
        """Let a job go on now that was decided ahead while a clock was wrong; return whether it lay ahead.

        What has run stays so. What was recorded as not run is decided anew by the newest
        definition, and single instants of that time that were skipped or moved are forgotten.
        """
        import logging

        from everytick.domain.facts import Rewind

        store = await self._opened()
        record = await self._find(store, name)
        is_ahead = (await store.request(record.job.id, Rewind())).changed
        if is_ahead:
            text = "job '%s' was decided through %s: %s set it right, and it goes on now"
            logging.getLogger("everytick.app").warning(text, name, record.watermark.isoformat(), self._by(by))
        return is_ahead

    async def skip(self, name: str, at: datetime | str, *, reason: str = "", by: str | None = None) -> None:
        """Skip one single future instant of the schedule; `undo` takes that back."""
        from everytick.domain.facts import Skip

        store = await self._opened()
        record = await self._find(store, name)
        instant = await coming_instant(store, record, at)
        await _tell(store, record, Skip(instant, reason, self._by(by)))

    async def move(
        self, name: str, at: datetime | str, to: datetime | str, *, reason: str = "", by: str | None = None
    ) -> None:
        """Let one single future instant run at another time; it keeps its id, and what it was amended with.

        To its own time it is moved back, as `undo` does.
        """
        from everytick.domain.facts import Move, Undo

        store = await self._opened()
        record = await self._find(store, name)
        instant = await coming_instant(store, record, at)
        target = future("where an instant is moved", to, await store.now())
        if target == instant and not await _is_moved_away(store, record.job.id, instant):
            raise InvalidInstant(to, "is where it stands already: give another time, or leave it")
        by = self._by(by)
        fact = Undo(instant, reason, by) if target == instant else Move(instant, target, reason, by)
        await _tell(store, record, fact)

    async def amend(
        self,
        name: str,
        at: datetime | str,
        *,
        reason: str = "",
        by: str | None = None,
        **policies: Unpack[OccurrencePolicies],
    ) -> None:
        """Let one single future instant run with a payload or other policies of its own; `undo` takes that back.

        It runs where it stands or is moved to. What it was amended with before stays, unless it is named again.
        """
        from everytick.domain.config import Level, overrides
        from everytick.domain.facts import Amend

        given = {key: written for key, written in policies.items() if key != "payload" or written is not None}
        own = overrides(Level.OCCURRENCE, given, name, "one single instant")
        if not own.items:
            raise InvalidPolicies(name, "nothing is amended", ("payload={...}", "another policy, like priority=5"))
        store = await self._opened()
        record = await self._find(store, name)
        self._refuse_unfit(name, None, policies.get("payload"))
        self._refuse_unfit(name, record.job, policies.get("payload"))
        instant = await coming_instant(store, record, at)
        await _tell(store, record, Amend(instant, own, reason, self._by(by)))

    async def add(
        self,
        name: str,
        at: datetime | str,
        payload: object = UNSET,
        *,
        overlap: OverlapWord | None = None,
        reason: str = "",
        by: str | None = None,
    ) -> Handle:
        """Add one single run at a time to come that the schedule does not name, and return its handle.

        It is asked for as by `trigger(name, at=…)`. Added at the same time again, it is the same run; `undo` of
        its time takes it back.
        """
        store = await self._opened()
        record = await self._find(store, name)
        moment = future("when a run is added", at, await store.now())
        snapshot = (await store.look([record.job.id]))[record.job.id]
        if _names(snapshot, moment):
            away = any(adjustment.at == moment and adjustment.vacates for adjustment in snapshot.adjustments)
            hint = "undo what was said of it" if away else "amend it, or trigger another run beside it"
            reason_why = f"is named by the schedule of job '{shown(record.job.name)}': {hint}"
            raise InvalidInstant(at, reason_why)
        key = f"{ADDED}{moment.isoformat()}"
        return await self.trigger(name, payload, at=moment, key=key, overlap=overlap, reason=reason, by=by)

    async def undo(self, name: str, at: datetime | str, *, reason: str = "", by: str | None = None) -> tuple[str, ...]:
        """Take back what was said of one time to come, and return that: skip, move, amend, reschedule, add.

        `at` is the instant of the schedule, or the time to which a run was moved, rescheduled or added.
        """
        from everytick.domain.facts import Cancel, Undo, UndoReschedule

        store = await self._opened()
        record = await self._find(store, name)
        job_id, moment, by = record.job.id, moment_of(at), self._by(by)
        snapshot = (await store.look([job_id]))[job_id]
        undone: list[str] = []
        for adjustment in spoken_of(snapshot, moment):
            await _tell(store, record, Undo(adjustment.at, reason, by))
            undone += _words(adjustment)
        for to in set_to(snapshot, moment):
            if (await store.request(job_id, UndoReschedule(to, by))).changed:
                undone.append("reschedule")
        later = await store.ask(LaterRequests([job_id], _LATER_READ))
        asked = [request for _, request in later if request.line_at == moment]
        for request in asked:
            if request.key.startswith(ADDED):
                said = f"undone by {by}: {reason}" if reason else f"undone by {by}"
                await store.request(request.occurrence_id(job_id), Cancel(said))
                undone.append("add")
        if not undone:
            raise _nothing_to_undo(record.job.name, snapshot, moment, asked and asked[0].occurrence_id(job_id))
        return tuple(undone)


async def _tell(store: AnyStore, record: JobRecord, fact: Fact) -> None:
    """Write the fact about one single instant, or say why it comes too late."""
    if (await store.request(record.job.id, fact)).changed:
        return
    at = getattr(fact, "at", None)
    text = f"job '{shown(record.job.name)}' has decided about {at} already: see everytick explain; nothing is changed"
    raise Conflict(text)


async def next_run_at(store: AnyStore, record: JobRecord, at: datetime | str) -> datetime:
    """Return the time to which the next run is set. An instant at this very time may have the id of that run.

    It does if it is planned already, and if it was skipped or moved away: then the run comes a microsecond later.
    """
    from everytick.domain.durations import MICROSECOND

    job_id, to = record.job.id, now_or_later("the next run", at, await store.now())
    snapshot = (await store.look([job_id])).get(job_id)
    taken = [] if snapshot is None else [adjustment.at for adjustment in snapshot.adjustments if adjustment.vacates]
    return to + MICROSECOND if to in (record.watermark, *taken) else to


def set_to(snapshot: JobSnapshot, moment: datetime) -> list[datetime]:
    """Return the time to which the next run is set, if people mean it by this moment."""
    from everytick.domain.durations import MICROSECOND

    moved = snapshot.reschedule
    return [moved.to] if moved is not None and moved.to in (moment, moment + MICROSECOND) else []


async def coming_instant(store: AnyStore, record: JobRecord, at: datetime | str) -> datetime:
    """Return the instant of the schedule that is meant: by itself, or by the time to which it was moved."""
    moment, now = moment_of(at), await store.now()
    snapshot = (await store.look([record.job.id]))[record.job.id]
    is_named = moment > max(now, snapshot.watermark) and _names(snapshot, moment)
    moved = [
        adjustment.at for adjustment in spoken_of(snapshot, moment) if adjustment.vacates and adjustment.to is not None
    ]
    if not is_named and moved:
        if len(moved) > 1:
            listed = " and ".join(instant.isoformat() for instant in sorted(moved))
            raise InvalidInstant(at, f"is where {listed} were moved: name one of them by its own time")
        return moved[0]
    instant = future("one single instant", at, now)
    if instant <= snapshot.watermark:
        raise Conflict(f"job '{shown(record.job.name)}' has decided about {instant.isoformat()} already")
    if not is_named:
        said = " and ".join(near.isoformat() for near in _nearest(snapshot, instant)) or "none"
        reason = f"is not named by the schedule of job '{shown(record.job.name)}'; the nearest instants are {said}"
        raise InvalidInstant(at, reason)
    return instant


def _schedule_at(snapshot: JobSnapshot, moment: datetime) -> Schedule:
    """Return the schedule that is in force at a moment to come."""
    from everytick.domain.durations import MICROSECOND
    from everytick.domain.upcoming import bound_schedule, in_force

    return bound_schedule(snapshot, in_force(snapshot.editions, moment - MICROSECOND), snapshot.watermark, idle=True)


def _names(snapshot: JobSnapshot, moment: datetime) -> bool:
    return _schedule_at(snapshot, moment).last_at(moment) == moment


def _nearest(snapshot: JobSnapshot, moment: datetime) -> list[datetime]:
    """Return the instants before and after a moment that the schedule names and that are still to come."""
    schedule = _schedule_at(snapshot, moment)
    near = schedule.last_at(moment), schedule.next_after(moment)
    return [instant for instant in near if instant is not None and instant > snapshot.watermark]


def spoken_of(snapshot: JobSnapshot, moment: datetime) -> list[Adjustment]:
    """Return what was said of the instant at this moment, and of those that were moved to it."""
    return [
        adjustment
        for adjustment in snapshot.adjustments
        if moment in (adjustment.at, adjustment.to) and not adjustment.done and not adjustment.is_undone
    ]


def _words(adjustment: Adjustment) -> list[str]:
    place = [str(adjustment.kind)] if adjustment.vacates else []
    return [*place, "amend"] if adjustment.overrides is not None else place


def _nothing_to_undo(name: str, snapshot: JobSnapshot, moment: datetime, asked: str | list[Request]) -> Conflict:
    if asked:
        return Conflict(
            f"the run of '{shown(name)}' at {moment.isoformat()} was asked for by a trigger: cancel {asked}"
        )
    moved = snapshot.reschedule
    known = [
        adjustment.to or adjustment.at
        for adjustment in snapshot.adjustments
        if not adjustment.done and not adjustment.is_undone
    ]
    known += [] if moved is None else [moved.to]
    said = f"; there are changes for {', '.join(instant.isoformat() for instant in sorted(known)[:5])}" if known else ""
    return Conflict(f"there is nothing to undo of '{shown(name)}' at {moment.isoformat()}{said}")


async def _caught_up(store: AnyStore, job_id: str, missed: Missed | None) -> int:
    """Return how many of the instants that a pause holds run once it is over."""
    from everytick.deciding.guards import created_at_once
    from everytick.deciding.revise import resumed

    snapshot = (await store.look([job_id]))[job_id]
    now = await store.now()
    return created_at_once(snapshot, resumed(snapshot, now, missed), now)


async def _is_moved_away(store: AnyStore, job_id: str, instant: datetime) -> bool:
    """Whether the instant is skipped or moved. One that has run at its new time stays moved."""
    snapshot = (await store.look([job_id]))[job_id]
    return any(
        adjustment.at == instant and adjustment.vacates and not adjustment.done for adjustment in snapshot.adjustments
    )
