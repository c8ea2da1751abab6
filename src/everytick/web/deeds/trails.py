"""What will happen, said in steps: the runs to come that a deed adds or takes, and what stands in a run's way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.domain.policies import Overlap
from everytick.domain.statuses import OccurrenceStatus
from everytick.web.pictures.trail import TrailStep, localized
from everytick.web.words import count, length, listed, usually

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from everytick.app.previews import Revision
    from everytick.domain.occurrence import Occurrence
    from everytick.web.deeds.deed import Doing
    from everytick.web.words import Viewer

_SHOWN = 5
"""How many runs are named one by one."""

_LOOKED_AT = 100
"""Of the occurrences that are not over, so many of the newest are looked at."""

_IN_THE_WAY = {
    Overlap.ALLOW: ("queued", "It waits in line behind {}"),
    Overlap.QUEUE: ("queued", "It waits in line behind {}"),
    Overlap.QUEUE_LATEST: ("queued", "It waits behind {}, in place of others in line"),
    Overlap.SKIP: ("skipped", "It is skipped: {} is in the way"),
    Overlap.CANCEL_RUNNING: ("canceled", "{} is asked to stop first"),
}
_LATER = {
    Overlap.ALLOW: "it runs beside the others",
    Overlap.QUEUE: "it waits in line",
    Overlap.QUEUE_LATEST: "it waits, in place of others in line",
    Overlap.SKIP: "it is skipped",
    Overlap.CANCEL_RUNNING: "what runs is asked to stop first",
}

_BUSY = (
    OccurrenceStatus.RUNNING,
    OccurrenceStatus.AWAITING_RETRY,
    OccurrenceStatus.PENDING,
    OccurrenceStatus.QUEUED,
)


def moments_said(viewer: Viewer, moments: Sequence[datetime]) -> str:
    """Return moments as a list: `14:00, 15:00 and 7 more`."""
    return listed([viewer.when(at, seconds=bool(at.second)) for at in moments], _SHOWN)


def run_steps(viewer: Viewer, runs: Revision, *, gone: str = "gives way", more: str = "is new") -> list[TrailStep]:
    """Return what a change does to the runs to come. `gone` and `more` say it of one run."""
    moved = runs.moved
    left = {at for pair in moved for at in pair}
    removed, added = ([at for at in some if at not in left] for some in (runs.removed, runs.added))
    steps = []
    if moved:
        pairs = [f"{viewer.when(old)} → {viewer.when(new)}" for old, new in moved]
        steps.append(TrailStep("superseded", f"{count(len(moved), 'run')} moved", listed(pairs, 3)))
    if removed:
        fact = f"{count(len(removed), 'run')} {gone if len(removed) == 1 else _plural(gone)}"
        steps.append(TrailStep("skipped", fact, moments_said(viewer, removed)))
    if added:
        fact = f"{count(len(added), 'run')} {more if len(added) == 1 else _plural(more)}"
        steps.append(TrailStep("planned", fact, moments_said(viewer, added)))
    if runs.through is not None and (moved or removed or added):
        last = steps[-1]
        steps[-1] = TrailStep(last.mark, last.fact, f"{last.evidence}; compared through {viewer.when(runs.through)}")
    return steps


def _plural(verb: str) -> str:
    first, _, rest = verb.partition(" ")
    many = {"is": "are", "gives": "give", "falls": "fall", "runs": "run"}.get(first, first)
    return f"{many} {rest}".rstrip()


def next_step(viewer: Viewer, coming: Sequence[datetime], none: str = "nothing is to come") -> TrailStep:
    """Return the step that names the next run."""
    first = min(coming, default=None)
    if first is None:
        return TrailStep("skipped", "No next run", none)
    return TrailStep("planned", f"Next: {viewer.when(first)}", viewer.ago(first))


async def start_steps(doing: Doing, overlap: object = None, *, is_later: bool = False) -> list[TrailStep]:
    """Return what stands in the way of an occurrence that is asked for, and when it usually ends.

    `overlap` is the rule that was chosen for it. `is_later` says that it is asked for at a later time.
    """
    steps = [await _line_step(doing, overlap, is_later=is_later)]
    waits = (await doing.tick.status(doing.name)).waits
    if waits:
        steps.append(TrailStep("brake", "It waits for a brake or a limit", localized(waits, doing.viewer)))
    usual = (await doing.tick.lengths([doing.name])).get(doing.name)
    if usual is None:
        return steps
    done = doing.viewer.when(doing.viewer.now + usual.p50)
    said = usually(usual.p50, usual.p95)
    fact = f"Usually done by {done}" if len(steps) == 1 and steps[0].mark == "completed" else "It takes a while"
    return [*steps, TrailStep("planned", fact if usual.p50.total_seconds() else "It takes no time", said)]


async def _line_step(doing: Doing, overlap: object, *, is_later: bool) -> TrailStep:
    """Return what the occurrences of the job that are not over mean for one more, by the rule that holds for it."""
    own = doing.job.job.settings.overlap
    rule = Overlap(str(overlap)) if overlap else Overlap.ALLOW if own is Overlap.ALLOW else Overlap.QUEUE
    by = f"overlap {rule}" if overlap else f"overlap {rule}, which holds for what is asked for"
    if is_later:
        return TrailStep("queued", f"If the job is busy then, {_LATER[rule]}", by)
    found = await doing.tick.history(doing.name, status=[str(status) for status in _BUSY], limit=_LOOKED_AT)
    places = doing.job.job.settings.max_concurrent
    busy = [occurrence for occurrence in found if occurrence.status is not OccurrenceStatus.QUEUED]
    if not len(found):
        return TrailStep("completed", "The job is idle", await _slots_said(doing))
    if rule is Overlap.ALLOW and places is None:
        return TrailStep("running", f"It runs beside {_named(doing, busy)}", by)
    if len(busy) == len(found) < (places or 1):
        return TrailStep("running", f"It runs beside {_named(doing, busy)}", f"max_concurrent {places}")
    mark, fact = _IN_THE_WAY[rule]
    first = busy[-1] if busy else found.occurrences[-1]
    most = f"; max_concurrent {places}" if places is not None and places > 1 else ""
    said = f"{_named(doing, list(found))}, the oldest {first.status}" if len(found) > 1 else f"it is {first.status}"
    return TrailStep(mark, fact.format(doing.viewer.when(first.scheduled_for)), f"{said}; {by}{most}")


def _named(doing: Doing, some: Sequence[Occurrence]) -> str:
    """Return the instants of occurrences, the oldest first."""
    return listed([doing.viewer.when(occurrence.scheduled_for) for occurrence in reversed(some)], 3)


async def _slots_said(doing: Doing) -> str:
    now, silence = doing.viewer.now, doing.tick.settings.node_timeout
    alive = [node for node in await doing.tick.nodes() if node.facts is not None and node.is_alive(now, silence)]
    if not alive:
        return "no node is up: it starts as soon as one is"
    free = sum(max(node.facts.slots - node.holds, 0) for node in alive if node.facts is not None)
    if not free:
        return f"it waits for a slot: all of {count(len(alive), 'node')} are taken"
    return f"so it starts as soon as a node takes it: {count(free, 'slot')} {'is' if free == 1 else 'are'} free"


def length_said(doing: Doing, since: datetime) -> str:
    """Return how long something has lasted."""
    return length(doing.viewer.now - since)


def part_steps(changes: Sequence[object]) -> Iterator[TrailStep]:
    """Give a step for each part of a definition that changes."""
    for change in changes:
        part, _, rest = str(change).partition(": ")
        yield TrailStep("superseded", part, rest)
