"""A verb asks the application of this call, or the service that stands for it, and signs what it changes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from everytick.cli.applications import address_of_app, application, how_to_run, is_remote, remote_service
from everytick.cli.exits import Refused
from everytick.errors import NotFound, SchemaMismatch, shown
from everytick.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from everytick.app import Everytick
    from everytick.cli.progress import ProgressDisplay
    from everytick.domain.people import Doer
    from everytick.stores.addresses import AnyStore

T = TypeVar("T")


class NoTables(Refused):
    """The store has no tables yet, and a question makes none."""


def who() -> str:
    """Return the name of the user, which every operation stores with its fact."""
    from getpass import getuser

    try:
        return shown(getuser(), 100)
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}"


def _doer() -> Doer:
    """Return the user of this host as the audit names them."""
    from socket import gethostname

    from everytick.domain.people import CameBy, Doer

    return Doer(who(), CameBy.COMMAND, gethostname())


def look(
    question: Callable[[Everytick], Coroutine[Any, Any, T]],
    *,
    telling: ProgressDisplay | str | None = None,
    folder: str | None = None,
) -> T:
    """Return the answer to a question about the store of this call; no store is made for it, and no job stored."""

    async def asked(app: Everytick) -> T:
        await _refuse_missing_tables(app)
        return await question(app)

    if is_remote():
        return _answer(remote_service(), _opened(question), telling)
    return _answer(application(is_question=True, folder=folder), asked, telling)


async def _refuse_missing_tables(app: Everytick) -> None:
    """Refuse a store without tables, or with older ones: opening it would make them, and a question changes nothing."""
    from everytick.cli.stores import newest_schema, place_of
    from everytick.stores.addresses import migration_of

    address = address_of_app(app)
    newest = newest_schema(address.kind)
    applied = 0 if newest is None else await migration_of(address)
    if newest is None or applied >= newest:
        return
    where = shown(place_of(address).where, 300)
    if applied:
        raise SchemaMismatch(where, "its tables are older than this everytick's: everytick db migrate updates them")
    lacks, them = ("no store", "one") if address.kind == "redis" else ("no tables", "them")
    text = f"{where} has {lacks} of everytick yet: {how_to_run()} makes {them}, and so does everytick db migrate"
    raise NoTables(text, Exit.NOT_FOUND)


def ask(
    work: Callable[[Everytick], Coroutine[Any, Any, T]],
    *,
    make: bool = False,
    telling: ProgressDisplay | str | None = None,
    folder: str | None = None,
) -> T:
    """Call the work with the application of this call and return its result. The store is closed afterwards.

    If it takes more than a second, `telling` says on a terminal what goes on.
    """

    async def signed(app: Everytick) -> T:
        with app.acting_as(_doer()):
            return await work(app)

    if is_remote():
        # The service signs with the name that the token proves.
        return _answer(remote_service(), _opened(work), telling)
    return _answer(application(make=make, folder=folder), signed, telling)


def _opened(work: Callable[[Everytick], Coroutine[Any, Any, T]]) -> Callable[[Everytick], Coroutine[Any, Any, T]]:
    """Return the work, begun with a question to the service: whether it answers, and knows who asks."""

    async def opened(app: Everytick) -> T:
        await app.open()
        return await work(app)

    return opened


def _answer(
    app: Everytick, work: Callable[[Everytick], Coroutine[Any, Any, T]], telling: ProgressDisplay | str | None
) -> T:
    import asyncio
    from contextlib import nullcontext

    from everytick.cli.progress import ProgressDisplay

    async def asked() -> T:
        try:
            return await work(app)
        except NotFound as error:
            raise await _with_hint(app, error) from error
        finally:
            await app.close()

    with nullcontext() if telling is None else ProgressDisplay(telling) if isinstance(telling, str) else telling:
        return asyncio.run(asked())


async def store_of_app(app: Everytick) -> AnyStore:
    """Return the application's open store, for verbs that the application does not have."""
    from everytick.app.store_access import open_store

    return await open_store(app)


_LISTINGS = {
    "occurrence": "everytick history lists what there is",
    "backfill": "everytick backfills lists them",
    "user": "everytick user list names them all",
    "token": "everytick token list names them all",
}
"""Where to find what a verb did not find."""


async def _with_hint(app: Everytick, error: NotFound) -> Exception:
    from everytick.domain.names import did_you_mean

    if error.what == "job" and error.name.startswith("occ_"):
        text = f"there is no occurrence '{shown(error.name)}'"
        return Refused(f"{text}: everytick history lists their ids", Exit.NOT_FOUND)
    if error.what == "proposal":
        return Refused(f"{error}, or it is done or dropped: everytick proposals lists them", Exit.NOT_FOUND)
    if error.what.endswith(" of job"):
        return Refused(f"{error}: everytick versions {shown(error.name)} lists its versions", Exit.NOT_FOUND)
    if error.what != "job":
        return Refused(f"{error}: {_LISTINGS.get(error.what, _LISTINGS['occurrence'])}", Exit.NOT_FOUND)
    names = [record.job.name for record in await app.jobs()]
    if any(definition.name == error.name for definition in app.definitions):
        text = f"the application defines job '{shown(error.name)}', but the store does not hold it yet"
        return Refused(f"{text}: the next run of the application brings it there", Exit.NOT_FOUND)
    hint = did_you_mean(error.name, names) if names else "; the store holds no job yet"
    return Refused(f"{error}{hint}: everytick list names them all", Exit.NOT_FOUND)
