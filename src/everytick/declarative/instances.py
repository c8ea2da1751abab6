"""The instances of a scheduler: in the order in which they began, and which of them live (C-43).

An instance is dead once it said goodbye (it stopped), once its process is known to be gone, or
once it was seen to be silent for too long. A connection that was cut is not a death.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from everytick.declarative import presence
from everytick.domain.values import value
from everytick.node.clock import NodeClock
from everytick.node.settings import NodeSettings
from everytick.node.silence import Silence
from everytick.stores.addresses import AnyStore
from everytick.stores.base import NodeRecord, Nodes


@value
class Instance:
    """One start of a scheduler. `holds` is how many claimed occurrences it has not ended."""

    id: str
    started_at: datetime
    holds: int
    lives: bool

    @property
    def place(self) -> tuple[datetime, str]:
        """Its sort key: the newest instance has the greatest."""
        return self.started_at, self.id


def later_than(me: str, instances: Iterable[Instance]) -> list[Instance]:
    """Return the instances that began after this one, in order. None if this one is not among them yet."""
    ordered = sorted(instances, key=lambda instance: instance.place)
    places = [place for place, instance in enumerate(ordered) if instance.id == me]
    return ordered[places[0] + 1 :] if places else []


class Instances:
    """Reads the instances of one scheduler from the store and from the lock files of this host."""

    def __init__(self, store: AnyStore, me: str, application: str, clock: NodeClock, settings: NodeSettings) -> None:
        self._store, self._me, self._application, self._clock = store, me, application, clock
        self._silence, self._folder = Silence(me, settings), presence.folder_of(store)

    async def all(self) -> list[Instance]:
        """Return every instance that the store knows."""
        return [
            Instance(node.id, node.facts.started_at, node.holds, self._lives(node))
            for node in await self._nodes()
            if node.facts is not None and node.facts.application == self._application
        ]

    async def living(self) -> set[str]:
        """Return the names of all living nodes of the store."""
        return {node.id for node in await self._nodes() if self._lives(node)}

    async def _nodes(self) -> Sequence[NodeRecord]:
        nodes = await self._store.ask(Nodes())
        self._silence.look(nodes, self._clock.now(), self._clock.monotonic())
        return nodes

    def _lives(self, node: NodeRecord) -> bool:
        """Whether the node lives, as far as can be known. A silent node counts as dead though its lock is held."""
        if node.id == self._me:
            return True
        return not self._silence.is_silent(node, self._clock.now()) and not presence.is_gone(self._folder, node.id)
