"""Definitions over HTTP: versions that guard them, guards that ask, and targets that are allowed."""

from inspect import signature
from typing import Any

import httpx2
import pytest

from everytick import Everytick
from tests.unit.web.api.conftest import JOB, World, client_of, make_tick

TIDY = {"schedule": "@daily", "call": "shop.jobs:tidy"}


async def test_the_etag_of_a_job_guards_its_edit_and_the_refusal_tells_both_sides(
    world: World, admin: httpx2.AsyncClient
) -> None:
    read = await admin.get("/api/jobs/api-job")
    first = await admin.patch(
        "/api/jobs/api-job", json={"schedule": "0 6 * * *"}, headers={"if-match": read.headers["etag"]}
    )
    second = await admin.patch(
        "/api/jobs/api-job", json={"policies": {"priority": 9}}, headers={"if-match": read.headers["etag"]}
    )

    assert (first.status_code, first.headers["etag"], first.json()) == (200, '"v3"', {"version": 3})
    told = second.json()
    assert (second.status_code, told["code"], told["expected"], told["found"]) == (412, "version_conflict", 2, 3)
    assert told["theirs"] == ["schedule: cron: 0 5 * * *; tz=UTC → cron: 0 6 * * *; tz=UTC"]
    assert told["yours"] == ["priority: 3 → 9"]


GUARDED: dict[str, tuple[str, str, dict[str, Any], list[str]]] = {
    "remove": ("DELETE", "/api/jobs/api-job", {}, ["removed"]),
    "rename": ("POST", "/api/jobs/api-job/rename", {"json": {"to": "other"}}, ["name: api-job → other"]),
}


@pytest.mark.parametrize("verb", GUARDED)
async def test_an_etag_guards_the_name_and_the_removal_of_a_job_too(
    world: World, admin: httpx2.AsyncClient, verb: str
) -> None:
    method, path, given, yours = GUARDED[verb]
    read = {"if-match": (await admin.get("/api/jobs/api-job")).headers["etag"]}
    edited = await admin.patch("/api/jobs/api-job", json={"schedule": "0 6 * * *"})
    refused = await admin.request(method, path, headers=read, **given)

    told = refused.json()
    assert (refused.status_code, told["code"], told["expected"], told["found"]) == (412, "version_conflict", 2, 3)
    assert told["theirs"] == ["schedule: cron: 0 5 * * *; tz=UTC → cron: 0 6 * * *; tz=UTC"]
    assert told["yours"] == yours
    assert (await world.tick.job("api-job")).job.version == 3
    again = await admin.request(method, path, headers={"if-match": edited.headers["etag"]}, **given)
    assert again.status_code == 204, again.text


@pytest.mark.parametrize("tag", ['"x"', "vv3", '"v999999999999"'])
@pytest.mark.parametrize("verb", ["update", *GUARDED])
async def test_a_tag_that_is_none_of_this_job_is_a_conflict(admin: httpx2.AsyncClient, verb: str, tag: str) -> None:
    edit: dict[str, Any] = {"json": {"schedule": "@daily"}}
    method, path, given, _ = GUARDED.get(verb, ("PATCH", "/api/jobs/api-job", edit, []))
    answer = await admin.request(method, path, headers={"if-match": tag}, **given)

    assert answer.status_code == 412
    assert (await admin.get("/api/jobs/api-job")).status_code == 200


OTHER_ARGUMENTS = {*signature(Everytick.update).parameters, *signature(Everytick.amend).parameters}
OTHER_ARGUMENTS -= {"self", "policies"}


@pytest.mark.parametrize("name", sorted(OTHER_ARGUMENTS))
async def test_another_argument_of_an_operation_is_no_policy(
    world: World, admin: httpx2.AsyncClient, name: str
) -> None:
    """S17, S19: `by` would sign the new version with a name of the caller's choice."""
    at = {"at": "2026-03-02T17:00:00Z"}
    answers = [
        await admin.patch("/api/jobs/api-job", json={"policies": {name: "root"}}),
        await admin.patch("/api/jobs/api-job", json={"policies": {name: "root", "priority": 9}, "dry_run": True}),
        await admin.patch("/api/jobs/api-job", json={"unset": [name]}),
        await admin.post("/api/jobs/orders%2Fdaily/amend", json={**at, "policies": {name: "root", "priority": 9}}),
    ]

    assert [(each.status_code, each.json()["code"]) for each in answers] == [(422, "invalid_policies")] * 4
    assert all(f"there is no policy '{name}'" in each.json()["detail"] for each in answers)
    assert (await world.tick.job("api-job")).job.version == 2
    assert [run.mark for run in await world.tick.upcoming(JOB, 5)] == [None] * 5


