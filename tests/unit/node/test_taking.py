"""Taking over from a node that is said to be dead, and leaving jobs alone, as the declarative scheduler asks."""

import asyncio

import pytest

from everytick.domain.statuses import OccurrenceStatus
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import World, passing, pause


def test_what_a_node_runs_that_is_said_to_be_dead_is_restarted(live: Live) -> None:
    """S2-059: its attempt is lost, it is told to stop, and another one succeeds."""

    async def story(world: World) -> None:
        calls: list[str] = []

        async def body() -> None:
            calls.append("called")
            if len(calls) == 1:
                await asyncio.Event().wait()

        job = await world.define("long", body, on_orphan="restart", max_lost=None)
        owner, taker = world.node(), world.node()
        await owner.start()
        asked = await world.trigger(job)
        await pause("2s")
        taker.clock.learn(await world.store.now())
        assert await taker.reaper.take_over([owner.name]) == 1
        await taker.start()
        assert (await world.ended(asked)).status is OccurrenceStatus.COMPLETED
        whole = await world.store.whole(asked)
        assert [str(attempt.status) for _, attempt in whole.attempts] == ["lost", "success"]
        await owner.stop()
        await taker.stop()

    live(story)


def test_what_a_node_runs_that_is_said_to_be_dead_can_be_ended(live: Live) -> None:
    """S2-011: with a reason it does not come back, though its job would restart it."""

    async def story(world: World) -> None:
        stopped = asyncio.Event()

        async def body() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        job = await world.define("long", body, on_orphan="restart", max_lost=None)
        owner, taker = world.node(), world.node()
        await owner.start()
        asked = await world.trigger(job)
        await pause("2s")
        taker.clock.learn(await world.store.now())
        assert await taker.reaper.take_over([owner.name], [asked], "another stands for it") == 1
        ended = await world.ended(asked)
        assert (ended.status, ended.error) == (OccurrenceStatus.CANCELED, "another stands for it")
        whole = await world.store.whole(asked)
        assert [str(attempt.status) for _, attempt in whole.attempts] == ["lost"]
        await stopped.wait()
        await owner.stop()

    live(story)


@pytest.mark.parametrize("takes", [0, 3, 300])
def test_a_node_that_claims_anew_what_it_still_runs_lets_that_end_first(live: Live, takes: float) -> None:
    """S2-007, L2: the body that lost its claim is stopped, and the next begins when it has ended or was left behind."""

    async def story(world: World) -> None:
        open_bodies, most = 0, 0
        ends: list[str] = []

        async def body() -> None:
            nonlocal open_bodies, most
            open_bodies += 1
            most = max(most, open_bodies)
            try:
                if not ends:
                    ends.append("canceled")
                    await asyncio.Event().wait()
                ends.append("done")
            finally:
                if ends == ["canceled"]:
                    # It cleans up for a while, or for longer than the node waits.
                    await passing(takes)
                    ends.insert(0, "cleaned up")
                open_bodies -= 1

        job = await world.define("long", body, on_orphan="restart", max_lost=None)
        owner, taker = world.node(grace_period="30s"), world.node()
        await owner.start()
        asked = await world.trigger(job)
        await pause("2s")
        taker.clock.learn(await world.store.now())
        assert await taker.reaper.take_over([owner.name]) == 1
        ended = await world.ended(asked)
        assert ended.status is OccurrenceStatus.COMPLETED
        is_left_behind = takes > 30
        assert ends == (["canceled", "done"] if is_left_behind else ["cleaned up", "canceled", "done"])
        assert most == (2 if is_left_behind else 1)
        assert (owner.engine.slots.busy, owner.engine.slots.waiting) == (0, 0)
        whole = await world.store.whole(asked)
        assert [str(attempt.status) for _, attempt in whole.attempts] == ["lost", "success"]
        await owner.stop()

    live(story)


def test_a_node_that_stops_gives_back_what_waits_for_its_own_older_body(live: Live) -> None:
    """S2-064, L2: an occurrence that was claimed again and has not begun loses its owner, and runs once."""

    async def story(world: World) -> None:
        calls: list[str] = []

        async def body() -> None:
            calls.append("called")
            if len(calls) == 1:
                try:
                    await asyncio.Event().wait()
                finally:
                    await passing(5)

        job = await world.define("long", body, on_orphan="restart", max_lost=None)
        owner, taker = world.node(), world.node()
        await owner.start()
        asked = await world.trigger(job)
        await pause("2s")
        taker.clock.learn(await world.store.now())
        assert await taker.reaper.take_over([owner.name]) == 1
        await pause("1s")
        await owner.stop("drain")
        assert await world.status(asked) is OccurrenceStatus.PENDING
        assert calls == ["called"]
        await taker.start()
        assert (await world.ended(asked)).status is OccurrenceStatus.COMPLETED
        assert len(calls) == 2
        await taker.stop()

    live(story)


def test_what_is_left_is_never_asked_for(live: Live) -> None:
    """C-21, C-41: neither planned nor claimed, also when a node looks again at what it could not run."""

    async def story(world: World) -> None:
        async def body() -> None:
            raise AssertionError

        job = await world.define("theirs", body)
        node = world.node()
        node.scope.leave([job.id])
        await node.start()
        await world.trigger(job)
        await pause("100s")
        assert [each.key for each in (await world.store.look([job.id]))[job.id].requests] == ["k"]
        await node.stop()

    live(story)


def test_a_node_that_rests_claims_nothing_until_it_goes_on(live: Live) -> None:
    """What it has claimed before is carried out."""

    async def story(world: World) -> None:
        calls: list[str] = []

        async def body() -> None:
            calls.append("called")

        job = await world.define("a", body)
        node = world.node()
        await node.start()
        node.engine.claimer.rest(True)
        asked = await world.trigger(job)
        await pause("100s")
        assert (await world.status(asked), calls) == (OccurrenceStatus.PENDING, [])
        node.engine.claimer.rest(False)
        assert (await world.ended(asked)).status is OccurrenceStatus.COMPLETED
        await node.stop()

    live(story)
