"""The document of the API: every route is in it, with an example that the service takes and answers that fit."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import jsonschema_rs
import pytest
from fastapi.routing import APIRoute

from everytick.web import api
from everytick.web.api.document import document_of
from everytick.web.asgi import asgi
from tests.unit.web.api.conftest import JOB, World, make_tick

DOCUMENT = document_of(asgi(make_tick()).app)
API: dict[str, dict[str, Any]] = {path: each for path, each in DOCUMENT["paths"].items() if path.startswith("/api")}
OPERATIONS = [
    pytest.param(path, method, id=found["operationId"])
    for path, methods in API.items()
    for method, found in methods.items()
]


def api_routes() -> Iterator[APIRoute]:
    for router in api.ROUTERS:
        yield from (route for route in router.routes if isinstance(route, APIRoute) and route.include_in_schema)


def test_every_route_of_the_api_is_in_the_document_under_an_id_of_its_own() -> None:
    told = {(path, method.upper()) for path, methods in DOCUMENT["paths"].items() for method in methods}
    routes = [(route.path_format, method) for route in api_routes() for method in route.methods or ()]

    assert len(routes) > 60
    assert [route for route in routes if route not in told] == []
    ids = [route.operation_id for route in api_routes() if route.operation_id]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_a_route_tells_its_tag_its_problems_and_an_example_of_what_it_takes_and_answers(path: str, method: str) -> None:
    found = DOCUMENT["paths"][path][method]
    problems = [each for status, each in found["responses"].items() if int(status) >= 400]
    good = [each for status, each in found["responses"].items() if status in ("200", "201", "204")]

    assert found["tags"]
    assert found["summary"]
    assert all("application/problem+json" in each["content"] for each in problems)
    assert {"401", "403", "422", "503"} <= found["responses"].keys()
    assert len(good) == 1
    for kind, each in good[0].get("content", {}).items():
        if kind == "application/json":
            validator(each["schema"]).validate(each["example"])
    for kind in found.get("requestBody", {}).get("content", {}).values():
        validator(kind["schema"]).validate(example_of(kind["schema"]))


def validator(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.validator_for({**schema, "components": DOCUMENT["components"]})


def example_of(schema: dict[str, Any]) -> Any:
    return DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["examples"][0]


# What an example cannot know: which things this world has, and which times are to come in it.
BODIES: dict[str, dict[str, Any]] = {
    "trigger": {"payload": {"secret": "x"}, "key": "k1"},
    "reschedule": {"at": "2026-03-02T15:30:00Z"},
    "skip": {"at": "2026-03-02T17:00:00Z"},
    "move": {"at": "2026-03-02T17:00:00Z", "to": "2026-03-02T17:30:00Z"},
    "amend": {"at": "2026-03-02T17:00:00Z", "payload": {"secret": "y"}, "policies": {"priority": 5}},
    "add": {"at": "2026-03-02T17:10:00Z", "payload": {"secret": "y"}},
    "update_job": {"policies": {"priority": 4}, "dry_run": True},
    "rollback": {"version": 1},
    "replay": {"reason": "again", "key": "k2"},
    "plan_backfill": {"after": "2026-03-01T12:00:00Z", "through": "2026-03-02T12:00:00Z", "dry_run": True},
    "pause": {"until": "2026-03-09T12:00:00Z"},
    "brake": {"reason": "down", "until": "2026-03-09T12:00:00Z"},
    "release": {"rate": "60/1m"},
    "rename_job": {"to": "renamed"},
}
QUERIES: dict[str, dict[str, str]] = {
    "explain_instant": {"at": "2026-03-02T13:00:00Z"},
    "compare_versions": {"old": "1", "new": "2"},
    "list_occurrences": {"limit": "2"},
    "last_runs": {"jobs": JOB},
    "promises": {"job": JOB},
    "days": {"year": "2026"},
    "counts": {"job": JOB},
}
WINDOW = {"after": "2026-03-01T12:00:00Z", "through": "2026-03-02T16:00:00Z", "since": "2026-03-01T12:00:00Z"}
OF_API_JOB = ("update_job", "rollback", "remove_job", "rename_job", "compare_versions")
EXPECTED = {"end_rollout": 404, "undo": 409, "alike": 404, "pause_backfill": 409}
"""In this world no version is on trial, nothing can be undone, and the backfill waits for its approval."""


def parts_of(world: World, name: str) -> dict[str, str]:
    job = "api-job" if name in OF_API_JOB else JOB
    ended = world.failed if name == "replay" else world.done
    reach = {"job": job, "occurrence": ended, "backfill": world.backfill, "proposal": world.proposal}
    people = {"user": world.user, "token": world.token}
    return {
        **reach,
        **people,
        "reach": "queue:slow",
        "digits": ended.removeprefix("occ_")[:8],
        "fingerprint": "8a61c5c1",
    }


async def asked(world: World, client: httpx2.AsyncClient, path: str, method: str, job: str = "") -> httpx2.Response:
    found = DOCUMENT["paths"][path][method]
    name, parts = found["operationId"], parts_of(world, found["operationId"])
    parts |= {"job": job} if job else {}
    filled = re.sub(r"\{(\w+)\}", lambda part: quote(parts[part[1]], safe=""), path)
    needed = {each["name"] for each in found.get("parameters", ()) if each["in"] == "query" and each.get("required")}
    examples = {each["name"]: each["schema"].get("examples", [""])[0] for each in found.get("parameters", ())}
    query = {key: WINDOW.get(key, examples[key]) for key in needed} | QUERIES.get(name, {})
    body = found.get("requestBody", {}).get("content", {}).get("application/json")
    sent = None if body is None else BODIES.get(name) or example_of(body["schema"])
    return await client.request(method.upper(), filled, params=query, json=sent)


async def wrong_answer(world: World, client: httpx2.AsyncClient, path: str, method: str) -> str:
    """Return what is wrong with the answer to a route's example; nothing if it is as the document says."""
    found = DOCUMENT["paths"][path][method]
    answer = await asked(world, client, path, method)
    good = next(status for status in found["responses"] if status in ("200", "201", "204"))
    if answer.status_code != EXPECTED.get(found["operationId"], int(good)):
        return f"{found['operationId']}: {answer.status_code} {answer.text}"
    told = found["responses"][str(answer.status_code)].get("content", {}).get("application/json")
    misfits = [] if told is None else validator(told["schema"]).iter_errors(answer.json())
    return "; ".join(f"{found['operationId']}: {each}" for each in misfits)


