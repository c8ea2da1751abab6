"""The page of a job, over real histories: what it says, what it draws, and what each reader may do."""

import html
import json
import re
from dataclasses import replace
from datetime import UTC, timedelta

import httpx2
import pytest

from everytick import Context, Everytick, Retry, every
from everytick.access.people import Grant, Role
from everytick.web.job_words import holds_of
from everytick.web.words import Viewer
from tests.unit.web.histories import XSS, asked_at_end, faults_of, heading_of, main_of, pages_of, takes, title_of

START, UNTIL = "2026-10-20T00:00:00Z", "2026-10-23T12:07:00Z"


def shop(**policies: object) -> Everytick:
    """Return an application with one job, `etl`, at 02:30 in Berlin, of two tasks that take ten minutes and one."""
    tick = Everytick("memory://", name="shop", timezone="Europe/Berlin")
    etl = tick.define("etl", "30 2 * * *", tags=["warehouse"], task_timeout="1h", **policies)  # type: ignore[arg-type]

    @etl.task
    async def extract() -> None:
        await takes(minutes=10)

    @etl.task(after=["extract"])
    async def load() -> None:
        await takes(minutes=1)

    return tick


def failing(tick: Everytick) -> Everytick:
    """Return the application with a job that fails at every second run."""
    runs = iter(range(1000))

    @tick.job("0 * * * *", name="flaky", task_timeout="1h")
    async def flaky() -> None:
        await takes(seconds=30)
        if next(runs) % 2:
            raise ValueError("the supplier's file is empty")

    return tick


def test_the_heading_says_how_a_job_is_and_when_it_runs_next() -> None:
    [page] = pages_of(shop(), "/jobs/etl", start=START, until=UNTIL)

    assert heading_of(page) == "etl is well; it runs next on Sat 02:30."
    assert title_of(page) == "etl is well; it runs next on Sat 02:30 · everytick"
    assert "Runs at 02:30, Europe/Berlin time." in page
    assert faults_of(page) == []


def test_five_numbers_stand_below_it() -> None:
    [page] = pages_of(shop(), "/jobs/etl", start=START, until=UNTIL)

    tiles = re.findall(r"<dt>(?:<svg.*?</svg>)?(.*?)</dt><dd>(.*?)</dd><dd class=\"more\">(.*?)</dd>", page)
    plain = [(name, re.sub("<.*?>", "", figure), more) for name, figure, more in tiles]
    assert plain == [
        ("Last", "completed", "02:30, 11 h ago"),
        ("Next", "02:30 Sat", "in 12 h 23 min, usually 11 min"),
        ("Good in 4", "100 %", "4 of 4"),
        ("Usual length", "11 min", "p95 11 min"),
        ("Start delay", "0 ms", "p95 0 ms"),
    ]


def test_the_past_and_the_plan_share_their_columns_and_have_a_table_behind_them() -> None:
    picture, table = pages_of(shop(), "/jobs/etl", "/jobs/etl?as=table", start=START, until=UNTIL)

    assert "The last 4, and the next 6" in picture
    assert 'aria-label="The last 4 occurrences: 4 completed; 6 planned"' in picture
    assert picture.count('class="stem"') == 4
    assert 'href="/jobs/etl?as=table"' in picture
    assert table.count("</span></td><td><a class") == 4
    assert "now, 14:06: what stands above is planned" in table
    assert faults_of(table) == []


def test_a_failure_is_said_first_and_hidden_from_viewers() -> None:
    tick = failing(Everytick("memory://", name="shop"))
    until = "2026-10-20T06:30:00Z"
    [page] = pages_of(tick, "/jobs/flaky", start=START, until=until)
    [seen_by_viewer] = pages_of(tick, "/jobs/flaky", start=START, until=until, role=Role.VIEWER)

    assert heading_of(page) == "flaky failed at 08:00; it runs next at 09:00."
    assert '<div class="tile is-wrong">' in page
    assert "ValueError: the supplier&#39;s file is empty" in page
    assert "supplier" not in seen_by_viewer
    assert "You look as a viewer" in seen_by_viewer
    assert "/do/" not in seen_by_viewer


