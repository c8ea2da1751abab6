"""The series of what this node has counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from everytick.domain.statuses import AttemptStatus, OccurrenceStatus

if TYPE_CHECKING:
    from everytick.metrics.text import Series
    from everytick.node.meter import JobCounts, Meter

_O, _A = OccurrenceStatus, AttemptStatus

_END_WORDS = {
    _O.COMPLETED: "completed",
    _O.COMPLETED_WITH_ERRORS: "completed",
    _O.FAILED: "failed",
    _O.FAILED_STALE: "failed",
    _O.CANCELED: "canceled",
    _O.SKIPPED: "skipped",
    _O.MISSED: "skipped",
    _O.SUPERSEDED: "skipped",
}
"""The four words of S0-107 for our statuses."""

_ATTEMPT_WORDS = {_A.SUCCESS: "success", _A.FAILED: "failure", _A.LOST: "failure", _A.TIMEOUT: "timeout"}
"""The three words of S0-107. An attempt that was canceled is in none of them."""


def write_node(series: Series, meter: Meter) -> None:
    """Add everything that the meter has counted."""
    meter.asked()
    for counts in list(meter.jobs):
        _write_job(series, counts)
    series.histogram("everytick_claim_delay_seconds", meter.all_claims())
    for verb, lengths in sorted(meter.operations.items()):
        series.histogram("everytick_store_operation_duration_seconds", lengths, verb)
    for verb, number in sorted(meter.failures.items()):
        series.add("everytick_store_operation_failures_total", number, verb)


def _write_job(series: Series, counts: JobCounts) -> None:
    job = counts.name
    _write_ends(series, counts)
    _write_attempts(series, counts)
    for reason, number in sorted(counts.skipped.items()):
        series.add("everytick_instants_skipped_total", number, job, reason)
    for strategy, number in sorted(counts.recovered.items()):
        series.add("scheduler_recovery_runs_total", number, job, strategy)
    lengths = counts.all_lengths()
    for name in ("everytick_occurrence_duration_seconds", "scheduler_job_execution_duration_seconds"):
        series.histogram(name, lengths, job)
    series.histogram("scheduler_run_duration_seconds", lengths, job)
    series.histogram("everytick_schedule_delay_seconds", counts.all_delays(), job)
    for task, task_lengths in sorted(counts.all_task_lengths().items()):
        series.histogram("scheduler_task_execution_duration_seconds", task_lengths, job, task)
    series.add("scheduler_lock_failures_total", counts.stale, job)
    for name, number in (
        ("everytick_duplicate_runs_total", counts.duplicates),
        ("everytick_occurrences_lost_total", counts.lost),
    ):
        if number:
            series.add(name, number, job)
    if counts.last_run is not None:
        series.add("scheduler_last_run_timestamp", counts.last_run.timestamp(), job)


def _write_ends(series: Series, counts: JobCounts) -> None:
    words: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for (status, cause), number in sorted(counts.all_ends().items(), key=str):
        series.add("everytick_occurrences_total", number, counts.name, status, "" if cause is None else cause)
        words[_END_WORDS[status]] += number
        runs[status] += number
    for word, number in sorted(words.items()):
        series.add("scheduler_job_occurrences_total", number, counts.name, word)
    for status_word, number in sorted(runs.items()):
        series.add("scheduler_runs_total", number, counts.name, status_word)


def _write_attempts(series: Series, counts: JobCounts) -> None:
    outcomes: Counter[str] = Counter()
    words: Counter[tuple[str, str]] = Counter()
    for (task, outcome), number in sorted(counts.all_attempts().items()):
        outcomes[outcome] += number
        word = _ATTEMPT_WORDS.get(AttemptStatus(outcome))
        if word is not None:
            words[task, word] += number
    for outcome, number in sorted(outcomes.items()):
        series.add("everytick_attempts_total", number, counts.name, outcome)
    for (task, word), number in sorted(words.items()):
        series.add("scheduler_task_attempts_total", number, counts.name, task, word)
