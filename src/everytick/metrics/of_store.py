"""The series of what the store holds now: a few bounded questions, the same from every node."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from everytick.domain.lookups import Breaches
from everytick.domain.notices import OWNER as NOTICES
from everytick.domain.proposals import OWNER as PROPOSALS
from everytick.domain.questions import Counts, WaitingInQueues
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value
from everytick.node.meter import OTHER
from everytick.stores.base import HistoryFilter, Nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from everytick.domain.occurrence import Occurrence
    from everytick.domain.promises import BreachRecord
    from everytick.domain.questions import QueueWait, Tally
    from everytick.metrics.text import Series
    from everytick.node.meter import Meter
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord, NodeRecord

_O = OccurrenceStatus
_MOST_SEEN = 1_000
"""Most waiting and running occurrences that are told apart by job. The totals count all of them."""

_MOST_FILES, _MOST_NODES, _MOST_QUEUES = 100, 200, 200


@value
class StoreReading:
    """What the store holds at one moment."""

    now: datetime
    records: Sequence[JobRecord]
    nodes: Sequence[NodeRecord]
    open: Sequence[Occurrence]
    tally: Tally
    waits: Sequence[QueueWait]
    breaches: Sequence[BreachRecord]


async def read_store(store: AnyStore, records: Sequence[JobRecord] | None = None) -> StoreReading:
    """Ask the store for everything that is written of it; for the jobs only if they are not given."""
    standing = (_O.PENDING, _O.RUNNING, _O.AWAITING_RETRY)
    ends = [
        (await store.history(HistoryFilter(statuses=(status,), limit=_MOST_SEEN))).occurrences for status in standing
    ]
    jobs = await store.list() if records is None else records
    return StoreReading(
        await store.now(),
        [record for record in jobs if record.job.owner not in (NOTICES, PROPOSALS)],
        await store.ask(Nodes()),
        [occurrence for some in ends for occurrence in some],
        await store.ask(Counts()),
        await store.ask(WaitingInQueues()),
        await store.ask(Breaches(is_open=True, limit=_MOST_SEEN)),
    )


def write_store(series: Series, reading: StoreReading, meter: Meter, silence: timedelta) -> None:
    """Add what the store holds. `silence` is after which a node no longer counts as alive."""
    labels = meter.labels((record.job.id, record.job.name) for record in reading.records)
    _write_totals(series, reading)
    _write_open(series, reading, labels)
    _write_queues(series, reading)
    _write_jobs(series, reading.records, labels)
    for record in reading.breaches:
        series.add("everytick_promises_broken", 1, labels.get(record.job_id, record.job), record.breach.kind)
    _write_nodes(series, reading, silence)


def _is_ready(occurrence: Occurrence, now: datetime) -> bool:
    return (occurrence.ready_at or occurrence.scheduled_for) <= now


def _write_totals(series: Series, reading: StoreReading) -> None:
    counted = dict(reading.tally.counts)
    pending = [occurrence for occurrence in reading.open if occurrence.status is _O.PENDING]
    later = sum(not _is_ready(occurrence, reading.now) for occurrence in pending)
    # A tally that is estimated looks at the newest occurrences alone: what runs or waits may be older than those.
    running = sum(occurrence.status is _O.RUNNING for occurrence in reading.open)
    waiting = sum(wait.count for wait in reading.waits)
    series.add("scheduler_jobs_running_total", max(counted.get(_O.RUNNING, 0), running))
    series.add("scheduler_jobs_in_queue_total", max(counted.get(_O.PENDING, 0) - later, waiting))
    series.add("scheduler_jobs_paused_total", sum(record.pause is not None for record in reading.records))


_OPEN = {
    _O.RUNNING: "everytick_occurrences_in_progress",
    _O.AWAITING_RETRY: "everytick_occurrences_awaiting_retry",
    _O.PENDING: "everytick_occurrences_waiting",
}


def _write_open(series: Series, reading: StoreReading, labels: Mapping[str, str]) -> None:
    counted = Counter(
        (_OPEN[occurrence.status], labels.get(occurrence.job_id, ""))
        for occurrence in reading.open
        if occurrence.status is not _O.PENDING or _is_ready(occurrence, reading.now)
    )
    # A job without any says 0, so that a graph has no holes and `absent()` no false alarm.
    for name in _OPEN.values():
        for label in sorted({*labels.values(), *(job for of, job in counted if of == name)}):
            series.add(name, counted[name, label], label)


def _write_queues(series: Series, reading: StoreReading) -> None:
    waits = {wait.queue: wait for wait in reading.waits}
    served = {queue for node in reading.nodes if node.facts is not None for queue in node.facts.queues}
    named = {record.job.settings.queue for record in reading.records} - served
    # Those that only an amendment names come last: an operator can make up any number of them.
    queues = [*sorted(served), *sorted(named), *sorted(waits.keys() - served - named)]
    depths, oldest = Counter[str](), dict[str, float]()
    for place, queue in enumerate(queues):
        label = queue if place < _MOST_QUEUES else OTHER
        wait = waits.get(queue)
        depths[label] += 0 if wait is None else wait.count
        seconds = 0.0 if wait is None else (reading.now - wait.since).total_seconds()
        oldest[label] = max(oldest.get(label, 0.0), seconds)
    for label, depth in sorted(depths.items()):
        series.add("everytick_queue_depth", depth, label)
        series.add("everytick_queue_oldest_wait_seconds", oldest[label], label)


def _write_jobs(series: Series, records: Iterable[JobRecord], labels: Mapping[str, str]) -> None:
    """Add the moments of each job. Of the jobs that share a label: the latest success, the next run, any pause."""
    success, coming = dict[str, float](), dict[str, float]()
    paused: Counter[str] = Counter()
    for record in records:
        label = labels[record.job.id]
        paused[label] += record.pause is not None
        if record.last_success is not None:
            success[label] = max(success.get(label, 0.0), record.last_success.ended_at.timestamp())
        if record.next_run is not None:
            coming[label] = min(coming.get(label, float("inf")), record.next_run.timestamp())
    for label, number in sorted(paused.items()):
        series.add("everytick_job_paused", number, label)
    for label, at in sorted(success.items()):
        series.add("everytick_job_last_success_timestamp_seconds", at, label)
    for label, at in sorted(coming.items()):
        series.add("everytick_job_next_run_timestamp_seconds", at, label)
        series.add("scheduler_next_run_timestamp", at, label)


def _write_nodes(series: Series, reading: StoreReading, silence: timedelta) -> None:
    alive = [node for node in reading.nodes if node.is_alive(reading.now, silence)]
    series.add("everytick_nodes_alive", len(alive))
    heard = sorted((node for node in reading.nodes if node.beats), key=lambda node: node.beat_at, reverse=True)
    for node in heard[:_MOST_NODES]:
        series.add("everytick_node_heartbeat_timestamp_seconds", node.beat_at.timestamp(), node.id)
    mistakes: dict[str, int] = {}
    for node in alive[:_MOST_NODES]:
        if node.facts is not None:
            series.add("everytick_node_slots", node.facts.slots, node.id)
            series.add("everytick_node_slots_taken", node.holds, node.id)
            mistakes.update((file, len(text.split("\n"))) for file, text in node.facts.broken_files)
    for file, number in sorted(mistakes.items())[:_MOST_FILES]:
        series.add("everytick_definition_errors", number, file)
