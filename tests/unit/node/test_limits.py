"""A node within limits: it is told of what people say, and starts what may start as soon as that may be."""

from itertools import pairwise
from typing import TYPE_CHECKING

from everytick.domain.durations import duration
from everytick.domain.facts import PutBrake, ReleaseBrake, SetLimit
from everytick.domain.limits import Rate
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import World, pause

if TYPE_CHECKING:
    from everytick.node.events import Event


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
        assert all(10 <= seconds < 12 for seconds in spread), spread
        await node.stop()

    live(story)
