"""From the start of the process to the first line of the first durable job on SQLite, beside its peers.

    python3 dev.py bench startup

Whole processes, taking turns: each imports, makes its file, defines one job, asks for it
and says when its body began. APScheduler 3 keeps its jobs through SQLAlchemy. huey is here
for scale: it is a queue without schedules. All of them are compiled before, as an installer
does it, whatever the environment says about bytecode.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from os import environ, wait4
from pathlib import Path

ROUNDS = 11
PROGRAMS = {
    "everytick": """
import os, sys, time
from everytick import Everytick, every
tick = Everytick("sqlite:///" + sys.argv[1])
@tick.job(every("1h"), on_create="immediately")
async def body():
    print(time.time(), flush=True)
    os._exit(0)
tick.run()
""",
    "APScheduler 3": """
import os, sys, threading, time
from apscheduler.schedulers.background import BackgroundScheduler
ran = threading.Event()
def body():
    print(time.time(), flush=True)
    ran.set()
scheduler = BackgroundScheduler(timezone="UTC")
scheduler.add_jobstore("sqlalchemy", url="sqlite:///" + sys.argv[1])
scheduler.start()
scheduler.add_job(body)
ran.wait(20)
os._exit(0)
""",
    "huey": """
import os, sys, threading, time
from huey import SqliteHuey
ran = threading.Event()
huey = SqliteHuey(filename=sys.argv[1])
@huey.task()
def body():
    print(time.time(), flush=True)
    ran.set()
body()
huey.create_consumer(workers=1, periodic=False, initial_delay=0.001).start()
ran.wait(20)
os._exit(0)
""",
    "sqlite3 and asyncio alone": """
import asyncio, sqlite3, sys, time
async def body():
    print(time.time(), flush=True)
async def main():
    db = sqlite3.connect(sys.argv[1], isolation_level=None)
    db.execute("pragma journal_mode = wal")
    db.execute("create table job (id integer primary key, status int)")
    db.execute("insert into job (status) values (0)")
    [row] = db.execute("update job set status = 1 where status = 0 returning id").fetchall()
    await body()
    db.execute("update job set status = 2 where id = ?", row)
asyncio.run(main())
""",
}


def compiled(cache: str) -> dict[str, str]:
    """Return an environment in which what is imported is kept compiled in this folder."""
    kept = {name: text for name, text in environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": cache}


def started(program: str, environment: dict[str, str]) -> tuple[float, float]:
    """Return the seconds until the body began, and the processor's until then."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.time()
        command = [sys.executable, "-c", program, str(Path(folder) / "store.db")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout is not None
        said = process.stdout.readline()
        process.stdout.close()
        _, code, usage = wait4(process.pid, 0)
    assert said, f"exit code {code} of:\n{program}"
    return float(said) - begun, usage.ru_utime + usage.ru_stime


def main() -> int:
    """Print every figure; 0 if everytick is not slower than APScheduler 3."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as cache:
        environment = compiled(cache)
        for program in PROGRAMS.values():
            started(program, environment)
        for _ in range(ROUNDS):
            for name, program in PROGRAMS.items():
                found[name].append(started(program, environment))
    for name, times in found.items():
        wall, cpu = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
        fastest = 1e3 * min(times)[0]
        print(f"{name:26} {wall:5.0f} ms to the body (fastest {fastest:4.0f}), processor {cpu:4.0f} ms")
    ours, theirs = ([wall for wall, _ in found[name]] for name in ("everytick", "APScheduler 3"))
    against = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    print(f"everytick takes {against:.2f} of APScheduler 3's time, at most 1: {'ok' if against <= 1 else 'MISSED'}")
    return int(against > 1)


if __name__ == "__main__":
    sys.exit(main())
