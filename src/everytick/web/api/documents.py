"""Documents of jobs: check one, store one."""

import json
from asyncio import to_thread

from fastapi import Response

from everytick.access.people import Role
from everytick.answers.runs_to_come import preview_data
from everytick.answers.values import Preview
from everytick.sources.file_texts import read_texts
from everytick.sources.job_files import JobFile
from everytick.web.api import bodies, models
from everytick.web.api.definitions import jobs_of, read_document
from everytick.web.api.shapes import Routes, told
from everytick.web.asking import Tick
from everytick.web.problems import Problem

routes = Routes("documents")
router = routes.router


def _text(body: bodies.DocumentBody) -> str:
    return json.dumps(body.document) if body.text is None else body.text


@routes.operation("/api/validation", models.ValidatedData, role=Role.VIEWER)
async def validate_document(body: bodies.DocumentBody) -> Response:
    """Check a document of jobs: every mistake at once, with its line and column in the text. Nothing is stored."""
    read = read_document(_text(body), "api")
    mistakes = [
        {"line": mistake.line, "column": mistake.column, "message": mistake.message, "is_warning": mistake.is_warning}
        for mistake in (*read.mistakes, *read.warnings)
    ]
    return told({"jobs": [file_job.job.name for file_job in read.jobs], "mistakes": mistakes})


@routes.operation("/api/apply", models.PreviewData, role=Role.ADMIN)
async def apply_document(body: bodies.ApplyBody, tick: Tick) -> Response:
    """Store a document of jobs, or several job files, each job as a new version where it says anything new.

    All of it is stored, or nothing. With `dry_run` nothing is changed, and the answer says which runs to come would be
    added, removed and kept; its `plan` lets a later request store exactly that. `refusals` names jobs of other owners.
    """
    owner = _owner(body.owner)
    jobs = jobs_of(tick, await to_thread(_read, body, owner))
    if body.dry_run:
        return told(preview_data(await tick.preview_files(jobs, owner=owner, prune=body.prune, policy=body.policy)))
    changes = await tick.apply_files(
        jobs, owner=owner, prune=body.prune, policy=body.policy, plan=body.plan, confirmed=body.confirm
    )
    return told(preview_data(Preview(tuple(changes), {}, body.plan or "")))


def _read(body: bodies.ApplyBody, owner: str) -> list[JobFile]:
    """Read the document or the files. A thousand files take a while, so this runs in a thread."""
    if body.files is None:
        return [read_document(_text(body), owner)]
    return read_texts(body.files, body.beside, owner=owner)


def _owner(given: str) -> str:
    """Return the owner of the jobs. Code and proposals own theirs alone."""
    if given.startswith("code:") or given in ("proposals", "notices"):
        raise Problem(422, "invalid_owner", f"'{given}' owns what everytick itself stores: give another owner")
    return given
