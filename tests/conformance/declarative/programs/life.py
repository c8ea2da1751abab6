"""One life of a scheduler in a process of its own: `life <address> <begin> <cron> <delay> <seconds> <call>…`.

It lives on virtual time, so a minute passes in a moment; each line it prints is one thing
that happened, with its virtual time. A call is `ok`, `fail`, `hang` (for ever, in real
time, to be killed) or a number of virtual seconds that it takes.
"""

import asyncio
import os
import signal
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from everytick.declarative import DeclarativeEvent, DeclarativeScheduler
from everytick.domain.durations import duration
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sqlite.store import SqliteStore
from tests.conformance.declarative.everytick_adapter import Holding, Line


class Lifetime:
    """What happens in this process."""

    def __init__(self, begin: datetime, calls: list[str]) -> None:
        self.loop = Holding()
        self._begin, self._calls = begin, calls
        self._number = 0

    def now(self) -> datetime:
        return self._begin + timedelta(microseconds=round(self.loop.time() * 1e6))

    def say(self, *words: object) -> None:
        sys.stdout.write(" ".join(map(str, (self.now().isoformat(), *words))) + "\n")
        sys.stdout.flush()

    def hear(self, event: DeclarativeEvent) -> None:
        self.say("event", event.name)

    async def callback(self) -> None:
        call = self._calls[self._number] if self._number < len(self._calls) else "ok"
        self._number += 1
        self.say("began", call)
        if call == "hang":
            signal.pause()
        elif call == "fail":
            raise ValueError("told to fail")
        elif call != "ok":
            await self.passing(float(call))
        self.say("ended")

    async def passing(self, seconds: float) -> None:
        over: asyncio.Future[None] = self.loop.create_future()
        self.loop.call_later(seconds, over.set_result, None)
        await over

    async def live(self, address: str, cron: str, delay: str, seconds: float) -> None:
        store = self._store(address)
        with self.loop.held():
            await store.open()
        line: Any = Line(store, self.loop, lambda: False)
        scheduler = DeclarativeScheduler(store=line, listener=self.hear)
        await scheduler.initialize([("task", cron, self.callback, duration(delay))])
        await self.passing(seconds)
        self.say("stopping")
        await scheduler.stop()
        with self.loop.held():
            await store.close()
        self.say("stopped")

    def _store(self, address: str) -> Any:
        if address.startswith("postgresql"):
            url, _, schema = address.rpartition("#")
            return PostgresStore(url, schema=schema, clock=self.now)
        return SqliteStore(Path(address), clock=self.now)


def main() -> None:
    address, begin, cron, delay, seconds, *calls = sys.argv[1:]
    os.environ["TZ"] = "UTC"
    life = Lifetime(datetime.fromisoformat(begin), calls)
    with asyncio.Runner(loop_factory=lambda: life.loop) as runner:
        runner.run(life.live(address, cron, delay, float(seconds)))


if __name__ == "__main__":
    main()
