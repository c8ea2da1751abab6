"""Acting as a person: whatever operation is carried out below `acting_as` leaves its deed."""

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from everytick import Conflict, Everytick, NeedsApproval, Rollout, every
from everytick.domain.deeds import Deed, DeedFilter
from everytick.domain.people import CameBy, Doer
from everytick.sources.job_files import FileJob
from everytick.sources.yaml_reader import Position
from everytick.stores.addresses import AnyStore
from everytick.stores.memory import MemoryStore
from tests.stores.acting import plan_once, run_one
from tests.stores.clock import START, ManualClock

ANN = Doer("ann", CameBy.SESSION, "10.0.0.9")
NEXT = START + timedelta(hours=1)

Act = Callable[[Everytick, AnyStore], Awaitable[Any]]


async def _ended(tick: Everytick, store: AnyStore) -> str:
    handle = await tick.trigger("report", by="code")
    await plan_once(store)
    await run_one(store)
    return handle.id


async def _replay(tick: Everytick, store: AnyStore) -> Any:
    ended = await _ended(tick, store)
    return lambda: tick.replay(ended)


async def _cancel(tick: Everytick, store: AnyStore) -> Any:
    handle = await tick.trigger("report", by="code")
    return lambda: tick.cancel(handle.id)


async def _resume(tick: Everytick, store: AnyStore) -> Any:
    await tick.pause("report", by="code")
    return lambda: tick.resume("report")


async def _undo(tick: Everytick, store: AnyStore) -> Any:
    await tick.skip("report", NEXT, by="code")
    return lambda: tick.undo("report", NEXT)


async def _rollback(tick: Everytick, store: AnyStore) -> Any:
    await tick.update("report", priority=3, by="code")
    return lambda: tick.rollback("report", 1)


async def _enable(tick: Everytick, store: AnyStore) -> Any:
    await tick.disable("report", by="code")
    return lambda: tick.enable("report")


async def _purge(tick: Everytick, store: AnyStore) -> Any:
    await tick.remove("report", by="code")
    return lambda: tick.remove("report", purge=True)


async def _remove_limit(tick: Everytick, store: AnyStore) -> Any:
    await tick.set_limit("all", most=3, by="code")
    return lambda: tick.remove_limit("all")


async def _release(tick: Everytick, store: AnyStore) -> Any:
    await tick.brake(by="code")
    return lambda: tick.release()


async def _sync(tick: Everytick, store: AnyStore) -> Any:
    tick.job(every("1h"), name="new")(lambda: None)
    return tick.sync


async def _reject(tick: Everytick, store: AnyStore) -> Any:
    await tick.update("report", protected="two_people", by="code")
    with pytest.raises(NeedsApproval) as needed:
        await tick.disable("report", confirmed=True, by="code")
    return lambda: tick.reject(needed.value.proposal)


async def _end_rollout(tick: Everytick, store: AnyStore) -> Any:
    await tick.update("report", priority=7, policy=Rollout(share=0.5), by="code")
    return lambda: tick.end_rollout("report", keep=False)


async def _apply_spread(tick: Everytick, store: AnyStore) -> Any:
    schedules = {"report": "every 1h; spread=15m; offset=5m"}
    shown = await tick._spread_preview(schedules)
    return lambda: tick.apply_spread(schedules, shown.hash)


async def _apply_files(tick: Everytick, store: AnyStore) -> Any:
    new = tick.define("new", every("1h"), owner="files").command("work", "true").job
    return lambda: tick.apply_files({"new": FileJob(new, False, "jobs.yaml", Position(3, 3))}, owner="files")


async def _backfill(tick: Everytick, store: AnyStore) -> Any:
    return lambda: tick.backfill("report", START - timedelta(hours=3), START)


async def _rewind(tick: Everytick, store: AnyStore) -> Any:
    """Let a plan be made ten hours ahead, then set the clock back."""
    assert isinstance(store, MemoryStore)
    clock: ManualClock = store._shared.clock  # type: ignore[assignment]
    clock.move(hours=10)
    await plan_once(store)
    clock.move(hours=-10)
    return lambda: tick.rewind("report")


def _at_once(act: Callable[[Everytick], Awaitable[Any]]) -> Any:
    async def prepare(tick: Everytick, store: AnyStore) -> Any:
        return lambda: act(tick)

    return prepare


