"""`everytick db`: care for a store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from everytick.cli.applications import address_of_app
from everytick.cli.asking import ask, store_of_app, who
from everytick.cli.common_options import Noun
from everytick.cli.exits import Refused
from everytick.cli.output import say, show_json, show_pairs, write
from everytick.cli.progress import ProgressDisplay
from everytick.cli.times import Times
from everytick.cli.verb_options import confirm, reading, sure
from everytick.errors import shown
from everytick.exits import Exit
from everytick.stores.base import Nodes

if TYPE_CHECKING:
    from everytick.app import Everytick
    from everytick.cli.stores import StorePlace

_OCCURRENCES_AT_ONCE = 1000
"""Most occurrences that are counted, or pruned in one transaction."""


@click.group("db", cls=Noun, help="Care for a store: migrate, status, backup, prune, rewind, move.")
def db_verb() -> None:
    """Care for a store."""


@db_verb.command("migrate", help="Make a store, or bring its tables up to date; every verb that opens it does so too.")
def migrate() -> None:
    """Make a store, or bring its tables up to date."""
    place = ask(_place, make=True, telling="migrating")
    from everytick.cli.stores import newest_schema

    say(f"{place.where} is at schema {newest_schema(place.kind)}, the newest that this everytick knows")


async def _place(app: Everytick) -> StorePlace:
    from everytick.cli.stores import place_of

    return place_of((await store_of_app(app)).address)


@db_verb.command(
    "status",
    help="Show what a store is, where, and how much it holds; it is not migrated.\n\n"
    "Exit code 1 if its tables are not those of this everytick.",
)
@reading
def status(as_json: bool, utc: bool) -> int:
    """Show what a store is, where, and how much it holds."""
    found = ask(_status, telling="asking the store")
    if as_json:
        show_json(found)
    else:
        show_pairs([(key.replace("_", " "), value) for key, value in found.items()], Times(utc))
    schema, newest = found["schema"], found["newest_schema"]
    if schema == newest:
        return Exit.DONE
    if not schema:
        say("there is no store of everytick yet: everytick run makes one, and so does everytick db migrate")
    elif schema < newest:
        say("its tables are older than this everytick's: everytick db migrate brings them up to date")
    else:
        say("its tables are newer than this everytick knows: install the newer everytick here too")
    return Exit.FAILED


async def _status(app: Everytick) -> dict[str, Any]:
    """Return the facts about the store. Of a store with older tables, only that: opening it would migrate it."""
    from everytick.cli.stores import newest_schema, place_of
    from everytick.stores.addresses import migration_of

    address = address_of_app(app)
    place = place_of(address)
    if place.file is not None and not place.file.exists():
        raise Refused(f"there is no file {shown(str(place.file))}: everytick db migrate makes it", Exit.NOT_FOUND)
    newest, schema = newest_schema(place.kind), await migration_of(address)
    found: dict[str, Any] = {
        "kind": place.kind,
        "store": place.where,
        "schema": schema if newest is not None else None,
        "newest_schema": newest,
    }
    if found["schema"] != newest or newest is None:
        return found | (await _contents(app, place) if newest is None else {})
    from everytick.stores.moving.move import move_of

    state = await move_of(address)
    found |= {} if state.words is None else {"move": state.words}
    return found | (await _contents(app, place) if state.is_in_use else {})


async def _contents(app: Everytick, place: StorePlace) -> dict[str, Any]:
    from everytick.domain.statuses import ACTIVE
    from everytick.stores.base import HistoryFilter

    store = await store_of_app(app)
    now = await store.now()
    active = (await store.history(HistoryFilter(statuses=tuple(ACTIVE), limit=_OCCURRENCES_AT_ONCE))).occurrences
    alive = [node for node in await store.ask(Nodes()) if node.is_alive(now, app.settings.node_timeout)]
    found: dict[str, Any] = {
        "time": now,
        "jobs": len(await store.list()),
        "active_occurrences": len(active) if len(active) < _OCCURRENCES_AT_ONCE else f"{_OCCURRENCES_AT_ONCE} or more",
        "nodes_alive": len(alive),
    }
    if place.file is not None:
        found |= {"bytes": _size(place.file), "library": getattr(store, "library", None)}
    return found


def _size(file: Path) -> int:
    """How much the file takes, with its write-ahead log."""
    parts = (file, file.with_name(f"{file.name}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


@db_verb.command(
    "backup",
    help="Copy a SQLite store into FILE, whole and consistent, while nodes go on.\n\nAn existing FILE is refused.",
)
@click.argument("file", type=click.Path(path_type=Path))
def backup(file: Path) -> None:
    """Copy a SQLite store into a file."""
    place = ask(_place)
    if place.file is None:
        raise Refused(
            "Redis has its own tool for this: redis-cli --rdb FILE copies all that the server holds"
            if place.kind == "redis"
            else "PostgreSQL has its own tool for this: pg_dump --format=custom --schema=everytick DATABASE > FILE"
        )
    try:
        # Only its owner may read it, as with the store: payloads may hold secrets.
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise Refused(f"{shown(str(file))} exists already: name another file, or remove it", Exit.CONFLICT) from None
    except OSError as error:
        raise Refused(f"{shown(str(file))} cannot be written: {error.strerror}", Exit.NOT_ALLOWED) from None
    try:
        with ProgressDisplay("copying bytes", _size(place.file), look=lambda: _size(file)):
            _copy(place.file, file)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    write(str(file))
    say(f"{file.stat().st_size:,} bytes; to go back, stop every node and put it in the place of {place.file}")


def _copy(source: Path, target: Path) -> None:
    import sqlite3
    from contextlib import closing

    from everytick.stores.sqlite.failures import saying_which_file
    from everytick.stores.sqlite.opening import connect, patiently

    with (
        saying_which_file(source),
        closing(connect(source, read_only=True)) as old,
        closing(sqlite3.connect(target)) as new,
    ):
        # All pages in one step: between two a writer may come, and the copy would begin anew, for ever if it is busy.
        patiently(lambda: old.backup(new, pages=-1))


@db_verb.command("prune", help="Forget now what no job's retention keeps any longer; nodes do so every minute.")
@sure
def prune(yes: bool) -> None:
    """Forget what no retention keeps."""
    place = ask(_place)
    confirm(f"forget what no retention keeps in {shown(place.where)}?", yes)

    progress = ProgressDisplay("occurrences forgotten:")

    async def pruned(app: Everytick) -> int:
        store = await store_of_app(app)
        while count := await store.prune(_OCCURRENCES_AT_ONCE):
            progress.step(count)
        return progress.done

    write(str(ask(pruned, telling=progress)))


@db_verb.command(
    "move",
    help="Move everything in the store FROM into the store TO, while nodes run on FROM.\n\n"
    "TO must be empty. Nodes whose next_store is TO go on there by themselves; others stop and say where it went. "
    "A call that was interrupted is repeated as it was, and goes on. Without FROM and TO they are the settings store "
    "and next_store, so that no password has to stand in a command.",
)
@click.argument("source", metavar="[FROM]", required=False)
@click.argument("target", metavar="[TO]", required=False)
@click.option("--held", default="5s", metavar="LENGTH", help="How long nodes may wait for the last changes (5s).")
@click.option("--give-up", "is_given_up", is_flag=True, help="Give up a move that has not ended; FROM stays in use.")
@sure
def move(source: str | None, target: str | None, held: str, is_given_up: bool, yes: bool) -> None:
    """Move a store into another one."""
    from everytick.cli.moving import give_up, move

    (give_up if is_given_up else move)(source, target, held=held, yes=yes)


@db_verb.command(
    "rewind",
    help="Let jobs go on that were decided ahead of the store's clock, because a clock was wrong.\n\n"
    "Without JOBS, all that lie more than a minute ahead. What has run stays so; what was recorded as not run is "
    "decided anew.",
)
@click.argument("names", metavar="[JOBS]...", nargs=-1)
@sure
def rewind(names: tuple[str, ...], yes: bool) -> None:
    """Let jobs go on that were decided ahead."""
    named = ask(lambda app: _ahead(app, names))
    if not named:
        say("no job is decided ahead of the store's clock")
        return
    confirm(f"decide again from now on: {', '.join(map(shown, named))}?", yes)

    async def rewound(app: Everytick) -> list[str]:
        return [name for name in named if await app.rewind(name, by=who())]

    for name in ask(rewound):
        write(name)


async def _ahead(app: Everytick, names: tuple[str, ...]) -> list[str]:
    """The jobs of these names, or all that lie ahead."""
    from everytick.stores.base import FARTHEST_AHEAD

    if names:
        return list(names)
    store = await store_of_app(app)
    now = await store.now()
    return [record.job.name for record in await store.list() if record.watermark > now + FARTHEST_AHEAD]
