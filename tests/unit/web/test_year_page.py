"""The page of a year: a real history, day by day, and the days to come."""

import html
import re

import httpx2

from everytick import Everytick
from tests.unit.web.histories import XSS, asked_at_end, faults_of, heading_of, pages_of, takes, title_of

START, UNTIL = "2026-10-01T00:00:00Z", "2026-10-23T12:00:00Z"


def nightly(name: str = "nightly") -> Everytick:
    """Return an application with a job at 03:00 UTC that fails on every tenth night."""
    tick = Everytick("memory://", name="shop")
    nights = iter(range(1, 1000))

    @tick.job("0 3 * * *", name=name, recovery="mark_as_missed")
    async def job() -> None:
        await takes(minutes=3)
        if next(nights) % 10 == 0:
            raise ValueError("the tenth")

    return tick


def test_a_year_says_how_many_days_failed_and_draws_every_day() -> None:
    [page] = pages_of(nightly(), "/year?job=nightly", start=START, until=UNTIL)

    assert heading_of(page) == "nightly failed on 2 days of 23 in 2026 so far."
    assert title_of(page) == "nightly failed on 2 days of 23 in 2026 so far · everytick"
    outcome = page.split('id="outcome"')[1].split("</figure>")[0]
    assert outcome.count("<rect") == 365 + 1
    assert outcome.count('class="m-done"') == 21
    assert outcome.count('class="m-wrong"') == 2
    assert outcome.count('class="m-ghost"') == 69
    assert "<title>Sat 10 Oct: 1 failed</title>" in outcome
    assert len(page) < 120_000
    assert faults_of(page) == []


def test_missed_days_are_diamonds_and_lead_to_their_history() -> None:
    away = ("2026-10-05T00:00:00Z", "2026-10-07T12:00:00Z")
    [page] = pages_of(nightly(), "/year?job=nightly", start=START, until=UNTIL, outages=(away,))

    assert "20 days with a run, 2 with a failure, 3 with a miss." in page
    outcome = page.split('id="outcome"')[1].split("</figure>")[0]
    assert outcome.count('class="o-look"') == 3
    assert "<title>Tue 6 Oct: 1 missed</title>" in outcome
    link = html.unescape(re.findall(r'href="(/history\?job=nightly[^"]*)"', page)[0])
    assert link == "/history?job=nightly&from=2026-10-01T00%3A00%3A00%2B00%3A00&to=2026-10-01T23%3A59%3A59%2B00%3A00"


def test_the_months_and_the_days_stand_in_tables() -> None:
    page, table = pages_of(
        nightly(), "/year?job=nightly&year=2026", "/year?job=nightly&year=2026&as=table", start=START, until=UNTIL
    )

    months = page.split('id="months"')[1]
    assert re.sub("<.*?>", " ", months.split("<tbody>")[1].split("</tbody>")[0]).split() == [
        "Oct", "21", "2", "3", "min", "2026-10-10",
    ]  # fmt: skip
    assert table.split('id="days"')[1].split("</table>")[0].count('<th scope="row">') == 23
    assert faults_of(table) == []


def test_another_year_is_empty_and_says_so() -> None:
    past, coming = pages_of(
        nightly(), "/year?job=nightly&year=2025", "/year?job=nightly&year=2027", start=START, until=UNTIL
    )

    assert heading_of(past) == "nightly did not run in 2025."
    assert "Nothing ended in 2025." in past
    assert "m-ghost" not in past.split("<figure")[1].split("</figure>")[0]
    assert coming.split("<figure")[1].split("</figure>")[0].count('class="m-ghost"') == 365


def test_days_to_come_of_a_paused_job_are_not_planned() -> None:
    tick = nightly()
    deeds = {"2026-10-22T12:00:00Z": lambda: tick.pause("nightly", by="ops")}
    [page] = pages_of(tick, "/year?job=nightly", start=START, until=UNTIL, at=deeds)

    assert "m-ghost" not in page.split("<figure")[1].split("</figure>")[0]


def test_without_a_job_the_page_offers_those_that_failed_last_first() -> None:
    tick = nightly()

    @tick.job("0 4 * * *", name="a-good-one")
    def good() -> None: ...

    [page] = pages_of(tick, "/year", start=START, until=UNTIL)

    assert heading_of(page) == "Which job in 2026?"
    assert re.findall(r'href="/year\?job=([\w-]+)&amp;year=2026"', page) == ["nightly", "a-good-one"]
    assert '<option value="a-good-one">' in page
    assert faults_of(page) == []


def test_a_year_of_any_name_is_escaped_and_a_wrong_year_is_refused() -> None:
    tick, codes = nightly(f"job {XSS}"), list[int]()

    async def ask(client: httpx2.AsyncClient) -> None:
        page = await client.get("/year", params={"job": f"job {XSS}"})
        choice = await client.get("/year")
        for answer in (page, choice):
            assert "<script>alert" not in answer.text
            assert faults_of(answer.text) == []
        for query in ({"job": "nothing"}, {"job": "x", "year": "0"}, {"job": "x", "year": "99999"}):
            codes.append((await client.get("/year", params=query)).status_code)

    asked_at_end(tick, ask, start=START, until=UNTIL)
    assert codes == [404, 422, 422]


def test_an_outage_of_a_year_counts_every_day_and_is_bounded() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("* * * * *", name="beat", recovery="mark_as_missed")
    def beat() -> None: ...

    away = ("2026-01-02T00:00:30Z", "2026-10-23T11:59:30Z")
    [page] = pages_of(tick, "/year?job=beat", start="2026-01-02T00:00:00Z", until=UNTIL, outages=(away,))

    assert "295 with a miss" in page
    assert len(page) < 120_000


def test_a_backfilled_instant_is_missed_no_more() -> None:
    tick = nightly()
    away = ("2026-10-05T00:00:00Z", "2026-10-07T12:00:00Z")

    async def fill() -> None:
        await tick.backfill("nightly", "2026-10-05T00:00:00Z", "2026-10-05T12:00:00Z", approve=True)

    [page] = pages_of(
        tick, "/year?job=nightly", start=START, until=UNTIL, outages=(away,), at={"2026-10-08T12:00:00Z": fill}
    )

    assert "2 with a miss." in page
