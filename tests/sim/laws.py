"""The life of a world, and what must be true at its end: nothing lost, nothing doubled, everything over."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from everytick.domain import ids
from everytick.domain.decisions import Why
from everytick.domain.lookups import Spans
from everytick.domain.occurrence import Cause
from everytick.domain.statuses import ATTEMPT_ENDED, ENDED
from everytick.stores.base import HistoryFilter
from tests.sim.chance import ChanceLoop, passing
from tests.sim.world import World, run_world

TROUBLE_SECONDS, HEALED_SECONDS, LONGEST_SECONDS = 280.0, 60.0, 1800.0
GIVEN = os.environ.get("EVERYTICK_SIM_SEED")
"""Another seed is tried with EVERYTICK_SIM_SEED=<seed>; the one that failed stands in the test's name."""

AnyWorld = TypeVar("AnyWorld", bound=World)
Law: TypeAlias = Callable[[World], Awaitable[None]]


def seeds(*known: int) -> list[int]:
    """Return the seeds to try: these, or the one that the environment names."""
    return [int(GIVEN)] if GIVEN else list(known)


def lived(seed: int, make: Callable[[ChanceLoop, int], AnyWorld]) -> AnyWorld:
    """Return a world of this kind after its life."""
    return run_world(seed, life, make)


async def life(world: World, decided: Law | None = None) -> None:
    """Trouble, then none, then no more instants; afterwards everything is decided and everything is over.

    `decided` says what it is that every instant is decided once, if jobs are not as they were defined.
    """
    await world.define()
    world.begin()
    watching = asyncio.create_task(world.watch())
    await world.trouble(TROUBLE_SECONDS)
    await world.recover()
    await passing(HEALED_SECONDS)
    await world.end_schedules()
    await settle(world)
    assert not watching.done() or watching.result() is None
    watching.cancel()
    await world.look()
    await (decided or require_nothing_lost)(world)
    await require_nothing_doubled(world)
    await require_everything_over(world)


async def settle(world: World) -> None:
    """Wait until nothing is left to do; after a leap of the clock there may be much to catch up with."""
    deadline = world.loop.time() + LONGEST_SECONDS
    busy = True
    while busy and world.loop.time() < deadline:
        await passing(60.0)
        found = (await world.store.history(HistoryFilter(limit=100_000))).occurrences
        busy = any(each.status not in ENDED for each in found)


async def require_nothing_lost(world: World) -> None:
    """Every instant between the job's first moment and its last edit has exactly one decision.

    One that was moved has it at its new time, under its own id; that may be still to come.
    """
    for record in await world.store.list():
        if record.job.name not in world.words:
            continue
        made = (await world.store.history(HistoryFilter(job_id=record.job.id, limit=100_000))).occurrences
        scheduled = {each.id for each in made if each.cause is Cause.SCHEDULE}
        rule = world.defined(record.job.name).bound(None)
        first = record.job.created_at
        assert first is not None
        last = record.job.updated_at
        assert last is not None
        spans = [span for span in await world.store.ask(Spans(record.job.id, first, last)) if span.why is not Why.MOVED]
        seen = (await world.store.look([record.job.id]))[record.job.id]
        moving = {each.at for each in seen.adjustments if each.to is not None and each.vacates and not each.done}
        is_local = record.job.settings.on_store_outage == "fire_local"
        for instant in rule.instants(first, last, 100_000):
            skipped = sum(span.after < instant <= span.through for span in spans)
            ran = ids.occurrence_id(record.job.id, instant) in scheduled or instant in moving
            # A node that does not wait for the store may have run what others, who could not know, have skipped.
            is_right = skipped + ran >= 1 if is_local else skipped + ran == 1
            assert is_right, f"{record.job.name} at {instant}: {skipped} skips and {ran} occurrences"


async def require_nothing_doubled(world: World) -> None:
    """No attempt was carried out twice, and none outside of its owner's fence, but of what needs no store to run."""
    local = await unwaiting(world)
    deeds = [deed for deed in world.deeds if deed.occurrence_id not in local]
    owners: dict[tuple[str, int], str] = {}
    for deed in deeds:
        assert owners.setdefault((deed.occurrence_id, deed.fence), deed.node) == deed.node, deed
    tried = [(deed.occurrence_id, deed.task, deed.attempt) for deed in deeds]
    doubled = {each for each in tried if tried.count(each) > 1}
    assert not doubled, [deed for deed in deeds if (deed.occurrence_id, deed.task, deed.attempt) in doubled]


def local_jobs(world: World) -> set[str]:
    """The jobs that do not wait for the store, by name: several nodes may run one instant of them."""
    said = world.words.items()
    return {name for name, words in said if words["policies"].get("on_store_outage") == "fire_local"}


async def unwaiting(world: World) -> set[str]:
    """The occurrences of jobs that do not wait for the store; those of a node that died the store does not know."""
    names = local_jobs(world)
    known = (await world.store.history(HistoryFilter(limit=100_000))).occurrences
    ids_ = {record.job.id for record in await world.store.list() if record.job.name in names}
    recorded = {each.id for each in known if each.job_id in ids_}
    return recorded | {deed.occurrence_id for deed in world.deeds if deed.job in names}


async def require_everything_over(world: World) -> None:
    """Every occurrence has ended, with every attempt of it, and what succeeded was carried out to its end."""
    carried_out = {(deed.occurrence_id, deed.task, deed.attempt) for deed in world.deeds if deed.ended}
    begun = {(deed.occurrence_id, deed.task, deed.attempt) for deed in world.deeds}
    known = set()
    for each in (await world.store.history(HistoryFilter(limit=100_000))).occurrences:
        assert each.status in ENDED, each
        whole = await world.store.whole(each.id)
        for task, attempt in whole.attempts:
            known.add((each.id, task, attempt.number))
            assert attempt.status in ATTEMPT_ENDED, (each, task, attempt)
            if attempt.status == "success":
                assert (each.id, task, attempt.number) in carried_out, (each, task, attempt)
        if each.status == "completed":
            assert {run.status for run in whole.runs} == {"success"}, (each, whole.runs)
    # Of what was fired locally by a node that died no other knows, nor of a try that another has recorded otherwise.
    local = {deed.occurrence_id for deed in world.deeds if deed.job in local_jobs(world)}
    untold = {each for each in begun - known if each[0] not in local}
    assert not untold, f"carried out, and no record tells of it: {untold}"
