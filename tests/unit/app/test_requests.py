"""What is asked for, from the call to the plan: seen, canceled, and asked for again by its key."""

import asyncio

import pytest

from everytick import Context
from everytick.app import Everytick
from everytick.errors import InvalidPayload, InvalidPolicies, OccurrenceExists
from everytick.stores.addresses import AnyStore
from tests.stores.acting import FAILED, plan_once, run_one, statuses
from tests.stores.clock import ManualClock


@pytest.fixture
async def hourly(tick: Everytick) -> str:
    tick.job("0 * * * *", name="hourly")(lambda: None)
    await tick.sync()
    return "hourly"


async def test_what_no_node_has_planned_is_seen_and_canceled(tick: Everytick, store: AnyStore, hourly: str) -> None:
    """No node is up; the handle of a canceled request comes to its end."""
    handle = await tick.trigger(hourly, reason="by mistake", by="ada")
    waiting = asyncio.create_task(handle.wait(timeout="60s"))
    seen = (await tick.occurrence(handle.id)).occurrence
    assert (seen.status, seen.reason) == ("pending", "asked for, not planned yet, by ada, by mistake")
    assert await tick.cancel(handle.id, reason="never mind", by="bob")
    ended = await waiting
    assert (ended.status, ended.error) == ("canceled", "canceled by bob: never mind")
    await plan_once(store)
    assert await statuses(store) == ["canceled"]
    assert not await tick.cancel(handle.id)


async def test_a_replay_that_no_node_has_planned_is_canceled(tick: Everytick, store: AnyStore, hourly: str) -> None:
    first = await tick.trigger(hourly)
    await plan_once(store)
    await run_one(store)
    handle = await tick.replay(first.id, reason="again")
    assert (await tick.occurrence(handle.id)).occurrence.replay_of == first.id
    assert await tick.cancel(handle.id)
    assert (await handle.wait(timeout="60s")).status == "canceled"


async def test_a_key_can_be_used_again_after_a_failure(tick: Everytick, store: AnyStore, hourly: str) -> None:
    """S1-001, W7."""
    first = await tick.trigger(hourly, key="f1", payload=1)
    with pytest.raises(OccurrenceExists):
        await tick.trigger(hourly, key="f1", payload=2)
    await plan_once(store)
    await run_one(store, FAILED)
    second = await tick.trigger(hourly, key="f1", payload=2)
    assert second.id != first.id
    await plan_once(store)
    await run_one(store)
    assert (await tick.trigger(hourly, key="f1", payload=2)).id == second.id
    with pytest.raises(OccurrenceExists):
        await tick.trigger(hourly, key="f1", payload=1)
    assert sorted(await statuses(store)) == ["completed", "failed"]


async def test_a_request_canceled_while_its_job_waits_lets_the_others_run(
    tick: Everytick, store: AnyStore, clock: ManualClock, hourly: str
) -> None:
    first, second = await tick.trigger(hourly), await tick.trigger(hourly)
    await tick.cancel(first.id)
    clock.move(seconds=1)
    await plan_once(store)
    assert (await run_one(store)).occurrence.id == second.id


async def test_a_misspelt_key_of_a_payload_is_refused(tick: Everytick) -> None:
    """A20: it was ignored, and the job ran with its default."""

    @tick.job("0 0 1 1 *")
    def pay(customer: str = "x") -> None: ...

    @tick.job("0 0 1 1 *")
    def reads_all(ctx: Context) -> None: ...

    @tick.job("0 0 1 1 *")
    def takes_all(**rest: object) -> None: ...

    both = tick.define("both", "0 0 1 1 *")

    @both.task
    def first(a: int = 1) -> None: ...

    @both.task
    def second(b: int = 1) -> None: ...

    with pytest.raises(
        InvalidPayload, match=r"'custmer', which is no parameter of its tasks \(did you mean 'customer'\?"
    ):
        await tick.trigger("pay", payload={"custmer": "y"})
    await tick.trigger("pay", payload={"customer": "y"})
    await tick.trigger("reads_all", payload={"whatever": 1})
    await tick.trigger("takes_all", payload={"whatever": 1})
    await tick.trigger("both", payload={"a": 1, "b": 2})


async def test_a_payload_is_judged_by_the_stored_definition_where_the_functions_are_not_at_hand(
    tick: Everytick, store: AnyStore
) -> None:
    """A20: `everytick trigger --store` refuses what the application itself would refuse."""

    @tick.job("0 0 1 1 *")
    def pay(customer: str = "x", cents: int = 1, rate: float | None = None, how: object = None) -> None: ...

    @tick.job("0 0 1 1 *")
    def reads_all(ctx: Context, pages: "list[int] | None" = None) -> None: ...

    await tick.sync()
    elsewhere = Everytick(store, name="elsewhere")
    for app in (tick, elsewhere):
        for payload, said in (
            ({"custmer": "y"}, r"'custmer', which is no parameter of its tasks \(did you mean 'customer'"),
            ({"cents": "3"}, "has 'cents': '3', and it must be a whole number"),
            ({"cents": True}, "has 'cents': True, and it must be a whole number"),
            ([1], r"is a list, and an object fills the parameters by name: \{\"cents\": …\}"),
            ([], "is a list, and an object fills the parameters by name"),
            ({"rate": []}, r"has 'rate': \[\], and it must be null or a number"),
        ):
            with pytest.raises(InvalidPayload, match=said):
                await app.trigger("pay", payload=payload)
        with pytest.raises(InvalidPayload, match="must be null or a list"):
            await app.trigger("reads_all", payload={"pages": "all"})
        await app.trigger("pay", payload={"cents": 3, "rate": 2, "how": [1], "customer": ""})
        await app.trigger("pay", payload={"rate": None, "cents": 3.0})
        await app.trigger("reads_all", payload={"pages": [1], "whatever": {}})


def test_a_trigger_that_is_not_awaited_is_warned_of_by_its_name() -> None:
    """A20."""
    tick = Everytick("memory://")

    @tick.job("0 0 1 1 *")
    def pay() -> None: ...

    with pytest.warns(RuntimeWarning, match=r"coroutine 'pay\.trigger' was never awaited"):
        pay.trigger()  # type: ignore[unused-coroutine]


def test_a_method_is_no_job() -> None:
    """B19: a payload cannot hold an object."""
    tick = Everytick("memory://")

    class Shop:
        def close(self) -> None: ...

    with pytest.raises(
        InvalidPolicies, match="is a method, and a node has no object to call it on; instead: a function"
    ):
        tick.job("0 0 1 1 *")(Shop.close)
    tick.job("0 0 1 1 *")(Shop().close)
