"""Celery workers and nodes as real processes, on a real Redis or RabbitMQ."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis as driver
from kombu.connection import Connection

from everytick import Everytick
from tests.acceptance.engines.brokers import Broker
from tests.servers.launch import Server
from tests.servers.rabbit import Rabbit, rabbit_server

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).parent / "programs"
PATIENCE_SECONDS = 60
QUEUES = ("celery", "reports", "urgent")
"""The queues of all tests."""


class Yard:
    """The processes of one test, what the tasks have told, and applications that hand work over to them."""

    def __init__(self, folder: Path, told: str, broker: str | None = None) -> None:
        self.folder, self.broker, self.store = folder, broker or told, f"sqlite:///{folder / 'everytick.db'}"
        self.told = driver.Redis.from_url(told, socket_timeout=None)
        self.told.flushall()
        variables = {"ENGINE_BROKER": self.broker, "ENGINE_RESULTS": told, "ENGINE_TOLD": told}
        self._variables = {**os.environ, **variables, "ENGINE_STORE": self.store, "PYTHONUNBUFFERED": "1"}
        self._variables["PYTHONPATH"] = os.pathsep.join([str(PROGRAMS), str(ROOT)])
        self._results = told
        self._children: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str, **variables: str) -> "subprocess.Popen[bytes]":
        """Start Python with these words, as the first of a group; its lines go to a file of its own."""
        with (self.folder / f"child-{len(self._children)}.log").open("wb") as lines:
            child = subprocess.Popen(
                [sys.executable, *words],
                cwd=self.folder,
                env={**self._variables, **variables},
                stdout=lines,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._children.append(child)
        return child

    def worker(self, *words: str, **variables: str) -> "subprocess.Popen[bytes]":
        """Start a worker that can end a task that runs."""
        quiet = ("--without-mingle", "--without-gossip", "--loglevel", "info", "--concurrency", "2")
        return self.start("-m", "celery", "-A", "engine_tasks", "worker", *quiet, *words, **variables)

    def node(self) -> "subprocess.Popen[bytes]":
        """Start a node."""
        return self.start("-m", "engine_node")

    def tick(self, **settings: Any) -> Everytick:
        """Return an application that hands work over to these workers."""
        known = {"name": "engine-node", "heartbeat": "200ms", "node_timeout": "1s", "reaper_interval": "200ms"}
        results = self._results if self.broker != self._results else None
        return Everytick(self.store, celery=self.broker, celery_results=results, **{**known, **settings})

    def hear(self, key: str) -> str:
        """Return the next word on a list."""
        found: Any = self.told.blpop([key], timeout=PATIENCE_SECONDS)
        assert found is not None, f"nothing was said on {key}:\n{self.lines()}"
        said: str = found[1].decode()
        return said

    def runs(self) -> list[str]:
        """Return which tasks have run."""
        found: Any = self.told.lrange("runs", 0, -1)
        return [each.decode() for each in found]

    def lines(self) -> str:
        """Return what the processes have said."""
        return "\n".join(file.read_text() for file in sorted(self.folder.glob("child-*.log")))

    def end(self) -> None:
        """Kill what still runs, with all its children."""
        for child in self._children:
            kill(child)
        self.told.close()


def kill(child: "subprocess.Popen[bytes]") -> None:
    """Kill a process and its children."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait(PATIENCE_SECONDS)


@pytest.fixture
def yard(tmp_path: Path, redis: Server) -> Iterator[Yard]:
    """A place without any process yet."""
    made = Yard(tmp_path, redis.address)
    yield made
    made.end()


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A Redis that this test may kill."""
    folder = tmp_path / "broker"
    folder.mkdir()
    made = Broker(folder)
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="session")
def rabbit_of_session() -> Iterator[Rabbit]:
    """A RabbitMQ that is started when the first test asks: this takes four seconds of a processor."""
    with rabbit_server() as server:
        yield server


def connected(rabbit: Rabbit) -> Any:
    """Return a connection to the broker, for `with`; its library has no types."""
    connect: Any = Connection
    return connect(rabbit.address)


@pytest.fixture
def rabbit(rabbit_of_session: Rabbit) -> Rabbit:
    """A RabbitMQ without any queue of ours, which a test may kill if it starts it again."""
    with connected(rabbit_of_session) as connection:
        for name in QUEUES:
            connection.default_channel.queue_delete(name)
    return rabbit_of_session


@pytest.fixture
def rabbit_yard(tmp_path: Path, redis: Server, rabbit: Rabbit) -> Iterator[Yard]:
    """A place without any process yet, whose broker is RabbitMQ; results are in Redis."""
    made = Yard(tmp_path, redis.address, rabbit.address)
    yield made
    made.end()
