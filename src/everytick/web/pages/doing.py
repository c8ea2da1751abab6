"""The pages on which a person changes something: one confirm page for each deed, and the route that carries it out.

The deeds stand in `web.deeds`. A route is made of each, so that each declares the role that it needs.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from fastapi import APIRouter, Request
from fastapi.responses import Response

from everytick.access.people import Role, tags_of
from everytick.domain.limits import ReachRecord
from everytick.errors import NotFound
from everytick.stores.base import JobRecord
from everytick.web.asking import Tick, Who, needs
from everytick.web.confirming import Confirming
from everytick.web.deeds import of_backfills, of_definitions, of_documents, of_fleet, of_jobs, of_many, of_occurrences
from everytick.web.deeds.deed import Crumb, Doing, PageDeed
from everytick.web.framing import viewer_of
from everytick.web.rendering import page

router = APIRouter(include_in_schema=False)

_MOST_FIELDS = 5_000
"""Most fields of one form: a thousand rows that were chosen, and some."""

Find: TypeAlias = Callable[[Doing, str], Awaitable[None]]
"""Looks up what a deed is about, by the name or id in its address."""

Endpoint: TypeAlias = Callable[[Request, Any, Any], Awaitable[Response]]


async def _typed(request: Request) -> dict[str, str]:
    """Return what the address and the form say; the form wins. Several values of one name are lines."""
    typed = _joined(request.query_params.multi_items())
    if request.method == "POST":
        # What confirms a guarded deed counts in the form alone: an address may have been sent by others.
        typed = {name: said for name, said in typed.items() if name not in ("confirmed", "key", "look")}
        async with request.form(max_files=0, max_fields=_MOST_FIELDS) as form:
            typed |= _joined((name, str(said)) for name, said in form.multi_items())
    return typed


def _joined(items: Iterable[tuple[str, str]]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for name, said in items:
        found.setdefault(name, []).append(said.replace("\r\n", "\n"))
    return {name: "\n".join(said) for name, said in found.items()}


async def _confirming(request: Request, tick: Any, who: Any, deed: PageDeed, find: Find) -> Confirming:
    viewer = viewer_of(request, await tick.now())
    doing = Doing(tick, who, viewer, request.scope.get("root_path", ""), await _typed(request))
    await find(doing, next(iter(request.path_params.values()), ""))
    doing.crumbs = (*doing.crumbs, Crumb(deed.label))
    confirming = Confirming(request, deed, doing)
    await confirming.look(is_sent=request.method == "POST")
    return confirming


def _add(path: str, deeds: Sequence[PageDeed], find: Find, *, on_each: bool = False) -> None:
    """Make two routes of each deed: one shows its confirm page, the other carries it out."""
    for deed in deeds:
        ask, do = _endpoints(deed, find)
        address, guard = f"{path}/do/{deed.name}", [needs(deed.role, on_each=on_each)]
        router.add_api_route(address, ask, methods=["GET"], dependencies=guard)
        router.add_api_route(address, do, methods=["POST"], dependencies=guard)


def _endpoints(deed: PageDeed, find: Find) -> tuple[Endpoint, Endpoint]:
    async def ask(request: Request, tick: Tick, who: Who) -> Response:
        return await (await _confirming(request, tick, who, deed, find)).page()

    async def do(request: Request, tick: Tick, who: Who) -> Response:
        return await (await _confirming(request, tick, who, deed, find)).submit()

    return ask, do


async def _find_job(doing: Doing, name: str) -> None:
    doing.record = await doing.tick.job(name)
    doing.crumbs = (Crumb("Jobs", doing.link("/jobs")), Crumb(doing.name, doing.link("/jobs/{}", doing.name)))


async def _find_occurrence(doing: Doing, id_: str) -> None:
    doing.found, doing.subject = await doing.tick.entry(id_), id_
    found = doing.found.occurrence
    doing.record = await doing.tick.job_of(found.job_id)
    when = doing.viewer.when(found.scheduled_for, seconds=bool(found.scheduled_for.second))
    doing.title = f"{when} of {doing.name}"
    doing.crumbs = (
        Crumb(doing.name, doing.link("/jobs/{}", doing.name)),
        Crumb(when, doing.link("/occurrences/{}", id_)),
    )


async def _find_backfill(doing: Doing, id_: str) -> None:
    doing.found, doing.subject = await (await doing.tick.find_backfill(id_)).progress(), id_
    job = doing.found.job
    doing.crumbs = (Crumb("Jobs", doing.link("/jobs")), Crumb(job, doing.link("/jobs/{}", job)))


async def _find_proposal(doing: Doing, id_: str) -> None:
    doing.found = next((proposal for proposal in await doing.tick.proposals() if proposal.id == id_), None)
    if doing.found is None:
        raise NotFound("proposal", id_)
    doing.subject, doing.crumbs = id_, (Crumb("Jobs", doing.link("/jobs")),)


async def _find_nothing(doing: Doing, _: str) -> None:
    doing.crumbs = (Crumb("Nodes", doing.link("/nodes")),)


async def _find_all_jobs(doing: Doing, _: str) -> None:
    doing.crumbs = (Crumb("Jobs", doing.link("/jobs")),)


OF_JOB = (*of_jobs.DEEDS, of_backfills.PLAN, *of_definitions.DEEDS)
"""Everything that is done to one job."""

OF_FLEET = (*of_fleet.DEEDS, of_documents.APPLY)
"""Everything that is done to many jobs by their reach, or by a document."""

_add("/jobs/{job:name}", OF_JOB, _find_job)
_add("/occurrences/{id}", of_occurrences.DEEDS, _find_occurrence)
_add("/backfills/{backfill}", of_backfills.DEEDS, _find_backfill)
_add("/proposals/{id}", of_fleet.PROPOSALS, _find_proposal)
_add("", of_fleet.DEEDS, _find_nothing)
_add("", [of_documents.APPLY], _find_all_jobs)
_add("/jobs", of_many.JOBS, of_many.find_jobs, on_each=True)
_add("/history", of_many.OCCURRENCES, of_many.find_occurrences, on_each=True)


@router.get("/jobs/{job:name}/do", dependencies=[needs(Role.VIEWER)])
async def deeds_of_job(request: Request, tick: Tick, who: Who, job: str) -> Response:
    """Show everything that the person may do to a job."""
    record, now = await tick.job(job), await tick.now()
    tags = tags_of(record.job.name, record.job.settings.tags)
    may = [deed for deed in OF_JOB if who.may(deed.role, tags) and not _is_pointless(deed.name, record, now)]
    return await _index(request, f"What can be done to {record.job.name}?", may, record.job.name)


def _is_pointless(deed: str, record: JobRecord, now: datetime) -> bool:
    """Whether the job is so already: one that is not paused cannot be resumed."""
    match deed:
        case "resume":
            return record.pause is None
        case "enable" | "disable":
            return record.job.enabled is (deed == "enable")
        case "rewind":
            return record.watermark <= now
    return False


@router.get("/do", dependencies=[needs(Role.VIEWER)])
async def deeds_of_fleet(request: Request, tick: Tick, who: Who) -> Response:
    """Show everything that the person may do to many jobs, and the brakes and limits that there are."""
    may = [deed for deed in OF_FLEET if who.may(deed.role)]
    return await _index(request, "What can be done to many jobs?", may, "", (await tick.limits()).reaches)


async def _index(
    request: Request, question: str, deeds: Sequence[PageDeed], job: str, reaches: Sequence[ReachRecord] = ()
) -> Response:
    values: dict[str, Any] = {"question": question, "deeds": deeds, "job": job, "reaches": reaches}
    return await page(request, "deeds.html", **values)
