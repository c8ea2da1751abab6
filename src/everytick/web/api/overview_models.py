"""The shapes of answers about many occurrences at once: counts, windows, lengths, failures, coverage."""

from typing import Annotated

from pydantic import Field

from everytick.web.api.shapes import (
    Cause,
    Count,
    Day,
    Flag,
    JobId,
    Moment,
    Name,
    OccurrenceId,
    Seconds,
    Shape,
    Status,
    Text,
)


class TallyData(Shape):
    """How many occurrences stand in each status."""

    counts: Annotated[dict[str, int], Field(examples=[{"completed": 40, "failed": 2}])]
    is_estimated: Flag
    total: Count


class GlanceData(Shape):
    """One occurrence at a glance."""

    id: OccurrenceId
    job_id: JobId
    scheduled_for: Moment
    status: Status
    cause: Cause
    late: Flag
    started_at: Moment | None
    ended_at: Moment | None
    why: Annotated[str, Field(description="Of a failure, its headline: hidden from viewers.", examples=["on time"])]
    node: Annotated[str | None, Field(examples=["web-1"])]


class WindowData(Shape):
    """Occurrences at a glance, newest first."""

    runs: list[GlanceData]
    is_cut: Flag


class BucketData(Shape):
    """How many occurrences one step of time has."""

    at: Moment
    group: Annotated[str, Field(examples=["crm"])]
    tally: TallyData


class LengthsData(Shape):
    """How long a job usually takes."""

    count: Count
    p5: Seconds
    p50: Seconds
    p95: Seconds


class DayTallyData(Shape):
    """How one UTC day ended."""

    day: Day
    tally: TallyData
    took: Seconds | None


class FailureData(Shape):
    """Failures of one kind."""

    fingerprint: Annotated[str, Field(description="Hidden from viewers.", examples=["8a61c5c1"])]
    headline: Annotated[str, Field(description="Hidden from viewers.", examples=["KeyError: 'id'"])]
    count: Count
    job_ids: list[JobId]
    first_at: Moment
    last_at: Moment
    last_id: OccurrenceId


class CoverageSpanData(Shape):
    """Instants in a row that stand alike."""

    after: Moment
    through: Moment
    state: Annotated[str, Field(description="done, twice, under_way, missing or unknown.", examples=["missing"])]
    count: Count
    why: Text
    ids: list[OccurrenceId]


class CoverageData(Shape):
    """Which instants of a job are done, missing, under way or done twice; unknown is what history no longer tells."""

    job: Name
    after: Moment
    through: Moment
    spans: list[CoverageSpanData]
    is_cut: Flag


WallTime = Annotated[str, Field(description="On the clock of the zone.", examples=["2026-03-29T02:00:00"])]


class QuarterData(Shape):
    """How many starts are planned in 15 minutes."""

    at: Moment
    starts: Count


class CrowdData(Shape):
    """An instant that several jobs share. `jobs` names 100 of them."""

    at: Moment
    starts: Count
    jobs: list[Name]
    waiting: Annotated[int, Field(description="How many of them wait for a slot.", examples=[0])]
    longest: Annotated[float, Field(description="How long the last one waits, in seconds.", examples=[0.0])]


class ConcernedJobsData(Shape):
    """Jobs that a change of the clock concerns in one way. `jobs` names 100 of them."""

    fate: Annotated[str, Field(description="What becomes of their instants.", examples=["skipped"])]
    rule: Annotated[str, Field(description="The rule of the schedule that says so.", examples=["dst_gap=skip"])]
    count: Count
    jobs: list[Name]


class ZoneChangeData(Shape):
    """A change of the clock of one zone: it skips, or with `is_fold` repeats, the times from `first` to `last`."""

    zone: Annotated[str, Field(examples=["Europe/Berlin"])]
    at: Moment
    first: WallTime
    last: WallTime
    is_fold: Flag
    concerned: list[ConcernedJobsData]


class AgendaData(Shape):
    """The planned starts of all jobs. Quarters without a start are left out."""

    now: Moment
    through: Moment
    slots: Annotated[int, Field(description="Of the living nodes.", examples=[50])]
    starts: Count
    quarters: list[QuarterData]
    crowds: list[CrowdData]
    changes: list[ZoneChangeData]
    uncounted: Annotated[int, Field(description="Jobs that are left out.", examples=[0])]
