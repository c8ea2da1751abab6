"""The list of jobs: its order, its filters, its pages, and deeds on many at once."""

import re

import httpx2
import pytest

from everytick import Context, Everytick, Retry, every
from everytick.access.people import Person, Role
from everytick.web.asgi import asgi
from everytick.web.job_list import JobState
from everytick.web.pages import jobs as jobs_page
from everytick.web.static import files
from tests.unit.web.forms_of_pages import FormOnPage, sent, sent_again, text_of, told
from tests.unit.web.histories import heading_of, pages_of, takes

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def tick() -> Everytick:
    made = Everytick("memory://", name="shop", poll="100ms")

    @made.job(every("1d"), name="broken", tags=["billing"])
    def broken() -> None:
        raise ValueError("no <b>table</b>")

    @made.job(every("1d"), name="well", tags=["billing", EVIL])
    def well() -> None: ...

    @made.job(every("2h"), name=EVIL)
    def evil() -> None: ...

    @made.job(every("1h"), name="held")
    def held() -> None: ...

    return made


def names(page: httpx2.Response) -> list[str]:
    """Return the jobs of the table, in order."""
    from html import unescape

    return [unescape(name) for name in re.findall(r'<span class="name">(.*?)</span>', page.text)]


async def test_what_needs_a_look_comes_first_and_the_heading_says_it(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    async with tick:
        for name in ("broken", "well"):
            await (await tick.trigger(name)).wait("30s")
        await tick.pause("held")
        page = await client.get("/jobs")

    assert "<h1>4 jobs; 1 needs a look, 1 is paused.</h1>" in page.text
    assert names(page) == ["broken", EVIL, "well", "held"]
    said = text_of(page)
    assert "failed 1 never_ran 1" in re.sub(r"paused 1 ", "", said)
    assert "paused since" in said
    assert re.search(r"broken .*? 0 % code:shop billing", said)
    assert re.search(r"well .*? 100 % code:shop", said)
    assert EVIL not in page.text


async def test_a_paused_job_that_needs_a_look_is_told_as_paused_too(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    """It had no chip and no word in the heading, and `state=paused` showed an empty panel."""
    tick.job(every("1d"), name="off", enabled=False)(lambda: None)
    async with tick:
        await (await tick.trigger("broken")).wait("30s")
        await tick.pause("broken")
        await tick.sync()
        page, paused, disabled = [await client.get(f"/jobs{of}") for of in ("", "?state=paused", "?state=disabled")]
        failed = await client.get("/jobs?state=failed")

    assert "<h1>5 jobs; 1 needs a look, 1 is paused, 1 is disabled.</h1>" in page.text
    assert re.search(r"failed 1 .*?paused 1 disabled 1 ", text_of(page))
    assert names(paused) == names(failed) == ["broken"]
    assert names(disabled) == ["off"]
    [row] = [row for row in paused.text.split("<tr>") if 'class="name">broken<' in row]
    assert "#paused" in row
    assert re.search(r"failed .*? paused", text_of(paused))


@pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.FINE])
async def test_a_filter_that_means_no_job_says_so(client: httpx2.AsyncClient, state: JobState) -> None:
    page = await client.get("/jobs", params={"state": state, "owner": "nobody"})
    [said] = re.findall(r'<p class="nothing">(.*?)\. <a href="/jobs">Show all jobs</a>', page.text)
    assert said.endswith(" among those that the filter means")
    assert f"{state} 0" in text_of(page)


