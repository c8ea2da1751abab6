"""How long an attempt may take: by its task, by its job and by default."""

import asyncio
from collections.abc import Sequence

from everytick.domain.notes import Note
from everytick.domain.statuses import OccurrenceStatus, RunStatus
from everytick.stores.base import Claim, CommitAnswer
from everytick.stores.memory import MemoryStore
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import World, living, passing, pause


def test_a_task_has_its_own_timeout_else_its_jobs(live: Live) -> None:
    """S0-065: the time counts for each attempt from its own beginning, and None is no limit."""

    async def story(world: World) -> None:
        lasted: dict[str, list[int]] = {}

        def named(name: str):  # type: ignore[no-untyped-def]
            async def body() -> None:
                begun = world.loop.time()
                try:
                    await passing(25)
                finally:
                    lasted.setdefault(name, []).append(round(world.loop.time() - begun))

            return body

        job = await world.define(
            "own",
            {name: named(name) for name in ("short", "long", "jobs")},
            mode="parallel",
            failure="continue",
            task_timeout="10s",
            retry={"max": 1, "interval": "1s"},
            own={"short": {"task_timeout": "4s"}, "long": {"task_timeout": None}},
        )
        node = world.node()
        await node.start()
        over = await world.ended(await world.trigger(job))
        assert over.status is OccurrenceStatus.COMPLETED_WITH_ERRORS
        assert lasted == {"short": [4, 4], "jobs": [10, 10], "long": [25]}
        await node.stop()

    live(story)


def test_a_task_that_says_nothing_has_five_minutes() -> None:
    """S0-065: the default, as it strikes."""

    async def story(world: World) -> None:
        lasted: list[float] = []

        async def body() -> None:
            begun = world.loop.time()
            try:
                await passing(1000)
            finally:
                lasted.append(round(world.loop.time() - begun))

        job = await world.define("silent", body)
        node = world.node()
        await node.start()
        asked = await world.trigger(job)
        await world.ended(asked)
        assert lasted == [300]
        assert [run.status for run in (await world.store.whole(asked)).runs] == [RunStatus.TIMEOUT]
        await node.stop()

    living(story)


class SilentAboutNotes(MemoryStore):
    """A store that takes no note and does not say so, like a server that is frozen."""

    async def note(self, notes: Sequence[tuple[Claim, Note]]) -> Sequence[CommitAnswer]:
        """Never answer."""
        await asyncio.Event().wait()
        return []


def test_a_stop_does_not_wait_for_a_store_that_takes_no_notes() -> None:
    """C-28: notes are for people only, and may be lost."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(1000)

        job = await world.define("noted", body)
        node = world.node()
        await node.start()
        await world.trigger(job)
        await pause("30s")
        before = world.loop.time()
        async with asyncio.timeout(300):
            await node.stop()
        assert world.loop.time() - before < 60

    living(story, SilentAboutNotes)
