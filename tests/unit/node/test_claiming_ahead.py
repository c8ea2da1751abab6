"""Whatever is running runs: a node claims what begins at once, and gives back what does not (F1, F2)."""

from collections.abc import Sequence
from typing import Any

import pytest

from everytick.domain.decisions import Plan
from everytick.domain.job import Job
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import Batch, Claim, Committed, NodeScope, Offer
from everytick.stores.memory.store import MemoryStore
from tests.unit.node.worlds import World, living, passing, pause


async def _asked_behind(world: World, short: Job, slow: Job, count: int, begun: list[float]) -> list[str]:
    """Ask for long ones behind short ones that start hundreds a second; return them once some have begun.

    So some of them are claimed ahead.
    """
    for number in range(200):
        await world.trigger(short, f"short-{number}")
    asked = [await world.trigger(slow, f"long-{number}") for number in range(count)]
    while not begun:
        await passing(0.05)
    return asked


async def _short_and_slow(world: World, begun: list[float], **policies: Any) -> tuple[Job, Job]:
    """Define a job of 4 ms that goes first, and one of a second that notes when it begins and has these policies."""

    async def short() -> None:
        await passing(0.004)

    async def long() -> None:
        begun.append(world.loop.time())
        await passing(1)

    return (
        await world.define("short", short, overlap="allow", priority=1),
        await world.define("long", long, overlap="allow", **policies),
    )


def test_the_deadline_does_not_run_while_an_occurrence_waits_for_a_slot() -> None:
    """S0-067, S0-071, S0-104, F1: eight bodies of a second in two slots, each of which may take two."""

    async def story(world: World) -> None:
        begun: list[float] = []
        short, slow = await _short_and_slow(world, begun, execution_timeout="2s")
        node = world.node(slots=2)
        await node.start()
        asked = await _asked_behind(world, short, slow, 8, begun)
        seen = set()
        for _ in range(6):
            await pause("300ms")
            running = [each for each in await world.history(slow) if each.status is OccurrenceStatus.RUNNING]
            seen.add(len(running))
            waiting = [each for each in await world.history(slow) if each.status is OccurrenceStatus.PENDING]
            assert all((each.started_at, each.owner, each.node) == (None, None, None) for each in waiting)
        assert seen <= {1, 2}
        assert {(await world.ended(each)).status for each in asked} == {OccurrenceStatus.COMPLETED}
        assert len(begun) == 8
        assert any(each.fence > 2 for each in await world.history(slow)), "nothing was given back"
        await node.stop()

    living(story)


def test_a_second_node_finds_what_the_first_has_no_slot_for() -> None:
    """F1: two nodes of five slots take six seconds for sixty bodies of a second."""

    async def story(world: World) -> None:
        begun: list[float] = []
        short, slow = await _short_and_slow(world, begun)
        first, second = world.node(slots=5), world.node(slots=5)
        await first.start()
        asked = await _asked_behind(world, short, slow, 60, begun)
        await second.start()
        for each in asked:
            await world.ended(each)
        nodes = [each.node for each in await world.history(slow)]
        assert min(nodes.count(name) for name in (first.name, second.name)) > 20
        assert max(begun) - min(begun) < 7
        await first.stop()
        await second.stop()

    living(story)


def test_a_stop_gives_back_what_has_not_begun_and_a_long_downtime_ends_nothing() -> None:
    """F1, F2: what was claimed ahead does not fail unrun when the next node comes."""

    async def story(world: World) -> None:
        begun: list[float] = []
        short, slow = await _short_and_slow(world, begun, execution_timeout="2s", on_orphan="resume")
        node = world.node(slots=2)
        await node.start()
        asked = await _asked_behind(world, short, slow, 8, begun)
        await node.stop("drain")
        await pause("1m")
        again = world.node(slots=2)
        await again.start()
        assert {(await world.ended(each)).status for each in asked} == {OccurrenceStatus.COMPLETED}
        await again.stop()

    living(story)


class Late(MemoryStore):
    """A store whose next answer with claims stays in the socket, as it does while a process is stopped."""

    answers_after, claims_along = 0.0, True

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        claims = await super().claim(scope, limit)
        await self._stop(claims)
        return claims

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        done = await super().commit_plans(batch, plans, offer if self.claims_along else None)
        await self._stop(done.claims)
        return done

    async def _stop(self, claims: Sequence[Claim]) -> None:
        if claims and self.answers_after:
            seconds, self.answers_after = self.answers_after, 0.0
            await passing(seconds)


@pytest.mark.parametrize("along", [True, False], ids=["claimed along", "claimed"])
def test_what_was_asked_for_longer_ago_than_node_timeout_is_not_begun(along: bool) -> None:
    """I5: another node may have taken it over; it is given back unread."""

    async def story(world: World) -> None:
        begun: list[float] = []

        async def work() -> None:
            begun.append(world.loop.time())

        store = world.store
        assert isinstance(store, Late)
        store.claims_along = along
        job = await world.define("work", work)
        node = world.node(node_timeout="20s")
        await node.start()
        store.answers_after = 25.0
        asked = await world.trigger(job)
        ended = await world.ended(asked, "2m")
        # Claimed twice, and an end raises the fence once more.
        assert (ended.status, ended.fence, len(begun)) == (OccurrenceStatus.COMPLETED, 3, 1)
        await node.stop()

    living(story, Late)
