"""Silence: which nodes this one has itself seen fall silent, and which claims it has seen overdue for too long.

Both are counted on this process's own monotonic clock, so a step of the store's clock takes
nothing from a healthy node. Nothing is asked and nothing is written here.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from everytick.domain.values import value
from everytick.node.settings import NodeSettings
from everytick.stores.base import ClaimKey, NodeRecord

HEARTBEAT = timedelta(seconds=5)
"""How often a node beats, unless it has told the store otherwise."""


@value
class TakeOvers:
    """The claims that may be taken over: of nodes, each with its beats as seen, and single ones."""

    silent: dict[str, int]
    overdue: tuple[ClaimKey, ...]


class Silence:
    """Remembers the beats of each node, and for how long they have not changed."""

    def __init__(self, node: str, settings: NodeSettings) -> None:
        self._node = node
        self._timeout, self._grace = settings.node_timeout, settings.grace_period.total_seconds()
        # If this process or the store stood still, other nodes may have beaten unseen: no more than this counts.
        self._most = 2 * settings.reaper_interval.total_seconds()
        self._looked_at: float | None = None
        self._unchanged: dict[str, tuple[int, float]] = {}
        self._overdue: dict[ClaimKey, tuple[float, float]] = {}

    def look(
        self, nodes: Iterable[NodeRecord], now: datetime, reading: float, stepped: tuple[float, float] | None = None
    ) -> TakeOvers:
        """Return the claims that may be taken over, from the nodes as they are now and as they were seen before.

        `now` is the store's time and `reading` what this process's monotonic clock shows;
        `stepped` says when the store's clock was last seen to step ahead, and by how many seconds.
        """
        passed = 0.0 if self._looked_at is None else min(reading - self._looked_at, self._most)
        self._looked_at = reading
        others = [node for node in nodes if node.id != self._node]
        self._unchanged = {node.id: self._seen(node, passed) for node in others}
        before, keys = self._overdue, [key for node in others for key in node.overdue]
        self._overdue = {key: _later(before[key], passed) if key in before else (reading, 0.0) for key in keys}
        return TakeOvers(
            {node.id: node.beats for node in others if node.holds and self.is_silent(node, now)},
            tuple(key for key, since in self._overdue.items() if since[1] >= self._patience(since[0], stepped)),
        )

    def _patience(self, first_seen: float, stepped: tuple[float, float] | None) -> float:
        """Return for how many seconds a claim must be seen overdue before it is taken.

        A step ahead of the store's clock makes claims overdue at once. Their owners count on the monotonic clock, so
        they get the length of the step more.
        """
        if stepped is None:
            return self._grace
        at, seconds = stepped
        return self._grace + (seconds if at - self._most <= first_seen <= at + seconds else 0.0)

    def _seen(self, node: NodeRecord, passed: float) -> tuple[int, float]:
        beats, seconds = self._unchanged.get(node.id, (node.beats, -passed))
        return (beats, seconds + passed) if beats == node.beats else (node.beats, 0.0)

    def is_silent(self, node: NodeRecord, now: datetime) -> bool:
        """Tell whether no process beats under the name of a node; one that was never looked at is not silent.

        The store's clock alone is not believed: two heartbeats of a healthy node are enough to
        see it beat.
        """
        if not node.beats:
            return True
        _, seconds = self._unchanged.get(node.id, (0, 0.0))
        if now - node.beat_at > self._timeout:
            heartbeat = HEARTBEAT if node.facts is None else node.facts.heartbeat
            return seconds >= min(2 * heartbeat, self._timeout).total_seconds()
        return seconds >= self._timeout.total_seconds()


def _later(since: tuple[float, float], passed: float) -> tuple[float, float]:
    first_seen, seconds = since
    return first_seen, seconds + passed
