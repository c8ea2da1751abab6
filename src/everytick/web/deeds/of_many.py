"""Deeds on many at once: pause and resume jobs, replay and cancel occurrences.

The page shows how many, the first ten, and carries the names in its form: what was shown is what is done. The page
behind it is the filter that shows the result.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from everytick.access.people import Role, tags_of
from everytick.app.store_access import open_store
from everytick.domain.statuses import ACTIVE, ENDED
from everytick.errors import EverytickError
from everytick.web.deeds.deed import (
    AskedField,
    Crumb,
    DeedAnswers,
    Doing,
    Done,
    PageDeed,
    Prospect,
    choice_field,
    moment_field,
    reason_field,
)
from everytick.web.deeds.of_jobs import MISSED
from everytick.web.history_list import HistoryWanted, matching
from everytick.web.job_list import JobFilter, job_list
from everytick.web.known_jobs import KnownJobs, read_jobs
from everytick.web.now_board import Board
from everytick.web.pictures.trail import TrailStep
from everytick.web.words import count, cut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from everytick.domain.occurrence import Occurrence
    from everytick.stores.base import JobRecord

MOST_ITEMS = 1_000
"""Most that one deed is about. What is more is done in several."""

_OPERATOR = Role.OPERATOR
_ITEMS_SHOWN = 10
_COUNTED = 100
"""Most jobs of which the runs are counted that a resume catches up: each is a question to the store."""


def _lines(text: str) -> list[str]:
    """Return the names of a field that carries many."""
    return list(dict.fromkeys(line for line in text.split("\n") if line))


def _may(doing: Doing, record: JobRecord) -> bool:
    """Whether the person may do this to the job: by the role, or by a grant."""
    return doing.who.may(_OPERATOR, tags_of(record.job.name, record.job.settings.tags))


async def _each(
    doing: Doing,
    names: Sequence[str],
    job_of: Callable[[str], Awaitable[JobRecord]],
    act: Callable[[str], Awaitable[object]],
) -> tuple[int, str]:
    """Do it to each, and return how many it was done to and why it was not done to the first of the others.

    The form says which they are, and a form can be changed: the grant is looked at for each.
    """
    done, refusal = 0, ""
    for name in names:
        try:
            if not _may(doing, await job_of(name)):
                refusal = refusal or f"{name}: {doing.who.name} is {doing.who.role} there, and this needs {_OPERATOR}"
                continue
            done += bool(await act(name))
        except EverytickError as error:
            refusal = refusal or f"{name}: {error}"
    return done, refusal


async def _job_of(doing: Doing, occurrence_id: str) -> JobRecord:
    return await doing.tick.job_of((await doing.tick.entry(occurrence_id)).occurrence.job_id)


def _told(done: int, asked: int, noun: str, did: str, refusal: str) -> tuple[str, str]:
    """Return what was done as a sentence, and the tone of its banner."""
    if done == asked:
        return f"{did} {count(done, noun)}.", "done"
    left = cut(refusal, 200) if refusal else "there was nothing to do for the others"
    return f"{did} {done:,} of {count(asked, noun)}; {left}", "look"


# ---------------------------------------------------------------------------------------------------------------- jobs


async def find_jobs(doing: Doing, _: str) -> None:
    """Look up the jobs that were chosen, else those of the filter."""
    chosen = _lines(doing.typed.get("job", ""))
    if chosen:
        listed = await read_jobs(await open_store(doing.tick))
        found = [listed.records[listed.ids[name]] for name in chosen if name in listed.ids]
    else:
        # What pages have kept may be some seconds old: a deed is about the jobs as they are now.
        fleet = await Board(doing.tick, KnownJobs(doing.tick, cheap=float("inf"))).fleet()
        wanted = JobFilter.read(doing.typed)
        found = [record for record, _ in (await job_list(doing.tick, fleet, wanted)).jobs]
    doing.found = [record for record in found if _may(doing, record)]
    doing.crumbs = (Crumb("Jobs", doing.link("/jobs", **JobFilter.read(doing.typed).query)),)


def _of_jobs(doing: Doing, meant: Sequence[JobRecord], steps: Sequence[TrailStep], sub: str, none: str) -> Prospect:
    if not meant:
        return Prospect(refusal=none)
    if len(meant) > MOST_ITEMS:
        return Prospect(
            refusal=f"{len(meant):,} jobs are more than {MOST_ITEMS:,} at once: filter them, or use a brake."
        )
    names = [record.job.name for record in meant]
    doing.title = count(len(names), "job")
    return Prospect(steps, sub, items=names[:_ITEMS_SHOWN], total=len(names), hidden={"job": "\n".join(names)})


async def _pause_fields(doing: Doing) -> Sequence[AskedField]:
    return (
        moment_field(doing, "until", "Until", "left empty: until you resume them"),
        choice_field("missed", "Instants meanwhile", MISSED, default="skip"),
        reason_field("shown on the jobs and kept in the audit"),
    )


async def _foresee_pause(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    meant = [record for record in doing.found if record.pause is None]
    steps = [TrailStep("paused", f"{count(len(meant), 'schedule')} held from now on", "what runs goes on")]
    if len(meant) < len(doing.found):
        left = count(len(doing.found) - len(meant), "job")
        steps.append(TrailStep("skipped", f"{left} left as they are", "they are paused already"))
    return _of_jobs(doing, meant, steps, "Triggers still run.", "All of them are paused already.")


async def _pause(doing: Doing, said: DeedAnswers) -> Done:
    missed: Any = said.text("missed") or "skip"
    names = _lines((said.hidden or {}).get("job", ""))[:MOST_ITEMS]

    async def act(name: str) -> bool:
        await doing.tick.pause(name, until=said.values.get("until"), missed=missed, reason=said.text("reason"))
        return True

    done, refusal = await _each(doing, names, doing.tick.job, act)
    text, tone = _told(done, len(names), "job", "Paused", refusal)
    undo = doing.link("/jobs/do/resume", state="paused")
    return Done(text, to=doing.link("/jobs", state="paused"), undo=undo, tone=tone)


async def _resume_fields(_: Doing) -> Sequence[AskedField]:
    return (choice_field("missed", "Instants that were held", MISSED, "left empty: as each pause says", as_list=True),)


async def _foresee_resume(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    meant = [record for record in doing.found if record.pause is not None]
    missed: Any = values.get("missed")
    caught_up = 0
    for record in meant[:_COUNTED]:
        caught_up += (await doing.tick.preview_resume(record.job.name, missed=missed)).caught_up
    of = "by recovery" if len(meant) <= _COUNTED else f"by recovery, of the first {_COUNTED} jobs; more of the others"
    steps = [
        TrailStep("planned", f"{count(len(meant), 'schedule')} from now on", "each by its own instants"),
        TrailStep("late" if caught_up else "skipped", f"{count(caught_up, 'run')} caught up at once", of),
    ]
    return _of_jobs(doing, meant, steps, "Their schedules go on from now.", "None of them is paused.")


async def _resume(doing: Doing, said: DeedAnswers) -> Done:
    missed: Any = said.values.get("missed")
    names = _lines((said.hidden or {}).get("job", ""))[:MOST_ITEMS]

    async def act(name: str) -> bool:
        return await doing.tick.resume(name, missed=missed, confirmed=said.is_confirmed)

    done, refusal = await _each(doing, names, doing.tick.job, act)
    text, tone = _told(done, len(names), "job", "Resumed", refusal)
    return Done(text, to=doing.link("/jobs"), tone=tone)


# --------------------------------------------------------------------------------------------------------- occurrences


async def find_occurrences(doing: Doing, _: str) -> None:
    """Look up the occurrences that were chosen, else those of the filter."""
    from everytick.errors import NotFound

    wanted = HistoryWanted.read(doing.typed, doing.viewer.now, doing.viewer.info)
    chosen = _lines(doing.typed.get("id", ""))[: MOST_ITEMS + 1]
    jobs = {record.job.id: record for record in await doing.tick.jobs(removed=True)} if doing.who.grants else {}
    may_all = doing.who.may(_OPERATOR)

    async def reachable(some: Sequence[Occurrence]) -> Sequence[Occurrence]:
        return [
            occurrence
            for occurrence in some
            if may_all or ((record := jobs.get(occurrence.job_id)) is not None and _may(doing, record))
        ]

    found: list[Occurrence] = []
    if chosen:
        for id_ in chosen:
            try:
                found.append((await doing.tick.occurrence(id_)).occurrence)
            except NotFound:
                continue
    else:
        meant = matching(doing.tick, wanted, MOST_ITEMS + 1, reachable)
        found = [occurrence async for occurrence in meant if occurrence.created_at is not None]
    doing.found = await reachable(found)
    doing.crumbs = (Crumb("History", doing.link("/history", **wanted.query)),)


async def _of_occurrences(
    doing: Doing, meant: Sequence[Occurrence], steps: Sequence[TrailStep], sub: str, none: str
) -> Prospect:
    if not meant:
        return Prospect(refusal=none)
    if len(meant) > MOST_ITEMS:
        return Prospect(refusal=f"More than {MOST_ITEMS:,} occurrences are meant: choose a shorter time.")
    names = {record.job.id: record.job.name for record in await doing.tick.jobs()}
    shown = [
        f"{doing.viewer.when(occurrence.scheduled_for)} {name}, {occurrence.status}"
        for occurrence in meant[:_ITEMS_SHOWN]
        for name in [names.get(occurrence.job_id, occurrence.job_id)]
    ]
    doing.title = count(len(meant), "occurrence")
    ids = "\n".join(occurrence.id for occurrence in meant)
    return Prospect(steps, sub, items=shown, total=len(meant), hidden={"id": ids})


async def _reason_fields(_: Doing) -> Sequence[AskedField]:
    return (reason_field("kept with each occurrence and in the audit"),)


async def _foresee_replay(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    meant = [occurrence for occurrence in doing.found if occurrence.status in ENDED]
    jobs = len({occurrence.job_id for occurrence in meant})
    steps = [
        TrailStep(
            "planned", f"{count(len(meant), 'new occurrence')}", f"of {count(jobs, 'job')}, for the same instants"
        ),
        TrailStep("queued", "Each waits in line of its job", "or overlaps where the job does"),
    ]
    sub = "The old ones stay as they are."
    return await _of_occurrences(doing, meant, steps, sub, "None of them has ended: there is nothing to replay.")


async def _replay(doing: Doing, said: DeedAnswers) -> Done:
    ids = _lines((said.hidden or {}).get("id", ""))[:MOST_ITEMS]

    async def act(id_: str) -> bool:
        await doing.tick.replay(id_, reason=said.text("reason"), key=f"page:{said.key}:{id_}" if said.key else None)
        return True

    done, refusal = await _each(doing, ids, partial(_job_of, doing), act)
    text, tone = _told(done, len(ids), "replay", "Asked for", refusal)
    return Done(text, to=doing.link("/history", cause="replay"), tone=tone)


async def _foresee_cancel(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    meant = [occurrence for occurrence in doing.found if occurrence.status in ACTIVE]
    running = sum(occurrence.owner is not None for occurrence in meant)
    steps = [
        TrailStep("canceled", f"{count(len(meant) - running, 'occurrence')} never run", "no node has claimed them"),
        TrailStep("running", f"{count(running, 'occurrence')} asked to stop", "their nodes end them"),
    ]
    return await _of_occurrences(doing, meant, steps, "", "All of them have ended: there is nothing to cancel.")


async def _cancel(doing: Doing, said: DeedAnswers) -> Done:
    ids = _lines((said.hidden or {}).get("id", ""))[:MOST_ITEMS]

    async def act(id_: str) -> bool:
        return await doing.tick.cancel(id_, reason=said.text("reason"))

    done, refusal = await _each(doing, ids, partial(_job_of, doing), act)
    text, tone = _told(done, len(ids), "occurrence", "Canceled", refusal)
    return Done(text, to=doing.link("/history", status="canceled"), tone=tone)


JOBS = (
    PageDeed("pause", "Pause", "Pause {}?", "Pause {}", _OPERATOR, _foresee_pause, _pause, _pause_fields),
    PageDeed(
        "resume",
        "Resume",
        "Resume {}?",
        "Resume {}",
        _OPERATOR,
        _foresee_resume,
        _resume,
        _resume_fields,
        previews=True,
    ),
)
"""What is done to many jobs."""

OCCURRENCES = (
    PageDeed("replay", "Replay", "Replay {}?", "Replay {}", _OPERATOR, _foresee_replay, _replay, _reason_fields),
    PageDeed(
        "cancel",
        "Cancel",
        "Cancel {}?",
        "Cancel {}",
        _OPERATOR,
        _foresee_cancel,
        _cancel,
        _reason_fields,
        is_danger=True,
    ),
)
"""What is done to many occurrences."""
