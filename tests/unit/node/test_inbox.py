"""The inbox: events are handled at once and in order, and a handler that raises keeps none of the others from it."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Thread
from typing import Any, cast

import pytest

from everytick.domain.decisions import Plan
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.steps import OccurrenceEnd
from everytick.node.inbox import Arrived, AttemptOver, BacklogDue, BeatWanted, Inbox, StoreAnswers, StoreAway
from everytick.stores.base import Batch, Claim, Committed, NodeScope, Offer
from everytick.stores.memory import MemoryStore
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import World, living, pause


def test_an_event_is_handled_before_put_returns() -> None:
    handled: list[Any] = []
    inbox = Inbox({BeatWanted: handled.append})
    inbox.put(BeatWanted())
    assert handled == [BeatWanted()]


def test_an_event_that_a_handler_puts_is_handled_after_those_before_it() -> None:
    """No handler runs in the middle of another one."""
    order: list[str] = []

    def first(_: BeatWanted) -> None:
        inbox.put(StoreAnswers())
        inbox.put(BacklogDue())
        order.append("first")

    inbox = Inbox(
        {
            BeatWanted: first,
            StoreAnswers: lambda _: order.append("second"),
            BacklogDue: lambda _: order.append("third"),
        }
    )
    inbox.put(BeatWanted())
    assert order == ["first", "second", "third"]


@pytest.mark.parametrize("failed", [lambda event: None, lambda event: 1 / 0], ids=["told", "raises too"])
def test_a_handler_that_raises_is_logged_and_the_others_are_handled(
    failed: Callable[[Any], None], caplog: pytest.LogCaptureFixture
) -> None:
    handled: list[Any] = []

    def raises(_: BeatWanted) -> None:
        inbox.put(StoreAnswers())
        raise ValueError("boom")

    inbox = Inbox({BeatWanted: raises, StoreAnswers: handled.append}, failed)
    with caplog.at_level(logging.ERROR):
        inbox.put(BeatWanted())
        inbox.put(StoreAnswers())
    assert handled == [StoreAnswers(), StoreAnswers()]
    assert "internal error while BeatWanted() was handled" in caplog.text


def test_a_line_about_an_event_that_cannot_be_handled_is_short(caplog: pytest.LogCaptureFixture) -> None:
    """An event may carry hundreds of plans or claims."""
    Inbox({}).put(StoreAway("away " * 1_000))
    [record] = caplog.records
    assert len(record.getMessage()) < 500


async def test_a_thread_puts_an_event_on_the_loop() -> None:
    seen: list[bool] = []
    done, loop = asyncio.Event(), asyncio.get_running_loop()

    def handle(_: BeatWanted) -> None:
        seen.append(asyncio.get_running_loop() is loop)
        done.set()

    inbox = Inbox({BeatWanted: handle})
    Thread(target=inbox.put_from_thread, args=(loop, BeatWanted())).start()
    await asyncio.wait_for(done.wait(), 30)
    assert seen == [True]


def test_an_event_for_a_loop_that_has_ended_is_dropped() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    Inbox({}).put_from_thread(loop, BeatWanted())


def test_an_occurrence_whose_event_cannot_be_handled_is_settled_and_the_others_go_on(live: Live) -> None:
    """A mistake of ours about one occurrence: the reaper settles it as lost, and it does not hang."""

    async def story(world: World) -> None:
        begun: list[str] = []

        async def body() -> None:
            begun.append("body")

        bad = await world.define("bad", body, on_orphan="fail")
        good = await world.define("good", body)
        node = world.node()
        handlers: Any = node.engine.inbox._handlers
        handle = handlers[AttemptOver]

        def raises(over: AttemptOver) -> None:
            if over.attempt.occurrence.claim.job.name == "bad":
                raise ValueError("boom")
            handle(over)

        handlers[AttemptOver] = raises
        await node.start()
        broken, well = await world.trigger(bad), await world.trigger(good)
        assert (await world.ended(well, "10s")).status is OccurrenceStatus.COMPLETED
        assert (await world.ended(broken, "1m")).status is OccurrenceStatus.FAILED_STALE
        await pause("1m")
        assert not node.engine.named
        assert len(begun) == 2
        await node.stop()

    live(story)


def test_an_occurrence_whose_written_step_cannot_be_handled_is_let_go_and_the_others_go_on(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistake of ours about one step of a commit: its occurrence is let go, and the other steps are handled."""

    async def story(world: World) -> None:
        begun: list[str] = []

        async def body() -> None:
            begun.append("body")

        bad, good = await world.define("bad", body), await world.define("good", body)
        node = world.node()
        ended = node.reporter.ended

        def raises(claim: Claim, end: OccurrenceEnd) -> None:
            if claim.job.name == "bad":
                raise ValueError("boom")
            ended(claim, end)

        monkeypatch.setattr(node.reporter, "ended", raises)
        await node.start()
        broken, well = await world.trigger(bad), await world.trigger(good)
        assert (await world.ended(well, "10s")).status is OccurrenceStatus.COMPLETED
        assert (await world.ended(broken, "1m")).status is OccurrenceStatus.COMPLETED
        await pause("1m")
        assert not node.engine.named
        assert len(begun) == 2
        await node.stop()

    live(story)


def test_claims_that_were_lost_by_a_mistake_come_again_with_a_beat(live: Live) -> None:
    """An event without an occurrence is only logged: what it was about is brought again."""

    async def story(world: World) -> None:
        async def body() -> None:
            return

        job = await world.define("job", body)
        node = world.node()
        handlers: Any = node.engine.inbox._handlers
        handle, seen = handlers[Arrived], list[Arrived]()

        def raises_once(arrived: Arrived) -> None:
            if arrived.claims:
                seen.append(arrived)
                if len(seen) == 1:
                    raise ValueError("boom")
            handle(arrived)

        handlers[Arrived] = raises_once
        await node.start()
        asked = await world.trigger(job)
        assert (await world.ended(asked, "1m")).status is OccurrenceStatus.COMPLETED
        await node.stop()

    live(story)


class OneCannotBegin(MemoryStore):
    """Gives claims of the job `bad` about which nothing can be decided."""

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        claims = await super().claim(scope, limit)
        return [_with_broken_runs(claim) if claim.job.name == "bad" else claim for claim in claims]

    async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
        return await super().commit_plans(batch, plans)


def _with_broken_runs(claim: Claim) -> Claim:
    return replace(claim, life=replace(claim.life, runs=cast("Any", (None,))))


def test_an_occurrence_that_cannot_begin_is_settled_and_keeps_no_slot() -> None:
    """A mistake of ours about one occurrence: those behind it begin, and it does not hang."""

    async def story(world: World) -> None:
        begun: list[str] = []

        async def body() -> None:
            begun.append("body")

        bad, good = await world.define("bad", body, priority=5, on_orphan="fail"), await world.define("good", body)
        node = world.node(slots=1)
        await node.start()
        node.engine.claimer.rest(True)
        broken, well = await world.trigger(bad), await world.trigger(good)
        await pause("1s")
        node.engine.claimer.rest(False)
        assert (await world.ended(well, "10s")).status is OccurrenceStatus.COMPLETED
        assert (await world.ended(broken, "1m")).status is OccurrenceStatus.FAILED_STALE
        await pause("1m")
        assert not node.engine.named
        assert (begun, node.engine.slots.busy) == (["body"], 0)
        await node.stop()

    living(story, OneCannotBegin)
