"""A few lively jobs on an embedded SQLite in a temporary folder, a view of what they do, and the dashboard.

    python3 dev.py run                  until Ctrl-C, which stops it cleanly
    python3 dev.py run --seconds 20     stops itself

On a terminal the view is drawn anew four times a second; into a pipe every event is a line. Both show the
address of the dashboard. What the view shows of the store is read with plain SQL, as any program could.
"""

import argparse
import asyncio
import logging
import os
import shutil
import signal
import socket
import sqlite3
import sys
import tempfile
import threading
from collections import Counter, deque
from contextlib import closing
from pathlib import Path

from everytick import Context, Event, Everytick, Retry, every

HOST, PORT = "127.0.0.1", 8484
LATEST = 10
PAINT = {"completed": "32", "success": "32", "failed": "31", "timeout": "31", "skipped": "33", "running": "36"}


# ------------------------------------------------------------------------------------------------------ the jobs


def define_jobs(tick: Everytick) -> None:
    """One job that is quick, one that overlaps itself, one that is long, and one of several tasks that may fail."""

    @tick.job(every("2s"))
    async def pulse() -> None:
        await asyncio.sleep(0.1)

    @tick.job(every("3s"), overlap="skip")
    async def overlapping() -> None:
        await asyncio.sleep(4)

    @tick.job(every("15s"))
    async def long(ctx: Context) -> None:
        for done in range(1, 41):
            await asyncio.sleep(0.25)
            ctx.progress(done, 40, note="pages")

    nightly = tick.define("nightly", every("10s"), mode="parallel")

    @nightly.task
    async def extract() -> None:
        await asyncio.sleep(1)

    @nightly.task
    async def index() -> None:
        await asyncio.sleep(6)

    @nightly.task(retry=Retry(2, "1s", factor=2.0))
    async def upload(ctx: Context) -> None:
        await asyncio.sleep(0.5)
        every_other = ctx.scheduled_for.second % 20 == 0
        if ctx.attempt < 3 or every_other:
            raise ConnectionError("the remote side hung up")

    @nightly.task(failure="continue")
    async def clean_up() -> None:
        await asyncio.sleep(2)


# ------------------------------------------------------------------------------------------------- what is known


class Board:
    """What the node has told so far; it is told on the node's loop and read by the view."""

    def __init__(self) -> None:
        self.open: dict[tuple[str, str], int] = {}
        self.ended: dict[str, Counter[str]] = {}
        self.last: dict[str, str] = {}
        self.latest: deque[str] = deque(maxlen=LATEST)
        self.lines = 0
        self.is_address_said = False

    def take(self, event: Event) -> str:
        """Remember the event and return it in words."""
        counts, task = self.ended.setdefault(event.job, Counter()), event.task or ""
        match event.kind:
            case "started":
                self.open[event.job, task] = event.attempt or 1
            case "attempt_ended":
                self.open.pop((event.job, task), None)
            case "retry_planned":
                counts["retries"] += 1
            case "ended":
                counts[event.status] += 1
                self.last[event.job] = event.status
            case "skipped":
                counts["skipped"] += 1
        what = f"{event.job}.{event.task}" if event.task and event.task != event.job else event.job
        number = f" #{event.attempt}" if event.attempt and event.attempt > 1 else ""
        said = event.text.strip().splitlines()[-1] if event.text.strip() else ""
        if event.kind == "retry_planned":
            said = f"at {said.split()[-1][:8]}"  # its time alone
        line = f"{event.at:%H:%M:%S}  {what + number:22} {event.kind.replace('_', ' '):14} {event.status:10} {said}"
        self.latest.append(line.rstrip())
        return line.rstrip()