CALLS = [(path, method) for path, methods in API.items() for method in methods if path != "/api/events"]


async def test_every_question_answers_its_example_in_its_shape(world: World, admin: httpx2.AsyncClient) -> None:
    found = [await wrong_answer(world, admin, path, method) for path, method in CALLS if method == "get"]

    assert [each for each in found if each] == []


@pytest.mark.parametrize(("path", "method"), [each for each in OPERATIONS if each.values[1] != "get"])
async def test_an_operation_does_what_its_example_asks_and_answers_in_its_shape(
    world: World, admin: httpx2.AsyncClient, path: str, method: str
) -> None:
    assert await wrong_answer(world, admin, path, method) == ""


async def test_a_viewer_sees_no_secret_and_changes_nothing(world: World, viewer: httpx2.AsyncClient) -> None:
    """S19, S3: payloads, results, errors and output are an operator's."""
    open_to_all, of_others = ("validate_document",), ("read_output", "list_users", "list_tokens")
    for path, method in CALLS:
        name = DOCUMENT["paths"][path][method]["operationId"]
        answer = await asked(world, viewer, path, method)

        is_refused = name in of_others or (method != "get" and name not in open_to_all)
        assert (answer.status_code == 403) is is_refused, (name, answer.text)
        assert "s3cr3t" not in answer.text, name


async def test_what_is_not_there_is_a_problem_that_says_so(world: World, admin: httpx2.AsyncClient) -> None:
    world.user = world.token = "nobody"
    world.done = world.failed = world.backfill = world.proposal = "occ_00000000-0000-5000-8000-000000000000"
    for path, method in CALLS:
        if "{" not in path or "{reach}" in path or "{digits}" in path:
            continue
        answer = await asked(world, admin, path, method, job="nobody")

        assert answer.status_code == 404, (path, answer.text)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "not_found"
