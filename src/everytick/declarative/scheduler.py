"""The declarative scheduler: `initialize` and `stop`, on the core's own store and node."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from everytick.declarative import presence
from everytick.declarative.errors import SchedulerAlreadyActiveError, TaskTryDeserializeError, UnexpectedError
from everytick.declarative.events import DeclarativeEvent, EventDelivery, PollingState, SchedulerState, TaskListener
from everytick.declarative.initialization import Initialization
from everytick.declarative.lateness import Lateness
from everytick.declarative.names import checked_scheduler
from everytick.declarative.opening import nothing_to_close, opened
from everytick.declarative.registrations import Registration, read_registrations
from everytick.declarative.succession import Succession
from everytick.errors import DeclarativeError, shown
from everytick.node.node import Node, node_name

if TYPE_CHECKING:
    from everytick.node.clock import NodeClock
    from everytick.stores.addresses import AnyStore

_log = logging.getLogger("everytick.declarative")

_LEAVE_SECONDS = 5.0
"""How long a stop tries to tell the store of it. Without that, other instances notice the stop by silence."""


class DeclarativeScheduler:
    """Runs registered callbacks in the minutes their cron expressions name, and remembers in `store` what it did.

    `store` is an address, or a store that is open and stays so. `name` tells schedulers that
    share a store apart; one instance of a name runs at a time, and a newer one takes over what
    an older one left. `listener` is called with every DeclarativeEvent. `clock` is the time of
    a store given by its address; without one it is the store's own: the host's in memory and in
    SQLite, the server's in PostgreSQL.
    """

    def __init__(
        self,
        store: "str | AnyStore",
        name: str = "default",
        listener: TaskListener | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._given, self._clock = store, clock
        self._name = checked_scheduler(name)
        self._teller = EventDelivery(listener)
        self._state, self._polling = SchedulerState.UNINITIALIZED, PollingState.INACTIVE
        self._identifier: str | None = None
        self._starting: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._node: Node | None = None
        self._initialization: Initialization | None = None
        self._watch: asyncio.Task[None] | None = None
        self._close: Callable[[], Awaitable[None]] = nothing_to_close
        self._lateness = Lateness()
        self._is_callback: Callable[[], bool] = lambda: False
        self._time: NodeClock | None = None

    def __repr__(self) -> str:
        return f"DeclarativeScheduler(name={self._name!r}, {self._state})"

    @property
    def state(self) -> str:
        """The state of the scheduler: Uninitialized, Initializing, Running, Stopping or Stopped."""
        return str(self._state)

    @property
    def polling(self) -> str:
        """Whether schedules are evaluated: Inactive, Active or Stopping."""
        return str(self._polling)

    @property
    def identifier(self) -> str | None:
        """The name of this instance, unique in the store. None before the first initialization."""
        return self._identifier

    @property
    def node(self) -> Node | None:
        """The node that plans and runs, while there is one."""
        return self._node

    @property
    def deviations(self) -> int:
        """How many callbacks were started later than the specification's target since the last initialization."""
        return self._lateness.deviations

    @property
    def max_lateness(self) -> timedelta:
        """How late the latest start was since the last initialization."""
        return self._lateness.longest

    # --------------------------------------------------------------------------------------------------- initialize

    def initialize(self, registrations: object) -> "Coroutine[Any, Any, None]":
        """Check the registrations, begin, and return an awaitable that ends when every task is scheduled.

        What is wrong with the call itself is raised here, before anything is awaited and with
        nothing changed. What the store has to say comes out of the awaitable; whatever was
        written until then is put back.
        """
        if self._state is SchedulerState.INITIALIZING:
            raise SchedulerAlreadyActiveError("initializing")
        if self._state in (SchedulerState.RUNNING, SchedulerState.STOPPING):
            raise SchedulerAlreadyActiveError("running")
        self._state = SchedulerState.INITIALIZING
        self._tell("SchedulerInitializationStarted")
        try:
            read = read_registrations(registrations, self._host_now)
            loop = _running_loop()
        except BaseException as error:  # noqa: BLE001, whatever it is, the scheduler is not initializing any more
            self._fail(error)
        self._identifier = self._identifier or node_name()
        self._starting = loop.create_task(self._begin(read, self._identifier))
        return RunningInitialization(self._starting)

    async def _begin(self, registrations: Mapping[str, Registration], identifier: str) -> None:
        initialization: Initialization | None = None
        self._teller.hold()
        try:
            store, self._close = await opened(self._given, self._clock)
            presence.show(presence.folder_of(store), identifier)
            initialization = Initialization(
                self._name,
                registrations,
                store,
                self._teller,
                identifier=identifier,
                clock=self._clock,
                host_time=self._host_now,
            )
            self._time, self._is_callback = initialization.node.clock, initialization.callbacks.is_running_here
            await initialization.run()
        except BaseException as error:  # noqa: BLE001, also a cancel of the task that awaits this
            told = error if initialization is None else await initialization.diagnosed(error)
            await self._undo(initialization)
            self._fail(told)
        self._starting, self._lateness, self._initialization = None, initialization.lateness, initialization
        if registrations:
            self._node, self._polling = initialization.node, PollingState.ACTIVE
            self._tell("PollingStarted")
        self._state = SchedulerState.RUNNING
        self._tell("SchedulerInitializationCompleted")
        self._teller.release()
        initialization.callbacks.gate.set()
        succession = self._succession(initialization, identifier)
        self._watch = asyncio.get_running_loop().create_task(
            # Without tasks there is no node, and so no beat.
            succession.watch(None if registrations else partial(store.beat, identifier, ()))
        )

    def _succession(self, initialization: Initialization, identifier: str) -> Succession:
        claimer = initialization.node.engine.claimer
        return Succession(initialization.instances, identifier, lambda: claimer.rest(True), initialization.take_up)

    async def _undo(self, initialization: Initialization | None) -> None:
        self._teller.drop()
        if initialization is not None:
            await initialization.undo()
        with suppress(Exception):
            await self._close()
        presence.withdraw(self._identifier or "")
        self._starting, self._close = None, nothing_to_close

    def _fail(self, error: BaseException) -> NoReturn:
        """Become uninitialized again, tell it, and raise. An error without a name in the specification is wrapped."""
        self._state, self._polling = SchedulerState.UNINITIALIZED, PollingState.INACTIVE
        text = str(error) or type(error).__name__
        if isinstance(error, TaskTryDeserializeError) and error.task is not None:
            text = f"task '{shown(error.task, 300)}': {text}"
            _log.error("the state of %s; nothing was changed, mend it with write_state_document", text)
        self._tell("SchedulerInitializationFailed", text)
        if isinstance(error, DeclarativeError) or not isinstance(error, Exception):
            raise error
        raise UnexpectedError("initialize", error) from error

    # --------------------------------------------------------------------------------------------------------- stop

    async def stop(self) -> None:
        """Wait for a running initialization, stop evaluating schedules, and wait for every running callback.

        A second call while the first one stops waits for the same end. A call after that changes nothing.
        A callback cannot wait for that: it would wait for itself.
        """
        if self._is_callback():
            advice = "a callback that awaits stop() would wait for itself: write asyncio.create_task(scheduler.stop())"
            raise UnexpectedError("stop", RuntimeError(advice))
        if self._starting is not None:
            await asyncio.wait([self._starting])
        if self._state is SchedulerState.RUNNING:
            self._state = SchedulerState.STOPPING
            self._tell("SchedulerStopRequested")
            if self._node is not None:
                self._polling = PollingState.STOPPING
                self._tell("PollingStopRequested")
            self._stopping = asyncio.get_running_loop().create_task(self._end())
        if self._stopping is not None:
            await asyncio.shield(self._stopping)
        await self._teller.heard()

    async def _end(self) -> None:
        node, failures = self._node, list[Exception]()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
        if node is not None:
            await self._last_poll(node)
            await _kept(failures, lambda: node.stop("drain"))
            self._node = None
            self._polling = PollingState.INACTIVE
            self._tell("PollingStopped")
        await self._take_leave()
        await _kept(failures, self._close)
        self._close = nothing_to_close
        self._state = SchedulerState.STOPPED
        self._tell("SchedulerStopped")
        self._stopping = None
        if failures:
            raise UnexpectedError("stop", failures[0]) from failures[0]

    async def _take_leave(self) -> None:
        """Tell the store that this instance has stopped. If the store is away, others notice it by silence."""
        initialization, self._initialization = self._initialization, None
        if initialization is not None:
            with suppress(Exception):
                async with asyncio.timeout(_LEAVE_SECONDS):
                    await initialization.leave()
            presence.withdraw(initialization.node.name)

    async def _last_poll(self, node: Node) -> None:
        """Complete the cycle (S2-026): start the tasks that were due before the stop. A failure of that is ignored.

        The node's own planner may have decided it a moment earlier, and its claims may still be on their way.
        """
        engine = node.engine
        with suppress(Exception):
            await engine.planner.round()
            await engine.slots.answered()
            await engine.claimer.claim()

    # ----------------------------------------------------------------------------------------------------- the parts

    def _host_now(self) -> datetime:
        return datetime.now(UTC) if self._clock is None else self._clock()

    def _tell(self, name: str, error: str = "") -> None:
        at = self._host_now() if self._time is None or not self._time.is_set else self._time.now()
        self._teller.tell(DeclarativeEvent(name, at, error=error))


