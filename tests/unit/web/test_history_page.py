"""The history: filters in the address, pages, lines, files, and deeds on many occurrences."""

import csv
import io
import json
import re

import httpx2
import pytest
from fastapi import Request

from everytick import Everytick, every
from everytick.access.people import Person, Role
from everytick.domain.headlines import fingerprint
from everytick.web import history_list
from everytick.web.asgi import asgi
from everytick.web.pages import history as history_page
from tests.unit.web.conftest import client_of
from tests.unit.web.forms_of_pages import sent, sent_again, text_of, told
from tests.unit.web.histories import asked_at_end, heading_of, main_of, pages_of, takes

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def tick() -> Everytick:
    made = Everytick("memory://", name="shop", poll="100ms")

    @made.job(every("1d"), name="broken")
    def broken() -> None:
        raise ValueError(f"=no table {EVIL}")

    @made.job(every("1d"), name="well")
    def well() -> None: ...

    @made.job(every("1d"), name="=SUM(A1)")
    def counting() -> None: ...

    return made


async def ran(tick: Everytick, *names: str) -> list[str]:
    """Let these jobs run once each, one after another, and return the ids of the occurrences."""
    return [(await (await tick.trigger(name)).wait("30s")).id for name in names]


def rows(page: httpx2.Response) -> list[str]:
    """Return the jobs of the lines, newest first."""
    return re.findall(r'<th scope="row"[^>]*><a class="name"[^>]*>(.*?)</a>', page.text)


async def test_an_error_with_a_moment_that_is_none_takes_no_page_away() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job(every("1d"), name="broken")
    def broken() -> None:
        raise ValueError("invalid date 2026-02-30T00:00:00Z, last seen 0001-01-01T00:00:00+02:00")

    async with tick, client_of(tick) as client:
        [id_] = await ran(tick, "broken")
        for path in ("/", "/jobs", "/jobs/broken", "/history", f"/occurrences/{id_}"):
            page = await client.get(path)
            assert page.status_code == 200, path
            assert path in ("/jobs",) or "2026-02-30T00:00:00Z" in page.text, path


async def test_the_heading_counts_and_the_newest_comes_first(client: httpx2.AsyncClient, tick: Everytick) -> None:
    async with tick:
        await ran(tick, "well", "broken", "well")
        page = await client.get("/history")

    assert "<h1>3 occurrences in 24 h; 1 failed.</h1>" in page.text
    assert rows(page) == ["well", "broken", "well"]
    assert "ValueError: =no table <script>alert(1)</script>" in text_of(page)
    assert EVIL not in page.text


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("job=well", 2),
        ("status=failed", 1),
        ("status=failed&status=completed", 3),
        ("status=failed+completed", 3),
        ("cause=schedule", 0),
        ("cause=trigger&w=1h", 3),
        ("error=NO+table", 1),
        ("error=elsewhere", 0),
        ("from=2020-01-01T00:00&to=2020-01-02T00:00", 0),
        ("from=2020-01-01T00:00", 3),
    ],
)
async def test_filters_stand_in_the_address(
    client: httpx2.AsyncClient, tick: Everytick, query: str, found: int
) -> None:
    async with tick:
        await ran(tick, "well", "broken", "well")
        page = await client.get(f"/history?{query}")
        exported = (await client.get(f"/history.json?{query}")).json()

    assert page.status_code == 200
    assert len(rows(page)) == found
    assert len(exported) == found


async def test_errors_that_are_alike_are_one_filter(client: httpx2.AsyncClient, tick: Everytick) -> None:
    async with tick:
        await ran(tick, "broken", "well", "broken")
        [failed, *_] = await tick.history("broken", status="failed")
        assert failed.error is not None
        page = await client.get("/history", params={"fingerprint": fingerprint(failed.error)})
        none = await client.get("/history", params={"fingerprint": "nothing"})

    assert rows(page) == ["broken", "broken"]
    assert rows(none) == []


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("status=nonsense", "nonsense is no status"),
        ("cause=luck", "luck is no cause"),
        ("from=noon", "noon is no date and time"),
        ("from=2026-01-02T00:00&to=2026-01-01T00:00", "the end comes before the beginning"),
        ("job=nothing", "there is no job 'nothing'"),
        (f"job={EVIL}", "there is no job"),
    ],
)
async def test_a_filter_that_cannot_be_read_is_told(client: httpx2.AsyncClient, query: str, why: str) -> None:
    page = await client.get(f"/history?{query}")

    assert page.status_code == 422
    assert why in text_of(page).lower()
    assert EVIL not in page.text
    assert (await client.get(f"/history.csv?{query}")).status_code in (404, 422)


