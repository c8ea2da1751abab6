"""What an implementation shows to this suite: one small class, and nothing of how it works inside.

A test is a story: an async function that is given a World and is played by the Adapter on a
store of its own, on virtual time. Within a story time passes only in `advance`, and
whatever is due on the way happens on the way. `World.scheduler()` makes instances, all on
the same store, so that a restart is a second instance and a crash is `Scheduler.crash`.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

Callback: TypeAlias = Callable[[], Awaitable[None]]
Registration: TypeAlias = tuple[str, str, Callback, timedelta]
TaskState: TypeAlias = Mapping[str, Any]
"""`state`, `lastAttemptAt`, `lastSuccessAt`, `lastFailureAt`, `pendingRetryUntil`; times are aware, or None."""

NOON = datetime(2026, 3, 3, 12, 0, 10, tzinfo=UTC)
"""Where stories begin unless they say otherwise: a Tuesday, ten seconds into a minute, on no edge of anything."""


@dataclass(frozen=True)
class Told:
    """One event as a listener heard it."""

    name: str
    task: str | None
    at: datetime


class Scheduler(ABC):
    """One instance of the scheduler under test."""

    heard: list[Told]
    """Everything it told so far, in order."""

    @property
    @abstractmethod
    def subject(self) -> object:
        """The implementation's own object, whose public methods are counted."""

    @abstractmethod
    def initialize(self, registrations: Any) -> Awaitable[None]:
        """Call the implementation's `initialize`, here and now, and return what it returned."""

    @abstractmethod
    def stop(self) -> Awaitable[None]:
        """Call the implementation's `stop` and return what it returned."""

    @property
    @abstractmethod
    def state(self) -> str:
        """Uninitialized, Initializing, Running, Stopping or Stopped."""

    @property
    @abstractmethod
    def polling(self) -> str:
        """Inactive, Active or Stopping."""

    @property
    @abstractmethod
    def identifier(self) -> str | None:
        """The scheduler identifier; None before the first initialization."""

    @abstractmethod
    def crash(self) -> None:
        """From now on nothing of this instance reaches its store or its listener, as if its process were gone."""

    def names(self, task: str | None = None) -> list[str]:
        """Return the names of the events of one task, or those of no task."""
        return [told.name for told in self.heard if told.task == task]


class Forwarding(Scheduler):
    """Asks an object of Python that has the specification's names; what is left to say is who it is, and `crash`."""

    own: Any

    @property
    def subject(self) -> object:
        return self.own

    def initialize(self, registrations: Any) -> Awaitable[None]:
        begun: Awaitable[None] = self.own.initialize(registrations)
        return begun

    def stop(self) -> Awaitable[None]:
        stopping: Awaitable[None] = self.own.stop()
        return stopping

    @property
    def state(self) -> str:
        return str(self.own.state)

    @property
    def polling(self) -> str:
        return str(self.own.polling)

    @property
    def identifier(self) -> str | None:
        known: str | None = self.own.identifier
        return known


class World(ABC):
    """One store, its clock, and the instances on it."""

    @abstractmethod
    def now(self) -> datetime:
        """Return the time of the world, aware, in UTC."""

    @abstractmethod
    async def pass_by(self, seconds: float) -> None:
        """Return when so much time has passed and everything due until then has happened."""

    @abstractmethod
    def suspend(self, seconds: float) -> None:
        """Let so much time pass at once, in which nothing runs: the host was asleep."""

    @abstractmethod
    def scheduler(self, *, listener: Callable[[Told], None] | None = None) -> Scheduler:
        """Return a new instance on the world's store, not initialized; the listener hears what `heard` holds."""

    @abstractmethod
    async def task_states(self) -> Mapping[str, TaskState]:
        """Return what the store knows of every task, by its name."""

    @abstractmethod
    async def document(self, task: str) -> Any:
        """Return the persisted state of a task as the JSON value it is."""

    @abstractmethod
    async def write_document(self, task: str, document: Any) -> None:
        """Put any JSON value in the place of the persisted state of a task."""

    @abstractmethod
    def break_store(self, after: int, times: int = 1_000_000) -> None:
        """Let the store answer so many more requests of schedulers, then refuse so many, then answer again."""

    @abstractmethod
    def mend_store(self) -> bool:
        """Let the store answer again; return whether anything was refused."""

    async def advance(self, **length: float) -> datetime:
        """Let time pass: `advance(minutes=5)`; return the new time."""
        await self.pass_by(timedelta(**length).total_seconds())
        return self.now()

    async def advance_to(self, moment: datetime) -> None:
        """Let time pass until then."""
        await self.pass_by((moment - self.now()).total_seconds())

    async def started(self, *registrations: Registration) -> Scheduler:
        """Return a new instance that runs these."""
        scheduler = self.scheduler()
        await scheduler.initialize(list(registrations))
        return scheduler


Story: TypeAlias = Callable[[World], Coroutine[Any, Any, T]]


class Adapter(ABC):
    """The implementation under test."""

    @abstractmethod
    def play(self, story: Story[T], *, begin: datetime = NOON, zone: str = "UTC") -> T:
        """Play the story in a fresh world that begins at this time, on a host in this zone; return what it returns."""

    @abstractmethod
    def occurrences(self, cron: str, zone: str, after: datetime, through: datetime) -> list[datetime]:
        """Return the occurrences in `(after, through]` as the implementation calculates them; nothing is run."""

    @abstractmethod
    def error(self, name: str) -> type[Exception]:
        """Return the class that the implementation raises for this name of the taxonomy."""

    @abstractmethod
    def details(self, error: BaseException) -> Mapping[str, Any]:
        """Return the details of an error."""

    @abstractmethod
    def invalid_documents(self) -> list[tuple[str, Callable[[Any], Any], Mapping[str, Any]]]:
        """Return the error, the change to a readable document that leads to it, and details that it must have."""
