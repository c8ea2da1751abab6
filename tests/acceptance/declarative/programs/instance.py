"""One instance of a scheduler in a process of its own: `instance <real|fast> <address> <task>…`.

Time passes as it does, or four times as fast if the program was started by `fast`.
Each task is due in every minute, and its callback waits until the process gets SIGUSR1. With
SIGTERM the scheduler stops. What happens is said line by line.
"""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable

from everytick.declarative import DeclarativeEvent, DeclarativeScheduler
from everytick.stores.postgres.store import PostgresStore
from everytick.stores.sqlite.store import SqliteStore
from tests.acceptance.declarative.programs.fast import now


def say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def hear(event: DeclarativeEvent) -> None:
    say("event", event.name, event.task or "")


async def live(pace: str, address: str, tasks: list[str]) -> None:
    go_on, stop = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, go_on.set)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    url, _, schema = address.rpartition("#")
    clock = now if pace == "fast" else None
    store = PostgresStore(url, schema=schema, clock=clock) if url else SqliteStore(address, clock=clock)
    await store.open()
    scheduler = DeclarativeScheduler(store, listener=hear)

    def callback(task: str) -> Callable[[], Awaitable[None]]:
        async def call() -> None:
            say("began", task, scheduler.state)
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                say("canceled", task)
                raise
            say("ended", task)

        return call

    await scheduler.initialize([(task, "* * * * *", callback(task), "5m") for task in tasks])
    say("initialized")
    await stop.wait()
    say("stopping")
    await scheduler.stop()
    say("stopped")
    await store.close()


if __name__ == "__main__":
    asyncio.run(live(sys.argv[1], sys.argv[2], sys.argv[3:]))
