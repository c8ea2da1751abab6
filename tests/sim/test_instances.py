"""Living instances of one declarative scheduler: the newest has the say, and the older ones come back."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, ClassVar, cast

import pytest

from everytick import current
from everytick.declarative import DeclarativeScheduler, presence
from everytick.declarative.errors import UnexpectedError
from everytick.domain.statuses import OccurrenceStatus
from everytick.stores.base import HistoryFilter
from tests.sim.chance import passing
from tests.sim.faults import FaultyStore, Wire, heal
from tests.sim.laws import seeds
from tests.sim.world import World, run_world

EACH_MINUTE = "* * * * *"
EXPRESSIONS = (EACH_MINUTE, EACH_MINUTE, *(",".join(map(str, range(0, 60, step))) + " * * * *" for step in (2, 3)))
TASKS = ("a", "b", "c", "d", "e")
NOTICED_SECONDS = 30.0
"""Within this time an instance has noticed that another began, stopped or died, however long the ways are."""
TROUBLE_SECONDS = 900.0


@dataclass
class Call:
    """One call of a callback, by the seconds of the loop's clock."""

    task: str
    instance: str
    begun_at: float
    occurrence_id: str
    attempt: int
    scheduled_for: datetime
    ended_at: float | None = None
    is_cut_short: bool = False
    is_well: bool = False


@dataclass
class Instance:
    """One start of a scheduler with its tasks; `running_since` and `gone_at` are on the loop's clock."""

    id: str
    wire: Wire
    tasks: dict[str, str]
    scheduler: DeclarativeScheduler
    running_since: float | None = None
    gone_at: float | None = None
    begun: "list[asyncio.Task[None]]" = field(default_factory=list)


class Deploys(World):
    """A world in which instances of one scheduler begin, stop and die."""

    faults: ClassVar[tuple[str, ...]] = ("deploy", "deploy", "stop_one", "die", "far", "short_outage")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.instances: list[Instance] = []
        self.calls: list[Call] = []
        self.is_calm = False

    @property
    def up(self) -> list[Instance]:
        """The instances that run, the oldest first."""
        return [each for each in self.instances if each.running_since is not None and each.gone_at is None]

    # -------------------------------------------------------------------------------------------------- what happens

    async def deploy(self) -> None:
        """A new instance begins, with tasks of its own choice."""
        if len(self.up) > 3:
            return
        names = self.chance.sample(TASKS, self.chance.randrange(len(TASKS) + 1))
        await self.begin_with({name: self.chance.choice(EXPRESSIONS) for name in names})

    async def begin_with(self, tasks: dict[str, str]) -> None:
        """Let an instance with these tasks begin, and wait until it runs."""
        self.started["instance"] += 1
        wire = self.wire()
        wire.chance = Random(self.chance.random())
        wire.slow = self.chance.choice([0.0, 0.05])
        scheduler = DeclarativeScheduler(cast("Any", FaultyStore(wire)), name="main")
        # A name of its own would come from the system's random numbers, and a seed would not be one life.
        scheduler._identifier = f"instance-{self.seed}-{self.started['instance']}"
        # Nor may a seed depend on the real clock, of which the node's facts say how far it is off.
        scheduler._host_now = self.host_time  # type: ignore[method-assign]
        instance = Instance(scheduler._identifier, wire, tasks, scheduler)
        self.instances.append(instance)
        registrations = [(name, words, self.callback(instance, name), "10s") for name, words in tasks.items()]
        while instance.running_since is None:
            try:
                await scheduler.initialize(registrations)
            except UnexpectedError:
                await passing(1.0)
            else:
                instance.running_since = self.loop.time()

    def callback(self, instance: Instance, task: str) -> Any:
        """Return what a task does in this instance: it takes a while, and fails now and then."""

        async def call() -> None:
            context = current()
            # Not the world's: callbacks of one moment begin in no order that a seed decides.
            chance = Random(f"{context.occurrence_id} {context.attempt}")
            made = Call(
                task, instance.id, self.loop.time(), context.occurrence_id, context.attempt, context.scheduled_for
            )
            self.calls.append(made)
            try:
                await passing(0.5 if self.is_calm else chance.choice([0.5, 0.5, 5.0, 40.0, 90.0]))
            except asyncio.CancelledError:
                made.is_cut_short = True
                raise
            finally:
                made.ended_at = self.loop.time()
            if not self.is_calm and chance.random() < 0.1:
                raise RuntimeError("by chance")
            made.is_well = True

        return call

    async def stop_one(self) -> None:
        """An instance stops in order, not always the oldest; what it runs comes to its end first."""
        if len(self.up) > 1:
            await self.stop(self.chance.choice(self.up))

    async def stop(self, instance: Instance) -> None:
        """Stop this instance and wait for it; others may go on as soon as it has left."""
        instance.gone_at = self.loop.time()
        await instance.scheduler.stop()

    async def die(self) -> None:
        """The process of an instance is killed, on this host or on another."""
        if len(self.up) > 1:
            instance = self.chance.choice(self.up)
            instance.wire.is_cut = True
            instance.gone_at = self.loop.time()
            if self.chance.random() < 0.5:
                presence.die(instance.id)

    async def far(self) -> None:
        """The ways take longer, and now and then a reply is lost."""
        for wire in self.wires:
            wire.slow, wire.lost = self.chance.choice([0.0, 0.05, 0.5]), self.chance.choice([0.0, 0.0, 0.01])

    async def short_outage(self) -> None:
        """The store does not answer for a moment, too short for an instance to be taken for dead."""
        for wire in self.wires:
            wire.silent_until = self.loop.time() + 4.0

    async def people(self) -> None:
        """Time passes."""
        await passing(self.chance.random() * 60)

    # --------------------------------------------------------------------------------------------------- what is true

    def require_one_at_a_time(self) -> None:
        """No two calls of one task overlap: a call ends by itself or with the death of its instance."""
        gone = {each.id: each.gone_at for each in self.instances if each.wire.is_cut}
        for task in TASKS:
            last: tuple[float, Call] | None = None
            for call in sorted((each for each in self.calls if each.task == task), key=lambda each: each.begun_at):
                died_at = gone.get(call.instance)
                if died_at is not None and call.begun_at >= died_at:
                    continue
                assert last is None or last[0] <= call.begun_at, f"{call} began while {last[1]} ran"
                ends = [at for at in (call.ended_at, died_at) if at is not None]
                last = min(ends, default=float("inf")), call

    def require_none_cut_short_or_doubled(self) -> None:
        """No callback of a living instance was stopped halfway, no attempt was carried out twice, no minute twice."""
        dead = {each.id for each in self.instances if each.wire.is_cut}
        alive = [call for call in self.calls if call.instance not in dead]
        for call in alive:
            assert not call.is_cut_short, f"{call} was stopped halfway"
        attempts = [(call.occurrence_id, call.attempt) for call in self.calls]
        assert len(attempts) == len(set(attempts)), "an attempt was carried out twice"
        well = [(call.task, call.scheduled_for) for call in alive if call.is_well]
        doubled = {each for each in well if well.count(each) > 1}
        assert not doubled, f"{doubled} ran twice: {[call for call in alive if call.task in {t for t, _ in doubled}]}"

    def require_newest_had_the_say(self) -> None:
        """Nothing began in an instance while a newer one lived, once the older one had time to notice it."""
        places = {each.id: place for place, each in enumerate(self.instances)}
        for call in self.calls:
            if self.instances[places[call.instance]].wire.is_cut:
                continue
            for newer in self.instances[places[call.instance] + 1 :]:
                since, gone_at = newer.running_since, newer.gone_at
                lived = since is not None and since + NOTICED_SECONDS < call.begun_at
                assert not lived or (gone_at is not None and gone_at <= call.begun_at), (
                    f"{call} though {newer.id} lived"
                )

    async def require_back(self, instance: Instance) -> None:
        """Every task of this instance, which is the only one left, runs in each of its minutes, and no other does."""
        begun = self.loop.time()
        await passing(240.0)
        calls = [call for call in self.calls if call.begun_at >= begun]
        assert {call.instance for call in calls} <= {instance.id}
        assert {call.task for call in calls} == set(instance.tasks), f"{instance.tasks} came back as {calls}"
        for name, words in instance.tasks.items():
            if words == EACH_MINUTE:
                minutes = {call.scheduled_for for call in calls if call.task == name}
                assert len(minutes) >= 4, f"'{name}' ran only in {sorted(minutes)}"

    async def require_nothing_left_running(self) -> None:
        """What is not over waits for an instance that registers its task."""
        for each in (await self.store.history(HistoryFilter(limit=100_000))).occurrences:
            assert each.status is not OccurrenceStatus.RUNNING, f"{each} has no owner that lives"