async def test_a_page_lists_schedules_with_their_next_run_and_leads_to_all_that_is_done_to_them(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    """S1-026: all schedules with their next fire time, a button to pause or resume, one to reschedule, the history."""
    async with tick:
        await (await tick.trigger("broken")).wait("30s")
        await tick.pause("held")
        rows = {name: await tick.status(name) for name in ("broken", "well")}
        listed = await client.get("/jobs")
        running, held = await client.get("/jobs/broken"), await client.get("/jobs/held")
        past = await client.get("/history?job=broken")

    for name, status in rows.items():
        assert status.next_run is not None
        row = listed.text.partition(f'<span class="name">{name}</span>')[2].partition("</tr>")[0]
        assert f'datetime="{status.next_run:%Y-%m-%dT%H:%M:%S}' in row, name
    assert 'href="/jobs/broken/do/pause"' in running.text
    assert 'href="/jobs/held/do/resume"' in held.text
    assert 'href="/jobs/broken/do/reschedule"' in running.text
    assert 'href="/history?job=broken&amp;w=30d"' in running.text
    assert "ValueError: no <b>table</b>" in text_of(past)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"q": "EL"}, ["held", "well"]),
        ({"q": "bill"}, ["broken", "well"]),
        ({"tag": "billing"}, ["broken", "well"]),
        ({"owner": "nobody"}, []),
        ({"state": "paused"}, ["held"]),
        ({"state": "nonsense", "q": "held"}, ["held"]),
        ({"q": EVIL}, [EVIL, "well"]),
    ],
)
async def test_filters_stand_in_the_address(
    client: httpx2.AsyncClient, tick: Everytick, query: dict[str, str], found: list[str]
) -> None:
    await tick.pause("held")
    page = await client.get("/jobs", params=query)

    assert sorted(names(page)) == sorted(found)
    assert EVIL not in page.text


async def test_pages_go_on_behind_a_name(client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_page, "PAGE_ROWS", 3)
    first = await client.get("/jobs")
    [link] = re.findall(r'<a href="([^"]*)" rel="next">', first.text)
    second = await client.get(link.replace("&amp;", "&"))

    assert len(names(first)) == 3
    assert sorted([*names(first), *names(second)]) == sorted(["broken", "well", "held", EVIL])
    assert "4–4 of 4" in text_of(second)


async def test_a_change_is_seen_by_the_next_page(client: httpx2.AsyncClient) -> None:
    assert "1 is paused" not in (await client.get("/jobs")).text
    await sent(client, "/jobs/held/do/pause")
    assert "1 is paused" in (await client.get("/jobs")).text


# ------------------------------------------------------------------------------------------------------------ many jobs


async def test_many_jobs_are_paused_and_resumed_with_a_preview(client: httpx2.AsyncClient, tick: Everytick) -> None:
    path = "/jobs/do/pause?tag=billing"
    page = await client.get(path)
    said = text_of(page)
    assert "Pause 2 jobs?" in said
    assert "2 schedules held from now on" in said
    answer = await sent_again(client, path, page, reason="audit")

    assert answer.headers["location"] == "/jobs?state=paused"
    assert await told(client, answer) == "Paused 2 jobs."
    paused = [record.job.name for record in await tick.jobs() if record.pause is not None]
    assert sorted(paused) == ["broken", "well"]

    resumed = await sent(client, "/jobs/do/resume?state=paused")
    assert await told(client, resumed) == "Resumed 2 jobs."
    assert all(record.pause is None for record in await tick.jobs())


async def test_what_was_chosen_is_done_and_nothing_else(client: httpx2.AsyncClient, tick: Everytick) -> None:
    path = str(httpx2.URL("/jobs/do/pause", params=[("job", "well"), ("job", EVIL)]))
    page = await client.get(path)
    assert EVIL not in page.text
    answer = await sent_again(client, path, page)

    assert answer.status_code == 303, text_of(answer)
    paused = {record.job.name for record in await tick.jobs() if record.pause is not None}
    assert paused == {"well", EVIL}


async def test_a_preview_names_ten_and_counts_the_rest(tick: Everytick, client: httpx2.AsyncClient) -> None:
    for number in range(41):
        tick.define(f"many-{number:02}", every("1h")).task(name="x")(lambda: None)
    await tick.sync()
    said = text_of(await client.get("/jobs/do/pause?q=many"))

    assert "Pause 41 jobs?" in said
    assert len(re.findall(r"many-\d\d", said)) == 10
    assert "and 31 more" in said


async def test_nothing_to_do_has_no_button(client: httpx2.AsyncClient) -> None:
    page = await client.get("/jobs/do/resume")
    assert "None of them is paused." in text_of(page)
    assert not FormOnPage(page.text).is_there


async def test_a_viewer_sees_no_deed_and_no_error(tick: Everytick) -> None:
    async def identify(_: object) -> Person:
        return Person("ann", Role.VIEWER)

    transport = httpx2.ASGITransport(asgi(tick, identify=identify), raise_app_exceptions=False)
    async with tick, httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as viewer:
        await (await tick.trigger("broken")).wait("30s")
        for path in ("/jobs", "/history"):
            page = await viewer.get(path)
            assert page.status_code == 200
            assert "/do/" not in page.text.partition("<main")[2]
            assert "checkbox" not in page.text
            assert "table&lt;" not in page.text
        assert (await viewer.get("/jobs/do/pause")).status_code == 403
        assert (await viewer.get("/history/do/replay")).status_code == 403


