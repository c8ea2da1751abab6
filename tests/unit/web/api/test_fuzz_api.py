"""Every route under hostile and odd requests: no error of our own, and no answer that the document does not name."""

import asyncio
import re
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS, load_all_checks

from everytick.web.asgi import asgi
from tests.unit.web.api.conftest import World, by_header
from tests.unit.web.asking_raw import ROUTES

load_all_checks()
HELD: Any = CHECKS.get_by_names(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
        "response_headers_conformance",
    ]
)
NOT_FUZZED = ("/api/events", "/livez", "/readyz", "/startupz")
"""A stream has no end, and health has no input."""


def _service() -> Any:
    world = World()
    asyncio.run(world.live())
    return asgi(world.tick, identify=by_header)


SERVICE = _service()
schema = schemathesis.openapi.from_asgi("/api/openapi.json", SERVICE).exclude(path=list(NOT_FUZZED))


def budget(examples: int, *phases: Phase) -> settings:
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=phases,
        suppress_health_check=quiet,
    )


def test_every_route_of_the_api_is_fuzzed() -> None:
    """The list is the router's own, so that a new route cannot be forgotten."""
    plain = {(method, re.sub(r":\w+\}", "}", path)) for method, path, _ in ROUTES if path.startswith("/api/")}
    # One that is invalid has no `ok`: its route is missed below.
    found: list[Any] = [each.ok() for each in schema.get_all_operations() if hasattr(each, "ok")]
    fuzzed = {(each.method.upper(), each.path) for each in found}

    assert plain - fuzzed == {("GET", path) for path in ("/api/events", "/api/docs", "/api/openapi.json")}
    assert len(fuzzed) > 70


@schema.parametrize()
@budget(4, Phase.generate)
def test_no_request_breaks_a_route(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(checks=HELD)
