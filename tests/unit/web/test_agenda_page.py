"""The agenda page: what comes, by the hour; load, collisions, clock changes; and the plan that spreads them."""

import csv
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from html import unescape
from io import StringIO
from typing import Any

import httpx2
import pytest

from everytick import Everytick, cron, every, schedule
from everytick.deciding.agenda import agenda_of
from everytick.domain.agenda import AgendaJob, FleetAgenda
from everytick.domain.job import define_job
from everytick.domain.questions import JobLengths
from everytick.domain.schedule import Schedule
from everytick.web.agenda_cache import AgendaCache
from everytick.web.agenda_view import SPANS, clock_said, crowd_rows, listed
from everytick.web.framing import zone_named
from everytick.web.known_jobs import KnownJobs
from everytick.web.pages.agenda import week_map
from everytick.web.week_load import by_hour, emptiest, fullest
from everytick.web.words import Viewer
from tests.unit.web.conftest import client_of

NOW = datetime(2026, 10, 23, 12, 7, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def planned(name: str, rule: Schedule, minutes: int = 0) -> AgendaJob:
    """Return a job as the agenda sees it; it usually takes so many minutes."""
    usual = timedelta(minutes=minutes)
    return AgendaJob(define_job(name, rule), None, JobLengths(9, usual, usual, usual) if minutes else None)


def viewer(zone: str = "Europe/Berlin") -> Viewer:
    """Return a viewer in this zone, now."""
    return Viewer(*zone_named(zone), NOW)


def agenda(*jobs: AgendaJob, slots: int = 8) -> FleetAgenda:
    """Return the agenda of these jobs."""
    return agenda_of(jobs, NOW, slots=slots)


# --------------------------------------------------------------------------------------------------- what is listed


def test_the_list_goes_by_the_hours_of_the_viewers_clock() -> None:
    parts = listed(agenda(planned("a", cron("0 13 * * *", tz="UTC"))), viewer(), SPANS["24h"])
    assert [viewer().clock(part.begins) for part in parts] == ["15:00"]
    kathmandu = viewer("Asia/Kathmandu")
    [part] = listed(agenda(planned("a", cron("0 13 * * *", tz="UTC"))), kathmandu, SPANS["24h"])
    assert (kathmandu.clock(part.begins), kathmandu.clock(part.rows[0].at)) == ("18:00", "18:45")


def test_a_job_that_starts_often_is_listed_once_with_how_often() -> None:
    parts = listed(agenda(planned("often", cron("*/15 * * * *", tz="UTC"))), viewer(), SPANS["24h"])
    [row] = [row for part in parts for row in part.rows]
    assert row.often == "every 15 min"
    assert [start.minute for start in row.starts] == [15, 30, 45]


def test_a_job_that_starts_unevenly_is_not_said_to_start_every_so_often() -> None:
    """An hourly job of the day was said to start every 2 h 18 min, the mean of its gaps."""
    jobs = (planned("day", cron("0 8-18 * * *", tz="UTC")), planned("hourly", cron("5 * * * *", tz="UTC")))
    parts = listed(agenda(*jobs), viewer(), SPANS["24h"])
    assert {row.job.job.name: row.often for part in parts for row in part.rows} == {
        "day": "11 starts in 24 h",
        "hourly": "every hour",
    }


def test_a_change_of_the_clock_does_not_change_how_often_a_job_starts() -> None:
    parts = listed(agenda(planned("a", cron("0 */4 * * *", tz="Europe/Berlin"))), viewer(), SPANS["7d"])
    assert [row.often for part in parts for row in part.rows] == ["every 4 h"]


def test_a_full_hour_lists_the_longest_jobs_and_counts_the_others() -> None:
    jobs = [planned(f"job-{n:02}", cron("0 2 * * *", tz="UTC"), minutes=n) for n in range(1, 41)]
    [part] = listed(agenda(*jobs), viewer(), SPANS["24h"])
    assert [row.job.job.name for row in part.rows] == [f"job-{n}" for n in range(35, 41)]
    assert part.more == 34


def test_seven_days_are_listed_by_day() -> None:
    parts = listed(agenda(planned("a", cron("0 9 * * *", tz="Europe/Berlin"))), viewer(), SPANS["7d"])
    assert [viewer().day(part.begins)[:3] for part in parts] == ["Sat", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri"]


def test_the_load_map_follows_the_viewers_zone_and_counts_every_start() -> None:
    found = agenda(planned("a", cron("0 9 * * *", tz="UTC")))
    berlin, kathmandu = (by_hour(found, viewer(zone)).counts for zone in ("Europe/Berlin", "Asia/Kathmandu"))
    assert [day.index(1) for day in berlin] == [10, 10, 10, 10, 10, 11, 10]  # the clock goes back on Sunday
    assert all(day[14] == 1 for day in kathmandu)
    assert fullest(berlin) == (0, 10, 1)


@pytest.mark.parametrize(
    ("zone", "now", "place", "parts", "said"),
    [
        ("Europe/Berlin", "2026-10-23T12:07", (6, 2), (("02:00 CEST", 4), ("02:00 CET", 4)), "Sun 02:00 comes twice"),
        ("Europe/Berlin", "2026-10-25T00:20", (6, 2), (("02:00 CEST", 4), ("02:00 CET", 4)), "Sun 02:00 comes twice"),
        ("Europe/Berlin", "2026-03-27T12:07", (6, 2), (("02:00", None),), "Sun 02:00 is left out"),
        (
            "Australia/Lord_Howe",
            "2026-04-02T12:07",
            (6, 1),
            (("01:00 +11", 4), ("01:30 +1030", 2)),
            "Sun 01:30 comes twice",
        ),
        ("Australia/Lord_Howe", "2026-10-01T12:07", (6, 2), (("02:00", None), ("02:30", 2)), "Sun 02:00 is left out"),
        ("Europe/Berlin", "2026-03-22T01:30", (6, 2), (("02:00", None), ("02:30", 1)), "Sun 02:00 is left out"),
    ],
)
def test_the_load_map_tells_an_hour_that_the_clock_repeats_or_leaves_out(
    zone: str, now: str, place: tuple[int, int], parts: tuple[tuple[str, int | None], ...], said: str
) -> None:
    """Nothing is counted twice, nothing is lost: every other hour of a job of each quarter has four starts."""
    at = datetime.fromisoformat(f"{now}:00+00:00")
    seen = Viewer(*zone_named(zone), at)
    load = by_hour(agenda_of([planned("a", cron("*/15 * * * *", tz="UTC"))], at, slots=8), seen)
    assert load.changed == {place: parts}
    assert load.said == said
    others = {(day, hour): count for day, row in enumerate(load.counts) for hour, count in enumerate(row)}
    assert others.pop(place) == sum(starts or 0 for _, starts in parts)
    assert set(others.values()) == {4}
    assert (fullest(load.peaks), emptiest(load.peaks, load.left_out)) == ((0, 0, 4), None)
    picture = str(week_map(load, seen)["svg"])
    for hour, starts in parts:
        told = "left out, the clock goes forward" if starts is None else starts
        assert f"<title>Sun {hour}: {told}</title>" in picture


@pytest.mark.parametrize("now", ["2026-10-18T00:20", "2026-10-25T01:20", "2026-10-25T12:07"])
def test_a_week_without_its_repeated_hour_is_like_any_other(now: str) -> None:
    """A week ago the repeated hour is not reached; in its second pass, and later, the first is over."""
    at = datetime.fromisoformat(f"{now}:00+00:00")
    found = agenda_of([planned("a", cron("*/15 * * * *", tz="UTC"))], at, slots=8)
    load = by_hour(found, Viewer(*zone_named("Europe/Berlin"), at))
    assert (load.changed, load.said) == ({}, "")
    assert {count for row in load.counts for count in row} == {4}


def test_a_very_busy_schedule_fills_every_hour_of_a_week_in_which_the_clock_changes() -> None:
    found = agenda(planned("a", every("10s")))
    load = by_hour(found, viewer())
    assert all(abs(count - 360) <= 2 for row in load.peaks for count in row)


def test_the_emptiest_hours_go_around_midnight() -> None:
    counts = [[5] * 24 for _ in range(7)]
    for day in counts:
        day[23] = day[0] = 1
    assert emptiest(counts) == (23, 1, 10)
    assert emptiest([[3] * 24] * 7) is None


def test_collisions_of_every_day_are_one_line_and_the_others_have_their_date() -> None:
    daily = [planned(f"d-{n}", cron("0 2 * * *", tz="Europe/Berlin"), 5) for n in range(4)]
    weekly = [planned(f"w-{n}", cron("30 4 * * 0", tz="Europe/Berlin"), 5) for n in range(9)]
    office = [planned(f"o-{n}", cron("0 9 * * 1-5", tz="Europe/Berlin"), 5) for n in range(3)]
    rows = crowd_rows(agenda(*daily, *weekly, *office, slots=2).crowds, viewer())
    assert [row.when for row in rows] == ["Sun 25 Oct 04:30", "every day 02:00", "Mon to Fri 09:00"]
    assert [(row.crowd.waiting, row.crowd.longest) for row in rows] == [
        (7, timedelta(minutes=20)),
        (2, timedelta(minutes=5)),
        (1, timedelta(minutes=5)),
    ]


def test_collisions_within_one_minute_have_their_seconds() -> None:
    """Two rows that say the same minute would look like one that stands there twice."""
    halves = [planned(f"half-{n}", every("30s"), 5) for n in range(3)]

    rows = crowd_rows(agenda(*halves, slots=2).crowds, viewer())

    assert len({row.when for row in rows}) == len(rows) > 1


def test_a_start_in_the_repeated_hour_says_what_becomes_of_it() -> None:
    found = agenda(
        planned("once", cron("30 2 * * *", tz="Europe/Berlin")), planned("utc", cron("30 0 * * *", tz="UTC"))
    )
    at = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert clock_said(at, "once", found.changes) == "comes twice, runs once"
    assert clock_said(at, "utc", found.changes) == ""
    assert clock_said(at + DAY, "once", found.changes) == ""


# ------------------------------------------------------------------------------------------------------- the pages


@pytest.fixture
async def shop() -> AsyncIterator[Everytick]:
    """An application with jobs at nine and one that beats, all of them the API's own but one."""
    made = Everytick("memory://", name="shop")
    for name in ("orders", "bills", "letters<b>"):
        made.job(schedule("cron: 0 9 * * *; spread=1h; offset=0s"), name=name)(lambda: None)
    made.job(every("10s"), name="beat")(lambda: None)
    await made.sync()
    for name in ("orders", "bills"):
        await made.update(name, detach=True, description="stored by hand")
    yield made
    await made.close()


async def test_the_page_says_what_comes_and_where_room_is(shop: Everytick) -> None:
    async with client_of(shop) as client:
        page = await client.get("/agenda")
    assert page.status_code == 200
    assert re.search(r"<h1>\d+ starts in the next hour; the next is beat", page.text)
    assert "<b>" not in re.findall(r"letters[^<]*", page.text)[0]
    assert page.text.count('class="agenda"') == 1
    assert "Collisions" in page.text
    assert len(page.content) < 120_000


async def test_nothing_planned_is_a_page_too() -> None:
    tick = Everytick("memory://", name="empty")
    async with client_of(tick) as client:
        for address in ("/agenda", "/agenda?w=7d", "/agenda/table", "/agenda/spread"):
            page = await client.get(address)
            assert page.status_code == 200, address
        assert "Nothing is planned for the next seven days." in (await client.get("/agenda")).text
        assert (await client.get("/agenda?w=1y")).status_code == 422
    await tick.close()


async def test_a_paused_and_a_skipped_start_say_so(shop: Everytick) -> None:
    [first] = await shop.next_runs("bills", 1)
    await shop.pause("orders", reason="holiday")
    await shop.skip("bills", first, by="ana")
    async with client_of(shop) as client:
        page = await client.get("/agenda")
    assert "paused: will be skipped" in page.text
    assert "skipped by ana" in page.text


async def test_the_table_and_the_csv_hold_every_start(shop: Everytick) -> None:
    async with client_of(shop) as client:
        page = await client.get("/agenda/table")
        file = await client.get("/agenda/table", params={"format": "csv"})
        hour = await client.get("/agenda/table", params={"after": "2020-01-01T00:00:00", "format": "csv"})
    assert "and 8,1" in page.text
    rows = list(csv.reader(StringIO(file.text)))
    assert rows[0] == ["at", "job", "usually_seconds", "paused"]
    assert len(rows) - 1 == 8640 + 3
    assert [row[0] for row in rows[1:]] == sorted(row[0] for row in rows[1:])
    assert file.headers["content-disposition"] == 'attachment; filename="agenda.csv"'
    assert hour.status_code == 422


@pytest.mark.parametrize("after", ["2200-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00"])
async def test_a_time_behind_the_agenda_has_no_start(shop: Everytick, after: str) -> None:
    async with client_of(shop) as client:
        page = await client.get("/agenda/table", params={"after": after})
        file = await client.get("/agenda/table", params={"after": after, "format": "csv"})
    assert (page.status_code, file.status_code) == (200, 200)
    assert len(list(csv.reader(StringIO(file.text)))) == 1


async def test_a_second_reader_gets_the_agenda_that_was_counted(
    shop: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []
    count = shop.agenda

    async def counting(**given: Any) -> FleetAgenda:
        counted.append(1)
        return await count(**given)

    monkeypatch.setattr(shop, "agenda", counting)
    async with client_of(shop) as client:
        for _ in range(3):
            assert (await client.get("/agenda")).status_code == 200
    assert len(counted) == 1


# --------------------------------------------------------------------------------------------------------- spread…


def form_of(page: httpx2.Response) -> dict[str, list[str]]:
    """Return the hidden fields of the page's form."""
    form = page.text.partition('method="post"')[2].partition("</form>")[0]
    fields: dict[str, list[str]] = {}
    for name, content in re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form):
        fields.setdefault(name, []).append(unescape(content))
    return fields


async def test_what_the_spread_page_shows_is_stored_as_shown(shop: Everytick) -> None:
    async with client_of(shop) as client:
        page = await client.get("/agenda/spread")
        fields = form_of(page)
        done = await client.post("/agenda/spread", data=fields)
        again = await client.get(done.headers["location"])
    assert done.status_code == 303, done.text
    assert "stored" in again.text
    for name, text in zip(fields["job"], fields["schedule"], strict=True):
        assert str((await shop.job(name)).job.schedule) == text
    assert "letters&lt;b&gt;" in page.text.partition("To write where the job is defined")[2]
    assert [move.job for move in (await shop.spread_plan()).moves if not move.where] == []


async def test_a_plan_that_the_world_has_left_behind_stores_nothing(shop: Everytick) -> None:
    async with client_of(shop) as client:
        fields = form_of(await client.get("/agenda/spread"))
        before = {name: str((await shop.job(name)).job.schedule) for name in fields["job"]}
        await shop.update(fields["job"][0], priority=3)
        refused = await client.post("/agenda/spread", data=fields)
    assert refused.status_code == 409
    assert {name: str((await shop.job(name)).job.schedule) for name in fields["job"]} == before


async def test_a_form_that_was_changed_is_refused(shop: Everytick) -> None:
    async with client_of(shop) as client:
        fields = form_of(await client.get("/agenda/spread"))
        other = {**fields, "schedule": ["cron: * * * * *; tz=UTC"] * len(fields["job"])}
        assert (await client.post("/agenda/spread", data=other)).status_code == 409
        assert (await client.post("/agenda/spread", data={**fields, "job": []})).status_code == 422
        code = {**fields, "job": ["letters<b>"], "schedule": ["cron: 0 9 * * *; spread=1h; offset=5m"]}
        assert (await client.post("/agenda/spread", data=code)).status_code == 409


async def test_a_window_for_all_jobs_is_tried_on_request(shop: Everytick) -> None:
    async with client_of(shop) as client:
        wrong = await client.get("/agenda/spread", params={"allow": "<b>"})
        page = await client.get("/agenda/spread", params={"allow": "2d"})
        tried = await client.get("/agenda/spread", params={"allow": "10m"})
    assert (wrong.status_code, page.status_code, tried.status_code) == (422, 422, 200)
    assert "<b>&" not in wrong.text
    assert "is not between a minute and a day" in page.text


async def test_the_first_reader_does_not_wait_until_all_jobs_are_counted(
    shop: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says how many are left out, and the next look has them all."""
    monkeypatch.setattr("everytick.web.agenda_cache.WHOLE_SECONDS", 0.0)
    monkeypatch.setattr("everytick.web.agenda_cache.QUICK_SECONDS", 0.0)
    cache = AgendaCache(shop, KnownJobs(shop))
    first, _ = await cache.get()
    assert cache._counting is not None
    await cache._counting
    second, _ = await cache.get()

    assert first.uncounted > second.uncounted == 0


async def test_a_service_that_stops_counts_no_more(shop: Everytick) -> None:
    """A process leaves when its threads have ended."""
    service = shop.asgi()
    service.end()
    found, _ = await service.app.state.agenda_cache.get()

    assert found.uncounted > 0


async def test_a_page_that_has_counted_no_job_yet_does_not_say_that_nothing_is_planned(
    shop: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everytick.web.agenda_cache.WHOLE_SECONDS", 0.0)
    monkeypatch.setattr("everytick.web.agenda_cache.QUICK_SECONDS", 0.0)
    async with client_of(shop) as client:
        page = (await client.get("/agenda")).text

    assert re.search(r"<h1>The starts of \d+ jobs take longer to count. Look again in some seconds.</h1>", page)
    assert "Nothing" not in page.split("<main")[1].split("</main>")[0]
    assert "No two jobs" not in page
