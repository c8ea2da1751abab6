"""A Celery application with a real broker, a real worker and any number of real beats."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import redis as driver
from redis.asyncio import Redis as AsyncRedis

from tests.acceptance.beat.beats import Place
from tests.servers.launch import Server

PROGRAMS = Path(__file__).parent / "programs"
PATIENCE_SECONDS = 60


class Shop:
    """The processes of one Celery application, and what its tasks have told."""

    def __init__(self, folder: Path, broker: str) -> None:
        self.store = f"sqlite:///{folder / 'everytick.db'}"
        self.told = driver.Redis.from_url(broker, socket_timeout=None)
        self.told.flushdb()
        variables = {"SHOP_REDIS": broker, "EVERYTICK_STORE": self.store, "PYTHONPATH": str(PROGRAMS)}
        self._variables = {**os.environ, **variables, "PYTHONUNBUFFERED": "1"}
        self._folder = folder
        self.children: list[subprocess.Popen[bytes]] = []

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start `celery -A shop …`; its lines go to a file of its own."""
        log = self.log(len(self.children))
        command = [sys.executable, "-m", "celery", "-A", "shop", *words]
        with log.open("wb") as lines:
            child = subprocess.Popen(
                command, cwd=self._folder, env=self._variables, stdout=lines, stderr=subprocess.STDOUT
            )
        self.children.append(child)
        return child

    def worker(self) -> "subprocess.Popen[bytes]":
        """Start a worker."""
        return self.start("worker", "--pool", "solo", "--loglevel", "warning", "--without-mingle", "--without-gossip")

    def beat(self) -> "subprocess.Popen[bytes]":
        """Start a beat of ours."""
        return self.start("beat", "-S", "everytick.beat.celery:Scheduler", "--loglevel", "info", "--pidfile=")

    def log(self, number: int) -> Path:
        """Return where the lines of a child are."""
        return self._folder / f"child-{number}.log"

    def run(self) -> dict[str, Any]:
        """Return what the next task that runs tells."""
        found: Any = self.told.blpop(["runs"], timeout=PATIENCE_SECONDS)
        logs = "\n".join(self.log(number).read_text() for number in range(len(self.children)))
        assert found is not None, f"no task has run:\n{logs}"
        told: dict[str, Any] = json.loads(found[1])
        return told

    def everytick(self, *words: str) -> str:
        """Return what our command line says of the store."""
        done = subprocess.run(
            [sys.executable, "-m", "everytick", *words, "--store", self.store],
            capture_output=True,
            text=True,
            check=False,
            env=self._variables,
            timeout=PATIENCE_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def end(self) -> None:
        """Kill what still runs."""
        for child in self.children:
            child.kill()
            child.wait()
        self.told.close()


@pytest.fixture
def shop(tmp_path: Path, redis: Server) -> Iterator[Shop]:
    """A Celery application without any process yet."""
    made = Shop(tmp_path, redis.address)
    yield made
    made.end()


def stopped(child: "subprocess.Popen[bytes]") -> int:
    """Tell a process to stop, and return its exit code."""
    child.send_signal(signal.SIGTERM)
    return child.wait(PATIENCE_SECONDS)


@pytest.fixture
async def client(redis: Server) -> AsyncIterator[AsyncRedis]:
    """A connection to an empty Redis."""
    connection = AsyncRedis.from_url(redis.address, decode_responses=True)
    await connection.flushall()
    await connection.config_set("maxmemory", 0)
    yield connection
    await connection.config_set("maxmemory", 0)
    await connection.aclose()


@pytest.fixture
async def place(redis: Server, client: AsyncRedis) -> AsyncIterator[Place]:
    """A place for beats, in an empty Redis."""
    async with AsyncExitStack() as closing:
        yield Place(redis.address, closing)
