"""Alarms: each rings once, not before its moment, and those turned off leave nothing behind."""

from everytick.node.alarms import Alarms
from everytick.node.inbox import BacklogDue, StoreAway
from everytick.testing.virtual import VirtualLoop, run_virtually
from tests.unit.node.parts import inbox
from tests.unit.node.worlds import passing


def test_alarms_ring_in_order_and_once() -> None:
    """B6: none early, however they were set."""

    async def story(loop: VirtualLoop) -> list[tuple[str, float]]:
        rung: list[tuple[str, float]] = []
        alarms, heard = Alarms(loop.time), inbox(lambda away: rung.append((away.reason, loop.time())))
        for name, seconds in (("c", 30.0), ("a", 10.0), ("b", 20.0), ("now", 0.0), ("past", -5.0)):
            alarms.after(seconds, heard, StoreAway(name))
        await passing(100)
        return rung

    assert [(name, round(at, 3)) for name, at in run_virtually(story)] == [
        ("now", 0.0),
        ("past", 0.0),
        ("a", 10.0),
        ("b", 20.0),
        ("c", 30.0),
    ]


def test_alarms_that_were_turned_off_take_no_memory() -> None:
    """A hundred thousand timeouts of half an hour that never came leave next to nothing behind."""

    async def story(loop: VirtualLoop) -> tuple[int, list[str]]:
        rung: list[str] = []
        alarms, heard = Alarms(loop.time), inbox(lambda away: rung.append(away.reason))
        alarms.after(1.0, heard, StoreAway("kept"))
        for _ in range(100_000):
            alarms.turn_off(alarms.after(1800.0, heard, StoreAway("off")))
        left = len(alarms)
        await passing(3600)
        return left, rung

    left, rung = run_virtually(story)
    assert left < 200
    assert rung == ["kept"]


def test_an_alarm_may_set_another() -> None:
    """What rings may wind the next one, for the same moment too."""

    async def story(loop: VirtualLoop) -> list[float]:
        rung: list[float] = []
        alarms = Alarms(loop.time)

        def again(event: BacklogDue) -> None:
            rung.append(loop.time())
            if len(rung) < 4:
                alarms.after(0.0 if len(rung) % 2 else 5.0, heard, event)

        heard = inbox(again)
        alarms.after(1.0, heard, BacklogDue())
        await passing(100)
        return [round(at, 3) for at in rung]

    assert run_virtually(story) == [1.0, 1.0, 6.0, 6.0]
