"""The page of an occurrence in every state: what it says, what it draws, and what it hides."""

import asyncio
import html
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import pytest

from everytick import Context, Everytick, Retry, every
from everytick.access.people import Role
from everytick.deciding.advance import advance
from everytick.deciding.plan import plan
from everytick.domain.outcome import Lost
from everytick.domain.steps import Claimed
from everytick.domain.trace_ids import trace_id
from everytick.stores.base import Nodes, NodeScope
from everytick.testing import ManualClock, MemoryStore, on_store
from everytick.web.occurrence_words import OutputLine, error_lines
from everytick.web.pages.occurrence import utc_note
from everytick.web.words import Viewer
from tests.unit.web.conftest import client_of
from tests.unit.web.histories import XSS, asked_at_end, faults_of, heading_of, pages_of, takes, title_of

START = "2026-10-23T00:00:00Z"


def etl(**policies: object) -> Everytick:
    """Return an application whose job `etl` fails in its second task, after three attempts."""
    tick = Everytick("memory://", name="shop", timezone="Europe/Berlin")
    job = tick.define(
        "etl",
        "30 2 * * *",
        retry=Retry(2, "1m", factor=2.0),
        payload={"full": False},
        **policies,  # type: ignore[arg-type]
    )

    @job.task
    async def extract() -> dict[str, int]:
        await takes(minutes=4)
        return {"rows": 182406}

    @job.task(after=["extract"])
    async def load() -> None:
        await takes(minutes=2)
        raise ConnectionError("port 5432 failed: timed out\nIs the server running?")

    @job.task(after=["load"])
    async def report() -> None: ...

    return tick


def shown(
    tick: Everytick,
    job: str,
    until: str,
    *,
    query: str = "",
    newest: int = 0,
    at: dict[str, Callable[[], Awaitable[Any]]] | None = None,
    role: Role = Role.ADMIN,
    outages: tuple[tuple[str, str], ...] = (),
    start: str = START,
) -> str:
    """Return the page of an occurrence of the job, by default the newest, as it is at the end."""
    found: list[str] = []

    async def ask(client: httpx2.AsyncClient) -> None:
        entry = list(await tick.history(job))[newest]
        answer = await client.get(f"/occurrences/{entry.id}{query}", headers={"accept": "text/html"})
        assert answer.status_code == 200, answer.text[:2000]
        found.append(answer.text)

    asked_at_end(tick, ask, start=start, until=until, at=at, role=role, outages=outages)
    assert faults_of(found[0]) == []
    return found[0]


def facts(page: str) -> list[str]:
    """Return the facts of the trail."""
    trail = page.split('<ol class="trail">')[1].split("</ol>")[0]
    return [html.unescape(fact) for fact in re.findall(r"<b>(.*?)</b>", trail)]


# ------------------------------------------------------------------------------------------------------------- failed


def test_the_error_stands_first_with_its_traceback_folded() -> None:
    page = shown(etl(), "etl", "2026-10-23T12:00:00Z")

    assert heading_of(page) == "failed: load gave up after 3 attempts"
    assert title_of(page) == "failed: load gave up after 3 attempts · etl · everytick"
    assert "of <b><time" in page
    assert "on time, took 13 min" in page
    assert '<h2 id="error">ConnectionError in load, attempt 3</h2>' in page
    assert "port 5432 failed: timed out\nIs the server running?" in page
    assert re.search(r"<details><summary>Traceback, \d+ frames?</summary>", page)
    assert page.index('id="error"') < page.index('id="attempts"') < page.index('id="why"')


def test_every_task_is_a_row_with_its_attempts_and_waits() -> None:
    page = shown(etl(), "etl", "2026-10-23T12:00:00Z")
    table = shown(etl(), "etl", "2026-10-23T12:00:00Z", query="?as=table")

    figure = page.split('<figure class="gantt')[1].split("</figure>")[0]
    assert re.findall(r"</svg><span>(\w+)<small>(.*?)</small>", figure) == [
        ("extract", "1 attempt"),
        ("load", "3 of 3 attempts"),
        ("report", "after load"),
    ]
    assert figure.count('class="m-wrong"') == 3
    assert figure.count('fill="url(#p-look)"') == 2
    assert "not started: load failed" in figure
    assert table.count('<th scope="row">load</th>') == 3
    assert '<th scope="row">report</th>' in table


