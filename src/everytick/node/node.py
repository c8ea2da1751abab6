"""The node: starts the loops, keeps them awake at the right moments, and stops them in order."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Mapping
from datetime import timedelta

from everytick.domain.texts import RECOVERY_FAILED, STARTED, STOPPING
from everytick.errors import RecoveryFailed, StoreBroken, StoreUnavailable
from everytick.node.alarms import Alarms
from everytick.node.beat import Beat
from everytick.node.clock import NodeClock, Offset
from everytick.node.dead_man import PING_SECONDS, DeadMan
from everytick.node.definers import DefinedNames
from everytick.node.engine import Engine
from everytick.node.events import Event, Happening, Listeners
from everytick.node.facts import Facts
from everytick.node.health import Health
from everytick.node.hooks import HookTable
from everytick.node.inbox import (
    BeatWanted,
    Inbox,
    LookWanted,
    OrdersCame,
    StoreAnswers,
    StoreAway,
    StoreLost,
    Unwritable,
)
from everytick.node.janitor import Janitor
from everytick.node.logs import Logs
from everytick.node.loops import Loops
from everytick.node.notifier import Notifier
from everytick.node.occurrence import OwnedKeys
from everytick.node.outage import Outage
from everytick.node.promise_watch import PromiseWatch
from everytick.node.reaper import Reaper
from everytick.node.reporter import Reporter
from everytick.node.rollouts import Rollouts
from everytick.node.scope import Labels, Scope
from everytick.node.settings import NodeSettings
from everytick.node.stopping import LAST_WORDS_SECONDS, StopMode, WindDown
from everytick.node.tools import Tools
from everytick.node.zone_watch import ZoneWatch
from everytick.runners.base import Repertoire
from everytick.stores.addresses import AnyStore

_log = logging.getLogger("everytick.node")

_JANITOR_SECONDS = 60.0
"""How often old history is deleted: it grows over days."""

_FOLD_SECONDS = 5.0
"""How often ends are folded into the rollups: later ends are read one by one for every answer."""

_FACTS_SECONDS = 60.0
"""How often the node tells what it is and defines, and looks for new zone tables: both change with a deploy."""

_REFUSED_SECONDS = 5.0
"""How soon people see that no node can run a job."""

_PROMISE_SECONDS = 5.0
"""How soon after its moment a broken promise is found."""

_OUTAGE_SECONDS = 1.0
"""How often the node looks whether the store is away for too long; `poll` says how long that is."""

_UNKNOWN_SECONDS = 60.0
"""How often the node tries again to run jobs that it could not: their functions may have been installed."""


def node_name() -> str:
    """Return a name no other start of any process has: a host's name may come back, a dead node must not."""
    return f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"


