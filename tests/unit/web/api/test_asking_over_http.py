"""Questions and requests over HTTP: pages, keys, grants, and the shape of schedules."""

import re
from urllib.parse import quote

import httpx2

from tests.unit.web.api.conftest import JOB, World, client_of

PATH = "/api/jobs/orders%2Fdaily"


async def test_schedules_have_the_shape_that_other_tools_know(admin: httpx2.AsyncClient) -> None:
    """S1-021, S1-025."""
    found = {each["name"]: each for each in (await admin.get("/api/schedules")).json()}

    assert found["api-job"] == {
        "name": "api-job",
        "kind": "cron",
        "cron_spec": "0 5 * * *",
        "next_run_at": "2026-03-03T05:00:00Z",
        "last_run_at": None,
        "enabled": True,
    }
    assert found[JOB]["kind"] == "every"


async def test_pages_follow_each_other_and_hold_each_item_once(world: World, admin: httpx2.AsyncClient) -> None:
    async def names(path: str, key: str) -> list[str]:
        found, cursor = [], None
        while True:
            params = {"limit": "2"} | ({} if cursor is None else {"cursor": cursor})
            page = (await admin.get(path, params=params)).json()
            found += [item[key] for item in page["items"]]
            cursor = page["cursor"]
            if cursor is None:
                return found

    assert await names("/api/jobs", "name") == ["api-job", "failing", JOB, "pay"]
    history = await names("/api/occurrences", "id")
    assert len(history) == len(set(history)) > 2
    assert {world.done, world.failed} <= set(history)


async def test_a_cursor_of_another_list_or_of_nobody_is_refused(admin: httpx2.AsyncClient) -> None:
    cursor = (await admin.get("/api/jobs", params={"limit": 1})).json()["cursor"]
    for given in (cursor, "x", "%", "bnVsbA", "W10"):
        answer = await admin.get("/api/occurrences", params={"cursor": given})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_cursor"), given


async def test_the_same_key_is_the_same_occurrence_and_another_payload_a_conflict(admin: httpx2.AsyncClient) -> None:
    """S1-022: asked for at once, and the schedule is not moved."""
    before = (await admin.get(PATH)).json()["next_run"]
    first = await admin.post(f"{PATH}/trigger", json={"payload": {"secret": "a"}, "key": "k"})
    again = await admin.post(f"{PATH}/trigger", json={"payload": {"secret": "a"}}, headers={"idempotency-key": "k"})
    other = await admin.post(f"{PATH}/trigger", json={"payload": {"secret": "b"}, "key": "k"})
    both = await admin.post(f"{PATH}/trigger", json={"key": "a"}, headers={"idempotency-key": "b"})

    assert (first.status_code, first.json()) == (201, again.json())
    assert (other.status_code, other.json()["occurrence_id"]) == (409, first.json()["id"])
    assert both.status_code == 422
    assert (await admin.get(PATH)).json()["next_run"] == before


async def test_pauses_and_reschedules_are_seen_by_who_reads_next(admin: httpx2.AsyncClient) -> None:
    """S1-023, S1-024."""
    await admin.post(f"{PATH}/reschedule", json={"at": "2026-03-02T15:20:00Z"})
    moved = (await admin.get(PATH)).json()["next_run"]
    await admin.post(f"{PATH}/disable", json={})
    disabled = (await admin.get(PATH)).json()

    assert moved == "2026-03-02T15:20:00Z"
    assert (disabled["status"], disabled["next_run"], disabled["is_enabled"]) == ("disabled", None, False)


async def test_what_people_do_is_signed_with_their_name(world: World, admin: httpx2.AsyncClient) -> None:
    """S17."""
    async with client_of(world.tick, **{"x-name": "zoe"}) as zoe:
        await zoe.post(f"{PATH}/pause", json={"reason": "holiday"})

    assert (await admin.get(PATH)).json()["pause"]["by"] == "zoe"


async def test_a_grant_by_tag_lets_a_viewer_work_on_those_jobs_alone(world: World) -> None:
    """S3: also by an occurrence or a backfill of such a job."""
    async with client_of(world.tick, **{"x-role": "VIEWER", "x-grant": "1"}) as granted:
        own = await granted.post(f"{PATH}/trigger", json={})
        others = await granted.post("/api/jobs/failing/trigger", json={})
        replayed = await granted.post(f"/api/occurrences/{world.done}/replay", json={"reason": "again"})
        not_replayed = await granted.post(f"/api/occurrences/{world.failed}/replay", json={"reason": "again"})
        approved = await granted.post(f"/api/backfills/{world.backfill}/approve", json={})
        seen = (await granted.get(f"/api/occurrences/{world.done}")).json()
        hidden = (await granted.get(f"/api/occurrences/{world.failed}")).json()

    assert [each.status_code for each in (own, others, replayed, not_replayed, approved)] == [201, 403, 201, 403, 200]
    assert seen["payload"] == {"secret": "s3cr3t"}
    assert hidden["error"] is None


async def test_a_viewer_is_told_that_something_failed_and_not_why(world: World, viewer: httpx2.AsyncClient) -> None:
    found = (await viewer.get(f"/api/occurrences/{world.failed}")).json()

    assert (found["status"], found["error"], found["attempts"][0]["error"]) == ("failed", None, None)


async def test_a_name_with_every_sign_is_one_part_of_the_path(world: World, admin: httpx2.AsyncClient) -> None:
    name = "a/b c?d#e%f&ü"
    await world.tick.apply([world.tick.define(name, "@daily", owner="api").call("shop.jobs:tidy")])

    assert (await admin.get(f"/api/jobs/{quote(name, safe='')}")).json()["name"] == name


async def test_the_page_of_the_api_shows_every_route_without_a_script(admin: httpx2.AsyncClient) -> None:
    page = (await admin.get("/api/docs", headers={"accept": "text/html"})).text

    assert "POST /api/jobs/{job}/trigger" in page
    assert "order-1042" in page
    assert "with a stable <code>code</code>" in page
    assert "`" not in page.partition("<main")[2]
    assert not re.search(r"\(S\d-\d{3}\)", page)


async def test_a_refusal_begins_with_no_name(viewer: httpx2.AsyncClient) -> None:
    """The page of a problem begins its sentence with a capital, and a person is named as they write it."""
    page = (await viewer.get("/access", headers={"accept": "text/html"})).text

    assert re.search(r"This needs admin: \w+ is viewer\.", page)
