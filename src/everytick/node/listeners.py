"""Listeners: take the events of a node: the log first, then those who asked for them."""

import logging
from collections.abc import Callable
from typing import TypeAlias

from everytick.domain.steps import Step
from everytick.node.event_log import log_event, logger
from everytick.node.events import Event, has_failure

Listener: TypeAlias = Callable[[Event], None]


class Listeners:
    """Logs events and passes them on to listeners; a listener that raises is logged, and the others still hear."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    @property
    def wanted(self) -> bool:
        """Whether a listener or the log takes events of every kind."""
        return bool(self._listeners) or logger.isEnabledFor(logging.INFO)

    def wants(self, step: Step) -> bool:
        """Whether the step is told: one with a failure always is."""
        return self.wanted or has_failure(step)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell the listener of everything from now on; call what is returned to stop."""
        self._listeners = [*self._listeners, listener]

        def stop() -> None:
            self._listeners = [known for known in self._listeners if known is not listener]

        return stop

    def tell(self, event: Event) -> None:
        """Log the event and pass it on."""
        log_event(event)
        for listener in self._listeners:
            try:
                listener(event)
            except BaseException:  # noqa: BLE001, it is not our code
                logger.exception("a listener of events failed on %s; the node goes on", event.kind)
