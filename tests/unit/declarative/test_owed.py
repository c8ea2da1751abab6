"""A minute that is owed to a task, and a newer instance that takes the task out of the schedule meanwhile."""

from datetime import timedelta
from typing import Any

from everytick.declarative import DeclarativeScheduler
from everytick.declarative.jobs import unscheduled
from everytick.domain.changes import Put
from everytick.domain.facts import Fact, Trigger
from everytick.stores.base import Receipt
from everytick.stores.memory import MemoryStore
from everytick.testing.virtual import VirtualLoop, run_virtually
from tests.unit.declarative.kit import NOON, nothing


class Overtaken(MemoryStore):
    """A store in which a newer instance drops a task just before a run of it is asked for."""

    dropped = 0

    async def request(self, subject: str, fact: Fact, within: Any = None) -> Receipt:
        if isinstance(fact, Trigger):
            self.dropped += 1
            await self.apply([Put(unscheduled((await self.get([subject]))[subject].job))])
        return await super().request(subject, fact, within)


def test_a_task_that_a_newer_instance_dropped_is_owed_nothing() -> None:
    """C-43, S2-019: the initialization does not fail of it, and nothing is run."""
    calls: list[str] = []

    async def callback() -> None:
        calls.append("called")

    async def story(loop: VirtualLoop) -> None:
        store = Overtaken(lambda: NOON + timedelta(seconds=10 + loop.time()))
        older = DeclarativeScheduler(store)
        await older.initialize([("a", "0 0 1 1 *", nothing, "5m")])
        await older.stop()
        newer = DeclarativeScheduler(store)
        await newer.initialize([("a", "* * * * *", callback, "5m")])
        assert newer.state == "Running"
        await newer.stop()
        assert store.dropped == 1

    run_virtually(story)
    assert not calls
