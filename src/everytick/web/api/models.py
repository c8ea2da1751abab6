"""The shapes of answers. `everytick.answers` makes them; tests compare both."""

from typing import Annotated, Any, Generic, TypeVar

from pydantic import Field

from everytick.web.api.shapes import (
    By,
    Cause,
    Count,
    Flag,
    JobId,
    Json,
    Moment,
    Name,
    OccurrenceId,
    Seconds,
    Shape,
    Status,
    Table,
    Text,
    Version,
)

T = TypeVar("T")

Rollout = Annotated[str | None, Field(description="The stages of a trial that are left.", examples=["rollout 10%"])]

Cursor = Annotated[
    str | None, Field(description="Ask for the next page with it; null on the last page.", examples=["MDAx"])
]


class PageData(Shape, Generic[T]):
    """A part of a list."""

    items: list[T]
    cursor: Cursor


class InfoData(Shape):
    """The service: its version, the store's time, and after which silence a node counts as gone."""

    version: Annotated[str, Field(examples=["0.1.0"])]
    now: Moment
    node_timeout: Seconds
    person: Annotated[str, Field(description="Who asks.", examples=["ann"])]
    role: Annotated[str, Field(examples=["operator"])]


class ChangedData(Shape):
    """Whether the operation changed anything."""

    changed: Flag


# --------------------------------------------------------------------------------------------------------------- jobs


class BreachData(Shape):
    """A promise that was broken."""

    promise: Annotated[str, Field(examples=["start_by"])]
    broken_for: Moment
    due_at: Moment
    found_at: Moment
    last_for: Moment
    count: Count
    reason: Text
    occurrence_id: OccurrenceId | None
    ended_at: Moment | None
    withdrawn: Flag


class JobBreachData(BreachData):
    """A promise that was broken, with its job."""

    job: Name
    job_id: JobId


class ForecastData(Shape):
    """A promise that will be broken, or may be."""

    promise: Annotated[str, Field(examples=["finish_by"])]
    instant: Moment
    due_at: Moment
    is_certain: Flag
    text: Text


class JobSummaryData(Shape):
    """A job as a list tells of it."""

    name: Name
    id: JobId
    status: Annotated[
        str,
        Field(
            description="enabled, running, paused, disabled, waits, parked, over, or no node can run it.",
            examples=["enabled"],
        ),
    ]
    unknown_target: Text | None
    parked_reason: Text | None
    definition_error: Text | None
    schedule: Annotated[str, Field(examples=["cron: 30 2 * * 1-5; tz=Europe/Berlin"])]
    schedule_type: Annotated[str, Field(examples=["cron"])]
    schedule_words: Annotated[str, Field(examples=["at 02:30 on Monday through Friday"])]
    next_run: Moment | None
    last_run: Moment | None
    last_result: Annotated[str | None, Field(description="completed, failed or canceled.", examples=["completed"])]
    run_count: Count
    last_error: Annotated[str | None, Field(description="Hidden from viewers.", examples=["KeyError: 'id'"])]
    owner: Annotated[str, Field(examples=["code:shop"])]
    version: Version
    tags: list[Annotated[str, Field(examples=["crm"])]]
    is_active: Flag
    is_paused: Flag
    is_enabled: Flag
    is_running: Flag
    broken_promises: list[BreachData]
    waits: Text | None
    record: Annotated[
        dict[str, Any] | None,
        Field(description="With `with=record`: the definition and state as the store has them.", examples=[None]),
    ] = None


class PauseData(Shape):
    """A pause that holds."""

    since: Moment
    until: Moment | None
    missed: Annotated[str, Field(examples=["skip"])]
    reason: Text
    by: By


class TaskData(Shape):
    """A task of a job."""

    name: Annotated[str, Field(examples=["dump"])]
    after: list[Annotated[str, Field(examples=["extract"])]]
    target: Annotated[str, Field(examples=["shop.jobs:dump"])]


class PromiseData(Shape):
    """What a job promises."""

    promise: Annotated[str, Field(examples=["start_by"])]
    promised: Json
    is_broken: Flag


