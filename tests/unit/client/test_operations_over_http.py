"""Operations over HTTP: they do what the application's do, and fail as these do."""

from datetime import timedelta

import httpx2
import pytest

from everytick.client import Client
from everytick.errors import (
    Conflict,
    DefinitionError,
    EverytickError,
    InvalidInstant,
    JobDisabled,
    MissingExtra,
    NeedsApproval,
    NeedsConfirmation,
    NotAllowed,
    OccurrenceExists,
    StoreUnavailable,
    VersionConflict,
)
from everytick.testing import drain
from everytick.web.asgi import asgi
from tests.unit.client.conftest import client_on
from tests.unit.web.api.conftest import JOB, NOON, World, by_header

FIVE = NOON + timedelta(hours=5)


async def test_a_trigger_is_waited_for_and_brings_what_its_tasks_returned(world: World, client: Client) -> None:
    asked = await client.trigger(JOB, {"secret": "x"})
    await drain(world.tick)
    ended = await asked.wait("5s")

    assert (ended.status, ended.result) == ("completed", "done x")


async def test_schedules_are_paused_skipped_moved_amended_and_all_of_it_is_undone(world: World, client: Client) -> None:
    await client.pause(JOB, until=FIVE, reason="holiday")
    assert (await client.status(JOB)).is_paused
    assert await client.resume(JOB)
    await client.skip(JOB, FIVE)
    await client.move("failing", NOON.replace(hour=0) + timedelta(days=1), FIVE)
    await client.amend(JOB, FIVE + timedelta(hours=1), payload={"secret": "y"}, priority=5)
    added = await client.add(JOB, FIVE + timedelta(minutes=7))

    assert [run.mark for run in await world.tick.upcoming(JOB, 4, skipped=True)] == [None, "skipped", None, "amended"]
    assert await client.undo(JOB, FIVE) == ("skip",)
    assert await added.cancel("not needed")
    await client.reschedule(JOB, FIVE + timedelta(minutes=1))
    assert (await client.status(JOB)).next_run == FIVE + timedelta(minutes=1)
    assert not await client.rewind(JOB)


async def test_definitions_are_made_edited_rolled_back_renamed_and_removed(world: World, client: Client) -> None:
    assert await client.create("new", {"schedule": "@daily", "call": "shop.jobs:tidy"}) == 1
    assert await client.update("new", "@hourly", priority=3, expected_version=1) == 2
    assert await client.rollback("new", 1) == 3
    with pytest.raises(VersionConflict, match="is at version 3, not 2"):
        await client.rename("new", "newer", expected_version=2)
    await client.rename("new", "newer", expected_version=3)
    assert await client.disable("newer")
    with pytest.raises(JobDisabled):
        await client.trigger("newer")
    assert await client.enable("newer")
    with pytest.raises(VersionConflict, match="is at version 6, not 5"):
        await client.remove("newer", expected_version=5)
    await client.remove("newer", purge=True, expected_version=6)
    assert "newer" not in [record.job.name for record in await world.tick.jobs(removed=True)]


async def test_documents_are_previewed_and_applied(client: Client) -> None:
    document = {"version": 1, "jobs": {"a": {"schedule": "@daily", "call": "shop.jobs:tidy"}}}
    seen = await client.preview(document)
    stored = await client.apply("version: 1\njobs:\n  a: {schedule: '@daily', call: 'shop.jobs:tidy'}\n")

    assert [change.kind for change in seen.changes] == ["added"]
    assert [(change.name, change.kind, change.version) for change in stored] == [("a", "added", 1)]


async def test_a_backfill_is_planned_approved_and_canceled(world: World, client: Client) -> None:
    made = await client.backfill(JOB, NOON - timedelta(days=2), NOON - timedelta(days=1), approve=False)

    assert len(made.instants) == 24
    assert await made.approve()
    assert (await made.progress()).status == "running"
    found = await client.find_backfill(made.id or "")
    assert await found.pause()
    assert await found.resume()
    assert await client.cancel(made.id or "")


async def test_limits_and_brakes_are_set_and_taken_away(client: Client) -> None:
    await client.set_limit("tag:new", most=3, rate="60/1m", burst_allowed=True)
    await client.brake("tag:new", reason="down")
    await client.brake("tag:weekend", begins="0 16 * * fri", ends="0 6 * * mon", reason="no changes")
    [reach] = [each for each in (await client.limits()).reaches if each.reach.name == "tag:new"]

    assert reach.reach.limit is not None
    assert str(reach.reach.limit) == "3 at once, 60/1m burst"
    assert await client.release("tag:new", at_once=True)
    assert await client.remove_limit("tag:new")
    assert not await client.remove_limit("tag:new")


