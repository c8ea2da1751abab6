"""The jobs that send notices, through the public API: made with the first notice, left alone by syncs, removed with
the job that they tell of."""

import pytest

from everytick import Everytick, NotFound, every, ping, webhook
from everytick.domain.changes import Put
from everytick.domain.facts import Trigger
from everytick.domain.notices import OWNER
from everytick.stores.addresses import AnyStore
from everytick.testing import drain
from tests.stores.clock import ManualClock

HOOK = "https://example.org/hook"


def _application(store: AnyStore, outcomes: list[bool]) -> Everytick:
    tick = Everytick(store, name="shop")

    @tick.job(every("1h"), on_failure=webhook(HOOK), on_recovery=ping(HOOK))
    def nightly() -> None:
        if not outcomes.pop(0):
            raise ValueError("boom")

    return tick


async def _senders(tick: Everytick) -> list[str]:
    return [each.job.name for each in await tick.jobs() if each.job.owner == OWNER]


@pytest.fixture
async def told(store: AnyStore, clock: ManualClock) -> Everytick:
    """An application whose job has failed twice and then run well."""
    tick = _application(store, [False, False, True])
    await drain(tick)
    for _ in range(3):
        clock.move(hours=1)
        await drain(tick)
    return tick


async def test_the_kit_asks_for_notices_and_sends_none(told: Everytick) -> None:
    """A18: each is a run with its event as payload; the addresses are never asked."""
    [failed] = (await told.history("nightly.on_failure")).occurrences
    [recovered] = (await told.history("nightly.on_recovery")).occurrences

    assert (failed.status, failed.payload["type"]) == ("completed", "io.everytick.occurrence.failed.v1")
    assert (recovered.status, recovered.payload["type"]) == ("completed", "io.everytick.occurrence.recovered.v1")


async def test_no_job_is_made_for_notices_that_nobody_needed(store: AnyStore, clock: ManualClock) -> None:
    tick = _application(store, [True])
    await drain(tick)
    clock.move(hours=1)
    await drain(tick)

    assert await _senders(tick) == []


async def test_a_sync_leaves_them_alone(told: Everytick) -> None:
    """A18: they belong to no code, so that no start takes them for a job that was deleted there."""
    assert [each.kind for each in await told.sync()] == ["unchanged"]

    assert await _senders(told) == ["nightly.on_failure", "nightly.on_recovery"]


async def test_they_are_removed_with_a_job_that_the_code_no_longer_names(
    told: Everytick, store: AnyStore, clock: ManualClock
) -> None:
    """A18: unless a notice is still to be sent, which is not lost."""
    job = next(each.job for each in await told.jobs() if each.job.name == "nightly.on_recovery")
    await store.request(job.id, Trigger("late"))
    clock.move(minutes=2)

    await Everytick(store, name="shop").sync()

    assert await _senders(told) == ["nightly.on_recovery"]


async def test_they_are_removed_and_purged_with_their_job(told: Everytick) -> None:
    await told.remove("nightly")
    assert await told.jobs() == []

    await told.remove("nightly", purge=True)
    assert await told.jobs(removed=True) == []
    with pytest.raises(NotFound):
        await told.history("nightly.on_failure")


async def test_they_need_what_their_job_needs(store: AnyStore, clock: ManualClock) -> None:
    """A18: the node that runs the job has the secrets; its queue is that of the job."""
    tick = Everytick(store, name="shop", queues=["night"])

    @tick.job(every("1h"), on_failure=webhook(HOOK), queue="night")
    def nightly() -> None:
        raise ValueError("boom")

    await drain(tick)
    clock.move(hours=1)
    await drain(tick)
    by_name = {each.job.name: each for each in await tick.jobs()}

    assert by_name["nightly"].needs == by_name["nightly.on_failure"].needs == "code:shop\nqueue:night"
    assert by_name["nightly.on_failure"].next_run is None


async def test_they_read_back_equal_and_storing_them_again_changes_nothing(told: Everytick, store: AnyStore) -> None:
    before = {each.job.name: each.job.version for each in await told.jobs()}
    await store.apply([Put(each.job) for each in await told.jobs() if each.job.owner == OWNER])

    assert {each.job.name: each.job.version for each in await told.jobs()} == before


async def test_their_status_is_that_of_a_job_without_an_instant_to_come(told: Everytick) -> None:
    found = await told.status("nightly.on_failure")

    assert (found.next_run, found.is_running) == (None, False)
