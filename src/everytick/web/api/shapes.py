"""How routes of the API are declared: shapes with examples, and the problems that a route may answer with.

The shape of an answer stands in the document only. The functions of `everytick.answers` make the answers, and tests
hold them against their shapes.
"""

import types
from collections.abc import Awaitable, Callable, Mapping
from datetime import date, datetime
from inspect import signature
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

from everytick.access.people import Role
from everytick.answers.wire import json_text
from everytick.web.asking import needs
from everytick.web.paths import NameConvertor
from everytick.web.problems import MEDIA_TYPE, Problem

# ------------------------------------------------------------------------------------------------ texts with examples

Moment = Annotated[datetime, Field(description="In UTC.", examples=["2026-11-17T02:30:00Z"])]
Name = Annotated[str, Field(description="The name of a job.", examples=["nightly-backup"])]
JobId = Annotated[str, Field(examples=["job_0c5c1d1f7f0e5f0f9a3f7c1f2d9b8a61"])]
OccurrenceId = Annotated[str, Field(examples=["occ_5f0f9a3f-7c1f-5d9b-8a61-0c5c1d1f7f0e"])]
Text = Annotated[str, Field(examples=["the CRM is down"])]
By = Annotated[str, Field(description="Who asked for it.", examples=["ann"])]
Version = Annotated[int, Field(description="Counted from 1.", examples=[3])]
Count = Annotated[int, Field(examples=[12])]
Seconds = Annotated[float, Field(description="A length of time in seconds.", examples=[42.5])]
Flag = Annotated[bool, Field(examples=[False])]
Json = Annotated[Any, Field(description="Any JSON.", examples=[{"pages": 3}])]
Day = Annotated[date, Field(examples=["2026-11-17"])]
Status = Annotated[str, Field(description="The status of an occurrence.", examples=["completed"])]
Cause = Annotated[str, Field(description="Why it exists.", examples=["schedule"])]
Table = Annotated[dict[str, Any], Field(examples=[{}])]

GivenMoment = Annotated[
    str,
    Field(
        max_length=100,
        description="A time with its offset, or with its zone in brackets: 2026-11-17T02:30:00[Europe/Berlin].",
        examples=["2026-11-17T02:30:00Z"],
    ),
]
GivenLength = Annotated[str, Field(max_length=50, description="A length of time.", examples=["10m"])]
GivenText = Annotated[str, Field(max_length=2_000, description="Why; it is stored.", examples=["the CRM is down"])]
GivenName = Annotated[str, Field(min_length=1, max_length=200, examples=["nightly-backup"])]
GivenFlag = Annotated[bool, Field(examples=[True])]
Confirm = Annotated[
    bool,
    Field(description="Carry out what is guarded. Without it the answer is 409, with the cost.", examples=[False]),
]
Rate = Annotated[str, Field(max_length=50, description="So many starts in so long.", examples=["60/1m"])]
Overlap = Literal["skip", "queue", "queue_latest", "allow", "cancel_running"]
Missed = Literal["skip", "catch_up", "last"]


