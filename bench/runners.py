"""What a runner costs: microseconds an attempt, over the bare call of the same function.

    python3 dev.py bench runners

Processor time of this process, because the machine is shared; the quietest of many short
rounds counts. The plain async path is held to its limit; the hand-over to a thread and to
a warm process are shown beside their simplest alternatives, and so is a command.
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from logging import Logger, getLogger

from everytick.domain.job import Job, define_job, define_task
from everytick.domain.notes import Progress
from everytick.domain.occurrence import occurrence_of
from everytick.domain.steps import header_of, life_of, rules_of
from everytick.runners.base import Body
from everytick.runners.catalogue import Catalogue
from everytick.runners.context import Context, TaskTransaction
from everytick.runners.targets import command_target
from everytick.schedules.interval import every

ROUNDS = 60
LIMIT = 1.5
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Silence:
    """A node that keeps nothing."""

    def begun(self, context: Context) -> None:
        return

    def log(self, context: Context) -> Logger:
        return getLogger("bench")

    def output(self, context: Context, data: bytes) -> None:
        return

    def progress(self, context: Context, progress: Progress) -> None:
        return

    def transaction(self, context: Context) -> AbstractAsyncContextManager[TaskTransaction]:
        raise LookupError("nothing is measured in a transaction")

    def known_to(self, context: Context) -> str | None:
        return None

    async def hand_over(self, context: Context, handed_to: str) -> None:
        """No engine is asked here."""

    def handed(self, context: Context) -> None:
        """No engine is asked here."""

    async def look_up_previous(self, context: Context) -> datetime | None:
        return None

    def wait_for_previous(self, context: Context) -> datetime | None:
        return None


async def no_op() -> None:
    return None


async def with_context(ctx: Context) -> None:
    return None


async def with_payload(ctx: Context, x: int = 1) -> None:
    return None


def plain() -> None:
    return None


async def quietest(times: int, once: Callable[[], Awaitable[object]]) -> float:
    """Return microseconds of processor time for one, in the best round."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(times):
            await once()
        best = min(best, time.process_time() - began)
    return best / times * 1e6


def prepared() -> tuple[Catalogue, dict[str, tuple[Body, Context]]]:
    """One job for every way to run something."""
    functions: dict[str, Callable[..., object]] = {
        "no_op": no_op,
        "with_context": with_context,
        "with_payload": with_payload,
        "plain": plain,
    }
    ways = {
        "async, no context": ("no_op", None, ""),
        "async, context": ("with_context", None, ""),
        "async, payload": ("with_payload", None, ""),
        "plain on the loop": ("plain", "function", ""),
        "thread": ("plain", None, ""),
        "warm process": ("plain", "process", ""),
        "command": ("", None, command_target(["true"])),
    }
    jobs: dict[str, Job] = {}
    known: dict[str, dict[str, Callable[..., object]]] = {}
    for name, (function, runner, target) in ways.items():
        task = define_task(name, "only", target=target or f"{__name__}:{function}", policies={"runner": runner})
        job = jobs[name] = define_job(name, every("1m"), tasks=[task], policies={"payload": {"x": 2}})
        if function:
            known[job.id] = {"only": functions[function]}
    catalogue = Catalogue(known)
    found = {}
    for name, job in jobs.items():
        bodies = catalogue.bodies(job)
        assert bodies is not None, catalogue.why(job)
        occurrence = occurrence_of(job, NOON)
        header, life = header_of(occurrence, rules_of(job)), life_of(occurrence, rules_of(job))
        found[name] = (bodies[0], _begun(Context(job, 0, 1, occurrence, header, life, 1, Silence())))
    return catalogue, found


def _begun(context: Context) -> Context:
    from dataclasses import replace

    begun = replace(context._life.runs[0], attempts=1, attempt_started_at=NOON + timedelta(seconds=1))
    context._life = replace(context._life, runs=(begun,))
    return context


async def measured() -> bool:
    bare = await quietest(2000, no_op)
    loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(1)
    stdlib = await quietest(100, lambda: loop.run_in_executor(pool, plain))
    pool.shutdown()
    catalogue, ways = prepared()
    print(f"{'way':24}{'µs':>10}{'over bare':>12}")
    print(f"{'bare await':24}{bare:10.2f}")
    print(f"{'run_in_executor':24}{stdlib:10.2f}{stdlib - bare:12.2f}")
    kept = True
    for name, (body, context) in ways.items():
        times = {"thread": 100, "warm process": 10, "command": 2}.get(name, 2000)
        took = await quietest(times, lambda body=body, context=context: body.run(context))  # type: ignore[misc]
        over = took - bare
        verdict = ""
        if name in ("async, no context", "async, context"):
            kept = kept and over <= LIMIT
            verdict = "" if over <= LIMIT else f"  over {LIMIT}"
        print(f"{name:24}{took:10.2f}{over:12.2f}{verdict}")
    catalogue.close()
    return kept


def main() -> int:
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    return 0 if asyncio.run(measured()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
