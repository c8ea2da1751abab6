"""What an operator asks of a job on its pages: each deed from its confirm page to what the store holds then."""

import re
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import httpx2
import pytest

from everytick import Context, Everytick, every
from everytick.access.people import Person, Role
from everytick.testing import ManualClock, MemoryStore
from everytick.web.asgi import asgi
from tests.stores.acting import plan_once
from tests.unit.web.conftest import client_of
from tests.unit.web.forms_of_pages import FormOnPage, sent, sent_again, text_of, told

JOB = "/jobs/etl-orders/do"


@pytest.fixture
def tick() -> Everytick:
    made = Everytick("memory://", name="shop")

    @made.job(every("1h"), name="etl-orders", payload={"region": "eu"}, tags=["billing"])
    def etl_orders(region: str, day: date = date(2026, 10, 23), full: bool = False, size: int = 5) -> None: ...

    @made.job(every("1d"), name="<img src=x onerror=alert(1)>")
    def hostile(text: str = "<script>alert(2)</script>") -> None: ...

    return made


def coming(hours: int) -> datetime:
    """Return an instant of an hourly job that is still to come."""
    now = datetime.now(UTC)
    return now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=hours)


async def asked_for(tick: Everytick, name: str = "etl-orders") -> list[Any]:
    """Return the requests for occurrences that no plan has answered."""
    store = await tick._opened()
    id_ = (await tick.job(name)).job.id
    return list((await store.look([id_]))[id_].requests)


# ------------------------------------------------------------------------------------------------------------- trigger


async def test_a_trigger_has_a_form_from_the_functions_types(client: httpx2.AsyncClient) -> None:
    page = await client.get(f"{JOB}/trigger")

    said = text_of(page)
    assert "<h1>Trigger etl-orders now?</h1>" in page.text
    assert "etl_orders(region: str, day: date = date(2026, 10, 23), full: bool = False, size: int = 5)" in said
    assert "The schedule does not move" in said
    assert "An occurrence at once cause trigger, by local" in said
    assert "The job is idle no node is up" in said
    form = FormOnPage(page.text)
    assert form.buttons == ["Trigger etl-orders", "Look again"]
    assert {"p.region": "eu", "p.day": "2026-10-23", "p.size": "5"}.items() <= form.typed.items()
    assert "p.full" not in form.typed


