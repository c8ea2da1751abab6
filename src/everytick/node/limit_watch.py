"""The watch on limits: tells listeners when a person limits, brakes or releases, on this node or elsewhere."""

from everytick.domain.limits import LimitChange, Limits, named
from everytick.domain.lookups import LimitsAndBrakes
from everytick.node.events import Event, Happening, Listeners
from everytick.stores.protocols import QuestionStore

_KINDS = (("brake", Happening.BRAKED), ("release", Happening.RELEASED))


class LimitWatch:
    """Knows which changes it has told of. At its start it tells of the brakes that hold."""

    def __init__(self, store: QuestionStore, listeners: Listeners) -> None:
        self._store, self._listeners = store, listeners
        self._seen: int | None = None

    async def look(self, newest: int) -> None:
        """Tell of the changes up to the one with this number, once each."""
        seen, self._seen = self._seen, newest
        if newest == (seen or 0):
            return
        found = await self._store.ask(LimitsAndBrakes())
        if seen is None:
            self._tell_brakes(found)
            return
        for change in reversed(found.changes):
            if seen < change.number <= newest:
                self._listeners.tell(Event(_kind(change), change.at, text=_words(change)))

    def _tell_brakes(self, found: Limits) -> None:
        for record in found.reaches:
            brake = record.reach.brake(found.now)
            if brake is not None:
                self._listeners.tell(Event(Happening.BRAKED, brake.since, text=record.closed))


def _kind(change: LimitChange) -> Happening:
    return next((kind for word, kind in _KINDS if change.what.startswith(word)), Happening.LIMITED)


def _words(change: LimitChange) -> str:
    by, why = f" by {change.by}" if change.by else "", f": {change.reason}" if change.reason else ""
    return f"{named(change.reach)}: {change.what}{by}{why}"
