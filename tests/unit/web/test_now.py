"""The page Now over real histories: its sentence, its numbers, what needs a look, the timeline and its table."""

import csv
import io
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from everytick import Context, Everytick, Retry, every
from everytick.access.people import Grant, Role
from everytick.domain.nodes import NodeFacts
from everytick.errors import NeedsApproval, StoreUnavailable
from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock
from everytick.web.job_list import JobFilter, job_list
from everytick.web.known_jobs import KnownJobs
from everytick.web.needs_a_look import LookLine
from everytick.web.now_board import Board
from everytick.web.now_view import NowAsked, view_of
from everytick.web.timelines import _needing_others
from tests.unit.web.conftest import client_of
from tests.unit.web.histories import XSS, asked_at_end, faults_of, heading_of, main_of, takes, title_of
from tests.unit.web.histories import pages_of as pages_at_end

Deed = Callable[[], Awaitable[Any]]
START, UNTIL = "2026-10-23T00:00:00Z", "2026-10-23T12:07:00Z"


def shop(**policies: Any) -> Everytick:
    """Return an application with a job of ten minutes at every hour."""
    tick = Everytick("memory://", name="shop", timezone="Europe/Berlin")

    @tick.job("0 * * * *", name="orders", task_timeout="5h", **policies)
    async def orders() -> None:
        await takes(minutes=10)

    return tick


def failing(
    tick: Everytick, name: str = "etl", text: str = "the supplier's file is empty", **policies: Any
) -> Everytick:
    """Return the application with a job that fails every hour."""

    @tick.job("30 * * * *", name=name, **policies)
    async def etl() -> None:
        await takes(seconds=30)
        raise ValueError(text)

    return tick


def told(**more: Any) -> NodeFacts:
    """Return what a node of four slots says of itself."""
    begun = ManualClock("2026-10-23T00:00:00Z").now
    return NodeFacts("1", "3.11", "2026b", "host", 1, 4, ("default",), begun, **more)


def pages_of(tick: Everytick, *paths: str, at: Mapping[str, Deed] | None = None, **more: Any) -> list[str]:
    """Return these pages as they are at the end, when a node of four slots has just beaten."""

    async def beat() -> None:
        store = await tick._opened()
        needs = tuple({record.job.needs for record in await store.list()})
        await store.beat("node-a", (), told(met=needs))

    given = {"start": START, "until": UNTIL, **more}
    return pages_at_end(tick, *paths, at={**(at or {}), "2026-10-23T12:06:50Z": beat}, **given)


def lines_of(page: str) -> list[str]:
    """Return what needs a look, each line as a person reads it."""
    lines = re.findall(r'<li><svg class="g [^"]*"[^>]*>.*?</svg>(<a class="name".*?)<span class="actions">', page)
    return [re.sub(r"\s+", " ", re.sub("<.*?>", " ", line)).strip() for line in lines]


def tiles_of(page: str) -> list[tuple[str, str, str]]:
    found = re.findall(r"<dt><svg.*?</svg>(.*?)</dt><dd>(.*?)</dd><dd class=\"more\">(.*?)</dd>", page)
    return [(name, re.sub("<.*?>", "", number), more) for name, number, more in found]


def lane_of(page: str, name: str) -> str:
    """Return the markup of a lane."""
    return page.split(f'<li data-lane="{name}"', 1)[1].split("</li>", 1)[0]


# ------------------------------------------------------------------------------------------ the sentence, the tiles


def test_a_fleet_without_trouble_is_said_to_be_well_and_shows_no_colour_of_alarm() -> None:
    [page] = pages_of(shop(), "/")

    assert heading_of(page) == "The one job is well."
    assert title_of(page) == "The one job is well · everytick"
    assert "Needs a look" not in page
    assert not re.search(r'class="tile is-|class="n (wrong|look)"|m-wrong|m-look', main_of(page))
    assert faults_of(page) == []


def test_five_numbers_lead_to_what_they_count() -> None:
    [page] = pages_of(failing(shop()), "/")

    assert tiles_of(page) == [
        ("Running", "1 of 4 slots", "nothing waits"),
        ("Late", "0", "nothing is overdue"),
        ("Failed, 24 h", "12 of 24", "1 not made good since"),
        ("Next in", "23 min", "etl, then 1 at 15:00"),
        ("Nodes", "2 live", "clocks within 0 ms"),
    ]
    failed = "/history?status=failed&amp;status=failed_stale"
    for path in ("/history?status=running", failed, "/agenda", "/nodes"):
        assert f'href="{path}"' in page


# ------------------------------------------------------------------------------------------------ what needs a look


def test_a_failure_is_one_line_until_the_next_run_is_good() -> None:
    [page] = pages_of(failing(shop()), "/")

    assert heading_of(page) == "One job needs a look."
    assert "The other job is on time." in page
    assert lines_of(page) == ["etl failed 12 times, last: ValueError: the supplier&#39;s file is empty 36 min ago"]
    assert re.search(r'href="/occurrences/occ_[^"]+/do/replay" aria-label="Replay etl"', page)
    assert '<span class="n wrong">1<' in page


def test_failures_of_one_cause_are_one_line() -> None:
    tick = failing(failing(failing(shop(), "eu"), "us"), "asia")
    [page] = pages_of(tick, "/")

    assert heading_of(page) == "Three jobs need a look."
    [line] = lines_of(page)
    assert line.startswith("3 jobs failed alike , 36 times: ValueError: the supplier&#39;s file is empty")
    assert "asia, eu and 1 more" in line


