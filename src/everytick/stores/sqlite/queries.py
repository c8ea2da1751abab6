"""The queries of this store by name; `queries.sql` says what each guarantees."""

from everytick.stores.queries import load_queries
from everytick.stores.sql.queries import cold_queries
from everytick.stores.sqlite.dialect import SQLITE

PACKAGE = "everytick.stores.sqlite"


class Queries:
    """Every query of `queries.sql`: a name too many or too few on either side is an error at import."""

    due_jobs: str
    look_at_jobs: str
    next_wake: str
    count_needs: str
    all_needs: str
    add_needs: str
    next_ready: str
    active_of_jobs: str
    active_counts: str
    crowds_of_jobs: str
    pauses_of_jobs: str
    adjustments_of_jobs: str
    requests_of_jobs: str
    definition: str
    past_versions: str
    states_of_jobs: str
    move_watermark: str
    park_plan: str
    create_occurrence: str
    release_occurrence: str
    end_occurrence: str
    owe_reports: str
    ask_to_cancel: str
    ask_all_to_cancel: str
    await_ends: str
    add_span: str
    use_adjustment: str
    forget_adjustments: str
    forget_reschedule: str
    forget_narrowing: str
    forget_pauses: str
    forget_editions: str
    come_of_age: str
    ready_occurrences: str
    own_occurrences: str
    held_occurrences: str
    runs: str
    fences: str
    advance_occurrence: str
    forget_claims: str
    hold_given_back: str
    retired_of: str
    end_owned: str
    end_well: str
    write_run: str
    write_attempt: str
    write_first_successes: str
    write_first_attempts: str
    wake_job: str
    note_end: str
    count_runs: str
    note_failure: str
    note_failed_attempt: str
    note_last_ends: str
    note_last_successes: str
    note_last_good_ends: str
    note_good_end: str
    wake_jobs_of: str
    wake_job_of: str
    beat: str
    forget_request: str
    continue_backfill: str
    count_moved_request: str
    begin_kept: str
    keep_runs: str
    jobs_with_aged: str
    last_kept: str
    aged_of_job: str
    last_of_jobs: str
    forget_keys: str
    forget_occurrences: str


Q = load_queries(Queries, PACKAGE)
COLD = cold_queries(PACKAGE, SQLITE)