class RunningInitialization(Coroutine[Any, Any, None]):
    """What `initialize` returns: a started operation that can be awaited or passed to `create_task`.

    The waiting task may be canceled: the initialization goes on, and stop() still waits for it.
    """

    def __init__(self, task: "asyncio.Task[None]") -> None:
        self.__name__ = self.__qualname__ = "initialize"
        self._task = task
        self._waiting: Generator[Any, Any, None] | None = None

    def __await__(self) -> Generator[Any, Any, None]:
        """Wait for the end of the initialization."""
        return asyncio.shield(self._task).__await__()

    def send(self, value: Any) -> Any:
        """Go on waiting, as a coroutine does."""
        if self._waiting is None:
            self._waiting = self.__await__()
        return self._waiting.send(value)

    def throw(self, *error: Any) -> Any:
        """Let the wait end with an error, as a coroutine does."""
        if self._waiting is None:
            self._waiting = self.__await__()
        return self._waiting.throw(*error)

    def close(self) -> None:
        """Stop waiting."""
        if self._waiting is not None:
            self._waiting.close()


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError as error:
        reason = "no running event loop: call initialize() in a coroutine, on the loop that its callbacks shall run on"
        raise RuntimeError(reason) from error


async def _kept(failures: list[Exception], work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except Exception as error:  # noqa: BLE001, the rest is cleaned up whatever happens here
        failures.append(error)
