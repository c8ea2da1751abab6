"""The watch on limits: tells listeners when a person limits, brakes or releases, on this node or elsewhere."""

from everytick.domain.limits import LimitChange, Limits, named
from everytick.domain.lookups import LimitsAndBrakes
from everytick.node.events import Event, Happening, Listeners
from everytick.stores.protocols import QuestionStore

_KINDS = (
    ("brakes to come removed", Happening.RELEASED),
    ("brake", Happening.BRAKED),
    ("release", Happening.RELEASED),
)
"""What happens by a change that begins with these words. Every other change is about a limit."""


class LimitWatch:
    """Knows which changes it has told of. At its start it tells of the brakes that hold."""

    def __init__(self, store: QuestionStore, listeners: Listeners) -> None:
        self._store, self._listeners = store, listeners
        self._seen: int | None = None

    async def look(self, newest: int) -> None:
        """Tell of the changes up to the one with this number, once each."""
        if newest == (self._seen or 0):
            self._seen = newest
            return
        limits = await self._store.ask(LimitsAndBrakes())
        # Only now: if the store did not answer, the next look tells of them.
        seen, self._seen = self._seen, newest
        if seen is None:
            self._tell_brakes(limits)
            return
        for change in reversed(limits.changes):
            if seen < change.number <= newest:
                self._listeners.tell(Event(_kind(change), change.at, text=_words(change)))

    def _tell_brakes(self, limits: Limits) -> None:
        for record in limits.reaches:
            brake = record.reach.brake(limits.now)
            if brake is not None:
                self._listeners.tell(Event(Happening.BRAKED, brake.since, text=record.closed))


def _kind(change: LimitChange) -> Happening:
    return next((kind for word, kind in _KINDS if change.what.startswith(word)), Happening.LIMITED)


def _words(change: LimitChange) -> str:
    by, why = f" by {change.by}" if change.by else "", f": {change.reason}" if change.reason else ""
    return f"{named(change.reach)}: {change.what}{by}{why}"