def test_a_run_that_takes_much_longer_than_usual_needs_a_look() -> None:
    tick = Everytick("memory://", name="shop")
    runs = iter(range(100))

    @tick.job("0 * * * *", name="reindex", task_timeout="9h")
    async def reindex() -> None:
        await takes(minutes=10 if next(runs) < 9 else 300)

    [page] = pages_of(tick, "/")

    assert lines_of(page)[0].startswith("reindex running for 2 h 07 min ; usually 10 min")
    assert 'class="w-look"' in lane_of(page, "reindex")
    assert "do/cancel" in page


def test_what_waits_for_its_turn_is_late() -> None:
    tick = Everytick("memory://", name="shop", slots=1)

    @tick.job("50 11 * * *", name="long", task_timeout="5h")
    async def long() -> None:
        await takes(hours=2)

    @tick.job("0 * * * *", name="waits")
    async def waits() -> None: ...

    [page] = pages_of(tick, "/")

    assert any(line.startswith("waits waits for 7 min") for line in lines_of(page))
    assert ("Late", "1", "waits, by 7 min") in tiles_of(page)
    assert 'class="m-wait"' in lane_of(page, "waits")


def test_missed_instants_are_one_line_and_marks_in_their_lane() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("*/15 9 * * *", name="scan", recovery="mark_as_missed")
    async def scan() -> None:
        await takes(minutes=1)

    outages = (("2026-10-23T09:10:00Z", "2026-10-23T10:10:00Z"),)
    [page] = pages_of(tick, "/?w=15h", outages=outages)

    assert any(line.startswith("scan missed 3 instants") for line in lines_of(page))
    assert "missed: " in lane_of(page, "scan")
    assert "#missed" in lane_of(page, "scan")


def test_missed_instants_leave_the_list_when_the_next_run_is_good_and_stay_in_the_lane() -> None:
    """The page of the job says that it is well by then."""
    tick = Everytick("memory://", name="shop")

    @tick.job("*/15 * * * *", name="scan", recovery="mark_as_missed")
    async def scan() -> None:
        await takes(minutes=1)

    now, job = pages_of(tick, "/?w=15h", "/jobs/scan", outages=(("2026-10-23T09:10:00Z", "2026-10-23T09:50:00Z"),))

    assert not any(line.startswith("scan") for line in lines_of(now))
    assert "#missed" in lane_of(now, "scan")
    assert heading_of(job).startswith("scan is well")


def test_an_instant_that_was_moved_into_an_outage_is_missed_on_every_page() -> None:
    """It is an occurrence of its own: the line of Now alone looked for those."""
    tick = Everytick("memory://", name="shop", timezone="UTC")
    tick.job("0 9 * * *", name="scan", recovery="mark_as_missed")(takes_a_second)

    async def move() -> None:
        await tick.move("scan", "2026-10-23T09:00:00Z", "2026-10-23T09:30:00Z")

    now, listed, missed = pages_of(
        tick,
        "/?w=15h",
        "/jobs",
        "/jobs?state=missed",
        start="2026-10-23T08:00:00Z",
        at={"2026-10-23T08:30:00Z": move},
        outages=(("2026-10-23T09:10:00Z", "2026-10-23T10:10:00Z"),),
    )

    assert any(line.startswith("scan missed 1 instant") for line in lines_of(now))
    assert ("Failed, 24 h", "0 of 1", "nothing failed, 1 job missed instants") in tiles_of(now)
    assert heading_of(listed) == "1 job; 1 needs a look."
    assert "missed 1 instant, last 2 h" in missed


def outage_of(count: int, *paths: str, **more: Any) -> list[str]:
    """Return pages of so many jobs of which each misses an instant, where a run is too short for a lane."""
    tick = Everytick("memory://", name="shop", timezone="UTC")
    for number in range(count):
        tick.job("0 9 * * *", name=f"quick-{number}", recovery="mark_as_missed", tags=["a"])(takes_a_second)
    outages = (("2026-10-23T08:50:00Z", "2026-10-23T09:50:00Z"),)
    return pages_of(tick, *paths, outages=outages, start="2026-10-23T08:00:00Z", **more)


async def takes_a_second() -> None:
    await takes(seconds=1)


async def takes_half_an_hour() -> None:
    await takes(minutes=30)


def test_an_outage_is_told_though_no_missed_job_would_have_a_lane() -> None:
    """A miss was looked for in the lanes alone, and was no reason for one: the page said that all jobs are well."""
    now, listed, missed = outage_of(40, "/?w=15h", "/jobs", "/jobs?state=missed")

    assert heading_of(now) == "40 jobs need a look."
    [line] = lines_of(now)
    assert line.startswith("40 jobs missed 40 instants : no node was up in time")
    assert 'data-lane="quick-' in now
    assert "of them need a look" in now
    assert ("Failed, 24 h", "0 of 0", "nothing failed, 40 jobs missed instants") in tiles_of(now)
    assert heading_of(listed) == "40 jobs; 40 need a look."
    assert "missed 1 instant, last 3 h ago" in missed


def test_a_miss_is_told_for_twelve_hours() -> None:
    [page] = outage_of(3, "/?w=15h", until="2026-10-23T21:10:00Z")

    assert "missed 3 instants" not in page


def partly(tick: Everytick, name: str, **policies: Any) -> Everytick:
    """Return the application with a job of which one of two tasks fails each hour."""
    job = tick.define(name, "20 * * * *", failure="continue", **policies)

    @job.task
    async def first() -> None:
        await takes(seconds=5)

    @job.task
    async def second() -> None:
        raise ValueError("half of it is missing")

    return tick