async def test_a_trigger_asks_for_an_occurrence_with_what_was_typed(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    answer = await sent(client, f"{JOB}/trigger", p__day="2026-11-01", p__full="true", reason="late file")

    assert answer.headers["location"] == "/jobs/etl-orders"
    assert (await told(client, answer)).startswith("Triggered etl-orders. It is occurrence occ_")
    [request] = await asked_for(tick)
    assert request.payload.read() == {"region": "eu", "day": "2026-11-01", "full": True, "size": 5}
    assert (request.reason, request.by) == ("late file", "local")


async def test_the_signature_of_a_function_is_shown_without_its_context(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    @tick.job(every("1d"))
    def report(ctx: Context, region: str = "eu") -> None: ...

    await tick.sync()

    assert "from the signature of report(region: str = 'eu')" in text_of(await client.get("/jobs/report/do/trigger"))


@pytest.mark.parametrize(
    ("overlap", "happens"),
    [
        ("", "It waits in line behind {at} it is pending; overlap queue, which holds for what is asked for"),
        ("queue", "It waits in line behind {at} it is pending; overlap queue"),
        ("queue_latest", "It waits behind {at}, in place of others in line"),
        ("skip", "It is skipped: {at} is in the way it is pending; overlap skip"),
        ("allow", "It runs beside {at} overlap allow"),
        ("cancel_running", "{at} is asked to stop first"),
    ],
)
async def test_a_trigger_of_a_busy_job_says_what_the_chosen_overlap_means(
    client: httpx2.AsyncClient, tick: Everytick, overlap: str, happens: str
) -> None:
    """The job's own rule is for its schedule. What is asked for waits in line, unless the form says otherwise."""
    tick.job(every("1d"), name="report", overlap="skip")(lambda: None)
    await tick.sync()
    await tick.trigger("report")
    await plan_once(await tick._opened())
    [busy] = await tick.history("report")

    page = await client.get("/jobs/report/do/trigger", params={"overlap": overlap} if overlap else {})

    assert FormOnPage(page.text).buttons == ["Trigger report", "Look again"]
    assert happens.format(at=f"{busy.scheduled_for:%H:%M}") in text_of(page)
    later = {"at": f"{coming(5):%Y-%m-%dT%H:%M}", "overlap": overlap}
    assert "If the job is busy then, " in text_of(await client.get("/jobs/report/do/trigger", params=later))


async def test_a_trigger_of_a_job_with_room_says_beside_which_it_runs(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    tick.job(every("1d"), name="report", max_concurrent=2)(lambda: None)
    await tick.sync()
    store = await tick._opened()
    for said in ("It runs beside {at} max_concurrent 2", "It waits in line behind {at} "):
        await tick.trigger("report")
        await plan_once(store)
        oldest = (await tick.history("report")).occurrences[-1]
        page = await client.get("/jobs/report/do/trigger")
        assert said.format(at=f"{oldest.scheduled_for:%H:%M}") in text_of(page)
    assert "the oldest pending; overlap queue, which holds for what is asked for; max_concurrent 2" in text_of(page)


async def test_a_form_that_is_sent_twice_asks_once(client: httpx2.AsyncClient, tick: Everytick) -> None:
    page = await client.get(f"{JOB}/trigger")
    first = await sent_again(client, f"{JOB}/trigger", page)
    second = await sent_again(client, f"{JOB}/trigger", page)

    assert first.status_code == second.status_code == 303
    assert len(await asked_for(tick)) == 1


async def test_a_trigger_at_a_later_time_is_asked_for_in_the_viewers_zone(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    client.cookies.set("everytick_zone", "Asia/Tokyo")
    at = coming(5)
    local = at + timedelta(hours=9)
    answer = await sent(client, f"{JOB}/trigger", at=f"{local:%Y-%m-%dT%H:%M}")

    assert answer.status_code == 303
    runs = [run for run in await tick.upcoming("etl-orders", 10) if run.is_asked_for]
    assert [run.at for run in runs] == [at]


@pytest.mark.parametrize(
    ("field", "typed", "why"),
    [
        ("p.day", "tomorrow", "tomorrow is no date"),
        ("p.size", "7.5", "7.5 is no whole number"),
        ("at", "noon", "noon is no date and time"),
        ("overlap", "sometimes", "sometimes is none of queue"),
    ],
)
async def test_wrong_input_is_told_beside_its_field_and_on_top(
    client: httpx2.AsyncClient, tick: Everytick, field: str, typed: str, why: str
) -> None:
    answer = await sent(client, f"{JOB}/trigger", **{field.replace(".", "__"): typed, "reason": "kept"})

    assert answer.status_code == 422
    assert f'<a href="#f-{field}">' in answer.text
    assert re.search(rf'<small class="wrong" id="f-{re.escape(field)}-wrong">{why}', answer.text)
    kept = FormOnPage(answer.text).typed
    assert kept["reason"] == "kept"
    assert kept[field] == typed or field == "overlap"
    assert await asked_for(tick) == []


async def test_a_disabled_job_has_no_button_for_a_trigger(client: httpx2.AsyncClient, tick: Everytick) -> None:
    await tick.disable("etl-orders")
    page = await client.get(f"{JOB}/trigger")

    assert "etl-orders is disabled and takes no requests" in text_of(page)
    assert not FormOnPage(page.text).is_there


# ---------------------------------------------------------------------------------------------------- pause and resume


async def test_a_pause_tells_which_runs_it_holds(client: httpx2.AsyncClient, tick: Everytick) -> None:
    until = coming(3) + timedelta(minutes=30)
    page = await client.get(f"{JOB}/pause", params={"until": until.isoformat()})

    said = text_of(page)
    assert "3 runs are skipped" in said
    assert "It goes on by itself at" in said
    assert (await tick.job("etl-orders")).pause is None


async def test_a_pause_is_undone_by_one_click(client: httpx2.AsyncClient, tick: Everytick) -> None:
    answer = await sent(client, f"{JOB}/pause", reason="audit")
    pause = (await tick.job("etl-orders")).pause
    assert pause is not None
    assert (pause.reason, pause.by) == ("audit", "local")

    page = await client.get("/more")
    assert answer.status_code == 303
    assert "Paused <b>etl-orders</b>. Its instants are skipped until you resume it." in page.text
    undo = re.search(r'<form class="right" method="post" action="([^"]*)">(.*?)</form>', page.text)
    assert undo is not None
    typed = dict(re.findall(r'name="(\w+)" value="([^"]*)"', undo[2]))
    undone = await client.post(undo[1], data=typed)

    assert await told(client, undone) == "Resumed etl-orders."
    assert (await tick.job("etl-orders")).pause is None


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/etl-orders", "/history", "/agenda", "/nodes", "/lab"])
async def test_every_page_tells_what_was_done(client: httpx2.AsyncClient, path: str) -> None:
    await client.get(path)
    await sent(client, f"{JOB}/pause")
    assert "Paused <b>etl-orders</b>" in (await client.get(path)).text


async def test_a_notice_is_gone_at_the_page_after_the_next(client: httpx2.AsyncClient) -> None:
    await sent(client, f"{JOB}/pause")
    first, second = await client.get("/more"), await client.get("/more")

    assert "Paused" in first.text
    assert "Paused" not in second.text


async def test_a_notice_that_was_not_written_here_is_not_shown(client: httpx2.AsyncClient) -> None:
    await sent(client, f"{JOB}/pause")
    [cookie] = [each for each in client.cookies.jar if each.name == "everytick_flash"]
    assert cookie.value is not None
    forged = urlsafe_b64encode(b'[{"text": "Send your password to 127.0.0.2"}]').decode().rstrip("=")
    client.cookies.delete("everytick_flash")
    client.cookies.set("everytick_flash", f"{forged}.{cookie.value.partition('.')[2]}")

    page = await client.get("/more")
    assert page.status_code == 200
    assert "password" not in page.text


async def test_a_resume_says_what_is_caught_up(client: httpx2.AsyncClient, tick: Everytick) -> None:
    await tick.pause("etl-orders", reason="move of the warehouse", by="ann")
    said = text_of(await client.get(f"{JOB}/resume"))

    assert "by ann (move of the warehouse)" in said
    assert "Nothing is caught up missed: skip" in said


async def test_look_again_shows_what_the_form_means_and_does_nothing(
    client: httpx2.AsyncClient, tick: Everytick
) -> None:
    until = coming(2) + timedelta(minutes=30)
    answer = await sent(client, f"{JOB}/pause", until=f"{until:%Y-%m-%dT%H:%M}", look="1")

    assert answer.status_code == 200
    assert "2 runs are skipped" in text_of(answer)
    assert (await tick.job("etl-orders")).pause is None


async def test_a_pause_that_ends_in_the_past_is_refused_beside_its_field(client: httpx2.AsyncClient) -> None:
    answer = await sent(client, f"{JOB}/pause", until="2020-01-01T00:00")

    assert answer.status_code == 422
    assert re.search(r'id="f-until-wrong">.*must be later than the store', answer.text)


async def test_many_runs_that_are_caught_up_are_asked_about_again(
    client: httpx2.AsyncClient, tick: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick, "confirm_above", 0)
    await tick.update(
        "etl-orders", "every 1h", recovery="execute_all", protected="confirm", detach=True, confirmed=True
    )
    await tick.pause("etl-orders", missed="catch_up")

    asked = await sent(client, f"{JOB}/resume")
    assert asked.status_code == 409
    assert "It is guarded." in text_of(asked)
    assert "is protected" in text_of(asked)
    assert (await tick.job("etl-orders")).pause is not None

    answer = await sent_again(client, f"{JOB}/resume", asked)
    assert await told(client, answer) == "Resumed etl-orders."
    assert (await tick.job("etl-orders")).pause is None


# ------------------------------------------------------------------------------------------------------ one run to come


async def test_a_run_is_skipped_and_the_skip_is_undone(client: httpx2.AsyncClient, tick: Everytick) -> None:
    at = coming(2)
    page = await client.get(f"{JOB}/skip", params={"at": at.isoformat().replace("+00:00", "Z")})
    assert "1 run is skipped" in text_of(page)
    answer = await sent_again(client, f"{JOB}/skip", page, reason="holiday")

    assert (await told(client, answer)).startswith("Skipped")
    assert at not in await tick.next_runs("etl-orders", 5)
    undone = await sent(client, f"{JOB}/undo?at={at.isoformat().replace('+00:00', 'Z')}")
    assert "skip" in await told(client, undone)
    assert at in await tick.next_runs("etl-orders", 5)


async def test_a_run_is_moved(client: httpx2.AsyncClient, tick: Everytick) -> None:
    at, to = coming(2), coming(2) + timedelta(minutes=20)
    path = f"{JOB}/move?at={at:%Y-%m-%dT%H:%M:%S}Z&to={to:%Y-%m-%dT%H:%M:%S}Z"
    page = await client.get(path)
    assert "1 run moved" in text_of(page)
    answer = await sent_again(client, path, page)

    assert answer.status_code == 303, text_of(answer)
    runs = await tick.next_runs("etl-orders", 5)
    assert to in runs
    assert at not in runs


async def test_an_instant_that_the_schedule_does_not_name_is_refused_beside_its_field(
    client: httpx2.AsyncClient,
) -> None:
    at = (coming(2) + timedelta(minutes=7)).isoformat()
    page = await client.get(f"{JOB}/skip", params={"at": at})

    assert re.search(r'id="f-at-wrong">.*is not named by the schedule', page.text)


async def test_a_run_is_amended_with_a_payload_of_its_own(client: httpx2.AsyncClient, tick: Everytick) -> None:
    at = coming(2)
    answer = await sent(client, f"{JOB}/amend?at={at:%Y-%m-%dT%H:%M:%S}Z", p__size="9")

    assert answer.status_code == 303, text_of(answer)
    [run] = [run for run in await tick.upcoming("etl-orders", 5) if run.at == at]
    assert run.mark == "amended"


async def test_a_run_is_added(client: httpx2.AsyncClient, tick: Everytick) -> None:
    at = coming(2) + timedelta(minutes=10)
    answer = await sent(client, f"{JOB}/add?at={at:%Y-%m-%dT%H:%M:%S}Z")

    assert answer.status_code == 303, text_of(answer)
    assert at in [run.at for run in await tick.upcoming("etl-orders", 5) if run.is_asked_for]


async def test_the_next_run_is_set(client: httpx2.AsyncClient, tick: Everytick) -> None:
    at = coming(3) + timedelta(minutes=10)
    page = await client.get(f"{JOB}/reschedule", params={"at": at.isoformat()})
    assert "2 runs give way" in text_of(page)
    answer = await sent_again(client, f"{JOB}/reschedule", page)

    assert answer.status_code == 303, text_of(answer)
    assert (await tick.next_runs("etl-orders", 1)) == [at]


async def test_a_job_that_was_decided_ahead_goes_on() -> None:
    """The page offers it only then."""
    clock = ManualClock("2026-10-23T12:07:00Z")
    store = MemoryStore(clock)
    tick = Everytick(store, name="shop")
    tick.job(every("1h"), name="etl-orders")(lambda: None)
    await tick.sync()
    async with client_of(tick) as asking:
        assert "/do/rewind" not in (await asking.get(f"{JOB}")).text
        assert not FormOnPage((await asking.get(f"{JOB}/rewind")).text).is_there
        clock.advance("10h")
        await plan_once(store)
        clock.set("2026-10-23T12:07:00Z")
        assert "/do/rewind" in (await asking.get(f"{JOB}")).text
        assert "It is decided through 22:07" in text_of(await asking.get(f"{JOB}/rewind"))
        answer = await sent(asking, f"{JOB}/rewind")
        assert await told(asking, answer) == "etl-orders goes on from now."
    assert (await tick.job("etl-orders")).watermark <= await tick.now()
    await tick.close()


# --------------------------------------------------------------------------------------------------------------- roles


@pytest.fixture
async def viewer(tick: Everytick) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that may only look."""

    async def identify(_: Any) -> Person:
        return Person("ann", Role.VIEWER)

    await tick.sync()
    transport = httpx2.ASGITransport(asgi(tick, identify=identify), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as asking:
        yield asking
    await tick.close()


@pytest.mark.parametrize("deed", ["trigger", "pause", "skip", "remove", "rename", "rollback", "edit", "backfill"])
async def test_a_viewer_has_no_deed(viewer: httpx2.AsyncClient, deed: str) -> None:
    assert (await viewer.get(f"{JOB}/{deed}")).status_code == 403
    assert (await viewer.post(f"{JOB}/{deed}")).status_code == 403


async def test_everything_that_can_be_done_is_listed_and_leads_somewhere(client: httpx2.AsyncClient) -> None:
    for index in ("/jobs/etl-orders/do", "/do"):
        page = await client.get(index)
        links = re.findall(r'<a class="name nw" href="([^"]*/do/\w+)">', page.text)
        assert len(links) > 2
        for link in links:
            assert (await client.get(link)).status_code == 200, link


async def test_a_viewer_is_told_once_that_nothing_can_be_changed(viewer: httpx2.AsyncClient) -> None:
    page = await viewer.get("/jobs/etl-orders/do")
    assert "You may look, and change nothing here." in text_of(page)
    assert "/do/" not in page.text.partition("<main")[2]


async def test_nothing_that_was_typed_or_named_becomes_markup(client: httpx2.AsyncClient) -> None:
    hostile = "/jobs/%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E/do"
    evil = '"><script>alert(3)</script>'
    for deed in ("trigger", "pause", "rename", "remove", "edit", "backfill", "add", "move"):
        page = await sent(
            client,
            f"{hostile}/{deed}?then={evil}",
            **{"p__text": evil, "reason": evil, "at": evil, "to": evil, "until": evil, "once": evil},
            **{"schedule": evil, "typed_name": evil, "new": "\x00", "after": evil, "through": evil, "look": "1"},
        )
        main = page.text.partition("<main")[2]
        assert "<script" not in main, deed
        assert "<img" not in main, deed
        assert "onerror=alert(1)>" not in main, deed


ODD = ("0001-01-01T00:00", "9999-12-31T23:59", "9" * 400, "\x00", "null", "[[[[", "every 1ms", "1e400", "NaN", "+00:00")


@pytest.mark.parametrize("deed", ["trigger", "pause", "skip", "move", "amend", "add", "undo", "reschedule", "backfill"])
async def test_whatever_is_typed_is_answered(client: httpx2.AsyncClient, deed: str) -> None:
    client.cookies.set("everytick_zone", "Asia/Tokyo")
    page = await client.get(f"{JOB}/{deed}")
    for name in FormOnPage(page.text).typed.keys() - {"csrf", "key"}:
        for odd in ODD:
            answer = await client.get(f"{JOB}/{deed}", params={name: odd})
            assert answer.status_code in (200, 422), (name, odd)


async def test_an_address_of_another_site_is_not_gone_to(client: httpx2.AsyncClient) -> None:
    for then in ("//evil.example/x", "/\\evil.example", "javascript:alert(1)"):
        answer = await sent(client, f"{JOB}/pause", then=then)
        assert answer.headers["location"] == "/jobs/etl-orders"
    answer = await sent(client, f"{JOB}/pause", then="/history?job=x")
    assert answer.headers["location"] == "/history?job=x"


async def test_a_job_is_offered_no_deed_that_would_leave_it_as_it_is(
    tick: Everytick, client: httpx2.AsyncClient
) -> None:
    def offered(page: httpx2.Response) -> set[str]:
        return set(re.findall(r"/do/(resume|enable|disable)\"", page.text))

    before = offered(await client.get(JOB))
    await tick.pause("etl-orders")
    await tick.disable("etl-orders")
    after = offered(await client.get(JOB))

    assert (before, after) == ({"disable"}, {"resume", "enable"})