def test_the_trail_tells_how_it_came_to_that() -> None:
    page = shown(etl(), "etl", "2026-10-23T12:00:00Z")

    assert facts(page) == [
        "The schedule named 02:30",
        "It was on time",
        "Nothing stood against it",
        "It got a place",
        "Task load failed three times",
        "So the occurrence failed",
        "Next: Sat 02:30",
    ]


def test_facts_payload_and_results_are_there_for_those_who_may_see_them() -> None:
    page = shown(etl(), "etl", "2026-10-23T12:00:00Z")
    viewer = shown(etl(), "etl", "2026-10-23T12:00:00Z", role=Role.VIEWER)

    for part in ("Fri 23 Oct 2026, 02:30:00 CEST", "00:30:00 UTC", "Thu 02:30 to Fri 02:30", "fence ", "182406"):
        assert part in page
    assert "&#34;full&#34;: false" in page
    for hidden in ("182406", "full", "5432", "Traceback", "/do/", "ConnectionError"):
        assert hidden not in viewer, hidden
    assert "It ended with an error, which viewers do not see." in viewer
    assert "hidden from viewers" in viewer


def test_utc_stands_once_in_the_facts_of_a_reader_in_utc() -> None:
    at = datetime(2026, 10, 23, 2, 30, tzinfo=UTC)
    berlin = ZoneInfo("Europe/Berlin")

    assert utc_note(at, Viewer("Etc/UTC", ZoneInfo("Etc/UTC"), at)) == ""
    assert utc_note(at, Viewer("Europe/Berlin", berlin, at)) == "02:30:00 UTC"


def test_a_failure_can_be_replayed_from_the_task_that_failed() -> None:
    page = shown(etl(), "etl", "2026-10-23T12:00:00Z")

    links = [html.unescape(each) for each in re.findall(r'href="(/occurrences/[^"]*/do/[^"]*)"', page)]
    assert [each.partition("/do/")[2] for each in links] == ["replay?from_task=load", "replay"]


def test_failures_of_the_same_kind_are_counted() -> None:
    tick = Everytick("memory://", name="shop")
    for name in ("a", "b"):

        @tick.job("0 * * * *", name=name)
        def fail() -> None:
            raise OSError("disk 7 is full")

    page = shown(tick, "a", "2026-10-23T03:30:00Z")

    assert '5 other occurrences</a> in 24 h: <a href="/jobs/a">a</a>, <a href="/jobs/b">b</a>.' in page


def test_a_timeout_says_so() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("0 * * * *", name="slow", task_timeout="5m")
    async def slow() -> None:
        await takes(hours=1)

    assert heading_of(shown(tick, "slow", "2026-10-23T01:30:00Z")) == "failed: slow took too long"


# ------------------------------------------------------------------------------------------------------- other states


def test_a_running_occurrence_shows_the_task_that_runs_and_its_usual_end() -> None:
    tick = Everytick("memory://", name="shop")
    job = tick.define("long", "0 * * * *", task_timeout="2h")

    @job.task
    async def first() -> None:
        await takes(minutes=10)

    @job.task(after=["first"])
    async def second() -> None:
        await takes(minutes=20)

    page = shown(tick, "long", "2026-10-23T05:15:00Z")

    assert heading_of(page) == "running for 15 min, now second"
    assert 'class="m-present"' in page
    assert 'class="m-ghost"' in page
    assert "5 min so far" in page
    assert page.count('class="nowline"') == 2
    assert "/do/cancel" in page
    assert "/do/replay" not in page
    assert '<meta http-equiv="refresh" content="5">' in page
    assert facts(page)[-2:] == ["It runs", "Next: 08:00"]


def test_one_that_awaits_a_retry_says_when() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("0 0 * * *", name="again", retry=Retry(3, "30m"))
    async def again() -> None:
        await takes(minutes=1)
        raise OSError("away")

    page = shown(tick, "again", "2026-10-24T00:10:00Z", start="2026-10-23T12:00:00Z")

    assert heading_of(page) == "awaiting_retry: again is tried again at 02:31"
    assert '<h2 id="error">OSError in again, attempt 1</h2>' in page
    assert "/do/cancel" in page


