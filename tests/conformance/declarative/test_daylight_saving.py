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


@pytest.mark.parametrize(("zone", "change", "first", "length"), GAPS, ids=[gap[0] for gap in GAPS])
def test_spring_forward_tasks_of_the_skipped_hour_do_not_run(
    quick: Adapter, zone: str, change: datetime, first: str, length: int
) -> None:
    """S2-008, S2-010: not that day, not elsewhere in it; the minutes beside the gap run, and no restart is needed."""
    assert wall_of(change, zone) != first

    async def story(world: World) -> None:
        edge, inside, last, before, after = (Task(world) for _ in range(5))
        scheduler = await world.started(
            edge.on(wall(first, 0), name="edge"),
            inside.on(wall(first, length // 2), name="inside"),
            last.on(wall(first, length - 1), name="last"),
            before.on(wall(first, -1), name="before"),
            after.on(wall(first, length), name="after"),
        )
        await world.advance(minutes=length + 20)
        await scheduler.stop()
        assert [task.count for task in (edge, inside, last)] == [0, 0, 0]
        assert [began.replace(microsecond=0) for began in before.began] == [change - timedelta(minutes=1)]
        assert [began.replace(microsecond=0) for began in after.began] == [change]

    quick.play(story, begin=change - timedelta(minutes=10, seconds=-10), zone=zone)


@pytest.mark.parametrize(("zone", "change", "first", "length"), FOLDS, ids=[fold[0] for fold in FOLDS])
def test_fall_back_tasks_of_the_repeated_hour_run_both_times(
    quick: Adapter, zone: str, change: datetime, first: str, length: int
) -> None:
    """S2-009, S2-010: each repeated minute twice, the minutes beside them once."""
    assert wall_of(change, zone) == first
    passed = timedelta(minutes=length)

    async def story(world: World) -> None:
        edge, inside, last, before, after = (Task(world) for _ in range(5))
        scheduler = await world.started(
            edge.on(wall(first, 0), name="edge"),
            inside.on(wall(first, length // 2), name="inside"),
            last.on(wall(first, length - 1), name="last"),
            before.on(wall(first, -1), name="before"),
            after.on(wall(first, length), name="after"),
        )
        await world.advance(minutes=2 * length + 20)
        await scheduler.stop()
        assert at_minutes(edge) == [change - passed, change]
        assert at_minutes(inside) == [change - passed / 2, change + passed / 2]
        assert at_minutes(last) == [change - timedelta(minutes=1), change + passed - timedelta(minutes=1)]
        assert at_minutes(before) == [change - passed - timedelta(minutes=1)]
        assert at_minutes(after) == [change + passed]

    quick.play(story, begin=change - passed - timedelta(minutes=10, seconds=-10), zone=zone)


@pytest.mark.parametrize("change", [GAPS[0][1], FOLDS[0][1]], ids=["spring forward", "fall back"])
def test_dst_transition_behavior_on_every_store(adapter: Adapter, change: datetime) -> None:
    """S2-008, S2-009: the change itself, in Berlin, minute by minute, against the model."""

    async def story(world: World) -> None:
        task = Task(world)
        begin = world.now()
        scheduler = await world.started(task.on("0-4,55-59 2 * * *"))
        await world.advance(minutes=12)
        await scheduler.stop()
        through = world.now()
        assert at_minutes(task) == occurrences("0-4,55-59 2 * * *", "Europe/Berlin", begin, through)

    adapter.play(story, begin=change - timedelta(minutes=6, seconds=-10), zone="Europe/Berlin")


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
