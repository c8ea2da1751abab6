"""Which instances of a scheduler live, which of them is the newest, and what the others do meanwhile."""

from datetime import datetime, timedelta

import pytest

from everytick.declarative import presence
from everytick.declarative.instances import Instance, Instances, later_than
from everytick.declarative.succession import Succession
from everytick.domain.nodes import NodeFacts
from everytick.node.clock import NodeClock
from everytick.node.settings import node_settings
from everytick.stores.memory import MemoryStore
from tests.unit.declarative.kit import NOON, at


def facts(started: datetime, application: str = "declarative:default") -> NodeFacts:
    queues = ("declarative:default",)
    return NodeFacts("0", "3", "2026a", "host", 1, 1, queues, started, application)


def instance(id_: str, started: datetime, *, holds: int = 0, lives: bool = True) -> Instance:
    return Instance(id_, started, holds, lives)


ME = instance("me", at("11:00"))


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([], []),
        ([instance("older", at("10:00"))], []),
        ([instance("a twin", at("11:00"))], []),
        ([instance("my twin", at("11:00"))], ["my twin"]),
        ([instance("newest", at("11:40")), instance("newer", at("11:30"))], ["newer", "newest"]),
    ],
)
def test_of_two_that_began_at_one_moment_one_is_the_later(others: list[Instance], expected: list[str]) -> None:
    """C-43."""
    assert [each.id for each in later_than("me", [ME, *others])] == expected


def test_an_instance_that_is_not_known_yet_has_nothing_after_it() -> None:
    """C-43."""
    assert later_than("me", [instance("newer", at("11:30"))]) == []


class Life:
    """One other instance on a store of its own, seen on a clock that the test moves."""

    def __init__(self) -> None:
        self.now, self.reading = NOON, 0.0
        self.store = MemoryStore(lambda: self.now)
        self._clock = NodeClock(lambda: self.reading)
        self._clock.learn(NOON)
        self.instances = Instances(self.store, "me", "declarative:default", self._clock, node_settings())

    def step(self, hours: int) -> None:
        """Let the store's clock step forward."""
        self.now += timedelta(hours=hours)
        self._clock.learn(self.now)

    async def lives(self) -> bool:
        [found] = await self.instances.all()
        return found.lives

    async def passes(self, seconds: int, *, beats: bool) -> None:
        """Let time pass; the instance beats every five seconds or not at all, and is looked at every two."""
        for second in range(1, seconds + 1):
            self.now, self.reading = self.now + timedelta(seconds=1), self.reading + 1
            if beats and second % 5 == 0:
                await self.store.beat("it", ())
            if second % 2 == 0:
                await self.instances.all()


@pytest.fixture
async def life() -> Life:
    made = Life()
    await made.store.beat("it", [], facts(at("11:00")))
    return made


async def test_an_instance_lives_as_long_as_it_beats(life: Life) -> None:
    """C-43: and is dead after twenty seconds of silence."""
    assert await life.lives()
    await life.passes(100, beats=True)
    assert await life.lives()
    await life.passes(15, beats=False)
    assert await life.lives()
    await life.passes(7, beats=False)
    assert not await life.lives()


async def test_a_step_of_the_clock_is_not_a_death(life: Life) -> None:
    """C-43: its silence must have been seen, for two heartbeats at least."""
    await life.passes(10, beats=True)
    life.step(hours=1)
    assert await life.lives()
    await life.passes(20, beats=True)
    assert await life.lives()


async def test_one_that_was_silent_before_is_dead_after_two_heartbeats(life: Life) -> None:
    """C-43, S2-070: long before the next minute."""
    life.step(hours=1)
    assert await life.lives()
    await life.passes(12, beats=False)
    assert not await life.lives()


async def test_one_that_said_goodbye_is_dead_at_once(life: Life) -> None:
    """C-43: and lives again if it comes back."""
    await life.store.leave("it")
    assert not await life.lives()
    await life.store.beat("it", [], facts(at("11:00")))
    assert await life.lives()


async def test_one_whose_process_is_gone_is_dead_at_once(life: Life) -> None:
    """C-43: though it has just beaten."""
    presence.die("it")
    assert not await life.lives()
    presence.withdraw("it")
    assert await life.lives()


async def test_instances_are_the_nodes_of_one_scheduler(life: Life) -> None:
    """C-43."""
    await life.store.beat("another", [], facts(at("11:00"), "declarative:nightly"))
    await life.store.beat("unknown", ())

    assert await life.instances.all() == [instance("it", at("11:00"))]
    assert await life.instances.living() == {"it", "another", "unknown"}


class Told(Instances):
    """Instances as the test tells them."""

    def __init__(self) -> None:
        self.found = [ME]

    async def all(self) -> list[Instance]:
        return self.found


class Acting:
    """A succession and what it did."""

    def __init__(self) -> None:
        self.instances, self.did = Told(), list[str]()
        self.succession = Succession(self.instances, "me", lambda: self.did.append("rest"), self._take_up)

    async def _take_up(self) -> None:
        self.did.append("take up")

    async def looks(self, *others: Instance) -> list[str]:
        self.did.clear()
        self.instances.found = [ME, *others]
        await self.succession.look()
        return list(self.did)


async def test_the_older_rests_while_a_newer_lives_and_takes_up_its_tasks_afterwards() -> None:
    """C-43: once for each."""
    acting, newer = Acting(), instance("newer", at("11:30"))
    assert await acting.looks() == []
    assert await acting.looks(newer) == ["rest"]
    assert await acting.looks(newer) == []
    newest = instance("newest", at("11:40"))
    assert await acting.looks(newer, newest) == ["rest"]
    dead = instance("newer", at("11:30"), lives=False)
    assert await acting.looks(dead, newest) == []
    assert await acting.looks(dead, instance("newest", at("11:40"), lives=False)) == ["take up"]
    assert await acting.looks(dead, instance("newest", at("11:40"), lives=False)) == []


async def test_a_newer_that_was_never_seen_alive_may_have_changed_the_tasks() -> None:
    """C-43, L3."""
    acting, gone = Acting(), instance("gone", at("11:30"), lives=False)
    assert await acting.looks(gone) == ["take up"]
    assert await acting.looks(gone) == []


async def test_what_an_instance_held_that_died_is_taken_up_once_by_the_newest() -> None:
    """C-43: what it held of tasks that are not registered here stays."""
    acting, dead = Acting(), instance("older", at("10:00"), holds=2, lives=False)
    assert await acting.looks(dead, instance("newer", at("11:30"))) == ["rest"]
    assert await acting.looks(dead) == ["take up"]
    assert await acting.looks(dead) == []
    assert await acting.looks(instance("harmless", at("10:00"), lives=False)) == []


async def test_a_failed_look_is_made_again() -> None:
    """C-43: the tasks are taken up at the next look."""
    acting, gone = Acting(), instance("gone", at("11:30"), lives=False)

    async def fails() -> None:
        acting.did.append("tried")
        raise RuntimeError

    failing = Succession(acting.instances, "me", lambda: None, fails)
    acting.instances.found = [ME, gone]
    for times in (1, 2):
        with pytest.raises(RuntimeError):
            await failing.look()
        assert acting.did == ["tried"] * times