def test_ends_with_errors_are_a_line_of_their_own_for_each_cause() -> None:
    """They were counted as failed, and then said to be made good since, while no line told of them."""
    page, jobs = pages_of(partly(partly(failing(shop()), "one"), "two"), "/", "/jobs")

    assert heading_of(page) == "Three jobs need a look."
    failed, errors = lines_of(page)
    assert failed.startswith("etl failed 12 times")
    assert errors.startswith("2 jobs completed with errors alike , 24 times:")
    assert "half of it is missing ; one and two" in errors
    assert 'href="/history?status=completed_with_errors"' in page
    assert ("Failed, 24 h", "12 of 48", "1 not made good since, 24 with errors") in tiles_of(page)
    assert heading_of(jobs) == "4 jobs; 3 need a look."
    assert "#completed_with_errors" in lane_of(page, "one")


def test_an_end_with_errors_is_amber_and_a_good_run_ends_it() -> None:
    tick = partly(shop(), "one")
    [page] = pages_of(tick, "/")

    assert '<span class="n look">1<' in page
    assert ("Failed, 24 h", "0 of 24", "nothing failed, 12 with errors") in tiles_of(page)
    assert 'class="tile is-look"' in page
    assert 'class="tile is-wrong"' not in page


def test_a_run_that_is_good_at_the_second_attempt_needs_no_look() -> None:
    tick = shop()

    @tick.job("0 * * * *", name="flaky", retry=Retry(2, "1m"))
    async def flaky(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ConnectionError("away")

    [page] = pages_of(tick, "/")

    assert heading_of(page) == "All 2 jobs are well."


def test_a_failure_stays_while_the_next_run_is_tried_again() -> None:
    """The line was gone as long as an attempt of the next run had failed and the run had not ended."""
    tick = shop()

    @tick.job("0 2,8,14 * * *", name="etl", retry=Retry(1, "10m"))
    async def etl() -> None:
        raise ConnectionError("away")

    now, jobs = pages_of(tick, "/", "/jobs")

    assert heading_of(now) == "One job needs a look."
    assert heading_of(jobs) == "2 jobs; 1 needs a look."


def test_a_job_is_told_with_the_error_that_it_ended_with_last() -> None:
    """It was told with an older one of its errors, if another job had failed alike since."""
    tick = shop()

    @tick.job("0 9,12 * * *", name="etl", timezone="UTC")
    async def etl(ctx: Context) -> None:
        raise ValueError("the disk is full" if ctx.scheduled_for.hour == 9 else "there is no table")

    @tick.job("5 12 * * *", name="import", timezone="UTC")
    async def imports() -> None:
        raise ValueError("the disk is full")

    [page] = pages_of(tick, "/")

    assert lines_of(page) == [
        "import failed : ValueError: the disk is full 1 min ago",
        "etl failed : ValueError: there is no table 6 min ago",
    ]


def test_a_line_of_one_job_leads_to_its_own_run() -> None:
    """The newest failure of a kind may be of another job, which is good again: its run would be replayed."""
    tick = shop()

    @tick.job("30 11 * * *", name="bad")
    async def bad() -> None:
        raise ValueError("the supplier's file is empty")

    @tick.job("45 * * * *", name="good-again")
    async def mends(ctx: Context) -> None:
        if ctx.scheduled_for.hour < 11:
            raise ValueError("the supplier's file is empty")

    now, history = pages_of(tick, "/", "/history?job=bad&status=failed")
    replayed = re.search(r"/occurrences/(occ_[^/]+)/do/replay", now)

    assert lines_of(now) == ["bad failed : ValueError: the supplier&#39;s file is empty 2 h ago"]
    assert replayed is not None
    assert replayed[1] in history


@pytest.mark.parametrize("days", [0, 2])
def test_a_line_leads_to_the_failure_and_not_to_the_run_that_was_canceled_since(days: int) -> None:
    """Of one kind with other jobs, or of a day before yesterday, the canceled run would be opened and replayed."""
    tick, failed = shop(), datetime(2026, 10, 23, 9, 30, tzinfo=UTC) - timedelta(days=days)

    @tick.job("30 9,11 * * *", name="bad", timezone="UTC", start=failed.isoformat(), task_timeout="2h")
    async def bad(ctx: Context) -> None:
        if ctx.scheduled_for != failed:
            await takes(hours=1)
        raise ValueError("the supplier's file is empty")

    @tick.job("45 * * * *", name="good-again")
    async def mends(ctx: Context) -> None:
        if ctx.scheduled_for.hour < 11:
            raise ValueError("the supplier's file is empty")

    async def cancel() -> None:
        for run in await tick.history("bad", status="running"):
            await tick.cancel(run.id, reason="too long")

    stops = {failed + timedelta(hours=2 * number, minutes=10) for number in range(1, 12 * days + 2)}
    at = {f"{moment:%Y-%m-%dT%H:%M:%SZ}": cancel for moment in sorted(stops) if moment.hour in (9, 11)}
    start = f"{failed - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    now, history = pages_of(tick, "/", "/history?job=bad&status=failed&w=7d", at=at, start=start)
    [opened] = re.findall(r'<a class="name" href="/occurrences/(occ_[^"/]+)"', now)

    assert [line.partition(" : ")[0] for line in lines_of(now)] == ["bad failed"]
    assert opened in history


def test_a_job_that_is_due_and_not_planned_is_late_wherever_late_ones_are_counted() -> None:
    """The number said that nothing is overdue, above the line that said it and beside a list that had it."""
    until = "2026-10-23T12:06:55Z"
    outages = (("2026-10-23T09:30:00Z", until),)
    now, late = pages_of(shop(), "/", "/jobs?state=late", until=until, outages=outages)

    assert lines_of(now)[0] == "orders is due, and no node has planned it since 12:00"
    assert ("Late", "1", "orders, by 2 h 07 min") in tiles_of(now)
    assert "late <b>1</b>" in late
    assert "due, not planned, 2 h 07 min late" in late


def test_a_miss_leaves_when_a_backfill_has_made_up_for_it() -> None:
    """It stayed for twelve hours, while the history of the job had nothing that was missed."""
    tick = Everytick("memory://", name="shop", timezone="UTC")

    @tick.job("0 */4 * * *", name="etl", recovery="mark_as_missed")
    async def etl() -> None:
        await takes(minutes=1)

    async def look() -> None:
        jobs = await job_list(tick, await Board(tick, KnownJobs(tick)).fleet(), JobFilter())
        [[_, facts]] = jobs.jobs
        states.append(facts[0])

    async def make_up() -> None:
        await look()
        await tick.backfill("etl", "2026-10-23T04:00:00Z", "2026-10-23T08:00:00Z")

    states: list[str] = []
    outages = (("2026-10-23T07:30:00Z", "2026-10-23T09:10:00Z"),)
    at = {"2026-10-23T09:20:00Z": make_up, "2026-10-23T09:40:00Z": look}
    [past] = pages_of(tick, "/history?status=missed", at=at, outages=outages)

    assert heading_of(past) == "Nothing in 24 h."
    assert states == ["missed", "fine"]


def test_what_is_made_up_for_or_done_again_is_not_late() -> None:
    """A backfill of 20 October, asked for on the 23rd, was told as three days late: on this page, and in the list."""
    tick = Everytick("memory://", name="shop", timezone="UTC")

    @tick.job("0 * * * *", name="etl", overlap="allow", task_timeout="5h")
    async def etl(ctx: Context) -> None:
        await takes(minutes=2 if ctx.cause == "schedule" else 30)

    async def make_up() -> None:
        await tick.backfill("etl", "2026-10-20T00:00:00Z", "2026-10-20T01:00:00Z")
        [old] = await tick.history("etl", through="2026-10-23T01:00:00Z", after="2026-10-23T00:00:00Z")
        await tick.replay(old.id, reason="the supplier has corrected it")

    now, table, late = pages_of(tick, "/", "/timeline", "/jobs?state=late", at={"2026-10-23T12:05:00Z": make_up})

    assert tiles_of(now)[0][:2] == ("Running", "2 of 4 slots")
    assert ("Late", "0", "nothing is overdue") in tiles_of(now)
    assert heading_of(now) == "The one job is well."
    assert " late" not in main_of(table)
    assert "No job is late" in late


def troubled() -> Everytick:
    """Return an application with a good job, one of each kind that needs a look, and one to be paused."""
    tick = partly(failing(shop()), "partly")
    tick.job("*/15 9 * * *", name="scan", recovery="mark_as_missed")(takes_a_second)
    tick.job("0 * * * *", name="late", task_timeout="5h")(takes_half_an_hour)
    tick.job("0 * * * *", name="quiet")(takes_a_second)
    return tick


def rows_of(page: str) -> list[str]:
    """Return the names of the jobs in the table of jobs, in order."""
    return re.findall(r'<span class="name">(.*?)</span>', page.split("<tbody>")[1])


def chips_of(page: str) -> dict[str, int]:
    """Return the chips above a table with their counts."""
    found = re.findall(r'<a class="chip"[^>]*>(?:<svg.*?</svg>)?(\w+) <b>([\d,]+)</b>', page)
    return {name: int(count.replace(",", "")) for name, count in found}


def test_pages_of_one_fleet_agree() -> None:
    """The heading, the tiles, the lines, the lanes, the chips, the rows and the pages of the jobs say the same."""
    tick = troubled()

    async def brake() -> None:
        await tick.pause("quiet", reason="quarter end", by="ada")
        await tick.brake("job:late")

    async def release() -> None:
        await tick.release("job:late", at_once=True)

    states = {"etl": "failed", "late": "late", "partly": "completed_with_errors", "scan": "missed"}
    paths = ["/?w=15h", "/jobs", *(f"/jobs?state={state}" for state in states.values())]
    paths += [f"/jobs/{name}" for name in (*states, "quiet", "orders")]
    paths += ["/history?status=failed&status=failed_stale", "/history?status=completed_with_errors"]
    at = {"2026-10-23T11:50:00Z": brake, "2026-10-23T12:05:40Z": release}
    outages = (("2026-10-23T07:10:00Z", "2026-10-23T08:10:00Z"),)
    pages = dict(zip(paths, pages_of(tick, *paths, at=at, outages=outages), strict=True))
    now, jobs, tiles = pages["/?w=15h"], pages["/jobs"], {each[0]: each[1:] for each in tiles_of(pages["/?w=15h"])}
    failed, errors = (pages[path].split("<tbody>")[1].count("<tr") for path in paths[-2:])

    assert heading_of(now) == "Four jobs and one node need a look."
    assert {line.split()[0] for line in lines_of(now)} - states.keys() == {silent_node(now)}
    assert heading_of(jobs) == "6 jobs; 4 need a look, 1 is paused."
    assert chips_of(jobs) == {"all": 6, "running": 2, "paused": 1, **dict.fromkeys(states.values(), 1)}
    assert set(rows_of(jobs)[:4]) == states.keys()
    for name, state in states.items():
        assert rows_of(pages[f"/jobs?state={state}"]) == [name]
        assert f"#{state}" in lane_of(now, name)
        assert " is well" not in heading_of(pages[f"/jobs/{name}"])
    assert [heading_of(pages[path]).partition(";")[0] for path in paths[6:12]] == [
        "etl failed at 13:30",
        "late has been running since 14:05",
        "partly completed with errors at 13:20",
        "scan missed its run at 09:45",
        "quiet is paused",
        "orders has been running since 14:00",
    ]
    assert tiles["Late"] == ("1", "late, by 5 min 40 s")
    assert tiles["Failed, 24 h"][0].split()[0] == str(failed)
    assert tiles["Failed, 24 h"][1] == f"1 not made good since, {errors} with errors, 1 job missed instants"


def silent_node(page: str) -> str:
    """Return the name of the node that ended before the outage of a simulation."""
    [line] = [line for line in lines_of(page) if " is silent " in line]
    return line.split()[0]


def test_a_broken_promise_is_a_line() -> None:
    [page] = pages_of(failing(shop(), success_within="2h"), "/")

    assert any(line.startswith("etl broke its promise success within") for line in lines_of(page))


def test_the_lane_of_a_broken_promise_has_its_mark() -> None:
    tick = Everytick("memory://", name="shop")
    tick.job("0 0 1 1 *", name="quiet", success_within="2h")(lambda: None)
    [page] = pages_of(tick, "/")

    assert "#promise" in lane_of(page, "quiet")
    assert "#fine" not in lane_of(page, "quiet")


def test_brakes_and_limits_that_hold_are_lines() -> None:
    tick = shop()

    async def brake() -> None:
        await tick.brake("tag:etl", reason=XSS, by="ada")

    [page] = pages_of(tick, "/", at={"2026-10-23T11:00:00Z": brake})

    assert heading_of(page) == "One brake needs a look."
    assert lines_of(page)[0].startswith("tag:etl is braked: nothing of it starts , by ada")
    assert 'href="/do/release?reach=tag%3Aetl"' in page
    assert faults_of(page) == []


def test_a_change_that_waits_for_approval_is_a_line() -> None:
    tick = shop(protected="two_people")

    async def propose() -> None:
        with pytest.raises(NeedsApproval):
            await tick.disable("orders", by="ada", confirmed=True)

    [page] = pages_of(tick, "/", at={"2026-10-23T11:00:00Z": propose})

    assert heading_of(page) == "One change needs a look."
    assert "waits for approval" in lines_of(page)[0]
    assert "1 job" in page.split("Timeline</h2>")[1].split("</span>")[0]


def test_a_silent_node_and_a_broken_file_are_lines() -> None:
    tick = shop()

    async def beat() -> None:
        store = await tick._opened()
        await store.beat("node-17", (), told())

    async def break_file() -> None:
        store = await tick._opened()
        file = "/srv/everytick/a-rather-long-name-of-a-folder/jobs/reports.yaml"
        broken = ((file, f"{file}:12:5: {XSS}\n{file}:14:1: no job"),)
        facts = told(broken_files=broken, stale_jobs=(("a", file),))
        await store.beat("node-18", (), facts)

    deeds = {"2026-10-23T11:00:00Z": beat, "2026-10-23T12:06:55Z": break_file}
    [page] = pages_of(tick, "/", at=deeds)

    assert heading_of(page) == "One file and one node need a look."
    lines = lines_of(page)
    assert any(line.startswith("node-17 is silent") for line in lines)
    assert any(line.startswith("reports.yaml cannot be read : 2 mistakes, line 12, column 5") for line in lines)
    assert "/srv/everytick" not in page
    assert any("1 job goes on as before" in line for line in lines)
    assert faults_of(page) == []


def test_a_broken_file_is_named_within_the_folder_that_is_watched_here(tmp_path: Path) -> None:
    tick = shop()
    tick.jobs_folder = tmp_path

    async def break_file() -> None:
        file = str(tmp_path / "billing/reports.yaml")
        await (await tick._opened()).beat("node-a", (), told(broken_files=((file, f"{file}:9:5: no such key"),)))

    [page] = pages_of(tick, "/", at={"2026-10-23T12:06:55Z": break_file})

    said = "billing/reports.yaml cannot be read : line 9, column 5: no such key"
    assert said in lines_of(page)


def crowd(count: int, **policies: Any) -> Everytick:
    """Return an application with so many jobs that all take two hours from 11:50 on, and usually a minute."""
    tick = Everytick("memory://", name="shop", timezone="UTC", slots=policies.pop("slots", 80))

    async def work(ctx: Context) -> None:
        is_last = ctx.scheduled_for.hour == 11
        await takes(minutes=120 if is_last else 1)

    for number in range(count):
        tick.job("50 * * * *", name=f"job-{number}", task_timeout="9h", **policies)(work)
    return tick


def test_runs_that_overrun_are_one_line_where_they_are_many() -> None:
    now, listed, filtered = pages_of(crowd(6), "/", "/jobs", "/jobs?state=overrunning")
    few, *_ = pages_of(crowd(3), "/")

    assert [re.sub(r"job-\d", "job-n", line) for line in lines_of(now)] == [
        "6 jobs run far longer than usual ; the longest is job-n, for 17 min since 13:50"
    ]
    assert 'href="/jobs?state=overrunning"' in now
    assert heading_of(now) == "Six jobs need a look."
    assert heading_of(listed) == "6 jobs; 6 need a look."
    assert len(rows_of(filtered)) == 6
    assert len(lines_of(few)) == 3


def test_late_starts_are_one_line_where_they_are_many() -> None:
    now, listed, filtered = pages_of(crowd(7, slots=1), "/", "/jobs", "/jobs?state=late")

    assert any(
        re.match(r"6 jobs are late ; the worst is job-\d, by 17 min since 13:50", line) for line in lines_of(now)
    )
    assert len(lines_of(now)) == 2
    assert heading_of(now) == "Seven jobs need a look."
    assert heading_of(listed) == "7 jobs; 7 need a look."
    assert len(rows_of(filtered)) == 6


def test_while_no_node_lives_nothing_is_said_to_be_late() -> None:
    """The cause is one: no node lives. Each late job had a line of its own, and the list of jobs had other numbers."""
    pages = list[str]()

    async def ask(client: httpx2.AsyncClient) -> None:
        pages.extend([(await client.get(path)).text for path in ("/", "/jobs", "/jobs?state=late")])

    tick = crowd(6)
    outages = (("2026-10-23T11:55:00Z", UNTIL),)
    asked_at_end(tick, ask, start=START, until=UNTIL, outages=outages)
    now, listed, late = pages

    assert heading_of(now) == "No node is live: nothing runs."
    assert [line.split(" 2026")[0] for line in lines_of(now) if "no node is live" not in line] == []
    assert tiles_of(now)[1] == ("Late", "–", "no node is live")
    assert heading_of(listed) == "6 jobs; no node is live."
    assert "No job is late." in late


async def test_without_a_node_nothing_runs_and_the_page_says_so(client: httpx2.AsyncClient) -> None:
    page = (await client.get("/")).text

    assert heading_of(page) == "No node is live: nothing runs."
    assert "start one with everytick run" in page


def test_more_than_four_causes_wait_behind_a_summary() -> None:
    tick = shop()
    for number in range(6):
        failing(tick, f"bad-{number}", f"cause {'abcdef'[number]}")
    [page] = pages_of(tick, "/")

    assert re.search(r"<summary>2 more causes: bad-\d and bad-\d</summary>", page)
    assert len(lines_of(page)) == 6


def test_a_failure_of_a_task_names_the_task_and_what_it_raised() -> None:
    """The error of the occurrence begins with fail-fast, which pushed the cause out of the line."""
    tick = Everytick("memory://", name="shop")
    etl = tick.define("etl", "30 * * * *")

    @etl.task
    async def extract() -> None: ...

    @etl.task(after=["extract"])
    async def load() -> None:
        raise ConnectionError("port 5432 failed")

    [page] = pages_of(tick, "/")

    assert lines_of(page)[0].startswith("etl failed 12 times, last in load: ConnectionError: port 5432 failed")


# ---------------------------------------------------------------------------------------------- what a reader may see


def test_a_viewer_sees_neither_errors_nor_deeds() -> None:
    """S3 of the security checks: errors may hold payloads."""
    tick = failing(shop(), text="customer 12345", tags=["etl"])
    [page] = pages_of(tick, "/", role=Role.VIEWER)
    [granted] = pages_of(
        failing(shop(), text="customer 12345", tags=["etl"]),
        "/",
        role=Role.VIEWER,
        grants=(Grant("etl", Role.OPERATOR),),
    )

    assert "12345" not in page
    assert "/do/" not in page
    assert "12345" in granted
    assert "/do/replay" in granted


# ---------------------------------------------------------------------------------------------------- the timeline


def test_a_lane_shows_what_ran_what_runs_and_what_comes() -> None:
    [page] = pages_of(shop(), "/?w=15h")
    lane = lane_of(page, "orders")

    assert lane.count('class="m-done"') >= 11
    assert lane.count('class="m-present"') >= 1
    assert lane.count('class="m-ghost"') >= 3
    assert 'aria-label="orders: running, next 15:00' in lane
    assert "now 14:06" in page
    assert "Europe/Berlin" in page


def test_windows_are_links_and_the_state_is_the_address() -> None:
    near, far, past = pages_of(shop(), "/?w=1h", "/?w=3d", "/?w=4h&to=2026-10-23T08:00:00Z")

    assert '<a href="/?w=1h" aria-current="true">1 h</a>' in near
    assert '<a href="/?w=3d" aria-current="true">3 d</a>' in far
    assert "nowchip" not in past
    assert re.search(r'href="/\?w=4h&amp;to=2026-10-23T06[^"]*" aria-label="earlier"', past)


def test_a_paused_job_shows_what_will_not_run_and_why() -> None:
    tick = shop()

    async def pause() -> None:
        await tick.pause("orders", reason="quarter end", by="ada")

    [page] = pages_of(tick, "/?w=15h", at={"2026-10-23T11:30:00Z": pause})
    lane = lane_of(page, "orders")

    assert 'class="m-ghost paused"' in lane
    assert "will be skipped: paused by ada (quarter end)" in lane
    assert "paused</span>" in lane


def many() -> Everytick:
    """Return an application with forty quick jobs of two tags, and one that is long."""
    tick = shop(tags=["long"])
    for number in range(40):

        @tick.job(every("20m"), name=f"quick-{number}", tags=["feeds" if number % 2 else "mail"])
        async def quick() -> None:
            await takes(seconds=1)

    return tick


def test_jobs_without_a_lane_stand_in_bands_that_open() -> None:
    page, opened = pages_of(many(), "/?w=15h", "/?w=15h&open=feeds", start="2026-10-23T08:00:00Z")

    assert "1 of 41 jobs have a lane of their own" in page
    assert page.count('class="group"') == 2
    assert 'href="/?w=15h&amp;open=feeds"' in page
    assert "20 jobs" in lane_of(page, "feeds")
    assert 'class="b-soft"' in lane_of(page, "feeds")
    assert 'class="b-ghost"' in lane_of(page, "feeds")
    assert opened.count('data-lane="quick-') == 20
    assert "all bands" in opened


async def test_a_band_has_the_mark_of_its_first_cause() -> None:
    """A job that had failed and missed instants stood behind one that is late, and their band was called late."""
    tick = Everytick("memory://", name="shop")
    for name in ("failed", "late"):
        tick.job(every("1d"), name=name, tags=["feeds"])(lambda: None)
    await tick.sync()
    view = await view_of(Board(tick, KnownJobs(tick)), NowAsked())
    failed, late = [view.fleet.ids[name] for name in ("failed", "late")]
    looks = (
        LookLine("failed", "failed", "failed", "/", jobs=(failed,)),
        LookLine("late", "late", "waits", "/", jobs=(late,)),
        LookLine("missed", "2 jobs", "missed 2 instants", "/", jobs=(late, failed)),
    )
    await tick.close()

    assert _needing_others(replace(view, job_ids=(), looks=looks)) == [("feeds", "failed"), ("feeds", "late")]


def test_a_pinned_job_has_a_lane() -> None:
    [page] = pages_of(many(), "/?w=15h&k=quick-7", start="2026-10-23T08:00:00Z")

    assert 'data-lane="quick-7"' in page
    assert "k=quick-7" in page.split('aria-label="Window"')[1]


def test_a_busy_lane_is_a_band_of_its_starts() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job(every("20s"))
    async def pulse() -> None: ...

    [page] = pages_of(tick, "/?w=4h", start="2026-10-23T11:00:00Z")

    assert 'class="b-soft"' in lane_of(page, "pulse")
    assert "<rect" not in lane_of(page, "pulse")
    assert len(page) < 40_000


def test_a_young_fleet_is_shown_in_a_short_window() -> None:
    [page] = pages_of(shop(), "/", start="2026-10-23T11:55:00Z")

    assert '<a href="/?w=1h" aria-current="true">1 h</a>' in page


# ---------------------------------------------------------------------------------------------- the table, fragments


def test_the_same_as_a_table_and_as_csv() -> None:
    table, text = pages_of(failing(shop()), "/timeline?w=4h", "/timeline.csv?w=4h")
    rows = list(csv.DictReader(io.StringIO(text)))

    assert "now, 14:06: what follows is planned" in table
    assert faults_of(table) == []
    assert {row["status"] for row in rows} == {"completed", "failed", "running", "planned"}
    failed = [row for row in rows if row["status"] == "failed"]
    assert all(row["instant"] >= "2026-10-23T08:54" for row in rows)
    assert failed[0]["instant"] == "2026-10-23T09:30:00Z"
    assert (failed[0]["took"], failed[0]["why"]) == ("30.000", "ValueError: the supplier's file is empty")
    assert table.count("</tr>") == len(rows) + 2


@pytest.mark.parametrize("text", ["=cmd()", "+1", "@x"])
def test_no_cell_of_the_csv_is_a_formula(text: str) -> None:
    from everytick.web.timeline_table import TableRow, written_csv

    row = TableRow(ManualClock().now, "job", "failed", why=text)

    assert f"'{text}" in written_csv([row])


def test_a_lane_alone_fits_into_the_page_that_asks() -> None:
    found: list[str] = []

    async def ask(client: httpx2.AsyncClient) -> None:
        page = (await client.get("/?w=15h")).text
        figure = re.search(r'data-after="([\d.]+)" data-through="([\d.]+)"', page)
        assert figure is not None
        lane = await client.get(f"/lanes/orders?after={figure[1]}&through={figure[2]}")
        unknown = await client.get(f"/lanes/nothing?after={figure[1]}&through={figure[2]}")
        found.extend((lane_of(page, "orders"), lane_of(lane.text, "orders")))
        assert unknown.status_code == 404

    asked_at_end(shop(), ask, start=START, until=UNTIL)

    assert found[0] == found[1]


def test_a_page_that_has_not_changed_is_only_confirmed() -> None:
    async def ask(client: httpx2.AsyncClient) -> None:
        first = await client.get("/?w=15h")
        again = await client.get("/?w=15h", headers={"if-none-match": first.headers["etag"]})
        other = await client.get("/?w=4h", headers={"if-none-match": first.headers["etag"]})
        dark = {"if-none-match": first.headers["etag"], "cookie": "everytick_theme=dark"}
        assert (again.status_code, again.content) == (304, b"")
        assert other.status_code == 200
        assert (await client.get("/?w=15h", headers=dark)).status_code == 200

    asked_at_end(shop(), ask, start=START, until=UNTIL)


# -------------------------------------------------------------------------------------------------- empty, and away


class Asked:
    """Passes everything on to a store, and counts what pages ask; once it is gone, nothing is answered."""

    def __init__(self, store: MemoryStore) -> None:
        self._store, self.questions, self.is_gone = store, list[str](), False

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)
        if name not in ("now", "list", "nodes", "limits", "look", "spans", "ask", "breaches"):
            return verb

        async def asking(*given: Any, **more: Any) -> Any:
            if self.is_gone:
                raise StoreUnavailable("postgresql://db", "connection refused")
            self.questions.append(name)
            return await verb(*given, **more)

        return asking


