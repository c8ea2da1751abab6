"""The statements of `store.access` by name: the same text for both stores, read when it is first asked for."""

from everytick.stores.queries import read_text
from everytick.stores.sql.statements import Dialect, Statement, Statements, bind_statements


class AccessQueries(Statements):
    """Every statement of `store.access`. A name without its statement, or the reverse, is an error."""

    users: Statement
    hold_users: Statement
    is_without_users: Statement
    add_user: Statement
    change_user: Statement
    set_password: Statement
    remove_user: Statement
    end_sessions: Statement
    revoke_tokens: Statement
    tokens: Statement
    add_token: Statement
    revoke_token: Statement
    use_token: Statement
    session_of: Statement
    sessions: Statement
    begin_session: Statement
    see_session: Statement
    end_session: Statement
    forget_sessions: Statement
    failures_of: Statement
    add_failure: Statement
    forget_failures: Statement
    job_named: Statement
    job_of_occurrence: Statement
    add_deed: Statement
    deeds: Statement
    deeds_by: Statement
    deeds_of: Statement
    deeds_by_of: Statement


def access_queries(dialect: Dialect) -> AccessQueries:
    """Return the statements as this dialect has them."""
    text = read_text("everytick.stores.sql", "access.sql")
    return bind_statements(AccessQueries, text, "everytick.stores.sql/access.sql", dialect)
