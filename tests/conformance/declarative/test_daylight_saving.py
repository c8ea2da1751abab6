"""Timely Behavior, DST Transition Behavior: both nights of a year in five zones."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.conformance.declarative.adapter import Adapter, World
from tests.conformance.declarative.cron_model import occurrences
from tests.conformance.declarative.tasks import Task

GAPS = [
    # zone, the moment of the change, the first wall minute that is skipped and the length of the gap
    ("Europe/Berlin", datetime(2026, 3, 29, 1, 0, tzinfo=UTC), "02:00", 60),
    ("America/New_York", datetime(2026, 3, 8, 7, 0, tzinfo=UTC), "02:00", 60),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC), "02:00", 30),
    ("America/Santiago", datetime(2026, 9, 6, 4, 0, tzinfo=UTC), "00:00", 60),
    ("Antarctica/Troll", datetime(2026, 3, 29, 1, 0, tzinfo=UTC), "01:00", 120),
]
FOLDS = [
    # zone, the moment of the change, the first wall minute that comes again and how many do
    ("Europe/Berlin", datetime(2026, 10, 25, 1, 0, tzinfo=UTC), "02:00", 60),
    ("America/New_York", datetime(2026, 11, 1, 6, 0, tzinfo=UTC), "01:00", 60),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, 0, tzinfo=UTC), "01:30", 30),
    ("America/Santiago", datetime(2026, 4, 5, 3, 0, tzinfo=UTC), "23:00", 60),
    ("Antarctica/Troll", datetime(2026, 10, 25, 1, 0, tzinfo=UTC), "01:00", 120),
]


def wall(text: str, minutes: int) -> str:
    """Return the minute and hour fields of the wall time so many minutes later."""
    shown = datetime.strptime(text, "%H:%M").replace(tzinfo=UTC) + timedelta(minutes=minutes)
    return f"{shown.minute} {shown.hour} * * *"


class Beside:
    """Tasks at the edges of the minutes that a change skips or repeats, in their middle, and just outside of them."""

    def __init__(self, world: World, first: str, length: int) -> None:
        self._world = world
        self._places = {"before": -1, "edge": 0, "inside": length // 2, "last": length - 1, "after": length}
        self._crons = {name: wall(first, minutes) for name, minutes in self._places.items()}
        self._tasks = {name: Task(world) for name in self._places}

    async def live_through(self, *moments: datetime) -> None:
        """Run them around each of these moments; what lies between two of them the host sleeps through."""
        scheduler = await self._world.started(*(task.on(self._crons[name], name) for name, task in self._tasks.items()))
        for moment in moments:
            asleep = (moment - timedelta(seconds=8) - self._world.now()).total_seconds()
            if asleep > 0:
                self._world.suspend(asleep)
            await self._world.advance_to(moment + timedelta(seconds=4))
        await scheduler.stop()

    @property
    def began(self) -> dict[str, list[datetime]]:
        """The minutes in which each of them began."""
        return {name: at_minutes(task) for name, task in self._tasks.items()}


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(("zone", "change", "first", "length"), GAPS, ids=[gap[0] for gap in GAPS])
def test_spring_forward_tasks_of_the_skipped_hour_do_not_run(
    adapter: Adapter, zone: str, change: datetime, first: str, length: int
) -> None:
    """S2-008, S2-010: not that day, not elsewhere in it; the minutes beside the gap run, and no restart is needed."""
    assert wall_of(change, zone) != first
    shift = timedelta(minutes=length)

    async def story(world: World) -> None:
        tasks = Beside(world, first, length)
        # An implementation that moves what was skipped runs it half a gap later, or as late as it would have been.
        await tasks.live_through(change - MINUTE, change, change + shift / 2, change + shift - MINUTE, change + shift)
        assert tasks.began == {"before": [change - MINUTE], "edge": [], "inside": [], "last": [], "after": [change]}

    adapter.play(story, begin=change - timedelta(minutes=2, seconds=-10), zone=zone)


@pytest.mark.parametrize(("zone", "change", "first", "length"), FOLDS, ids=[fold[0] for fold in FOLDS])
def test_fall_back_tasks_of_the_repeated_hour_run_both_times(
    adapter: Adapter, zone: str, change: datetime, first: str, length: int
) -> None:
    """S2-009, S2-010: each repeated minute twice, the minutes beside them once."""
    assert wall_of(change, zone) == first
    shift = timedelta(minutes=length)
    twice = {
        "edge": [change - shift, change],
        "inside": [change - shift / 2, change + shift / 2],
        "last": [change - MINUTE, change + shift - MINUTE],
    }

    async def story(world: World) -> None:
        tasks = Beside(world, first, length)
        minutes = [*twice["edge"], *twice["inside"], *twice["last"]]
        await tasks.live_through(change - shift - MINUTE, *sorted(minutes), change + shift)
        assert tasks.began == {"before": [change - shift - MINUTE], **twice, "after": [change + shift]}

    adapter.play(story, begin=change - shift - timedelta(minutes=2, seconds=-10), zone=zone)


@pytest.mark.parametrize(("zone", "change"), [(row[0], row[1]) for row in GAPS + FOLDS])
def test_dst_transition_behavior_every_minute_of_the_night_is_the_one_the_model_tells(
    quick: Adapter, zone: str, change: datetime
) -> None:
    """S2-006, S2-008, S2-009: three hours around each change, awake all the time, from a minute that matches."""
    crons = ("* 0-3,23 * * *", "0,30 * * * *", "45 1-3 * * *")

    async def story(world: World) -> None:
        tasks, begin = {cron: Task(world) for cron in crons}, world.now()
        scheduler = await world.started(*(task.on(cron, cron) for cron, task in tasks.items()))
        await world.advance(hours=3)
        await scheduler.stop()
        for cron, task in tasks.items():
            assert at_minutes(task) == occurrences(cron, zone, begin - MINUTE, world.now())

    quick.play(story, begin=change - timedelta(hours=1, seconds=50), zone=zone)


@pytest.mark.parametrize(("zone", "change"), [(row[0], row[1]) for row in GAPS + FOLDS])
def test_next_execution_calculation_accounts_for_transitions(quick: Adapter, zone: str, change: datetime) -> None:
    """S2-010: three days around each change, by calculation alone, for every kind of expression."""
    after, through = change - timedelta(hours=36), change + timedelta(hours=36)
    for cron in ("* * * * *", "*  0-3 * * *", "30 2 * * *", "15,45 1,2,23 * * *", "0 0 * * *", "30 2 * * 0"):
        assert quick.occurrences(cron, zone, after, through) == occurrences(cron, zone, after, through)


def test_fall_back_a_restart_between_the_two_passes_does_not_lose_the_second(adapter: Adapter) -> None:
    """S2-009, S2-013: the same wall minute, an hour later, is another minute."""
    change = FOLDS[0][1]

    async def story(world: World) -> None:
        task = Task(world)
        first = await world.started(task.on("58 2 * * *"))
        await world.advance(minutes=2)
        await first.stop()
        await world.advance_to(change + timedelta(minutes=58, seconds=10))
        second = await world.started(task.on("58 2 * * *"))
        await world.advance(seconds=20)
        await second.stop()
        assert [began.replace(second=0, microsecond=0) for began in task.began] == [
            change - timedelta(minutes=2),
            change + timedelta(minutes=58),
        ]

    adapter.play(story, begin=change - timedelta(minutes=3, seconds=-10), zone="Europe/Berlin")


def at_minutes(task: Task) -> list[datetime]:
    return [began.replace(second=0, microsecond=0) for began in task.began]


def wall_of(moment: datetime, zone: str) -> str:
    return f"{moment.astimezone(ZoneInfo(zone)):%H:%M}"