class JobDetailsData(JobSummaryData):
    """One job, whole."""

    description: Text
    next_runs: list[Moment]
    decided_through: Moment
    pause: PauseData | None
    templates: Annotated[
        dict[str, Any] | None, Field(examples=[{"names": ["nightly"], "parts": {"schedule": "nightly"}}])
    ]
    tasks: list[TaskData]
    policies: Annotated[
        dict[str, Any],
        Field(examples=[{"priority": {"value": 5, "set_by": "job"}}], description="Those that were set."),
    ]
    proposals: list[Annotated[str, Field(examples=["3f2a1b2c"])]]
    promises: list[PromiseData]
    forecasts: list[ForecastData]
    breaches: list[BreachData]


class EditedData(Shape):
    """The version of a job after a change."""

    version: Version


class UpcomingData(Shape):
    """One of the next runs. `asked_for` is the id of a run that a person or program asked for."""

    at: Moment
    job: Name
    moved_from: Moment | None
    asked_for: OccurrenceId | None
    mark: Annotated[str | None, Field(description="moved, amended, rescheduled or skipped.", examples=["moved"])]
    detail: Text
    instant: Moment | None
    queue: Annotated[str | None, Field(description="Its own, where it was amended.", examples=["night"])]


class UndoneData(Shape):
    """What was taken back."""

    undone: list[Annotated[str, Field(examples=["skip"])]]


class JobPromiseData(Shape):
    """A promise and where it stands."""

    job: Name
    job_id: JobId
    promise: Annotated[str, Field(examples=["start_by"])]
    judged_through: Moment
    check_at: Moment | None
    is_broken: Flag
    state: Table


class ScheduleData(Shape):
    """A schedule, in the shape that other tools know."""

    name: Name
    kind: Annotated[str, Field(examples=["cron"])]
    cron_spec: Annotated[str, Field(description="The text of the schedule.", examples=["30 2 * * 1-5"])]
    next_run_at: Moment | None
    last_run_at: Moment | None
    enabled: Flag


class ClockChangeData(Shape):
    """An instant that a change of the clock moves, drops or repeats."""

    what: Annotated[str, Field(examples=["gap"])]
    wall: Annotated[str, Field(examples=["2027-03-28T02:30:00"])]
    at: Moment | None
    rule: Annotated[str, Field(examples=["fire_after"])]


class ExplainedScheduleData(Shape):
    """A schedule in words, with the instants around now."""

    schedule: Annotated[str, Field(examples=["cron: 30 2 * * 1-5"])]
    words: Annotated[str, Field(examples=["at 02:30 on Monday through Friday"])]
    previous: list[Moment]
    next: list[Moment]
    clock_changes: list[ClockChangeData]
    note: Text


# -------------------------------------------------------------------------------------------------------- occurrences


class OccurrenceData(Shape):
    """One run of a job, or one instant that did not run and has no attempts."""

    id: OccurrenceId
    job: Name
    job_id: JobId
    scheduled_for: Moment
    status: Status
    cause: Cause
    late: Flag
    started_at: Moment | None
    ended_at: Moment | None
    node: Annotated[str | None, Field(examples=["web-1"])]
    owner: Annotated[str | None, Field(description="The node that holds it now.", examples=["web-1"])]
    error: Annotated[str | None, Field(description="Hidden from viewers.", examples=["KeyError: 'id'"])]
    reason: Text | None
    replay_of: OccurrenceId | None
    version: Version
    covers_after: Moment | None
    covers_through: Moment | None
    line_at: Moment | None
    ready_at: Moment | None
    fence: Count
    overrides: Annotated[
        dict[str, Any], Field(description="Its own payload and policies. Hidden from viewers.", examples=[{}])
    ]
    created_at: Moment | None
    updated_at: Moment | None


class ListedOccurrenceData(OccurrenceData):
    """An entry of the history."""

    broken_promises: list[Annotated[str, Field(examples=["start_by"])]]


class AttemptData(Shape):
    """One try at a task."""

    task: Annotated[str, Field(examples=["dump"])]
    attempt: Annotated[int, Field(examples=[1])]
    status: Annotated[str, Field(examples=["success"])]
    started_at: Moment | None
    ended_at: Moment | None
    node: Annotated[str | None, Field(examples=["web-1"])]
    error: Annotated[str | None, Field(description="Hidden from viewers.", examples=["KeyError: 'id'"])]
    progress: Annotated[list[Any] | None, Field(description="Done, total and a text.", examples=[[3, 10, "rows"]])]
    log: Annotated[
        dict[str, Any] | None,
        Field(description="Where its output is.", examples=[{"node": "web-1", "path": "a/1.log"}]),
    ]
    handed_to: Annotated[
        str | None,
        Field(description="The engine that carries it out, and its id there.", examples=["celery:attempt_1"]),
    ]
    run_id: Annotated[str, Field(examples=["run_1"])]
    created_at: Moment | None