def asked(database: Path, question: str) -> list[tuple[str, ...]]:
    """Return the answer of the store's file to a question in SQL; nothing while there is no file."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as sql:
            return sql.execute(question).fetchall()
    except sqlite3.OperationalError:
        return []


# ------------------------------------------------------------------------------------------------------ the view


def painted(text: str, status: str) -> str:
    """Return the text in the colour of a status, unless the environment refuses colours."""
    code = None if os.environ.get("NO_COLOR") else PAINT.get(status)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def picture(board: Board, database: Path, dashboard: str) -> list[str]:
    """Return the lines of the view."""
    rows = asked(database, "select name, schedule, next_run from jobs order by name")
    progress = {
        (job, task): f" {int(done)}/{int(total)} {note}"
        for job, task, done, total, note in asked(
            database,
            "select job, task, progress_done, progress_total, progress_text from attempts "
            "where status = 'running' and progress_total is not null",
        )
    }
    width = shutil.get_terminal_size().columns
    lines = ["everytick: a node at work (Ctrl-C stops it cleanly)", f"dashboard: {dashboard}", ""]
    lines += [
        f"{'job':12} {'schedule':11} {'next':9} {'last':10} {'ok':>3} {'bad':>4} {'skip':>4} {'retry':>5}  running"
    ]
    for name, schedule, next_run in rows:
        counts, last = board.ended.get(name, Counter()), board.last.get(name, "")
        running = ", ".join(
            f"{task}{f' #{number}' if number > 1 else ''}{progress.get((job, task), '')}"
            for (job, task), number in sorted(board.open.items())
            if job == name
        )
        bad = counts["failed"] + counts["failed_stale"] + counts["canceled"]
        cells = f"{name:12} {schedule:11} {(next_run or '')[11:]:9} "
        tail = f" {counts['completed']:3} {bad:4} {counts['skipped']:4} {counts['retries']:5}  {running}"
        lines.append(cells + painted(f"{last:10}", last) + tail[: max(0, width - len(cells) - 11)])
    lines += ["", "latest:", *(f"  {line}"[: width - 1] for line in list(board.latest))]
    return lines


def draw(board: Board, database: Path, dashboard: str) -> None:
    """Draw the view over the last one; nothing is left behind in the terminal if the process is killed."""
    lines = picture(board, database, dashboard)
    up = f"\x1b[{board.lines}A" if board.lines else ""
    sys.stdout.write(f"{up}\r\x1b[J" + "\n".join(lines) + "\n")
    sys.stdout.flush()
    board.lines = len(lines)


def summary(database: Path) -> list[str]:
    """Return what became of everything, as the store knows it."""
    ends = asked(database, "select job, status, count(*) from occurrences group by job, status order by job, status")
    spans = asked(database, "select job, status, sum(count) from skipped_spans group by job, status order by job")
    found: dict[str, list[str]] = {}
    for job, status, number in (*ends, *spans):
        found.setdefault(job, []).append(f"{number} {status}")
    return ["stopped; what the store holds:", *(f"  {job:12} {', '.join(found[job])}" for job in sorted(found))]


# ------------------------------------------------------------------------------------------------------- the run


def main() -> None:
    """Run the demo until a person stops it."""
    parser = argparse.ArgumentParser(prog="dev.py run", description="A few lively jobs, and what they do.")
    parser.add_argument("--seconds", type=float, help="stop after so many seconds instead of waiting for Ctrl-C")
    parser.add_argument("--port", type=int, help="where the dashboard is served; 0 means any free port")
    given = parser.parse_args()
    seconds: float | None = given.seconds
    with tempfile.TemporaryDirectory(prefix="everytick-demo-") as folder:
        database = Path(folder) / "everytick.db"
        # What the node tells the person who started it would stand in the middle of the view.
        logging.basicConfig(filename=Path(folder) / "demo.log", level=logging.INFO)
        run(database, seconds, web_address(PORT) if given.port is None else f"{HOST}:{given.port}")
        print("\n".join(["", *summary(database)]), flush=True)


def web_address(port: int) -> str:
    """Return where the dashboard is served: at this port, or at any free one if that is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return f"{HOST}:0"
    return f"{HOST}:{port}"


def run(database: Path, seconds: float | None, web: str) -> None:
    """Run the jobs on this file, and show them, until a signal comes."""
    tick = Everytick(f"sqlite:///{database}", name="demo")
    define_jobs(tick)
    board, is_over = Board(), threading.Event()
    clock = None if seconds is None else threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
    if clock is not None:
        clock.daemon = True
    on_terminal = sys.stdout.isatty()

    @tick.on_event
    def listen(event: Event) -> None:
        if clock is not None and not clock.is_alive() and not clock.finished.is_set():
            clock.start()  # the seconds count from here: before, a slow machine is still loading
        line = board.take(event)
        if not on_terminal:
            say_address()
            print(line, flush=True)

    def say_address() -> None:
        if tick.web_url is not None and not board.is_address_said:
            board.is_address_said = True
            print(f"dashboard: {tick.web_url}", flush=True)

    def paint() -> None:
        while not is_over.wait(0.25):
            draw(board, database, tick.web_url or "starts")

    painter = threading.Thread(target=paint, daemon=True) if on_terminal else None
    if painter is not None:
        painter.start()
    try:
        tick.run(web=web)
    finally:
        is_over.set()
        if clock is not None:
            clock.cancel()
        if painter is not None:
            painter.join()
            draw(board, database, "stopped")


if __name__ == "__main__":
    main()
