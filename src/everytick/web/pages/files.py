"""Files: which job files are valid, what is wrong in the others, and what their latest changes moved."""

from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from everytick.access.people import Role
from everytick.app import Everytick
from everytick.app.fleet import FilesKnown
from everytick.errors import NotFound
from everytick.sources.files import FileState
from everytick.stores.base import JobRecord
from everytick.web import words
from everytick.web.asking import Tick, Who, needs
from everytick.web.framing import viewer_of
from everytick.web.kept_pages import kept_for_a_moment
from everytick.web.known_jobs import known_jobs
from everytick.web.rendering import page

router = APIRouter(include_in_schema=False)

_MOST_FILES = 200
_MOST_BROKEN = 20
"""Broken files, and mistakes of one file, that are listed."""

_MOST_CHANGES = 10
_MOST_LINES = 400
_MOST_MOVED = 20
"""Moved runs of one change that are listed."""


@router.get("/files", dependencies=[needs(Role.VIEWER)])
@kept_for_a_moment
async def files(request: Request, tick: Tick, who: Who) -> HTMLResponse:
    """Show the job files. What they say is shown to those who may see payloads, since it may hold secrets."""
    known, viewer = await tick.job_files(), viewer_of(request)
    broken = [file for file in known.files if file.mistakes]
    jobs = await known_jobs(request).records()
    owned = [record for record in jobs if record.job.owner in ("file", tick.jobs_owner)]
    may_read = who.sees_payloads()
    return await page(
        request,
        "files.html",
        viewer=viewer,
        known=known,
        said=_said(known, len(owned)),
        broken=[_broken(file, known.folder, may_read) for file in broken[:_MOST_BROKEN]],
        files=[_listed(file, known.folder) for file in known.files[:_MOST_FILES]],
        more=len(known.files) - _MOST_FILES,
        owned=len(owned),
        changes=[await _changed(tick, record) for record in _latest(owned)] if may_read else [],
        may_read=may_read,
        most_moved=_MOST_MOVED,
    )


def _said(known: FilesKnown, owned: int) -> str:
    """Return the heading: whether all files are valid."""
    broken = sum(bool(file.mistakes) for file in known.files) + len(known.reported)
    if not known.files and not known.reported:
        come = "comes from a file" if owned < 2 else "come from files"
        return words.sentence(f"{words.spelled(owned, 'job')} {come}; no folder is watched here")
    whole = max(len(known.files), broken)
    if not broken:
        return words.sentence(f"all {words.count(whole, 'file')} valid" if whole > 1 else "the one file is valid")
    own = [file.jobs for file in known.files if file.mistakes]
    is_kept = all(own) and all(file.jobs for file in known.reported)
    after = "; its last good version runs" if is_kept and broken == 1 else "; last good versions run" if is_kept else ""
    of = f" of {whole}" if broken != whole else ""
    return words.sentence(f"{words.spelled(broken, 'file')}{of} {'is' if broken == 1 else 'are'} broken{after}")


def _name(path: Path, folder: Path | None) -> str:
    """Return the path as people know it: below the folder that is watched."""
    return str(path.relative_to(folder)) if folder is not None and path.is_relative_to(folder) else str(path)


def _listed(state: FileState, folder: Path | None) -> dict[str, Any]:
    return {
        "name": _name(state.path, folder),
        "mistakes": len(state.mistakes),
        "warnings": [f"{warning.line}:{warning.column} {warning.message}" for warning in state.warnings[:3]],
        "jobs": [file_job.job.name for file_job in state.jobs],
        "changed_at": state.changed_at,
    }


def _broken(state: FileState, folder: Path | None, may_read: bool) -> dict[str, Any]:
    """Return a file with mistakes: each with its place and line, and how the file differs from its last good text."""
    lines = state.text.splitlines()
    return {
        "name": _name(state.path, folder),
        "mistakes": [
            {
                "place": f"{mistake.line}:{mistake.column}",
                "message": mistake.message,
                "line": _quoted(lines, mistake.line, mistake.column) if may_read else None,
            }
            for mistake in state.mistakes[:_MOST_BROKEN]
        ],
        "jobs": [file_job.job.name for file_job in state.jobs],
        "diff": two_columns(state.good, state.text) if may_read and state.good else [],
        "is_new": not state.good,
    }


def _quoted(lines: list[str], line: int, column: int) -> dict[str, Any] | None:
    """Return the line of a mistake in three parts: before it, the character at it, after it."""
    if not 1 <= line <= len(lines):
        return None
    text = lines[line - 1][:200]
    at = min(max(column - 1, 0), len(text))
    return {"number": line, "before": text[:at], "at": text[at : at + 1] or " ", "after": text[at + 1 :]}


def two_columns(old: str, new: str) -> list[tuple[str, str, str, str, str]]:
    """Return two texts side by side: kind, line number and line of the old, and the same of the new.

    Lines that are the same are left out but for two before and after a change.
    """
    left, right = old.splitlines()[:_MOST_LINES], new.splitlines()[:_MOST_LINES]
    rows: list[tuple[str, str, str, str, str]] = []
    for group in SequenceMatcher(None, left, right, autojunk=False).get_grouped_opcodes(2):
        for tag, a, b, c, d in group:
            for place in range(max(b - a, d - c)):
                old_at, new_at = a + place, c + place
                was = (str(old_at + 1), left[old_at]) if old_at < b else ("", "")
                now = (str(new_at + 1), right[new_at]) if new_at < d else ("", "")
                rows.append(("same" if tag == "equal" else "diff", *was, *now))
    return rows


def _latest(owned: list[JobRecord]) -> list[JobRecord]:
    """Return the jobs of files that were edited last."""
    edited = [record for record in owned if record.job.version > 1 and record.job.updated_at is not None]
    return sorted(edited, key=lambda record: str(record.job.updated_at), reverse=True)[:_MOST_CHANGES]


async def _changed(tick: Everytick, record: JobRecord) -> dict[str, Any]:
    """Return what the newest version of a job changed, and the runs that it moves."""
    job = record.job
    try:
        found = await tick.compare(job.name, job.version - 1, job.version)
    except NotFound:
        return {"job": job, "changes": (), "moved": (), "added": 0, "removed": 0}
    moved = found.runs.moved
    return {
        "job": job,
        "changes": found.changes,
        "moved": moved,
        "added": len(found.runs.added) - len(moved),
        "removed": len(found.runs.removed) - len(moved),
    }
