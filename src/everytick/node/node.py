"""The node: starts the loops, keeps them awake at the right moments, and stops them in order."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from everytick.domain.nodes import NodeFacts, bounded_files, bounded_jobs
from everytick.domain.texts import RECOVERY_FAILED, STARTED, STOPPING
from everytick.errors import StoreUnavailable
from everytick.node.alarms import Alarms
from everytick.node.backoff import Backoff
from everytick.node.beat import Beat
from everytick.node.clock import NodeClock
from everytick.node.events import Event, Events, Happening
from everytick.node.executor import Executor, Writing
from everytick.node.facts import facts_of_this_node
from everytick.node.foresight import LEAD
from everytick.node.health import Health
from everytick.node.janitor import Janitor
from everytick.node.local import Local
from everytick.node.logs import Logs
from everytick.node.offset import Offset
from everytick.node.planner import BATCH, Planner
from everytick.node.reaper import Reaper
from everytick.node.reporter import Hooks, Reporter
from everytick.node.settings import NodeSettings
from everytick.node.writer import Committed, Writer
from everytick.runners.base import Repertoire
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Ahead, Claim, Orders

if TYPE_CHECKING:
    from everytick.stores.memory.local import LocalStore

_log = logging.getLogger("everytick.node")

StopMode: TypeAlias = Literal["cancel", "drain"]

_JANITOR_EVERY = 60.0
_FACTS_EVERY = 60.0
_REFUSED_EVERY = 5.0
_LOCAL_EVERY = 1.0
_OVERTIME_EVERY = 30.0
_FAR = 3600.0
_ANSWER_WITHIN = 10.0
_LAST_WORDS = 3.0
_LOOK_AGAIN_AT_UNKNOWN = 60.0
_MANY = 50
_PLANNED_WITHIN = 0.02


def node_name() -> str:
    """Return a name no other start of any process has: a host's name may come back, a dead node must not."""
    return f"{socket.gethostname()}-{os.getpid()}-{token_hex(4)}"