def test_one_that_waits_in_line_says_behind_what() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("0 * * * *", name="long", task_timeout="3h", overlap="queue")
    async def long() -> None:
        await takes(hours=2)

    page = shown(tick, "long", "2026-10-23T02:10:00Z")

    assert heading_of(page) == "queued: waiting in line"
    assert "Waiting in line" in facts(page)
    assert "/do/cancel" in page


def test_a_canceled_one_says_by_whom() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("0 * * * *", name="long", task_timeout="3h")
    async def long() -> None:
        await takes(hours=2)

    async def cancel() -> None:
        [entry] = await tick.history("long")
        await tick.cancel(entry.id, reason="wrong file", by="ops")

    page = shown(tick, "long", "2026-10-23T01:50:00Z", at={"2026-10-23T01:30:00Z": cancel})

    assert heading_of(page).startswith("canceled: ")
    assert "wrong file" in page
    assert "It was canceled" in facts(page)


def test_one_that_the_next_one_took_over_says_so() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("0 * * * *", name="again", retry=Retry(9, "50m", superseded_by_next=True), overlap="queue")
    async def again() -> None:
        raise OSError("away")

    page = shown(tick, "again", "2026-10-23T02:10:00Z", newest=1)

    assert heading_of(page).startswith("superseded: ")
    assert "A newer one took its place" in facts(page)


async def test_one_whose_node_fell_silent_says_so() -> None:
    """The first node claims it and says nothing more; the second one takes it over and reports it lost."""
    clock = ManualClock("2026-10-23T00:30:00Z")
    store, tick = MemoryStore(clock), Everytick("memory://", name="shop")

    @tick.job("0 * * * *", name="long", task_timeout="3h")
    def long() -> None: ...

    with on_store(tick, store):
        await tick.sync()
        clock.set("2026-10-23T01:00:00Z")
        scope = NodeScope("node-a", met=tuple(record.needs for record in await tick.jobs()))
        async with store.due(scope, 10) as batch:
            await store.commit_plans(batch, [plan(each, batch.now) for each in batch.snapshots])
        [claim] = await store.claim(scope, 1)
        begun = advance(claim.header, claim.life, Claimed(), clock.now)
        await store.commit_steps([(claim, begun)])
        await store.beat("node-a", [claim.key])
        clock.set("2026-10-23T01:10:00Z")
        [silent] = await store.ask(Nodes())
        [lost] = await store.orphans("node-b", 10, {silent.id: silent.beats})
        await store.commit_steps([(lost, advance(lost.header, lost.life, Lost(), clock.now))])
        async with client_of(tick) as client:
            page = (await client.get(f"/occurrences/{claim.occurrence.id}")).text

    assert heading_of(page) == "failed_stale: its node fell silent"
    assert "Its node fell silent" in facts(page)


def test_a_late_run_says_so() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("0 * * * *", name="hourly", recovery="execute_all")
    async def hourly() -> None:
        await takes(minutes=1)

    page = shown(
        tick, "hourly", "2026-10-23T05:30:00Z", newest=2, outages=(("2026-10-23T00:30:00Z", "2026-10-23T05:20:00Z"),)
    )

    assert re.search(r"started \d.* late", page)
    assert "It came late" in facts(page)
    assert heading_of(page) == "completed: it took 1 min"


def test_one_that_was_planned_in_time_and_waited_for_a_limit_is_not_said_to_be_on_time() -> None:
    """The page Now tells the same: it started late."""
    tick = Everytick("memory://", name="shop")

    @tick.job("0 * * * *", name="hourly", task_timeout="1h")
    async def hourly() -> None:
        await takes(minutes=10)

    async def brake() -> None:
        await tick.brake("job:hourly")

    async def release() -> None:
        await tick.release("job:hourly", at_once=True)

    at: dict[str, Callable[[], Awaitable[Any]]] = {"2026-10-23T04:59:00Z": brake, "2026-10-23T05:05:40Z": release}
    page = shown(tick, "hourly", "2026-10-23T05:07:00Z", at=at)

    assert heading_of(page) == "running for 1 min 20 s"
    assert "started 5 min 40 s late, usually 10 min, on " in page
    assert "on time" not in page
    assert facts(page)[1:4] == ["It was planned in time", "Nothing stood against it", "It started 5 min 40 s late"]
    assert "if this one has not ended by then, the next is skipped (overlap skip)" in page


