"""Facts: what this node says of itself, so that people can find nodes that disagree."""

import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from everytick.domain.nodes import NodeFacts, bounded_files, bounded_jobs
from everytick.node.clock import NodeClock, Offset
from everytick.node.definers import DefinedNames
from everytick.node.occurrence import OwnedKeys
from everytick.node.settings import NodeSettings
from everytick.schedules.timezones import zone_data
from everytick.stores.protocols import RunStore


class Facts:
    """What the store is told of this node, and again whenever it has changed."""

    def __init__(
        self,
        store: RunStore,
        node: str,
        settings: NodeSettings,
        application: str,
        clock: NodeClock,
        offset: Offset,
        defined: DefinedNames,
        owned: OwnedKeys,
    ) -> None:
        self._store, self._node, self._settings, self._application = store, node, settings, application
        self._clock, self._offset, self._defined, self._owned = clock, offset, defined, owned
        self._told: NodeFacts | None = None
        self._broken_files: Mapping[str, str] = {}
        self._stale_jobs: Mapping[str, str] = {}
        self._refused: Mapping[str, str] = {}
        self._met: tuple[str, ...] = ()

    @property
    def has_new_names(self) -> bool:
        """Whether this process defines other jobs than the store was told."""
        return self._told is not None and self._told.defines != self._defined.hashes

    def learn_files(self, broken_files: Mapping[str, str], stale_jobs: Mapping[str, str]) -> None:
        """Take these broken files and stale jobs in place of those that were told before."""
        self._broken_files, self._stale_jobs = dict(broken_files), dict(stale_jobs)

    def differ(self, refused: Mapping[str, str], met: tuple[str, ...]) -> bool:
        """Whether the store was told of other jobs that cannot run here, or of other needs that are met."""
        return (self._refused, self._met) != (refused, met)

    async def tell(self, refused: Mapping[str, str], met: tuple[str, ...]) -> None:
        """Tell the store the facts that have changed, with the jobs that cannot run here and the needs that are met."""
        self._refused, self._met = dict(refused), met
        known = self._told or facts_of_this_node(self._settings, self._application, self._clock.now())
        facts = replace(
            known,
            clock_offset=timedelta(seconds=round(self._offset.newest.total_seconds(), 1)),
            broken_files=bounded_files(self._broken_files),
            stale_jobs=bounded_jobs(self._stale_jobs),
            unknown_targets=bounded_jobs(self._refused),
            met=self._met,
            defines=self._defined.hashes,
        )
        if facts != self._told:
            # The next beat obeys what this one is told: before the start nothing may be adopted.
            await self._store.beat(self._node, self._owned.named(), facts)
            self._told = facts


def facts_of_this_node(settings: NodeSettings, application: str, started_at: datetime) -> NodeFacts:
    """Return what there is to know of a node that begins now in this process."""
    tables = zone_data()
    return NodeFacts(
        # Not imported: the package itself names every layer above this one.
        version=sys.modules["everytick"].__version__,
        python=".".join(map(str, sys.version_info[:3])),
        zone_data=f"{tables.version} ({tables.source})",
        host=socket.gethostname(),
        pid=os.getpid(),
        slots=settings.slots,
        queues=settings.queues,
        started_at=started_at,
        application=application,
        heartbeat=settings.heartbeat,
        pings=settings.dead_man_url is not None,
    )
