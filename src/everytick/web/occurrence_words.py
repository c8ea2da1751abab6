"""What the page of an occurrence says: its heading, its error, its tasks as bars, its output as lines.

Nothing here asks a store or reads a clock.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from itertools import dropwhile
from typing import TYPE_CHECKING

from everytick.domain.headlines import headline
from everytick.domain.occurrence import Cause, TaskRun
from everytick.domain.statuses import ACTIVE, AttemptStatus, OccurrenceStatus, RunStatus
from everytick.domain.values import value
from everytick.web.pictures.gantt import AttemptBar, TaskRow
from everytick.web.pictures.trail import TrailStep, localized
from everytick.web.words import LATE_AFTER, count, cut, length, listed, number, usually

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from everytick import Explanation
    from everytick.app.occurrence_overviews import OccurrenceOverview
    from everytick.domain.job import Job, Task
    from everytick.domain.notes import Progress
    from everytick.domain.occurrence import Attempt, Occurrence
    from everytick.stores.base import Whole
    from everytick.web.words import Viewer

MOST_LINES = 500
"""Lines of output that a page shows; the rest is one link away."""

_S, _R = OccurrenceStatus, RunStatus
_WRONG = frozenset({_R.FAILED, _R.TIMEOUT})
_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"([A-Za-z_][\w.]*): (.*)", re.DOTALL)
_LOGGED = re.compile(r"\d{4}-\d\d-\d\d (\d\d:\d\d:\d\d),(\d{3}) (DEBUG|INFO|WARNING|ERROR|CRITICAL) (.*)")
_LEVELS = {"DEBUG": "debug", "INFO": "info", "WARNING": "warn", "ERROR": "error", "CRITICAL": "error"}
_LONGEST_LINE_CHARACTERS = 4000
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


@value(frozen=True)
class ErrorSaid:
    """An error as people read it: what was raised and where, its message, and the traceback behind it."""

    title: str
    message: str
    traceback: str = ""
    frames: int = 0


@value(frozen=True)
class OutputLine:
    """One line of output: its time and level, if a logger wrote it."""

    text: str
    clock: str = ""
    level: str = ""


@value(frozen=True)
class OutputTab:
    """One attempt whose output can be read."""

    task: str
    attempt: int
    label: str
    mark: str
    is_current: bool = False


# ---------------------------------------------------------------------------------------------------------- sentences


def occurrence_said(seen: OccurrenceOverview, viewer: Viewer, *, with_errors: bool) -> str:
    """Return the heading: the status, and the one thing to know about it."""
    own, whole = seen.whole.occurrence, seen.whole
    said = _said_of(seen, whole, own, viewer, with_errors=with_errors)
    if own.status is _S.RUNNING:
        return f"{own.status} {said}".rstrip()
    return f"{own.status}: {said}" if said else str(own.status)


def _said_of(seen: OccurrenceOverview, whole: Whole, own: Occurrence, viewer: Viewer, *, with_errors: bool) -> str:
    match own.status:
        case _S.FAILED | _S.COMPLETED_WITH_ERRORS:
            return _failure_said(whole) or (cut(localized(own.error or "", viewer), 120) if with_errors else "")
        case _S.COMPLETED:
            return (
                ""
                if own.started_at is None or own.ended_at is None
                else f"it took {length(own.ended_at - own.started_at)}"
            )
        case _S.RUNNING:
            busy = [run.task for run in whole.runs if run.status is _R.RUNNING]
            since = "" if own.started_at is None else f"for {length(viewer.now - own.started_at)}"
            told = ", ".join(filter(None, (since, f"now {listed(busy, 3)}" if busy and len(whole.runs) > 1 else "")))
            return f"{told}; {_usually(seen)}" if takes_long(seen) else told
        case _S.AWAITING_RETRY:
            again = [run.task for run in whole.runs if run.status is _R.PENDING and run.attempts]
            at = "" if own.ready_at is None else f" at {viewer.clock(own.ready_at, seconds=own.ready_at.second > 0)}"
            return f"{listed(again, 3) or 'it'} is tried again{at}"
        case _S.FAILED_STALE:
            return "its node fell silent"
        case _S.PENDING | _S.QUEUED:
            return str(seen.explanation.verdict)
        case _:
            return cut(localized(own.error or own.reason or "", viewer), 120)


def _failure_said(whole: Whole) -> str:
    wrong = [run for run in whole.runs if run.status in _WRONG]
    if not wrong:
        return ""
    first = wrong[0]
    if len(wrong) > 1:
        return f"{listed([run.task for run in wrong], 3)} failed"
    if first.attempts > 1:
        return f"{first.task} gave up after {count(first.attempts, 'attempt')}"
    return f"{first.task} took too long" if first.status is _R.TIMEOUT else f"{first.task} failed"


def takes_long(seen: OccurrenceOverview) -> bool:
    """Whether it runs for longer than nearly all before it."""
    own, usual = seen.whole.occurrence, seen.lengths
    if own.status is not _S.RUNNING or own.started_at is None or usual is None:
        return False
    return seen.now - own.started_at > usual.p95


def _usually(seen: OccurrenceOverview) -> str:
    return "" if seen.lengths is None else usually(seen.lengths.p50, seen.lengths.p95)


def when_said(seen: OccurrenceOverview) -> str:
    """Return whether it started on time, how long it took or usually takes, and where it ran."""
    own = seen.whole.occurrence
    parts = []
    if own.started_at is not None:
        delay = own.started_at - (own.line_at or own.scheduled_for)
        is_late = own.late or delay >= LATE_AFTER
        parts.append(f"started {length(delay)} late" if is_late else "on time" if own.cause is Cause.SCHEDULE else "")
        if own.status is _S.RUNNING and not takes_long(seen):
            parts.append(_usually(seen))
        if own.ended_at is not None:
            parts.append(f"took {length(own.ended_at - own.started_at)}")
    if own.node or own.owner:
        parts.append(f"on {own.owner or own.node}")
    if own.status in (_S.SKIPPED, _S.MISSED, _S.SUPERSEDED, _S.CANCELED) and own.started_at is None:
        parts.append("it did not run")
    return ", ".join(filter(None, parts))


# -------------------------------------------------------------------------------------------------------------- error


def error_said(whole: Whole) -> ErrorSaid | None:
    """Return the error that ended an occurrence, or that makes it try again; None if there is none."""
    found = _last_error(whole)
    if found is None:
        text = whole.occurrence.error
        return None if text is None or whole.occurrence.status is _S.COMPLETED else _error_of(text, "")
    task, attempt = found
    where = f" in {task}" if len(whole.runs) > 1 or attempt.number == 1 else ""
    tried = f", attempt {attempt.number}" if attempt.number > 1 or len(whole.runs) == 1 else ""
    return _error_of(attempt.error or "", f"{where or f' in {task}'}{tried}")


def _last_error(whole: Whole) -> tuple[str, Attempt] | None:
    """Return the newest attempt that failed for good; while a retry is awaited, the newest that failed."""
    last = {task: attempt for task, attempt in whole.attempts if attempt.error is not None}
    wrong = [run.task for run in whole.runs if run.status in _WRONG and run.task in last]
    if not wrong and whole.occurrence.status in ACTIVE:
        wrong = [run.task for run in whole.runs if run.status is _R.PENDING and run.task in last]
    return (wrong[0], last[wrong[0]]) if wrong else None


def _error_of(text: str, where: str) -> ErrorSaid:
    lines = text.splitlines()
    starts = [place for place, line in enumerate(lines) if line == _TRACEBACK]
    if not starts:
        raised = _RAISED.fullmatch(text.strip())
        is_class = raised is not None and raised[1][:1].isupper() and " " not in raised[1]
        title = f"{raised[1]}{where}" if raised is not None and is_class else f"Failed{where}"
        return ErrorSaid(title, raised[2] if raised is not None and is_class else text.strip())
    message = "\n".join(
        dropwhile(lambda line: not line.strip() or line.startswith((" ", "… ")), lines[starts[-1] + 1 :])
    )
    raised = _RAISED.fullmatch(message)
    frames = sum(line.startswith('  File "') for line in lines)
    title = raised[1].rpartition(".")[2] if raised is not None else headline(text)
    return ErrorSaid(f"{title}{where}", raised[2] if raised is not None else "", text, frames)


# -------------------------------------------------------------------------------------------------------------- tasks


def with_all_runs(whole: Whole, job: Job) -> Whole:
    """Return an active occurrence with a run for each task: until its end the store may know attempts only."""
    if whole.occurrence.status not in ACTIVE:
        return whole
    known = {run.task: run for run in whole.runs}
    runs = [known.get(task.name) or _run_by_attempts(whole, task) for task in job.tasks]
    return replace(whole, runs=tuple(runs))


def _run_by_attempts(whole: Whole, task: Task) -> TaskRun:
    own = [attempt for name, attempt in whole.attempts if name == task.name]
    status = _R.PENDING
    if own:
        words = {AttemptStatus.RUNNING: _R.RUNNING, AttemptStatus.SUCCESS: _R.SUCCESS}
        status = words.get(own[-1].status, _R.PENDING)
    began = own[0].started_at if own else None
    return TaskRun(whole.occurrence.id, task.id, status, len(own), began, task=task.name)


def task_rows(whole: Whole, job: Job, viewer: Viewer) -> list[TaskRow]:
    """Return the rows of the Gantt, in the order of the tasks."""
    settings = {task.name: task for task in job.tasks}
    wrong = [run.task for run in whole.runs if run.status in _WRONG]
    return [_task_row(run, whole, settings, wrong, viewer) for run in whole.runs]


def _task_row(run: TaskRun, whole: Whole, tasks: Mapping[str, Task], wrong: Sequence[str], viewer: Viewer) -> TaskRow:
    own = [attempt for task, attempt in whole.attempts if task == run.task]
    bars = tuple(
        AttemptBar(attempt.number, attempt.status, attempt.started_at, attempt.ended_at, _bar_title(attempt, viewer))
        for attempt in own
        if attempt.started_at is not None
    )
    waits = run.status is _R.PENDING and bool(bars)
    return TaskRow(
        run.task,
        run.status,
        _note(run, tasks.get(run.task)),
        bars,
        _after(run, own, wrong, whole.occurrence, viewer),
        whole.occurrence.ready_at if waits else None,
    )


def _note(run: TaskRun, task: Task | None) -> str:
    """Return the line below the name of a task: how often it was tried, or which tasks it follows."""
    retry = None if task is None else task.settings.retry
    if run.attempts > 1:
        if retry is not None and retry.max is not None:
            return f"{run.attempts} of {retry.max + 1} attempts"
        return count(run.attempts, "attempt")
    if task is not None and task.after:
        return f"after {listed(task.after, 2)}"
    return count(run.attempts, "attempt") if run.attempts else ""


def _bar_title(attempt: Attempt, viewer: Viewer) -> str:
    assert attempt.started_at is not None, "a bar has a beginning"
    begin = viewer.clock(attempt.started_at, seconds=True)
    took = f", {length(attempt.ended_at - attempt.started_at)}" if attempt.ended_at is not None else ""
    return f"attempt {attempt.number}: {attempt.status} from {begin}{took}"


def _after(run: TaskRun, own: Sequence[Attempt], wrong: Sequence[str], occurrence: Occurrence, viewer: Viewer) -> str:
    """Return the word behind the last bar."""
    if run.status is _R.SKIPPED:
        others = [task for task in wrong if task != run.task]
        return f"not started: {others[0]} failed" if others else "not started"
    if run.status is _R.CANCELED:
        return "canceled"
    if run.status in _WRONG:
        return "gave up" if run.attempts > 1 else "took too long" if run.status is _R.TIMEOUT else "failed"
    if own and own[-1].status is AttemptStatus.RUNNING:
        return progress_said(own[-1].progress) or _so_far(own[-1], viewer)
    if run.status is _R.SUCCESS:
        return length(_last_length(own))
    return "" if occurrence.status in ACTIVE else str(run.status)


def _so_far(attempt: Attempt, viewer: Viewer) -> str:
    return "" if attempt.started_at is None else f"{length(viewer.now - attempt.started_at)} so far"


def _last_length(own: Sequence[Attempt]) -> timedelta:
    last = own[-1] if own else None
    if last is None or last.started_at is None or last.ended_at is None:
        return timedelta(0)
    return last.ended_at - last.started_at


def progress_said(progress: Progress | None) -> str:
    """Return how far an attempt has come: `40 of 100, loading`."""
    if progress is None:
        return ""
    done = number(round(progress.done, 1)).removesuffix(".0")
    of = "" if progress.total is None else f" of {number(round(progress.total, 1)).removesuffix('.0')}"
    return ", ".join(filter(None, (f"{done}{of}", cut(progress.text, 60))))


# ------------------------------------------------------------------------------------------------------------- output


def output_tabs(whole: Whole, task: str, attempt: int) -> list[OutputTab]:
    """Return the attempts as tabs, in order; the number is told where a task was tried more than once."""
    tries = {run.task: run.attempts for run in whole.runs}
    return [
        OutputTab(
            name,
            tried.number,
            f"{name} {tried.number}" if tries.get(name, 1) > 1 else name,
            str(tried.status),
            (name, tried.number) == (task, attempt),
        )
        for name, tried in whole.attempts
        if tried.started_at is not None
    ]


def chosen_attempt(whole: Whole, task: str, attempt: int) -> tuple[str, int] | None:
    """Return the attempt to show: the one asked for, else one that runs, else the one that failed, else the last."""
    tries = [(name, tried) for name, tried in whole.attempts if tried.started_at is not None]
    asked = [(name, tried.number) for name, tried in tries if name == task and attempt in (0, tried.number)]
    if asked:
        return asked[-1]
    running = [(name, tried.number) for name, tried in tries if tried.status is AttemptStatus.RUNNING]
    failed = _last_error(whole)
    if running:
        return running[-1]
    if failed is not None:
        return failed[0], failed[1].number
    kept = [(name, tried.number) for name, tried in tries if tried.log is not None]
    all_tries = kept or [(name, tried.number) for name, tried in tries]
    return all_tries[-1] if all_tries else None


def output_lines(text: str) -> list[OutputLine]:
    """Return output as lines; those of a logger have their time and level apart. Control characters are left out."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n").split("\n")
    return [_line(line) for line in lines] if text else []