@pytest.fixture
def store() -> Asked:
    return Asked(MemoryStore(ManualClock("2026-10-23T12:07:00Z")))


async def test_a_page_asks_the_store_eight_questions_at_most(store: Asked) -> None:
    tick = Everytick(store, name="shop")

    @tick.job("0 * * * *")
    def orders() -> None: ...

    await tick.sync()
    async with client_of(tick) as asking:
        store.questions.clear()
        assert (await asking.get("/")).status_code == 200

    questions = [each for each in store.questions if each != "now"]
    assert len(questions) <= 8, questions
    await tick.close()


async def test_the_time_without_a_node_is_told_and_hatched() -> None:
    clock = ManualClock("2026-10-23T12:07:00Z")
    store = MemoryStore(clock)
    tick = Everytick(store, name="shop")

    @tick.job("0 * * * *")
    def orders() -> None: ...

    await tick.sync()
    await store.beat("node-a", (), told())
    await store.leave("node-a")
    clock.advance("37m")
    begun = clock.now
    clock.advance("1m")
    await store.beat("node-b", (), replace(told(), started_at=begun))
    async with client_of(tick) as asking:
        page = (await asking.get("/?w=15h")).text
    await tick.close()

    assert "No node was up from 12:07 to 12:44; everything due then is decided." in page
    assert '<rect class="w-rest" x="' in page.split('<div class="under"')[1].split("</div>")[0]


