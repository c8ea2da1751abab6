"""The page Now over real histories: its sentence, its numbers, what needs a look, the timeline and its table."""

import csv
import io
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from everytick import Everytick, every
from everytick.access.people import Grant, Role
from everytick.domain.nodes import NodeFacts
from everytick.errors import NeedsApproval, StoreUnavailable
from everytick.stores.memory import MemoryStore
from everytick.testing import ManualClock
from everytick.web.known_jobs import KnownJobs
from everytick.web.now_board import Board
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
    failed = "/history?status=completed_with_errors&amp;status=failed&amp;status=failed_stale"
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
        broken = (("jobs/reports.yaml", f"line 12, column 5: {XSS}"),)
        facts = told(broken_files=broken, stale_jobs=(("a", "jobs/reports.yaml"),))
        await store.beat("node-18", (), facts)

    deeds = {"2026-10-23T11:00:00Z": beat, "2026-10-23T12:06:55Z": break_file}
    [page] = pages_of(tick, "/", at=deeds)

    assert heading_of(page) == "One file and one node need a look."
    lines = lines_of(page)
    assert any(line.startswith("node-17 is silent") for line in lines)
    assert any("jobs/reports.yaml cannot be read : line 12, column 5" in line for line in lines)
    assert any("1 job goes on as before" in line for line in lines)
    assert faults_of(page) == []


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