def test_one_that_takes_longer_than_nearly_all_before_it_says_so_in_its_heading() -> None:
    tick = Everytick("memory://", name="shop")

    @tick.job("0 * * * *", name="hourly", task_timeout="9h")
    async def hourly(ctx: Context) -> None:
        await takes(minutes=10 if ctx.scheduled_for.hour < 5 else 600)

    page = shown(tick, "hourly", "2026-10-23T05:40:00Z")

    assert heading_of(page) == "running for 40 min; usually 10 min"
    assert 'class="w-look" height="16"' in page


def test_a_replay_names_what_it_repeats_and_both_lead_to_each_other() -> None:
    tick = etl()

    async def replay() -> None:
        [entry] = await tick.history("etl")
        await tick.replay(entry.id, from_task="load", reason="the database is back", by="ops")

    found: dict[str, str] = {}

    async def ask(client: httpx2.AsyncClient) -> None:
        for entry in await tick.history("etl"):
            found[str(entry.cause)] = (await client.get(f"/occurrences/{entry.id}")).text

    asked_at_end(tick, ask, start=START, until="2026-10-23T12:00:00Z", at={"2026-10-23T10:00:00Z": replay})

    assert "Replay of</dt>" in found["replay"]
    assert "this one repeats it" in found["replay"]
    assert "repeats this one" in found["schedule"]
    assert "by ops" in found["replay"]
    assert "the database is back" in found["replay"]


def test_over_forty_tasks_are_shortened_to_those_that_matter() -> None:
    tick = Everytick("memory://", name="shop")
    job = tick.define("wide", "0 * * * *", mode="parallel", failure="continue")
    for number in range(60):

        async def work(number: int = number) -> None:
            await takes(seconds=1 + number)
            if number == 7:
                raise ValueError("seven")

        job.task(name=f"task-{number}")(work)

    page = shown(tick, "wide", "2026-10-23T01:30:00Z")
    whole = shown(tick, "wide", "2026-10-23T01:30:00Z", query="?rows=all")

    assert page.split('<figure class="gantt')[1].count('<span class="who">') == 11
    assert "49 more tasks went well or did not begin" in page
    assert "?rows=all" in page
    assert whole.split('<figure class="gantt')[1].count('<span class="who">') == 60


def test_nothing_that_tasks_say_becomes_markup() -> None:
    tick = Everytick("memory://", name="shop")
    job = tick.define(f"job {XSS}", "0 * * * *", payload={f"key {XSS}": XSS}, failure="continue")

    @job.task(name=f"task {XSS}")
    def bad() -> None:
        raise ValueError(f"error {XSS}")

    @job.task(name="good")
    def good() -> dict[str, str]:
        return {f"result {XSS}": XSS}

    for query in ("", "?as=table"):
        page = shown(tick, f"job {XSS}", "2026-10-23T01:30:00Z", query=query)
        assert "<script>alert" not in page
        for word in ("job", "task", "error"):
            assert f"{word} {html.escape(XSS)}" in page.replace("&#34;", "&quot;"), word


# ---------------------------------------------------------------------------------------------------------- addresses


def test_a_short_id_leads_to_the_whole_one_and_others_are_not_found() -> None:
    tick, answers = etl(), dict[str, tuple[int, str]]()

    async def ask(client: httpx2.AsyncClient) -> None:
        [entry] = await tick.history("etl")
        uuid = entry.id.removeprefix("occ_")
        for path in (
            uuid,
            uuid[:8],
            f"occ_{uuid[:13]}",
            "00000000",
            f"occ_{'0' * 8}-0000-0000-0000-{'0' * 12}",
            "x'--",
        ):
            answer = await client.get(f"/occurrences/{path}", headers={"accept": "text/html"})
            answers[path] = answer.status_code, answer.headers.get("location", "").rpartition("/")[2]

        assert [code for code, _ in answers.values()] == [303, 303, 303, 404, 404, 404]
        assert {place for code, place in answers.values() if code == 303} == {entry.id}

    asked_at_end(tick, ask, start=START, until="2026-10-23T12:00:00Z")
    assert answers


