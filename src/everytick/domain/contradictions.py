"""Policies that contradict each other are refused when a job is defined; surprising ones give a warning."""

from collections.abc import Iterator
from datetime import timedelta

from everytick.domain.config import Settings
from everytick.domain.durations import format_duration
from everytick.domain.policies import LateOverlap, OnStoreOutage, Overlap, Strategy
from everytick.errors import InvalidPolicies


def refuse_contradictions(job: str, settings: Settings, task: str = "") -> None:
    """Return if the settings of a job, or of one of its tasks, can hold together."""
    whose = f"task '{task}': " if task else ""
    if settings.retry is not None and settings.retry.superseded_by_next and settings.overlap is Overlap.ALLOW:
        raise InvalidPolicies(
            job,
            f"{whose}superseded_by_next gives way to the next instant, and overlap allow runs both",
            ('overlap="queue_latest", to run one at a time', "superseded_by_next=False, to go on retrying"),
        )
    if settings.on_store_outage is OnStoreOutage.FIRE_LOCAL and settings.overlap is not Overlap.ALLOW:
        raise InvalidPolicies(
            job,
            f"on_store_outage fire_local cannot see what runs elsewhere, so it cannot keep overlap {settings.overlap}",
            (
                'overlap="allow", if two at once do no harm',
                'on_store_outage="wait", to catch up when the store is back',
            ),
        )
    if settings.on_store_outage is OnStoreOutage.FIRE_LOCAL and settings.depends_on:
        raise InvalidPolicies(
            job,
            f"{whose}on_store_outage fire_local cannot see whether other jobs have succeeded, as depends_on asks",
            ('on_store_outage="wait", to catch up when the store is back', "no depends_on"),
        )
    if settings.start is not None and settings.end is not None and settings.end < settings.start:
        raise InvalidPolicies(
            job,
            f"end {settings.end.isoformat()} comes before start {settings.start.isoformat()}",
            ("an end after the start", "no end"),
        )
    _refuse_promises(job, settings)


def _refuse_promises(job: str, settings: Settings) -> None:
    """Return if the promises can be kept at all."""
    start_by, finish_by = settings.start_by, settings.finish_by
    if start_by is not None and settings.jitter is not None and settings.jitter >= start_by:
        raise InvalidPolicies(
            job,
            f"start_by {format_duration(start_by)} cannot be kept: jitter delays a start by up to "
            f"{format_duration(settings.jitter)}",
            ("a start_by that is longer than jitter", "a shorter jitter"),
        )
    if start_by is not None and isinstance(finish_by, timedelta) and finish_by <= start_by:
        raise InvalidPolicies(
            job,
            f"finish_by {format_duration(finish_by)} leaves no time after start_by {format_duration(start_by)}",
            ("a finish_by that is longer than start_by", "finish_by alone"),
        )


def surprises(settings: Settings) -> Iterator[str]:
    """Give a sentence for each combination that is allowed but rarely meant."""
    if settings.recovery.strategy is Strategy.EXECUTE_ALL and settings.late_overlap is LateOverlap.SKIP:
        yield (
            "recovery execute_all with late_overlap skip runs only the oldest late instant and skips the others; "
            'late_overlap="queue" runs them one after another'
        )
