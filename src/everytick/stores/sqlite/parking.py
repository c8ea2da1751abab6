"""Definitions that this process cannot read: shown to people, until it can read them after all."""

from collections.abc import Collection

from everytick.stores.sqlite.compiled import Definitions, Unreadable
from everytick.stores.sqlite.queries import Q
from everytick.stores.sqlite.writer import Transaction


def show(transaction: Transaction, found: Collection[Unreadable]) -> None:
    """Let people see which definitions this process could not read."""
    for each in found:
        transaction.execute(Q.show_parked, (each.job, each.version, each.reason, transaction.now))


def look_again(transaction: Transaction, definitions: Definitions) -> None:
    """Forget that a definition was parked if this process can read it: perhaps it is a newer everytick."""
    for job, version in transaction.execute(Q.parked_definitions).fetchall():
        if definitions.get(transaction.connection, job, version) is not None:
            transaction.execute(Q.forget_parked, (job, version))
