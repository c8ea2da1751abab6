"""The statements of the shared verbs by name: the same text for both stores, or one text in each store's own files.

Those that answer questions of pages stand in `questions.sql`, those that keep and read what occurrences add up to in
`rollups.sql`, and all others in `queries.sql` here and `cold.sql` there.
"""

from everytick.stores.queries import read_text
from everytick.stores.sql.statements import Dialect, Statement, Statements, bind_statements


class ColdQueries(Statements):
    """Every statement of the shared verbs. A name without its statement, or the reverse, is an error at import.

    A store may leave out those that may be None, where another statement does what they do.
    """

    newest_version: Statement
    keys_of_jobs: Statement
    revise: Statement
    foretell: Statement
    end_pause: Statement
    resume_pause: Statement
    add_pause: Statement
    reschedule_job: Statement
    undo_reschedule: Statement
    adjustment_at: Statement
    adjust: Statement
    decided_through: Statement
    undo_spans: Statement
    rewind_pauses: Statement
    told_ahead: Statement
    bring_told_back: Statement
    open_request: Statement
    key_use: Statement
    forget_asked_for: Statement
    hold_occurrence: Statement
    ask_owner_to_stop: Statement
    rename_job: Statement
    add_version: Statement
    version_at: Statement
    handle_of: Statement
    occurrences_of: Statement
    attempts_of: Statement
    handed_of: Statement
    spans_of: Statement
    spans_of_jobs: Statement
    missed_spans: Statement
    forget_attempts: Statement
    forget_runs: Statement
    forget_reports: Statement
    purge_requests: Statement
    purge_keys: Statement
    purge_adjustments: Statement
    purge_pauses: Statement
    purge_spans: Statement
    purge_versions: Statement
    purge_state: Statement
    purge_job: Statement
    leave: Statement
    hear: Statement
    forget_name_sets: Statement
    existing: Statement
    existing_between: Statement
    show_unreadable: Statement
    unreadable_jobs: Statement
    record_occurrence: Statement
    recorded_before: Statement
    owe_report: Statement
    record_run: Statement
    record_attempt: Statement
    record_ends: Statement
    record_success: Statement
    add_span: Statement
    hold_job: Statement
    held_of_job: Statement
    purgeable: Statement
    purge_occurrences: Statement
    nodes: Statement
    overdue: Statement
    held_by: Statement
    forget_nodes: Statement
    orphaned: Statement
    take_orphans: Statement
    note: Statement
    owed_reports: Statement
    reported: Statement
    wake: Statement
    put_back_in_line: Statement
    put_all_back_in_line: Statement
    let_waits_go: Statement
    rewind: Statement
    keep_request: Statement
    use_key: Statement
    occurrence_payload: Statement
    asked_for: Statement
    later_requests: Statement
    coming_of: Statement
    coming_of_keys: Statement
    forget_coming: Statement
    keep_coming: Statement
    purge_coming: Statement
    know_needs: Statement
    add_needs_of_active: Statement
    job_in_service: Statement
    forgotten_jobs: Statement
    lock_names: Statement
    named_jobs: Statement
    add_job: Statement
    add_state: Statement
    edit_job: Statement
    edit_state: Statement
    add_coming: Statement
    turn_state: Statement
    unpark: Statement
    edit_unclaimed: Statement
    remove_job: Statement
    retire_job: Statement
    add_name_set: Statement
    name_sets: Statement
    take_marks: Statement
    mark_undefined: Statement
    undefined_jobs: Statement
    hold_undefined: Statement
    jobs_by_id: Statement
    jobs_by_name: Statement
    parked_jobs: Statement
    bring_retries_back: Statement
    bring_runs_back: Statement
    bring_waiting_back: Statement
    was_ahead: Statement
    wake_jobs_ahead: Statement
    jobs_ahead: Statement
    history_page: Statement
    history_page_of: Statement
    history_page_active: Statement
    history_page_active_of: Statement
    runs_of: Statement
    keep_promise: Statement
    withdraw_breaches: Statement
    drop_promises: Statement
    recheck_promises: Statement
    bring_promises_back: Statement
    promises_due: Statement
    promised_runs: Statement
    promised_spans: Statement
    hold_promises: Statement
    settle_promise: Statement
    write_breach: Statement
    forget_breaches: Statement
    owed_breaches: Statement
    tell_breach: Statement
    promise_records: Statement
    breach_records: Statement
    purge_promises: Statement
    purge_breaches: Statement
    hold_dependencies: Statement
    dependencies_of: Statement
    forget_dependencies: Statement
    add_dependency: Statement
    need_jobs: Statement
    dependencies_above: Statement
    names_in_service: Statement
    upstreams: Statement
    deleted_upstreams: Statement
    places_in_line: Statement
    own_runs: Statement
    runs_at: Statement
    backfill_of_key: Statement
    backfill_of_id: Statement
    count_open_backfills: Statement
    add_backfill: Statement
    approve_backfill: Statement
    stop_backfill: Statement
    show_backfill: Statement
    hide_backfill: Statement
    unclaimed_fills: Statement
    open_backfills: Statement
    recent_fills: Statement
    trial_counts: Statement
    existing_fills: Statement
    existing_fills_back: Statement
    newest_past_versions: Statement
    add_fill: Statement
    move_backfill: Statement
    list_backfills: Statement
    count_fills: Statement
    purge_fills: Statement
    lift_late: Statement
    purge_backfills: Statement
    reaches: Statement
    brakes: Statement
    hold_reaches: Statement
    keep_reach: Statement
    forget_reach: Statement
    forget_brakes: Statement
    add_brake: Statement
    add_limit_change: Statement
    limit_changes: Statement
    add_starts: Statement
    forget_starts: Statement
    forget_starts_of: Statement
    running_in: Statement
    started_in: Statement
    known_lanes: Statement
    hold_places: Statement
    own_in_lanes: Statement
    stop_claims: Statement
    stop_limited_claims: Statement
    begin_limited_claim: Statement
    owned: Statement
    release_early_in_lanes: Statement
    ready_in_lanes: Statement
    ready_in_lane: Statement
    move_lanes: Statement
    waiting_in_lanes: Statement
    pick_ready: Statement
    unlist_claimed: Statement
    window_runs: Statement
    window_runs_of: Statement
    held_earlier: Statement
    held_earlier_of: Statement
    last_runs: Statement
    counted: Statement
    counted_of: Statement
    latest_lengths: Statement
    steps_of_jobs: Statement
    covered_runs: Statement
    errors_of: Statement
    statuses_of: Statement
    hold_rollup: Statement
    rollup_lags: Statement
    next_ended: Statement
    unseen: Statement
    fold_between: Statement
    make_ended_day: Statement | None
    sum_ended_days: Statement | None
    add_ended_days: Statement | None
    touch_lengths_of_days: Statement | None
    forget_ended_days: Statement | None
    fold_these: Statement
    fold_days_of_these: Statement
    add_bands: Statement
    purge_bands: Statement
    failed_between: Statement
    counted_among: Statement
    sweep: Statement
    note_unfolded: Statement
    forget_unfolded: Statement
    forget_passed: Statement
    move_rollup: Statement
    failed_of: Statement
    add_failures: Statement
    forget_failures_of: Statement
    touch_lengths: Statement
    stale_lengths: Statement
    keep_lengths: Statement
    forget_cells: Statement
    purge_job_days: Statement
    purge_lengths: Statement
    waiting_by_needs: Statement
    measured_lengths: Statement
    measured_lengths_of: Statement
    some_jobs: Statement
    job_days: Statement
    kept_in_all: Statement
    kept_of_job: Statement
    note_gaps: Statement
    bucket_steps: Statement
    tail_steps: Statement
    tail_days: Statement
    tail_failures: Statement
    kinds_since: Statement
    kind_since: Statement

    @property
    def belonging_to_a_job(self) -> tuple[Statement, ...]:
        """The statements that delete a job without occurrences: its rows in every table, the job itself last."""
        fills = self.purge_fills, self.purge_backfills
        kept = self.purge_requests, self.purge_keys, self.purge_adjustments, self.purge_pauses, self.purge_spans
        named = self.purge_coming, self.forget_dependencies, self.purge_promises, self.purge_breaches
        summed = self.purge_job_days, self.purge_lengths, self.purge_bands
        return *fills, *kept, *named, *summed, self.purge_versions, self.purge_state, self.purge_job


def cold_queries(package: str, dialect: Dialect) -> ColdQueries:
    """Return the statements of the shared verbs as this dialect has them; `package` has those that differ."""
    shared = [read_text("everytick.stores.sql", file) for file in ("queries.sql", "questions.sql", "rollups.sql")]
    own = [read_text(package, file) for file in ("cold.sql", "questions.sql", "rollups.sql")]
    return bind_statements(ColdQueries, "\n".join(shared + own), f"{package}/cold.sql", dialect)
