"""The service beside a running node: budgets of the pages, a load of reads, event streams, and what they cost a tick.

    python3 dev.py bench service                  on PostgreSQL and on SQLite
    .venv/bin/python bench/service.py sqlite      on one of them
    .venv/bin/python bench/service.py ADDRESS     on a store that is filled already
    .venv/bin/python bench/service.py short …     the same in a minute, for a first look

The store holds 10,000 jobs and a million occurrences. One process runs a node with a job every second and serves the
dashboard; this one asks. Every page is opened 20 times on one connection: the first opening is printed by itself, since
a dear page is kept for a moment afterwards, and the median is judged. Then every page and call is asked for as by
different browsers, so that no kept page answers, and the processor's time for one of them is printed: that of the
process and of the server, less what the node takes without requests. Then 200 requests a second of mixed reads, pages
and API in turn, come evenly for 20 seconds, whether earlier ones are answered or not: a request counts from when it was
to be sent. Lateness is that of ten jobs every second, in four turns of 15 seconds: no reader, 20 dashboards are open
and live, 20 dashboards, no reader. What else goes on counts for both. At last 100 event streams are open and the agenda
is asked for while the process is told to stop. It takes about three minutes for each store.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench._beside import durable_server, family_seconds, judged, percentile
from bench._browsing import Connection, read_head
from bench._history import fill

JOBS, OCCURRENCES = 10_000, 1_000_000
FIRST_BYTE, COMPLETE, HTML, SENT = 0.050, 0.150, 120_000, 20_000
"""Budgets of a page: seconds, and bytes before and after compression."""

RATE, P99 = 200, 0.250
PULSES = 10
DASHBOARDS, LATER = 20, 0.025
"""Dashboards that are open, and by how many seconds the 90th percentile of lateness may rise with them."""

STREAMS, EXIT_SECONDS = 100, 2.0


class Scale(NamedTuple):
    """How often each page is opened, and how many seconds the load and the lateness are measured."""

    opened: int = 20
    load_seconds: int = 20
    lateness_seconds: int = 15


SHORT = Scale(3, 5, 5)

NODE = """
import sys, time
from everytick import Context, Everytick, every

# Of a queue of its own: the jobs that fill the store are no work of this node.
tick = Everytick(sys.argv[1], name="bench-service", queues=("bench",))

async def pulse(ctx: Context) -> None:
    print(f"late {time.time() - ctx.scheduled_for.timestamp()}", flush=True)

for number in range(int(sys.argv[2])):
    tick.job(every("1s"), name=f"bench-pulse-{number}", queue="bench")(pulse)

@tick.on_event
def tell(event: object) -> None:
    if tick.web_url and not told:
        told.append(tick.web_url)
        print(f"url {tick.web_url}", flush=True)

