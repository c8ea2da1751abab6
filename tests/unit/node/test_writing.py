"""What is written when: an end is written at once, also while thousands wait to start."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from everytick.domain.policies import Overlap
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import Step
from everytick.stores.base import Claim, CommitAnswer, CommitAway
from everytick.stores.memory import MemoryStore
from tests.unit.node.worlds import NOON, World, living, passing

MANY = 3_000
TURNS = timedelta(milliseconds=80)


class Timed(MemoryStore):
    """Keeps how long each step waited to be written, the ends apart from what something follows from."""

    def __init__(self, clock) -> None:  # type: ignore[no-untyped-def]
        super().__init__(clock)
        self.ends: list[timedelta] = []
        self.others: list[timedelta] = []

    async def commit_steps(self, steps: list[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:  # type: ignore[override]
        for _, step in steps:
            ended_at = step.rows[0].ended_at
            assert isinstance(ended_at, datetime)
            (self.others if step.end is None else self.ends).append(self._shared.now() - ended_at)
        return await super().commit_steps(steps)


def test_ends_are_written_within_80_ms_while_others_start() -> None:
    """S4-003: with thousands in line, what has ended is known within a moment and a job's next task begins at once."""

    async def story(world: World) -> None:
        async def short() -> None:
            # It keeps the loop busy, as a body does that computes.
            world.loop.jump(0.0002)

        many = await world.define("many", short, overlap="allow")
        three = await world.define("three", {"a": short, "b": short, "c": short}, overlap="allow", priority=5)
        asked = [await world.trigger(many, f"many-{number}", overlap=Overlap.ALLOW) for number in range(MANY)]
        asked += [await world.trigger(three, f"three-{number}", overlap=Overlap.ALLOW) for number in range(3)]
        node = world.node(slots=10)
        await node.start()
        for id_ in asked:
            assert (await world.ended(id_)).status is OccurrenceStatus.COMPLETED
        await node.stop("drain")
        assert len(world.store.ends) == MANY + 3
        assert len(world.store.others) == 6
        assert max(world.store.others) < TURNS
        assert max(world.store.ends) < TURNS

    living(story, Timed)


class OneIsAway(MemoryStore):
    """Writes no step of the job `away` for the first minute."""

    async def commit_steps(self, steps: list[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:  # type: ignore[override]
        is_away = self._shared.now() < NOON + timedelta(minutes=1)
        kept = [claim.job.name == "away" and is_away for claim, _ in steps]
        written = iter(await super().commit_steps([each for each, keep in zip(steps, kept, strict=True) if not keep]))
        return [CommitAway("its home is away") if keep else next(written) for keep in kept]


def test_a_step_whose_home_is_away_is_tried_again_and_no_other_step_waits_for_it() -> None:
    """C-28: one writer serves a store that passes some steps on to another store."""

    async def story(world: World) -> None:
        begun: list[tuple[str, datetime]] = []

        def task(name: str) -> Any:
            async def body() -> None:
                begun.append((name, world.now()))

            return body

        away = await world.define("away", {"a": task("away a"), "b": task("away b")})
        here = await world.define("here", {"a": task("here a"), "b": task("here b")}, overlap="allow")
        node = world.node()
        await node.start()
        kept = await world.trigger(away)
        await passing(5)
        for number in range(10):
            since = world.now()
            await world.ended(await world.trigger(here, f"{number}"), within="1s")
            assert [name for name, at in begun if at >= since] == ["here a", "here b"]
            await passing(1)
        assert node.engine.writer.waiting == 1
        await passing(60)
        assert await world.status(kept) is OccurrenceStatus.COMPLETED
        assert [name for name, _ in begun if name.startswith("away")] == ["away a", "away b"]
        await node.stop()

    living(story, OneIsAway)


class Mistaken(MemoryStore):
    """Has a mistake of its own: the first three commits of steps raise what no store should raise."""

    mistakes = 0

    async def commit_steps(self, steps: list[tuple[Claim, Step]]) -> Sequence[CommitAnswer]:  # type: ignore[override]
        if self.mistakes < 3:
            self.mistakes += 1
            raise ValueError("a mistake in the store")
        return await super().commit_steps(steps)


def test_steps_are_written_again_after_an_error_that_no_store_should_raise() -> None:
    """An error that was not foreseen loses no step, and no occurrence stands still because of it."""

    async def story(world: World) -> None:
        async def body() -> None: ...

        job = await world.define("job", body)
        node = world.node()
        await node.start()
        ended = await world.ended(await world.trigger(job))
        assert ended.status is OccurrenceStatus.COMPLETED
        assert world.store.mistakes == 3
        assert node.engine.writer.waiting == 0
        await node.stop()

    living(story, Mistaken)
