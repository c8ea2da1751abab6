"""Deeds on a job that leave its definition as it is: trigger, pause, resume, and single runs of its schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytick.access.people import Role
from everytick.domain.policies import Overlap
from everytick.web.deeds.deed import (
    AskedField,
    DeedAnswers,
    Doing,
    Done,
    PageDeed,
    Prospect,
    choice_field,
    moment_field,
    reason_field,
    stamp,
    text_field,
)
from everytick.web.deeds.trails import length_said, moments_said, next_step, run_steps, start_steps
from everytick.web.forms import moment
from everytick.web.pictures.trail import TrailStep
from everytick.web.words import count, day_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COMING = 20
"""How many of the runs to come are offered for a skip or a move."""

MISSED = (
    ("skip", "skip: they do not run"),
    ("catch_up", "catch_up: recovery gets all of them"),
    ("last", "last: recovery gets the newest"),
)
OVERLAPS = tuple(
    (str(overlap), said)
    for overlap, said in (
        (Overlap.QUEUE, "queue: wait in line"),
        (Overlap.QUEUE_LATEST, "queue_latest: wait, in place of others in line"),
        (Overlap.SKIP, "skip: do nothing"),
        (Overlap.ALLOW, "allow: run beside the others"),
        (Overlap.CANCEL_RUNNING, "cancel_running: end what runs first"),
    )
)

# ------------------------------------------------------------------------------------------------------------- trigger


async def _trigger_fields(doing: Doing) -> Sequence[AskedField]:
    own = doing.job.job.settings.overlap
    usual = "allow" if own is Overlap.ALLOW else "queue"
    return (
        moment_field(doing, "at", "Not before", "left empty: at once"),
        choice_field("overlap", "If it is busy", OVERLAPS, f"left empty: {usual}", as_list=True),
        reason_field("kept with the occurrence and in the audit"),
        text_field("once", "Request key", "the same key again is the same occurrence"),
    )


async def _foresee_trigger(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    viewer, job = doing.viewer, doing.job.job
    if not job.enabled:
        return Prospect(refusal=f"{job.name} is disabled and takes no requests. Enable it first.")
    at = values.get("at")
    when = f"An occurrence at {viewer.when(_moment(at))}" if at else "An occurrence at once"
    steps = [TrailStep("planned", when, f"cause trigger, by {doing.who.name}")]
    if doing.job.pause is not None:
        steps.append(TrailStep("paused", "The job is paused", "that holds its schedule, not what is asked for"))
    steps += await start_steps(doing, values.get("overlap"), is_later=bool(at))
    coming = (await doing.tick.status(job.name)).next_run
    if coming is None:
        return Prospect(steps, "The schedule does not move: it names no run to come.")
    day = day_of(viewer.local(coming).date(), viewer.local(viewer.now).year)
    return Prospect(steps, f"The schedule does not move: it still runs on {day}, {viewer.clock(coming)}.")


async def _trigger(doing: Doing, said: DeedAnswers) -> Done:
    from everytick.domain.config import UNSET

    asked: Any = doing.tick.trigger
    handle = await asked(
        doing.name,
        dict(said.payload) or UNSET,
        at=said.values.get("at"),
        key=said.text("once") or (f"page:{said.key}" if said.key else None),
        overlap=said.values.get("overlap"),
        reason=said.text("reason"),
    )
    return Done(f"Triggered {doing.name}. It is occurrence {handle.id}.", doing.name)


# ---------------------------------------------------------------------------------------------------- pause and resume


async def _pause_fields(doing: Doing) -> Sequence[AskedField]:
    return (
        moment_field(doing, "until", "Until", "left empty: until you resume it"),
        choice_field("missed", "Instants meanwhile", MISSED, default="skip"),
        reason_field("shown on the job and kept in the audit"),
    )


async def _foresee_pause(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    viewer, until = doing.viewer, values.get("until")
    found = await doing.tick.preview_pause(doing.name, until=until)
    steps = []
    if doing.job.pause is not None:
        evidence = f"since {viewer.when(doing.job.pause.since)}; {doing.job.pause.detail}".rstrip("; ")
        steps.append(TrailStep("paused", "It is paused already", f"{evidence}; this takes its place"))
    steps.append(TrailStep("paused", "The schedule is held from now on", "what runs goes on; triggers still run"))
    fate = {"catch_up": "is held for recovery", "last": "is held for recovery"}.get(
        str(values.get("missed")), "is skipped"
    )
    steps += run_steps(viewer, found.runs, gone=fate)
    steps.append(next_step(viewer, found.runs.kept, "until you resume it"))
    return Prospect(steps, _held_sub(doing, until))


def _held_sub(doing: Doing, until: object) -> str:
    if until:
        return f"It goes on by itself at {doing.viewer.when(_moment(until))}."
    return "It stays so until you resume it."


async def _pause(doing: Doing, said: DeedAnswers) -> Done:
    missed: Any = said.text("missed") or "skip"
    until = said.values.get("until")
    await doing.tick.pause(doing.name, until=until, reason=said.text("reason"), missed=missed)
    fate = "are skipped" if missed == "skip" else "wait"
    end = f"until {doing.viewer.when(_moment(until))}" if until else "until you resume it"
    undo = doing.deed("resume", missed="catch_up")
    return Done(f"Paused {doing.name}. Its instants {fate} {end}.", doing.name, undo=undo)


async def _resume_fields(doing: Doing) -> Sequence[AskedField]:
    pause = doing.job.pause
    default = None if pause is None else str(pause.missed)
    return (choice_field("missed", "Instants that were held", MISSED, default=default),)


async def _foresee_resume(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    pause, viewer = doing.job.pause, doing.viewer
    if pause is None:
        return Prospect(refusal=f"{doing.name} is not paused.")
    missed: Any = values.get("missed")
    found = await doing.tick.preview_resume(doing.name, missed=missed)
    held = f"{length_said(doing, pause.since)} long; {pause.detail}".rstrip("; ")
    steps = [TrailStep("paused", f"It has been paused since {viewer.when(pause.since)}", held)]
    if found.caught_up:
        fact = f"{count(found.caught_up, 'run')} {'is' if found.caught_up == 1 else 'are'} caught up at once"
        steps.append(TrailStep("late", fact, f"recovery {doing.job.job.settings.recovery.strategy}"))
    else:
        steps.append(TrailStep("skipped", "Nothing is caught up", f"missed: {missed or pause.missed}"))
    steps.append(next_step(viewer, (*found.runs.kept, *found.runs.added)))
    return Prospect(steps, "Its schedule goes on from now.")


async def _resume(doing: Doing, said: DeedAnswers) -> Done:
    missed: Any = said.values.get("missed")
    changed = await doing.tick.resume(doing.name, missed=missed, confirmed=said.is_confirmed)
    text = f"Resumed {doing.name}." if changed else f"{doing.name} was not paused: nothing has changed."
    return Done(text, doing.name)


# --------------------------------------------------------------------------------------------------- one run to come


async def _coming_field(doing: Doing, note: str = "") -> AskedField:
    """Return the question which of the runs to come is meant. One that the address names is among them."""
    runs = await doing.tick.upcoming(doing.name, _COMING)
    words = [
        (stamp(run.at), f"{doing.viewer.full(run.at)}{f', {run.mark}' if run.mark else ''}")
        for run in runs
        if not run.is_asked_for
    ]
    return choice_field("at", "Run", [*_named(doing, words), *words], note, is_required=True, as_list=True)


def _named(doing: Doing, words: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the moment that the address or the form names, if it is one and not among those that are offered."""
    typed = doing.typed.get("at", "")
    if not typed or typed in dict(words):
        return []
    try:
        return [(typed, doing.viewer.full(moment(typed, doing.viewer.info)))]
    except ValueError:
        return []


