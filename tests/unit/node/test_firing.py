"""When things start: at their instant, never before it, without drift, in order, as many as there are slots."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from everytick.domain.decisions import Plan
from everytick.domain.facts import Pause
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job
from everytick.domain.policies import Overlap
from everytick.domain.statuses import OccurrenceStatus
from everytick.errors import StoreBroken
from everytick.runners.catalogue import Catalogue
from everytick.runners.context import Context
from everytick.schedules.interval import every
from everytick.stores.base import Batch, Committed, Offer
from everytick.stores.memory import MemoryStore
from tests.unit.node.conftest import Live
from tests.unit.node.refusing import RefusingStore
from tests.unit.node.worlds import NOON, World, living, passing, pause


def test_every_instant_starts_on_time_and_none_early(live: Live) -> None:
    """S4-003, S4-004, C-20, B6–B9: hundreds of ticks later it starts as near its instant as at first, never before."""

    async def story(world: World) -> None:
        started: list[datetime] = []

        async def body() -> None:
            started.append(world.now())

        job = await world.define("tick", body, every("7s", start=NOON))
        node = world.node()
        await node.start()
        await pause("1407s")
        await node.stop()
        instants = [each.scheduled_for for each in await world.history(job)]
        assert len(started) >= 200
        assert instants == [NOON + timedelta(seconds=7 * (n + 1)) for n in range(len(instants))]
        late = [begun - instant for begun, instant in zip(started, instants, strict=True)]
        assert min(late) >= timedelta(0)
        assert max(late) < timedelta(milliseconds=50)

    live(story)


def test_a_long_task_holds_up_no_other(live: Live) -> None:
    """D9: one job that never ends does not make another late."""

    async def story(world: World) -> None:
        late: list[timedelta] = []

        async def hog() -> None:
            await passing(100_000)

        await world.define("hog", hog, every("1m", start=NOON), task_timeout="1d")
        quick = await world.define("quick", _noted(world, late), every("10s", start=NOON))
        node = world.node(slots=2)
        await node.start()
        await pause("305s")
        assert len(late) == len(await world.history(quick)) >= 29
        assert max(late) < timedelta(seconds=1)
        await node.stop()

    live(story)


def _noted(world: World, late: list[timedelta]):  # type: ignore[no-untyped-def]
    from everytick.runners.context import Context

    async def body(ctx: Context) -> None:
        late.append(world.now() - ctx.scheduled_for)

    return body


@pytest.mark.parametrize("slots", [1, 3])
def test_no_more_run_at_once_than_there_are_slots(live: Live, slots: int) -> None:
    """S0-104: what finds no slot waits, and everything runs in the end."""

    async def story(world: World) -> None:
        running, most, done = 0, 0, 0

        async def body() -> None:
            nonlocal running, most, done
            running += 1
            most = max(most, running)
            await passing(5)
            running -= 1
            done += 1

        job = await world.define("many", body, overlap="allow")
        node = world.node(slots=slots)
        await node.start()
        for number in range(10):
            await world.trigger(job, f"k{number}", overlap=Overlap.ALLOW)
        await pause("60s")
        assert (most, done) == (slots, 10)
        await node.stop()

    live(story)


def test_the_more_important_goes_first_then_the_older(live: Live) -> None:
    """Priority, then age: among what waits for a slot."""

    async def story(world: World) -> None:
        order: list[str] = []

        def named(name: str):  # type: ignore[no-untyped-def]
            async def body() -> None:
                order.append(name)
                await passing(10)

            return body

        jobs = [
            await world.define(name, named(name), overlap="allow", priority=priority)
            for name, priority in (("low", 0), ("first", 5), ("second", 5), ("high", 9))
        ]
        node = world.node(slots=1)
        for job in jobs:
            await world.trigger(job)
            await pause("1s")
        await node.start()
        await pause("60s")
        assert order == ["high", "first", "second", "low"]
        await node.stop()

    live(story)


def test_an_ending_releases_the_next_in_line_at_once(live: Live) -> None:
    """S0-062: the one that waited does not wait for the next poll."""

    async def story(world: World) -> None:
        begun: list[datetime] = []

        async def body() -> None:
            begun.append(world.now())
            await passing(3)

        job = await world.define("line", body, overlap="queue")
        node = world.node(poll="1h")
        await node.start()
        for number in range(3):
            await world.trigger(job, f"k{number}")
        await pause("20s")
        assert [round((at - begun[0]).total_seconds()) for at in begun] == [0, 3, 6]
        await node.stop()

    live(story)


def test_a_schedule_that_raises_disturbs_no_other_job(caplog: pytest.LogCaptureFixture) -> None:
    """S1-013, D7: it is logged as the contract says and looked at again later; the others are on time."""

    class Broken:
        def next_after(self, moment: datetime) -> datetime | None:
            if moment >= NOON:
                raise ValueError("out of order")
            return NOON

        def last_at(self, moment: datetime) -> datetime | None:
            raise ValueError("out of order")

        def instants(self, after: datetime, through: datetime, limit: int | None = None) -> list[datetime]:
            raise ValueError("out of order")

        def describe(self) -> str:
            return "broken"

    async def story(world: World) -> None:
        late: list[timedelta] = []

        async def never() -> None:
            raise AssertionError

        await world.define("broken", never, Broken())
        good = await world.define("good", _noted(world, late), every("10s", start=NOON))
        node = world.node()
        await node.start()
        await pause("100s")
        assert len(await world.history(good)) >= 9
        assert max(late) < timedelta(seconds=1)
        await node.stop()

    living(story)
    said = [record.getMessage() for record in caplog.records if "failed to claim schedule" in record.getMessage()]
    assert 1 <= len(said) <= 3, "told, and not in a busy loop"
    assert "broken" in said[0]


def test_what_this_node_cannot_run_is_left_to_one_that_can(live: Live) -> None:
    """C-21, C-41: it is neither planned nor claimed here, and the other node runs it."""

    async def story(world: World) -> None:
        ran: list[str] = []

        async def body() -> None:
            ran.append("here")

        job = await world.define("elsewhere", body)
        ignorant = world.node(knows={})
        await ignorant.start()
        asked = await world.trigger(job)
        await pause("10s")
        assert len((await world.store.look([job.id]))[job.id].requests) == 1
        assert not ran
        able = world.node()
        await able.start()
        assert (await world.ended(asked)).status is OccurrenceStatus.COMPLETED
        whole = await world.store.whole(asked)
        assert [attempt.number for _, attempt in whole.attempts] == [1]
        await ignorant.stop()
        await able.stop()

    live(story)


def test_a_job_that_cannot_run_here_is_told_once_however_much_of_it_waits(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    """C-21: one claim may bring hundreds of its occurrences, and they come again with every look."""

    async def story(world: World) -> None:
        async def body() -> None:
            raise AssertionError

        job = await world.define("elsewhere", body, overlap="allow")
        ignorant = world.node(knows={})
        for key in "abcde":
            await world.trigger(job, key)
        await ignorant.start()
        await pause("150s")
        await ignorant.stop()

    live(story)
    said = [record for record in caplog.records if "cannot run here" in record.getMessage()]
    assert len(said) == 1


def test_a_node_looks_again_every_five_seconds_though_no_bell_rang() -> None:
    """S1-015: what a lost bell announced is found by the poll."""

    class Mute(MemoryStore):
        async def bell(self, seconds: float) -> bool:
            await passing(seconds)
            return False

    async def story(world: World) -> None:
        async def body() -> None:
            return

        job = await world.define("asked", body)
        node = world.node()
        await node.start()
        await pause("1s")
        await world.ended(await world.trigger(job), "6s")
        await node.stop()

    living(story, Mute)


def test_the_log_says_what_was_decided(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """S1-014, S0-060: the texts of the contract, with the job's name."""

    async def story(world: World) -> None:
        async def body() -> None:
            await passing(15)

        await world.define("report", body, every("10s", start=NOON))
        node = world.node()
        await node.start()
        await pause("25s")
        await node.stop()

    with caplog.at_level("DEBUG", logger="everytick"):
        live(story)
    said = [record.getMessage() for record in caplog.records]
    assert any(
        line.startswith("claimed and enqueued schedule report, next_run_at 2024-01-01 12:00:20") for line in said
    )
    assert "Skipping overlapping run for Job report" in said


