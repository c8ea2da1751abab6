"""The watch on limits: tells listeners when a person limits, brakes or releases, on this node or elsewhere.

A brake that is set to begin later is told as one to come when it is set, and as a brake when it begins.
"""

from datetime import datetime

from everytick.domain.limit_changes import WILL_HOLD
from everytick.domain.limits import BrakeRecord, LimitChange, Limits, named
from everytick.domain.lookups import LimitsAndBrakes
from everytick.node.events import Event, Happening, Listeners
from everytick.stores.protocols import QuestionStore

_KINDS = (
    ("brakes to come removed", Happening.RELEASED),
    (WILL_HOLD, Happening.LIMITED),
    ("brake", Happening.BRAKED),
    ("release", Happening.RELEASED),
)
"""What happens by a change that begins with these words. Every other change is about a limit."""


class LimitWatch:
    """Knows which changes it has told of. At its start it tells of the brakes that hold."""

    def __init__(self, store: QuestionStore, listeners: Listeners) -> None:
        self._store, self._listeners = store, listeners
        self._seen: int | None = None
        self._begins_at: datetime | None = None
        """When the next brake begins, as far as is known."""

    async def look(self, newest: int, now: datetime) -> None:
        """Tell of the changes up to the one with this number, and of the brakes that have begun by now, once each."""
        has_begun = self._begins_at is not None and self._begins_at <= now
        if newest == (self._seen or 0) and not has_begun:
            self._seen = newest
            return
        limits = await self._store.ask(LimitsAndBrakes())
        # Only now: if the store did not answer, the next look tells of them.
        seen, self._seen = self._seen, newest
        since, self._begins_at = self._begins_at, _next_begin(limits)
        changes = [] if seen is None else [change for change in limits.changes if seen < change.number <= newest]
        for change in reversed(changes):
            self._listeners.tell(Event(_kind(change), change.at, text=_words(change)))
        told = {change.reach for change in changes if _kind(change) is Happening.BRAKED}
        for record in limits.reaches:
            brake = record.reach.brake(limits.now)
            is_new = seen is None or (since is not None and brake is not None and brake.since >= since)
            if brake is not None and is_new and record.reach.name not in told:
                self._listeners.tell(Event(Happening.BRAKED, brake.since, text=record.closed))


def _next_begin(limits: Limits) -> datetime | None:
    """Return when the next brake begins that does not hold yet."""
    brakes = (brake for record in limits.reaches for brake in record.reach.brakes)
    windows: list[BrakeRecord | None] = [brake.at(limits.now) for brake in brakes]
    return min((at for window in windows if window is not None and (at := window.since) > limits.now), default=None)


def _kind(change: LimitChange) -> Happening:
    return next((kind for word, kind in _KINDS if change.what.startswith(word)), Happening.LIMITED)


def _words(change: LimitChange) -> str:
    by, why = f" by {change.by}" if change.by else "", f": {change.reason}" if change.reason else ""
    return f"{named(change.reach)}: {change.what}{by}{why}"
