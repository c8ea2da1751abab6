"""The decision trail: why an occurrence ran or did not, and why it ended so, one fact after another.

Each step is one fact and a line of evidence. What was decided comes from `explain`; the rest is what was stored.
"""

from __future__ import annotations

import itertools
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from everytick.domain.decisions import Why
from everytick.domain.durations import format_duration
from everytick.domain.headlines import headline
from everytick.domain.occurrence import Cause
from everytick.domain.policies import Overlap
from everytick.domain.statuses import ACTIVE, ENDED, OccurrenceStatus, RunStatus
from everytick.domain.values import value
from everytick.web.words import LATE_AFTER, count, length, listed, spelled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from everytick import Explanation
    from everytick.domain.job import Job, Task
    from everytick.domain.occurrence import Attempt, Occurrence, TaskRun
    from everytick.domain.retry import Retry
    from everytick.stores.base import Whole
    from everytick.web.words import Viewer

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[+-]\d\d:\d\d|Z)")
_ID = re.compile(r"\b((?:occ|run|backfill|job)_[0-9a-f]{8})(?:[0-9a-f]{4,}|-[0-9a-f-]{27})\b")
_AT_ONCE = timedelta(seconds=1)
_SOME = ("no time", "once", "twice", "three times", "four times", "five times")
_S = OccurrenceStatus


@value(frozen=True)
class TrailStep:
    """One fact and its evidence; `mark` is the glyph beside it."""

    mark: str
    fact: str
    evidence: str = ""


def trail(
    found: Explanation, whole: Whole, job: Job, viewer: Viewer, *, next_run: datetime | None = None
) -> list[TrailStep]:
    """Return the trail of an occurrence, or of an instant that did not run. `job` is the definition it ran under."""
    occurrence = whole.occurrence
    steps = [_named(occurrence, job, viewer)]
    if occurrence.created_at is None and occurrence.started_at is None and occurrence.status in ENDED:
        steps.append(_not_run(found, occurrence, viewer))
    else:
        steps += _until_it_began(found, occurrence, job, viewer)
        steps += _attempts(whole, job)
        steps += _end(found, whole, job, viewer)
    steps += [
        TrailStep("promise", f"{breach.kind} was broken", f"it was promised by {viewer.when(breach.due_at)}")
        for breach in found.breaches
    ]
    steps += [
        TrailStep("promise", "A promise is at risk", localized(f"it {forecast}", viewer))
        for forecast in found.forecasts
    ]
    if next_run is not None:
        steps.append(TrailStep("planned", f"Next: {viewer.planned(next_run)}", _of_next(occurrence, job)))
    return steps


def localized(text: str, viewer: Viewer) -> str:
    """Return a text with its moments on the viewer's clock and its ids short enough to read.

    What only looks like a moment stays as it is, such as 30 February or a leap second: errors may hold any text.
    """

    def said(found: re.Match[str]) -> str:
        try:
            moment = datetime.fromisoformat(found[0])
            return viewer.when(moment, seconds=bool(moment.second or moment.microsecond))
        except (ValueError, OverflowError):
            # The second one: a first day of all that has not begun where the viewer is.
            return found[0]

    return _ID.sub(r"\1", _MOMENT.sub(said, text))


# ------------------------------------------------------------------------------------------------------------ the steps


def _named(occurrence: Occurrence, job: Job, viewer: Viewer) -> TrailStep:
    """Say why it exists at all."""
    at, by = viewer.when(occurrence.scheduled_for, seconds=bool(occurrence.scheduled_for.second)), _asked_by(occurrence)
    version = f"version {occurrence.version} of the job"
    match occurrence.cause:
        case Cause.SCHEDULE:
            return TrailStep("planned", f"The schedule named {at}", f"{job.schedule}; {version}")
        case Cause.TRIGGER:
            return TrailStep("planned", f"It was triggered for {at}", _joined(by, version))
        case Cause.REPLAY:
            of = f"of {_ID.sub(chr(92) + '1', occurrence.replay_of)}" if occurrence.replay_of else ""
            return TrailStep("planned", f"It is a replay of {at}", _joined(of, by, f"under {version}"))
        case Cause.BACKFILL:
            return TrailStep("planned", f"A backfill asked for {at}", _joined(by, version))
        case Cause.CREATE:
            return TrailStep("planned", "on_create asked for it", f"as the job was new; {version}")
    return TrailStep("planned", "A restart asked for it", _joined(by, version))


def _not_run(found: Explanation, occurrence: Occurrence, viewer: Viewer) -> TrailStep:
    """Say why an instant did not run."""
    said = found.text.partition(": ")[2] or occurrence.reason or ""
    verdict = str(found.verdict)
    return TrailStep(str(occurrence.status), verdict[:1].upper() + verdict[1:], localized(said, viewer))


