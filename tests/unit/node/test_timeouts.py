"""How long an attempt may take: by default, by its job and by its task."""

from everytick.domain.statuses import OccurrenceStatus
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import World, passing


def test_a_task_has_its_own_timeout_else_its_jobs_else_five_minutes(live: Live) -> None:
    """S0-065: the time counts for each attempt from its own beginning, and None is no limit."""

    async def story(world: World) -> None:
        ended: dict[str, list[int]] = {}

        def named(name: str):  # type: ignore[no-untyped-def]
            async def body() -> None:
                begun = world.loop.time()
                try:
                    await passing(1000)
                finally:
                    ended.setdefault(name, []).append(round(world.loop.time() - begun))

            return body

        retry = {"max": 1, "interval": "2s"}
        by_task: dict[str, dict[str, object]] = {"short": {"task_timeout": "4s"}, "long": {"task_timeout": None}}
        own = await world.define(
            "own",
            {name: named(name) for name in ("short", "long", "jobs")},
            mode="parallel",
            failure="continue",
            task_timeout="10s",
            retry=retry,
            own=by_task,
        )
        silent = await world.define("silent", {"default": named("default")}, retry=retry)
        node = world.node()
        await node.start()
        for job in (own, silent):
            over = await world.ended(await world.trigger(job))
            assert over.status in (OccurrenceStatus.COMPLETED_WITH_ERRORS, OccurrenceStatus.FAILED)
        assert ended == {"short": [4, 4], "jobs": [10, 10], "long": [1000], "default": [300, 300]}
        await node.stop()

    live(story)