async def test_while_the_store_is_away_the_last_picture_is_kept(store: Asked) -> None:
    tick = Everytick(store, name="shop")

    @tick.job("0 * * * *", on_store_outage="fire_local", overlap="allow")
    def orders() -> None: ...

    await tick.sync()
    async with client_of(tick) as asking:
        before = await asking.get("/?w=15h")
        await asking.get("/?w=1h")
        store.is_gone = True
        away = await asking.get("/?w=15h")
        store.is_gone = False
        back = await asking.get("/?w=15h")
    await tick.close()

    assert before.status_code == back.status_code == 200
    assert (away.status_code, away.headers["retry-after"]) == (503, "5")
    assert heading_of(away.text) == "Known until 12:07:00; jobs may be running."
    assert "connection refused" in away.text
    assert 'data-lane="orders"' in away.text
    assert 'data-w="15h"' in away.text
    assert "orders: on_store_outage is fire_local" in away.text
    assert "/do/" not in away.text
    assert "Trigger a job" not in away.text
    assert faults_of(away.text) == []


async def test_a_store_that_never_answered_is_told_without_a_picture() -> None:
    tick = Everytick("sqlite:////dev/null/there-is-no-folder/everytick.db", name="shop")
    async with client_of(tick) as asking:
        away = await asking.get("/", headers={"accept": "text/html"})

    assert away.status_code == 503
    assert heading_of(away.text) == "The store does not answer."
    assert "data-lane" not in away.text


