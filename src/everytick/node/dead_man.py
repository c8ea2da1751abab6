"""The dead man's switch: one node of the fleet tells an outside address every minute that the fleet lives.

Silence is the alarm: if no node lives, or none reaches the store, no ping is sent and the outside place speaks up.
"""

import asyncio
import json
import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from everytick.domain.fleet_pings import ping_of
from everytick.domain.lookups import Promises
from everytick.node.settings import NodeSettings
from everytick.runners.addresses import AddressRules, Forbidden, Unresolved
from everytick.runners.posting import BadAnswer, HttpRequest, send, without_secrets
from everytick.stores.addresses import AnyStore
from everytick.stores.base import NodeRecord, Nodes

_log = logging.getLogger("everytick.node")

PING_SECONDS = 60.0
"""How often a ping is sent: services that wait for one count in minutes."""

_ANSWER_SECONDS = 20.0
"""How long the service has to answer: well before the next ping."""

_MOST_PROMISES = 1_000
"""Most promises that a ping tells of."""

_EVERYWHERE = ("0.0.0.0/0", "::/0")
"""The address is a setting of the operator, who may name any host; a job's author has no say in it."""


class DeadMan:
    """Sends the pings of this node while it is its turn."""

    def __init__(self, store: AnyStore, node: str, settings: NodeSettings) -> None:
        self._store, self._node, self._silence = store, node, settings.node_timeout
        self._url = settings.dead_man_url
        self._is_failing = False

    async def round(self) -> int:
        """Send a ping if it is this node's turn; return 0, for there is no more."""
        now, nodes = await self._store.now(), await self._store.ask(Nodes())
        if self._url is not None and pinging(nodes, now, self._silence) == self._node:
            alive = sum(node.is_alive(now, self._silence) for node in nodes)
            ping = ping_of(await self._store.ask(Promises(None, _MOST_PROMISES)), now, self._node, alive)
            await self._send(self._url, json.dumps(ping.as_data()).encode())
        return 0

    async def _send(self, url: str, body: bytes) -> None:
        request = HttpRequest("POST", url, {"Content-Type": "application/json"}, body)
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                status = await send(request, AddressRules(_EVERYWHERE))
            wrong = "" if status < 300 else f"it answered {status}"
        except (OSError, TimeoutError, BadAnswer, Forbidden, Unresolved) as error:
            wrong = str(error) or type(error).__name__
        self._tell(without_secrets(url), wrong)

    def _tell(self, place: str, wrong: str) -> None:
        """Log once that pings fail, and once that they arrive again."""
        if wrong and not self._is_failing:
            _log.warning("no ping reaches %s: %s; it is tried again every minute, and may raise an alarm", place, wrong)
        elif self._is_failing and not wrong:
            _log.info("pings reach %s again; an alarm that was raised there may be closed", place)
        self._is_failing = bool(wrong)


def pinging(nodes: Iterable[NodeRecord], now: datetime, silence: timedelta) -> str | None:
    """Return the node whose turn it is: of the living ones that know the address, the first by name."""
    able = (node.id for node in nodes if node.is_alive(now, silence) and node.facts is not None and node.facts.pings)
    return min(able, default=None)
