"""Requests: what people and programs ask of a job beside its schedule: trigger, replay, and cancel."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from everytick.app.acting import acting
from everytick.app.backfills import Backfills
from everytick.app.handle import Handle
from everytick.app.text_reading import moment_of
from everytick.domain.config import UNSET, Unset
from everytick.domain.durations import duration, later
from everytick.domain.names import checked_name
from everytick.errors import Conflict, InvalidInstant, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from everytick.domain.job import Job
    from everytick.domain.keywords import OverlapWord
    from everytick.domain.occurrence import Occurrence
    from everytick.domain.payload import Payload
    from everytick.domain.policies import Overlap
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import Whole


class Requests(Backfills):
    """Requests for occurrences. The store keeps each until a plan answers it."""

    async def trigger(
        self,
        name: str,
        payload: object = UNSET,
        *,
        at: datetime | str | None = None,
        after: timedelta | str | None = None,
        key: str | None = None,
        overlap: OverlapWord | None = None,
        reason: str = "",
        by: str | None = None,
        within: Any = None,
    ) -> Handle:
        """Ask for an occurrence now and return its handle; the schedule is not moved.

        `at` asks for it at a time, `after` so long from now by the store's clock. It is stored until
        then, and nothing of the job waits for it or is held up by it. A time in the past means now.
        It waits in line, or overlaps where the job does, unless `overlap` names another rule.
        The same `key` again answers with the same occurrence, and with another payload it is
        refused, until that one has failed or was canceled or skipped: then the key is free
        again. Another time changes nothing: the first one holds. `within` is a connection
        of your own to the store's database, asyncpg's or sqlite3's: then it is asked for when
        your transaction commits, and never if that is rolled back.
        """
        from everytick.domain.facts import Trigger
        from everytick.runners.tracing import link_trigger

        given, rule = _payload(payload), _rule(overlap)
        wanted = _wanted(at, after)
        store = await self._opened()
        self._refuse_unfit(name, None, payload)
        # Storing the definition now would wait for the caller's own transaction.
        record = await self._find(store, name, storing=within is None)
        self._refuse_unfit(name, record.job, payload)
        named, call = _key(key)
        by = self._by(by)
        due_at = later(await store.now(), wanted) if isinstance(wanted, timedelta) else wanted
        fact = Trigger(named, given, rule, reason, by, call=call, at=due_at)
        if within is not None and acting() is not None:
            raise Conflict("a deed cannot be written in a transaction of your own: trigger outside of it, or as code")
        asked = store if within is None else self._itself()
        handle = Handle((await asked.request(record.job.id, fact, within)).id, self._opened, by)
        link_trigger(handle.id)
        return handle

    def _refuse_unfit(self, name: str, stored: Job | None, payload: object) -> None:
        """Refuse a misspelt key or a wrong kind of value in a payload: by the definition here, else the stored one."""
        # Loads the system's crypto library, which importing everytick need not wait for.
        from everytick.domain.ids import job_id

        definition = self._definitions.get(job_id(name))
        job = stored if definition is None else definition.job if stored is None else None
        if job is None or payload is None or payload is UNSET:
            return
        from everytick.domain.parameters import refuse_unfit

        refuse_unfit(name, [task.parameters for task in job.tasks], payload)

    async def _trigger_called(
        self,
        name: str,
        arguments: Mapping[str, Any],
        at: datetime | str | None = None,
        after: timedelta | str | None = None,
    ) -> Handle:
        """Ask for an occurrence with the arguments of a call, added to the payload of the definition."""
        definition = next(definition for definition in self._definitions.values() if definition.name == name)
        own = definition.job.settings.payload
        usual = own.read() if own is not None else {}
        given = {**usual, **arguments} if isinstance(usual, dict) else arguments
        return await self.trigger(name, given if arguments else UNSET, at=at, after=after)

    async def replay(
        self,
        occurrence_id: str,
        *,
        reason: str = "",
        from_task: str | None = None,
        key: str | None = None,
        overlap: OverlapWord | None = None,
        by: str | None = None,
    ) -> Handle:
        """Ask for a new occurrence that does again what an ended one did, and return its handle.

        It keeps the original's time, the instants it covers and its payload, and runs under
        the job's newest definition; it waits in line, or overlaps where the job does, unless
        `overlap` names another rule.
        With `from_task` only that task and all that come after it are run again; the others
        keep their results, and those before it must have some. What was skipped or missed has
        nothing to do again: it is run for the first time, as a backfill of that instant does.
        """
        from everytick.domain.facts import Replay
        from everytick.domain.statuses import ENDED

        rule = _rule(overlap)
        store = await self._opened()
        try:
            whole = await store.whole(occurrence_id)
        except NotFound:
            return await self._fill(store, occurrence_id, reason, from_task, key, rule, self._by(by))
        original = whole.occurrence
        if original.status not in ENDED:
            text = f"occurrence {original.id} is {original.status}: replay it once it has ended, or cancel it first"
            raise Conflict(text)
        named, call = _key(key)
        fact = Replay(
            key=named,
            of=original.id,
            scheduled_for=original.scheduled_for,
            covers_after=original.covers_after,
            covers_through=original.covers_through,
            payload=_own_payload(original),
            keeps=() if from_task is None else await _kept(store, whole, from_task),
            overlap=rule,
            reason=reason,
            by=self._by(by),
            call=call,
        )
        return Handle((await store.request(original.job_id, fact)).id, self._opened, self._by(by))

    async def _fill(
        self,
        store: AnyStore,
        id_: str,
        reason: str,
        from_task: str | None,
        key: str | None,
        rule: Overlap | None,
        by: str,
    ) -> Handle:
        """Ask for an occurrence of the instant that did not run and has this id."""
        from everytick.app.past_instants import instant_of, moved_to
        from everytick.domain.facts import Fill

        found = await instant_of(store, id_)
        if found is None:
            raise NotFound("occurrence", id_)
        record, instant = found
        if (to := await moved_to(store, record, instant)) is not None:
            raise Conflict(f"{id_} was moved to {to.isoformat()} and runs there: wait for it, or trigger the job")
        if from_task is not None:
            raise Conflict(f"{id_} has not run, so that no task has a result to keep: replay it without from_task")
        fact = Fill(_key(key)[0], instant, rule, reason, by)
        return Handle((await store.request(record.job.id, fact)).id, self._opened, by)

    async def cancel(self, occurrence_id: str, *, reason: str = "", by: str | None = None) -> bool:
        """End an occurrence that no node has claimed, or ask its node to stop. Return whether it was still active.

        What is asked for and not planned yet is ended too: it never runs. The id of a backfill ends that.
        """
        if occurrence_id.startswith("backfill_"):
            return await (await self.find_backfill(occurrence_id)).cancel(by)
        from everytick.domain.facts import Cancel

        store = await self._opened()
        said = f"canceled by {self._by(by)}"
        fact = Cancel(f"{said}: {reason}" if reason else said)
        return (await store.request(occurrence_id, fact)).changed


def _wanted(at: datetime | str | None, after: timedelta | str | None) -> datetime | timedelta | None:
    """Return when a run is asked for: at a moment, so long from now, or at once."""
    if after is None:
        return None if at is None else moment_of(at)
    if at is not None:
        raise InvalidInstant(at, "at and after both say when it runs: give one of them")
    return duration(after)


def _payload(given: object) -> Payload | None:
    if isinstance(given, Unset) or given is None:
        return None
    from everytick.domain.payload import payload

    return payload(given)


async def _kept(store: AnyStore, whole: Whole, from_task: str) -> tuple[str, ...]:
    """Return the tasks of the newest definition whose results a replay from this task on keeps."""
    from everytick.deciding.replaying import kept_tasks
    from everytick.domain.steps import rules_of

    job_id = whole.occurrence.job_id
    record = (await store.get([job_id])).get(job_id)
    if record is None:
        raise NotFound("job", job_id)
    ended = {run.task_id: run.status for run in whole.runs}
    by_name = {task.name: ended[task.id] for task in record.job.tasks if task.id in ended}
    return kept_tasks(rules_of(record.job), by_name, from_task)


def _own_payload(original: Occurrence) -> Payload | None:
    found: Payload | Unset | None = original.overrides.get("payload")
    return None if isinstance(found, Unset) else found


def _rule(given: str | None) -> Overlap | None:
    if given is None:
        return None
    from everytick.domain.policies import Overlap
    from everytick.domain.policy_checks import choice

    return choice("overlap", Overlap, given)


def _key(given: str | None) -> tuple[str, int | None]:
    """Return the request's key and, if the caller named it, a random number for this call.

    Both are made here, before the first write, so that a repeated write finds its own effect.
    """
    if given is not None:
        from random import getrandbits

        return checked_name("request key", given), getrandbits(63)
    from uuid import uuid4

    return uuid4().hex, None
