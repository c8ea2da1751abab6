"""A node within limits: it is told of what people say, and starts what may start as soon as that may be."""

from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from everytick.domain.durations import duration
from everytick.domain.facts import PutBrake, ReleaseBrake, SetLimit
from everytick.domain.limits import Rate
from everytick.domain.question import A, Question
from everytick.errors import StoreUnavailable
from everytick.node.events import Listeners
from everytick.node.limit_watch import LimitWatch
from everytick.schedules.cron import cron
from everytick.stores.memory import MemoryStore
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, World, pause

if TYPE_CHECKING:
    from everytick.node.events import Event


class AwayStore(MemoryStore):
    """A store in memory that answers no question while it is away."""

    is_away = False

    async def ask(self, question: Question[A]) -> A:
        """Answer, or raise."""
        if self.is_away:
            raise StoreUnavailable("the store", "away")
        return await super().ask(question)


def test_limits_brakes_and_releases_are_events_of_every_node(live: Live) -> None:
    """A node that starts under a brake says so; each change is told once, with who and why."""

    async def story(world: World) -> None:
        await world.store.request("tag:crm", PutBrake(reason="the CRM is down", by="ada"))
        told: list[Event] = []
        node = world.node()
        node.listeners.listen(told.append)
        await node.start()
        await pause("10s")
        assert [(event.kind, event.text) for event in told] == [("braked", "brake of tag crm (the CRM is down)")]
        await world.store.request("tag:crm", ReleaseBrake(at_once=True, by="ben"))
        await world.store.request("all", SetLimit(most=3, reason="fragile", by="cid"))
        await pause("10s")
        await node.stop()
        assert [(event.kind, event.text) for event in told[1:]] == [
            ("released", "tag crm: release at once by ben"),
            ("limited", "all: limit 3 at once by cid: fragile"),
        ]

    live(story)


def test_brakes_that_are_removed_before_they_hold_are_told_as_released(live: Live) -> None:
    """Told as a brake, the log would warn that nothing starts."""

    async def story(world: World) -> None:
        told: list[Event] = []
        node = world.node()
        node.listeners.listen(told.append)
        await node.start()
        await pause("10s")
        await world.store.request("tag:crm", PutBrake(since=NOON + timedelta(hours=1), by="ada"))
        await world.store.request("tag:crm", ReleaseBrake(by="ben"))
        await pause("10s")
        await node.stop()
        assert [(event.kind, event.text) for event in told] == [
            ("limited", f"tag crm: brake will hold from {(NOON + timedelta(hours=1)).isoformat()} by ada"),
            ("released", "tag crm: brakes to come removed by ben"),
        ]

    live(story)


def test_a_brake_to_come_is_told_as_a_brake_when_it_begins(live: Live) -> None:
    """Told as one at once, the log would warn that nothing starts, and say nothing when that is so."""

    async def story(world: World) -> None:
        told: list[Event] = []
        node = world.node()
        node.listeners.listen(told.append)
        await node.start()
        await pause("10s")
        at = [NOON + timedelta(hours=hour) for hour in (1, 2, 3)]
        await world.store.request("tag:crm", PutBrake(since=at[0], until=at[1], reason="freeze", by="ada"))
        begins, ends = (cron(text) for text in ("0 15 * * *", "0 16 * * *"))
        await world.store.request("queue:etl", PutBrake(begins=begins, ends=ends, reason="nightly", by="ben"))
        await pause("50m")
        assert [str(event.kind) for event in told] == ["limited", "limited"]
        assert f"brake will hold from {at[0].isoformat()} until {at[1].isoformat()}" in told[0].text
        await pause("2h30m")
        await node.stop()
        assert [(str(event.kind), event.at) for event in told[2:] if event.kind != "released"] == [
            ("braked", at[0]),
            ("braked", at[2]),
        ]

    live(story)


async def test_a_change_is_told_once_the_store_answers_again() -> None:
    """The node had noted its number before it asked, and told of it never."""
    store = AwayStore(lambda: NOON)
    told: list[Event] = []
    listeners = Listeners()
    listeners.listen(told.append)
    watch = LimitWatch(store, listeners)
    await watch.look(0, NOON)
    await store.request("all", SetLimit(most=3, by="cid"))

    store.is_away = True
    with pytest.raises(StoreUnavailable):
        await watch.look(1, NOON)
    store.is_away = False
    await watch.look(1, NOON)
    await watch.look(1, NOON)

    assert [event.text for event in told] == ["all: limit 3 at once by cid"]


def test_a_node_starts_what_waited_when_a_place_is_free_and_when_a_rate_lets_it(live: Live) -> None:
    """S1-040: no node idles while one of them may start; it looks again only once an hour."""

    async def story(world: World) -> None:
        begun: list[float] = []

        async def body() -> None:
            begun.append(world.loop.time())
            await pause("4s")

        job = await world.define("sync", body, overlap="allow", tags=["crm"])
        await world.store.request("tag:crm", SetLimit(most=2))
        node = world.node(poll="1h")
        await node.start()
        asked = [await world.trigger(job, f"k{number}") for number in range(6)]
        for each in asked:
            await world.ended(each)
        assert begun[-1] - begun[0] < 10

        await world.store.request("tag:crm", SetLimit(rate=Rate(6, duration("1m"))))
        again = [await world.trigger(job, f"r{number}") for number in range(3)]
        for each in again:
            await world.ended(each)
        spread = [later - earlier for earlier, later in pairwise(begun[6:])]
        assert all(9.99 <= seconds < 12 for seconds in spread), spread
        await node.stop()

    live(story)
