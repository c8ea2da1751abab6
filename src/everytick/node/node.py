"""The node: starts the loops, keeps them awake at the right moments, and stops them in order."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from secrets import token_hex
from typing import TYPE_CHECKING, Literal, TypeAlias

from everytick.domain.needs import is_met
from everytick.domain.texts import RECOVERY_FAILED, STARTED, STOPPING
from everytick.errors import RecoveryFailed, StoreBroken, StoreUnavailable
from everytick.node.alarms import Alarms
from everytick.node.alertness import Alertness
from everytick.node.beat import Beat
from everytick.node.clock import NodeClock
from everytick.node.definers import DefinedNames
from everytick.node.events import Event, Events, Happening
from everytick.node.executor import Executor, Writing
from everytick.node.facts import Facts
from everytick.node.health import Health
from everytick.node.janitor import Janitor
from everytick.node.local import Local
from everytick.node.logs import Logs
from everytick.node.loops import Loops
from everytick.node.offset import Offset
from everytick.node.planner import Planner
from everytick.node.reaper import Reaper
from everytick.node.reporter import Hooks, Reporter
from everytick.node.scope import Scope
from everytick.node.settings import NodeSettings
from everytick.node.writer import Committed, Writer
from everytick.runners.base import Repertoire
from everytick.stores.addresses import AnyStore
from everytick.stores.base import Claim, Orders

if TYPE_CHECKING:
    from everytick.stores.memory.local import LocalStore

_log = logging.getLogger("everytick.node")

StopMode: TypeAlias = Literal["cancel", "drain"]

_JANITOR_EVERY = 60.0
_FACTS_EVERY = 60.0
_REFUSED_EVERY = 5.0
_LOCAL_EVERY = 1.0
_LAST_WORDS = 3.0
_LOOK_AGAIN_AT_UNKNOWN = 60.0


def node_name() -> str:
    """Return a name no other start of any process has: a host's name may come back, a dead node must not."""
    return f"{socket.gethostname()}-{os.getpid()}-{token_hex(4)}"


