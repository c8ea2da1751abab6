"""Parts of the page of a job: the runs to come, the tasks and where their time goes, links to deeds."""

from __future__ import annotations

import json
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING

from everytick.domain.statuses import RunStatus
from everytick.domain.values import value
from everytick.schedules.clock_changes import clock_changes
from everytick.web.pictures.elements import element
from everytick.web.pictures.marks import percent
from everytick.web.words import length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from markupsafe import Markup

    from everytick.app.job_overviews import JobOverview
    from everytick.app.questions import UpcomingRun
    from everytick.domain.job import Task
    from everytick.domain.occurrence import TaskRun
    from everytick.stores.base import Whole
    from everytick.web.words import Viewer

_DAY = timedelta(days=1)
_CLOCK_WORDS = {
    "moved": "the clock skips {}: right after",
    "skipped": "the clock skips {}: left out",
    "doubled": "comes twice, runs twice",
    "silenced": "comes twice, runs once",
}


@value(frozen=True)
class ComingRow:
    """One of the next runs: when, what is special about it, and which deeds there are for it."""

    at: datetime
    zone: str
    tags: tuple[str, ...] = ()
    detail: str = ""
    is_skipped: bool = False
    href: str = ""
    deeds: tuple[tuple[str, str], ...] = ()


@value(frozen=True)
class TaskLine:
    """One task of a job: where it usually stands in a run, how long it takes, how often it went well lately."""

    name: str
    order: str
    kind: str
    target: str
    picture: Markup | None
    usual: str
    good: str


# ------------------------------------------------------------------------------------------------------ runs to come


def coming_rows(seen: JobOverview, viewer: Viewer, link: Callable[..., str], *, may_change: bool) -> list[ComingRow]:
    """Return the next runs in order, with the clock changes on the way to each."""
    name, tags = seen.record.job.name, _clock_tags(seen)
    return [
        ComingRow(
            run.at,
            f"{viewer.local(run.at):%Z}",
            (*tags.get(run.at, ()), *_marks(run, viewer)),
            run.detail,
            run.mark == "skipped",
            link("/occurrences/{}", run.id) if run.id is not None else "",
            _deeds(run, name, link) if may_change else (),
        )
        for run in seen.coming
    ]


def _clock_tags(seen: JobOverview) -> dict[datetime, tuple[str, ...]]:
    """Return what changes of the clock do to the next runs, each with the run that is nearest to the change."""
    scheduled = [run.at for run in seen.coming if not run.is_asked_for]
    if not scheduled:
        return {}
    found: dict[datetime, tuple[str, ...]] = {}
    for change in clock_changes(seen.record.job.schedule, seen.now, scheduled[-1] + _DAY):
        nearest = min(scheduled, key=lambda at: abs(at - change.instant))
        said = _CLOCK_WORDS[change.what].format(f"{change.wall:%H:%M}")
        found[nearest] = (*found.get(nearest, ()), said)
    return found


def _marks(run: UpcomingRun, viewer: Viewer) -> tuple[str, ...]:
    if run.is_asked_for:
        return ("asked for",)
    if run.mark == "moved" and run.instant is not None:
        return (f"moved from {viewer.when(run.instant)}",)
    return () if run.mark is None else (str(run.mark),)


def _deeds(run: UpcomingRun, name: str, link: Callable[..., str]) -> tuple[tuple[str, str], ...]:
    if run.id is not None:
        return (("cancel…", link("/occurrences/{}/do/cancel", run.id)),)
    at = (run.instant or run.at).isoformat()
    if run.mark == "rescheduled":
        return (("undo…", link("/jobs/{}/do/undo", name, at=at)),)
    changed = () if run.mark is None else (("undo…", link("/jobs/{}/do/undo", name, at=at)),)
    if run.mark == "skipped":
        return changed
    both = (("skip…", link("/jobs/{}/do/skip", name, at=at)), ("move…", link("/jobs/{}/do/move", name, at=at)))
    return (*changed, *both)


# -------------------------------------------------------------------------------------------------------------- tasks


def task_lines(seen: JobOverview, *, with_targets: bool) -> list[TaskLine]:
    """Return the tasks in order. Where their time goes is told of the last ended runs."""
    job = seen.record.job
    return [_task_line(task, seen.wholes, with_targets=with_targets) for task in job.tasks]


def _task_line(task: Task, wholes: Sequence[Whole], *, with_targets: bool) -> TaskLine:
    own = [(whole, run) for whole in wholes for run in whole.runs if run.task == task.name]
    good = [(whole, run) for whole, run in own if run.status is RunStatus.SUCCESS]
    tried = sum(run.status is not RunStatus.SKIPPED for _, run in own)
    placed = [place for whole, run in good if (place := _place(whole, run)) is not None]
    took = sorted(run.ended_at - run.started_at for _, run in good if run.ended_at and run.started_at)
    kind, target = target_words(task.target)
    return TaskLine(
        task.name,
        f"after {', '.join(task.after)}" if task.after else "",
        task.settings.runner or kind,
        target if with_targets or kind == "function" else "",
        _place_picture(placed),
        length(took[len(took) // 2]) if took else "",
        f"{len(good)} of {tried}" if tried else "",
    )


def target_words(target: str) -> tuple[str, str]:
    """Return of which kind a target is, and what it calls."""
    if not target.startswith("{"):
        return "function", target
    data = json.loads(target)
    kind = next((key for key in ("command", "http", "call", "notice") if key in data), "task")
    said = data.get(kind)
    if kind == "http" and isinstance(said, dict):
        return kind, f"{said.get('method', 'GET')} {said.get('url', '')}"
    return kind, " ".join(map(str, said)) if isinstance(said, list) else said if isinstance(said, str) else ""


def _place(whole: Whole, run: TaskRun) -> tuple[float, float] | None:
    """Return where a task began and ended within its occurrence, as shares of the whole."""
    begin, end = whole.occurrence.started_at, whole.occurrence.ended_at
    if begin is None or end is None or run.started_at is None or run.ended_at is None or end <= begin:
        return None
    return (run.started_at - begin) / (end - begin), (run.ended_at - begin) / (end - begin)


def _place_picture(placed: Sequence[tuple[float, float]]) -> Markup | None:
    if not placed:
        return None
    left, right = median(place[0] for place in placed), median(place[1] for place in placed)
    return element(
        "svg",
        element("rect", class_="h0", width="100%", height=14, rx=2),
        element(
            "rect", class_="m-done", x=percent(left), y=1, width=percent(max(right - left, 0.006)), height=12, rx=2
        ),
        class_="share",
        height=14,
        aria_hidden="true",
    )
