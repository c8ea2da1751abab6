"""A replay from one task on, run by a node."""

from everytick.domain.facts import Replay
from everytick.domain.statuses import OccurrenceStatus
from everytick.runners.context import Context
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, World


def test_a_replay_from_a_task_on_hands_it_what_the_ones_before_it_returned_then(live: Live) -> None:
    """S0-102."""

    async def story(world: World) -> None:
        seen: list[object] = []

        async def extract() -> int:
            seen.append("extract")
            return 7

        async def load(ctx: Context) -> None:
            seen.append(dict(ctx.results))

        async def begun() -> None:
            seen.append("on_start")

        job = await world.define("etl", {"extract": extract, "load": load})
        world.hooks[job.id] = {"on_start": begun}
        node = world.node()
        await node.start()
        first = await world.trigger(job, "one")
        await world.ended(first)
        again = (await world.store.request(job.id, Replay("two", first, NOON, keeps=("extract",)))).id
        assert (await world.ended(again)).status is OccurrenceStatus.COMPLETED
        assert seen == ["on_start", "extract", {"extract": 7}, "on_start", {"extract": 7}]
        await node.stop()

    live(story)


def test_a_replay_keeps_the_order_and_the_failure_strategy_of_its_job(live: Live) -> None:
    """S0-102: tasks one after another; a failure ends what follows it, and a task that continues runs all the same."""

    async def story(world: World) -> None:
        seen: list[str] = []

        def named(name: str):  # type: ignore[no-untyped-def]
            async def body(ctx: Context) -> None:
                seen.append(name)
                if name == "b":
                    raise ValueError("again")

            return body

        tasks = {name: named(name) for name in ("a", "b", "c", "d")}
        job = await world.define("etl", tasks, own={"d": {"failure": "continue"}})
        node = world.node()
        await node.start()
        first = await world.trigger(job, "one")
        again = first
        for _ in range(2):
            assert (await world.ended(again)).status is OccurrenceStatus.FAILED
            runs = (await world.store.whole(again)).runs
            assert [str(run.status) for run in runs] == ["success", "failed", "skipped", "success"]
            assert seen == ["a", "b", "d"]
            seen.clear()
            again = (await world.store.request(job.id, Replay("two", first, world.now()))).id
        await node.stop()

    live(story)
