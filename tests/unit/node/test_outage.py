"""A store that is away, and jobs that do not wait for it: fired by the node, and written down afterwards."""

import asyncio
import logging
from datetime import datetime, timedelta
from inspect import iscoroutinefunction
from typing import Any

import pytest

from everytick.domain.facts import Cancel, Pause, Resume
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.texts import FALLING_BACK
from everytick.errors import StoreUnavailable
from everytick.node import outage as outages
from everytick.node.events import Event, Happening
from everytick.runners.context import Context
from everytick.schedules.interval import every
from everytick.schedules.once import after_completion, once
from everytick.stores.memory import local
from tests.unit.node.conftest import Live
from tests.unit.node.worlds import NOON, World, passing, pause

MINUTELY = every("1m", start=NOON)
LOCAL: dict[str, Any] = {"overlap": "allow", "on_store_outage": "fire_local"}


class Line:
    """The way to a store: down or silent for a while, cut for good, losing one verb, or refusing it once."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.is_away = self.is_cut = False
        self.loses = self.refuses = ""
        self._answers = asyncio.Event()
        self._answers.set()

    def fall_silent(self) -> None:
        """Let every caller wait from now on."""
        self._answers.clear()

    def speak(self) -> None:
        """Answer every caller, also those that wait."""
        self._answers.set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name == "bell" or not iscoroutinefunction(found):
            return found

        async def asked(*given: Any, **named: Any) -> Any:
            if self.is_cut:
                await asyncio.Event().wait()
            await self._answers.wait()
            if self.is_away:
                raise StoreUnavailable("the store", "away")
            if name == self.refuses:
                self.refuses = ""
                raise ValueError("a row that no table holds")
            answer = await found(*given, **named)
            if name == self.loses:
                raise StoreUnavailable("the store", "the answer was lost")
            return answer

        return asked


def laid(world: World) -> Line:
    """Lay a line between the world's store and the nodes that are made from now on."""
    line = world.store = Line(world.store)
    return line


def noting(world: World) -> tuple[list[datetime], Any]:
    """Return a list, and what to run that notes there when it was run."""
    ran: list[datetime] = []

    async def body() -> None:
        ran.append(world.now())

    return ran, body


async def outage(line: Line, lasting: str = "45s") -> None:
    """Let half a minute pass, and then an outage of this length."""
    await pause("30s")
    line.is_away = True
    await pause(lasting)
    line.is_away = False


