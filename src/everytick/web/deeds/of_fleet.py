"""Deeds on many jobs by their reach: brakes and limits; and the answer of a second person to a proposal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from everytick.access.people import Role
from everytick.web.deeds.deed import (
    AskedField,
    DeedAnswers,
    Doing,
    Done,
    PageDeed,
    Prospect,
    moment_field,
    number_field,
    reason_field,
    text_field,
    tick_field,
)
from everytick.web.pictures.trail import TrailStep, localized
from everytick.web.words import count, listed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everytick.domain.limits import ReachRecord
    from everytick.domain.proposals import Proposal

_REACH = text_field("reach", "Of", "all, queue:NAME, tag:NAME or job:NAME", is_required=True, placeholder="all")


async def _reached(doing: Doing, values: Mapping[str, Any]) -> tuple[str, list[TrailStep]]:
    """Return the reach that was named, how many jobs it has, and what holds for it now."""
    from everytick.domain.limits import reach_name, reaches_of_job

    reach = reach_name(values.get("reach") or "all")
    jobs = [record.job for record in await doing.tick.jobs()]
    names = [job.name for job in jobs if reach in reaches_of_job(job.settings.tags, job.name, job.settings.queue)]
    fact = f"{reach} is {count(len(names), 'job')}"
    steps = [TrailStep("planned", fact, listed(names, 5) if len(names) < len(jobs) else "every job of the store")]
    found = [record for record in (await doing.tick.limits()).reaches if record.reach.name == reach]
    return reach, [*steps, *(step for record in found for step in _holding(doing, record))]


def _holding(doing: Doing, record: ReachRecord) -> list[TrailStep]:
    steps = []
    held = f"{record.running:,} run, {record.waiting:,} wait"
    if record.reach.limit is not None:
        limit = record.reach.limit
        steps.append(TrailStep("queued", f"Its limit is {limit}", f"by {limit.by}; {held}"))
    for brake in record.reach.brakes:
        until = "until it is released" if brake.until is None else f"until {doing.viewer.when(brake.until)}"
        said = f"by {brake.by}{f', {brake.reason}' if brake.reason else ''}; {held}"
        steps.append(TrailStep("brake", f"A brake from {doing.viewer.when(brake.since)} {until}", said))
    if record.closed:
        steps.append(TrailStep("late", "Nothing of it starts now", localized(record.closed, doing.viewer)))
    return steps


# -------------------------------------------------------------------------------------------------------------- brakes


async def _brake_fields(doing: Doing) -> Sequence[AskedField]:
    return (
        _REACH,
        moment_field(doing, "since", "From", "left empty: now"),
        moment_field(doing, "until", "Until", "left empty: until it is released"),
        reason_field("shown wherever something waits for it"),
    )


async def _foresee_brake(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    _, steps = await _reached(doing, values)
    steps.append(TrailStep("brake", "Nothing of it starts", "what runs goes on; instants wait as their jobs say"))
    return Prospect(steps, "A brake holds on all nodes of the store at once.")


async def _brake(doing: Doing, said: DeedAnswers) -> Done:
    reach, since, until = said.text("reach"), said.values.get("since"), said.values.get("until")
    await doing.tick.brake(reach, since=since, until=until, reason=said.text("reason"))
    return Done(f"The brake of {reach} holds.", reach, undo=doing.link("/do/release", reach=reach, at_once="true"))


async def _release_fields(_: Doing) -> Sequence[AskedField]:
    return (
        _REACH,
        text_field("rate", "Starts", "left empty: what waits starts within about ten minutes", placeholder="60/1m"),
        tick_field("at_once", "At once", "as fast as the nodes can"),
        reason_field(),
    )


async def _foresee_release(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    _, steps = await _reached(doing, values)
    rate = values.get("rate")
    speed = "as fast as the nodes can" if values.get("at_once") else f"at {rate}" if rate else "in about ten minutes"
    steps.append(TrailStep("running", "What has waited starts", f"by priority, then age, {speed}"))
    return Prospect(steps, "Brakes that hold end; where none holds, those that are to come are taken away.")


async def _release(doing: Doing, said: DeedAnswers) -> Done:
    reach, rate = said.text("reach"), said.values.get("rate")
    was_held = await doing.tick.release(
        reach, rate=rate, at_once=bool(said.values.get("at_once")), reason=said.text("reason")
    )
    if not was_held:
        return Done(f"No brake held {reach}: nothing has changed.", reach, tone="look")
    return Done(f"Released {reach}.", reach, undo=doing.link("/do/brake", reach=reach))


# -------------------------------------------------------------------------------------------------------------- limits


async def _limit_fields(doing: Doing) -> Sequence[AskedField]:
    """Return the questions, filled with the limit in force of the reach that the address names."""
    named = doing.typed.get("reach", "")
    reaches = (await doing.tick.limits()).reaches if named else ()
    limit = next((record.reach.limit for record in reaches if record.reach.name == named), None)
    most, rate = (None, None) if limit is None else (limit.most, limit.rate)
    per = "" if rate is None else str(replace(rate, burst=False))
    burst = rate is not None and rate.burst
    return (
        _REACH,
        number_field("most", "At most at once", "left empty: any number", default=most),
        text_field("rate", "At most so many starts", "left empty: any number", placeholder="60/1m", default=per),
        tick_field("burst", "All at once", "else the starts of a rate are spread over its time", default=burst),
        tick_field("lift", "Take the limit away", "then nothing else is read"),
        reason_field(),
    )


async def _foresee_limit(doing: Doing, values: Mapping[str, Any]) -> Prospect:
    from everytick.domain.limits import rate_of

    reach, steps = await _reached(doing, values)
    most, rate = values.get("most"), values.get("rate")
    if values.get("lift"):
        steps.append(TrailStep("completed", f"{reach} has no limit", "what waits for it starts"))
    elif most or rate:
        parts = [f"{most} at once"] if most else []
        parts += [str(rate_of(rate, burst=bool(values.get("burst"))))] if rate else []
        steps.append(TrailStep("queued", f"The limit is {', '.join(parts)}", "what runs counts, and goes on"))
    return Prospect(steps, "A limit holds on all nodes of the store together, from now on.")


async def _limit(doing: Doing, said: DeedAnswers) -> Done:
    from everytick.errors import InvalidLimit

    reach, most, rate = said.text("reach"), said.values.get("most"), said.values.get("rate")
    if said.values.get("lift"):
        was_there = await doing.tick.remove_limit(reach, reason=said.text("reason"))
        text = f"{reach} has no limit now." if was_there else f"{reach} had no limit: nothing has changed."
        return Done(text, reach, tone="done" if was_there else "look")
    if most is None and rate is None:
        raise InvalidLimit(reach, "gets no limit without a number: say how many at once, or how many starts")
    burst = bool(said.values.get("burst"))
    await doing.tick.set_limit(reach, most=most, rate=rate, burst_allowed=burst, reason=said.text("reason"))
    return Done(f"The limit of {reach} holds.", reach, undo=doing.link("/do/limit", reach=reach, lift="true"))


# ----------------------------------------------------------------------------------------------------------- proposals


def _proposed(doing: Doing) -> list[TrailStep]:
    proposal: Proposal = doing.found
    when = f"{doing.viewer.when(proposal.at)}; it can be approved until {doing.viewer.when(proposal.expires_at)}"
    return [TrailStep("queued", f"{proposal.by} proposed {proposal.what}", when)]


async def _foresee_approve(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    proposal: Proposal = doing.found
    if doing.who.name == proposal.by:
        return Prospect(_proposed(doing), refusal="You have proposed it: another person must approve it.")
    if doing.viewer.now >= proposal.expires_at:
        return Prospect(_proposed(doing), refusal="Its time is over: it must be proposed again.")
    jobs = listed(proposal.jobs, 5)
    steps = [TrailStep("completed", f"{count(len(proposal.edits), 'change')} at once, or none", f"of {jobs}")]
    return Prospect([*_proposed(doing), *steps], "It is carried out now, in both names.")


async def _approve(doing: Doing, _: DeedAnswers) -> Done:
    done = await doing.tick.approve(doing.subject)
    return Done(f"Approved: {done.what}.")


async def _foresee_reject(doing: Doing, _: Mapping[str, Any]) -> Prospect:
    return Prospect([*_proposed(doing), TrailStep("canceled", "It is dropped", "nothing else changes")])


async def _reject(doing: Doing, _: DeedAnswers) -> Done:
    done = await doing.tick.reject(doing.subject)
    return Done(f"Refused: {done.what}.")


_OPERATOR, _ADMIN = Role.OPERATOR, Role.ADMIN

DEEDS = (
    PageDeed(
        "brake",
        "Brake",
        "Let nothing start?",
        "Put the brake on",
        _OPERATOR,
        _foresee_brake,
        _brake,
        _brake_fields,
        is_danger=True,
        previews=True,
    ),
    PageDeed(
        "release",
        "Release",
        "Release the brake?",
        "Release it",
        _OPERATOR,
        _foresee_release,
        _release,
        _release_fields,
        previews=True,
    ),
    PageDeed(
        "limit",
        "Limit",
        "Limit how many run?",
        "Set the limit",
        _ADMIN,
        _foresee_limit,
        _limit,
        _limit_fields,
        previews=True,
    ),
)
"""What holds for many jobs."""

PROPOSALS = (
    PageDeed("approve", "Approve", "Carry out proposal {}?", "Approve it", _ADMIN, _foresee_approve, _approve),
    PageDeed("reject", "Refuse", "Refuse proposal {}?", "Refuse it", _OPERATOR, _foresee_reject, _reject),
)
"""What a second person answers."""