async def _skip_fields(doing: Doing) -> Sequence[AskedField]:
    return (await _coming_field(doing), reason_field())


async def _foresee_skip(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    if not values.get("at"):
        return Prospect(await _no_run_yet(doing), "One instant of the schedule does not run.")
    found = await doing.tick.preview_skip(doing.name, values["at"])
    steps = run_steps(doing.viewer, found.runs, gone="is skipped")
    steps.append(next_step(doing.viewer, found.runs.kept))
    return Prospect(steps, "One instant of the schedule does not run. All others stay.")


async def _no_run_yet(doing: Doing) -> list[TrailStep]:
    coming = await doing.tick.next_runs(doing.name, 5)
    if not coming:
        return [TrailStep("missed", "No run is to come", "the schedule is over, or the job is paused or disabled")]
    return [TrailStep("planned", "Choose one of the runs to come", moments_said(doing.viewer, coming))]


async def _skip(doing: Doing, said: DeedAnswers) -> Done:
    at = said.text("at")
    await doing.tick.skip(doing.name, at, reason=said.text("reason"))
    when = doing.viewer.when(_moment(at))
    return Done(f"Skipped {when} of {doing.name}.", doing.name, undo=doing.deed("undo", at=at))


async def _move_fields(doing: Doing) -> Sequence[AskedField]:
    to = moment_field(doing, "to", "To", is_required=True)
    return (await _coming_field(doing), to, reason_field())


async def _foresee_move(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    sub = "One instant runs at another time. It keeps its id, and all others stay."
    if not values.get("at") or not values.get("to"):
        return Prospect(await _no_run_yet(doing), sub)
    found = await doing.tick.preview_move(doing.name, values["at"], values["to"])
    steps = run_steps(doing.viewer, found.runs, gone="is skipped")
    return Prospect([*steps, next_step(doing.viewer, (*found.runs.kept, *found.runs.added))], sub)


async def _move(doing: Doing, said: DeedAnswers) -> Done:
    at, to = said.text("at"), said.text("to")
    await doing.tick.move(doing.name, at, to, reason=said.text("reason"))
    text = f"Moved {doing.viewer.when(_moment(at))} of {doing.name} to {doing.viewer.when(_moment(to))}."
    return Done(text, doing.name, undo=doing.deed("undo", at=at))


async def _amend_fields(doing: Doing) -> Sequence[AskedField]:
    return (await _coming_field(doing), reason_field())


async def _foresee_amend(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    steps = await _no_run_yet(doing)
    if values.get("at"):
        when = doing.viewer.when(_moment(values["at"]))
        steps = [TrailStep("planned", f"{when} runs with this payload", "all others run with the job's own")]
    return Prospect(steps, "One instant runs with a payload of its own. All others stay.")


async def _amend(doing: Doing, said: DeedAnswers) -> Done:
    at, payload = said.text("at"), dict(said.payload)
    await doing.tick.amend(doing.name, at, reason=said.text("reason"), payload=payload or None)
    when = doing.viewer.when(_moment(at))
    return Done(f"Amended {when} of {doing.name}.", doing.name, undo=doing.deed("undo", at=at))


async def _add_fields(doing: Doing) -> Sequence[AskedField]:
    return (
        moment_field(doing, "at", "At", is_required=True),
        choice_field("overlap", "If it is busy", OVERLAPS, "left empty: queue", as_list=True),
        reason_field(),
    )


async def _foresee_add(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    if not doing.job.job.enabled:
        return Prospect(refusal=f"{doing.name} is disabled and takes no requests. Enable it first.")
    sub = "One run more, at a time that the schedule does not name."
    steps = [TrailStep("planned", "One run is added", "it waits in the store until its time")]
    if values.get("at"):
        steps = [TrailStep("planned", f"One run at {doing.viewer.when(_moment(values['at']))}", "cause trigger")]
    return Prospect([*steps, next_step(doing.viewer, await doing.tick.next_runs(doing.name, 1))], sub)


async def _add(doing: Doing, said: DeedAnswers) -> Done:
    from everytick.domain.config import UNSET

    at, asked = said.text("at"), doing.tick.add
    overlap: Any = said.values.get("overlap")
    await asked(doing.name, at, dict(said.payload) or UNSET, overlap=overlap, reason=said.text("reason"))
    when = doing.viewer.when(_moment(at))
    return Done(f"Added a run of {doing.name} at {when}.", doing.name, undo=doing.deed("undo", at=at))


async def _undo_fields(doing: Doing) -> Sequence[AskedField]:
    runs = await doing.tick.upcoming(doing.name, 100, skipped=True)
    words = [
        (stamp(run.at), f"{doing.viewer.full(run.at)}, {run.mark or 'added'}")
        for run in runs
        if run.mark or run.is_asked_for
    ]
    field = choice_field("at", "Run", [*_named(doing, words), *words], is_required=True, as_list=True)
    return (field, reason_field())


async def _foresee_undo(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    sub = "What was said of one run to come is taken back: it runs as the schedule says."
    if not values.get("at"):
        known = [run for run in await doing.tick.upcoming(doing.name, 100, skipped=True) if run.mark or run.id]
        refusal = "" if known else f"Nothing was said of a run of {doing.name} to come."
        return Prospect([TrailStep("planned", "Choose what to undo")], sub, refusal)
    found = await doing.tick.preview_undo(doing.name, values["at"])
    steps = run_steps(doing.viewer, found.runs, more="runs again")
    return Prospect([*steps, next_step(doing.viewer, (*found.runs.kept, *found.runs.added))], sub)


async def _undo(doing: Doing, said: DeedAnswers) -> Done:
    at = said.text("at")
    undone = await doing.tick.undo(doing.name, at, reason=said.text("reason"))
    when = doing.viewer.when(_moment(at))
    return Done(f"Undone for {when} of {doing.name}: {' and '.join(undone)}.", doing.name)


async def _reschedule_fields(doing: Doing) -> Sequence[AskedField]:
    return (moment_field(doing, "at", "Next run", is_required=True),)


async def _foresee_reschedule(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    sub = "The instants before it give way, those after it stay."
    if not values.get("at"):
        return Prospect([next_step(doing.viewer, await doing.tick.next_runs(doing.name, 1))], sub)
    found = await doing.tick.preview_reschedule(doing.name, values["at"])
    steps = run_steps(doing.viewer, found.runs)
    return Prospect([*steps, next_step(doing.viewer, (*found.runs.kept, *found.runs.added))], sub)


async def _reschedule(doing: Doing, said: DeedAnswers) -> Done:
    at = said.text("at")
    await doing.tick.reschedule(doing.name, at)
    when = doing.viewer.when(_moment(at))
    return Done(f"The next run of {doing.name} is at {when}.", doing.name, undo=doing.deed("undo", at=at))


# -------------------------------------------------------------------------------------------------------------- rewind


async def _foresee_rewind(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    through = doing.job.watermark
    if through <= doing.viewer.now:
        return Prospect(refusal=f"{doing.name} was not decided ahead: nothing is to be set right.")
    fact = f"It is decided through {doing.viewer.when(through)}, and fires nothing until then"
    return Prospect(
        [
            TrailStep("late", fact, "a clock was ahead when it was planned"),
            TrailStep("planned", "It goes on from now", "what was recorded as not run is decided anew"),
            TrailStep("superseded", "What was skipped or moved in that time is forgotten", "what has run stays so"),
        ],
        "It sets right what a wrong clock has decided.",
    )


async def _rewind(doing: Doing, _: DeedAnswers) -> Done:
    await doing.tick.rewind(doing.name)
    return Done(f"{doing.name} goes on from now.", doing.name)


def _moment(given: object) -> Any:
    """Return the moment of a text that a form has read, or that an address names."""
    from datetime import datetime

    return datetime.fromisoformat(str(given))


_OPERATOR = Role.OPERATOR

DEEDS = (
    PageDeed(
        "trigger",
        "Trigger",
        "Trigger {} now?",
        "Trigger {}",
        _OPERATOR,
        _foresee_trigger,
        _trigger,
        _trigger_fields,
        has_payload=True,
        previews=True,
    ),
    PageDeed(
        "pause", "Pause", "Pause {}?", "Pause {}", _OPERATOR, _foresee_pause, _pause, _pause_fields, previews=True
    ),
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
    PageDeed(
        "skip",
        "Skip",
        "Skip one run of {}?",
        "Skip this run",
        _OPERATOR,
        _foresee_skip,
        _skip,
        _skip_fields,
        previews=True,
    ),
    PageDeed(
        "move",
        "Move",
        "Move one run of {}?",
        "Move this run",
        _OPERATOR,
        _foresee_move,
        _move,
        _move_fields,
        previews=True,
    ),
    PageDeed(
        "amend",
        "Amend",
        "Run {} once with another payload?",
        "Amend this run",
        _OPERATOR,
        _foresee_amend,
        _amend,
        _amend_fields,
        has_payload=True,
    ),
    PageDeed(
        "add", "Add", "Add a run of {}?", "Add this run", _OPERATOR, _foresee_add, _add, _add_fields, has_payload=True
    ),
    PageDeed(
        "undo", "Undo", "Undo what was said of a run of {}?", "Undo it", _OPERATOR, _foresee_undo, _undo, _undo_fields
    ),
    PageDeed(
        "reschedule",
        "Reschedule",
        "Set the next run of {}?",
        "Set the next run",
        _OPERATOR,
        _foresee_reschedule,
        _reschedule,
        _reschedule_fields,
        previews=True,
    ),
    PageDeed("rewind", "Rewind", "Let {} go on now?", "Let it go on", _OPERATOR, _foresee_rewind, _rewind),
)
"""Everything that an operator asks of one job."""
