"""Forks of a process that has an SQLite store open.

SQLite remembers in the memory of a process which locks it holds, and a fork copies the memory but not the locks. A copy
that opened the same file would believe that it holds them: it would read and write without, and lose what it wrote once
the original closed the file and removed its log.
"""

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from everytick.app import Everytick

PROGRAM = """
import os, signal, sys
from everytick import Context, Everytick, every

path, driver = sys.argv[1:]
tick = Everytick("sqlite:///" + path + ("?driver=apsw" if driver == "apsw" else ""), name="shop", grace_period="1s")

@tick.job(every("P1Y"))
async def work():
    return None

@tick.job(every("10ms"), overlap="allow")
async def busy():
    return None

def ask(key):
    return tick.wait(tick.trigger("work", key=key), timeout="60s").id

def tell(key):
    # In one write: where output is not buffered, print makes several, and those of two processes mix.
    os.write(1, f"asked {ask(key)}\\n".encode())
"""

OUTLIVES = (
    PROGRAM
    + """
tick.start_background()
ask("before")
ends, left = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(left)
    signal.alarm(60)
    tell("while the original runs")
    os.read(ends, 1)
    tell("after the original has closed the file")
    tick.wait(tick.close())
    os._exit(0)
ask("after")
tick.stop_background()
os.close(left)
assert os.waitpid(pid, 0)[1] == 0
"""
)

MANY = (
    PROGRAM
    + """
tick.start_background()
children = []
for number in range(20):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        tell(f"{number}")
        tick.wait(tick.close())
        os._exit(0)
    children.append(pid)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
tick.stop_background()
"""
)


INSIDE = (
    PROGRAM
    + """
@tick.job(every("P1Y"))
async def forks(ctx: Context):
    async with ctx.transaction() as tx:
        await tx.execute("create table mine (x)")
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            try:
                ask("inside")
            except Exception as error:
                print(type(error).__name__, error, flush=True)
            os._exit(0)
        tx.result(os.waitpid(pid, 0)[1])

tick.start_background()
print("asked", tick.wait(tick.wait(forks.trigger()), timeout="60s").id, flush=True)
tick.stop_background()
"""
)


def run(program: str, file: Path, driver: str) -> list[str]:
    """Return the lines that the program printed."""
    command = [sys.executable, "-c", program, str(file), driver]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


async def asked_for(lines: list[str], file: Path) -> list[str]:
    """Return the ids that were asked for; the store knows all of them."""
    ids = [line.split()[1] for line in lines if line.startswith("asked ")]
    tick = Everytick(f"sqlite:///{file}", name="looks")
    assert [(await tick.occurrence(id_)).occurrence.id for id_ in ids] == ids
    await tick.close()
    return ids


@pytest.mark.parametrize("driver", ["sqlite3", "apsw"])
@pytest.mark.parametrize(("program", "count"), [(OUTLIVES, 2), (MANY, 20)], ids=["outlives its original", "many"])
def test_what_a_fork_writes_is_there_for_all(program: str, count: int, driver: str, tmp_path: Path) -> None:
    """A13: also once the original has closed the file, and whatever it was doing when it was forked."""
    file = tmp_path / "jobs.db"
    lines = run(program, file, driver)
    assert len(asyncio.run(asked_for(lines, file))) == count, "\n".join(lines)


def test_a_fork_in_the_middle_of_a_transaction_is_refused_the_file(tmp_path: Path) -> None:
    """A13: the transaction is not waited for, since the fork may come from it, and commits in the original."""
    file = tmp_path / "jobs.db"
    lines = run(INSIDE, file, "sqlite3")
    [refused] = [line for line in lines if not line.startswith("asked ")]
    assert refused.startswith("StoreBroken")
    assert "this process was forked in the middle of a transaction" in refused
    assert "fork outside of ctx.transaction()" in refused
    assert len(asyncio.run(asked_for(lines, file))) == 1
    with closing(sqlite3.connect(file)) as looking:
        assert looking.execute("select count(*) from mine").fetchall() == [(0,)]
