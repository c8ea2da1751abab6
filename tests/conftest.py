"""What every test finds in place: real servers on demand, and hypothesis set for shared machines."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.servers.launch import Server, postgres_server, redis_server

# A deadline per example measures the machine, not the code; pytest-timeout stops what hangs. In CI the examples
# are the same for the same code: a change is judged by what it changes. At a desk they differ from run to run.
settings.register_profile("everytick", deadline=None, print_blob=True, derandomize="CI" in os.environ)
settings.load_profile("everytick")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL for this session, started when the first test asks; each xdist worker has its own."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[Server]:
    """A Redis for this session, started when the first test asks; each xdist worker has its own."""
    with redis_server() as server:
        yield server