class Node:
    """One process that plans and runs."""

    def __init__(
        self,
        store: AnyStore,
        catalogue: Repertoire,
        settings: NodeSettings,
        *,
        hooks: HookTable | None = None,
        listeners: Listeners | None = None,
        name: str | None = None,
        application: str = "",
        monotonic: Callable[[], float] = time.monotonic,
        falls_back: bool = True,
        labels: Labels | None = None,
        offset: Offset | None = None,
        defined: DefinedNames | None = None,
    ) -> None:
        self.name = name or node_name()
        self.listeners = listeners or Listeners()
        self.inbox = Inbox(
            {
                OrdersCame: self._ordered,
                StoreAway: self._store_away,
                StoreAnswers: self._store_answers,
                StoreLost: self._store_lost,
                BeatWanted: self._beat_wanted,
                Unwritable: self._unwritable,
            }
        )
        bound = 3 * max(settings.heartbeat, settings.poll)
        self.health = Health(self.inbox, monotonic, settings.node_timeout.total_seconds(), bound.total_seconds())
        self.clock = NodeClock(monotonic)
        self.offset = offset or Offset()
        self._owned, names = OwnedKeys(), defined or DefinedNames()
        self._facts = Facts(store, self.name, settings, application, self.clock, self.offset, names, self._owned)
        self._store, self._settings, self._catalogue = store, settings, catalogue
        self.scope = Scope(self.name, application, settings, catalogue, labels)
        self._alarms = Alarms(monotonic)
        self._logs = Logs(settings.log_folder, self.name)
        hook_seconds, notifier = settings.hook_timeout.total_seconds(), Notifier(store, store)
        hooks = HookTable() if hooks is None else hooks
        self.reporter = Reporter(store, store, store, self.scope, hooks, self.health, hook_seconds, notifier)
        tools = Tools(
            settings=settings,
            catalogue=catalogue,
            clock=self.clock,
            offset=self.offset,
            alarms=self._alarms,
            listeners=self.listeners,
            health=self.health,
            reporter=self.reporter,
            logs=self._logs,
            inbox=self.inbox,
        )
        self._falls_back, self._outage = falls_back, Outage(store, tools, self.scope, self._owned)
        self.rollouts = Rollouts(store, notifier, self.listeners)
        self.engine = Engine(store, self._outage.gate(store), tools, self.scope, self._owned, self.rollouts)
        inbox = self.engine.inbox
        self.reaper = Reaper(store, self.name, self.clock, self.listeners, settings, self.scope, inbox)
        self.janitor = Janitor(store, self.name, self.clock, self._logs, self.reaper.lives)
        self.promises = PromiseWatch(store, self.scope, notifier, self.listeners, settings.queues)
        self._dead_man = DeadMan(store, self.name, settings)
        self._zones = ZoneWatch(store, self.name, self.clock, self.listeners, settings)
        self._beat = Beat(store, self.name, settings.heartbeat.total_seconds(), self.health, self.inbox, self._owned)
        self._loops = Loops(self.clock, self.health)
        self._wind_down = WindDown(self._loops, self.engine, self.reporter, self.health)
        self.gone = asyncio.Event()
        """Set once the store is gone for good: this node has to be stopped, and `health.gone` says why."""

    # ---------------------------------------------------------------------------------------------------- start, stop

    async def start(self) -> None:
        """Beat, plan once, and go on in the background until stopped."""
        asked_at = self.clock.monotonic()
        now = await self._store.now()
        self.clock.learn(now, asked_at)
        self.offset.compare(now)
        await self._beat.start()
        self.health.has_beaten()
        try:
            await self.look_around()
            # Before the store is told of this node: with that, nodes of long ago are forgotten.
            await self._zones.look()
            await self.register()
            await self._look_once()
        except BaseException:
            await self._beat.stop()
            raise
        self._begin_loops()
        self.engine.inbox.put(LookWanted())
        _log.info(STARTED, extra=self._about() | {"interval": self._settings.poll.total_seconds()})

    async def look_around(self) -> None:
        """Ask the store which needs its jobs have, and note which of them this node meets."""
        self.scope.hear((await self._store.ahead(self.scope.current)).needs)

    def _begin_loops(self) -> None:
        loops = self._loops
        self.engine.begin(loops)
        loops.begin("reports", self.reporter.run)
        loops.begin_every(self._settings.reaper_interval.total_seconds(), "reaper", self._reap)
        loops.begin_every(_JANITOR_SECONDS, "janitor", self.janitor.round)
        loops.begin_every(_FOLD_SECONDS, "fold", self.janitor.fold)
        loops.begin_every(_FACTS_SECONDS, "facts", self.register)
        loops.begin_every(_PROMISE_SECONDS, "promises", self.promises.round)
        if self._settings.dead_man_url is not None:
            loops.begin_every(PING_SECONDS, "dead-man", self._dead_man.round)
        loops.begin_every(_FACTS_SECONDS, "zones", self._zones.round)
        loops.begin_every(_REFUSED_SECONDS, "refused", self._tell_refused)
        loops.begin_every(_UNKNOWN_SECONDS, "unknown", self._learn_again)
        if self._falls_back:
            loops.begin_every(_OUTAGE_SECONDS, "outage", self._outage.look)

    def _about(self) -> dict[str, object]:
        return {"component": "scheduler", "node": self.name}

    async def register(
        self, broken_files: Mapping[str, str] | None = None, stale_jobs: Mapping[str, str] | None = None
    ) -> int:
        """Tell the store the facts of this node that have changed; return 0, for there is no more.

        `broken_files` are the files of jobs that it cannot read, with the reasons. `stale_jobs` are the jobs that go
        on as such a file said before. Both stay as they were told until others are named.
        """
        if broken_files is not None:
            self._facts.learn_files(broken_files, stale_jobs or {})
        await self._facts.tell(self.scope.refused, self.scope.current.met)
        return 0

    async def _tell_refused(self) -> int:
        """Tell the store soon what this node meets and defines, and which jobs it cannot run: perhaps no node can."""
        is_new = self._facts.has_new_names
        if is_new or self._facts.differ(self.scope.refused, self.scope.current.met):
            await self.register()
        if is_new:
            # This node may have been the last to define a job.
            await self.janitor.retire()
        return 0

    async def _look_once(self) -> None:
        """Plan once; only a store that is away is waited for."""
        try:
            await self._store.check_writable()
            await self.engine.waking.settle_clock()
            await self.engine.planner.round()
        except StoreBroken as error:
            raise RecoveryFailed(RECOVERY_FAILED.format(cause=error)) from error
        except StoreUnavailable as error:
            self.health.failed(error)
        except Exception as error:
            raise RecoveryFailed(RECOVERY_FAILED.format(cause=error)) from error

    async def stop(self, mode: StopMode = "cancel", grace: timedelta | None = None) -> None:
        """Stop in order: planning, claiming, attempts, writes, and the heartbeat last.

        `cancel` tells running attempts to stop and waits the grace period; `drain` waits for
        them first. `grace` takes the place of the setting for this stop.
        """
        grace = self._settings.grace_period if grace is None else grace
        _log.info(STOPPING, extra=self._about())
        try:
            await self._wind_down.end_planning(grace)
            await self._outage.stop(mode, grace)
            await self._wind_down.run(mode, grace)
        finally:
            # Also after an error: a node that beats on would keep its claims from all others.
            self._alarms.stop()
            await self._beat.stop()
            await self._leave()
            self._catalogue.close()

    @property
    def grace_period(self) -> timedelta:
        """How long a stop waits for what runs."""
        return self._settings.grace_period

    def hasten(self) -> None:
        """Tell what runs to stop, though a stop that drains waits for its end."""
        self.engine.stop()
        self._outage.hasten()

    async def _leave(self) -> None:
        """Tell the store that this node beats no more, so that others need not wait for its silence."""
        try:
            async with asyncio.timeout(LAST_WORDS_SECONDS):
                await self._store.leave(self.name)
        except Exception as error:  # noqa: BLE001, whatever a driver raises: nothing depends on it
            _log.info("the store was not told that this node has stopped: %s; others notice after node_timeout", error)

    # ------------------------------------------------------------------------------------------------------ the loops

    async def _reap(self) -> int:
        settled = await self.reaper.round() if self.health.may_judge else 0
        if settled:
            self.reporter.wake()
        return settled

    # --------------------------------------------------------------------------------------------- what happens to it

    def _ordered(self, ordered: OrdersCame) -> None:
        """Pass the orders of the store on to the engine that runs their occurrences."""
        orders, local = self._outage.split(ordered.orders)
        self.engine.inbox.put(OrdersCame(orders))
        self._outage.obey(local)

    def _store_away(self, away: StoreAway) -> None:
        self._tell_of_store(Happening.STORE_LOST, away.reason)

    def _store_answers(self, _: StoreAnswers) -> None:
        self._tell_of_store(Happening.STORE_FOUND, "")

    def _tell_of_store(self, kind: Happening, text: str) -> None:
        if self.listeners.wanted:
            self.listeners.tell(Event(kind, self.clock.now(), text=text))

    def _store_lost(self, lost: StoreLost) -> None:
        self.health.lose(lost.error)
        self.gone.set()

    def _beat_wanted(self, _: BeatWanted) -> None:
        self._beat.nudge()

    def _unwritable(self, unwritable: Unwritable) -> None:
        """Let the reaper settle an occurrence whose steps this node cannot write: without that it would hang."""
        if self.health.gone is None:
            self.reaper.settle_soon(unwritable)

    def learn(self, hooks: HookTable) -> None:
        """Call these hooks from now on, and look again at jobs that could not be run: their functions may be known."""
        self.reporter.learn(hooks)
        self._outage.learn(hooks)
        self.scope.learn_again()
        self.engine.inbox.put(LookWanted())

    async def _learn_again(self) -> int:
        self.scope.learn_again()
        self._outage.learn_again()
        return 0
