"""Random expressions, zones, policies and questions, gathered where schedules go wrong."""

from datetime import UTC, date, datetime, time, timedelta
from functools import cache

from hypothesis import strategies as st

from tests.oracle.cron import MONTHS, SUNDAY_FIRST
from tests.oracle.interval import Period
from tests.oracle.moments import PLACES, Place, jump_at

GAPS = st.sampled_from(["skip", "fire_after"])
FOLDS = st.sampled_from(["both", "first", "second"])
PLACE = st.sampled_from(PLACES)
CALM_ZONES = st.sampled_from(["UTC", "Asia/Kolkata", "Asia/Kathmandu", "America/New_York", "Pacific/Auckland"])


def _numbers(low: int, high: int) -> st.SearchStrategy[str]:
    return st.one_of(st.integers(low, high).map(str), st.integers(low, high).map("{:02}".format))


def _ranges(low: int, high: int) -> st.SearchStrategy[str]:
    ends = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)
    return ends.map(lambda pair: f"{pair[0]}-{pair[1]}")


def _spelled(names: list[str], low: int) -> st.SearchStrategy[str]:
    """Names alone, as ranges, and mixed with numbers; each in some case."""
    ends = st.tuples(st.integers(0, len(names) - 1), st.integers(0, len(names) - 1)).map(sorted)
    words = st.one_of(
        st.sampled_from(names),
        ends.map(lambda pair: f"{names[pair[0]]}-{names[pair[1]]}"),
        ends.map(lambda pair: f"{names[pair[0]]}-{pair[1] + low}"),
    )
    return st.one_of(words, words.map(str.upper), words.map(str.title))