@pytest.mark.parametrize(
    ("role", "grants", "deeds"),
    [
        (Role.VIEWER, (), []),
        (Role.OPERATOR, (), ["trigger", "pause", "backfill"]),
        (Role.VIEWER, (Grant("warehouse", Role.OPERATOR),), ["trigger", "pause", "backfill"]),
        (Role.VIEWER, (Grant("billing", Role.OPERATOR),), []),
        (Role.ADMIN, (), ["trigger", "pause", "backfill"]),
    ],
)
def test_deeds_are_shown_by_role(role: Role, grants: tuple[Grant, ...], deeds: list[str]) -> None:
    [page] = pages_of(shop(), "/jobs/etl", start=START, until=UNTIL, role=role, grants=grants)

    head = main_of(page).split('<section class="tiles"')[0]
    assert re.findall(r'href="/jobs/etl/do/(\w+)"', head) == deeds


def test_many_instants_that_a_pause_skips_end_with_the_last_one_of_the_schedule() -> None:
    """A pause that goes on has a span up to now, and 14:06:59 is no instant."""
    tick = failing(shop())

    async def pause() -> None:
        await tick.pause("flaky", reason="stocktaking", by="ada")

    [page] = pages_of(tick, "/jobs/flaky", start=START, until=UNTIL, at={"2026-10-23T02:10:00Z": pause})
    row = page.split("skipped ×")[1].split("</tr>")[0]

    assert ">14:00<" in row
    assert "paused, by ada (stocktaking)" in row


def test_a_long_status_fits_into_its_tile() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("0 * * * *", name="partly", failure="continue")
    async def partly() -> None:
        raise ValueError("half of it is missing")

    [page] = pages_of(tick, "/jobs/partly", start=START, until=UNTIL)

    assert '<dd class="long">completed_<wbr>with_<wbr>errors</dd>' in page


def test_a_paused_job_says_who_paused_it_why_and_offers_to_resume_it() -> None:
    tick = shop()
    deeds = {"2026-10-22T10:00:00Z": lambda: tick.pause("etl", reason="schema fix", by="ops")}
    [page] = pages_of(tick, "/jobs/etl", start=START, until=UNTIL, at=deeds)

    assert heading_of(page) == "etl is paused; nothing runs until it is resumed."
    assert "Paused Thu 12:00 by ops: schema fix. Its instants are skipped, until it is resumed." in page
    assert page.count('href="/jobs/etl/do/resume"') == 2
    assert "/jobs/etl/do/pause" not in page
    assert "skipped" in page
    assert "Nothing is to come." in page


def test_a_disabled_job_offers_to_be_enabled() -> None:
    tick = shop()
    deeds = {"2026-10-22T10:00:00Z": lambda: tick.disable("etl")}
    [page] = pages_of(tick, "/jobs/etl", start=START, until=UNTIL, at=deeds)

    assert heading_of(page) == "etl is disabled; nothing runs until it is enabled."
    assert page.count('href="/jobs/etl/do/enable"') == 2
    assert "/jobs/etl/do/disable" not in page


def test_a_removed_job_has_a_page_without_deeds() -> None:
    tick = shop()
    deeds = {"2026-10-23T10:00:00Z": lambda: tick.remove("etl", by="ops")}
    [page] = pages_of(tick, "/jobs/etl", start=START, until=UNTIL, at=deeds)

    assert heading_of(page) == "etl was removed at 12:00 by ops; nothing is to come."
    assert "/do/" not in page
    assert "4 completed" in page
    assert "unless the job is defined again before" not in page


def test_a_job_that_no_node_defines_any_more_says_until_when_it_may_come_back() -> None:
    tick, told = shop(), list[str]()

    async def ask(_: httpx2.AsyncClient) -> None:
        seen = await tick._overview("etl")
        removed = replace(seen.record, removed_at=seen.now, retire_at=seen.now + timedelta(minutes=10))
        viewer = Viewer("UTC", UTC, seen.now)
        told.extend(hold.text for hold in holds_of(replace(seen, record=removed), viewer, with_errors=True))

    asked_at_end(tick, ask, start=START, until=UNTIL)

    assert told == ["What waits of it ends at 12:16:59, unless the job is defined again before."]


def test_a_job_without_history_says_when_it_runs_first() -> None:
    [page] = pages_of(shop(), "/jobs/etl", start="2026-10-23T12:00:00Z", until=UNTIL)

    assert heading_of(page) == "etl has not run yet; it runs first on Sat 02:30."
    assert "Nothing has run yet." in page
    assert "it has not run yet" in page
    assert faults_of(page) == []


