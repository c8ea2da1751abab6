"""The queries of the PostgreSQL store by name, for whichever schema it lives in."""

import re
from functools import cache

from everytick.stores.postgres.claims import CLAIM_COLUMNS
from everytick.stores.postgres.dialect import postgres_dialect
from everytick.stores.queries import Migration, load_migrations, read_text, split_queries, with_parts
from everytick.stores.sql.queries import ColdQueries, cold_queries
from everytick.stores.sql.statements import Statement, Statements, bind_statements

PACKAGE = "everytick.stores.postgres"
_SCHEMA = re.compile(r"\beverytick\.")


class Queries(Statements):
    """Every query of queries.sql. A name without its query, or the reverse, is an error at import."""

    now: Statement
    ring: Statement
    pulse: Statement
    ahead: Statement
    add_needs: Statement
    relabel_wakes: Statement
    hold_due: Statement
    few_due: Statement
    planned_by: Statement
    standing_of_due: Statement
    standing_of_told: Statement
    standing_by_id: Statement
    definitions: Statement
    active: Statement
    pauses: Statement
    adjustments: Statement
    requests: Statement
    park_job: Statement
    park_plan: Statement
    job_keys: Statement
    hold_plans: Statement
    fold_wakes: Statement
    create_occurrences: Statement
    hold_occurrences: Statement
    ask_all_to_stop: Statement
    mark_awaited: Statement
    release: Statement
    end_unowned: Statement
    close_runs: Statement
    ask_to_stop: Statement
    tell_dependents: Statement
    add_spans: Statement
    forget_requests: Statement
    use_adjustments: Statement
    forget_adjustments: Statement
    forget_pauses: Statement
    forget_narrowing: Statement
    note_stops: Statement
    move_watermarks: Statement
    settle_few: Statement
    claim: Statement
    release_early: Statement
    runs: Statement
    give_back: Statement
    hold_jobs_of: Statement
    retired_of: Statement
    hold_given_back: Statement
    commit_steps: Statement
    commit_plain: Statement
    step_marks: Statement
    wait_for_mark: Statement
    claims_of: Statement
    stand_within: Statement
    identity: Statement
    wake_job: Statement
    ask: Statement
    hold_key: Statement
    wait_for_key: Statement
    ask_within: Statement
    past_versions: Statement
    keep_runs: Statement
    aged: Statement
    forget_occurrences: Statement


@cache
def queries_in(schema: str) -> Queries:
    """Return the queries for the tables of this schema."""
    text = with_parts(read_text(PACKAGE, "queries.sql"), _parts())
    return bind_statements(Queries, in_schema(text, schema), f"{PACKAGE}/queries.sql", postgres_dialect(schema))


@cache
def cold_queries_in(schema: str) -> ColdQueries:
    """Return the statements of the shared verbs for the tables of this schema."""
    return cold_queries(PACKAGE, postgres_dialect(schema))


@cache
def _parts() -> dict[str, str]:
    parts = split_queries(read_text(PACKAGE, "parts.sql"), f"{PACKAGE}/parts.sql")
    return {**parts, "claim": ", ".join(f"o.{column}" for column in CLAIM_COLUMNS)}


@cache
def migrations() -> tuple[Migration, ...]:
    """Return the migrations as they were written, for the schema `everytick`."""
    return load_migrations(PACKAGE)


def in_schema(sql: str, schema: str) -> str:
    """Return the text for another schema than `everytick`, which is the one it is written for."""
    return _SCHEMA.sub(f'"{schema}".', sql)
