"""What a task returned is told with its occurrence, by every store alike."""

from everytick.domain.outcome import Failed, Succeeded
from everytick.domain.payload import payload
from tests.stores.acting import AnyStore, job, plan_once, put, run_one
from tests.stores.clock import ManualClock


async def test_a_result_stands_with_the_run_of_its_task(store: AnyStore, clock: ManualClock) -> None:
    """A8."""
    await put(store, job("counts"))
    clock.move(hours=1)
    await plan_once(store)
    claim = await run_one(store, Succeeded(payload({"answer": [42, None, "é"]})))

    whole = await store.whole(claim.occurrence.id)

    assert [(run.task, run.result) for run in whole.runs] == [("main", {"answer": [42, None, "é"]})]
    assert whole.results == {"main": {"answer": [42, None, "é"]}}
    assert whole.result == {"answer": [42, None, "é"]}


async def test_a_task_that_failed_has_no_result(store: AnyStore, clock: ManualClock) -> None:
    """A8: absent from `results`, where a task that returned nothing is None."""
    await put(store, job("quiet"))
    for outcome in (Failed("boom"), Succeeded()):
        clock.move(hours=1)
        await plan_once(store)
        claim = await run_one(store, outcome)
        whole = await store.whole(claim.occurrence.id)
        assert whole.results == ({} if isinstance(outcome, Failed) else {"main": None})
        assert whole.result is None
