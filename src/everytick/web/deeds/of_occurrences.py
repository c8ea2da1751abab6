"""Deeds on one occurrence: cancel it, or do again what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytick.access.people import Role
from everytick.domain.statuses import ENDED, FAILURES, OccurrenceStatus
from everytick.web.deeds.deed import (
    AskedField,
    DeedAnswers,
    Doing,
    Done,
    PageDeed,
    Prospect,
    choice_field,
    reason_field,
)
from everytick.web.deeds.of_jobs import OVERLAPS
from everytick.web.deeds.trails import length_said, start_steps
from everytick.web.pictures.trail import TrailStep

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everytick.stores.base import Whole


async def _cancel_fields(_: Doing) -> Sequence[AskedField]:
    return (reason_field("kept with the occurrence and in the audit"),)


async def _foresee_cancel(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    found = doing.found.occurrence
    if found.status in ENDED:
        return Prospect(refusal=f"It is {found.status}: there is nothing to cancel.")
    if found.owner is None:
        steps = [TrailStep("canceled", "It never runs", f"no node has claimed it; it is {found.status}")]
    else:
        began = "" if found.started_at is None else f", {length_said(doing, found.started_at)} long so far"
        grace = doing.job.job.settings.failure
        steps = [
            TrailStep("running", f"It runs on {found.owner}", f"since {_when(doing, found.started_at)}{began}"),
            TrailStep("canceled", "Its node asks its tasks to stop", "those that do not listen end with their process"),
            TrailStep("skipped", "Its other tasks do not run", f"failure {grace}"),
        ]
    return Prospect(steps, "Other occurrences and the schedule stay.")


def _when(doing: Doing, moment: Any) -> str:
    return "–" if moment is None else doing.viewer.when(moment)


async def _cancel(doing: Doing, said: DeedAnswers) -> Done:
    was_active = await doing.tick.cancel(doing.subject, reason=said.text("reason"))
    when = doing.viewer.when(doing.found.occurrence.scheduled_for)
    text = f"Canceled {when} of {doing.name}." if was_active else f"{when} of {doing.name} had ended already."
    return Done(text, doing.name, tone="done" if was_active else "look")


async def _replay_fields(doing: Doing) -> Sequence[AskedField]:
    fields = [reason_field("kept with the occurrence and in the audit")]
    whole: Whole = doing.found
    if len(whole.runs) > 1:
        words = [(run.task, f"{run.task}: it was {run.status}") for run in whole.runs]
        note = "left empty: all tasks run again"
        fields.append(choice_field("from_task", "From task", words, note, as_list=True))
    return (*fields, choice_field("overlap", "If the job is busy", OVERLAPS, "left empty: queue", as_list=True))


async def _foresee_replay(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    whole: Whole = doing.found
    if not doing.job.job.enabled:
        return Prospect(refusal=f"{doing.name} is disabled and takes no requests. Enable it first.")
    if whole.occurrence.created_at is None:
        steps = [TrailStep("planned", "The instant runs for the first time", f"cause backfill, by {doing.who.name}")]
        steps += await start_steps(doing, values.get("overlap"))
        return Prospect(steps, f"It is {whole.occurrence.status}: it has not run.")
    if whole.occurrence.status not in ENDED:
        return Prospect(refusal=f"It is {whole.occurrence.status}: replay it once it has ended, or cancel it first.")
    sub = "A new occurrence does again what this one did, for the same instant. This one stays as it is."
    steps = _replayed(doing, whole, values.get("from_task"))
    return Prospect([*steps, *await start_steps(doing, values.get("overlap"))], sub)


def _replayed(doing: Doing, whole: Whole, from_task: str | None) -> list[TrailStep]:
    found, newest = whole.occurrence, doing.job.job.version
    version = (
        f"version {found.version}" if found.version == newest else f"version {newest}; it ran under {found.version}"
    )
    steps = [TrailStep("planned", f"A new occurrence for {doing.viewer.when(found.scheduled_for)}", version)]
    if found.status in FAILURES:
        steps.insert(0, TrailStep(str(found.status), f"It is {found.status}", (found.error or "").split("\n")[0][:200]))
    elif found.status is OccurrenceStatus.COMPLETED:
        steps.insert(0, TrailStep("completed", "It has completed", "what it did is done once more"))
    if from_task:
        steps.append(TrailStep("completed", f"Tasks before {from_task} keep their results", "they do not run again"))
    return steps


async def _replay(doing: Doing, said: DeedAnswers) -> Done:
    overlap: Any = said.values.get("overlap")
    handle = await doing.tick.replay(
        doing.subject,
        reason=said.text("reason"),
        from_task=said.text("from_task") or None,
        key=f"page:{said.key}" if said.key else None,
        overlap=overlap,
    )
    return Done(f"Asked for a replay of {doing.name}. It is occurrence {handle.id}.", doing.name)


DEEDS = (
    PageDeed(
        "cancel",
        "Cancel",
        "Cancel {}?",
        "Cancel it",
        Role.OPERATOR,
        _foresee_cancel,
        _cancel,
        _cancel_fields,
        is_danger=True,
    ),
    PageDeed(
        "replay",
        "Replay",
        "Replay {}?",
        "Replay it",
        Role.OPERATOR,
        _foresee_replay,
        _replay,
        _replay_fields,
        previews=True,
    ),
)
"""What people do to one occurrence."""