@pytest.mark.parametrize(
    ("schedule", "figure"),
    [
        ("0 0 1 1 *", "00:00 <small>1 Jan 2027</small>"),
        ("30 2 25 10 *", "02:30 CEST <small>Sun</small>"),
        ("0 20 * * *", "20:00"),
    ],
)
def test_the_next_number_is_a_time_of_day_and_its_day(schedule: str, figure: str) -> None:
    tick = Everytick("memory://", name="shop", timezone="Europe/Berlin")

    @tick.job(schedule, name="job")
    def job() -> None: ...

    [page] = pages_of(tick, "/jobs/job", start="2026-10-23T12:00:00Z", until="2026-10-23T12:07:00Z")

    assert f"Next</dt><dd>{figure}</dd>" in page


def test_ten_thousand_missed_instants_are_one_square_and_one_row() -> None:
    tick = Everytick("memory://", name="shop")
    away = ("2026-10-20T00:01:30Z", "2026-10-27T00:00:30Z")

    @tick.job(every("1m"), recovery="mark_as_missed")
    def beat() -> None: ...

    [page] = pages_of(tick, "/jobs/beat", start=START, until="2026-10-27T00:01:00Z", outages=(away,))

    assert "missed ×10,000 or more" in page
    assert ">×10k<" in page
    assert len(page) < 60_000


def test_running_retrying_and_waiting_jobs_say_so() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("0 * * * *", name="long", task_timeout="3h", overlap="queue")
    async def long() -> None:
        await takes(hours=2)

    @tick.job("0 * * * *", name="again", retry=Retry(3, "30m"))
    async def again() -> None:
        raise OSError("away")

    long_page, again_page = pages_of(tick, "/jobs/long", "/jobs/again", start=START, until="2026-10-20T02:10:00Z")

    assert heading_of(long_page) == "long has been running since 03:00; it runs next at 05:00."
    assert "behind" in long_page
    assert "queued" in long_page
    assert heading_of(again_page) == "again failed and is tried again; it runs next at 05:00."


def test_the_next_ten_tell_of_clock_changes_and_of_what_people_changed() -> None:
    tick = shop()

    async def adjust() -> None:
        await tick.skip("etl", "2026-10-26T01:30:00Z", reason="stock taking", by="ops")
        await tick.move("etl", "2026-10-27T01:30:00Z", "2026-10-27T05:00:00Z", by="ops")
        await tick.amend("etl", "2026-10-28T01:30:00Z", priority=5)
        await tick.trigger("etl", at="2026-10-29T12:00:00Z")

    [page] = pages_of(tick, "/jobs/etl", start=START, until=UNTIL, at={"2026-10-23T11:00:00Z": adjust})

    rows = re.findall(r"<li.*?</li>", page.split('<ol class="rows next10">')[1].split("</ol>")[0])
    told = [re.sub(r"\s+", " ", re.sub("<.*?>", " ", row)).strip() for row in rows]
    assert told[:6] == [
        "Sat 24 Oct 02:30 CEST skip… move…",
        "Sun 25 Oct 02:30 comes twice, runs once CEST skip… move…",
        "Mon 26 Oct 02:30 skipped CET undo…",
        "Tue 27 Oct 06:00 moved from Tue 02:30 CET undo… skip… move…",
        "Wed 28 Oct 02:30 amended CET undo… skip… move…",
        "Thu 29 Oct 02:30 CET skip… move…",
    ]
    assert told[6] == "Thu 29 Oct 13:00 asked for CET cancel…"
    assert "/jobs/etl/do/skip?at=2026-10-24T00%3A30%3A00%2B00%3A00" in page
    assert len(rows) == 10


def test_policies_tell_who_set_them() -> None:
    tick = Everytick("memory://", name="shop", defaults={"retry": {"max": 3, "interval": "1m", "factor": 2.0}})
    tick.template("careful", overlap="queue")

    @tick.job("30 2 * * *", template="careful", grace="2m", payload={"password": "hunter2"})
    def etl(password: str = "") -> None: ...

    [page] = pages_of(tick, "/jobs/etl", start=START, until=UNTIL)
    [viewer_page] = pages_of(tick, "/jobs/etl", start=START, until=UNTIL, role=Role.VIEWER)

    lines = dict(re.findall(r"<code>(\w+)</code></dt><dd>(.*?) <span class=\"from\">", page))
    origins = dict(re.findall(r"<code>(\w+)</code></dt><dd>.*?<span class=\"from\">(.*?)</span>", page))
    assert (lines["retry"], origins["retry"]) == ("3 × from 1m, factor 2.0", "application")
    assert (lines["overlap"], origins["overlap"]) == ("queue", "template careful")
    assert (lines["grace"], origins["grace"]) == ("2m", "job")
    assert (lines["failure"], origins["failure"]) == ("fail_fast", "default")
    assert html.unescape(lines["payload"]) == '{"password": "hunter2"}'
    assert "hunter2" not in viewer_page


