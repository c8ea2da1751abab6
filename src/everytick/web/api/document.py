"""`/api/openapi.json`: what the API takes and answers, for programs; `/api/docs` shows the same to people."""

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response

from everytick import __version__
from everytick.access.people import Role
from everytick.domain.values import value
from everytick.web.api.shapes import CHANGING, READING, ProblemShape, problem_docs, told
from everytick.web.asking import needs
from everytick.web.rendering import page

router = APIRouter(include_in_schema=False)

TAGS = {
    "fleet": "The service itself, its nodes, and changes that wait for a second person.",
    "jobs": "List jobs, read one, make one, change its definition.",
    "operations": "What people and programs ask of one job.",
    "versions": "Versions of a job.",
    "occurrences": "What ran, what did not, and why.",
    "backfills": "Past instants that run after all.",
    "limits": "How many may run or start at once, on all nodes of a store.",
    "schedules": "Schedules of all jobs, and any text explained.",
    "overviews": "What pictures show of many occurrences at once.",
    "documents": "Documents of jobs: check one, store one.",
    "access": "People, tokens, and what was done by whom.",
    "events": "What happens, as it happens.",
    "health": "For supervisors.",
}
_SAID = (
    "Every operation and question of everytick. Errors are problem details (RFC 9457) with a stable `code`. "
    "Times are ISO-8601 in UTC, lengths of time are seconds. Send a token as `Authorization: Bearer …`."
)


def document_of(app: FastAPI) -> dict[str, Any]:
    """Return the document of the API. It is made once."""
    if app.openapi_schema is None:
        tags = [{"name": name, "description": said} for name, said in TAGS.items()]
        made = get_openapi(title="everytick", version=__version__, description=_SAID, routes=app.routes, tags=tags)
        _add_common_parts(made)
        app.openapi_schema = made
    return app.openapi_schema


def _add_common_parts(made: dict[str, Any]) -> None:
    """Add the shape of problems, which every route refers to, and how callers prove who they are."""
    parts = made.setdefault("components", {})
    parts.setdefault("schemas", {})["ProblemShape"] = ProblemShape.model_json_schema()
    for unused in ("HTTPValidationError", "ValidationError"):
        parts["schemas"].pop(unused, None)
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, methods in made["paths"].items():
        if path.startswith("/api"):
            for method, operation in methods.items():
                operation["security"] = [{"token": []}]
                for status, said in problem_docs(READING if method == "get" else CHANGING).items():
                    if "HTTPValidationError" in str(operation["responses"].setdefault(str(status), said)):
                        operation["responses"][str(status)] = said


@router.get("/api/openapi.json", dependencies=[needs(Role.VIEWER)])
async def openapi(request: Request) -> Response:
    """Return the document."""
    return told(document_of(request.app))


# ---------------------------------------------------------------------------------------------------------- for people


@value(frozen=True)
class RouteText:
    """One route as the page shows it."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: tuple[tuple[str, str, str], ...]
    body: str
    answer: str
    problems: tuple[tuple[str, str], ...]


@router.get("/api/docs", dependencies=[needs(Role.VIEWER)])
async def docs(request: Request) -> Response:
    """Show the document as a page, without a script."""
    document = document_of(request.app)
    groups = [(name, said, list(_routes(document, name))) for name, said in TAGS.items()]
    return await page(request, "api_docs.html", groups=[group for group in groups if group[2]], said=_SAID)


def _routes(document: dict[str, Any], tag: str) -> Iterator[RouteText]:
    for path, methods in document["paths"].items():
        for method, found in methods.items():
            if tag in found.get("tags", ()):
                yield _route_text(document, path, method, found)


def _route_text(document: dict[str, Any], path: str, method: str, found: dict[str, Any]) -> RouteText:
    sent = found.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    answers = {status: answer for status, answer in found["responses"].items() if status.startswith("2")}
    good: dict[str, Any] = next((answer for status, answer in answers.items() if status != "202"), {})
    problems = tuple(
        (status, answer["description"]) for status, answer in found["responses"].items() if status not in answers
    )
    return RouteText(
        id=found.get("operationId", path),
        method=method.upper(),
        path=path,
        summary=found.get("summary", ""),
        description=found.get("description", ""),
        parameters=tuple(
            (parameter["name"], parameter["in"], _said(parameter)) for parameter in found.get("parameters", ())
        ),
        body=_json(_example(document, sent)),
        answer=_json(_answer_example(good)),
        problems=problems,
    )


def _answer_example(answer: dict[str, Any]) -> Any:
    return next((content.get("example") for content in answer.get("content", {}).values()), None)


def _said(parameter: dict[str, Any]) -> str:
    needed = "needed" if parameter.get("required") else ""
    return "; ".join(filter(None, (needed, parameter.get("description", ""))))


def _example(document: dict[str, Any], schema: dict[str, Any]) -> Any:
    name = schema.get("$ref", "").rpartition("/")[2]
    found = document["components"]["schemas"].get(name, schema)
    return next(iter(found.get("examples", ())), None)


def _json(data: Any) -> str:
    import json

    if data is None:
        return ""
    return data if isinstance(data, str) else json.dumps(data, indent=2, ensure_ascii=False)