@pytest.mark.parametrize("verb", ["pause", "trigger", "enable"])
async def test_a_verb_that_compares_no_version_refuses_a_tag(
    world: World, admin: httpx2.AsyncClient, verb: str
) -> None:
    """The caller would take it for granted that the job is as it was read."""
    answer = await admin.post(f"/api/jobs/api-job/{verb}", json={}, headers={"if-match": '"v1"'})

    assert (answer.status_code, answer.json()["code"]) == (422, "if_match_not_taken")
    assert (await world.tick.job("api-job")).pause is None
    assert len(await world.tick.history("api-job")) == 0


async def test_a_guarded_change_tells_its_cost_first_and_is_proposed_once_it_is_confirmed(
    world: World, admin: httpx2.AsyncClient
) -> None:
    asked = await admin.delete("/api/jobs/pay")
    proposed = await admin.delete("/api/jobs/pay", params={"confirm": "true"})

    assert (asked.status_code, asked.json()["code"], asked.json()["is_for_two"]) == (409, "needs_confirmation", True)
    assert asked.json()["cost"]
    assert (proposed.status_code, proposed.json()["code"]) == (202, "needs_approval")
    by_another = await client_of(world.tick, **{"x-name": "zoe"}).post(
        f"/api/proposals/{proposed.json()['proposal']}/approve", json={}
    )
    assert by_another.status_code == 200, by_another.text
    assert (await admin.get("/api/jobs/pay")).status_code == 404


async def test_a_new_job_may_call_what_the_service_allows(admin: httpx2.AsyncClient) -> None:
    made = await admin.post("/api/jobs", json={"name": "tidy-up", "definition": TIDY})
    again = await admin.post("/api/jobs", json={"name": "tidy-up", "definition": TIDY})
    read = (await admin.get("/api/jobs/tidy-up")).json()

    assert (made.status_code, made.json(), made.headers["etag"]) == (201, {"version": 1}, '"v1"')
    assert (again.status_code, again.json()["code"]) == (409, "job_exists")
    assert (read["owner"], read["tasks"][0]["target"]) == ("api", '{"call": "shop.jobs:tidy"}')


@pytest.mark.parametrize(
    "definition",
    [
        {"schedule": "@daily", "call": "os:system"},
        {"schedule": "@daily", "call": "shopping.jobs:tidy"},
        {"schedule": "@daily", "command": "rm -rf /"},
        {"schedule": "@daily", "command": ["ls"]},
        {"schedule": "@daily", "http": {"url": "https://example.org/"}},
        {"schedule": "@daily", "tasks": [{"name": "a", "call": "shop.jobs:tidy"}, {"name": "b", "command": "ls"}]},
        {**TIDY, "on_failure": {"command": ["ls"]}},
        {**TIDY, "on_failure": {"webhook": {"url": "https://example.org"}}},
    ],
)
async def test_a_target_that_is_not_registered_is_refused_at_the_door(
    admin: httpx2.AsyncClient, definition: dict[str, Any]
) -> None:
    """S10: no request makes a node import, run or fetch what its operator has not named."""
    made = await admin.post("/api/jobs", json={"name": "evil", "definition": definition})
    applied = await admin.post("/api/apply", json={"document": {"version": 1, "jobs": {"evil": definition}}})

    for answer in (made, applied):
        assert (answer.status_code, answer.json()["code"]) == (422, "target_not_registered"), answer.text
    assert (await admin.get("/api/jobs/evil")).status_code == 404


async def test_a_receiver_is_not_added_by_an_edit_either(admin: httpx2.AsyncClient) -> None:
    answer = await admin.patch("/api/jobs/api-job", json={"policies": {"on_failure": {"command": ["ls"]}}})

    assert (answer.status_code, answer.json()["code"]) == (422, "target_not_registered")


async def test_commands_are_switched_on_by_name() -> None:
    tick = make_tick(api_targets=["command"])
    async with client_of(tick) as client:
        made = await client.post(
            "/api/jobs", json={"name": "ls", "definition": {"schedule": "@daily", "command": "ls"}}
        )
    await tick.close()

    assert made.status_code == 201, made.text