def test_promises_dependencies_and_forecasts_are_told() -> None:
    tick = shop(finish_by="02:35")

    @tick.job("30 2 * * *", depends_on="etl", name="report")
    def report() -> None: ...

    etl, report_page = pages_of(tick, "/jobs/etl", "/jobs/report", start=START, until=UNTIL)

    assert "<code>finish_by</code> 02:35" in etl
    assert "Broken since" in etl
    assert heading_of(etl).startswith("etl breaks its promise finish_by;")
    assert "Other jobs wait for this one." in etl
    assert '<h2 id="waits">Waits for</h2>' in report_page
    assert "for the same instant" in report_page
    assert 'href="/jobs/etl"' in report_page


def test_a_brake_is_told_on_the_jobs_that_it_holds() -> None:
    tick = shop()
    deeds = {"2026-10-23T10:00:00Z": lambda: tick.brake("tag:warehouse", reason="the database moves", by="ops")}
    [page] = pages_of(tick, "/jobs/etl", start=START, until=UNTIL, at=deeds)

    assert heading_of(page) == "etl is held back; it runs next on Sat 02:30."
    assert "the database moves" in page


def test_what_is_missing_can_be_backfilled_from_the_page() -> None:
    tick = shop(recovery="mark_as_missed")
    away = ("2026-10-21T00:00:00Z", "2026-10-22T12:00:00Z")
    page, coverage = pages_of(tick, "/jobs/etl", "/jobs/etl/coverage", start=START, until=UNTIL, outages=(away,))

    assert "2 missing" in page
    link = html.unescape(re.findall(r'href="(/jobs/etl/do/backfill\?[^"]*)"', page)[0])
    assert link == (
        "/jobs/etl/do/backfill?after=2026-10-20T00%3A30%3A00%2B00%3A00&through=2026-10-22T00%3A30%3A00%2B00%3A00"
    )
    assert heading_of(coverage) == "etl misses two instants."
    assert html.escape(link) in coverage
    assert 'class="o-wrong"' in coverage
    assert faults_of(coverage) == []


def test_what_retention_deleted_and_what_was_before_the_job_is_not_missing() -> None:
    """A well job of ten days with a retention of three misses nothing, and offers no repair of what was done."""
    tick = shop(retention={"success": "3d", "failure": "3d", "keep_last": 1})

    async def prune() -> None:
        await (await tick._opened()).prune()

    early = "/jobs/etl/coverage?after=2026-10-01T00:00:00Z&through=2026-10-23T12:00:00Z"
    never = "/jobs/etl/coverage?after=2026-09-01T00:00:00Z&through=2026-09-30T12:00:00Z"
    page, since_stored, since_before, before = pages_of(
        tick,
        *("/jobs/etl", "/jobs/etl/coverage", early, never),
        start="2026-10-13T00:00:00Z",
        until=UNTIL,
        at={"2026-10-23T12:00:00Z": prune},
    )

    assert "missing" not in page
    for coverage in (since_stored, since_before):
        assert heading_of(coverage) == "Nothing of etl is missing."
        assert "no longer kept" in coverage
        assert "do/backfill" not in coverage
    assert "before the job was stored" in since_before
    assert "before the job was stored" not in since_stored
    assert heading_of(before) == "History tells nothing of etl in this time."
    assert faults_of(since_before) == []


def test_backfills_are_listed_with_how_far_they_came() -> None:
    tick = shop(recovery="mark_as_missed")
    away = ("2026-10-21T00:00:00Z", "2026-10-22T12:00:00Z")

    async def fill() -> None:
        await tick.backfill(
            "etl", "2026-10-20T12:00:00Z", "2026-10-22T12:00:00Z", approve=True, reason="after the outage", by="ops"
        )

    [page] = pages_of(tick, "/jobs/etl", start=START, until=UNTIL, outages=(away,), at={"2026-10-22T14:00:00Z": fill})

    assert ">Backfills</h2>" in page
    assert "2 of 2" in page
    assert "ops: after the outage" in page
    assert "/backfills/" not in page, "it is over"