told: list[str] = []
tick.run(web="127.0.0.1:0")
"""


class NodeProcess:
    """A process with a node and the service. It prints how late each run of its jobs began."""

    def __init__(self, address: str) -> None:
        self.lateness: list[float] = []
        self.url = ""
        self._child = subprocess.Popen(
            [sys.executable, "-c", NODE, address, str(PULSES)], stdout=subprocess.PIPE, text=True
        )
        self._is_up = asyncio.Event()

    async def up(self) -> None:
        """Return when the service has told its address."""
        loop = asyncio.get_running_loop()

        def read() -> None:
            assert self._child.stdout is not None, "it is piped"
            for line in self._child.stdout:
                what, text = line.split()
                if what == "url":
                    self.url = text
                    loop.call_soon_threadsafe(self._is_up.set)
                else:
                    self.lateness.append(float(text))

        self._reading = loop.run_in_executor(None, read)
        await asyncio.wait_for(self._is_up.wait(), 120)

    def kill(self) -> None:
        """End it if it has not left: a benchmark that failed must not wait for it."""
        if self._child.poll() is None:
            self._child.kill()

    @property
    def pid(self) -> int:
        """The process."""
        return self._child.pid

    async def stop(self) -> float:
        """Tell it to stop; seconds until it has left."""
        began = time.perf_counter()
        self._child.send_signal(signal.SIGTERM)
        await self._reading
        code = await asyncio.to_thread(self._child.wait, 60)
        assert code == 0, f"the node left with {code}"
        return time.perf_counter() - began


async def pages(url: str) -> list[str]:
    """Return the addresses of the pages, with a job and an occurrence of the filled store."""
    asking = Connection(url)
    job = json.loads((await asking.get("/api/jobs?contains=job&limit=1")).body)["items"][0]["name"]
    run = json.loads((await asking.get("/api/occurrences?limit=1")).body)["items"][0]["id"]
    await asking.close()
    own = [f"/jobs/{job}", f"/occurrences/{run}", f"/history?job={job}", f"/year?job={job}"]
    return ["/", "/?w=3d", "/jobs", "/history", "/agenda", "/nodes", "/files", "/audit", "/lab", *own]


async def reads(url: str, paths: Sequence[str]) -> list[str]:
    """Return pages and calls of the API in turn, as dashboards and other systems ask."""
    asking = Connection(url)
    job = json.loads((await asking.get("/api/jobs?contains=job&limit=1")).body)["items"][0]["name"]
    run = json.loads((await asking.get("/api/occurrences?limit=1")).body)["items"][0]["id"]
    await asking.close()
    calls = ["/api/jobs?limit=50", f"/api/jobs/{job}", "/api/occurrences?limit=50", f"/api/occurrences/{run}"]
    calls += [f"/api/jobs/{job}/next", "/api/nodes", "/livez", "/readyz", "/metrics"]
    return [each for pair in zip_longest(paths, calls) for each in pair if each is not None]


async def budgets(url: str, paths: Sequence[str], scale: Scale) -> bool:
    """Open every page many times; whether all of them keep their budgets."""
    enough, asking, slow = True, Connection(url), []
    for path in paths:
        fresh = await asking.get(path)
        answers = [await asking.get(path) for _ in range(scale.opened)]
        assert all(each.status == 200 for each in answers), f"{path} answered {answers[0].status}"
        first = percentile([each.first_byte for each in answers], 50)
        whole = percentile([each.complete for each in answers], 50)
        size, sent = len(answers[0].body), answers[0].sent
        good = first <= FIRST_BYTE and whole <= COMPLETE and size <= HTML and sent <= SENT
        enough &= good
        slow += [path] if fresh.complete > COMPLETE else []
        print(
            f"  {path:40.40} first byte {1e3 * first:5.0f} ms, complete {1e3 * whole:5.0f} ms "
            f"(opened first: {1e3 * fresh.complete:5.0f} ms), "
            f"{size / 1e3:5.1f} KB, {sent / 1e3:4.1f} KB sent: {judged(good)}",
            flush=True,
        )
    await asking.close()
    print(f"  opened first, over {1e3 * COMPLETE:.0f} ms: {len(slow)} of {len(paths)} {slow}", flush=True)
    return enough


class Spent:
    """The processor's seconds that requests take, of the process and of the server behind it.

    What both take without requests is measured first, and is no part of it.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids, self._idle = pids, [0.0] * len(pids)
        self._begin: tuple[float, list[float]] = (0.0, [])

    async def rest(self, seconds: float) -> None:
        """Measure what is spent without requests."""
        self.begin()
        await asyncio.sleep(seconds)
        self._idle = [each / seconds for each in self.so_far()]

    def begin(self) -> None:
        """Count from now on."""
        self._begin = time.perf_counter(), [family_seconds(pid) for pid in self._pids]

    def so_far(self) -> list[float]:
        """Return what was spent since the beginning, by process."""
        began, before = self._begin
        took = time.perf_counter() - began
        now = [family_seconds(pid) for pid in self._pids]
        return [end - start - took * idle for end, start, idle in zip(now, before, self._idle, strict=True)]

    def told(self, count: int) -> str:
        """Return the milliseconds for each of so many requests: of the service, and of the server if there is one."""
        parts = [f"{1e3 * each / count:.2f}" for each in self.so_far()]
        return " + ".join(parts) + (" ms (service + server)" if len(parts) > 1 else " ms")


async def costs(url: str, paths: Sequence[str], spent: Spent, scale: Scale) -> None:
    """Print the processor's time for one request of each kind, when no kept page answers it."""
    print(f"  processor for one request, no page kept, load average {os.getloadavg()[0]:.1f}:", flush=True)
    for path in paths:
        spent.begin()
        for number in range(scale.opened):
            asking = Connection(url, headers=f"cookie: reader={path.encode().hex()[:40]}{number}\r\n")
            await asking.get(path)
            await asking.close()
        print(f"    {path:50.50} {spent.told(scale.opened)}", flush=True)