class Shape(BaseModel):
    """A JSON object. Unknown keys are refused, in requests by the service and in answers by its tests."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=lambda schema, kind: _with_example(schema, kind))

    @classmethod
    def example(cls) -> dict[str, Any]:
        """Return an example, made from the examples of the fields."""
        found = {name: _example(field) for name, field in cls.model_fields.items()}
        return {name: value for name, value in found.items() if value is not _LEFT_OUT}


class OpenShape(Shape):
    """A JSON object that may have more keys."""

    model_config = ConfigDict(extra="allow", json_schema_extra=lambda schema, kind: _with_example(schema, kind))


_LEFT_OUT = object()


def _with_example(schema: dict[str, Any], kind: type[Any]) -> None:
    schema["examples"] = [kind.example()]


def _example(field: FieldInfo) -> Any:
    if field.examples:
        return field.examples[0]
    made = _example_of(field.annotation)
    if made is _LEFT_OUT and not field.is_required():
        default = field.get_default(call_default_factory=True)
        return default if default is not None else _LEFT_OUT
    return made


def _example_of(kind: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, Shape):
        return kind.example()
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        known = next((part.examples[0] for part in parts[1:] if isinstance(part, FieldInfo) and part.examples), None)
        return _example_of(parts[0]) if known is None else known
    if origin is list:
        return [_example_of(parts[0])]
    if origin is dict:
        return {}
    if origin is Literal:
        return parts[0]
    if origin in (Union, types.UnionType):
        return _example_of(parts[0])
    return _LEFT_OUT


# ------------------------------------------------------------------------------------------------------------ problems


class ProblemShape(OpenShape):
    """Problem details (RFC 9457): what was wrong, as a sentence and as a code. Some problems have more members."""

    type: Annotated[str, Field(examples=["urn:everytick:not_found"])]
    title: Annotated[str, Field(examples=["Not Found"])]
    status: Annotated[int, Field(examples=[404])]
    detail: Annotated[str, Field(examples=["there is no job 'nightly'"])]
    code: Annotated[str, Field(description="It never changes its meaning.", examples=["not_found"])]


_PROBLEMS: Mapping[int, tuple[str, str, str]] = {
    202: ("It is proposed: another person must approve it.", "needs_approval", "the removal of job 'pay' is proposed"),
    401: ("Who asks is not known.", "not_signed_in", "send a token, or sign in"),
    403: ("Who asks may not do this.", "not_allowed", "this needs operator: ann is viewer"),
    404: ("There is no such thing.", "not_found", "there is no job 'nightly'"),
    409: ("It does not go with what is there, or needs a confirmation.", "conflict", "job 'pay' is left as it is"),
    412: ("The definition was edited since it was read.", "version_conflict", "job 'pay' is at version 4, not 3"),
    413: ("The body is too large.", "too_large", "a body may have 1,048,576 bytes"),
    415: ("The body is not JSON.", "wrong_media_type", "send application/json"),
    422: ("Something in the request cannot be read.", "invalid_instant", "'tomorrow': must be an ISO-8601 time"),
    429: ("Too many requests.", "too_many_requests", "wait for some seconds"),
    501: ("The store or an extra that this needs is not there.", "missing_extra", "it needs an optional package"),
    503: ("The store does not answer, or too much is asked at once.", "store_unavailable", "the store does not answer"),
}
READING = (401, 403, 404, 422, 429, 503)
"""The problems of every question."""
CHANGING = (202, 401, 403, 404, 409, 412, 413, 415, 422, 429, 501, 503)
"""The problems of every operation."""


def problem_docs(statuses: tuple[int, ...]) -> "Docs":
    """Return what the document says of these problems."""
    return {status: _problem_doc(status) for status in statuses}


def _problem_doc(status: int) -> dict[str, Any]:
    said, code, detail = _PROBLEMS[status]
    example = {"type": f"urn:everytick:{code}", "title": said, "status": status, "detail": detail, "code": code}
    reference = {"$ref": "#/components/schemas/ProblemShape"}
    return {"description": said, "content": {MEDIA_TYPE: {"schema": reference, "example": example}}}


# -------------------------------------------------------------------------------------------------------------- routes

assert NameConvertor.regex, "importing it lets paths say `{job:name}`"

Handler = Callable[..., Awaitable[Response]]
Docs = dict[int | str, dict[str, Any]]


class Routes:
    """The routes of one group, each with its role, its shape and its problems in the document."""

    def __init__(self, tag: str) -> None:
        self.router = APIRouter(tags=[tag])

    def question(
        self, path: str, answer: Any, *, role: Role = Role.VIEWER, more: Docs | None = None
    ) -> Callable[[Handler], Handler]:
        """Return what makes the function answer GET requests."""
        return self._route("GET", path, answer, 200, role, READING, more)

    def operation(
        self, path: str, answer: Any, *, status: int = 200, role: Role = Role.OPERATOR, method: str = "POST"
    ) -> Callable[[Handler], Handler]:
        """Return what makes the function carry out a change."""
        return self._route(method, path, answer, status, role, CHANGING, None)

    def _route(
        self,
        method: str,
        path: str,
        answer: Any,
        status: int,
        role: Role,
        problems: tuple[int, ...],
        more: Docs | None,
    ) -> Callable[[Handler], Handler]:
        def add(handler: Handler) -> Handler:
            compares = "if_match" in signature(handler).parameters
            before = [needs(role)] if method == "GET" or compares else [needs(role), Depends(_refuse_if_match)]
            said, _, rest = (handler.__doc__ or "").partition("\n")
            self.router.add_api_route(
                path,
                handler,
                methods=[method],
                status_code=status,
                summary=said.rstrip("."),
                description=rest.strip() or said,
                operation_id=handler.__name__,
                dependencies=before,
                response_class=Response,
                response_model=None,
                responses={status: _answer_doc(answer), **problem_docs(problems), **(more or {})},
            )
            return handler

        return add


async def _refuse_if_match(request: Request) -> None:
    """Refuse a condition that the operation does not check: its caller would rely on it."""
    if "if-match" in request.headers:
        said = "this operation takes no If-Match: only PATCH, DELETE, rename and rollback of a job compare its version"
        raise Problem(422, "if_match_not_taken", said)


def _answer_doc(answer: Any) -> dict[str, Any]:
    if answer is None:
        return {"description": "Done."}
    example = _example_of(answer)
    return {"description": "The answer.", "model": answer, "content": {"application/json": {"example": example}}}


def told(data: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return the answer with this content."""
    return Response(json_text(data).encode(), status, dict(headers or {}), media_type="application/json")


def done() -> Response:
    """Return the answer of an operation that has nothing to tell."""
    return Response(status_code=204)
