"""Real servers for tests: `with postgres_server() as server`, and the same for Redis.

Each call starts a server of its own (half a second for PostgreSQL), so tests that run in
several processes share nothing. With an address in the variable nothing is started, and
the user who named the address answers for what is in that server.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.servers.installations import Installation, MissingServer, postgres_installations, redis_installations

ROOT = Path(__file__).resolve().parents[2]
POSTGRES_VARIABLE = "EVERYTICK_TEST_POSTGRES"
REDIS_VARIABLE = "EVERYTICK_TEST_REDIS"


@dataclass(frozen=True)
class Server:
    """A server that answers at `address`; `pid` and `folder` are unknown for one that we did not start."""

    address: str
    pid: int | None = None
    folder: Path | None = None


class ServerFailed(Exception):
    """Binaries were found and did not become a server, or the given address cannot be one."""


@contextmanager
def postgres_server(variables: Mapping[str, str] = os.environ) -> Iterator[Server]:
    """Give a PostgreSQL: the one whose address was given, else a fresh one."""
    if address := variables.get(POSTGRES_VARIABLE):
        yield given(address, POSTGRES_VARIABLE, ("postgresql://", "postgres://"))
        return
    with launched(first(postgres_installations(), "PostgreSQL", POSTGRES_VARIABLE)) as server:
        yield server


@contextmanager
def redis_server(variables: Mapping[str, str] = os.environ) -> Iterator[Server]:
    """Give a Redis: the one whose address was given, else a fresh one."""
    if address := variables.get(REDIS_VARIABLE):
        yield given(address, REDIS_VARIABLE, ("redis://", "rediss://", "valkey://"))
        return
    with launched(first(redis_installations(), "Redis", REDIS_VARIABLE)) as server:
        yield server


def given(address: str, variable: str, schemes: tuple[str, ...]) -> Server:
    """Return the server at this address, which must at least look like one."""
    if not address.startswith(schemes):
        raise ServerFailed(f"{variable} is {address!r}; it must begin with {' or '.join(schemes)}")
    return Server(address)


def first(installations: list[Installation], kind: str, variable: str) -> Installation:
    """Return the first choice; having none is an error."""
    if not installations:
        raise MissingServer(kind, variable)
    return installations[0]


@contextmanager
def launched(installation: Installation) -> Iterator[Server]:
    """Give a fresh server of this installation; afterwards neither its process nor its folder is left."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.servers.keeper", json.dumps(asdict(installation), default=str)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C is for us; the keeper follows when we close the pipe
    )
    assert keeper.stdout
    with keeper:  # leaving closes the pipe and waits
        said = json.loads(keeper.stdout.readline() or '{"error": "the keeper ended without a word"}')
        if "error" in said:
            raise ServerFailed(said["error"])
        yield Server(said["address"], said["pid"], Path(said["folder"]))
