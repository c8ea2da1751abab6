"""The time engine: a dozen schedules in words, a night when the clocks change, and a mistake.

python examples/time_engine.py
"""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from everytick import InvalidSchedule, any_of, calendar, cron, every, schedule, zone_data

WEEKEND = calendar("weekend", weekdays=["sat", "sun"])
CLOSED = calendar("closed", dates=[date(2026, 12, 24), date(2026, 12, 25)], weekdays=["sat", "sun"])

SCHEDULES = [
    schedule("*/5 9-17 * * mon-fri"),
    schedule("30 2 * * 1-5; tz=Europe/Berlin"),
    schedule("@hourly"),
    schedule("posix: 0 0 1,15 * 1"),
    schedule("quartz: 0 0 18 LW * ?; tz=America/New_York"),
    schedule("quartz: 0 30 9 ? * FRI#2"),
    schedule("0 0 29 2 *"),
    schedule("every 90s"),
    every("P1M", start="2024-01-31T09:00:00", tz="Europe/Berlin"),
    schedule("R12/2026-01-31T09:00:00[Asia/Tokyo]/P1M"),
    schedule("once: 2030-01-01T00:00:00Z"),
    any_of(cron("0 9 * * *", tz="Asia/Kolkata"), cron("0 17 * * 5", tz="Asia/Kolkata")),
    cron("0 8 1 * *", tz="Europe/Paris").excluding(CLOSED, roll="next"),
]


def main() -> None:
    """Print what the engine knows, beginning at the present moment."""
    now = datetime.now(UTC).replace(microsecond=0)
    print(f"\nIt is {shown(now)}; zone tables {zone_data().version} from the {zone_data().source}.")
    print("\nSchedules, in words, with their previous and next instant (UTC):\n")
    for each in SCHEDULES:
        print(f"  {each}")
        print(f"      {each.describe()}")
        print(f"      previous {shown(each.last_at(now)):22} next {shown(each.next_after(now))}\n")
    print_nights()
    print_mistakes()


def print_nights() -> None:
    """Show the nights on which the clocks change in New York, under three policies."""
    zone = ZoneInfo("America/New_York")
    nights = {
        "2027-03-14, when 02:00 becomes 03:00": datetime(2027, 3, 14, 5, tzinfo=UTC),
        "2027-11-07, when 02:00 becomes 01:00": datetime(2027, 11, 7, 4, tzinfo=UTC),
    }
    expressions = [
        cron("30 1,2 * * *", tz="America/New_York"),
        cron("30 1,2 * * *", tz="America/New_York", dst_gap="skip", dst_fold="both"),
        cron("*/30 1-3 * * *", tz="America/New_York"),
    ]
    for night, begin in nights.items():
        print(f"New York, the night of {night}:\n")
        for each in expressions:
            times = [
                at.astimezone(zone).strftime("%H:%M %Z") for at in each.instants(begin, begin + timedelta(hours=6))
            ]
            print(f"  {each!s:66} {'  '.join(times)}")
        print()


def print_mistakes() -> None:
    """Show what a person who mistypes is told."""
    print("And when something is wrong:\n")
    for text in ("*/5 9-17 * * mon-frj", "30 2 * * *; tz=Europe/Berln", "0 30 9 * * 1", "every 90"):
        try:
            schedule(text)
        except InvalidSchedule as error:
            print(f"  {error}")
    never = cron("0 0 30 2 *")
    print(f"\n  {never}, asked for its next instant: {never.next_after(datetime(2026, 1, 1, tzinfo=UTC))}, at once.\n")


def shown(instant: datetime | None) -> str:
    """Return an instant as people read it."""
    return "never" if instant is None else instant.strftime("%a %Y-%m-%d %H:%M:%S")


if __name__ == "__main__":
    main()
