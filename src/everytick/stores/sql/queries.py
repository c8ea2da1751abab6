"""The statements of the shared verbs by name: the same text for both stores, or one text in each store's `cold.sql`."""

from importlib.resources import files

from everytick.stores.sql.statements import Dialect, Statement, bind_statements


class ColdQueries:
    """Every statement of the shared verbs; a name that stands in one place only is an error at import."""

    hold_job: Statement
    held_of_job: Statement
    purgeable: Statement
    forget_attempts: Statement
    forget_runs: Statement
    purge_occurrences: Statement
    purge_requests: Statement
    purge_keys: Statement
    purge_adjustments: Statement
    purge_pauses: Statement
    purge_spans: Statement
    purge_wakes: Statement
    purge_versions: Statement
    purge_state: Statement
    purge_job: Statement
    leave: Statement
    nodes: Statement
    overdue: Statement

    @property
    def belonging_to_a_job(self) -> tuple[Statement, ...]:
        """What deletes a job without occurrences: its rows in every table, the job itself last."""
        kept = self.purge_requests, self.purge_keys, self.purge_adjustments, self.purge_pauses, self.purge_spans
        return *kept, self.purge_wakes, self.purge_versions, self.purge_state, self.purge_job


def cold_queries(package: str, dialect: Dialect) -> ColdQueries:
    """Return the statements of the shared verbs as this dialect has them; `package` has those that differ."""
    shared = files("everytick.stores.sql").joinpath("queries.sql").read_text("utf-8")
    own = files(package).joinpath("cold.sql").read_text("utf-8")
    return bind_statements(ColdQueries, f"{shared}\n{own}", f"{package}/cold.sql", dialect)