async def test_pages_go_on_behind_a_cursor(
    client: httpx2.AsyncClient, tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_page, "PAGE_ROWS", 2)
    async with tick:
        ids = await ran(tick, "well", "broken", "well")
        first = await client.get("/history")
        [link] = re.findall(r'<a href="([^"]*)" rel="next">', first.text)
        second = await client.get(link.replace("&amp;", "&"))

    shown = re.findall(r'name="id" value="([^"]*)"', first.text + second.text)
    assert shown == ids[::-1]


async def test_a_look_through_errors_is_bounded_and_goes_on(
    client: httpx2.AsyncClient, tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_list, "MOST_LOOKED_AT", 2)
    monkeypatch.setattr(history_page, "MOST_LOOKED_AT", 2)
    monkeypatch.setattr(history_list, "_AT_ONCE", 2)
    async with tick:
        await ran(tick, "broken", "well", "well")
        page = await client.get("/history?error=table")
        assert "None of the newest 2 has this error" in text_of(page)
        [link] = re.findall(r'<a href="([^"]*)">Look further back', page.text)
        older = await client.get(link.replace("&amp;", "&"))

    assert rows(older) == ["broken"]


async def test_instants_in_a_row_that_did_not_run_are_one_line(client: httpx2.AsyncClient, tick: Everytick) -> None:
    from datetime import timedelta

    from everytick.stores.memory import MemoryStore
    from everytick.testing import ManualClock

    clock = ManualClock("2026-05-04T12:00:00Z")
    paused = Everytick(MemoryStore(clock=clock), name="paused")

    @paused.job(every("1h"))
    def hourly() -> None: ...

    await paused.sync()
    await paused.pause("hourly", reason="moving")
    clock.advance(timedelta(hours=5))
    transport = httpx2.ASGITransport(paused.asgi(), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        page = await asking.get("/history?job=hourly")

    assert rows(page) == ["hourly"]
    assert "5 instants: " in text_of(page)
    assert "/jobs/hourly/do/backfill?after=2026-05-04T12%3A59%3A59" in page.text


def outage() -> Everytick:
    """Return an application of which three jobs miss two or three instants each, in an outage of an hour."""
    made = Everytick("memory://", name="shop", timezone="UTC")

    async def work() -> None: ...

    for name in ("a", "b", "c"):
        made.job("*/20 * * * *", name=name, recovery="mark_as_missed")(work)
    made.job("*/30 * * * *", name="d", recovery="mark_as_missed")(work)
    return made


def pages_after_outage(*paths: str) -> list[str]:
    outages = (("2026-10-23T09:10:00Z", "2026-10-23T10:10:00Z"),)
    return pages_of(outage(), *paths, start="2026-10-23T08:00:00Z", until="2026-10-23T12:07:00Z", outages=outages)


def words_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<.*?>", " ", main_of(page)))


def test_what_was_missed_in_all_jobs_is_listed_and_counted() -> None:
    """The page said "Nothing", and of one job "1 instant", with a chip of 0 and a row of 3."""
    paths = ("", "?status=missed", "?status=missed&job=a", "?job=a", ".csv?status=missed", ".json?status=missed")
    every_one, missed, of_job, job, as_csv, as_json = pages_after_outage(*(f"/history{path}" for path in paths))

    assert heading_of(missed) == "11 missed instants in 24 h."
    assert heading_of(of_job) == "3 missed instants in 24 h of a."
    assert heading_of(job) == "9 occurrences in 24 h of a; none failed, 3 instants did not run."
    assert heading_of(every_one).endswith("; none failed, 11 instants were missed.")
    assert "missed 11 " in words_of(every_one)
    assert "missed 11 " in words_of(missed)
    assert "missed 3 " in words_of(of_job)
    assert sorted(re.findall(r'class="name" href="/jobs/(\w)"', missed.split("<tbody>")[1])) == ["a", "b", "c", "d"]
    assert words_of(missed).count("3 instants: ") == 3
    assert words_of(missed).count("2 instants: ") == 1
    assert "11 Replay" in words_of(missed)
    assert [row["job"] for row in csv.DictReader(io.StringIO(as_csv))] == [each["job"] for each in json.loads(as_json)]
    assert len(json.loads(as_json)) == 11


def test_pages_of_what_was_missed_go_on_within_one_instant() -> None:
    """Three jobs have missed the same instant: none is shown twice, and none is left out."""
    found = list[tuple[str, str]]()

    async def ask(client: httpx2.AsyncClient) -> None:
        cursor: str | None = ""
        while cursor is not None:
            following = f"&cursor={cursor}" if cursor else ""
            page = (await client.get(f"/api/occurrences?status=missed&limit=2{following}")).json()
            found.extend((each["scheduled_for"][11:16], each["job"]) for each in page["items"])
            cursor = page["cursor"]

    outages = (("2026-10-23T09:10:00Z", "2026-10-23T10:10:00Z"),)
    asked_at_end(outage(), ask, start="2026-10-23T08:00:00Z", until="2026-10-23T12:07:00Z", outages=outages)

    assert [at for at, _ in found] == ["10:00"] * 4 + ["09:40"] * 3 + ["09:30"] + ["09:20"] * 3
    assert len(set(found)) == 11


def test_what_was_skipped_in_all_jobs_is_listed() -> None:
    made = Everytick("memory://", name="shop", timezone="UTC")

    @made.job("*/10 * * * *", name="busy", overlap="skip", task_timeout="9h")
    async def busy() -> None:
        await takes(minutes=25)

    made.job("0 * * * *", name="held")(lambda: None)

    async def pause() -> None:
        await made.pause("held", reason="moving")

    page, other = pages_of(
        made,
        "/history?status=skipped",
        "/history?status=missed",
        start="2026-10-23T08:00:00Z",
        until="2026-10-23T12:07:00Z",
        at={"2026-10-23T09:30:00Z": pause},
    )

    assert heading_of(page) == "19 skipped instants in 24 h."
    assert "skipped 19 " in words_of(page)
    assert re.search(r"skipped held 12:00 to 14:00:00 .*? 3 instants: paused", words_of(page))
    assert heading_of(other) == "Nothing in 24 h."


def test_an_instant_that_was_made_up_for_is_counted_as_what_it_became() -> None:
    made = outage()

    async def backfill() -> None:
        await made.backfill("a", "2026-10-23T09:19:00Z", "2026-10-23T09:21:00Z")

    [page] = pages_of(
        made,
        "/history?status=missed",
        start="2026-10-23T08:00:00Z",
        until="2026-10-23T12:07:00Z",
        at={"2026-10-23T11:00:00Z": backfill},
        outages=(("2026-10-23T09:10:00Z", "2026-10-23T10:10:00Z"),),
    )

    assert heading_of(page) == "10 missed instants in 24 h."


# --------------------------------------------------------------------------------------------------------------- export


async def test_csv_has_every_column_and_nothing_that_calculates(client: httpx2.AsyncClient, tick: Everytick) -> None:
    async with tick:
        await ran(tick, "=SUM(A1)", "broken")
        answer = await client.get("/history.csv?cause=trigger")

    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="history.csv"'
    broken, counting = csv.DictReader(io.StringIO(answer.text))
    assert (broken["job"], broken["status"]) == ("broken", "failed")
    assert float(broken["took_seconds"]) >= 0
    assert counting["job"] == "'=SUM(A1)"


async def test_an_empty_export_is_still_json(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/history.json")).json() == []


# ----------------------------------------------------------------------------------------------------- many occurrences


async def test_many_failures_are_replayed_with_a_preview(client: httpx2.AsyncClient, tick: Everytick) -> None:
    async with tick:
        ids = await ran(tick, "broken", "well", "broken")
        path = "/history/do/replay?status=failed"
        page = await client.get(path)
        said = text_of(page)
        assert "Replay 2 occurrences?" in said
        assert "2 new occurrences" in said
        answer = await sent_again(client, path, page, reason="table made")

        assert answer.headers["location"] == "/history?cause=replay"
        assert await told(client, answer) == "Asked for 2 replays."
        shown = await client.get("/history?cause=replay")
        replays = list(await tick.history(cause="replay"))
    assert {each.replay_of for each in replays} <= {ids[0], ids[2]}
    assert shown.status_code == 200


async def test_what_was_chosen_is_canceled(client: httpx2.AsyncClient, tick: Everytick) -> None:
    first, second = [await tick.trigger("well", at=f"212{year}-01-01T00:00:00Z") for year in (6, 7)]
    path = f"/history/do/cancel?id={first.id}"
    answer = await sent(client, path, reason="not needed")

    assert await told(client, answer) == "Canceled 1 occurrence."
    assert answer.headers["location"] == "/history?status=canceled"
    found = [(await tick.occurrence(each.id)).occurrence.status for each in (first, second)]
    assert [str(status) for status in found] == ["canceled", "pending"]
    assert "there is nothing to cancel" in text_of(await client.get(path))


async def test_a_form_of_many_that_is_sent_twice_is_done_once(client: httpx2.AsyncClient, tick: Everytick) -> None:
    async with tick:
        await ran(tick, "broken")
        path = "/history/do/replay?status=failed"
        page = await client.get(path)
        first = await sent_again(client, path, page)
        second = await sent_again(client, path, page)
        assert first.status_code == second.status_code == 303
        await sent(client, "/jobs/broken/do/pause")
        async for each in await tick.history(cause="replay"):
            await tick.cancel(each.id)
        assert len(list(await tick.history(cause="replay"))) <= 1


@pytest.mark.parametrize("file", ["", ".json"])
async def test_who_may_not_read_errors_cannot_look_through_them(tick: Everytick, file: str) -> None:
    """S3: a filter that finds a hidden text tells it, letter by letter."""

    async def identify(request: Request) -> Person:
        return Person("ann", Role[request.headers["role"].upper()])

    await tick.sync()
    async with tick, client_of(tick, service=asgi(tick, identify=identify)) as asking:
        await ran(tick, "broken")
        path, found = f"/history{file}?error=no+table", {}
        for role in ("viewer", "operator"):
            answer = await asking.get(path, headers={"role": role})
            assert answer.status_code == 200, answer.text
            found[role] = answer.text

    assert ("broken" in found["viewer"], "broken" in found["operator"]) == (False, True)


async def test_a_search_ends_at_the_same_place_whether_a_hidden_error_fits_or_not(
    tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3: a page that is full goes on behind a cursor. It told whether a guess at a hidden error was right."""
    monkeypatch.setattr(history_page, "PAGE_ROWS", 2)
    monkeypatch.setattr(history_list, "_AT_ONCE", 2)
    monkeypatch.setattr(history_list, "MOST_LOOKED_AT", 4)

    async def identify(request: Request) -> Person:
        return Person("ann", Role.VIEWER)

    await tick.sync()
    async with tick, client_of(tick, service=asgi(tick, identify=identify)) as asking:
        for _ in range(5):
            await ran(tick, "broken")
        pages = [await asking.get(f"/history?error={guess}") for guess in ("notable", "xxzzzzz", "no+table")]

    links = [re.findall(r"cursor=([^\"&]+)", page.text) for page in pages]
    assert links[0] == links[1] == links[2]
    # A second may have ended between two of them: each page begins with the moment at which it was made.
    said = [text_of(page).partition(" UTC, UTC ")[2] for page in pages]
    assert said[0] == said[1] == said[2]
    assert said[0].startswith("No occurrence with this error in 24 h.")