# What is prepared is done by code; what that returns is done by the person.
OPERATIONS: dict[str, Any] = {
    "trigger": _at_once(lambda tick: tick.trigger("report")),
    "replay": _replay,
    "cancel": _cancel,
    "backfill": _backfill,
    "pause": _at_once(lambda tick: tick.pause("report", reason="inventory")),
    "resume": _resume,
    "reschedule": _at_once(lambda tick: tick.reschedule("report", NEXT + timedelta(minutes=5))),
    "rewind": _rewind,
    "skip": _at_once(lambda tick: tick.skip("report", NEXT)),
    "move": _at_once(lambda tick: tick.move("report", NEXT, NEXT + timedelta(minutes=5))),
    "amend": _at_once(lambda tick: tick.amend("report", NEXT, priority=5)),
    "add": _at_once(lambda tick: tick.add("report", NEXT + timedelta(minutes=7))),
    "undo": _undo,
    "apply": _at_once(lambda tick: tick.apply([tick.define("new", every("1h"), owner="api").command("work", "true")])),
    "apply_files": _apply_files,
    "sync": _sync,
    "update": _at_once(lambda tick: tick.update("report", priority=5)),
    "rollback": _rollback,
    "end_rollout": _end_rollout,
    "apply_spread": _apply_spread,
    "rename": _at_once(lambda tick: tick.rename("report", "bulletin")),
    "remove": _at_once(lambda tick: tick.remove("report")),
    "enable": _enable,
    "disable": _at_once(lambda tick: tick.disable("report")),
    "reject": _reject,
    "set_limit": _at_once(lambda tick: tick.set_limit("all", most=3)),
    "remove_limit": _remove_limit,
    "brake": _at_once(lambda tick: tick.brake()),
    "release": _release,
}
MANY = {"approve": "a deed for each change, see below", "find_backfill": "only finds one"}


async def _deeds(store: AnyStore) -> list[Deed]:
    return list((await store.access.deeds(DeedFilter())).deeds)


@pytest.fixture
async def made(clock: ManualClock) -> tuple[Everytick, MemoryStore]:
    """An application whose one job is the API's own, so that every operation may change it."""
    store = MemoryStore(clock)
    await store.open()
    tick = Everytick(store, name="shop")
    tick.define("report", every("1h", start="2026-01-01T00:00:00Z"), owner="api").command("work", "true")
    await tick.sync()
    return tick, store


def test_every_operation_is_in_the_table() -> None:
    """A new operation cannot be forgotten here: each of them says who asks."""
    found = {
        name
        for name, operation in inspect.getmembers(Everytick, inspect.iscoroutinefunction)
        if not name.startswith("_")
        and (by := inspect.signature(operation).parameters.get("by")) is not None
        and by.default is None
    }

    assert found == set(OPERATIONS) | set(MANY)


@pytest.mark.parametrize("name", OPERATIONS)
async def test_an_operation_leaves_exactly_one_deed(made: tuple[Everytick, MemoryStore], name: str) -> None:
    """S17: who, when, what and from where."""
    tick, store = made
    act = await OPERATIONS[name](tick, store)
    with tick.acting_as(ANN):
        await act()

    [deed] = await _deeds(store)
    assert (deed.doer, deed.at) == (ANN, START)
    assert deed.did
    assert deed.subject


async def test_a_purge_leaves_one_deed(made: tuple[Everytick, MemoryStore]) -> None:
    tick, store = made
    act = await _purge(tick, store)
    with tick.acting_as(ANN):
        await act()

    assert [str(deed) for deed in await _deeds(store)] == ["ann purged job report and all of its history"]


async def test_an_approval_tells_each_change_that_it_carries_out(made: tuple[Everytick, MemoryStore]) -> None:
    tick, store = made
    await tick.update("report", protected="two_people")
    with pytest.raises(NeedsApproval) as needed:
        await tick.disable("report", confirmed=True, by="bob")
    with tick.acting_as(ANN):
        await tick.approve(needed.value.proposal)

    told = {str(deed) for deed in await _deeds(store)}
    assert "ann edited job report to version 3" in told


async def test_the_name_stands_as_by_where_none_is_given(tick: Everytick, store: AnyStore) -> None:
    tick.job("0 * * * *", name="report")(lambda: None)
    await tick.sync()
    with tick.acting_as(ANN):
        await tick.pause("report")

    pause = (await tick.job("report")).pause
    assert pause is not None
    assert pause.by == "ann"
    assert [str(deed) for deed in await _deeds(store)] == ["ann paused job report"]


async def test_code_leaves_no_deed_and_a_person_none_for_what_code_stores(tick: Everytick, store: AnyStore) -> None:
    """The job is stored by the first trigger: its definition is the code's, the trigger the person's."""
    tick.job("0 * * * *", name="report")(lambda: None)
    with tick.acting_as(ANN):
        await tick.trigger("report")
    await tick.pause("report")

    assert [str(deed) for deed in await _deeds(store)] == ["ann triggered job report"]


async def test_a_person_is_known_on_the_loop_of_the_store_too() -> None:
    """A page may be served on another loop than that of the node."""
    tick = Everytick("memory://", name="shop")
    tick.job(every("1h"), name="report")(lambda: None)
    await tick.sync()

    def elsewhere() -> None:
        async def act() -> None:
            with tick.acting_as(ANN):
                await tick.pause("report")

        asyncio.run(act())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    await asyncio.to_thread(thread.join)

    store = await tick._opened()
    assert [str(deed) for deed in await _deeds(store)] == ["ann paused job report"]
    await tick.close()


async def test_a_deed_is_not_written_in_a_transaction_of_another(made: tuple[Everytick, MemoryStore]) -> None:
    """It could be rolled back without the store's knowing."""
    tick, _ = made
    with tick.acting_as(ANN), pytest.raises(Conflict, match="a transaction of your own"):
        await tick.trigger("report", within=object())
