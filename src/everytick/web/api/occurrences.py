"""Occurrences: the history, one of them with its attempts and its output, cancel and replay."""

from typing import Annotated

from fastapi import Query, Response

from everytick.access.people import Role
from everytick.answers.occurrences import occurrence_record, whole_record
from everytick.answers.wire import OUTPUT_AT_ONCE
from everytick.app import Everytick
from everytick.domain.occurrence import Occurrence
from everytick.web.api import bodies, models
from everytick.web.api.hiding import shown_to
from everytick.web.api.operations import IdempotencyKey, one_key
from everytick.web.api.paging import USUAL_ITEMS, CursorParameter, Limit, read, written
from everytick.web.api.shapes import Docs, GivenMoment, Routes, problem_docs, told
from everytick.web.asking import Tick, Who
from everytick.web.problems import Problem

routes = Routes("occurrences")
router = routes.router

StatusParameter = Annotated[
    list[str], Query(max_length=20, description="Only these statuses.", examples=[["failed", "missed"]])
]


@routes.question("/api/occurrences", models.PageData[models.ListedOccurrenceData])
async def list_occurrences(
    tick: Tick,
    who: Who,
    job: Annotated[str | None, Query(max_length=200, examples=["nightly-backup"])] = None,
    status: StatusParameter = [],  # noqa: B006 - FastAPI copies it
    cause: Annotated[str | None, Query(max_length=20, examples=["schedule"])] = None,
    after: Annotated[GivenMoment | None, Query()] = None,
    through: Annotated[GivenMoment | None, Query()] = None,
    limit: Limit = USUAL_ITEMS,
    cursor: CursorParameter = None,
) -> Response:
    """Return a page of the history, newest first; of one job also the instants that did not run.

    Of all jobs these come if `status` names `skipped` or `missed`.
    """
    place = read("occurrences", cursor, str)
    page = await tick.history(
        job, status=status or None, cause=cause, after=after, through=through, limit=limit, cursor=place
    )
    unkept = await tick.unkept(page.occurrences)
    ids = {occurrence.job_id for occurrence in page}
    names, tags = await tick.job_names(ids), await tick.job_tags(ids)
    items = [
        shown_to(
            who,
            occurrence_record(occurrence, names) | {"broken_promises": unkept.get(occurrence.id, ())},
            tags[occurrence.job_id],
        )
        for occurrence in page
    ]
    following = None if page.cursor is None else written("occurrences", page.cursor)
    return told({"items": items, "cursor": following})


@routes.question("/api/occurrences/beginning/{digits}", models.IdsData)
async def occurrences_beginning(digits: str, tick: Tick) -> Response:
    """Return the ids that begin with these digits, at least 8: two of them at most."""
    if not 8 <= len(digits) <= 36 or set(digits) - set("0123456789abcdef-") or not digits.replace("-", ""):
        raise Problem(422, "invalid_id", "give 8 to 36 characters of an id: 0 to 9, a to f")
    return told({"ids": sorted(await tick.occurrences_beginning(digits))})


@routes.question("/api/occurrences/{occurrence}", models.WholeOccurrenceData)
async def read_occurrence(occurrence: str, tick: Tick, who: Who) -> Response:
    """Read one occurrence with its payload, its results and its attempts; also an instant that did not run."""
    whole = await tick.entry(occurrence)
    found = whole.occurrence
    names = await tick.job_names([found.job_id])
    data = whole_record(whole, names, await tick.payload_of(found))
    return told(shown_to(who, data, await _tags(tick, found)))


async def _tags(tick: Everytick, found: Occurrence) -> tuple[str, ...]:
    return (await tick.job_tags([found.job_id]))[found.job_id]


_OUTPUT: Docs = {
    200: {"description": "The output, as text.", "content": {"text/plain": {"schema": {"type": "string"}}}},
    **problem_docs((403,)),
}


@routes.question("/api/occurrences/{occurrence}/output", None, more=_OUTPUT)
async def read_output(
    occurrence: str,
    tick: Tick,
    who: Who,
    task: Annotated[str | None, Query(max_length=200, examples=["dump"])] = None,
    attempt: Annotated[int | None, Query(ge=1, le=1_000_000, examples=[1])] = None,
    start: Annotated[int | None, Query(ge=0, lt=2**63, description="A byte of one attempt.", examples=[0])] = None,
) -> Response:
    """Read the output of its tasks, as far as this host has it: the last mebibyte. Hidden from viewers.

    With `task`, `attempt` and `start`, it is the mebibyte of this attempt that begins there: what has come since the
    last answer. It is 404 if the output is not on this host.
    """
    whole = await tick.occurrence(occurrence)
    if not who.sees_payloads(await _tags(tick, whole.occurrence)):
        raise Problem(403, "not_allowed", f"output needs {Role.OPERATOR}: {who.name} is {who.role}")
    if start is None:
        text = await tick.output(whole, task=task, attempt=attempt, most=OUTPUT_AT_ONCE)
    elif task is None or attempt is None:
        raise Problem(422, "invalid_request", "`start` is a place in the output of one `task` and one `attempt`")
    elif (part := await tick.output_from(whole, task, attempt, start)) is not None:
        text = part
    else:
        raise Problem(404, "not_found", "the output of this attempt is not on the service's host")
    return Response(text, media_type="text/plain; charset=utf-8")


@routes.operation("/api/occurrences/{occurrence}/cancel", models.ChangedData)
async def cancel(occurrence: str, body: bodies.ReasonBody, tick: Tick) -> Response:
    """End an occurrence that no node has claimed, or ask its node to stop it."""
    return told({"changed": await tick.cancel(occurrence, reason=body.reason)})


@routes.operation("/api/occurrences/{occurrence}/replay", models.AskedData, status=201)
async def replay(
    occurrence: str, body: bodies.ReplayBody, tick: Tick, idempotency_key: IdempotencyKey = None
) -> Response:
    """Ask for a new occurrence that does again what an ended one did."""
    asked = await tick.replay(
        occurrence,
        reason=body.reason,
        from_task=body.from_task,
        key=one_key(idempotency_key, body.key),
        overlap=body.overlap,
    )
    return told({"id": asked.id}, 201)
