"""The deed on a document of jobs, as a job file has them: what is new is made, what differs becomes a new version."""

from __future__ import annotations

from asyncio import to_thread
from typing import TYPE_CHECKING, Any

from everytick.access.people import Role
from everytick.app.stored_jobs import API
from everytick.errors import Conflict, DefinitionError, NotOwned
from everytick.web.api.definitions import jobs_of, read_document
from everytick.web.deeds.deed import AskedField, DeedAnswers, Doing, Done, PageDeed, Prospect, tick_field
from everytick.web.fields import FieldKind, FormField
from everytick.web.pictures.trail import TrailStep
from everytick.web.problems import Problem
from everytick.web.words import count, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everytick.answers.values import Preview
    from everytick.domain.changes import Change
    from everytick.sources.job_files import FileJob

_NAMED = 20
"""How many changes are named one by one."""

_MARKS = {"added": "planned", "changed": "superseded", "removed": "skipped"}


class UnreadDocument(DefinitionError):
    """The document has mistakes, or names what the service does not allow."""

    code = "invalid_definition"

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(reason)
        self.text = text


async def _fields(_: Doing) -> Sequence[AskedField]:
    field = FormField("document", FieldKind.DOCUMENT, is_required=True)
    return (
        AskedField(field, "Jobs", "YAML, as in a job file; required"),
        tick_field("prune", "Remove the others", "those that were made on pages or over HTTP and are not named here"),
    )


async def _jobs(doing: Doing, values: Mapping[str, Any]) -> dict[str, FileJob]:
    """Return the jobs of the document. Raise UnreadDocument with every mistake."""
    text = str(values.get("document") or "")
    try:
        return await to_thread(lambda: jobs_of(doing.tick, [read_document(text, API)]))
    except Problem as problem:
        told = [f"{mistake['where']}: {mistake['why']}" for mistake in problem.more.get("mistakes", ())]
        raise UnreadDocument(text, "; ".join(told) or problem.detail) from None


async def _foresee(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    sub = "All of it is stored, or nothing. Look at what it means for the runs to come, then store it."
    if not values.get("document"):
        return Prospect(sub=sub)
    seen = await doing.tick.preview_files(await _jobs(doing, values), owner=API, prune=bool(values.get("prune")))
    if seen.refusals:
        raise NotOwned(seen.refusals)
    changes = [change for change in seen.changes if change.kind in _MARKS]
    steps = [_step(doing, change, seen) for change in changes[:_NAMED]]
    if len(changes) > _NAMED:
        steps.append(TrailStep("planned", f"and {len(changes) - _NAMED} more"))
    if same := len(seen.changes) - len(changes):
        steps.append(TrailStep("completed", f"{count(same, 'job')} as before"))
    return Prospect(steps, sub, hidden={"plan": seen.hash})


def _step(doing: Doing, change: Change, seen: Preview) -> TrailStep:
    runs = seen.runs.get(change.name)
    said = list(change.parts)
    if runs is not None and change.kind == "added":
        first = min(runs.added, default=None)
        said.append("no next run" if first is None else f"next: {doing.viewer.when(first)}")
    elif runs is not None:
        said += [
            f"{count(len(some), 'run')} {what}" for some, what in ((runs.removed, "less"), (runs.added, "more")) if some
        ]
    return TrailStep(_MARKS[change.kind], f"{change.name} is {change.kind}", ", ".join(said))


async def _apply(doing: Doing, said: DeedAnswers) -> Done:
    plan = (said.hidden or {}).get("plan")
    if not plan:
        raise Conflict("what follows from this was not shown yet: look at it, then send it again")
    changes = await doing.tick.apply_files(
        await _jobs(doing, said.values),
        owner=API,
        prune=bool(said.values.get("prune")),
        plan=plan,
        confirmed=said.is_confirmed,
    )
    counts = [(kind, sum(change.kind == kind for change in changes)) for kind in _MARKS]
    told = listed([f"{number} {kind}" for kind, number in counts if number])
    return Done(f"Jobs stored: {told}." if told else "Nothing has changed.", to=doing.link("/jobs"))


APPLY = PageDeed(
    "apply",
    "Apply a document",
    "Store the jobs of a document?",
    "Store them",
    Role.ADMIN,
    _foresee,
    _apply,
    _fields,
    previews=True,
)
"""Makes and changes many jobs at once."""
