"""The shapes of answers about the whole fleet: nodes, limits, backfills, proposals."""

from typing import Annotated

from pydantic import Field

from everytick.web.api.shapes import (
    By,
    Count,
    Flag,
    JobId,
    Moment,
    Name,
    OpenShape,
    Seconds,
    Shape,
    Table,
    Text,
)


class NodeData(OpenShape):
    """A node, with the facts that it told."""

    id: Annotated[str, Field(examples=["web-1"])]
    status: Annotated[str, Field(description="alive, silent or stopped.", examples=["alive"])]
    heard_at: Moment
    holds: Count
    beats: Count
    overdue: Count


class ReportsData(Shape):
    """What living nodes report of job files that they cannot read, and of jobs that none can run."""

    files: Annotated[dict[str, str], Field(examples=[{"jobs/a.yaml": "3:7 is no schedule"}])]
    of_job: Annotated[dict[str, str], Field(examples=[{}])]
    unknown: Annotated[dict[str, str], Field(examples=[{}])]
    parked: Annotated[dict[str, str], Field(examples=[{}])]
    living: Count


class BrakeData(Shape):
    """From `since` on nothing starts. One that comes again has the schedules of its beginnings and its ends."""

    since: Moment
    until: Moment | None
    reason: Text
    by: By
    begins: Annotated[str | None, Field(examples=["cron: 0 16 * * fri"])]
    ends: Annotated[str | None, Field(examples=["cron: 0 6 * * mon"])]


class ReleaseData(Shape):
    """What waited for a brake starts at this rate."""

    since: Moment
    rate: Annotated[str | None, Field(examples=["60/1m"])]
    left: Count | None
    by: By


class ReachData(Shape):
    """A limit and the brakes of one reach, and how far they are used."""

    reach: Annotated[str, Field(examples=["tag:crm"])]
    most: Count | None
    rate: Annotated[str | None, Field(examples=["60/1m"])]
    reason: Text | None
    set_by: By | None
    set_at: Moment | None
    running: Count
    waiting: Count
    closed: Text
    opens_at: Moment | None
    brakes: list[BrakeData]
    release: ReleaseData | None


class LimitChangeData(Shape):
    """One change of a limit or a brake."""

    at: Moment
    reach: Annotated[str, Field(examples=["tag:crm"])]
    what: Annotated[str, Field(examples=["limit 5 at once"])]
    reason: Text
    by: By


class LimitsData(Shape):
    """The limits and brakes of the store."""

    reaches: list[ReachData]
    changes: list[LimitChangeData]
    now: Moment


class BackfillData(Shape):
    """A backfill and how far it has come."""

    id: Annotated[str, Field(examples=["backfill_3f2a1b2c"])]
    job: Name
    job_id: JobId
    status: Annotated[str, Field(examples=["running"])]
    after: Moment
    through: Moment
    again: Flag
    as_of: Annotated[str, Field(examples=["then"])]
    newest_first: Flag
    rate: Count
    pace: Count
    count: Count | None
    created: Count
    done: Count
    failed: Count
    canceled: Count
    running: Count
    waiting: Count
    left: Count | None
    seconds_to_go: Seconds | None
    reason: Text
    planned_at: Moment
    planned_by: By
    approved_at: Moment | None
    approved_by: By
    ended_at: Moment | None
    behind: Annotated[str | None, Field(examples=["backfill_0a1b2c3d"])]
    changed_by: By
    order: Table
    to_fill: Table


class PlannedBackfillData(Shape):
    """A backfill that was planned; `id` is null for a dry run, and where there was nothing to fill."""

    id: Annotated[str | None, Field(examples=["backfill_3f2a1b2c"])]
    job_id: JobId
    instants: list[Moment]
    more: Annotated[bool, Field(description="There are more than are listed.", examples=[False])]
    usual_length: Seconds | None


class ProposalData(Shape):
    """A change that waits for a second person."""

    id: Annotated[str, Field(examples=["3f2a1b2c"])]
    what: Annotated[str, Field(examples=["the removal of job 'pay'"])]
    jobs: list[Name]
    by: By
    at: Moment
    expires_at: Moment
    expired: Flag


class QueueData(Shape):
    """A queue: its occurrences, and the living nodes that serve it. `is_cut`: there are more than were counted."""

    queue: Annotated[str, Field(examples=["default"])]
    running: Count
    waiting: Count
    slots: Count
    nodes: Annotated[int, Field(examples=[2])]
    oldest: Annotated[Moment | None, Field(description="Since when the first of the waiting is ready.")]
    is_cut: Flag
