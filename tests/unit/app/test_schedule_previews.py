"""What a request about a schedule would mean is told before it is made, and is what comes to pass."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import pytest

from everytick import Everytick, every
from everytick.errors import InvalidInstant, NotFound
from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock

NOON = datetime.fromisoformat("2026-05-04T12:00:00+00:00")


def at(hours: float) -> datetime:
    return NOON + timedelta(hours=hours)


@pytest.fixture
async def tick() -> Everytick:
    store = MemoryStore(clock=ManualClock(NOON + timedelta(minutes=1)))
    made = Everytick(store, name="shop", confirm_above=10)

    @made.job(every("1h"), recovery="execute_all")
    def hourly() -> None: ...

    await made.sync()
    return made


Told = tuple[Callable[[Everytick], Awaitable[object]], Callable[[Everytick], Awaitable[object]]]

REQUESTS: dict[str, Told] = {
    "pause": (lambda t: t.preview_pause("hourly", until=at(3.5)), lambda t: t.pause("hourly", until=at(3.5))),
    "skip": (lambda t: t.preview_skip("hourly", at(2)), lambda t: t.skip("hourly", at(2))),
    "move": (lambda t: t.preview_move("hourly", at(2), at(2.5)), lambda t: t.move("hourly", at(2), at(2.5))),
    "reschedule": (lambda t: t.preview_reschedule("hourly", at(4.5)), lambda t: t.reschedule("hourly", at(4.5))),
}


@pytest.mark.parametrize("request_name", REQUESTS)
async def test_a_preview_names_the_runs_that_the_request_changes(tick: Everytick, request_name: str) -> None:
    preview, do = REQUESTS[request_name]
    before = set(await tick.next_runs("hourly", 20))
    found = (await preview(tick)).runs  # type: ignore[attr-defined]
    assert set(await tick.next_runs("hourly", 20)) == before

    await do(tick)
    after = set(await tick.next_runs("hourly", 20))
    end = at(12)
    assert {each for each in found.added if each < end} == {each for each in after - before if each < end}
    assert {each for each in found.removed if each < end} == {each for each in before - after if each < end}
    assert found.removed


async def test_a_preview_of_an_undo_brings_back_what_was_skipped_moved_and_set(tick: Everytick) -> None:
    await tick.skip("hourly", at(2))
    assert (await tick.preview_undo("hourly", at(2))).runs.added == (at(2),)
    await tick.undo("hourly", at(2))

    await tick.reschedule("hourly", at(4.5))
    found = (await tick.preview_undo("hourly", at(4.5))).runs
    assert (found.removed, found.added) == ((at(4.5),), (at(1), at(2), at(3), at(4)))


async def test_a_preview_of_a_resume_counts_what_is_caught_up(tick: Everytick) -> None:
    await tick.pause("hourly", missed="catch_up")
    store = await tick._opened()
    assert isinstance(store, MemoryStore)
    clock = store._shared.clock
    assert isinstance(clock, ManualClock)
    clock.advance("5h")

    assert (await tick.preview_resume("hourly")).caught_up == 5
    assert (await tick.preview_resume("hourly", missed="last")).caught_up == 1
    assert (await tick.preview_resume("hourly", missed="skip")).caught_up == 0
    assert (await tick.job("hourly")).pause is not None


async def test_a_preview_refuses_what_the_request_refuses(tick: Everytick) -> None:
    with pytest.raises(InvalidInstant, match="must be later than the store's time"):
        await tick.preview_pause("hourly", until=at(-1))
    with pytest.raises(InvalidInstant, match="is not named by the schedule"):
        await tick.preview_skip("hourly", at(2.25))
    with pytest.raises(NotFound):
        await tick.preview_resume("nothing")