class Node:
    """One process that plans and runs."""

    def __init__(
        self,
        store: AnyStore,
        catalogue: Repertoire,
        settings: NodeSettings,
        *,
        hooks: Hooks | None = None,
        events: Events | None = None,
        name: str | None = None,
        application: str = "",
        monotonic: Callable[[], float] = time.monotonic,
        falls_back: bool = True,
        writing: Writing = Writer,
    ) -> None:
        self.name, self._application = name or node_name(), application
        self._facts: NodeFacts | None = None
        self._broken_files: Mapping[str, str] = {}
        self._refused: Mapping[str, str] = {}
        self._stale_jobs: Mapping[str, str] = {}
        self.events = events or Events()
        bound = 3 * max(settings.heartbeat, settings.poll)
        self.health = Health(monotonic, settings.node_timeout.total_seconds(), bound.total_seconds())
        self.clock = NodeClock(monotonic)
        self.offset = Offset()
        self._store, self._settings, self._catalogue = store, settings, catalogue
        self._alarms = Alarms(monotonic)
        self._logs = Logs(settings.log_folder, self.name)
        patience = settings.hook_timeout.total_seconds()
        self.reporter = Reporter(store, store, {} if hooks is None else hooks, self.health, patience)
        self.executor = Executor(
            store,
            self.name,
            settings,
            catalogue,
            self.clock,
            self._alarms,
            self.events,
            self.health,
            self.reporter,
            self._logs,
            writing,
        )
        self.planner = Planner(
            store,
            self.clock,
            self.events,
            executor=self.executor.claimer,
            reporter=self.reporter,
            limit=settings.plan_limit,
        )
        self.reaper = Reaper(store, self.name, self.clock, self.events, settings)
        self.janitor = Janitor(store, self.clock, self._logs)
        self._beat = Beat(
            store,
            self.name,
            settings.heartbeat.total_seconds(),
            self.health,
            held=lambda: self.executor.named if self.local is None else self.local.named | self.executor.named,
            obey=self.obey,
            latest=lambda: self.executor.latest,
        )
        self.local = local = self._made_local(hooks, monotonic) if falls_back else None
        if local is not None:
            # A question that hung through an outage is answered with all that was fired meanwhile.
            self.planner.is_held = lambda: local.has_news
        self._plan_now, self._planned = asyncio.Event(), asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.health.listener, self.health.wants_beat = self._tell_of_store, self._beat.nudge
        self.executor.unwritable = self._settle_unwritable
        self._asides: set[asyncio.Task[None]] = set()

    def _made_local(self, hooks: Hooks | None, monotonic: Callable[[], float]) -> Local:
        """Return what goes on without the store; it runs by a node like this one, on a store in memory."""
        queues, poll = self._settings.queues, self._settings.poll.total_seconds()

        def made(store: "LocalStore") -> Node:
            from everytick.node.local_writer import LocalWriter
            from everytick.runners.lent import Lent

            def writing(_: AnyStore, health: Health, committed: Committed) -> Writer:
                return LocalWriter(store, health, self.health, committed)

            def settle(claim: Claim) -> None:
                (self if store.is_home(claim.handle) else node)._settle_unwritable(claim)

            lent, events = Lent(self._catalogue), self.events
            node = Node(
                store, lent, self._settings, hooks=hooks, events=events, name=self.name, monotonic=monotonic,
                falls_back=False, writing=writing,
            )  # fmt: skip
            node.offset = self.offset
            node.executor.unwritable = settle
            return node

        return Local(
            self._store,
            self.name,
            self.clock,
            self.health,
            self.events,
            patience=poll,
            refresh=poll,
            may_run=lambda job: job.settings.queue in queues and self.executor.can_run(job),
            make=made,
        )

    # ---------------------------------------------------------------------------------------------------- start, stop

    async def start(self) -> None:
        """Beat, look once at what is due, and go on for ever in the background."""
        now = await self._store.now()
        self.clock.learn(now)
        self.offset.compare(now)
        await self._beat.start()
        self.health.has_beaten()
        try:
            await self.register()
            await self._look_once()
        except BaseException:
            await self._beat.stop()
            raise
        interval = self._settings.reaper_interval.total_seconds()
        self._spawn("writer", self._loop("writer", self.executor.writer.run))
        self._spawn("claims", self._loop("claims", self.executor.claimer.run))
        self._spawn("planner", self._loop("planner", self._plan))
        self._spawn("bell", self._loop("bell", self._listen))
        self._spawn("reaper", self._loop("reaper", self._every(interval, self._reap)))
        self._spawn("overtime", self._loop("overtime", self._every(_OVERTIME_EVERY, self._overtime)))
        self._spawn("janitor", self._loop("janitor", self._every(_JANITOR_EVERY, self.janitor.round)))
        self._spawn("reports", self._loop("reports", self.reporter.run))
        self._spawn("facts", self._loop("facts", self._every(_FACTS_EVERY, self.register)))
        self._spawn("refused", self._loop("refused", self._every(_REFUSED_EVERY, self._tell_refused)))
        if self.local is not None:
            self._spawn("local", self._loop("local", self._every(_LOCAL_EVERY, self.local.look)))
        self._spawn("unknown", self._loop("unknown", self._every(_LOOK_AGAIN_AT_UNKNOWN, self._learn_again)))
        self._wake()
        _log.info(STARTED, extra=self._about() | {"interval": self._settings.poll.total_seconds()})

    def _about(self) -> dict[str, object]:
        return {"component": "scheduler", "node": self.name}

    async def register(
        self, broken_files: Mapping[str, str] | None = None, stale_jobs: Mapping[str, str] | None = None
    ) -> int:
        """Tell the store what there is to know of this node, if that has changed; return 0, for there is no more.

        `broken_files` are the files of jobs that it cannot read, with the reasons, and
        `stale_jobs` those that go on as such a file said before: they stay told until others
        are given.
        """
        if broken_files is not None:
            self._broken_files, self._stale_jobs = dict(broken_files), dict(stale_jobs or {})
        known = self._facts or facts_of_this_node(self._settings, self._application, self.clock.now())
        offset = timedelta(seconds=round(self.offset.newest.total_seconds(), 1))
        self._refused = dict(self.executor.claimer.refused)
        facts = replace(
            known,
            clock_offset=offset,
            broken_files=bounded_files(self._broken_files),
            stale_jobs=bounded_jobs(self._stale_jobs),
            unknown_targets=bounded_jobs(self._refused),
        )
        if facts != self._facts:
            await self._store.register(self.name, facts)
            self._facts = facts
        return 0

    async def _tell_refused(self) -> int:
        """Tell the store soon of a job that could not be run here: perhaps nobody can."""
        return 0 if self._refused == self.executor.claimer.refused else await self.register()

    async def _look_once(self) -> None:
        try:
            await self.planner.round()
        except StoreUnavailable as error:
            self.health.failed(str(error))
        except Exception as error:
            raise RuntimeError(RECOVERY_FAILED.format(cause=error)) from error

    async def stop(self, mode: StopMode = "cancel") -> None:
        """Stop in order: planning, claiming, what runs, what is written, and the heartbeat last.

        `cancel` tells running attempts to stop and waits the grace period; `drain` waits for
        them first.
        """
        _log.info(STOPPING, extra=self._about())
        try:
            await self._wind_down(mode)
        finally:
            # Whatever went wrong above: a node that beats on would keep what it held from everybody else.
            self._alarms.stop()
            await self._beat.stop()
            self._catalogue.close()

    async def _wind_down(self, mode: StopMode) -> None:
        await self._end(
            "bell", "planner", "reaper", "overtime", "janitor", "reports", "facts", "refused", "local", "unknown"
        )
        if self.local is not None:
            await self.local.stop(mode)
        self.executor.stop(drain=mode == "drain")
        # A claim under way has its effect in the store: what it brings is given back.
        until = self._deadline()
        await self._in_time(until, self._ended("claims"), "a claim was not answered in time")
        if mode == "drain":
            await self.executor.emptied()
            until = self._deadline()
        await self._in_time(until, self.executor.emptied(), "some attempts did not end within the grace period")
        await self._in_time(until, self.executor.writer.flushed(), "some ends could not be written in time")
        await self._in_time(until, self.reporter.close(), "some hooks did not end within the grace period")
        await self._end("claims", "writer")
        await self.executor.close()

    def _deadline(self) -> float:
        """A little later than the bodies have to end, so that their ends are written."""
        return asyncio.get_running_loop().time() + self._settings.grace_period.total_seconds() + _LAST_WORDS

    async def _in_time(self, until: float, work: Awaitable[None], what: str) -> None:
        try:
            async with asyncio.timeout_at(until):
                await work
        except TimeoutError:
            _log.warning("%s; what is left is settled by another node", what)

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks[name] = asyncio.get_running_loop().create_task(work, name=f"everytick-{name}")

    async def _ended(self, name: str) -> None:
        if name in self._tasks:
            await asyncio.wait([self._tasks[name]])

    async def _end(self, *names: str) -> None:
        ended = [self._tasks.pop(name) for name in names if name in self._tasks]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)

    # ------------------------------------------------------------------------------------------------------ the loops

    async def _loop(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work for ever: neither a silent store nor a mistake of ours ends a loop."""
        backoff = Backoff()
        while True:
            began = self.clock.monotonic()
            try:
                await work()
                return
            except StoreUnavailable as error:
                self.health.failed(str(error))
            except Exception:  # noqa: BLE001, the loop's edge
                _log.exception("the %s loop failed and goes on", name)
            if self.clock.monotonic() - began > 10.0:
                backoff.succeeded()
            await asyncio.sleep(backoff.failed())

    def _every(self, seconds: float, round_: Callable[[], Awaitable[int]]) -> Callable[[], Awaitable[None]]:
        async def forever() -> None:
            while True:
                if await round_() < BATCH:
                    await asyncio.sleep(seconds)

        return forever

    async def _plan(self) -> None:
        """Plan whenever something may be due; endings that come by the thousand are answered together."""
        while True:
            await self._plan_now.wait()
            self._plan_now.clear()
            began = self.clock.monotonic()
            useful = self.planner.useful
            if self.local is not None and self.local.has_news:
                # Else this round would plan again what was fired while the store was away.
                await self.local.record()
            planned = await self.planner.round()
            self._planned.set()
            self.health.answered()
            if planned >= _MANY:
                is_in_vain = (self.planner.useful - useful) * 10 < planned
                await asyncio.sleep(_rest(self.clock.monotonic() - began, is_in_vain))

    async def _listen(self) -> None:
        """Sleep until something is due, a bell or the poll; then let the others look."""
        poll = self._settings.poll.total_seconds()
        while True:
            ahead = await self._ahead()
            self.clock.learn(ahead.now)
            self.offset.compare(ahead.now)
            self.health.answered()
            moments = [moment for moment in (ahead.wake_at, ahead.ready_at) if moment is not None]
            # Counted from the answer: a store whose clock was set back stands still, and this node's clock does not.
            until = min([_FAR, *((moment - ahead.now).total_seconds() for moment in moments)])
            if self._store.is_in_memory and ahead.wake_at is not None:
                until = await self._foresee(ahead.wake_at, until)
            is_rung = await self._rung(until, poll)
            self._plan_now.set()
            if self.planner.claims_along:
                await self._until_planned()
            if is_rung:
                self._beat.nudge()
            self.executor.claimer.wake()

    async def _until_planned(self) -> None:
        """Let the planner go first: what it makes is claimed along, and to ask for more would only be in its way."""
        self._planned.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_PLANNED_WITHIN):
                await self._planned.wait()

    async def _foresee(self, at: datetime, until: float) -> float:
        """Decide in an idle moment what the next instant brings, where no other node can; return how long to sleep."""
        if until > LEAD:
            return until - LEAD
        if not self.executor.is_calm:
            return min(until, LEAD / 4)
        began = self.clock.monotonic()
        await self.planner.foresight.look(at, lambda: self.executor.is_calm)
        return max(0.0, until - (self.clock.monotonic() - began))

    async def _ahead(self) -> Ahead:
        """Return what is ahead; a store that does not answer in time is as good as one that cannot."""
        try:
            async with asyncio.timeout(_ANSWER_WITHIN):
                return await self._store.ahead(self._settings.queues)
        except TimeoutError:
            raise StoreUnavailable("the store", f"no answer within {_ANSWER_WITHIN:.0f} seconds") from None

    async def _rung(self, until: float, poll: float) -> bool:
        """Wait for the bell, no longer than the poll; the store hears how soon something is expected."""
        try:
            async with asyncio.timeout(min(until, poll)):
                return await self._store.bell(until)
        except TimeoutError:
            return False

    def _wake(self) -> None:
        self._plan_now.set()
        self.executor.claimer.wake()

    async def _reap(self) -> int:
        settled = await self.reaper.round() if self.health.may_judge else 0
        if settled:
            self.reporter.wake()
        return settled

    def _settle_unwritable(self, claim: Claim) -> None:
        """Let what this node cannot write about be settled as if it were lost: it would stand still for ever."""

        async def settle() -> None:
            try:
                await self.reaper.take_over([claim.job.id], [claim.occurrence.id])
            except Exception:  # noqa: BLE001, then it stands still until this node is gone
                _log.exception("occurrence %s cannot be settled either", claim.occurrence.id)

        aside = asyncio.get_running_loop().create_task(settle())
        self._asides.add(aside)
        aside.add_done_callback(self._asides.discard)

    async def _overtime(self) -> int:
        settled = await self.reaper.overtime()
        if settled:
            self.reporter.wake()
        return settled

    def obey(self, orders: Orders, named: Mapping[int, int]) -> None:
        """Do what the store said to a beat that named these."""
        self.executor.obey(orders if self.local is None else self.local.obey(orders, named), named)

    def learn(self) -> None:
        """Look again at jobs that could not be run here: what they call may be known now."""
        self.executor.claimer.learn_again()
        self._wake()

    async def _learn_again(self) -> int:
        self.executor.claimer.learn_again()
        return 0

    def _tell_of_store(self, answers: bool, reason: str) -> None:
        if self.events.wanted:
            kind = Happening.STORE_FOUND if answers else Happening.STORE_LOST
            self.events.tell(Event(kind, self.clock.now(), text=reason))


def _rest(took: float, is_in_vain: bool) -> float:
    """Return how long to plan nothing after a long round, so that running has its share; in vain means longer."""
    return min(20.0 * took, 1.0) if is_in_vain else min(4.0 * took, 0.25)
