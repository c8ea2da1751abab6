"""A13: Flask under gunicorn, whose workers are forks: each occurrence runs once, and a fork asks by itself."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType

import pytest

from tests.acceptance.frameworks.project import GUNICORN, STARTED_WITHIN, Project, get
from tests.acceptance.node.conftest import new_database
from tests.acceptance.node.records import query
from tests.servers.keeper import free_port

WORKERS = 3

WEB = """
import os
from flask import Flask
from everytick import Context, Everytick, every

tick = Everytick(os.environ["STORE"], name="shop")
app = Flask(__name__)

@tick.job(every("200ms"), overlap="queue", recovery="execute_all")
async def beat(ctx: Context):
    os.write(1, f"ran {round(ctx.scheduled_for.timestamp() * 5)} {os.getpid()}\\n".encode())

@tick.job(every("P1Y"))
def asked():
    return os.getpid()

@app.get("/")
def ask():
    ended = tick.wait(tick.wait(asked.trigger()), timeout="60s")
    return {"view": os.getpid(), "job": ended.result}

tick.start_background()
"""

FORKED = "this process was forked after start_background(): its node stayed in process "


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, project: Project) -> str:
    if request.param == "sqlite":
        return project.address()
    return asyncio.run(new_database(request.getfixturevalue("postgres")))


def _all_workers_answer(
    project: Project, port: int, count: int = WORKERS, before: Mapping[int, int] = MappingProxyType({})
) -> dict[int, int]:
    """Return, by the process of the view, which process ran the job that it asked for, once so many have answered.

    A worker serves one request at a time, so that as many at once as there are workers reach all of them soon.
    """
    heard = dict(before)

    def is_whole() -> bool:
        with ThreadPoolExecutor(WORKERS) as clients:
            answers = [json.loads(answer[1]) for answer in clients.map(get, [port] * WORKERS, "/" * WORKERS) if answer]
        heard.update({answer["view"]: answer["job"] for answer in answers})
        return len(heard) == count

    project.fleet.wait_until(is_whole, f"{count} workers answered", STARTED_WITHIN)
    return heard


@pytest.mark.parametrize("preload", [False, True], ids=["plain", "preload"])
def test_each_run_happens_once_and_every_worker_can_ask(preload: bool, address: str, project: Project) -> None:
    """A13: with --preload the only node is in the master, and the workers neither use nor close its connections."""
    port, fleet = free_port(), project.fleet
    project.write("web.py", WEB)
    options = ["-w", WORKERS, "-b", f"127.0.0.1:{port}", *(["--preload"] if preload else [])]
    server = project.python(*GUNICORN, *options, "web:app", environment={"STORE": address})
    fleet.hear("ran ", within=STARTED_WITHIN)

    asked = _all_workers_answer(project, port)
    # One worker ends as workers do, and another is forked while the node is at work.
    os.kill(next(iter(asked)), signal.SIGTERM)
    asked |= _all_workers_answer(project, port, WORKERS + 1, asked)
    fleet.hear("ran ")
    server.tell_to_stop(signal.SIGTERM)
    assert server.ended() == 0

    ran = Counter(line.split()[1] for line in fleet.heard() if line.startswith("ran "))
    assert set(ran.values()) == {1}
    master = server.process.pid
    assert (set(asked.values()) == {master}) is preload
    assert master not in asked
    told = server.errors()
    assert told.count(f"{FORKED}{master}") == (WORKERS + 1 if preload else 0)
    if address.startswith("sqlite"):
        assert query(address, "pragma integrity_check") == [("ok",)]