def _lists(item: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(item, item, st.lists(item, min_size=2, max_size=4).map(",".join))


def _field(low: int, high: int, dialect: str, names: list[str] | None = None) -> st.SearchStrategy[str]:
    numbers, ranges = _numbers(low, high), _ranges(low, high)
    steps = st.one_of(st.integers(1, high), st.integers(1, 5)).map(str)
    item = st.one_of(numbers, ranges)
    if dialect != "posix":
        item = st.one_of(item, st.tuples(ranges, steps).map("/".join))
    if dialect == "quartz":
        item = st.one_of(item, st.tuples(numbers, steps).map("/".join))
    if names and dialect != "posix":
        item = st.one_of(item, _spelled(names, low))
    listed = _lists(item)
    return listed if dialect == "posix" else st.one_of(listed, listed, steps.map(lambda step: f"*/{step}"))


def _often_star(field: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.just("*"), st.just("*"), field)


@cache
def five_fields(dialect: str) -> st.SearchStrategy[str]:
    """Expressions of `posix` or `vixie`, with hours early enough to meet a jump now and then."""
    hour = st.one_of(_field(0, 23, dialect), _field(0, 4, dialect), st.just("*"))
    minute = st.one_of(_field(0, 59, dialect), st.just("0"), st.just("30"), st.just("*"))
    day = _often_star(_field(1, 31, dialect))
    month = _often_star(_field(1, 12, dialect, list(MONTHS)))
    weekday = _often_star(_field(0, 6 if dialect == "posix" else 7, dialect, SUNDAY_FIRST))
    return st.tuples(minute, hour, day, month, weekday).map(" ".join)


@cache
def quartz() -> st.SearchStrategy[str]:
    """Quartz expressions with a handful of seconds, so that a brute-force walk stays affordable."""
    second = st.one_of(st.just("0"), _numbers(0, 59), st.sampled_from(["0/20", "*/30", "5,55", "10-12"]))
    minute = st.one_of(_field(0, 59, "quartz"), st.just("30"), st.just("*"))
    hour = st.one_of(_field(0, 23, "quartz"), _field(0, 4, "quartz"), st.just("*"))
    month = _often_star(_field(1, 12, "quartz", list(MONTHS)))
    year = st.sampled_from(["", "", " *", " 1970-2199", " 2007-2025/1", " 2010,2018,2024-2026"])
    parts = st.tuples(second, minute, hour, _quartz_days(month), year)
    return parts.map(lambda part: f"{part[0]} {part[1]} {part[2]} {part[3]}{part[4]}")


def _quartz_days(month: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Day, month and weekday, of which exactly one of the outer two is `?`."""
    special_day = st.one_of(
        st.sampled_from(["L", "LW"]),
        _numbers(0, 30).map("L-{}".format),
        _numbers(1, 31).map("{}W".format),
    )
    special_weekday = st.one_of(
        st.just("L"),
        _numbers(1, 7).map("{}L".format),
        st.tuples(_numbers(1, 7), _numbers(1, 5)).map("#".join),
    )
    day = st.one_of(st.just("*"), _field(1, 31, "quartz"), _lists(st.one_of(special_day, _numbers(1, 31))))
    weekday = st.one_of(
        st.just("*"), _field(1, 7, "quartz", SUNDAY_FIRST), _lists(st.one_of(special_weekday, _numbers(1, 7)))
    )
    by_day = st.tuples(day, month).map(lambda pair: f"{pair[0]} {pair[1]} ?")
    by_weekday = st.tuples(month, weekday).map(lambda pair: f"? {pair[0]} {pair[1]}")
    return st.one_of(by_day, by_weekday)


def expressions(dialect: str) -> st.SearchStrategy[str]:
    """Valid expressions of the dialect."""
    return quartz() if dialect == "quartz" else five_fields(dialect)


@cache
def around_a_jump(hours: int = 30) -> st.SearchStrategy[tuple[Place, datetime]]:
    """A place and an instant near its jump: often to the second, else within so many hours."""
    near = st.sampled_from([-3600, -1800, -61, -60, -1, 0, 1, 60, 1800, 3600])
    seconds = st.one_of(near, st.integers(-hours * 3600, hours * 3600))
    microseconds = st.sampled_from([0, 0, 0, 1, 999_999])
    return st.builds(
        lambda place, s, us: (place, jump_at(place) + timedelta(seconds=s, microseconds=us)),
        PLACE,
        seconds,
        microseconds,
    )


def anywhen(first: int = 1970, last: int = 2100) -> st.SearchStrategy[datetime]:
    """Instants of these years, on whole minutes now and then."""
    start, end = datetime(first, 1, 1, tzinfo=UTC), datetime(last, 12, 31, tzinfo=UTC)
    minutes = st.integers(0, (end - start) // timedelta(minutes=1))
    loose = st.sampled_from([timedelta(), timedelta(), timedelta(microseconds=1), timedelta(seconds=59.999999)])
    return st.tuples(minutes, loose).map(lambda pair: start + pair[0] * timedelta(minutes=1) + pair[1])


@cache
def periods() -> st.SearchStrategy[Period]:
    """Periods of at least an hour, so that counting up to a question stays affordable."""
    calendar = st.builds(
        Period,
        years=st.sampled_from([0, 0, 0, 1, 4]),
        months=st.sampled_from([0, 0, 1, 2, 5]),
        weeks=st.sampled_from([0, 0, 1, 3]),
        days=st.sampled_from([0, 1, 1, 2, 10]),
        hours=st.sampled_from([0, 0, 1, 36]),
        minutes=st.sampled_from([0, 0, 0, 30]),
    )
    elapsed = st.builds(
        Period,
        hours=st.integers(1, 50),
        minutes=st.sampled_from([0, 0, 30, 59]),
        seconds=st.sampled_from([0, 0, 0, 1]),
    )
    return st.one_of(calendar.filter(lambda period: not period.pure), elapsed)


@cache
def days_off() -> st.SearchStrategy[tuple[frozenset[date], frozenset[int]]]:
    """Dates of spring 2025 and weekdays that are excluded; never all seven."""
    dates = st.frozensets(st.dates(date(2025, 3, 1), date(2025, 5, 31)), max_size=20)
    return st.tuples(dates, st.frozensets(st.integers(1, 7), max_size=5))


def half_days() -> st.SearchStrategy[dict[date, time]]:
    """Dates of spring 2025 that are open until a time."""
    times = st.sampled_from([time(12), time(9), time(0, 1), time(2, 30), time(23, 59, 30)])
    return st.dictionaries(st.dates(date(2025, 3, 1), date(2025, 5, 31)), times, max_size=15)
