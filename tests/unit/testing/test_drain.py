"""drain: what is due now runs, in any store, on the test's clock, and nothing waits."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import current_thread, main_thread

import pytest

from everytick import Context, Everytick, ExecutionReport, Retry, every
from everytick.stores.base import Claim, NodeScope
from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock, drain, on_store
from tests.stores.acting import AnyStore

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def application(**settings: int) -> Everytick:
    return Everytick("memory://", name="tested", **settings)  # type: ignore[arg-type]


JOBS = """
version: 1
jobs:
  filed: {schedule: "0 * * * *", command: "false"}
"""


async def test_what_is_due_runs_and_nothing_else(store: AnyStore, clock: ManualClock) -> None:
    """S0-024, S1-034: created, due, run once, and the next instant waits for its time."""
    tick, seen = application(), list[datetime]()

    @tick.job(every("1h"))
    async def hourly(ctx: Context) -> None:
        seen.append(ctx.scheduled_for)

    assert len(await drain(tick, store)) == 0
    clock.advance("1h")
    for _ in range(2):
        (await drain(tick, store)).assert_ran("hourly", NEW_YEAR + HOUR, status="completed")
    clock.advance("59m")
    (await drain(tick, store)).assert_ran("hourly", times=1)
    clock.advance("1m")
    (await drain(tick, store)).assert_ran("hourly", times=2)
    assert seen == [NEW_YEAR + HOUR, NEW_YEAR + 2 * HOUR]


async def test_records_bear_the_time_of_the_clock_to_the_microsecond(store: AnyStore, clock: ManualClock) -> None:
    tick = application()

    @tick.job(every("1h"))
    def hourly() -> None: ...

    await drain(tick, store)
    clock.advance("1h")
    await drain(tick, store)
    clock.set("2026-01-01T02:00:00.000001Z")

    [_, second] = (await drain(tick, store)).ran("hourly")

    assert (second.started_at, second.ended_at) == (clock(), clock())


async def test_plain_functions_run_in_threads_as_on_a_node(store: AnyStore, clock: ManualClock) -> None:
    tick, threads = application(), list[bool]()

    @tick.job(every("1h"))
    def plain() -> None:
        threads.append(current_thread() is main_thread())

    await drain(tick, store)
    clock.advance("1h")
    (await drain(tick, store)).assert_ran("plain", status="completed")

    assert threads == [False]


async def test_a_retry_waits_for_the_clock(store: AnyStore, clock: ManualClock) -> None:
    """S0-081, S0-082: also one that is near enough for a node to keep its slot."""
    tick, tries = application(), list[datetime]()

    @tick.job(every("1h"), retry=Retry(2, "3s", factor=100.0))
    async def flaky(ctx: Context) -> None:
        tries.append(ctx.started_at)
        if ctx.attempt < 3:
            raise OSError("not yet")

    await drain(tick, store)
    clock.advance("1h")
    [waits] = (await drain(tick, store)).of("flaky")
    assert waits.status == "awaiting_retry"
    clock.advance("2s")
    await drain(tick, store)
    assert len(tries) == 1
    clock.advance("1s")
    await drain(tick, store)
    assert len(tries) == 2
    clock.advance("5m")
    done = await drain(tick, store)

    done.assert_ran("flaky", times=1, status="completed")
    assert done.ran("flaky")[0].attempts == {"flaky": 3}
    begun = NEW_YEAR + HOUR
    assert tries == [begun, begun + timedelta(seconds=3), begun + timedelta(seconds=303)]


async def test_what_waits_in_line_is_run_too(store: AnyStore, clock: ManualClock) -> None:
    """S0-062, S0-092, S0-100: five hours missed, one after another, in one call."""
    tick, running = application(slots=2), list[str]()

    @tick.job(every("1h"), overlap="queue", recovery="execute_all")
    async def backlog(ctx: Context) -> None:
        running.append("begin")
        running.append("end")

    await drain(tick, store)
    clock.advance("5h")

    (await drain(tick, store)).assert_ran("backlog", *(NEW_YEAR + number * HOUR for number in range(1, 6)))
    assert running == ["begin", "end"] * 5


async def test_more_jobs_than_slots_all_run(store: AnyStore, clock: ManualClock) -> None:
    """S0-104."""
    tick = application(slots=1)
    for number in range(4):

        @tick.job(every("1h"), name=f"job-{number}")
        async def run() -> None: ...

    await drain(tick, store)
    clock.advance("1h")
    done = await drain(tick, store)

    for number in range(4):
        done.assert_ran(f"job-{number}", times=1)


async def test_late_ones_take_the_slots_that_live_ones_take(store: AnyStore, clock: ManualClock) -> None:
    """S0-100: five late ones that may overlap, and one on time, are never more at once than there are slots."""
    tick, at_once = application(slots=2), [0]

    async def work() -> None:
        at_once.append(at_once[-1] + 1)
        for _ in range(5):
            await asyncio.sleep(0)
        at_once.append(at_once[-1] - 1)

    tick.job(every("1h"), name="late", overlap="allow", recovery="execute_all")(work)
    tick.job(every("5h"), name="live")(work)
    await drain(tick, store)
    clock.advance("5h")
    done = await drain(tick, store)

    done.assert_ran("late", times=5)
    done.assert_ran("live", times=1)
    assert max(at_once) in (1, 2)


async def test_jobs_of_one_schedule_run_side_by_side(store: AnyStore, clock: ManualClock) -> None:
    """S0-007: each of two jobs of two tasks ends only if the other one has begun, whichever comes first."""
    tick, begun = application(), {name: asyncio.Event() for name in ("one", "other")}
    for name, peer in (("one", "other"), ("other", "one")):
        definition = tick.define(name, every("1h"))

        @definition.task(name="meet")
        async def meet(name: str = name, peer: str = peer) -> None:
            begun[name].set()
            await begun[peer].wait()

        @definition.task(name="part")
        async def part() -> None: ...

    await drain(tick, store)
    clock.advance("1h")
    async with asyncio.timeout(60):
        done = await drain(tick, store)

    for name in begun:
        done.assert_ran(name, times=1, status="completed")


async def test_what_a_hook_asks_for_is_run_too(store: AnyStore, clock: ManualClock) -> None:
    """S0-025: the report comes, and what it leads to belongs to the same call."""
    tick, reports = application(), list[str]()
    first = tick.define("first", every("1h"))

    @first.task
    async def work() -> None:
        raise ValueError("broken")

    @first.on_complete
    async def report(report: ExecutionReport) -> None:
        reports.append(str(report.outcome))
        await tick.trigger("second")

    @tick.job(every("30d"))
    async def second() -> None: ...

    await drain(tick, store)
    clock.advance("1h")
    done = await drain(tick, store)

    done.assert_failed("first", error="broken")
    done.assert_ran("second", times=1, status="completed")
    assert reports == ["failed"]


async def test_a_task_may_wait_for_another_job(store: AnyStore, clock: ManualClock) -> None:
    tick = application()

    @tick.job(every("1h"))
    async def outer() -> str:
        return str((await (await tick.trigger("inner")).wait()).status)

    @tick.job(every("30d"))
    async def inner() -> None: ...

    await drain(tick, store)
    clock.advance("1h")
    done = await drain(tick, store)

    done.assert_ran("outer", times=1, status="completed")
    done.assert_ran("inner", times=1, status="completed")


async def test_others_can_be_called_in_the_place_of_tasks(store: AnyStore, clock: ManualClock) -> None:
    tick, called = application(), list[str]()
    backup = tick.define("backup", every("1h"))
    backup.command("dump", ["false"])

    @backup.task
    def tidy() -> None:
        called.append("tidy")

    await drain(tick, store)
    clock.advance("1h")
    done = await drain(tick, store, instead={"backup.dump": lambda: called.append("dump")})

    done.assert_ran("backup", times=1, status="completed")
    assert called == ["dump", "tidy"]


async def test_jobs_of_other_applications_are_run_and_can_be_replaced(store: AnyStore, clock: ManualClock) -> None:
    """Jobs of an API, or of another application: they are in the store, and a node would run them."""
    other = Everytick(store, name="other")
    other.define("remote", every("1h")).command("send", ["true"])
    other.define("away", every("1h")).command("send", ["false"])
    await other.sync()
    called = list[str]()
    await drain(application(), store)
    clock.advance("1h")
    done = await drain(application(), store, instead={"away.send": lambda: called.append("away")})
    done.assert_ran("remote", times=1, status="completed")
    done.assert_ran("away", times=1, status="completed")
    assert called == ["away"]


class ClaimsOverlap(MemoryStore):
    """A claim of another task than the test's holds its occurrences until three claims of the test's were answered.

    So it is with a server: a claim that has not committed hides its rows from the next claim and from history.
    """

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.owner, self.answered, self.is_held = asyncio.current_task(), 0, False
        self.three_were_answered = asyncio.Event()

    async def claim(self, scope: NodeScope, limit: int) -> list[Claim]:
        if asyncio.current_task() is not self.owner:
            self.is_held = True
            await self.three_were_answered.wait()
            self.is_held = False
            return await super().claim(scope, limit)
        await asyncio.sleep(0)
        self.answered += 1
        if self.answered == 3:
            self.three_were_answered.set()
        return [] if self.is_held else await super().claim(scope, limit)


async def test_an_occurrence_whose_claim_is_under_way_is_waited_for(clock: ManualClock) -> None:
    """On a slow server the claim of a `drain` committed after it had looked for what runs."""
    tick, store = application(), ClaimsOverlap(clock)

    @tick.job(every("1h"), on_create="immediately")
    async def now() -> None: ...

    (await drain(tick, store)).assert_ran("now", times=1, status="completed")


async def test_the_folder_of_jobs_is_brought_into_the_store_and_its_mistakes_are_told(
    store: AnyStore, clock: ManualClock, tmp_path: Path
) -> None:
    (tmp_path / "jobs.yaml").write_text(JOBS)
    tick = Everytick(store, name="tested", jobs=tmp_path)
    await drain(tick)
    clock.advance("1h")
    (await drain(tick, instead={"filed": lambda: None})).assert_ran("filed", times=1, status="completed")
    (tmp_path / "jobs.yaml").write_text(JOBS.replace("schedule", "shedule"))
    with pytest.raises(ValueError, match=r"(?s)the folder of jobs has mistakes:\n.*shedule"):
        await drain(Everytick(store, name="tested", jobs=tmp_path))


async def test_without_a_store_it_is_the_applications_own(clock: ManualClock, everytick_store: AnyStore) -> None:
    tick = Everytick(everytick_store, name="tested")

    @tick.job(every("1h"), on_create="immediately")
    async def now() -> None: ...

    (await drain(tick)).assert_ran("now", times=1)


async def test_a_block_on_a_store_leaves_the_application_as_it_was(store: AnyStore, clock: ManualClock) -> None:
    tick = application()

    @tick.job(every("1h"))
    async def hourly() -> None: ...

    with on_store(tick, store):
        await tick.sync()
        assert [record.job.name for record in await store.list()] == ["hourly"]
        assert await tick.next_runs("hourly", 1) == [NEW_YEAR + HOUR]
    assert await tick.jobs() == []
    await tick.close()


async def test_a_running_application_keeps_its_store(everytick_store: AnyStore) -> None:
    tick = application()

    @tick.job(every("1h"))
    async def hourly() -> None: ...

    async with tick:
        with pytest.raises(RuntimeError, match="runs a node on its own store: stop it before"):
            await drain(tick, everytick_store)