async def test_before_the_first_job_the_page_says_what_is_ready_and_how_to_go_on() -> None:
    tick = Everytick("memory://", name="shop")
    async with client_of(tick) as asking:
        without = (await asking.get("/")).text
        await tick.start()
        with_node = (await asking.get("/")).text
        await tick.stop()

    assert heading_of(without) == "No job yet, and no node to run one."
    assert heading_of(with_node) == "No job yet. Everything else is ready."
    for text in ("In Python", "jobs/first.yaml", "everytick import crontab", "Schedule lab", "your first job"):
        assert text in with_node
    assert faults_of(with_node) == []


async def test_answers_are_kept_as_long_as_they_are_dear(store: Asked) -> None:
    """Twenty open pages must not ask twenty times as much."""
    tick = Everytick(store, name="shop")

    @tick.job("0 * * * *")
    def orders() -> None: ...

    await tick.sync()
    known = KnownJobs(tick, cheap=0.0)
    board = Board(tick, known)
    await board.fleet()
    store.questions.clear()
    await board.fleet()
    kept = store.questions.count("list")
    known.forget()
    await board.fleet()
    await tick.close()

    assert (kept, store.questions.count("list")) == (0, 1)


def test_the_page_stays_within_its_budget() -> None:
    """Budgets of the design: 120 KB of HTML, and an axis that ends."""
    tick = shop()
    for number in range(23):

        @tick.job("*/10 * * * *", name=f"often-{number}")
        async def often() -> None:
            await takes(minutes=4)

    [page] = pages_of(tick, "/?w=15h", start="2026-10-23T03:00:00Z")

    assert page.count("data-lane=") == 24
    assert len(page.encode()) < 120_000


