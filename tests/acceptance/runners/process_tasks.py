"""Functions that child processes import by name, well-behaved and otherwise."""
# ruff: noqa: T201 - tasks print

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from everytick.errors import GiveUp, TryAgain
from everytick.runners.child import ChildContext
from everytick.runners.context import Context, current


def pid() -> int:
    return os.getpid()


def known(ctx: Context, x: int = 1) -> dict[str, Any]:
    assert current() is ctx
    assert isinstance(ctx, ChildContext)
    after, through = ctx.covers
    return {
        "ids": [ctx.occurrence_id, ctx.run_id, ctx.attempt_id, ctx.idempotency_key],
        "names": [ctx.job, ctx.task, ctx.attempt, ctx.fence, ctx.cause, ctx.late],
        "times": [str(ctx.scheduled_for), str(ctx.started_at), str(ctx.previous), str(after), str(through)],
        "payload": ctx.payload,
        "results": dict(ctx.results),
        "x": x,
    }


async def asynchronous(ctx: Context) -> int:
    return ctx.attempt


def tells(ctx: Context) -> None:
    ctx.progress(1, 4, note="quarter")
    ctx.log.warning("careful: %s", "hot")
    print("printed")
    print("to stderr", file=sys.stderr)
    ctx.output(b"bytes\n")
    os.write(1, b"from below\n")


def fails(how: str) -> None:
    match how:
        case "exit":
            sys.exit("leaving")
        case "give up":
            raise GiveUp("no use")
        case "try again":
            raise TryAgain("5s")
        case "result":
            return object()  # type: ignore[return-value]
    raise KeyError(how)


def dies(how: str) -> None:
    print(f"dying by {how}")
    match how:
        case "os._exit":
            sys.stdout.flush()
            os._exit(3)
        case "segfault":
            ctypes.string_at(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "close":
            os.closerange(3, 1024)


def tells_and_dies(ctx: Context) -> None:
    for done in range(100):
        ctx.progress(done)
    os._exit(1)


def hangs(ctx: Context) -> None:
    """Ignore every polite signal, with a child of its own that does the same."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    below = subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1000; done"])
    ctx.output(json.dumps([os.getpid(), below.pid]).encode() + b"\n")
    threading.Event().wait()


def cleans_up(ctx: Context) -> None:
    try:
        print("waiting", flush=True)
        threading.Event().wait()
    finally:
        print(f"cleaned up, canceled: {ctx.canceled}", flush=True)


def spoils() -> None:
    os.chdir("/")
    os.umask(0o777)
    os.environ.clear()
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
    signal.signal(signal.SIGUSR1, lambda number, frame: os._exit(9))
    signal.setitimer(signal.ITIMER_REAL, 100)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdout.close()
    os.close(1)
    os.close(2)


def surroundings() -> list[object]:
    print("still heard")
    mask = os.umask(0)
    os.umask(mask)
    handlers = [signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL, signal.getitimer(signal.ITIMER_REAL)[0]]
    return [os.getcwd(), mask, "PATH" in os.environ, time.tzname[0], *handlers]


def floods(lines: int) -> None:
    for _ in range(lines):
        print("x" * 1023)


def forks() -> int:
    return os.fork()


def lies() -> None:
    """Write on the line to the node, which is not the task's."""
    for number in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                os.write(number, b"{not json}\n")
        except OSError:
            continue
    threading.Event().wait()


def transacts(ctx: Context) -> None:
    ctx.transaction()


def once_told(ctx: Context) -> str:
    """Return when the test writes to the named pipe of the payload."""
    print("waiting", flush=True)
    with open(ctx.payload["pipe"], "rb") as pipe:
        pipe.read()
    return "done"
