"""The reporter: calls the hooks of a job around its occurrences, and delivers every report at least once.

A report goes to the job's `on_complete` hook, and to the notifier if the job has `on_failure`, `on_recovery` or
`on_success`.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

from everytick.domain.job import Job
from everytick.domain.report import Report, attempt_reports
from everytick.domain.steps import OccurrenceEnd
from everytick.errors import NotFound, StoreUnavailable, shown
from everytick.node.health import Backoff, Health
from everytick.node.hooks import Hook, HookTable, HookThreads, call_hook
from everytick.node.inbox import Inbox, Prepared, StartHookOver
from everytick.node.notifier import Notifier
from everytick.node.occurrence import OpenAttempt
from everytick.node.scope import Scope
from everytick.stores.base import Claim
from everytick.stores.protocols import HistoryStore, JobStore, RunStore

_log = logging.getLogger("everytick.hooks")

_CALLED_AT_ONCE = 64
"""How many hooks run at once: each may have a thread."""

_CALLED_AT_ONCE_OF_A_JOB = 8
"""How many of them may be of one job: one whose hooks are slow must not keep others waiting."""

_MOST_HELD = 1_000
"""Most reports that are kept in memory; the others stay in the store until there is room."""

_MOST_HELD_OF_A_JOB = 100
"""How many of them may be of one job."""

_ASKED_FOR = 100
"""How many reports one question asks for, beside those in memory."""

_LOOK_SECONDS = 30.0
"""How often the store is asked for reports of ends on other nodes."""


class Reporter:
    """Knows the hooks of this process; one that raises is logged and changes nothing.

    Without a notifier it leaves the reports of jobs with notices alone: the store keeps them for a node that has one.
    Hooks wait neither for other hooks nor for other jobs, up to the bounds above. Reports beyond
    them stay in the store, which owes each until it was delivered.
    """

    def __init__(
        self,
        store: RunStore,
        jobs: JobStore,
        past: HistoryStore,
        scope: Scope,
        hooks: HookTable,
        health: Health,
        hook_seconds: float,
        notifier: Notifier | None = None,
    ) -> None:
        self._store, self._jobs, self._past, self._scope = store, jobs, past, scope
        self._notifier = notifier
        self._health, self._hook_seconds = health, hook_seconds
        self.hooks = hooks
        """The hooks that are called now."""
        self._threads = HookThreads()
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(_CALLED_AT_ONCE)
        self._rooms: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._held: dict[str, str] = {}  # the job of each occurrence whose report is not marked yet
        self._of_job: Counter[str] = Counter()
        self._unmarked: set[str] = set()
        self._without_hook: set[str] = set()
        self._has_passed_over = False
        self._failure: StoreUnavailable | None = None
        self._backoff = Backoff()
        self._look = asyncio.Event()

    def wake(self) -> None:
        """Look for reports that are due: the reaper or the planner has ended something."""
        self._look.set()

    async def run(self) -> None:
        """Deliver due reports until stopped."""
        while True:
            self._look.clear()
            await self._mark_told()
            while await self.deliver_left():
                pass
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._look.wait()
            if self._failure is not None:
                # A store may answer questions and take nothing, as on a full disk: else this loop would never rest.
                failure, self._failure = self._failure, None
                await asyncio.sleep(self._backoff.failed(failure))

    def learn(self, hooks: HookTable) -> None:
        """Call these hooks from now on."""
        self.hooks = hooks

    def calls_on_start(self, claim: Claim) -> bool:
        """Whether this is the first claim of an occurrence whose job has an `on_start`."""
        return claim.job.id in self.hooks.on_start and not any(run.attempts for run in claim.life.runs)

    def call_on_start(self, claim: Claim, inbox: Inbox, over: StartHookOver) -> None:
        """Call the job's `on_start`, and put the event once it has ended."""
        hook = self.hooks.on_start.get(claim.job.id)
        if hook is None:
            inbox.put(over)
        else:
            self._spawn(self._start(hook, claim, inbox, over))

    def ended(self, claim: Claim, end: OccurrenceEnd) -> None:
        """Deliver the report of an end that is committed."""
        if self._delivers(end):
            self._hold(end)

    def with_previous(self, attempt: OpenAttempt, inbox: Inbox, prepared: Prepared) -> None:
        """Put the event once the context knows which occurrence of the job ended last."""
        self._spawn(self._look_up(attempt, inbox, prepared))

    async def previous_of(self, job: Job) -> datetime | None:
        """Return the instant of the job's occurrence that ended last; None if there was none."""
        record = (await self._jobs.get([job.id])).get(job.id)
        return None if record is None or record.last_end is None else record.last_end.scheduled_for

    async def deliver_left(self) -> bool:
        """Begin to deliver what an earlier node, the reaper or the planner left; say whether there may be more."""
        if not self.hooks.on_complete and self._notifier is None:
            return False
        # A job may have been given its hook since.
        self._without_hook = {job_id for job_id in self._without_hook if job_id not in self.hooks.on_complete}
        full = {job_id for job_id, count in self._of_job.items() if count >= _MOST_HELD_OF_A_JOB}
        self._has_passed_over |= bool(full)
        known = set(self._held)
        scope = replace(self._scope.current, unknown=frozenset(self._without_hook | full))
        ends = await self._store.reports(scope, _ASKED_FOR + len(known))
        is_any_new = False
        for ended in ends:
            if not self._delivers(ended):
                is_any_new |= ended.job_id not in self._without_hook
                self._without_hook.add(ended.job_id)
            elif ended.id not in known:
                is_any_new |= self._hold(ended)
        return is_any_new

    def _delivers(self, ended: OccurrenceEnd) -> bool:
        """Whether this process has everything that the report goes to."""
        header = ended.header
        rules = header.rules
        if rules.notifies and self._notifier is None:
            return False
        return header.job_id in self.hooks.on_complete or (rules.notifies and not rules.has_hook)

    async def close(self) -> None:
        """Return when the hooks under way have ended."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _start(self, hook: Hook, claim: Claim, inbox: Inbox, over: StartHookOver) -> None:
        why = await call_hook(hook, claim.occurrence, self._threads, self._hook_seconds)
        if why is not None:
            text = "on_start of job '%s' failed: %s; its tasks run all the same"
            _log.error(text, claim.job.name, _said(why), exc_info=why)
        inbox.put(over)

    def _hold(self, ended: OccurrenceEnd) -> bool:
        """Keep the report for delivery. False if it is kept already or memory is full; the store then keeps it."""
        if ended.id in self._held:
            return False
        if len(self._held) >= _MOST_HELD or self._of_job[ended.job_id] >= _MOST_HELD_OF_A_JOB:
            self._has_passed_over = True
            return False
        self._held[ended.id] = ended.job_id
        self._of_job[ended.job_id] += 1
        self._spawn(self._deliver(ended))
        return True

    async def _deliver(self, ended: OccurrenceEnd) -> None:
        room = self._rooms.setdefault(ended.job_id, asyncio.Semaphore(_CALLED_AT_ONCE_OF_A_JOB))
        try:
            async with room, self._room:
                await self._notify(ended)
                await self._call_on_complete(ended)
        except StoreUnavailable as error:
            # The store still owes the report: it is delivered once the store answers.
            self._health.failed(error)
            self._failure = error
            self._let_go([ended.id])
            self._look.set()
            return
        except BaseException:
            self._let_go([ended.id])
            raise
        self._backoff.succeeded()
        self._unmarked.add(ended.id)
        try:
            await self._mark([ended.id])
        except StoreUnavailable as error:
            self._health.failed(error)
            self._look.set()
        except Exception:  # noqa: BLE001, tried again by the loop, whose edge knows how to wait
            text = "the report of occurrence %s is delivered, but cannot be marked so; it is delivered again"
            _log.exception(text, ended.id)
            self._look.set()

    async def _notify(self, ended: OccurrenceEnd) -> None:
        """Ask for the notices that follow from the end. Before the hook is called: a hook may take minutes."""
        if self._notifier is None or not ended.header.rules.notifies:
            return
        try:
            await self._notifier.tell(ended)
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001, asked again it would fail again, and the hook waits for its report
            _log.exception("no notice is sent of occurrence %s, and none will be: this is a fault", ended.id)

    async def _call_on_complete(self, ended: OccurrenceEnd) -> None:
        hook = self.hooks.on_complete.get(ended.job_id)
        if hook is None:
            return
        why = await call_hook(hook, await self._report(ended), self._threads, self._hook_seconds)
        if why is not None:
            text = "on_complete failed for occurrence %s: %s; the occurrence stays as it ended"
            _log.error(text, ended.id, _said(why), exc_info=why)

    async def _report(self, ended: OccurrenceEnd) -> Report:
        """Return the report with every attempt: the store knows those before a retry, and those of other nodes."""
        if ended.tells_attempts:
            return ended.report()
        try:
            whole = await self._past.whole(ended.id)
        except NotFound:
            # The job was purged since, with all its records.
            return ended.report()
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001, what became of the occurrence is told all the same
            _log.exception("the attempts of occurrence %s cannot be read; its report is told without them", ended.id)
            return ended.report()
        return ended.report(attempt_reports(whole.attempts))

    async def _mark_told(self) -> None:
        """Mark reports that were delivered while the store was away: their hooks are not called again."""
        if self._unmarked:
            await self._mark(list(self._unmarked))

    async def _mark(self, ids: list[str]) -> None:
        await self._store.reported(ids)
        self._unmarked.difference_update(ids)
        self._let_go(ids)

    def _let_go(self, ids: list[str]) -> None:
        for id_ in ids:
            job_id = self._held.pop(id_, None)
            if job_id is None:
                continue
            self._of_job[job_id] -= 1
            if self._has_passed_over and self._has_room_again(job_id):
                self._has_passed_over = False
                self._look.set()
            if not self._of_job[job_id]:
                del self._of_job[job_id]

    def _has_room_again(self, job_id: str) -> bool:
        return len(self._held) <= _MOST_HELD // 2 and self._of_job[job_id] <= _MOST_HELD_OF_A_JOB // 2

    async def _look_up(self, attempt: OpenAttempt, inbox: Inbox, prepared: Prepared) -> None:
        job = attempt.occurrence.claim.job
        try:
            attempt.context.previous = await self.previous_of(job)
        except StoreUnavailable as error:
            # The task begins all the same; if it asks, it is told that the store does not answer.
            self._health.failed(error)
        except Exception:  # noqa: BLE001, the same
            _log.exception("which occurrence of job '%s' ended last cannot be found out; the task begins", job.name)
        inbox.put(prepared)


def _said(why: BaseException) -> str:
    return f"{type(why).__name__}: {shown(str(why), 200)}"