def _call_soon(loop: asyncio.AbstractEventLoop, act: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(act)


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
        offset: Offset | None = None,
        defined: DefinedNames | None = None,
    ) -> None:
        self.name = name or node_name()
        self.events = events or Events()
        bound = 3 * max(settings.heartbeat, settings.poll)
        self.health = Health(monotonic, settings.node_timeout.total_seconds(), bound.total_seconds())
        self.clock = NodeClock(monotonic)
        self.offset = offset or Offset()
        names = defined or DefinedNames()
        self._facts = Facts(store, self.name, settings, application, self.clock, self.offset, names)
        self._store, self._settings, self._catalogue, self._application = store, settings, catalogue, application
        self.scope = Scope(self.name, application, settings, why=lambda job: self.executor.why_not(job))
        self._alarms = Alarms(monotonic)
        self._logs = Logs(settings.log_folder, self.name)
        patience = settings.hook_timeout.total_seconds()
        self.reporter = Reporter(store, store, store, self.scope, {} if hooks is None else hooks, self.health, patience)
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
            self.scope,
            writing,
        )
        self.planner = Planner(
            store,
            self.clock,
            self.events,
            scope=self.scope,
            executor=self.executor.claimer,
            reporter=self.reporter,
            limit=settings.plan_limit,
        )
        self.reaper = Reaper(store, self.name, self.clock, self.events, settings)
        self.janitor = Janitor(store, self.name, self.clock, self._logs, self.reaper.lives)
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
        self._loops = Loops(self.clock, self.health)
        self._alertness = Alertness(
            store,
            settings,
            self.clock,
            self.offset,
            self.health,
            scope=self.scope,
            planner=self.planner,
            executor=self.executor,
            beat=self._beat,
            local=local,
        )
        self.health.listener, self.health.wants_beat = self._tell_of_store, self._beat.nudge
        self.executor.unwritable = self._settle_unwritable
        self._asides: set[asyncio.Task[None]] = set()
        self.gone = asyncio.Event()
        """Set once the store is gone for good: this node has to be stopped, and `health.gone` says why."""
        self.when_gone: Callable[[], None] | None = None

    def _made_local(self, hooks: Hooks | None, monotonic: Callable[[], float]) -> Local:
        """Return what goes on without the store; it runs by a node like this one, on a store in memory."""
        poll = self._settings.poll.total_seconds()

        def made(store: "LocalStore") -> Node:
            from everytick.node.local_writer import LocalWriter
            from everytick.runners.lent import Lent

            def writing(_: AnyStore, health: Health, committed: Committed) -> Writer:
                return LocalWriter(store, health, self.health, committed)

            def settle(claim: Claim) -> None:
                if store.is_home(claim.handle):
                    self._settle_unwritable(store.at_home(claim))
                else:
                    node._settle_unwritable(claim)

            lent, events = Lent(self._catalogue), self.events
            node = Node(
                store, lent, self._settings, hooks=hooks, events=events, name=self.name, monotonic=monotonic,
                falls_back=False, writing=writing, offset=self.offset, application=self._application,
            )  # fmt: skip
            node.scope.has = self.scope.has
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
            may_run=lambda job: is_met(job.needs, self.scope.has) and self.executor.why_not(job) is None,
            make=made,
        )

    # ---------------------------------------------------------------------------------------------------- start, stop

    async def start(self) -> None:
        """Beat, look once at what is due, and go on for ever in the background."""
        loop = asyncio.get_running_loop()
        self.health.when_gone = lambda: _call_soon(loop, self._lose_store)
        asked_at = self.clock.monotonic()
        now = await self._store.now()
        self.clock.learn(now, asked_at)
        self.offset.compare(now)
        await self._beat.start()
        self.health.has_beaten()
        try:
            await self.look_around()
            await self.register()
            await self._look_once()
        except BaseException:
            await self._beat.stop()
            raise
        self._begin_loops()
        self._alertness.wake()
        _log.info(STARTED, extra=self._about() | {"interval": self._settings.poll.total_seconds()})

    async def look_around(self) -> None:
        """Find out what this node meets of what the store needs; asked again whenever there is more of it."""
        self.scope.hear((await self._store.ahead(self.scope.current)).needs)

    def _lose_store(self) -> None:
        self.gone.set()
        if self.when_gone is not None:
            self.when_gone()

    def _begin_loops(self) -> None:
        loops = self._loops
        loops.begin("writer", self.executor.writer.run)
        loops.begin("claims", self.executor.claimer.run)
        loops.begin("planner", self._alertness.plan)
        loops.begin("bell", self._alertness.listen)
        loops.begin("reports", self.reporter.run)
        loops.begin_every(self._settings.reaper_interval.total_seconds(), "reaper", self._reap)
        loops.begin_every(_JANITOR_EVERY, "janitor", self.janitor.round)
        loops.begin_every(_FACTS_EVERY, "facts", self.register)
        loops.begin_every(_REFUSED_EVERY, "refused", self._tell_refused)
        loops.begin_every(_LOOK_AGAIN_AT_UNKNOWN, "unknown", self._learn_again)
        if self.local is not None:
            loops.begin_every(_LOCAL_EVERY, "local", self.local.look)

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
        facts = self._facts
        if broken_files is not None:
            facts.broken_files, facts.stale_jobs = dict(broken_files), dict(stale_jobs or {})
        facts.refused, facts.met = dict(self.scope.refused), self.scope.current.met
        await facts.tell()
        return 0

    async def _tell_refused(self) -> int:
        """Tell the store soon what this node meets and defines, and which jobs it cannot run: perhaps no node can."""
        told, is_new = (self._facts.refused, self._facts.met), self._facts.has_new_names
        if is_new or told != (self.scope.refused, self.scope.current.met):
            await self.register()
        if is_new:
            # This node may have been the last to define a job.
            await self.janitor.retire()
        return 0

    async def _look_once(self) -> None:
        """Plan once; only a store that is away is waited for."""
        try:
            await self._store.check_writable()
            await self._alertness.settle_clock()
            await self.planner.round()
        except StoreBroken as error:
            raise RecoveryFailed(RECOVERY_FAILED.format(cause=error)) from error
        except StoreUnavailable as error:
            self.health.failed(error)
        except Exception as error:
            raise RecoveryFailed(RECOVERY_FAILED.format(cause=error)) from error

    async def stop(self, mode: StopMode = "cancel", grace: timedelta | None = None) -> None:
        """Stop in order: planning, claiming, what runs, what is written, and the heartbeat last.

        `cancel` tells running attempts to stop and waits the grace period; `drain` waits for
        them first. `grace` takes the place of the setting for this stop.
        """
        self.executor.grace = self._settings.grace_period if grace is None else grace
        _log.info(STOPPING, extra=self._about())
        try:
            await self._wind_down(mode)
        finally:
            # Whatever went wrong above: a node that beats on would keep what it held from everybody else.
            self._alarms.stop()
            await self._beat.stop()
            await self._leave()
            self._catalogue.close()

    async def _leave(self) -> None:
        """Say goodbye, so that others need not wait for this node's silence; they find out anyway."""
        try:
            async with asyncio.timeout(_LAST_WORDS):
                await self._store.leave(self.name)
        except Exception as error:  # noqa: BLE001, whatever a driver raises: nothing depends on it
            _log.info("the store was not told that this node has stopped: %s", error)

    async def _wind_down(self, mode: StopMode) -> None:
        await self._loops.end_but("claims", "writer")
        if self.local is not None:
            await self.local.stop(mode)
        self.executor.stop(drain=mode == "drain")
        # A claim under way has its effect in the store: what it brings is given back.
        until = self._deadline()
        await self._in_time(until, self._loops.ended("claims"), "a claim was not answered in time")
        if mode == "drain":
            await self.executor.emptied()
            until = self._deadline()
        await self._in_time(until, self.executor.emptied(), "some attempts did not end within the grace period")
        if self.health.gone is None:
            await self._in_time(until, self.executor.writer.flushed(), "some ends could not be written in time")
        await self._in_time(until, self.reporter.close(), "some hooks did not end within the grace period")
        await self._loops.end("claims", "writer")
        await self.executor.close()

    def _deadline(self) -> float:
        """A little later than the bodies have to end, so that their ends are written."""
        return asyncio.get_running_loop().time() + self.executor.grace.total_seconds() + _LAST_WORDS

    async def _in_time(self, until: float, work: Awaitable[None], what: str) -> None:
        try:
            async with asyncio.timeout_at(until):
                await work
        except TimeoutError:
            _log.warning("%s; what is left is settled by another node", what)

    # ------------------------------------------------------------------------------------------------------ the loops

    async def _reap(self) -> int:
        settled = await self.reaper.round() if self.health.may_judge else 0
        if settled:
            self.reporter.wake()
        return settled

    def _settle_unwritable(self, claim: Claim) -> None:
        """Let what this node cannot write about be settled as if it were lost: it would stand still for ever."""
        if self.health.gone is not None:
            return

        async def settle() -> None:
            try:
                await self.reaper.settle_unwritable(claim.key)
            except Exception as error:  # noqa: BLE001, whatever a driver raises; the next round of the reaper tries again
                _log.warning("occurrence %s is settled by the next round of the reaper: %s", claim.occurrence.id, error)

        aside = asyncio.get_running_loop().create_task(settle())
        self._asides.add(aside)
        aside.add_done_callback(self._asides.discard)

    def obey(self, orders: Orders) -> None:
        """Do what the store said to a beat."""
        self.executor.obey(orders if self.local is None else self.local.obey(orders))

    def learn(self) -> None:
        """Look again at jobs that could not be run here: what they call may be known now."""
        self.scope.learn_again()
        self._alertness.wake()

    async def _learn_again(self) -> int:
        self.scope.learn_again()
        return 0

    def _tell_of_store(self, answers: bool, reason: str) -> None:
        if self.events.wanted:
            kind = Happening.STORE_FOUND if answers else Happening.STORE_LOST
            self.events.tell(Event(kind, self.clock.now(), text=reason))