class WholeOccurrenceData(OccurrenceData):
    """One occurrence with its payload, its results, its tasks and their attempts."""

    payload: Json
    result: Json
    results: Table
    attempts: list[AttemptData]
    runs: list[Annotated[dict[str, Any], Field(examples=[{"task": "dump", "status": "success"}])]]


class AskedData(Shape):
    """The id of the occurrence that was asked for. It exists once a node has planned it."""

    id: OccurrenceId


class IdsData(Shape):
    """Ids of occurrences."""

    ids: list[OccurrenceId]


class ExplanationData(Shape):
    """What became of one instant of a job, or will, and why."""

    job: Name
    at: Moment
    verdict: Annotated[str, Field(examples=["skipped by overlap"])]
    text: Text
    occurrence: OccurrenceId | None
    behind: OccurrenceId | None
    moved_to: Moment | None
    previous: Moment | None
    next: Moment | None
    broken_promises: list[Annotated[str, Field(examples=["start_by"])]]
    forecasts: list[Text]
    evidence: Table


# ----------------------------------------------------------------------------------------------------------- versions


class PartChangeData(Shape):
    """One part of a definition that differs."""

    part: Annotated[str, Field(examples=["schedule"])]
    old: Annotated[str, Field(examples=["0 2 * * *"])]
    new: Annotated[str, Field(examples=["0 3 * * *"])]


class JobVersionData(Shape):
    """One version of a job."""

    version: Version
    edited_at: Moment | None
    by: By
    in_force_after: Moment | None
    is_in_force: Flag
    is_coming: Flag
    follows: Version | None
    rollout: Rollout
    is_on_trial: Flag
    schedule: Annotated[str, Field(examples=["cron: 0 3 * * *"])]
    changes: list[PartChangeData]
    job: Annotated[dict[str, Any], Field(description="The whole definition.", examples=[{}])]


class RolloutData(Shape):
    """The trial of a version; null if none is on trial."""

    rollout: Annotated[
        dict[str, Any] | None, Field(examples=[{"version": 3, "in_force": 2, "rollout": "rollout 10%", "well": 4}])
    ]


class RunsData(Shape):
    """The runs to come that a change adds, removes, keeps and moves."""

    runs: Annotated[
        dict[str, Any] | None,
        Field(examples=[{"added": ["2026-11-18T03:00:00Z"], "removed": [], "kept": [], "moved": []}]),
    ]
    runs_through: Moment | None
    tasks: Table = Field(default_factory=dict)
    rollout: Rollout = None
    in_force_after: list[Moment] = Field(default_factory=list)


class DifferenceData(RunsData):
    """What differs between two versions of a job, and what that means for the runs to come."""

    job: Name
    old: Version
    new: Version
    changes: list[PartChangeData]


class JobChangeData(RunsData):
    """The change of one job."""

    job: Name
    change: Annotated[str, Field(description="new, changed, gone, unchanged or kept.", examples=["changed"])]
    parts: list[Annotated[str, Field(examples=["schedule"])]]
    version: Version | None
    plan: Annotated[str, Field(examples=["64a1c2d3e4f50-0123456789abcdef"])]


class PreviewData(Shape):
    """What would change. `plan` lets a later request store exactly this, or nothing."""

    plan: Annotated[str, Field(examples=["64a1c2d3e4f50-0123456789abcdef"])]
    changes: list[JobChangeData]
    refusals: Annotated[
        list[str], Field(description="Why a document is not stored: jobs that belong to others.", examples=[[]])
    ]


class MistakeData(Shape):
    """A mistake or a warning in a document of jobs."""

    line: Count
    column: Count
    message: Text
    is_warning: Flag


class ValidatedData(Shape):
    """Whether a document of jobs can be stored, and every mistake and warning in it."""

    jobs: list[Name]
    mistakes: list[MistakeData]
