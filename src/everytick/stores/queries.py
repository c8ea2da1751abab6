"""Named queries and numbered migrations, read from the `.sql` files that stand beside a store.

A query that is not declared, or a declaration without a query, is an error at import.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TypeVar, get_args

from everytick.domain.codes import IN_SQL
from everytick.domain.values import value

T = TypeVar("T")

_NAME = re.compile(r"^-- (?P<name>[a-z_]+) --$", re.MULTILINE)
_TABLE = re.compile(r"^create table ([\w.]+)", re.MULTILINE)
_CODE = re.compile(r"\{([a-z_.]+)\}")
_PART = re.compile(r"«(\w+)»")
_MIGRATION = re.compile(r"(?P<number>\d{4})_(?P<name>\w+)\.sql")


@value
class Migration:
    """One forward step of a schema. Its checksum tells whether its text changed after it was applied."""

    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of its text with LF as the end of each line."""
        return sha256("\n".join(self.text.splitlines()).encode()).hexdigest()


def tables_of(migrations: tuple[Migration, ...]) -> tuple[str, ...]:
    """Return the tables that the migrations make, as they name them."""
    return tuple(name for migration in migrations for name in _TABLE.findall(migration.text))


def folder_of(package: str) -> Path:
    """Return the folder of a package. `importlib.resources` would load archives too, at every start of a program."""
    return Path(str(import_module(package).__file__)).parent


def read_text(package: str, file: str) -> str:
    """Return the text of a file that stands beside a package's modules."""
    return folder_of(package).joinpath(file).read_text("utf-8")


def bind_queries(kind: type[T], text: str, where: str) -> T:
    """Return a `kind` whose annotated names are the queries of this text; the names of both must be the same.

    Each query begins with a line `-- its_name --` and a comment that says what it guarantees.
    """
    bound = kind()
    for name, query in declared_queries(kind, text, where).items():
        setattr(bound, name, with_codes(query))
    return bound


def declared_queries(kind: type, text: str, where: str) -> dict[str, str]:
    """Return the queries of this text by name, if `kind` declares the same names. Some may be absent."""
    queries = split_queries(text, where)
    declared = kind.__annotations__
    missing = sorted(name for name, type_ in declared.items() if name not in queries and not may_be_absent(type_))
    unused = sorted(set(queries) - set(declared))
    if missing or unused:
        raise ImportError(f"{where}: missing queries {missing}, unused queries {unused}: {kind.__name__} declares them")
    return queries


def may_be_absent(declared: object) -> bool:
    """Tell whether a query that is declared with this type, such as `Statement | None`, may be left out by a store."""
    return type(None) in get_args(declared)


def with_codes(text: str) -> str:
    """Return the text with codes in the place of their names, as in `status = {pending}`; other braces stay."""
    return _CODE.sub(lambda named: str(IN_SQL.get(named[1], named[0])), text)


def with_parts(text: str, parts: Mapping[str, str]) -> str:
    """Return the text with parts in the place of their names, as in `select «claim»`; an unknown name is an error."""
    return _PART.sub(lambda named: parts[named[1]], text)


def split_queries(text: str, where: str) -> dict[str, str]:
    """Return the queries of a text by name; each has a sentence that says what it guarantees."""
    parts = _NAME.split(text)
    queries: dict[str, str] = {}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        lines = body.strip().splitlines()
        if name in queries:
            raise ImportError(f"{where}: the query {name} stands there twice")
        if not lines or not lines[0].startswith("-- "):
            raise ImportError(f"{where}: the query {name} does not say what it guarantees")
        queries[name] = "\n".join(line for line in lines if not line.startswith("--")).rstrip(";")
    return queries


def load_migrations(package: str, folder: str = "migrations") -> tuple[Migration, ...]:
    """Return the migrations of the package in order; their numbers count from 1 without a gap."""
    migrations = [
        Migration(int(named["number"]), named["name"], path.read_text("utf-8"))
        for path in folder_of(package).joinpath(folder).iterdir()
        if (named := _MIGRATION.fullmatch(path.name))
    ]
    migrations.sort(key=lambda migration: migration.number)
    if [migration.number for migration in migrations] != list(range(1, len(migrations) + 1)) or not migrations:
        numbers = [migration.number for migration in migrations]
        raise ImportError(f"{package}/{folder}: migrations are numbered from 0001 without a gap, found {numbers}")
    return tuple(migrations)
