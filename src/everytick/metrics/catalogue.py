"""Every metric: its name, its kind, its labels and what it says. Nothing else is ever written.

The names that begin with `scheduler_` are those of other schedulers' contracts and stay as they are, also where
Prometheus would name them otherwise: a gauge that ends in `_total`, a timestamp without its unit.
"""

from everytick.domain.values import value


@value(frozen=True)
class Metric:
    """One metric. `labels` are those of each of its series."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


_ROWS = (
    # Counted by this node, since its process began.
    ("everytick_occurrences_total", "counter", "job status cause", "Occurrences that ended here."),
    ("everytick_attempts_total", "counter", "job outcome", "Attempts that ended here."),
    ("everytick_occurrence_duration_seconds", "histogram", "job", "How long occurrences ran."),
    ("everytick_schedule_delay_seconds", "histogram", "job", "Start minus scheduled time."),
    ("everytick_claim_delay_seconds", "histogram", "", "How long occurrences were ready before this node began them."),
    ("everytick_instants_skipped_total", "counter", "job reason", "Instants that this node decided not to run."),
    ("everytick_occurrences_lost_total", "counter", "job", "Occurrences that were taken over from a silent node."),
    ("everytick_duplicate_runs_total", "counter", "job", "Runs that another node has recorded too."),
    ("everytick_store_operation_duration_seconds", "histogram", "operation", "How long the store took to answer."),
    ("everytick_store_operation_failures_total", "counter", "operation", "Questions the store did not answer."),
    ("everytick_build_info", "gauge", "version python zone_data", "Always 1: which everytick this is."),
    # Read from the store: every node of the store says the same. Take the maximum, not the sum.
    ("everytick_store_up", "gauge", "", "Whether the store answered this scrape."),
    ("everytick_occurrences_in_progress", "gauge", "job", "Occurrences that run now."),
    ("everytick_occurrences_awaiting_retry", "gauge", "job", "Occurrences between two attempts."),
    ("everytick_occurrences_waiting", "gauge", "job", "Occurrences that are ready and wait for a slot or a limit."),
    ("everytick_queue_depth", "gauge", "queue", "Occurrences of a queue that are ready and wait."),
    ("everytick_queue_oldest_wait_seconds", "gauge", "queue", "How long the first of them has waited."),
    ("everytick_job_last_success_timestamp_seconds", "gauge", "job", "When the last successful run ended."),
    ("everytick_job_next_run_timestamp_seconds", "gauge", "job", "When the job runs next."),
    ("everytick_job_paused", "gauge", "job", "1 while the job is paused."),
    ("everytick_promises_broken", "gauge", "job promise", "1 while a promise of the job is broken."),
    ("everytick_nodes_alive", "gauge", "", "Nodes that were heard of lately."),
    ("everytick_node_heartbeat_timestamp_seconds", "gauge", "node", "When a node was last heard of."),
    ("everytick_node_slots", "gauge", "node", "Slots of a living node."),
    ("everytick_node_slots_taken", "gauge", "node", "Occurrences that a node holds."),
    ("everytick_definition_errors", "gauge", "file", "Mistakes in a job file that a living node cannot read."),
    # The names of S0-105 to S0-107.
    ("scheduler_jobs_running_total", "gauge", "", "Occurrences that run now."),
    ("scheduler_jobs_in_queue_total", "gauge", "", "Occurrences that wait for a slot."),
    ("scheduler_jobs_paused_total", "gauge", "", "Jobs that are paused."),
    ("scheduler_job_execution_duration_seconds", "histogram", "job", "How long occurrences ran."),
    ("scheduler_task_execution_duration_seconds", "histogram", "job task", "How long attempts at a task ran."),
    ("scheduler_task_attempts_total", "counter", "job task status", "Attempts: success, failure or timeout."),
    ("scheduler_job_occurrences_total", "counter", "job status", "Occurrences: completed, failed, canceled, skipped."),
    ("scheduler_recovery_runs_total", "counter", "job strategy", "Late instants, by what recovery made of them."),
    # The names of S3-028. A schedule is a job here.
    ("scheduler_runs_total", "counter", "schedule_id status", "Runs that ended here."),
    ("scheduler_run_duration_seconds", "histogram", "schedule_id", "How long runs took."),
    ("scheduler_last_run_timestamp", "gauge", "schedule_id", "When the last run here began."),
    ("scheduler_next_run_timestamp", "gauge", "schedule_id", "When the schedule runs next."),
    ("scheduler_lock_failures_total", "counter", "schedule_id", "Plans that came too late: another node was faster."),
)

METRICS = {name: Metric(name, kind, tuple(labels.split()), help_) for name, kind, labels, help_ in _ROWS}
"""All metrics by name."""