def test_start_and_stop_are_logged_with_fields_that_programs_read(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """S0-114, S3-027: the texts of the contract; component, node, interval and next run stand beside them."""

    async def story(world: World) -> None:
        async def body() -> None:
            return

        await world.define("report", body, every("10s", start=NOON))
        node = world.node(poll="7s")
        await node.start()
        await pause("12s")
        await node.stop()

    with caplog.at_level("DEBUG", logger="everytick"):
        live(story)
    said = [record for record in caplog.records if getattr(record, "component", "") == "scheduler"]
    assert [record.getMessage() for record in said if hasattr(record, "node")] == [
        "Cron scheduler started",
        "Cron scheduler stopping",
    ]
    assert getattr(said[0], "interval", None) == 7.0
    assert [
        (vars(record)["job"], vars(record)["next_run"] - NOON) for record in said if hasattr(record, "next_run")
    ] == [("report", timedelta(seconds=20))]


def test_what_was_missed_is_planned_before_a_start_returns(live: Live) -> None:
    """S0-113, S0-132: recovery comes first; then the loops, and what is paused or disabled does not tick."""

    async def story(world: World) -> None:
        ran: list[str] = []

        def noting(name: str):  # type: ignore[no-untyped-def]
            async def body() -> None:
                ran.append(name)

            return body

        jobs = {
            name: await world.define(name, noting(name), every("1h", start=NOON), enabled=name != "disabled")
            for name in ("late", "paused", "disabled")
        }
        await world.store.request(jobs["paused"].id, Pause(by="ops"))
        await pause("5h30m")
        node = world.node()
        await node.start()
        assert ran == [], "no body has begun when what was missed is decided"
        assert [each.scheduled_for - NOON for each in await world.history(jobs["late"])] == [timedelta(hours=5)]
        await pause("10m")
        assert ran == ["late"]
        await node.stop()

    live(story)


def test_a_first_look_that_fails_ends_the_start() -> None:
    """S0-101: for another reason than a silent store, it surfaces as the contract says."""

    class Broken(RefusingStore):
        def look_at_plan(self, job: str, plan: Plan) -> None:
            raise ValueError("no such table")

        async def check_writable(self) -> None:
            raise StoreBroken("the store", "no such table")

    async def story(world: World) -> None:
        async def body() -> None:
            return

        await world.define("tick", body, every("1s", start=NOON))
        await pause("5s")
        with pytest.raises(RuntimeError, match=r"recovery failed: .*no such table"):
            await world.node().start()

    living(story, Broken)


def test_a_plan_that_cannot_be_written_stops_no_other_job(caplog: pytest.LogCaptureFixture) -> None:
    """D7: written one by one, the bad one is put off and told by name."""

    class Picky(RefusingStore):
        def look_at_plan(self, job: str, plan: Plan) -> None:
            if job == "bad" and plan.creations:
                raise ValueError("no such column")

    async def story(world: World) -> None:
        ran: list[float] = []

        async def body() -> None:
            ran.append(world.loop.time())

        await world.define("bad", body, every("10s", start=NOON))
        good = await world.define("good", body, every("10s", start=NOON))
        node = world.node()
        await node.start()
        await pause("101s")
        assert len(ran) == len(await world.history(good)) == 10
        await node.stop()

    living(story, Picky)
    assert any("failed to claim schedule: bad" in record.getMessage() for record in caplog.records)


def test_a_node_that_comes_second_says_so_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """S0-070: another node commits the same plan first, each time; every instant is there once, and is run."""

    class Beaten(MemoryStore):
        async def commit_plans(self, batch: Batch, plans: Sequence[Plan], offer: Offer | None = None) -> Committed:
            if any(plan.creations for plan in plans):
                await super().commit_plans(replace(batch, token=0), plans)
            return await super().commit_plans(batch, plans, offer)

    async def story(world: World) -> None:
        ran: list[float] = []

        async def body() -> None:
            ran.append(world.loop.time())

        job = await world.define("tick", body, every("1m", start=NOON))
        node = world.node()
        await node.start()
        await pause("330s")
        await node.stop()
        instants = [each.scheduled_for for each in await world.history(job)]
        assert instants == [NOON + timedelta(minutes=number) for number in range(1, 6)]
        assert len(ran) == 5

    with caplog.at_level("DEBUG", logger="everytick"):
        living(story, Beaten)
    assert "Occurrence already claimed by another node" in [record.getMessage() for record in caplog.records]


def test_a_look_goes_on_until_nothing_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """S1-013: seven jobs are due and a batch holds two; all are decided when the start returns."""
    monkeypatch.setattr("everytick.node.planner.BATCH", 2)

    async def story(world: World) -> None:
        async def body() -> None: ...

        jobs = [await world.define(f"job-{number}", body, every("1h", start=NOON)) for number in range(7)]
        await pause("61m")
        node = world.node()
        await node.start()
        assert [len(await world.history(job)) for job in jobs] == [1] * 7
        await node.stop()

    living(story)


def test_a_body_that_cannot_be_made_harms_no_other(live: Live) -> None:
    """S4-043: it is left to other nodes; those behind it in the same batch run."""

    async def story(world: World) -> None:
        async def body() -> None:
            return

        bad, good = await world.define("bad", body), await world.define("good", body)
        node = world.node()

        class Fussy(Catalogue):
            def bodies(self, job: Job) -> Any:
                if job.name == "bad":
                    raise OSError("no more processes")
                return super().bodies(job)

        node.scope._catalogue = Fussy(world.functions)
        await node.start()
        await world.trigger(bad)
        asked = await world.trigger(good)
        assert (await world.ended(asked, "5s")).status is OccurrenceStatus.COMPLETED
        assert len((await world.store.look([bad.id]))[bad.id].requests) == 1
        await node.stop()

    live(story)


def test_runs_of_a_job_that_allows_overlap_run_side_by_side_each_under_its_own_id(live: Live) -> None:
    """S0-061, S4-003: three instants in thirty seconds, bodies of twenty-five, and none waits for another's end."""

    async def story(world: World) -> None:
        running: set[str] = set()
        at_once: list[set[str]] = []

        async def body(ctx: Context) -> None:
            running.add(ctx.occurrence_id)
            at_once.append(set(running))
            await passing(25)
            running.discard(ctx.occurrence_id)

        job = await world.define("beside", body, every("10s", start=NOON), overlap="allow")
        node = world.node()
        await node.start()
        await pause("31s")
        first, second, third = [occurrence_id(job.id, NOON + timedelta(seconds=at)) for at in (10, 20, 30)]
        assert at_once == [{first}, {first, second}, {first, second, third}]
        assert [each.id for each in await world.history(job)] == [first, second, third]
        await node.stop()

    live(story)


def test_a_node_that_starts_within_the_minute_of_an_instant_runs_it_at_once(live: Live) -> None:
    """S4-004: the first tick is the minute of the start, and the next one counts from its instant."""

    async def story(world: World) -> None:
        begun: list[tuple[float, bool]] = []

        async def body(ctx: Context) -> None:
            begun.append((round(world.loop.time()), ctx.late))

        job = await world.define("minutely", body, every("1m", start=NOON))
        await pause("150s")
        node = world.node()
        await node.start()
        await pause("100s")
        await node.stop()
        assert begun == [(150, False), (180, False), (240, False)]
        assert [each.scheduled_for - NOON for each in await world.history(job)] == [
            timedelta(minutes=minute) for minute in (2, 3, 4)
        ]

    live(story)


def test_what_runs_ends_under_the_version_it_began_with(live: Live) -> None:
    """S0-116: an edit brings retries; the one that runs fails at once, the next one is tried again."""

    async def story(world: World) -> None:
        versions: list[int] = []

        async def body(ctx: Context) -> None:
            versions.append(ctx.definition.version)
            await passing(10)
            raise ValueError("boom")

        job = await world.define("edited", body)
        node = world.node()
        await node.start()
        running = await world.trigger(job, "one")
        await pause("5s")
        await world.define("edited", body, retry={"max": 1, "interval": "1s"})
        before = await world.ended(running)
        assert (before.version, before.status, versions) == (1, OccurrenceStatus.FAILED, [1])
        after = await world.ended(await world.trigger(job, "two"))
        assert (after.version, after.status, versions) == (2, OccurrenceStatus.FAILED, [1, 2, 2])
        await node.stop()

    live(story)
