"""The queries of this store by name; `queries.sql` says what each guarantees."""

from everytick.stores.queries import load_queries


class Queries:
    """Every query of `queries.sql`: a name too many or too few on either side is an error at import."""

    latest_time: str
    keep_latest_time: str
    due_jobs: str
    look_at_jobs: str
    next_wake: str
    next_ready: str
    active_of_jobs: str
    active_counts: str
    crowds_of_jobs: str
    pauses_of_jobs: str
    adjustments_of_jobs: str
    requests_of_jobs: str
    definition: str
    show_parked: str
    parked_definitions: str
    forget_parked: str
    forget_parked_job: str
    states_of_jobs: str
    move_watermark: str
    create_occurrence: str
    release_occurrence: str
    end_occurrence: str
    ask_to_cancel: str
    ask_all_to_cancel: str
    add_span: str
    use_adjustment: str
    forget_adjustments: str
    forget_reschedule: str
    forget_pauses: str
    forget_editions: str
    come_of_age: str
    ready_occurrences: str
    own_occurrences: str
    held_occurrences: str
    record_of_id: str
    runs: str
    attempts: str
    fences: str
    advance_occurrence: str
    end_owned: str
    write_run: str
    write_attempt: str
    note_attempt: str
    wake_job: str
    wake_and_revise_job: str
    note_end: str
    wake_after_wait: str
    wake_after_end: str
    wake_after_success: str
    beat: str
    held_by: str
    held_by_silent: str
    held_by_others: str
    take_over: str
    owed_reports: str
    report_delivered: str
    job_by_name: str
    job_by_id: str
    newest_version: str
    add_job: str
    add_job_state: str
    add_version: str
    edit_job: str
    edit_job_state: str
    give_new_version: str
    rename_job: str
    remove_job: str
    retire_job: str
    jobs_by_id: str
    jobs_by_name: str
    running_pauses: str
    running_pause: str
    forget_pause: str
    add_pause: str
    put_back_in_line: str
    end_pause: str
    open_request: str
    payload_of: str
    add_request: str
    forget_request: str
    continue_backfill: str
    count_moved_request: str
    put_adjustment: str
    reschedule: str
    status_of: str
    history_of_job: str
    history: str
    spans: str
    nodes: str
    jobs_with_aged: str
    last_kept: str
    aged_of_job: str
    last_of_jobs: str
    forget_attempts: str
    forget_runs: str
    forget_occurrences: str


Q = load_queries(Queries, "everytick.stores.sqlite")
