"""kill -9 at every statement of an edit: the file holds the whole edit or nothing of it, and the edit is repeated."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.stores.sqlite.processes import ROOT

PROGRAM = """
import asyncio, os, shutil, signal, sqlite3, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from everytick.domain.changes import Put
from everytick.domain.policies import update_policy
from everytick.stores.sqlite.store import SqliteStore
from tests.stores.acting import everything, job, occurrences, plan_once

folder, policy, now = Path(sys.argv[1]), sys.argv[2], datetime(2026, 3, 2, 12, tzinfo=UTC)
old, new = job(when="0 * * * *"), job(when="30 * * * *", priority=5, queue="slow")
left = None
real = sqlite3.connect


def counting(*given, **named):
    made = real(*given, **named)

    def traced(statement):
        global left
        if left is not None:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    made.set_trace_callback(traced)
    return made


async def opened(path, work, now=now):
    store = SqliteStore(path, clock=lambda: now)
    await store.open()
    try:
        return await work(store)
    finally:
        await store.close()


async def prepared(store):
    await store.apply([Put(old)], "ann")


async def planned(store):
    await plan_once(store)


async def edited(store):
    global left
    left = int(sys.argv[3]) if left == "armed" else left
    [stored] = await store.apply([Put(new, 1, update_policy(policy))], "ann")
    left = None


async def seen(store):
    [record] = await store.list()
    snapshot = (await store.look([record.job.id]))[record.job.id]
    known = snapshot.editions
    editions = [(each.job.version, str(each.job.schedule), each.follows, str(each.rollout)) for each in known]
    made = [(str(each.status), each.version) for each in await occurrences(store)]
    return record.job.version, record.revision, editions, made, (await everything(store)).met


def run(path, work, now=now):
    return asyncio.run(opened(path, work, now))


later = now + timedelta(hours=1, minutes=1)
base = folder / "base.db"
run(base, prepared)
run(base, planned, later)
before = run(base, seen, later)
whole = folder / "whole.db"
shutil.copy(base, whole)
run(whole, edited, later)
after = run(whole, seen, later)
assert before != after
halves, number = [0, 0], 0
while True:
    path = folder / f"{number}.db"
    shutil.copy(base, path)
    child = os.fork()
    if child == 0:
        sqlite3.connect = counting
        sys.argv[3:] = [str(number)]
        left = "armed"
        run(path, edited, later)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    found = run(path, seen, later)
    assert found in (before, after), f"after statement {number}: {found}"
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == 0 and found == after
        break
    halves[found == after] += 1
    if found == before:
        run(path, edited, later)
        assert run(path, seen, later) == after, f"the edit again, after statement {number}"
    number += 1
print(number, *halves)
"""


def slowly(policy: str) -> Any:
    return pytest.param(policy, marks=pytest.mark.slow)


@pytest.mark.parametrize("policy", ["immediate", slowly("graceful"), slowly("windowed 3"), slowly("rollout 50%")])
def test_an_edit_that_is_killed_at_any_statement_is_whole_or_not_there(policy: str, tmp_path: Path) -> None:
    """S0-118, S0-119, S0-124."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), policy]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    killed, nothing, everything = map(int, done.stdout.split())
    assert killed >= 8, "each statement of the edit was one moment to die at"
    assert nothing + everything == killed
    assert nothing >= killed - 2, "only the commit itself makes it whole"
