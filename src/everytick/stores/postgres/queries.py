"""The queries of the PostgreSQL store by name, for whichever schema it lives in."""

import re
from functools import cache
from importlib.resources import files

from everytick.stores.postgres.dialect import postgres_dialect
from everytick.stores.queries import Migration, bind_queries, load_migrations, load_queries, split_queries
from everytick.stores.sql.queries import ColdQueries, cold_queries

PACKAGE = "everytick.stores.postgres"
_SCHEMA = re.compile(r"\beverytick\.")
_PART = re.compile(r"«(\w*)»")


class Queries:
    """Every query of queries.sql; a name that stands in one place only is an error at import."""

    now: str
    ring: str
    pulse: str
    ahead: str
    add_needs: str
    relabel_wakes: str
    hold_due: str
    glance: str
    planned_by: str
    standing_of_ripe: str
    standing_of_told: str
    standing_by_id: str
    definitions: str
    active: str
    pauses: str
    adjustments: str
    requests: str
    park_job: str
    park_plan: str
    job_keys: str
    hold_plans: str
    fold_wakes: str
    create_occurrences: str
    hold_occurrences: str
    ask_all_to_stop: str
    mark_awaited: str
    release: str
    end_unowned: str
    close_runs: str
    ask_to_stop: str
    add_spans: str
    answer_requests: str
    add_request: str
    mark_adjustments: str
    settle_adjustments: str
    settle_pauses: str
    forget_narrowing: str
    settle_plans: str
    settle_few: str
    claim: str
    ripen: str
    runs: str
    give_back: str
    hold_jobs_of: str
    retired_of: str
    hold_given_back: str
    commit_steps: str
    commit_plain: str
    step_marks: str
    wait_for_mark: str
    claims_of: str
    stand_within: str
    identity: str
    wake_job: str
    ask: str
    hold_key: str
    wait_for_key: str
    ask_within: str
    past_versions: str
    keep_runs: str
    prune: str


load_queries(Queries, PACKAGE)


@cache
def queries_in(schema: str) -> Queries:
    """Return the queries for the tables of this schema."""
    text = _PART.sub(_part, files(PACKAGE).joinpath("queries.sql").read_text("utf-8"))
    return bind_queries(Queries, in_schema(text, schema), f"{PACKAGE}/queries.sql")


@cache
def cold_queries_in(schema: str) -> ColdQueries:
    """Return the statements of the shared verbs for the tables of this schema."""
    return cold_queries(PACKAGE, postgres_dialect(schema))


@cache
def _parts() -> dict[str, str]:
    return split_queries(files(PACKAGE).joinpath("parts.sql").read_text("utf-8"), f"{PACKAGE}/parts.sql")


def _part(named: re.Match[str]) -> str:
    return _parts()[named[1]] if named[1] else named[0]


@cache
def migrations() -> tuple[Migration, ...]:
    """Return the migrations as they were written, for the schema `everytick`."""
    return load_migrations(PACKAGE)


def in_schema(sql: str, schema: str) -> str:
    """Return the text for another schema than `everytick`, which is the one it is written for."""
    return _SCHEMA.sub(f'"{schema}".', sql)