@pytest.mark.parametrize(
    ("at", "heading", "deeds"),
    [
        ("2026-10-22T00:30:00Z", "etl at Thu 02:30: before the job was known.", ["backfill"]),
        ("2026-10-23T00:30:00Z", "etl at 02:30: ran.", []),
        ("2026-10-23T07:00:00Z", "etl at 09:00: not named by the schedule.", ["backfill"]),
        ("2026-10-24T00:30:00Z", "etl at Sat 02:30: will run.", ["skip", "move", "amend"]),
    ],
)
def test_an_instant_without_an_occurrence_has_its_trail(at: str, heading: str, deeds: list[str]) -> None:
    [page] = pages_of(etl(), f"/jobs/etl/at?at={at}", start=START, until="2026-10-23T12:00:00Z")

    assert heading_of(page) == heading
    assert re.findall(r"/jobs/etl/do/(\w+)\?", page) == deeds
    assert facts(page)[-1].startswith("Next: ")
    assert ("Its occurrence" in page) == (heading == "etl at 02:30: ran.")
    assert faults_of(page) == []


def test_viewers_see_no_error_in_the_trail_of_an_instant() -> None:
    path, until = "/jobs/etl/at?at=2026-10-23T00:30:00Z", "2026-10-23T12:00:00Z"
    [operator] = pages_of(etl(), path, start=START, until=until, role=Role.OPERATOR)
    [viewer] = pages_of(etl(), path, start=START, until=until, role=Role.VIEWER)

    assert "5432" in operator
    assert "5432" not in viewer
    assert heading_of(viewer) == "etl at 02:30: ran."


def test_a_missed_and_a_skipped_instant_say_why() -> None:
    tick = etl(recovery="mark_as_missed")
    deeds = {"2026-10-24T12:00:00Z": lambda: tick.pause("etl", reason="schema fix", by="ops")}
    missed, skipped = pages_of(
        tick,
        "/jobs/etl/at?at=2026-10-24T00:30:00Z",
        "/jobs/etl/at?at=2026-10-25T00:30:00Z",
        start=START,
        until="2026-10-25T12:00:00Z",
        at=deeds,
        outages=(("2026-10-23T20:00:00Z", "2026-10-24T10:00:00Z"),),
    )

    assert heading_of(missed) == "etl at Sat 02:30: missed and not made up for."
    assert heading_of(skipped) == "etl at 02:30 CEST: paused."
    assert "schema fix" in skipped


def test_a_time_that_cannot_be_read_is_told() -> None:
    codes: list[int] = []

    async def ask(client: httpx2.AsyncClient) -> None:
        codes.extend([(await client.get(f"/jobs/etl/at?at={at}")).status_code for at in ("", "soon", "2026-10-24")])

    asked_at_end(etl(), ask, start=START, until="2026-10-23T12:00:00Z")
    assert codes == [422, 422, 422]


# ------------------------------------------------------------------------------------------------------------- output


async def spoken(tmp_path: Path, text: str) -> tuple[Everytick, str]:
    """Return an application on a store of this test, and the id of an occurrence that has written this."""
    tick = Everytick(f"sqlite:///{tmp_path}/e.db", name="shop", log_folder=tmp_path / "logs")

    @tick.job(every("P1Y"))
    def talk(ctx: Context) -> None:
        ctx.log.info("begins")
        print(text)  # noqa: T201, what is printed is kept
        ctx.log.error("broken %s", XSS)

    async with tick:
        ended = await (await tick.trigger("talk")).wait(timeout="60s")
    return tick, ended.id


async def test_output_is_shown_by_attempt_with_the_lines_of_loggers_in_columns(tmp_path: Path) -> None:
    tick, id_ = await spoken(tmp_path, f"plain {XSS}\x1b[31m")
    async with client_of(tick) as client:
        page = (await client.get(f"/occurrences/{id_}")).text
        text = await client.get(f"/occurrences/{id_}/output", params={"task": "talk", "attempt": 1})
        part = await client.get(
            f"/occurrences/{id_}/output", params={"task": "talk", "attempt": 1, "as": "json", "from": 0}
        )
        missing = await client.get(f"/occurrences/{id_}/output", params={"task": "talk", "attempt": 2})
    await tick.close()

    lines = re.findall(r'<span class="lv (\w*)">\w*</span><span(?: class="\w+")?>(.*?)</span>', page)
    assert lines == [
        ("info", "begins"),
        ("", f"plain {html.escape(XSS)}".replace("&quot;", "&#34;")),
        ("error", f"broken {html.escape(XSS)}".replace("&quot;", "&#34;")),
    ]
    assert "<script>alert" not in page
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert f"plain {XSS}" in text.text
    assert part.json()["lines"][0][0] == "begins"
    assert part.json()["is_over"]
    assert missing.status_code == 404


