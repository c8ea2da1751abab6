"""The kit is the node: whatever `simulate` says of a job, nodes do, on every store, though their starts are late.

On virtual time everything falls on its instant, exactly; a node claims what it runs a few
milliseconds later. Nodes live here on virtual time too, on a store whose claims take that long.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st

from everytick import Context, Everytick
from everytick.domain.decisions import Why
from everytick.domain.facts import Pause, Resume, Trigger
from everytick.domain.ids import job_id
from everytick.domain.policies import bounded_window
from everytick.domain.snapshots import Missed
from everytick.schedules.codec import schedule
from everytick.stores.memory import MemoryStore
from everytick.stores.sqlite.store import SqliteStore
from everytick.testing import simulate
from everytick.testing.chronicle import Chronicle, Entry, chronicle_of
from tests.stores.postgres import kit
from tests.unit.node.worlds import NOON, World, living, living_on, passing

UNTIL = NOON + timedelta(seconds=155.7)
LATE_BY = 0.003
"""Seconds from the moment at which something could be claimed until it is."""

Job = dict[str, Any]
Decision = tuple[str, int, str, str, str, bool, int]
Deed = tuple[float, str]


# ------------------------------------------------------------------------------------------------ what there may be

# Instants lie on whole tens of seconds; bodies, deeds and outages never end there, nor where each other does: who is
# first of two at one moment is not determined, and a node may need a quarter of a second to tell a task to stop.
POLICIES = st.fixed_dictionaries(
    {"rule": st.sampled_from(["every 10s", "every 20s", "(every 30s) | (every 50s)"])},
    optional={
        "overlap": st.sampled_from(["skip", "queue", "queue_latest", "allow", "cancel_running"]),
        "late_overlap": st.sampled_from(["queue", "skip", "allow"]),
        "recovery": st.sampled_from(
            ["execute_last", "execute_all", "mark_as_missed", "compressed", bounded_window(max_occurrences=2)]
        ),
        "max_concurrent": st.sampled_from([1, 2]),
        "skip_if_successful": st.booleans(),
        "retry": st.sampled_from(
            [{"max": 2, "interval": "4s"}, {"max": 2, "interval": "14s", "superseded_by_next": True}]
        ),
        "stop_schedule": st.sampled_from(["every 35s", "every 45s"]),
        "restart_schedule": st.sampled_from(["every 65s"]),
        "grace": st.sampled_from(["1s", "60s"]),
        "on_orphan": st.sampled_from(["fail", "restart", "resume"]),
    },
)
JOBS = st.tuples(POLICIES, st.sampled_from([0.0, 3.3, 12.3, 33.3]), st.sampled_from([0, 0, 1, 2])).map(
    lambda drawn: {**drawn[0], "length": drawn[1], "fails": drawn[2]}
)
DEEDS = st.lists(
    st.tuples(
        st.integers(1, 15).map(lambda n: n * 10 - 4.4), st.sampled_from(["trigger", "pause", "catch_up", "resume"])
    ),
    max_size=3,
    unique_by=lambda deed: deed[0],
)
OUTAGES = st.none() | st.tuples(st.integers(2, 8), st.integers(1, 5)).map(
    lambda n: (n[0] * 10 + 2.6, sum(n) * 10 + 7.9)
)
Outage = tuple[float, float] | None


# ------------------------------------------------------------------------------------------------------ both worlds


def body(length: float, fails: int) -> Callable[[Context], Awaitable[None]]:
    """Return a task that takes so long; of every third instant the first so many attempts fail."""

    async def runs(ctx: Context) -> None:
        if length:
            await passing(length)
        if ctx.attempt <= fails and ctx.scheduled_for.timestamp() // 10 % 3 == 0:
            raise ValueError("not yet")

    return runs


def definition(job: Job) -> tuple[Any, dict[str, Any]]:
    """Return a job's schedule and its policies."""
    policies = {key: value for key, value in job.items() if key not in ("rule", "length", "fails")}
    for key in ("stop_schedule", "restart_schedule"):
        if key in policies:
            policies[key] = schedule(policies[key])
    return schedule(job["rule"]), {**policies, "task_timeout": None}


async def do(store: Any, job_id: str, deed: str, number: int) -> None:
    """Carry out one action of a person."""
    match deed:
        case "trigger":
            await store.request(job_id, Trigger(f"asked-{number}"))
        case "pause":
            await store.request(job_id, Pause())
        case "catch_up":
            await store.request(job_id, Pause(missed=Missed.CATCH_UP))
        case _:
            await store.request(job_id, Resume())


def by_the_kit(job: Job, deeds: list[Deed], outage: Outage) -> Chronicle:
    """Return what `simulate` says."""
    tick = Everytick("memory://", name="law")
    when, policies = definition(job)
    tick.job(when, name="job", **policies)(body(job["length"], job["fails"]))

    def deed(what: str, number: int) -> Callable[[], Awaitable[None]]:
        async def done() -> None:
            await do(await tick._opened(), job_id("job"), what, number)

        return done

    at = {NOON + timedelta(seconds=when_): deed(what, number) for number, (when_, what) in enumerate(deeds)}
    outages = [] if outage is None else [(moment(outage[0]), moment(outage[1]))]
    return simulate(tick, NOON, UNTIL, outages=outages, at=at)