async def load(url: str, paths: Sequence[str], spent: Spent, scale: Scale) -> bool:
    """Ask at a fixed rate, whether earlier requests are answered or not; whether the slowest hundredth is in time."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(64):
        free.put_nowait(Connection(url))
    times: list[float] = []
    slowest: dict[str, float] = {}
    spent.begin()
    began = time.perf_counter()

    async def one(number: int) -> None:
        due = began + number / RATE
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        connection = await free.get()
        path = paths[number % len(paths)]
        sent = time.perf_counter()
        answer = await connection.get(path)
        slowest[path] = max(slowest.get(path, 0.0), time.perf_counter() - sent)
        assert answer.status in (200, 304), f"{paths[number % len(paths)]} answered {answer.status}"
        times.append(time.perf_counter() - due)
        free.put_nowait(connection)

    await asyncio.gather(*(one(number) for number in range(RATE * scale.load_seconds)))
    took, processor = time.perf_counter() - began, spent.told(len(times))
    good = percentile(times, 99) <= P99
    worst = sorted(slowest, key=slowest.__getitem__)[-3:]
    print(
        f"  processor for one of {len(times):,} mixed requests: {processor}; the service alone could answer "
        f"{len(times) / spent.so_far()[0]:.0f} a second on one core"
    )
    print(f"  slowest of them: {', '.join(f'{each} {1e3 * slowest[each]:.0f} ms' for each in worst)}")
    print(
        f"  {RATE} requests a second for {scale.load_seconds} s: answered {len(times) / took:.0f} a second, "
        f"p50 {1e3 * percentile(times, 50):.0f} ms, p99 {1e3 * percentile(times, 99):.0f} ms, "
        f"at most {1e3 * P99:.0f}: {judged(good)}",
        flush=True,
    )
    return good


@asynccontextmanager
async def stream(url: str, path: str) -> AsyncIterator[asyncio.Task[int]]:
    """Keep an event stream open; the task counts its bytes and ends with it."""
    connection = Connection(url)
    reader = await connection.send(path, accept="text/event-stream")
    status, _ = await read_head(reader)
    assert status == 200, f"{path} answered {status}"

    async def read() -> int:
        count = 0
        while got := await reader.read(65_536):
            count += len(got)
        return count

    reading = asyncio.create_task(read())
    try:
        yield reading
    finally:
        reading.cancel()
        await connection.close()


async def lateness(node: NodeProcess, dashboards: int, scale: Scale) -> list[float]:
    """Return how late runs began while so many dashboards are open and ask for what changed."""
    async with AsyncExitStack() as opened:
        for _ in range(dashboards):
            await opened.enter_async_context(stream(node.url, "/live"))

        async def look() -> None:
            asking = Connection(node.url)
            while True:
                await asking.get("/")
                for _ in range(30):
                    await asyncio.sleep(1)
                    end = time.time()
                    await asking.get(f"/lanes/bench-pulse-0?after={end - 54_000:.0f}&through={end:.0f}")

        looking = [asyncio.create_task(look()) for _ in range(dashboards)]
        node.lateness.clear()
        await asyncio.sleep(scale.lateness_seconds)
        for each in looking:
            each.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
        return list(node.lateness)


async def watched(node: NodeProcess, scale: Scale) -> bool:
    """Compare the lateness without and with dashboards, in turns; whether they make nothing late."""
    found: dict[int, list[float]] = {0: [], DASHBOARDS: []}
    for dashboards in (0, DASHBOARDS, DASHBOARDS, 0):
        found[dashboards] += await lateness(node, dashboards, scale)
    alone, seen = ([percentile(each, share) for share in (50, 90, 99)] for each in found.values())
    good = seen[1] <= alone[1] + LATER
    for name, each in (("nobody looks", alone), (f"{DASHBOARDS} dashboards", seen)):
        told = ", ".join(f"p{share} {1e3 * late:.0f} ms" for share, late in zip((50, 90, 99), each, strict=True))
        print(f"  lateness, {name}: {told}", flush=True)
    print(f"  p90 may rise by {1e3 * LATER:.0f} ms: {judged(good)}", flush=True)
    return good


async def filled(name: str, address: str, scale: Scale, server: int | None = None) -> bool:
    """Fill the store and measure it."""
    began = time.perf_counter()
    await fill(address, jobs=JOBS, occurrences=OCCURRENCES)
    print(f"{name}: {JOBS:,} jobs and {OCCURRENCES:,} occurrences, filled in {time.perf_counter() - began:.0f} s")
    return await measured(address, scale, server)


async def measured(address: str, scale: Scale, server: int | None = None) -> bool:
    """Measure everything on one store; whether all of it is good enough. `server` is the process of its server."""
    print(f"  load average of the machine: {', '.join(f'{each:.1f}' for each in os.getloadavg())}", flush=True)
    node = NodeProcess(address)
    try:
        return await looked_at(node, scale, server)
    finally:
        node.kill()


async def looked_at(node: NodeProcess, scale: Scale, server: int | None) -> bool:
    """Measure a node that has been started; whether all of it is good enough."""
    await node.up()
    paths = await pages(node.url)
    spent = Spent([node.pid] if server is None else [node.pid, server])
    await spent.rest(5)
    enough = await budgets(node.url, paths, scale)
    mixed = await reads(node.url, paths)
    await costs(node.url, mixed, spent, scale)
    enough &= await load(node.url, mixed, spent, scale)
    enough &= await watched(node, scale)
    async with AsyncExitStack() as opened:
        for _ in range(STREAMS):
            await opened.enter_async_context(stream(node.url, "/api/events"))
        await Connection(node.url).get("/agenda")
        left = await node.stop()
    print(f"  SIGTERM with {STREAMS} streams: left after {left:.2f} s: {judged(left <= EXIT_SECONDS)}", flush=True)
    return enough and left <= EXIT_SECONDS


def main() -> int:
    """Print every figure; 0 if all of them are good enough."""
    scale = SHORT if "short" in sys.argv[1:] else Scale()
    wanted = [each for each in sys.argv[1:] if each != "short"] or ["postgres", "sqlite"]
    enough = True
    for each in wanted:
        if each == "postgres":
            with durable_server() as (address, server):
                enough &= asyncio.run(filled("PostgreSQL", address, scale, server))
        elif each == "sqlite":
            with tempfile.TemporaryDirectory() as folder:
                enough &= asyncio.run(filled("SQLite", f"sqlite:///{Path(folder) / 'store.db'}", scale))
        else:
            enough &= asyncio.run(measured(each, scale))
    return int(not enough)


if __name__ == "__main__":
    sys.exit(main())
