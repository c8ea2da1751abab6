"""When an engine looks: after a ring it plans and begins first, and asks the store about anything else afterwards."""

from collections.abc import Sequence

from everytick.domain.decisions import Plan
from everytick.stores.base import Ahead, Batch, Claim, Committed, NodeScope, Offer
from everytick.stores.memory import MemoryStore
from tests.unit.node.worlds import World, living, passing, pause


class Noted(MemoryStore):
    """Notes which verbs are asked, and takes a millisecond for an answer."""

    verbs: list[str]

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        self.verbs.append("commit_plans")
        await passing(0.001)
        return await super().commit_plans(batch, plans, offer)

    async def ahead(self, scope: NodeScope) -> Ahead:
        self.verbs.append("ahead")
        await passing(0.001)
        return await super().ahead(scope)

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        self.verbs.append("claim")
        await passing(0.001)
        return await super().claim(scope, limit)


def test_after_a_ring_a_body_begins_before_the_store_is_asked_anything_else() -> None:
    """S4-003: what was asked for is planned, claimed along and begun before `claim` and `ahead` are asked."""

    async def story(world: World) -> None:
        async def body() -> None:
            world.store.verbs.append("body")

        world.store.verbs = []
        job = await world.define("asked", body)
        node = world.node()
        await node.start()
        await pause("10s")
        world.store.verbs.clear()
        await world.trigger(job)
        await pause("1s")
        await node.stop()
        assert world.store.verbs[:2] == ["commit_plans", "body"]
        assert set(world.store.verbs[2:4]) == {"claim", "ahead"}

    living(story, Noted)
