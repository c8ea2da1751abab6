"""Opening the file: mode, settings, busy retry, and the schema that must be ours and no newer than the code."""

import os
import random
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Literal, TypeVar

from everytick.errors import MissingExtra, SchemaMismatch, StoreBroken, StoreGone, StoreUnavailable
from everytick.stores.moving.marks import TABLE as MOVE_MARKS
from everytick.stores.moving.marks import MoveMark, MoveMarks, not_in_use
from everytick.stores.queries import Migration, load_migrations
from everytick.stores.sqlite.failures import saying_which_file
from everytick.stores.sqlite.forks import ForkGuard, refuse_in_use

T = TypeVar("T")


Synchronous = Literal["normal", "full"]
Driver = Literal["sqlite3", "apsw"]

OLDEST_SQLITE = (3, 37, 0)
"""The first version with STRICT tables, which refuse a text in a column of numbers."""

FIRST_WITHOUT_RESET_FAULT = (3, 51, 3)

LOCK_SECONDS = 30.0
"""How long a writer waits for another process's transaction before it gives up."""

_SETTINGS = (
    "journal_mode = wal",
    "wal_autocheckpoint = 0",
    "mmap_size = 0",
    "temp_store = memory",
    "foreign_keys = on",
)
# 32 MB hold the pages that a batch of claims and ends touches at random. Readers use the system's page cache.
_WRITING_CACHE, _READING_CACHE = "cache_size = -32000", "cache_size = -2000"
MIGRATIONS = load_migrations("everytick.stores.sqlite")
_UTC = re.compile("«utc ([^»]+)»")
_AS_TEXT = r"strftime('%Y-%m-%dT%H:%M:%S', (\1) / 1000000, 'unixepoch') || printf('.%06dZ', (\1) % 1000000)"
_HOSTS_TIME = "(cast((julianday('now') - 2440587.5) * 86400000 as integer) * 1000)"
_APPLICATION = 0x65767469
"""The application id of our files, "evti" in ASCII: it tells them from those of other programs."""

_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.0001, 0.002
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_making = Lock()


def connect(
    path: Path,
    synchronous: Synchronous = "normal",
    *,
    read_only: bool = False,
    driver: Driver = "sqlite3",
) -> sqlite3.Connection:
    """Return a connection with everytick's settings. The caller begins and ends transactions.

    The busy timeout is 0: the built-in one starves one of two writing processes, our own
    short retry at random moments does not. Checkpoints are ours too, since one that races
    another process's commit can damage the file (SQLite before 3.51.3). Another
    thread may use it, one at a time: a fork closes it.
    """
    refuse_in_use(path)
    if driver == "apsw":
        connection: sqlite3.Connection = apsw_driver().connect(path)
    else:
        # Never made here: a file that was deleted under a running node must not come back empty.
        address = f"{path.absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(
            address, uri=True, timeout=0, isolation_level=None, cached_statements=256, check_same_thread=False
        )
    try:
        for setting in (*_SETTINGS, _READING_CACHE if read_only else _WRITING_CACHE):
            patiently(lambda setting=setting: connection.execute(f"pragma {setting}"))  # type: ignore[misc]
        connection.execute(f"pragma synchronous = {'full' if synchronous == 'full' else 'normal'}")
        connection.execute(f"pragma query_only = {int(read_only)}")
    except BaseException:
        connection.close()
        raise
    return connection


def apsw_driver() -> ModuleType:
    """Return the module that opens files by apsw. Without that package, raise how to install it."""
    try:
        return import_module("everytick.stores.sqlite.apsw_driver")
    except ModuleNotFoundError as error:
        if error.name != "apsw":
            raise
        raise MissingExtra("the driver apsw", "sqlite") from error


def library(driver: Driver) -> str:
    """Return the version of the SQLite that this driver brings."""
    return str(apsw_driver().library_version()) if driver == "apsw" else sqlite3.sqlite_version


def has_reset_fault(version: str) -> bool:
    """Tell whether a checkpoint of this SQLite that races another process's commit can damage the file.

    Ours do not race, since a truncating one shuts writers out; another program's may.
    """
    return _numbers(version) < FIRST_WITHOUT_RESET_FAULT


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether the error means that another process holds the lock."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


def patiently(act: Callable[[], T], seconds: float = LOCK_SECONDS) -> T:
    """Return the result of `act`. While another process holds the lock, try again every 0.05 to 2 ms."""
    until, pause = time.monotonic() + seconds, _SHORTEST_PAUSE_SECONDS
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > until:
                raise
        time.sleep(pause * random.uniform(0.5, 1))  # noqa: S311, a spread is no secret
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)


def prepare(path: Path, migrations: tuple[Migration, ...] = MIGRATIONS, driver: Driver = "sqlite3") -> None:
    """Create the file, readable by its owner only, and migrate it; or refuse it with a reason."""
    if _numbers(found := library(driver)) < OLDEST_SQLITE:
        least = ".".join(map(str, OLDEST_SQLITE))
        raise StoreUnavailable(str(path), f"this Python has SQLite {found}, and at least {least} is needed")
    with saying_which_file(path), ForkGuard(path):
        _make(path)
        with _refusing_other_files(path), closing(connect(path, driver=driver)) as connection:
            _refuse_strangers(connection, path)
            for migration in migrations:
                _apply(connection, path, migration)
            _refuse_newer(connection, path, migrations[-1].number)
            if (unusable := not_in_use(str(path), marks_in(connection))) is not None:
                raise unusable


