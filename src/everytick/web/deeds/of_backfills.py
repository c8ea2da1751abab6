"""Deeds about past instants that run after all: plan a backfill, then approve, pause, resume or cancel it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from everytick.access.people import Role
from everytick.domain.backfills import FASTEST_RATE, RATE, BackfillStatus
from everytick.web.deeds.deed import (
    AskedField,
    DeedAnswers,
    Doing,
    Done,
    PageDeed,
    Prospect,
    choice_field,
    moment_field,
    number_field,
    reason_field,
    tick_field,
)
from everytick.web.deeds.trails import moments_said
from everytick.web.pictures.trail import TrailStep
from everytick.web.words import count, length, usually

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everytick.domain.backfills import BackfillRecord

_OVERLAPS = (("queue", "queue: one after another"), ("allow", "allow: beside each other"))
_AS_OF = (("then", "then: the definition of their time"), ("now", "now: the newest definition"))
_BEGIN = (("now", "at once"), ("later", "once it is approved"))


async def _fields(doing: Doing) -> Sequence[AskedField]:
    return (
        moment_field(doing, "after", "After", is_required=True),
        moment_field(doing, "through", "Through", is_required=True),
        tick_field("again", "Again", "also those that have an occurrence"),
        choice_field("as_of", "Named by", _AS_OF, default="then"),
        number_field("rate", "Starts a minute", f"left empty: {RATE}", most=FASTEST_RATE),
        choice_field("overlap", "If the job is busy", _OVERLAPS, "left empty: as the job says", as_list=True),
        tick_field("newest_first", "Newest first"),
        choice_field("begin", "It begins", _BEGIN, default="now"),
        reason_field("kept with the backfill and in the audit"),
    )


def _asked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `backfill` that the form has."""
    return {
        "again": bool(values.get("again")),
        "as_of": values.get("as_of") or "then",
        "rate": values.get("rate") or RATE,
        "overlap": values.get("overlap"),
        "newest_first": bool(values.get("newest_first")),
    }


async def _foresee(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    sub = "Past instants of the schedule that have no occurrence run after all."
    if not values.get("after") or not values.get("through"):
        return Prospect(
            [TrailStep("planned", "Say which time is to be filled", "the dry run counts its instants")], sub
        )
    asked: Any = doing.tick.backfill
    found = await asked(doing.name, values["after"], values["through"], dry_run=True, **_asked(values))
    if not found.instants:
        return Prospect([TrailStep("completed", "Nothing is missing", "every instant has an occurrence")], sub)
    return Prospect(await _steps(doing, found.instants, found.more, int(_asked(values)["rate"])), sub)


async def _steps(doing: Doing, instants: Sequence[datetime], more: bool, rate: int) -> list[TrailStep]:
    total = f"{count(len(instants), 'instant')}{' or more' if more else ''}"
    steps = [TrailStep("planned", f"{total} {'runs' if len(instants) == 1 else 'run'}", _ends(doing, instants))]
    needed = timedelta(minutes=len(instants) / rate)
    steps.append(
        TrailStep("queued", f"At most {count(rate, 'start')} a minute", f"so it takes at least {length(needed)}")
    )
    usual = (await doing.tick.lengths([doing.name])).get(doing.name)
    if usual is not None:
        whole = length(usual.p50 * len(instants))
        steps.append(TrailStep("planned", f"About {whole} one after another", usually(usual.p50, usual.p95)))
    steps.append(TrailStep("completed", "The schedule goes first", "a backfill takes places that are free"))
    if len(instants) > doing.tick.confirm_above or more:
        steps.append(TrailStep("promise", "It is asked again", f"it is more than {doing.tick.confirm_above:,} runs"))
    return steps


def _ends(doing: Doing, instants: Sequence[datetime]) -> str:
    if len(instants) <= 5:
        return moments_said(doing.viewer, instants)
    return f"from {doing.viewer.when(instants[0])} to {doing.viewer.when(instants[-1])}"


async def _plan(doing: Doing, said: DeedAnswers) -> Done:
    is_later = said.text("begin") == "later"
    asked: Any = doing.tick.backfill
    made = await asked(
        doing.name,
        said.text("after"),
        said.text("through"),
        approve=not is_later,
        confirmed=said.is_confirmed,
        reason=said.text("reason"),
        key=f"page:{said.key}" if said.key else None,
        **_asked(said.values),
    )
    if made.id is None:
        return Done(f"Nothing of {doing.name} is missing there: nothing is planned.", doing.name, tone="look")
    total = f"{count(len(made.instants), 'instant')}{' or more' if made.more else ''}"
    state = "is planned: approve it to let it run" if is_later else "runs"
    undo = doing.link("/backfills/{}/do/cancel", made.id)
    return Done(f"The backfill of {doing.name}, {total}, {state}.", doing.name, undo=undo)


# ------------------------------------------------------------------------------------------------------- one backfill


def _standing(doing: Doing) -> list[TrailStep]:
    record: BackfillRecord = doing.found
    when = f"{doing.viewer.when(record.order.after)} to {doing.viewer.when(record.order.through)}"
    done = f"{record.done:,} done, {record.failed:,} failed, {record.running:,} running, {record.waiting:,} waiting"
    planned = "" if record.order.count is None else f"; {count(record.order.count, 'instant')} when it was planned"
    steps = [TrailStep("planned", f"Planned by {record.order.by}", f"{when}{planned}")]
    return [*steps, TrailStep("completed", f"It is {record.status}", done)]


async def _foresee_approve(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    record: BackfillRecord = doing.found
    if record.status not in (BackfillStatus.PLANNED, BackfillStatus.PAUSED):
        return Prospect(refusal=f"It is {record.status}.")
    next_ = TrailStep("running", "It runs from now on", f"at most {count(record.order.rate, 'start')} a minute")
    return Prospect([*_standing(doing), next_])


async def _foresee_pause(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    if doing.found.status is not BackfillStatus.RUNNING:
        return Prospect(refusal=f"It is {doing.found.status}.")
    return Prospect(
        [*_standing(doing), TrailStep("paused", "It makes no further occurrences", "those it has made run")]
    )


async def _foresee_cancel(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    if doing.found.is_over or doing.found.status is BackfillStatus.FILLED:
        return Prospect(refusal=f"It is {doing.found.status}.")
    last = TrailStep("canceled", "What no node has claimed is canceled", "what runs is left to end")
    return Prospect([*_standing(doing), last])


async def _approve(doing: Doing, _: DeedAnswers) -> Done:
    await (await doing.tick.find_backfill(doing.subject)).approve()
    return Done(f"The backfill of {doing.found.job} runs.", doing.found.job, undo=_steer(doing, "pause"))


async def _pause(doing: Doing, _: DeedAnswers) -> Done:
    await (await doing.tick.find_backfill(doing.subject)).pause()
    return Done(f"Paused the backfill of {doing.found.job}.", doing.found.job, undo=_steer(doing, "resume"))


async def _resume(doing: Doing, _: DeedAnswers) -> Done:
    await (await doing.tick.find_backfill(doing.subject)).resume()
    return Done(f"The backfill of {doing.found.job} goes on.", doing.found.job, undo=_steer(doing, "pause"))


async def _cancel(doing: Doing, _: DeedAnswers) -> Done:
    await (await doing.tick.find_backfill(doing.subject)).cancel()
    return Done(f"Canceled the backfill of {doing.found.job}.", doing.found.job)


def _steer(doing: Doing, deed: str) -> str:
    return doing.link("/backfills/{}/do/{}", doing.subject, deed)


_OPERATOR = Role.OPERATOR

PLAN = PageDeed(
    "backfill",
    "Backfill",
    "Run past instants of {}?",
    "Backfill {}",
    _OPERATOR,
    _foresee,
    _plan,
    _fields,
    previews=True,
)
DEEDS = (
    PageDeed("approve", "Approve", "Let this backfill run?", "Approve it", _OPERATOR, _foresee_approve, _approve),
    PageDeed("pause", "Pause", "Pause this backfill?", "Pause it", _OPERATOR, _foresee_pause, _pause),
    PageDeed("resume", "Resume", "Let this backfill go on?", "Resume it", _OPERATOR, _foresee_approve, _resume),
    PageDeed(
        "cancel", "Cancel", "Cancel this backfill?", "Cancel it", _OPERATOR, _foresee_cancel, _cancel, is_danger=True
    ),
)
"""What people do to one backfill."""