async def test_errors_alone_are_shown_with_what_follows_them(tmp_path: Path) -> None:
    tick, id_ = await spoken(tmp_path, "plain")
    async with client_of(tick) as client:
        page = (await client.get(f"/occurrences/{id_}")).text
        [link] = re.findall(r'href="([^"]*)">errors only<', page)
        errors = (await client.get(html.unescape(link))).text
    await tick.close()

    lines = re.findall(r'<span class="lv (\w*)">\w*</span><span(?: class="\w+")?>(.*?)</span>', errors)
    assert [level for level, _ in lines] == ["error"]
    assert f"<dt>Trace</dt><dd>{trace_id(id_)}</dd>" in page
    assert ">all lines<" in errors
    traceback = [OutputLine("KeyError", "", ""), OutputLine("next", "10:00:00.000", "info")]
    assert error_lines([OutputLine("no", "10:00:00.000", "error"), *traceback])[1:] == traceback[:1]


async def test_long_output_is_read_by_range(tmp_path: Path) -> None:
    tick, id_ = await spoken(tmp_path, "\n".join(f"line {number:06}" for number in range(20_000)))
    async with client_of(tick) as client:
        page = (await client.get(f"/occurrences/{id_}")).text
        first = (await client.get(f"/occurrences/{id_}", params={"from": 0})).text
        params: dict[str, Any] = {"task": "talk", "attempt": 1, "as": "json", "from": 0}
        seen, start = list[str](), -1
        while params["from"] > start:
            part = (await client.get(f"/occurrences/{id_}/output", params=params)).json()
            start, params["from"] = params["from"], part["next"]
            seen += [line[0] for line in part["lines"]]
    await tick.close()

    assert "broken" in page
    assert "line 000000" not in page
    assert "line 000498" in first
    assert "line 000499" not in first
    assert len(page) < 120_000
    assert "from the beginning" in page
    assert "go on" in first
    assert seen[1:-1] == [f"line {number:06}" for number in range(20_000)]


async def test_output_of_another_host_says_where_it_is(tmp_path: Path) -> None:
    tick, id_ = await spoken(tmp_path, "text")
    for file in (tmp_path / "logs").rglob("*.log"):
        file.unlink()
    async with client_of(tick) as client:
        page = (await client.get(f"/occurrences/{id_}")).text
    await tick.close()

    assert "Its output is kept by node" in page


async def test_output_of_a_running_task_grows(tmp_path: Path) -> None:
    tick = Everytick(f"sqlite:///{tmp_path}/e.db", name="shop", log_folder=tmp_path / "logs")
    said, end = asyncio.Event(), asyncio.Event()

    @tick.job(every("P1Y"))
    async def talk(ctx: Context) -> None:
        ctx.log.info("one")
        ctx.progress(40, 100, note="loading")
        said.set()
        await end.wait()
        ctx.log.info("two")

    async with tick, client_of(tick) as client:
        handle = await tick.trigger("talk")
        await said.wait()
        path = f"/occurrences/{handle.id}/output"
        params: dict[str, Any] = {"task": "talk", "attempt": 1, "as": "json"}
        before: dict[str, Any] = {}
        while not before.get("lines"):
            before = (await client.get(path, params=params)).json()
        page = (await client.get(f"/occurrences/{handle.id}")).text
        end.set()
        await handle.wait(timeout="60s")
        after = (await client.get(path, params={**params, "from": before["next"]})).json()
    await tick.close()

    assert [line[0] for line in before["lines"]] == ["one"]
    assert not before["is_over"]
    assert 'data-follow="' in page
    assert "output.js" in page
    assert "40 of 100, loading" in page
    assert [line[0] for line in after["lines"]] == ["two"]
    assert after["is_over"]


async def test_no_path_in_a_store_leads_out_of_the_folder_of_logs(tmp_path: Path) -> None:
    from everytick.domain.notes import Log

    tick, _ = await spoken(tmp_path, "text")
    (tmp_path / "secret").write_text("secret")

    assert await tick._output_file(Log("node", "../secret")) is None
    assert await tick._output_file(Log("node", str(tmp_path / "secret"))) is None
    await tick.close()