def _until_it_began(found: Explanation, occurrence: Occurrence, job: Job, viewer: Viewer) -> Iterator[TrailStep]:
    yield _in_time(occurrence, job, viewer)
    yield _in_its_way(found, occurrence, job, viewer)
    if occurrence.started_at is not None:
        yield _place(occurrence, viewer)


def _in_time(occurrence: Occurrence, job: Job, viewer: Viewer) -> TrailStep:
    started, due = occurrence.started_at, occurrence.line_at or occurrence.scheduled_for
    after = f"started {length(started - due)} after its instant" if started is not None and started >= due else ""
    grace = f"grace is {format_duration(job.settings.grace)}"
    if occurrence.late:
        reason = localized(occurrence.reason or "", viewer)
        return TrailStep(
            "late",
            "It came late",
            _joined(after, grace, "" if reason.startswith("late") else reason, _recovered(occurrence, job)),
        )
    if occurrence.cause is not Cause.SCHEDULE:
        return TrailStep("completed", "It was due at once" if due <= viewer.now else "It is still to come", after)
    if started is not None and started - due >= LATE_AFTER:
        return TrailStep("completed", "It was planned in time", grace)  # that it began late is said of its place
    return TrailStep("completed", "It was on time", _joined(after, grace))


def _recovered(occurrence: Occurrence, job: Job) -> str:
    if occurrence.reason != Why.LATE:
        return ""
    return f"recovery {job.settings.recovery.strategy} kept it"


def _in_its_way(found: Explanation, occurrence: Occurrence, job: Job, viewer: Viewer) -> TrailStep:
    """Say whether the pause, another occurrence, a limit or a dependency stood in its way."""
    said = localized(found.text.partition(": ")[2], viewer)
    overlap = f"overlap {job.settings.overlap}"
    if occurrence.status is _S.QUEUED:
        return TrailStep("queued", str(found.verdict).capitalize(), _joined(said, overlap))
    if occurrence.status is _S.PENDING:
        return TrailStep("pending", str(found.verdict).capitalize(), said)
    if occurrence.status is _S.SUPERSEDED:
        return TrailStep(
            "superseded", "A newer one took its place", localized(occurrence.error or occurrence.reason or "", viewer)
        )
    if occurrence.status is _S.SKIPPED:
        return TrailStep(
            "skipped", str(found.verdict).capitalize(), localized(occurrence.error or occurrence.reason or "", viewer)
        )
    asked = occurrence.reason or ""
    held = localized(asked, viewer) if asked.startswith(("behind", str(Why.OVERLAP), "waits")) else ""
    return TrailStep(
        "completed", "Nothing stood against it", held or f"not paused, not disabled, not skipped by hand; {overlap}"
    )


def _place(occurrence: Occurrence, viewer: Viewer) -> TrailStep:
    assert occurrence.started_at is not None, "it has begun"
    node = occurrence.node or occurrence.owner or "a node"
    took = f"{node} took it at {viewer.clock(occurrence.started_at, seconds=True)}"
    covers = ""
    if occurrence.covers_after is not None and occurrence.covers_through is not None:
        covers = f"covers {viewer.stretch(occurrence.covers_after, occurrence.covers_through)}"
    ready = occurrence.ready_at or occurrence.line_at or occurrence.scheduled_for
    waited = occurrence.started_at - max(ready, occurrence.scheduled_for)
    slot = f"it had waited {length(waited)} for a slot or a limit" if waited > _AT_ONCE else ""
    is_late = waited >= LATE_AFTER
    return TrailStep(
        "late" if is_late else "completed",
        f"It started {length(waited)} late" if is_late else "It got a place",
        _joined(took, f"fence {occurrence.fence:,}" if occurrence.fence else "", slot, covers),
    )


def _attempts(whole: Whole, job: Job) -> Iterator[TrailStep]:
    """Say of each task that was tried again or failed how often, and what `retry` allows."""
    for run in whole.runs:
        tries = [attempt for task, attempt in whole.attempts if task == run.task]
        bad = [attempt for attempt in tries if attempt.error is not None]
        if not bad:
            continue
        task = next((candidate for candidate in job.tasks if candidate.name == run.task), None)
        yield _of_task(run, tries, bad, None if task is None else task.settings.retry, task)


