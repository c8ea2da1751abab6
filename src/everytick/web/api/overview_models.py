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
    state: Annotated[str, Field(description="done, twice, under_way or missing.", examples=["missing"])]
    count: Count
    why: Text
    ids: list[OccurrenceId]


class CoverageData(Shape):
    """Which instants of a job are done, missing, under way or done twice."""

    job: Name
    after: Moment
    through: Moment
    spans: list[CoverageSpanData]
    is_cut: Flag
