"""What is written when: an end is written at once, also while thousands wait to start."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from everytick.domain.policies import Overlap
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import Step
from everytick.stores.base import Claim, CommitAnswer
from everytick.stores.memory import MemoryStore
from tests.unit.node.worlds import World, living

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
            (self.others if step.end is None else self.ends).append(self._now() - ended_at)
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