@pytest.mark.parametrize(
    ("status", "links"),
    [("planned", ["approve", "cancel"]), ("running", ["pause", "cancel"]), ("paused", ["resume", "cancel"])],
)
def test_a_backfill_that_is_not_over_is_steered_from_the_page(status: str, links: list[str]) -> None:
    """The same links as on the page History."""
    tick = shop()

    async def fill() -> None:
        made = await tick.backfill(
            "etl", "2025-10-20T12:00:00Z", "2026-10-20T12:00:00Z", as_of="now", rate=1, confirmed=True,
            approve=status != "planned",
        )  # fmt: skip
        if status == "paused":
            await made.pause()

    found = [
        re.findall(r'href="/backfills/[^/]+/do/(\w+)"', page)
        for page in pages_of(tick, "/jobs/etl", "/history", start=START, until=UNTIL, at={"2026-10-22T14:00:00Z": fill})
    ]

    assert found == [links, links]


def test_versions_are_listed_and_two_are_compared_side_by_side() -> None:
    tick = shop()

    async def edit() -> None:
        await tick.update("etl", "45 3 * * *", detach=True, by="ops", grace="5m")

    listed, compared = pages_of(
        tick,
        "/jobs/etl/versions",
        "/jobs/etl/versions?a=1&b=2",
        start=START,
        until=UNTIL,
        at={"2026-10-22T10:00:00Z": edit},
    )

    assert heading_of(listed) == "etl is at version 2."
    assert listed.count('type="radio"') == 4
    assert 'href="/jobs/etl/do/rollback?version=1"' in listed
    assert heading_of(compared) == "Three parts differ between versions 1 and 2."
    assert '<td class="was"><code>cron: 30 2 * * *; tz=Europe/Berlin</code></td>' in compared
    assert '<td class="is"><code>5m</code></td>' in compared
    assert "adds 30 and drops 30" in compared
    assert faults_of(listed) == faults_of(compared) == []


def test_nothing_that_people_write_becomes_markup() -> None:
    """Names, descriptions, tags, reasons, owners, errors and payloads are shown as they were written."""
    tick = Everytick("memory://", name="shop")

    @tick.job(
        "0 * * * *", name=f"job {XSS}", description=f"about {XSS}", tags=[f"tag {XSS}"], payload={f"key {XSS}": XSS}
    )
    def bad(ctx: Context) -> None:
        raise ValueError(f"error {XSS}")

    name = "job%20%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    deeds = {"2026-10-20T03:30:00Z": lambda: tick.pause(f"job {XSS}", reason=f"why {XSS}", by=f"who {XSS}")}
    found = pages_of(
        tick,
        *(f"/jobs/{name}{more}" for more in ("", "?as=table", "/versions", "/coverage")),
        start=START,
        until="2026-10-20T04:30:00Z",
        at=deeds,
    )

    for page in found:
        assert "<script>alert" not in page
        assert faults_of(page) == []
    shown = html.unescape(found[0])
    for word in ("job", "about", "tag", "error", "why", "who"):
        assert f"{word} {XSS}".lower() in shown.lower(), word
    assert f"key {json.dumps(XSS)[1:-1]}" in shown


def test_what_is_not_there_is_told_with_404_and_what_cannot_be_read_with_422() -> None:
    answers: dict[str, int] = {}

    async def ask(client: httpx2.AsyncClient) -> None:
        for path in (
            "/jobs/nothing",
            "/jobs/nothing/versions",
            "/jobs/etl/versions?a=1&b=9",
            "/jobs/etl/versions?a=x&b=1",
            "/jobs/etl/coverage?after=yesterday",
            "/jobs/etl/coverage?after=2026-10-23T00:00:00Z&through=2026-10-22T00:00:00Z",
        ):
            answer = await client.get(path, headers={"accept": "text/html"})
            answers[path] = answer.status_code

    asked_at_end(shop(), ask, start=START, until=UNTIL)

    assert list(answers.values()) == [404, 404, 404, 422, 422, 422]


def test_links_of_a_job_hold_for_any_name() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("0 * * * *", name="reports/daily ü?#")
    def reports() -> None: ...

    path = "/jobs/reports%2Fdaily%20%C3%BC%3F%23"
    [page] = pages_of(tick, path, start=START, until="2026-10-20T04:30:00Z")

    assert heading_of(page) == "reports/daily ü?# is well; it runs next at 07:00."
    for more in ("/do/trigger", "/versions", "/coverage", "?as=table"):
        assert f'href="{path}{more}"' in page