def moment(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


Lives = Callable[[Callable[[World], Any]], None]


def by_a_node(lives: Lives, job: Job, deeds: list[Deed], outage: Outage) -> Chronicle:
    """Return what a node does, and after an outage another one."""
    found: list[Chronicle] = []

    async def story(world: World) -> None:
        when, policies = definition(job)
        made = await world.define("job", {"job": body(job["length"], job["fails"])}, when, **policies)
        node = world.node(heartbeat="1s")
        await node.start()
        happens: list[tuple[float, str | None]] = [*deeds]
        if outage is not None:
            happens += [(outage[0], None), (outage[1], None)]
        names = {deed: number for number, deed in enumerate(deeds)}
        for seconds, what in sorted(happens, key=lambda each: each[0]):
            await passing((moment(seconds) - world.now()).total_seconds())
            if what is not None:
                await do(world.store, made.id, what, names[seconds, what])
            elif outage is not None and seconds == outage[0]:
                await node.stop()
            else:
                node = world.node(heartbeat="1s")
                await node.start()
        await passing((UNTIL - world.now()).total_seconds())
        found.append(await chronicle_of(world.store))
        await node.stop()

    lives(story)
    return found[0]


def decisions(told: Chronicle) -> list[Decision]:
    """Return what was decided about every instant and request, without the milliseconds of it."""
    return sorted(
        (
            each.cause,
            round((each.scheduled_for - NOON).total_seconds()),
            each.status,
            _why(each),
            each.error or "",
            each.late,
            sum(each.attempts.values()),
        )
        for each in told
    )


def _why(entry: Entry) -> str:
    """The reason without its detail, which may name a time of day."""
    return next((str(why) for why in Why if entry.why.startswith(why)), entry.why)


class Late:
    """A store whose claims take a few milliseconds."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim(self, *given: Any, **named: Any) -> Any:
        await passing(LATE_BY)
        return await self._store.claim(*given, **named)

    @asynccontextmanager
    async def due(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
        # Claims come along with the commit of a batch. Inside of one the virtual clock stands still.
        await passing(LATE_BY)
        async with self._store.due(*given, **named) as batch:
            yield batch


def agree(lives: Lives, job: Job, deeds: list[Deed], outage: Outage) -> None:
    """Hold both side by side."""
    # Refused at the definition: what may overlap is never in the way of a retry.
    assume(not (job.get("overlap") == "allow" and "superseded_by_next" in job.get("retry", {})))
    kit_, node = by_the_kit(job, deeds, outage), by_a_node(lives, job, deeds, outage)

    assert decisions(node) == decisions(kit_), f"the kit:\n{kit_}\nthe node:\n{node}"


EVERY_OTHER: Job = {"rule": "every 10s", "skip_if_successful": True, "length": 0.0, "fails": 0}
DOWN: Job = {"rule": "every 10s", "recovery": "execute_all", "length": 3.3, "fails": 0}
STOPPED: Job = {"rule": "every 20s", "stop_schedule": "every 35s", "length": 33.3, "fails": 0}


@pytest.mark.filterwarnings("ignore::everytick.errors.DefinitionWarning")
@settings(max_examples=60, phases=[Phase.explicit, Phase.generate])
@given(JOBS, DEEDS, OUTAGES)
@example(EVERY_OTHER, [], None)
@example(EVERY_OTHER, [(25.6, "trigger")], None)
@example(DOWN, [], (22.6, 57.9))
@example(STOPPED, [(25.6, "pause")], None)
def test_the_kit_is_the_node_in_memory(job: Job, deeds: list[Deed], outage: Outage) -> None:
    """F3, F5, F7, F12, S4-017, S4-022, S4-044: the same decisions, though every start is a moment late."""
    agree(partial(living, store=lambda clock: Late(MemoryStore(clock))), job, deeds, outage)


@asynccontextmanager
async def _on_file(paths: Iterator[Path], clock: Callable[[], datetime]) -> AsyncIterator[Any]:
    made: Any = SqliteStore(next(paths), clock=clock)
    await made.open()
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def lives(request: pytest.FixtureRequest, tmp_path: Path) -> Lives:
    """Lets a story happen on a file or on a server, of its own, on virtual time."""
    if request.param == "sqlite":
        paths = (tmp_path / f"{number}.db" for number in count())
        return partial(living_on, opened=partial(_on_file, paths), around=Late)
    return partial(living_on, opened=partial(kit.opened, request.getfixturevalue("postgres")), around=Late)


@pytest.mark.filterwarnings("ignore::everytick.errors.DefinitionWarning")
@settings(
    max_examples=6,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(job=JOBS, deeds=DEEDS, outage=OUTAGES)
@example(job=EVERY_OTHER, deeds=[(25.6, "trigger")], outage=None)
@example(job=DOWN, deeds=[], outage=(22.6, 57.9))
def test_the_kit_is_the_node_on_other_stores(lives: Lives, job: Job, deeds: list[Deed], outage: Outage) -> None:
    """F3, F5, S4-017, S4-022: the same decisions on a file and on a server."""
    agree(lives, job, deeds, outage)