def test_a_broken_promise_is_told_on_the_readers_clock() -> None:
    """All times of a page are those of the viewer's zone."""
    [page] = pages_of(failing(shop(success_within="1h"), success_within="2h"), "/")
    [line] = [each for each in lines_of(page) if "promise" in each]

    assert "no success since" in line
    assert not re.search(r"\d{4}-\d\d-\d\dT", line), line


@pytest.mark.parametrize("moment", ["0002-01-01T00:00:00Z", "9998-12-31T23:59:59Z", "2036-10-20T00:00:00Z"])
def test_a_picture_of_another_age_costs_no_more_than_one_of_today(moment: str) -> None:
    """S8, S20: the steps of a busy lane were counted from now on to the end of the calendar, and the service hung."""
    tick = Everytick("memory://", name="shop")

    @tick.job("* * * * *", name="busy")
    async def busy() -> None: ...

    began = time.process_time()
    pages = pages_of(tick, f"/?w=3d&to={moment}", f"/timeline?to={moment}", start="2026-10-23T11:30:00Z")

    assert time.process_time() - began < 5
    assert "busy" in pages[0]


def test_a_picture_of_tomorrow_shows_no_run_of_today() -> None:
    """Runs before its beginning stood at its left edge."""
    [page] = pages_of(shop(), "/?w=1h&to=2026-10-24T12:45:00Z")

    assert lane_of(page, "orders").count('class="m-ghost"') == 1