async def life(world: Deploys) -> None:
    """Deploys, stops and deaths; then the oldest of the living is left alone with its tasks."""
    await world.begin_with(dict.fromkeys(TASKS[:3], EACH_MINUTE))
    await world.trouble(TROUBLE_SECONDS)
    if len(world.up) < 2:
        await world.begin_with(dict.fromkeys(TASKS[2:], EACH_MINUTE))
    heal(world.wires)
    world.is_calm = True
    await passing(120.0)
    oldest, *newer = world.up
    for instance in newer:
        if world.chance.random() < 0.5:
            await world.stop(instance)
        else:
            instance.wire.is_cut, instance.gone_at = True, world.loop.time()
    await passing(NOTICED_SECONDS + 60.0)
    await world.require_back(oldest)
    await world.stop(oldest)
    await world.require_nothing_left_running()
    world.require_one_at_a_time()
    world.require_none_cut_short_or_doubled()
    world.require_newest_had_the_say()


@pytest.mark.parametrize("seed", seeds(*range(3)))
def test_of_all_living_instances_the_newest_has_the_say(seed: int) -> None:
    """C-43, L2, L3, S2-007, S2-059, S2-064."""
    run_world(seed, life, Deploys)


def test_instances_overlap_and_leave_work_behind() -> None:
    """Otherwise this would hold for any code."""
    worlds = [run_world(seed, life, Deploys) for seed in (1, 2)]
    assert sum(len(world.instances) for world in worlds) > 10
    assert {each.wire.is_cut for world in worlds for each in world.instances} == {True, False}
    assert all(len({call.instance for call in world.calls}) > 3 for world in worlds)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_of_all_living_instances_the_newest_has_the_say_at_length(seed: int) -> None:
    run_world(seed, life, Deploys)