async def test_targets_of_engines_are_switched_on_by_name_and_need_the_setting() -> None:
    """A clear error at the door where the engine or its setting is missing."""
    job = {"schedule": "@daily", "runner": "celery", "target": "tasks.send_report"}
    answers = []
    for settings in ({}, {"api_targets": ["celery"]}, {"api_targets": ["celery"], "celery": "redis://localhost/0"}):
        tick = make_tick(**settings)
        async with client_of(tick) as client:
            answers.append(await client.post("/api/jobs", json={"name": "report", "definition": job}))
        await tick.close()

    assert [answer.status_code for answer in answers] == [422, 422, 201], [answer.text for answer in answers]
    assert 'api_targets = ["celery"]' in answers[0].json()["detail"]
    assert "EVERYTICK_CELERY" in answers[1].json()["detail"]


def test_an_unknown_kind_of_target_is_refused_where_it_is_written() -> None:
    with pytest.raises(ValueError, match="api_targets"):
        Everytick("memory://", api_targets=["pickle"])


@pytest.mark.parametrize(
    "document",
    [
        {"version": 1, "use": ["/etc/passwd"], "jobs": {"a": TIDY}},
        {"version": 1, "calendars": {"x": {"ics": "/etc/passwd", "since": "2026-01-01"}}, "jobs": {"a": TIDY}},
    ],
)
async def test_a_document_names_no_file_of_the_host(admin: httpx2.AsyncClient, document: dict[str, Any]) -> None:
    """S14."""
    answer = await admin.post("/api/apply", json={"document": document})

    assert (answer.status_code, answer.json()["code"]) == (422, "names_files")


async def test_a_document_is_checked_previewed_and_stored_as_it_was_shown(admin: httpx2.AsyncClient) -> None:
    body = {"document": {"version": 1, "jobs": {"a": TIDY, "b": {**TIDY, "schedule": "@hourly"}}}}
    mistaken = await admin.post("/api/validation", json={"text": "version: 1\njobs:\n  a: {schedule: nonsense}\n"})
    seen = await admin.post("/api/apply", json={**body, "dry_run": True})
    stored = await admin.post("/api/apply", json={**body, "plan": seen.json()["plan"]})
    again = await admin.post("/api/apply", json={**body, "dry_run": True})

    assert [(each["line"], each["is_warning"]) for each in mistaken.json()["mistakes"]] == [(3, False), (3, False)]
    assert [each["change"] for each in seen.json()["changes"]] == ["new", "new"]
    assert seen.json()["changes"][0]["runs"]["added"]
    assert [each["change"] for each in stored.json()["changes"]] == ["new", "new"]
    assert [each["change"] for each in again.json()["changes"]] == ["unchanged", "unchanged"]


async def test_the_jobs_of_code_are_not_taken_over(admin: httpx2.AsyncClient) -> None:
    applied = await admin.post("/api/apply", json={"document": {"version": 1, "jobs": {"failing": TIDY}}})
    edited = await admin.patch("/api/jobs/failing", json={"schedule": "@hourly"})

    assert (applied.status_code, applied.json()["code"]) == (409, "owned_by_another")
    assert edited.status_code == 409


async def test_an_empty_document_prunes_only_what_its_owner_has(admin: httpx2.AsyncClient) -> None:
    """The jobs of the application's code stay."""
    body = {"document": {"version": 1, "jobs": {"tidy": TIDY}}, "owner": "mine"}
    await admin.post("/api/apply", json=body)
    emptied = await admin.post("/api/apply", json={**body, "document": {"version": 1, "jobs": {}}, "prune": True})

    assert [(each["job"], each["change"]) for each in emptied.json()["changes"]] == [("tidy", "gone")]
    assert (await admin.get("/api/jobs/failing")).status_code == 200


async def test_a_document_suspends_its_jobs(admin: httpx2.AsyncClient) -> None:
    held = {"version": 1, "jobs": {"held": {**TIDY, "suspended": True}}}
    applied = await admin.post("/api/apply", json={"document": held})

    assert applied.json()["changes"][0]["parts"] == ["suspended"]
    assert (await admin.get("/api/jobs/held")).json()["pause"]["reason"] == "suspended in request"


async def test_job_files_name_their_mistakes_by_file_and_line(admin: httpx2.AsyncClient) -> None:
    """A file of the service's host is never read."""
    files = {"jobs/a.yaml": "version: 1\njobs: {a: {}}\n", "jobs/b.yaml": "version: 1\nuse: /etc/passwd\njobs: {}\n"}
    answer = await admin.post("/api/apply", json={"files": files})

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_definition")
    assert {each["where"].partition(":")[0] for each in answer.json()["mistakes"]} == set(files)
    assert "did not come with this file" in answer.text
