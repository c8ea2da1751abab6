"""Succession: of two living instances of one scheduler the newer starts callbacks, and the older rests.

Callbacks are functions of a process. After a deploy the newer process has the newer ones, so an
older instance that was not stopped yet must not start its own any more. It looks who else
lives every few seconds; until then a minute may still run in either, and never in both.
"""

import asyncio
import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from everytick.errors import StoreUnavailable
from everytick.node.node import Node
from everytick.stores.addresses import AnyStore
from everytick.stores.base import NodeRecord

_log = logging.getLogger("everytick.declarative")

_EVERY = 5.0
_SILENCE = timedelta(seconds=20)


def successor(nodes: Iterable[NodeRecord], me: str, application: str, now: datetime) -> str | None:
    """Return the newest living instance of the scheduler that began after this one, or None."""
    known = {each.id: each.facts for each in nodes if each.facts is not None and each.facts.application == application}
    mine = known.get(me)
    if mine is None:
        return None
    living = {each.id for each in nodes if now - each.beat_at <= _SILENCE}
    newer = [(facts.started_at, id_) for id_, facts in known.items() if facts.started_at > mine.started_at]
    return max((each for each in newer if each[1] in living), default=(now, None))[1]


class Succession:
    """Lets a node rest while a newer instance lives, and go on if that one falls silent."""

    def __init__(self, store: AnyStore, node: Node, application: str) -> None:
        self._store, self._node, self._application = store, node, application
        self._newer: str | None = None

    async def watch(self) -> None:
        """Look every few seconds, for ever."""
        while True:
            await asyncio.sleep(_EVERY)
            try:
                await self.look()
            except StoreUnavailable:
                # Whoever does not reach the store starts nothing anyway.
                continue
            except Exception:  # noqa: BLE001, the next look may succeed
                _log.exception("it could not be found out whether a newer instance lives")

    async def look(self) -> None:
        """Rest if there is a newer instance, go on if there is none any more."""
        nodes = await self._store.nodes()
        found = successor(nodes, self._node.name, self._application, self._node.clock.now())
        if found == self._newer:
            return
        self._newer = found
        self._node.executor.claimer.rest(found is not None)
        if found is not None:
            _log.warning("a newer instance runs this scheduler, %s: nothing is started here while it lives", found)
        else:
            _log.warning("the newer instance of this scheduler is gone: callbacks are started here again")