def _of_task(
    run: TaskRun, tries: Sequence[Attempt], bad: Sequence[Attempt], retry: Retry | None, task: Task | None
) -> TrailStep:
    times = _SOME[len(bad)] if len(bad) < len(_SOME) else f"{len(bad)} times"
    waits = [
        length(after.started_at - before.ended_at)
        for before, after in itertools.pairwise(tries)
        if before.ended_at is not None and after.started_at is not None
    ]
    waited = f"waits of {listed(waits, 4)}" if waits else ""
    said = headline(bad[-1].error or "")
    if run.status is RunStatus.SUCCESS:
        return TrailStep("awaiting_retry", f"Task {run.task} failed {times}, then succeeded", _joined(said, waited))
    mark = str(run.status) if run.status in (RunStatus.TIMEOUT, RunStatus.CANCELED) else "failed"
    origin = "" if task is None else str(task.settings.origin("retry"))
    allowed = _retry_words(retry, origin)
    if run.status in (RunStatus.PENDING, RunStatus.RUNNING):
        return TrailStep(
            "awaiting_retry", f"Task {run.task} failed {times}, and is tried again", _joined(said, allowed, waited)
        )
    return TrailStep(mark, f"Task {run.task} failed {times}", _joined(said, allowed, waited))


def _retry_words(retry: Retry | None, origin: str) -> str:
    if retry is None:
        return f"retry is none ({origin})" if origin else "retry is none"
    most = "as often as needed" if retry.max is None else count(retry.max + 1, "attempt")
    return f"retry allows {most} ({origin})" if origin else f"retry allows {most}"


def _end(found: Explanation, whole: Whole, job: Job, viewer: Viewer) -> Iterator[TrailStep]:
    occurrence = whole.occurrence
    if occurrence.status in ACTIVE:
        if occurrence.started_at is not None:
            said = localized(found.text.partition(": ")[2], viewer)
            is_running = occurrence.status is _S.RUNNING
            yield TrailStep(
                str(occurrence.status),
                "It runs" if is_running else "It waits for a retry",
                said if is_running else said.removeprefix("it waits for a retry "),
            )
        return
    took = ""
    if occurrence.started_at is not None and occurrence.ended_at is not None:
        took = f"after {length(occurrence.ended_at - occurrence.started_at)}"
    match occurrence.status:
        case _S.COMPLETED:
            yield TrailStep("completed", "It completed", _joined(took, count(len(whole.runs), "task")))
        case _S.COMPLETED_WITH_ERRORS:
            yield TrailStep(
                "completed_with_errors", "It completed with errors", _joined(took, _consequences(whole, job))
            )
        case _S.FAILED:
            yield TrailStep(
                "failed",
                "So the occurrence failed",
                _consequences(whole, job) or localized(occurrence.error or "", viewer),
            )
        case _S.FAILED_STALE:
            yield TrailStep(
                "failed_stale",
                "Its node fell silent",
                f"on_orphan {job.settings.on_orphan}; {localized(occurrence.error or '', viewer)}",
            )
        case _S.CANCELED:
            yield TrailStep("canceled", "It was canceled", _joined(localized(occurrence.error or "", viewer), took))


def _consequences(whole: Whole, job: Job) -> str:
    """Say what `failure` meant for the other tasks."""
    settings = {task.name: task.settings for task in job.tasks}
    wrong = [run.task for run in whole.runs if run.status in (RunStatus.FAILED, RunStatus.TIMEOUT)]
    left = [run.task for run in whole.runs if run.status is RunStatus.SKIPPED]
    if not wrong:
        return ""
    rule = settings[wrong[0]].failure if wrong[0] in settings else job.settings.failure
    parts = [f"failure {rule}"]
    if left:
        parts.append(f"{listed(left, 3)} did not start")
    if len(whole.runs) > 1:
        parts.append(f"{spelled(len(wrong), 'task')} of {len(whole.runs)} failed")
    return "; ".join(parts)


_IF_BUSY = {
    Overlap.SKIP: "is skipped",
    Overlap.QUEUE: "waits in line",
    Overlap.QUEUE_LATEST: "waits in line, until a newer one takes its place",
    Overlap.ALLOW: "starts beside it",
    Overlap.CANCEL_RUNNING: "cancels it",
}


def _of_next(occurrence: Occurrence, job: Job) -> str:
    """Say what the end of this one means for the next."""
    if occurrence.status is _S.FAILED:
        return "nothing is retried before; a replay would not move it"
    overlap = job.settings.overlap
    becomes = "" if occurrence.status in ENDED else f"{_IF_BUSY[overlap]} (overlap {overlap})"
    return f"if this one has not ended by then, the next {becomes}" if becomes else ""


def _asked_by(occurrence: Occurrence) -> str:
    """Return who asked for it and why, as its reason tells it."""
    reason = occurrence.reason or ""
    return reason.removeprefix(f"{Why.ASKED}, ").removeprefix(str(Why.ASKED))


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