def error_lines(lines: Sequence[OutputLine]) -> list[OutputLine]:
    """Return the errors among the lines, each with the lines that follow it without a level: its traceback."""
    found, level = [], ""
    for line in lines:
        level = line.level or level
        if level == "error":
            found.append(line)
    return found


def _line(line: str) -> OutputLine:
    clean = _CONTROL.sub("", line.expandtabs())[:_LONGEST_LINE_CHARACTERS]
    logged = _LOGGED.fullmatch(clean)
    if logged is None:
        return OutputLine(clean)
    return OutputLine(logged[4], f"{logged[1]}.{logged[2]}", _LEVELS[logged[3]])


# ------------------------------------------------------------------------------------------- an instant without one


def instant_trail(found: Explanation, viewer: Viewer) -> list[TrailStep]:
    """Return why an instant did not run or will, as a trail: before, the verdict, and what comes after it."""
    return list(_instant_steps(found, viewer))


def _instant_steps(found: Explanation, viewer: Viewer) -> Iterator[TrailStep]:
    if found.previous is not None:
        yield TrailStep(
            "planned", f"Before: {viewer.when(found.previous)}", "the instant that the schedule names before it"
        )
    verdict = str(found.verdict)
    said = localized(found.text.partition(": ")[2], viewer)
    yield TrailStep(instant_mark(found), verdict[:1].upper() + verdict[1:], said)
    if found.moved_to is not None:
        yield TrailStep("planned", f"It goes to {viewer.when(found.moved_to)}")
    for breach in found.breaches:
        yield TrailStep("promise", f"{breach.kind} was broken", f"it was promised by {viewer.when(breach.due_at)}")
    if found.next is not None:
        yield TrailStep("planned", f"Next: {viewer.when(found.next)}", "the instant that the schedule names after it")


def instant_mark(found: Explanation) -> str:
    """Return the glyph of an instant: that of its occurrence or span, else planned or skipped."""
    if found.occurrence is not None:
        return str(found.occurrence.status)
    if found.span is not None:
        return str(found.span.status)
    return {"will run": "planned", "not decided yet": "pending", "paused": "paused"}.get(str(found.verdict), "skipped")