async def test_errors_are_those_of_the_application_with_what_they_know(world: World, client: Client) -> None:
    with pytest.raises(VersionConflict) as version:
        await client.update("api-job", "@hourly", expected_version=1)
    with pytest.raises(NeedsConfirmation) as guarded:
        await client.remove("pay")
    with pytest.raises(NeedsApproval) as proposed:
        await client.remove("pay", confirmed=True)
    with pytest.raises(InvalidInstant):
        await client.skip(JOB, "yesterday")
    with pytest.raises(DefinitionError):
        await client.create("x", {"schedule": "nonsense", "call": "shop.jobs:tidy"})
    await client.trigger(JOB, {"secret": "a"}, key="k")
    with pytest.raises(OccurrenceExists) as exists:
        await client.trigger(JOB, {"secret": "b"}, key="k")
    with pytest.raises(Conflict):
        await client.update("failing", "@hourly")

    assert (version.value.expected, version.value.found) == (1, 2)
    assert version.value.theirs == ("priority: 0 → 3",)
    assert (guarded.value.is_for_two, guarded.value.jobs) == (True, ("pay",))
    assert proposed.value.expires_at - await world.tick.now() == timedelta(days=7)
    assert exists.value.id.startswith("occ_")


async def test_a_viewer_may_not_and_hears_why(world: World) -> None:
    transport = httpx2.ASGITransport(asgi(world.tick, identify=by_header))

    async def as_viewer(request: httpx2.Request) -> httpx2.Response:
        request.headers["x-role"] = "VIEWER"
        return await transport.handle_async_request(request)

    async with Client("http://127.0.0.1", transport=_Through(as_viewer)) as client:
        with pytest.raises(NotAllowed, match="this needs operator: ann is viewer"):
            await client.pause(JOB)
        assert (await client.job(JOB)).job.settings.payload is None


class _Through(httpx2.AsyncBaseTransport):
    """Hands requests to a function."""

    def __init__(self, function: object) -> None:
        self._function = function

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        answer: httpx2.Response = await self._function(request)  # type: ignore[operator]
        return answer


async def test_a_question_is_asked_again_and_an_operation_only_if_it_is_safe(world: World) -> None:
    service, tries = httpx2.ASGITransport(asgi(world.tick, identify=by_header)), list[str]()

    async def losing(request: httpx2.Request) -> httpx2.Response:
        tries.append(request.url.path.rpartition("/")[2])
        answer = await service.handle_async_request(request)
        if tries.count(tries[-1]) == 1:
            raise httpx2.ReadError("the answer was lost")
        return answer

    async with Client("http://127.0.0.1", transport=_Through(losing), tries=2) as client:
        await client.now()
        asked = await client.trigger("failing")
        with pytest.raises(StoreUnavailable, match="the answer was lost"):
            await client.pause(JOB)

    await drain(world.tick)
    triggered = [each.id async for each in await world.tick.history("failing", cause="trigger")]
    assert tries == ["api", "api", "trigger", "trigger", "pause"]
    assert sorted(triggered) == sorted([world.failed, asked.id])


async def test_a_service_that_does_not_answer_is_told_with_its_address() -> None:
    async def dead(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("connection refused")

    async with Client("http://127.0.0.1:1", transport=_Through(dead), tries=1) as client:
        with pytest.raises(StoreUnavailable, match=r"http://127.0.0.1:1 does not answer: connection refused"):
            await client.jobs()


async def test_what_is_no_everytick_is_said_so() -> None:
    async def other(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/html"}, content=b"<html>")

    async with Client("http://127.0.0.1:1", transport=_Through(other)) as client:
        with pytest.raises(EverytickError, match="is this the address of an everytick service"):
            await client.jobs()


@pytest.mark.parametrize("url", ["127.0.0.1:8484", "ftp://x", "http://", "http://ann:secret@example.org"])
def test_an_address_of_no_service_is_refused_and_no_password_is_shown(url: str) -> None:
    with pytest.raises(ValueError, match="url") as caught:
        Client(url)

    assert "secret" not in str(caught.value)


def test_without_an_event_loop_a_client_waits_for_answers(world_made: World) -> None:
    with client_on(world_made) as client:
        assert client.wait(client.trigger(JOB)).id.startswith("occ_")
        assert client.wait(client.status(JOB), "5s").name == JOB


@pytest.fixture
def world_made() -> World:
    """A world whose store is open on no loop."""
    return World()


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "httpx2", None)
    with Client("http://127.0.0.1") as client, pytest.raises(MissingExtra, match=r"everytick\[http\]"):
        client.wait(client.now())
