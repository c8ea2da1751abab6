"""The inbox: what happened, handled one event after another by the engine or the node that owns the inbox.

A part calls only parts that it was given when it was made, and no part calls back. To tell what
happened, a part puts an event into the inbox that it was made with; the handler of that event calls
the parts that have to act on it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from everytick.domain.decisions import Plan
from everytick.domain.outcome import Outcome
from everytick.domain.snapshots import JobSnapshot
from everytick.domain.steps import LifeEvent, Step, Stopping
from everytick.domain.values import value
from everytick.errors import StoreGone, shown
from everytick.node.occurrence import OpenAttempt, OwnedOccurrence
from everytick.stores.base import Batch, Claim, ClaimKey, Commit, Committed, Orders

_log = logging.getLogger("everytick.node")

_SHOWN_CHARACTERS = 300
"""How much of an event a log line shows: a batch of plans or claims would fill pages."""

# ------------------------------------------------------------------------------------------- what happens to an engine


@value
class LookWanted:
    """Something may be due."""


@value
class Planned:
    """A batch was planned and written, or there was nothing to plan.

    `snapshots` are the jobs of the batch that this node plans, with a plan and an answer for each. `asked_at` is the
    monotonic time before the commit, which may have brought claims along.
    """

    batch: Batch
    snapshots: Sequence[JobSnapshot]
    plans: Sequence[Plan]
    done: Committed
    asked_at: float


@value
class Arrived:
    """Claims have come from the store; `asked_at` is the monotonic time of the question, None where it is unknown."""

    claims: Sequence[Claim]
    asked_at: float | None = None


@value
class StartHookOver:
    """The `on_start` hook of the occurrence's job has returned, raised or run out of time."""

    occurrence: OwnedOccurrence


@value
class Prepared:
    """The context of the attempt has everything that its body wants to know before it begins."""

    attempt: OpenAttempt


@value
class HandedOver:
    """An engine carries out the attempt."""

    attempt: OpenAttempt


@value
class AttemptOver:
    """The body of an attempt has ended, or is left behind; `reading` is the monotonic time of that."""

    attempt: OpenAttempt
    outcome: Outcome
    reading: float


@value
class TransactionOver:
    """A task's own transaction has ended; `step` was committed in it. `deferred` are the events that waited for it."""

    occurrence: OwnedOccurrence
    step: Step | None
    deferred: list[LifeEvent]


@value
class StepsWritten:
    """The store has answered about these steps; an answer of None says that the step cannot be written."""

    answers: Sequence[tuple[OwnedOccurrence, Step, Commit | None]]


@value
class OrdersCame:
    """The store has answered a beat."""

    orders: Orders


@value
class StopAsked:
    """The node stops, or a stop that drains is hastened. `grace` takes the place of the setting from now on."""

    stopping: Stopping
    grace: timedelta | None = None


@value
class Reminded:
    """The moment may have come for an event of the occurrence."""

    occurrence: OwnedOccurrence
    until: datetime
    event: LifeEvent


@value
class TimeoutPassed:
    """The task's timeout has passed."""

    attempt: OpenAttempt


@value
class GraceOver:
    """The attempt was told to stop and has had its grace period."""

    attempt: OpenAttempt


@value
class BacklogDue:
    """The first occurrence that waits for a slot may have waited too long."""


@value
class TimeoutsDue:
    """It is time to look at the attempts that are open."""


EngineEvent: TypeAlias = (
    LookWanted
    | Planned
    | Arrived
    | StartHookOver
    | Prepared
    | HandedOver
    | AttemptOver
    | TransactionOver
    | StepsWritten
    | OrdersCame
    | StopAsked
    | Reminded
    | TimeoutPassed
    | GraceOver
    | BacklogDue
    | TimeoutsDue
)

# --------------------------------------------------------------------------------------------- what happens to a node


@value
class StoreAway:
    """The store has not answered, after it had."""

    reason: str


@value
class StoreAnswers:
    """The store answers again."""


@value
class StoreLost:
    """The store is gone for good: this node has to stop."""

    error: StoreGone


@value
class BeatWanted:
    """A beat would show whether the store is well, or would bring orders."""


@value
class Unwritable:
    """A step of this claim cannot be written: the reaper has to settle the occurrence."""

    key: ClaimKey
    occurrence_id: str


NodeEvent: TypeAlias = OrdersCame | StoreAway | StoreAnswers | StoreLost | BeatWanted | Unwritable
AnyEvent: TypeAlias = EngineEvent | NodeEvent

# ------------------------------------------------------------------------------------------------------------ the inbox

Handlers: TypeAlias = Mapping[type[Any], Callable[[Any], None]]
"""The handler of each kind of event."""


def _do_nothing(*_: object) -> None:
    return


class Inbox:
    """Handles each event at once, unless another one is being handled: then after it.

    A handler that raises is logged, `failed` is told of the event, and the other events are handled all the same.
    `settled` is called whenever no event is left to handle; it must not raise.
    """

    __slots__ = ("_events", "_failed", "_handlers", "_is_handling", "_settled")

    def __init__(
        self,
        handlers: Handlers,
        failed: Callable[[Any], None] = _do_nothing,
        settled: Callable[[], None] = _do_nothing,
    ) -> None:
        self._events: deque[Any] = deque()
        self._is_handling = False
        self._handlers, self._failed, self._settled = handlers, failed, settled

    def put(self, event: AnyEvent) -> None:
        """Handle the event, after those that were put before it. Nothing is awaited, and nothing is raised."""
        self._events.append(event)
        if self._is_handling:
            return
        self._is_handling = True
        events, handlers = self._events, self._handlers
        try:
            while events:
                event = events.popleft()
                try:
                    handlers[type(event)](event)
                except Exception:  # noqa: BLE001, a mistake of ours about one event must not reach the part that put it
                    self._mark(event)
                if not events:
                    self._settled()
        finally:
            self._is_handling = False

    def put_from_thread(self, loop: asyncio.AbstractEventLoop, event: AnyEvent) -> None:
        """Put the event on the loop of the inbox; once that loop has ended, drop it."""
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self.put, event)

    def _mark(self, event: AnyEvent) -> None:
        """Log the mistake, and let the owner of the inbox give up what the event was about."""
        about = shown(str(event), _SHOWN_CHARACTERS)
        _log.exception("internal error while %s was handled; other events are handled all the same", about)
        try:
            self._failed(event)
        except Exception:  # noqa: BLE001, the same
            _log.exception("internal error while %s was given up; the node goes on", about)