# ---------------------------------------------------------------------------------------------------------------- views


async def test_a_view_is_saved_and_forgotten(client: httpx2.AsyncClient) -> None:
    page = await client.get("/views", params={"page": "jobs", "query": "tag=billing&q=<x>"})
    [token] = re.findall(r'name="csrf" value="([^"]*)"', page.text)
    kept = await client.post("/views", data={"csrf": token, "page": "jobs", "query": "tag=billing&q=<x>", "name": EVIL})
    assert kept.headers["location"] == "/jobs?tag=billing&q=%3Cx%3E"

    page = await client.get("/jobs")
    assert '<a href="/jobs?tag=billing&amp;q=%3Cx%3E">&lt;img' in page.text
    assert "saved:" not in (await client.get("/history")).text
    await client.post("/views", data={"csrf": token, "page": "jobs", "query": "", "name": EVIL})
    assert "saved:" not in (await client.get("/jobs")).text


@pytest.mark.parametrize("cookie", ["nonsense", "bnVsbA", "W10", "eyJqb2JzIjogM30"])
async def test_a_cookie_that_is_no_view_is_as_none(client: httpx2.AsyncClient, cookie: str) -> None:
    client.cookies.set("everytick_views", cookie)
    assert (await client.get("/jobs")).status_code == 200


def test_script_stays_within_its_budget() -> None:
    """Dashboard design, section 10: 15 KB of script in all."""
    assert sum(len(file.plain) for name, file in files().items() if name.endswith(".js")) <= 15 * 1024


def test_the_list_and_the_page_now_name_the_same_jobs() -> None:
    """A run that began late, one that overruns, a broken promise and an end with errors need a look on both.

    A retry does on neither.
    """
    tick = Everytick("memory://", name="shop", timezone="UTC")
    tick.job("0 0 1 1 *", name="promised", success_within="2h")(lambda: None)

    @tick.job("0 * * * *", name="long", task_timeout="9h")
    async def long(ctx: Context) -> None:
        await takes(minutes=10 if ctx.scheduled_for.hour < 11 else 600)

    @tick.job("0 * * * *", name="late", task_timeout="9h")
    async def late() -> None:
        await takes(minutes=30)

    @tick.job("0 12 * * *", name="partly", failure="continue")
    async def partly() -> None:
        raise ValueError("half of it is missing")

    @tick.job("15 12 * * *", name="retries", retry=Retry(2, "10m"))
    async def retries() -> None:
        raise ConnectionError("away")

    @tick.job("0 * * * *", name="well")
    async def well() -> None: ...

    async def brake() -> None:
        await tick.brake("job:late")

    async def release() -> None:
        await tick.release("job:late", at_once=True)

    at = {"2026-10-23T11:59:00Z": brake, "2026-10-23T12:05:40Z": release}
    now, listed = pages_of(tick, "/", "/jobs", start="2026-10-23T00:00:00Z", until="2026-10-23T12:20:00Z", at=at)
    rows = {
        re.search(r'<span class="name">(.*?)</span>', row)[1]: row  # type: ignore[index]
        for row in listed.split("<tbody>")[1].split("</tbody>")[0].split("<tr>")[1:]
    }

    assert heading_of(now) == "Four jobs need a look."
    assert "late</b>: on time" not in now
    assert "started 5 min 40 s late</b>" in now
    assert heading_of(listed) == "6 jobs; 4 need a look."
    assert list(rows)[:5] == ["promised", "late", "long", "partly", "retries"]
    assert "broke success_within 10 h ago" in rows["promised"]
    assert "running, started 5 min 40 s late" in rows["late"]
    assert "running 1 h 20 min, usually 10 min" in rows["long"]
    assert "#completed_with_errors" in rows["partly"]
    assert "completed_with_errors 19 min ago" in rows["partly"]
    assert ">0 %<" in rows["partly"]
    assert "awaiting_retry, again in 5 min" in rows["retries"]
