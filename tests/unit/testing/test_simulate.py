"""simulate: an application's real functions, on virtual time, with outages and deeds."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from everytick import Context, Everytick, Retry, cron, every
from everytick.testing import Chronicle, simulate
from tests.unit.testing.naps import until_rung

DAY = "2026-01-01T00:00:00Z"
NEXT_DAY = "2026-01-02T00:00:00Z"
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


def at(hours: float) -> datetime:
    return MIDNIGHT + timedelta(hours=hours)


def application() -> Everytick:
    return Everytick("memory://", name="simulated")


def test_a_day_of_hours_runs_at_every_hour_and_takes_no_time() -> None:
    """S4-004: at its instant, without drift."""
    tick, calls = application(), list[datetime]()

    @tick.job(every("1h"))
    def hourly(ctx: Context) -> None:
        calls.append(ctx.started_at)

    done = simulate(tick, DAY, NEXT_DAY)

    expected = [at(number) for number in range(1, 25)]
    done.assert_ran("hourly", *expected, status="completed")
    assert calls == expected


def test_a_coroutine_that_naps_takes_virtual_time() -> None:
    """S0-060: it overlaps its next instant, which is skipped; S0-064: no deadline follows from the period."""
    tick = application()

    @tick.job(every("1h"), task_timeout="3h")
    async def long() -> None:
        await until_rung(90 * 60)

    done = simulate(tick, DAY, "2026-01-01T05:45:00Z")

    done.assert_ran("long", at(1), at(3), at(5))
    done.assert_skipped("long", at(2), at(4), why="overlap")
    assert (done.ran("long")[0].status, done.ran("long")[0].ended_at) == ("completed", at(2.5))
    assert done.ran("long")[-1].status == "running"


def test_a_slot_that_is_freed_is_taken_at_once_however_long_nothing_was_planned() -> None:
    """S0-104: no beats are sent on virtual time, and that is not taken for silence."""
    tick, starts = Everytick("memory://", name="simulated", slots=1), dict[str, datetime]()

    @tick.job(cron("0 1 * * *"), task_timeout="10h", priority=1)
    async def long(ctx: Context) -> None:
        starts["long"] = ctx.started_at
        await until_rung(5 * 3600)

    @tick.job(cron("0 1 * * *"), overlap="allow")
    def behind(ctx: Context) -> None:
        starts["behind"] = ctx.started_at

    simulate(tick, DAY, NEXT_DAY)

    assert starts == {"long": at(1), "behind": at(6)}


def test_a_timeout_strikes_at_its_time() -> None:
    """S0-065, S0-066."""
    tick = application()

    @tick.job(every("1h"), task_timeout="10m")
    async def stuck() -> None:
        await until_rung(3600)

    [ran] = simulate(tick, DAY, "2026-01-01T01:30:00Z").ran("stuck")

    assert (ran.status, ran.ended_at) == ("failed", at(1) + timedelta(minutes=10))


def test_retries_wait_as_they_say() -> None:
    """S0-082, C-33: 1m, 2m, 4m."""
    tick, tries = application(), list[datetime]()

    @tick.job(every("1h"), retry=Retry(3, "1m", factor=2.0))
    def flaky(ctx: Context) -> None:
        tries.append(ctx.started_at)
        raise OSError("no route")

    done = simulate(tick, DAY, "2026-01-01T01:59:00Z")

    assert tries == [at(1) + timedelta(minutes=each) for each in (0, 1, 3, 7)]
    done.assert_failed("flaky", error="no route")


@pytest.mark.parametrize(
    ("recovery", "runs"),
    [("execute_all", [2, 3, 4, 5, 6]), ("execute_last", [6]), ("mark_as_missed", []), ("compressed", [6])],
)
def test_an_outage_is_recovered_by_the_strategy(recovery: str, runs: list[int]) -> None:
    """S0-090, S0-092…096, S1-028: five hours down, hourly."""
    tick = application()

    @tick.job(every("1h"), recovery=recovery)  # type: ignore[arg-type]
    def hourly() -> None: ...

    done = simulate(tick, DAY, "2026-01-01T06:59:00Z", outages=[("2026-01-01T01:30:00Z", "2026-01-01T06:30:00Z")])

    done.assert_ran("hourly", at(1), *(at(each) for each in runs), status="completed")
    assert all(entry.late for entry in done.ran("hourly")[1:])


def test_a_night_of_a_clock_change_is_as_the_schedule_says() -> None:
    """S3-029, C-03: 02:30 does not exist in Berlin on 29 March 2026, and is moved to 03:00."""
    tick = application()

    @tick.job(cron("30 2 * * *", tz="Europe/Berlin"))
    def nightly() -> None: ...

    done = simulate(tick, "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z")

    done.assert_ran("nightly", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00")


def test_people_can_act_meanwhile() -> None:
    """S0-043, S0-044: three ticks in a pause are three skipped entries."""
    tick = application()

    @tick.job(every("1h"))
    def hourly() -> None: ...

    deeds = {
        "2026-01-01T01:30:00Z": lambda: tick.pause("hourly", reason="maintenance"),
        "2026-01-01T04:30:00Z": lambda: tick.resume("hourly"),
        "2026-01-01T04:40:00Z": lambda: tick.trigger("hourly"),
    }
    done = simulate(tick, DAY, "2026-01-01T05:00:00Z", at=deeds)

    done.assert_skipped("hourly", at(2), at(3), at(4), why="paused")
    asked_at = at(4) + timedelta(minutes=40, microseconds=10)
    assert [(entry.cause, entry.started_at) for entry in done.ran("hourly")] == [
        ("schedule", at(1)),
        ("trigger", asked_at),
        ("schedule", at(5)),
    ]


def test_what_is_no_function_needs_a_stand_in() -> None:
    tick, called = application(), list[str]()
    tick.define("backup", every("12h")).command("dump", ["pg_dump"])

    with pytest.raises(LookupError, match=r"task 'dump' of job 'backup' is no function.*instead=\{\"backup\.dump\""):
        simulate(tick, DAY, NEXT_DAY)
    with pytest.raises(LookupError, match=r"instead=\{'backup\.dmp': …\} names no job and no task"):
        simulate(tick, DAY, NEXT_DAY, instead={"backup.dmp": print})
    simulate(tick, DAY, NEXT_DAY, instead={"backup": lambda: called.append("dump")}).assert_ran("backup", times=2)
    assert called == ["dump", "dump"]


def test_the_same_simulation_twice_is_the_same() -> None:
    def once() -> Chronicle:
        tick = application()

        @tick.job(every("7m"), retry=Retry(2, "30s", jitter=1.0), overlap="queue")
        async def odd(ctx: Context) -> None:
            await until_rung(200)
            if ctx.scheduled_for.minute % 2:
                raise ValueError("odd")

        return simulate(tick, DAY, "2026-01-01T06:00:00Z")

    assert once().entries == once().entries


async def test_it_may_be_called_where_a_loop_runs_and_leaves_the_applications_store_alone() -> None:
    tick = application()

    @tick.job(every("1h"))
    def hourly() -> None: ...

    simulate(tick, DAY, NEXT_DAY).assert_ran("hourly", times=24)
    assert await tick.jobs() == []
    await tick.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"until": DAY}, "until must be later than start"),
        ({"outages": [(NEXT_DAY, DAY)]}, "outages must lie one after another"),
        ({"outages": [(DAY, "2026-01-03T00:00:00Z")]}, "lies outside of the simulation"),
        ({"at": {"2026-02-01T00:00:00Z": print}}, "lies outside of the simulation"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        simulate(application(), DAY, **{"until": NEXT_DAY, **options})  # type: ignore[arg-type]


def test_what_stands_in_the_folder_of_jobs_is_simulated_too(tmp_path: Path) -> None:
    """As a node would run it; a command needs a replacement."""
    (tmp_path / "jobs.yaml").write_text('version: 1\njobs:\n  filed: {schedule: "0 * * * *", command: "false"}\n')
    tick = Everytick("memory://", name="tested", jobs=tmp_path)
    with pytest.raises(LookupError, match="of job 'filed' is no function"):
        simulate(tick, DAY, NEXT_DAY)
    simulate(tick, DAY, NEXT_DAY, instead={"filed": lambda: None}).assert_ran("filed", times=24)


def test_what_is_asked_to_stop_is_stopped() -> None:
    """F12, S4-044: by its stop schedule, also in a pause; the kit does what a node does."""
    tick = application()

    @tick.job(cron("0 1 * * *"), stop_schedule=cron("30 1 * * *"), task_timeout=None)
    async def long() -> None:
        await until_rung(5 * 3600)

    done = simulate(tick, DAY, NEXT_DAY, at={"2026-01-01T01:10:00Z": lambda: tick.pause("long")})

    [entry] = done.ran("long")
    assert (entry.status, entry.ended_at) == ("canceled", at(1.5))


def test_what_a_node_left_ready_is_begun_when_the_next_one_comes() -> None:
    """C-10: at once, and not at the next instant of some job."""
    tick = application()

    @tick.job(cron("0 1 * * *"), on_orphan="restart", task_timeout=None)
    async def long() -> None:
        await until_rung(3600)

    done = simulate(tick, DAY, NEXT_DAY, outages=[("2026-01-01T01:30:00Z", "2026-01-01T02:15:00Z")])

    [entry] = done.ran("long")
    assert (entry.status, entry.ended_at) == ("completed", at(3.25))


@pytest.mark.parametrize(
    "policies",
    [
        {"grace": "99999999d"},
        {"jitter": "99999999d"},
        {"task_timeout": "99999999d", "execution_timeout": "99999999d"},
        {"recovery": {"strategy": "bounded_window", "max_duration": "99999999d"}},
        {"success_within": "99999999d", "start_by": "99999999d"},
    ],
    ids=lambda policies: next(iter(policies)),
)
def test_a_length_of_a_thousand_centuries_means_for_ever(policies: dict[str, Any]) -> None:
    """A job with such a grace was parked: its instant and the grace lie beyond Python's calendar."""
    tick = Everytick("memory://", name="shop")

    @tick.job(every("1h"), name="hourly", **policies)
    async def hourly() -> None: ...

    found = simulate(tick, start="2026-01-01T00:30:00Z", until="2026-01-01T03:30:00Z")

    assert len(found.of("hourly")) == 3