def test_a_job_that_says_so_is_fired_through_an_outage_and_recorded_afterwards(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    """C-28, S1-020: every instant once, those of the outage with the flag `unverified`; others wait for the store."""

    async def story(world: World) -> None:
        line = laid(world)
        ran: list[tuple[str, datetime]] = []

        def body(name: str) -> Any:
            async def run() -> None:
                ran.append((name, world.now()))

            return run

        here = await world.define("here", body("here"), MINUTELY, **LOCAL)
        waits = await world.define("waits", body("waits"), MINUTELY, overlap="allow")
        node = world.node()
        told: list[Event] = []
        node.listeners.listen(told.append)
        await node.start()
        await pause("2m30s")
        line.is_away = True
        await pause("3m")
        assert [at for name, at in ran if name == "here"] == [NOON + timedelta(minutes=n) for n in range(1, 6)]
        assert len([at for name, at in ran if name == "waits"]) == 2
        assert FALLING_BACK in caplog.text
        line.is_away = False
        await pause("100s")
        found = await world.history(here)
        assert [each.scheduled_for for each in found] == [NOON + timedelta(minutes=n) for n in range(1, 8)]
        assert {each.status for each in found} == {OccurrenceStatus.COMPLETED}
        assert [each.is_unverified for each in found] == [False, False, True, True, True, False, False]
        assert len([at for name, at in ran if name == "here"]) == 7
        assert len(await world.history(waits)) == 5
        assert not [event for event in told if event.kind is Happening.DUPLICATE]
        await node.stop()

    with caplog.at_level(logging.ERROR):
        live(story)


def test_a_store_that_hangs_is_as_good_as_one_that_is_away(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """C-28: a frozen server, or a network that swallows everything; who waits through it runs nothing anew."""

    async def story(world: World) -> None:
        line = laid(world)
        ran, body = noting(world)
        here = await world.define("here", body, MINUTELY, recovery="execute_all", **LOCAL)
        node = world.node()
        told: list[Event] = []
        node.listeners.listen(told.append)
        await node.start()
        await pause("2m30s")
        line.fall_silent()
        await pause("3m")
        assert ran == [NOON + timedelta(minutes=n) for n in range(1, 6)]
        assert Happening.STORE_LOST in {event.kind for event in told}
        line.speak()
        await pause("100s")
        found = await world.history(here)
        assert [each.scheduled_for for each in found] == [NOON + timedelta(minutes=n) for n in range(1, 8)]
        assert [each.is_unverified for each in found] == [False, False, True, True, True, False, False]
        assert len(ran) == 7
        assert not [event for event in told if event.kind is Happening.DUPLICATE]
        await node.stop()

    with caplog.at_level(logging.ERROR):
        live(story)


def test_a_store_that_is_back_after_a_second_outage_is_not_replaced_again(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    """C-28: though it must last a while before it counts as well, other nodes plan by it, and all would run twice."""

    async def story(world: World) -> None:
        line = laid(world)
        ran, body = noting(world)
        job = await world.define("here", body, every("5s", start=NOON), recovery="execute_all", **LOCAL)
        node = world.node()
        await node.start()
        await pause("61s")
        for back in ("8s", "60s"):
            line.is_away = True
            await pause("12s")
            line.is_away = False
            await pause(back)
        assert len(await world.history(job)) == len(ran)
        await node.stop()

    with caplog.at_level(logging.ERROR):
        live(story)
    assert len([record for record in caplog.records if FALLING_BACK in record.getMessage()]) == 2


def test_what_still_runs_when_the_store_is_back_is_this_nodes_there_and_ends_there(live: Live) -> None:
    """C-28: it is recorded as running at once, under its fence, and its end is an ordinary one."""

    async def story(world: World) -> None:
        line = laid(world)
        fences: list[int] = []

        async def slow(ctx: Context) -> str:
            fences.append(ctx.fence)
            await passing(100)
            return "done"

        job = await world.define("slow", slow, MINUTELY, **LOCAL)
        node = world.node()
        await node.start()
        await outage(line)
        await pause("20s")
        [running] = await world.history(job)
        assert (running.status, running.owner) == (OccurrenceStatus.RUNNING, node.name)
        assert [running.fence] == fences
        assert running.started_at == running.scheduled_for == NOON + timedelta(minutes=1)
        assert running.is_unverified
        await pause("2m")
        first, *rest = await world.history(job)
        assert (first.scheduled_for, first.status) == (NOON + timedelta(minutes=1), OccurrenceStatus.COMPLETED)
        assert first.is_unverified
        assert first.ended_at == NOON + timedelta(seconds=160)
        assert not any(each.is_unverified for each in rest)
        assert len(fences) == len(await world.history(job))
        await node.stop()

    live(story)


def test_a_local_run_whose_node_dies_after_the_store_is_back_is_settled_by_another(live: Live) -> None:
    """C-28, S0-071: a record of it is there, so a reaper finds it and `on_orphan` holds."""

    async def story(world: World) -> None:
        inner = world.store
        ran: list[tuple[str, datetime]] = []

        def body(name: str) -> Any:
            async def slow(ctx: Context) -> None:
                ran.append((name, ctx.scheduled_for))
                await passing(100)

            return slow

        jobs = {
            way: await world.define(way, body(way), MINUTELY, on_orphan=way, **LOCAL) for way in ("fail", "restart")
        }
        line = laid(world)
        node = world.node()
        await node.start()
        await outage(line)
        await pause("10s")
        line.is_cut = True
        world.store = inner
        heir = world.node()
        await heir.start()
        await pause("5m")
        first, *_ = await world.history(jobs["fail"])
        assert (first.scheduled_for, first.status) == (NOON + timedelta(minutes=1), OccurrenceStatus.FAILED_STALE)
        assert ran.count(("fail", first.scheduled_for)) == 1
        first, *_ = await world.history(jobs["restart"])
        assert (first.scheduled_for, first.status) == (NOON + timedelta(minutes=1), OccurrenceStatus.COMPLETED)
        assert ran.count(("restart", first.scheduled_for)) == 2
        tries = (await inner.whole(first.id)).attempts
        assert [(each.number, str(each.status)) for _, each in tries] == [(1, "lost"), (2, "success")]
        await heir.stop()

    live(story)


def test_a_node_that_dies_before_the_store_is_back_loses_no_instant(live: Live) -> None:
    """C-28: its fired runs are unknown, so each job's strategy makes up for it as for any outage."""

    async def story(world: World) -> None:
        inner = world.store
        ran: list[datetime] = []

        async def body(ctx: Context) -> None:
            ran.append(ctx.scheduled_for)

        job = await world.define("again", body, MINUTELY, recovery="execute_all", **LOCAL)
        line = laid(world)
        await world.node().start()
        await pause("30s")
        line.is_away = True
        await pause("3m")
        line.is_cut = True
        assert len(ran) == 3
        world.store = inner
        heir = world.node()
        await heir.start()
        await pause("1m")
        found = await world.history(job)
        assert [each.scheduled_for for each in found] == [NOON + timedelta(minutes=n) for n in range(1, 5)]
        assert not any(each.is_unverified for each in found)
        assert all(ran.count(each.scheduled_for) == 2 for each in found)
        await heir.stop()

    live(story)


def test_an_answer_that_gets_lost_makes_neither_a_second_record_nor_a_second_run(live: Live) -> None:
    """G9: told again until there is an answer; what the store counts as this node's is not begun once more."""

    async def story(world: World) -> None:
        line = laid(world)
        ran: list[datetime] = []

        async def slow(ctx: Context) -> None:
            ran.append(ctx.scheduled_for)
            await passing(40)

        job = await world.define("once", slow, every("20s", start=NOON), recovery="execute_all", **LOCAL)
        node = world.node(heartbeat="1s", slots=1)
        told: list[Event] = []
        node.listeners.listen(told.append)
        await node.start()
        await pause("30s")
        line.is_away = True
        await pause("45s")
        line.loses = "record"
        line.is_away = False
        # The slot becomes free while the owner of the others is unknown.
        await pause("25s")
        line.loses = ""
        await pause("20s")
        await world.store.request(job.id, Pause())
        await pause("15m")
        found = await world.history(job)
        completed = [each.scheduled_for for each in found if each.status is OccurrenceStatus.COMPLETED]
        assert sorted(ran) == completed
        assert len(completed) >= 3
        assert not [event for event in told if event.kind is Happening.DUPLICATE]
        await node.stop()

    live(story)


def test_what_the_store_refuses_to_record_is_counted_and_its_instants_run_again(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    """C-28: the log says how many runs are recorded nowhere, for which times, and what follows; other jobs go on."""

    async def story(world: World) -> None:
        line = laid(world)
        ran, body = noting(world)
        here = await world.define("here", body, MINUTELY, recovery="execute_all", **LOCAL)
        node = world.node()
        await node.start()
        await pause("90s")
        line.is_away = True
        await pause("2m30s")
        line.refuses = "record"
        line.is_away = False
        # Not until an instant: whether it is only claimed or has run by then is chance.
        await pause("50s")
        assert len(ran) == len(await world.history(here)) + 3 == 7
        await node.stop()

    with caplog.at_level(logging.ERROR, "everytick.outage"):
        live(story)
    [line] = [text for text in caplog.messages if "recorded nowhere" in text]
    assert line.startswith("3 runs of job job_")
    assert f"{NOON:%Y-%m-%d} 12:02:00 to {NOON:%Y-%m-%d} 12:04:00 UTC are recorded nowhere" in line
    assert "plans these instants again by `recovery`. Check what the task did" in line


def test_instants_of_a_refused_part_run_again_although_the_store_takes_what_came_after_them(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C-28: the last part counts as all that was decided, and must not where the store has refused one before it."""
    monkeypatch.setattr(local, "RUNS_AT_ONCE", 2)

    async def story(world: World) -> None:
        line = laid(world)
        ran, body = noting(world)
        here = await world.define("here", body, MINUTELY, recovery="execute_all", **LOCAL)
        node = world.node()
        await node.start()
        await pause("90s")
        line.is_away = True
        await pause("3m10s")
        assert len(ran) == 4
        line.refuses = "record"
        line.is_away = False
        await pause("1m")
        instants = [NOON + timedelta(minutes=n) for n in range(1, 6)]
        assert [each.scheduled_for for each in await world.history(here)] == instants
        assert len(ran) == 7
        await node.stop()

    live(story)


def test_a_restart_that_the_store_has_obeyed_is_not_obeyed_again_while_it_is_away(live: Live) -> None:
    """S4-044, C-28: the watermark of a job that counts from its last end is still before the restart."""

    async def story(world: World) -> None:
        line = laid(world)
        began: list[datetime] = []

        async def body() -> None:
            began.append(world.now())
            await pause("1h")

        both: dict[str, Any] = {
            "restart_schedule": once(NOON + timedelta(minutes=1)),
            "stop_schedule": once(NOON + timedelta(minutes=2)),
        }
        job = await world.define("here", body, after_completion("10m"), grace="20m", **both, **LOCAL)
        node = world.node()
        await node.start()
        await world.trigger(job)
        await pause("80s")
        assert len(began) == 2
        line.is_away = True
        # The local engine plans the job for the stop that comes in the outage.
        await pause("1m")
        assert len(began) == 2
        line.is_away = False
        await pause("30s")
        await node.stop()

    live(story)


def test_what_waits_for_a_slot_when_the_store_is_back_is_claimed_there(live: Live) -> None:
    """C-28: it has not begun, so it is an occurrence like any other."""

    async def story(world: World) -> None:
        line = laid(world)
        ran: list[datetime] = []

        async def slow(ctx: Context) -> None:
            ran.append(ctx.scheduled_for)
            await passing(70)

        job = await world.define("waits", slow, every("10s", start=NOON), recovery="execute_all", **LOCAL)
        node = world.node(slots=1)
        await node.start()
        await pause("5s")
        line.is_away = True
        await pause("50s")
        line.is_away = False
        await pause("20s")
        first, *others = await world.history(job)
        assert first.status is OccurrenceStatus.RUNNING
        assert first.is_unverified
        assert not any(each.is_unverified for each in others)
        assert len(others) >= 4
        await world.store.request(job.id, Pause())
        await pause("15m")
        found = await world.history(job)
        begun = [each.scheduled_for for each in found if each.status is OccurrenceStatus.COMPLETED]
        assert sorted(ran) == begun
        await node.stop()

    live(story)


def test_one_of_several_tasks_goes_on_from_where_it_stood(live: Live) -> None:
    """C-28: steps that follow are written to the store, and only they wait if it is away again."""

    async def story(world: World) -> None:
        line = laid(world)
        ran: list[str] = []

        def task(name: str, seconds: float) -> Any:
            async def body(ctx: Context) -> str:
                ran.append(name)
                await passing(seconds)
                return name

            return body

        tasks = {"first": task("first", 5), "second": task("second", 60), "third": task("third", 5)}
        job = await world.define("steps", tasks, every("1h", start=NOON - timedelta(minutes=59)), **LOCAL)
        others = {"one": task("one", 0.1), "two": task("two", 0.1)}
        await world.define("others", others, every("10s", start=NOON), **LOCAL)
        node = world.node()
        await node.start()
        await outage(line)
        await pause("15s")
        [running] = await world.history(job)
        whole = await world.store.whole(running.id)
        assert [str(run.status) for run in whole.runs][:1] == ["success"]
        line.is_away = True
        await pause("40s")
        ran.clear()
        await pause("25s")
        assert set(ran) == {"one", "two"}
        line.is_away = False
        await pause("30s")
        [ended] = await world.history(job)
        assert ended.status is OccurrenceStatus.COMPLETED
        assert ran.count("third") == 1
        assert "first" not in ran
        whole = await world.store.whole(ended.id)
        assert [(name, each.number) for name, each in whole.attempts] == [("first", 1), ("second", 1), ("third", 1)]
        await node.stop()

    live(story)


def test_steps_of_the_local_store_are_written_while_the_other_one_hangs(live: Live) -> None:
    """C-28: an occurrence that was handed over waits for its store; what is fired in a second outage does not."""

    async def story(world: World) -> None:
        line = laid(world)
        ran: list[tuple[str, datetime]] = []

        def task(name: str, seconds: float) -> Any:
            async def body() -> None:
                ran.append((name, world.now()))
                await passing(seconds)

            return body

        hourly = every("1h", start=NOON - timedelta(minutes=59))
        job = await world.define("long", {"first": task("first", 70), "second": task("second", 1)}, hourly, **LOCAL)
        await world.define("short", {"one": task("one", 0.1), "two": task("two", 0.1)}, MINUTELY, **LOCAL)
        node = world.node()
        await node.start()
        await outage(line)
        await pause("20s")
        [running] = await world.history(job)
        assert running.owner == node.name
        line.fall_silent()
        await pause("3m")
        assert [name for name, _ in ran].count("first") == 1
        assert "second" not in [name for name, _ in ran], "it begins once the end of the first task is written"
        pairs = [at for name, at in ran if name in ("one", "two")]
        assert len(pairs) >= 6
        assert all(
            later - earlier < timedelta(seconds=2) for earlier, later in zip(pairs[::2], pairs[1::2], strict=True)
        )
        line.speak()
        await pause("40s")
        [ended] = await world.history(job)
        assert ended.status is OccurrenceStatus.COMPLETED
        assert [name for name, _ in ran].count("second") == 1
        await node.stop()

    live(story)


def test_a_drain_that_is_hastened_stops_what_was_fired_locally(live: Live) -> None:
    """Also where the grace period was given for this one stop."""

    async def story(world: World) -> None:
        line = laid(world)
        ends: list[str] = []

        async def slow() -> None:
            try:
                await passing(10_000)
            except BaseException:
                ends.append("stopped")
                raise

        await world.define("slow", slow, every("1h", start=NOON - timedelta(minutes=59)), **LOCAL)
        node = world.node()
        await node.start()
        await pause("30s")
        line.is_away = True
        await pause("45s")
        stopping = asyncio.ensure_future(node.stop("drain", timedelta(seconds=5)))
        await pause("60s")
        assert not ends
        line.is_away = False
        node.hasten()
        await stopping
        assert ends == ["stopped"]

    live(story)


def test_what_was_handed_over_can_be_canceled_and_awaits_its_retry_like_any_other(live: Live) -> None:
    """C-28: orders of the store reach it, and a retry that is far away may go to any node."""

    async def story(world: World) -> None:
        line = laid(world)
        ends: list[str] = []

        async def slow() -> None:
            try:
                await passing(1000)
            except BaseException:
                ends.append("stopped")
                raise

        async def fails(ctx: Context) -> None:
            await passing(60)
            if ctx.attempt == 1:
                raise RuntimeError("not yet")

        hourly = every("1h", start=NOON - timedelta(minutes=59))
        stops = await world.define("stops", slow, hourly, **LOCAL)
        again = await world.define("again", fails, hourly, retry={"max": 1, "interval": "1m"}, **LOCAL)
        node = world.node()
        await node.start()
        await outage(line)
        await pause("20s")
        [running] = await world.history(stops)
        assert (await world.store.request(running.id, Cancel())).changed
        await pause("15s")
        [ended] = await world.history(stops)
        assert (ended.status, ends) == (OccurrenceStatus.CANCELED, ["stopped"])
        await pause("20s")
        [parked] = await world.history(again)
        assert (parked.status, parked.owner) == (OccurrenceStatus.AWAITING_RETRY, None)
        await pause("3m")
        [ended] = await world.history(again)
        assert ended.status is OccurrenceStatus.COMPLETED
        assert [each.number for _, each in (await world.store.whole(ended.id)).attempts] == [1, 2]
        await node.stop()

    live(story)


def test_two_nodes_that_both_fired_it_are_told_of_the_duplicate(live: Live) -> None:
    """S1-029, S1-027: one of them is recorded, the other is not, and is told and counted as a duplicate."""

    async def story(world: World) -> None:
        line = laid(world)
        ran, body = noting(world)

        job = await world.define("both", body, MINUTELY, **LOCAL)
        nodes = [world.node(), world.node()]
        told: list[Event] = []
        for node in nodes:
            node.listeners.listen(told.append)
            await node.start()
        await outage(line, "1m")
        await pause("20s")
        [found] = await world.history(job)
        assert ran == [NOON + timedelta(minutes=1)] * 2
        assert found.is_unverified
        duplicates = [event for event in told if event.kind is Happening.DUPLICATE]
        assert [(event.job, event.occurrence_id) for event in duplicates] == [("both", found.id)]
        assert sum(each.duplicates for node in nodes for each in node.listeners.meter.jobs) == 1
        for node in nodes:
            await node.stop()

    live(story)


def test_a_paused_job_and_a_short_absence_fire_nothing(live: Live) -> None:
    async def story(world: World) -> None:
        line = laid(world)
        ran, body = noting(world)

        job = await world.define("held", body, MINUTELY, **LOCAL)
        await world.store.request(job.id, Pause())
        node = world.node()
        await node.start()
        await pause("30s")
        line.is_away = True
        await pause("5m")
        assert ran == []
        line.is_away = False
        await pause("10s")
        await world.store.request(job.id, Resume())
        await pause("17s")
        # Away at the very instant, but not for as long as a poll.
        line.is_away = True
        await pause("2s")
        assert ran == []
        line.is_away = False
        await pause("10s")
        assert len(ran) == 1
        assert not any(each.is_unverified for each in await world.history(job))
        await node.stop()

    live(story)


def test_what_is_kept_meanwhile_is_bounded(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """C-28: past the bound nothing more is fired; the strategy recovers the rest when the store is back."""
    monkeypatch.setattr(outages, "MOST_UNRECORDED", 20)

    async def story(world: World) -> None:
        line = laid(world)
        ran = 0

        async def body() -> None:
            nonlocal ran
            ran += 1

        job = await world.define("often", body, every("1s", start=NOON), recovery="mark_as_missed", **LOCAL)
        node = world.node()
        await node.start()
        # Not until an instant: whether it is only planned or has run by then is chance.
        await pause("10.5s")
        before = await world.history(job)
        line.is_away = True
        await pause("10m")
        assert 20 <= ran - len(before) <= 25
        line.is_away = False
        await pause("30s")
        flags = [each.is_unverified for each in await world.history(job)]
        assert 20 <= sum(flags) <= 25
        await node.stop()

    live(story)


def test_a_node_that_stops_ends_and_records_what_it_fired(live: Live) -> None:
    async def story(world: World) -> None:
        line = laid(world)

        async def body() -> None:
            return

        job = await world.define("last", body, MINUTELY, **LOCAL)
        node = world.node()
        await node.start()
        await outage(line, "1m")
        await node.stop()
        assert [each.is_unverified for each in await world.history(job)] == [True]

    live(story)
