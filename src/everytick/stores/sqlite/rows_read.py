"""Rows of statements in queries.sql, with their columns by name.

The names fill the select: a statement says «due_job» where the columns of a `DueJob` belong. So a row has the columns
of its class in their order, whatever changes. The columns of claims stand in `claims.py`, which reads them.
"""

from typing import NamedTuple


class DueJob(NamedTuple):
    """Where a job stands, in the columns that its snapshot is made from."""

    job_key: int
    id: str
    version: int
    oldest_version: int
    revision: int
    woken: int
    watermark: int
    wake_at: int | None
    retire_at: int | None
    reschedule_made_at: int | None
    reschedule_for: int
    reschedule_by: str
    last_end_scheduled_for: int
    last_end_started_at: int | None
    last_end_at: int | None
    last_end_id: bytes
    last_success_scheduled_for: int
    last_success_started_at: int | None
    last_success_at: int | None
    last_success_id: bytes
    other_success_scheduled_for: int
    other_success_started_at: int | None
    other_success_at: int | None
    other_success_id: bytes
    narrowed_at: int | None
    stopped_at: int | None
    is_needed: int


class PlannedJob(NamedTuple):
    """What the commit of a plan reads of its job: `revision` and `plan_token` say whether the plan may be written."""

    id: str
    job_key: int
    revision: int
    watermark: int
    version: int
    oldest_version: int
    plan_token: int


class ActiveRow(NamedTuple):
    """An active occurrence of a job. It tells of all busy ones, or all that wait, how many there are and whether all
    are awaited. A hidden one only tells that."""

    job_key: int
    id: bytes
    line_at: int
    scheduled_for: int
    status: int
    cause: int
    superseded_by_next: int
    late: int
    all_awaited: int
    total: int
    hidden: int
