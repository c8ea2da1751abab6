"""What was committed, told once, after the commit: to hooks, meters and streams of this process.

An event is a hint for people and meters; nothing is decided by it. Where nobody listens
none is made.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

from everytick.domain.values import value

_log = logging.getLogger("everytick.events")


class Happening(StrEnum):
    """What happened."""

    CREATED = "created"
    SKIPPED = "skipped"
    STARTED = "started"
    ATTEMPT_ENDED = "attempt_ended"
    RETRY_PLANNED = "retry_planned"
    ENDED = "ended"
    LOST = "lost"
    STORE_LOST = "store_lost"
    STORE_FOUND = "store_found"


@value
class Event:
    """One thing that happened to a job, or to the node where `job` is empty.

    `status` is the status after it, `text` what a person would want to know.
    """

    kind: Happening
    at: datetime
    job: str = ""
    occurrence_id: str | None = None
    scheduled_for: datetime | None = None
    task: str | None = None
    attempt: int | None = None
    status: str = ""
    text: str = ""


Listener: TypeAlias = Callable[[Event], None]


class Events:
    """Passes events on to whoever listens; a listener that raises is logged and disturbs nobody."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    @property
    def wanted(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell the listener of everything from now on; call what is returned to stop."""
        self._listeners = [*self._listeners, listener]

        def stop() -> None:
            self._listeners = [each for each in self._listeners if each is not listener]

        return stop

    def tell(self, event: Event) -> None:
        """Pass the event on."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # noqa: BLE001, it is not our code
                _log.exception("a listener of events failed on %s", event.kind)
