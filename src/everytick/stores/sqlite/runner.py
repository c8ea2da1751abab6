"""Carries a shared verb out on one connection, in the thread that this connection belongs to."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from everytick.stores.sql.commands import (
    Ask,
    Claims,
    Command,
    Create,
    EndUnowned,
    Forget,
    Found,
    KeyTaken,
    Look,
    Make,
    Many,
    Referenced,
    Together,
    Versions,
)
from everytick.stores.sql.statements import Query
from everytick.stores.sqlite.definition_cache import FileDefinitions
from everytick.stores.sqlite.planning import end, look
from everytick.stores.sqlite.queries import Q, send
from everytick.stores.sqlite.reading_claims import claims
from everytick.stores.sqlite.rows import moment
from everytick.stores.sqlite.rows_written import creation_columns
from everytick.stores.sqlite.writer import Transaction

T = TypeVar("T")

_TAKEN = frozenset({sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY})


class SyncRunner:
    """Sends a verb the answers to its commands, all from one transaction."""

    def __init__(self, transaction: Transaction, definitions: FileDefinitions) -> None:
        self.transaction, self._definitions = transaction, definitions

    def run(self, make: Make[T]) -> T:
        """Run the verb and return its result. An error of the verb does not roll back by itself."""
        verb, answer, error = make(), None, None
        while True:
            try:
                command = verb.send(answer) if error is None else verb.throw(error)
            except StopIteration as done:
                result: T = done.value
                return result
            except (KeyTaken, Referenced) as uncaught:
                raise uncaught.__cause__ or uncaught from None
            answer = error = None
            try:
                answer = self._carry_out(command)
            except sqlite3.IntegrityError as raised:
                error = _meaning(raised)

    def _carry_out(self, command: Command) -> Any:
        connection = self.transaction.connection
        if isinstance(command, (Query, Many)):
            return send(connection, command)
        if isinstance(command, Together):
            with self._savepoint():
                return [row for query in command.queries for row in send(connection, query)]
        if isinstance(command, Versions):
            return self._versions(command)
        if isinstance(command, Forget):
            return self._definitions.forget(command.job_key, command.version)
        if isinstance(command, Create):
            columns = creation_columns(command.job_key, command.job, command.creation, self.transaction.now)
            return self.transaction.execute(Q.create_occurrence.sql, columns)
        if isinstance(command, EndUnowned):
            return self._end(command)
        if isinstance(command, Claims):
            return claims(connection, self._definitions, command.handles)
        if isinstance(command, Look):
            return look(connection, self._definitions, command.job_ids, self.transaction.now)
        if command is Ask.NOW:
            return moment(self.transaction.now)
        self.transaction.rang = True
        return None

    def _versions(self, command: Versions) -> Found:
        connection, definitions = self.transaction.connection, self._definitions
        found = {key: definitions.find(connection, *key) for key in command.keys}
        return Found(
            {key: compiled for key, compiled in found.items() if compiled is not None},
            {key: definitions.reason(key) for key, compiled in found.items() if compiled is None},
        )

    def _end(self, command: EndUnowned) -> None:
        end(self.transaction, self._definitions, command.occurrence_id, command.status, command.reason)
        self.transaction.run(Q.wake_job(job_key=command.job_key, now=moment(self.transaction.now)))

    @contextmanager
    def _savepoint(self) -> Iterator[None]:
        execute = self.transaction.execute
        execute("savepoint together")
        try:
            yield
        except BaseException:
            execute("rollback to together")
            execute("release together")
            raise
        execute("release together")


def _meaning(error: sqlite3.IntegrityError) -> Exception:
    """Return the error in the shared types. The driver's own error is its cause."""
    code = getattr(error, "sqlite_errorcode", 0)
    known: Exception
    if code in _TAKEN:
        known = KeyTaken()
    elif code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
        known = Referenced()
    else:
        return error
    known.__cause__ = error
    return known