@contextmanager
def _refusing_other_files(path: Path) -> Iterator[None]:
    """Refuse a file that is no database at all."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB:
            raise SchemaMismatch(str(path), "is no SQLite database: name another file") from error
        raise


def _make(path: Path) -> None:
    """Create an empty file, readable by its owner only, if there is none.

    A file that exists is never opened here: closing any descriptor of a file releases every POSIX
    lock that this process holds on it, and another store of this process may have it open. Two
    stores that begin at once take turns, so that one does not close what the other has just locked.
    """
    try:
        with _making, suppress(FileExistsError):
            os.close(os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except PermissionError as error:
        advice = "let this user write to the folder, or name another file"
        raise StoreBroken(str(path), str(error.strerror), advice) from error
    except (FileNotFoundError, NotADirectoryError) as error:
        # A wrong address, and no outage: it is not waited for.
        raise StoreBroken(str(path), str(error.strerror), "make the folder, or name another file") from error


def applied(path: Path, driver: Driver = "sqlite3") -> int:
    """Return the number of the newest migration of a file, or 0. Nothing is created or changed.

    It is asked through the store's own driver: each SQLite library in a process knows only its own
    locks, and releases the other's when it closes the file.
    """
    if not path.exists() or not path.stat().st_size:
        return 0
    with (
        saying_which_file(path),
        ForkGuard(path),
        _refusing_other_files(path),
        closing(_connect_to_look(path, driver)) as connection,
    ):
        _refuse_strangers(connection, path)
        if not connection.execute("select 1 from sqlite_schema where name = 'migration'").fetchone():
            return 0
        found: int = connection.execute("select coalesce(max(number), 0) from migration").fetchone()[0]
        return found


def _connect_to_look(path: Path, driver: Driver) -> sqlite3.Connection:
    """Return a connection that changes nothing, not even the file's settings."""
    address = f"{path.absolute().as_uri()}?mode=ro"
    if driver == "apsw":
        looking: sqlite3.Connection = apsw_driver().connect_to_look(address, LOCK_SECONDS)
        return looking
    return sqlite3.connect(address, uri=True, timeout=LOCK_SECONDS)


def _refuse_strangers(connection: sqlite3.Connection, path: Path) -> None:
    """Raise unless the file is empty or a store of everytick."""
    [mark] = connection.execute("pragma application_id").fetchone()
    [tables] = connection.execute("select count(*) from sqlite_schema").fetchone()
    if tables and mark != _APPLICATION:
        raise SchemaMismatch(str(path), "holds tables of another program: name another file")


def _refuse_newer(connection: sqlite3.Connection, path: Path, newest: int) -> None:
    [found] = connection.execute("select max(number) from migration").fetchone()
    if found > newest:
        reason = f"has schema {found}, and this everytick knows up to {newest}: install the newer everytick here too"
        raise SchemaMismatch(str(path), reason)


def marks_in(connection: sqlite3.Connection) -> MoveMarks:
    """Return the marks of a move by role; none if the store neither moves nor has been moved."""
    if not connection.execute("select 1 from sqlite_schema where name = ?", (MOVE_MARKS,)).fetchone():
        return {}
    found = connection.execute(f"select role, move_id, state, other from {MOVE_MARKS}").fetchall()
    return {role: MoveMark(move_id, state, other) for role, move_id, state, other in found}


def _apply(connection: sqlite3.Connection, path: Path, migration: Migration) -> None:
    """Apply one migration in one transaction. Of several nodes that start at once, one does it."""
    patiently(lambda: connection.execute("begin immediate"))
    try:
        connection.execute(f"pragma application_id = {_APPLICATION}")
        connection.execute(
            "create table if not exists migration"
            " (number integer primary key, name text not null, checksum text not null, applied_at text not null) strict"
        )
        applied = connection.execute("select checksum from migration where number = ?", (migration.number,)).fetchone()
        if applied is None:
            for statement in statements(expanded(migration.text)):
                connection.execute(statement)
            connection.execute(
                "insert into migration values (?, ?, ?, datetime('now'))",
                (migration.number, migration.name, migration.checksum),
            )
        elif applied[0] != migration.checksum:
            reason = (
                f"migration {migration.number} ({migration.name}) was applied with another text than this everytick "
            )
            reason += "has: install the everytick that made this file, or a later one"
            raise SchemaMismatch(str(path), reason)
        connection.execute("commit")
    except BaseException:
        connection.execute("rollback")
        raise


def expanded(text: str) -> str:
    """Return the text of a migration with its two placeholders filled in: a time for people, and the host's time."""
    return _UTC.sub(_AS_TEXT, text).replace("«now»", _HOSTS_TIME)


def statements(text: str) -> Iterator[str]:
    """Give the single statements of a text. The driver's executescript would end the transaction."""
    gathered = ""
    for line in text.splitlines(keepends=True):
        gathered += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(gathered):
            yield gathered
            gathered = ""
    assert not gathered.strip() or gathered.lstrip().startswith("--"), f"a statement has no end: {gathered[:80]}"


class StoreFile:
    """A path, and the file that was there when the store was opened; a look costs two microseconds.

    A store whose file was deleted or replaced must not go on. SQLite would: it holds the file open, and writes to one
    that has no name any more, while another process opens the new one and runs the same instants.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: tuple[int, int] | None = None

    def remember(self) -> None:
        """From now on the file that is there is the right one."""
        self._opened = self._found()

    def check(self) -> None:
        """Raise unless the path still names the file that was opened."""
        if self._opened is None or (found := self._found()) == self._opened:
            return
        reason = "the file was deleted" if found is None else "another file was put in its place"
        raise StoreGone(str(self._path), reason)

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino
