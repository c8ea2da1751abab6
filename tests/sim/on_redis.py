"""The simulated fleet on a real Redis: each node has its own copy, and its scripts race with those of the others.

The server answers while virtual time stands still, so a seed is one life here too. What takes time, gets lost or never
comes is the way between a copy and the server: a node may stand still, or die, between its look and its commit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import getpid
from random import Random
from typing import Any

import redis

from everytick.errors import StoreUnavailable
from everytick.stores.redis.store import HELD_AT_MOST, RedisStore
from tests.sim.chance import passing
from tests.sim.faults import Wire
from tests.sim.world import World

WAY_SECONDS = 0.05
"""The longest way to the server. A longer one would make every commit lose, as no fleet near its server does."""

TURN_SECONDS = 1.0
"""How long a turn lasts, as `_TURN_MILLISECONDS` says: the server's own clock does not stand still."""

HEARING_SECONDS = 0.25
"""How often a listener looks whether the bell rang."""


class Turns:
    """Ends the turn of a writer after a second of virtual time, as the server does after a real one."""

    def __init__(self, client: Any, key: str, seconds: Callable[[], float]) -> None:
        self._client, self._key, self._seconds = client, key, seconds
        self._holder: tuple[object, float] = None, 0.0
        self.count = 0

    def pass_on(self) -> None:
        """Forget a turn that is over."""
        holder = self._client.get(self._key)
        if holder != self._holder[0]:
            self._holder = holder, self._seconds()
            self.count += holder is not None
        elif holder is not None and self._seconds() - self._holder[1] > TURN_SECONDS:
            self._client.delete(self._key)


class WiredClient:
    """The driver's client as one copy uses it, over the wire of its node. Without a wire every answer comes at once."""

    def __init__(self, client: Any, turns: Turns, wire: Wire | None, chance: Random) -> None:
        self._client, self._turns, self._wire, self._chance = client, turns, wire, chance

    async def ask(self, question: Callable[[], Any]) -> Any:
        """Return the server's answer, if question and answer come through.

        An answer takes no time: the way from the store to its node has delays enough, and the laws look at what a
        commit has left in the moment in which it was answered.
        """
        if self._wire is not None:
            await passing(self._chance.random() * WAY_SECONDS)
            await self._wire.way(beats=True)
        self._turns.pass_on()
        answer = question()
        if self._wire is not None and self._chance.random() < self._wire.lost:
            raise StoreUnavailable("the simulated store", "its answer is lost")
        return answer

    def __getattr__(self, command: str) -> Any:
        async def over_the_wire(*given: Any, **named: Any) -> Any:
            return await self.ask(lambda: getattr(self._client, command)(*given, **named))

        return over_the_wire

    async def xread(self, streams: dict[str, str], *, count: int, block: int) -> Any:
        """Return the next entry of a log, nothing if none comes while a turn lasts. The server must not wait itself."""
        for _ in range(int(TURN_SECONDS / WAY_SECONDS)):
            if found := await self.ask(lambda: self._client.xread(streams, count=count)):
                return found
            await passing(WAY_SECONDS)
        return []

    def pipeline(self, *, transaction: bool) -> "WiredPipeline":
        """Return what gathers commands."""
        return WiredPipeline(self, self._client.pipeline(transaction=transaction))

    def pubsub(self, *, ignore_subscribe_messages: bool) -> "WiredBell":
        """Return what hears a channel."""
        return WiredBell(self._client.pubsub(ignore_subscribe_messages=ignore_subscribe_messages))

    async def aclose(self) -> None:
        """Return: the others use the connection too."""


class WiredPipeline:
    """Commands that go to the server together."""

    def __init__(self, client: WiredClient, pipeline: Any) -> None:
        self._client, self._pipeline = client, pipeline

    def __getattr__(self, command: str) -> Any:
        return getattr(self._pipeline, command)

    async def execute(self) -> Sequence[Any]:
        """Return the answers."""
        answers: Sequence[Any] = await self._client.ask(self._pipeline.execute)
        return answers


class WiredBell:
    """A channel that is looked at now and then, on virtual time."""

    def __init__(self, heard: Any) -> None:
        self._heard = heard

    async def subscribe(self, channel: str) -> None:
        """Hear this channel."""
        self._heard.subscribe(channel)

    async def get_message(self, **limit: float) -> Any:
        """Return the next message, None if none comes in time."""
        for _ in range(int(limit["timeout"] / HEARING_SECONDS)):
            if (message := self._heard.get_message(timeout=0)) is not None:
                return message
            await passing(HEARING_SECONDS)
        return None

    async def aclose(self) -> None:
        """Hear no more."""
        self._heard.close()


@dataclass
class RedisWorld(World):
    """A world whose store is in Redis. People and laws look at a copy of their own."""

    address: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ways = Random(self.seed)
        prefix = f"sim-{getpid()}-{self.seed}"
        self._url = f"{self.address}?prefix={prefix}"
        self._client: Any = redis.Redis.from_url(self.address, decode_responses=True)
        self.erase()
        self.turns = Turns(self._client, f"{{{prefix}}}/turn", self.loop.time)
        self.commits = self.refused = 0
        self.store, self._truth = self._copy(None), self._copy(None)

    def _copy(self, wire: Wire | None) -> RedisStore:
        store = RedisStore(self._url, clock=self.store_time, held_at_most=HELD_AT_MOST if wire is None else 0)
        store._connections._client = WiredClient(self._client, self.turns, wire, self._ways)
        commit = store._log.commit

        async def counted(*given: Any, **named: Any) -> Any:
            answer = await commit(*given, **named)
            self.commits, self.refused = self.commits + 1, self.refused + (not answer.written)
            return answer

        store._log.commit = counted  # type: ignore[method-assign]
        return store

    def wire(self) -> Wire:
        """Return a way to a copy of the store that one node has alone."""
        wire = super().wire()
        # The laws look at a copy that waits for no turn: what people ask for may have to.
        wire.store, wire.truth = self._copy(wire), self._truth
        return wire

    def erase(self) -> None:
        """Delete the keys of this world."""
        found = list(self._client.scan_iter(match=f"*sim-{getpid()}-{self.seed}*", count=1_000))
        if found:
            self._client.delete(*found)
