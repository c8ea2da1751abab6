"""Whatever stands in a file of another scheduler: what is imported is a valid file and means what it meant there."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st

from everytick.domain.schedule import Schedule
from everytick.schedules.codec import schedule
from everytick.schedules.combine import any_of
from everytick.sources.importing.apscheduler import read_listing
from everytick.sources.importing.celery_beat import read_beat
from everytick.sources.importing.cronjob import read_manifest
from everytick.sources.importing.crontab import read_crontab
from everytick.sources.importing.findings import Findings, UnreadableSource, Unsayable
from everytick.sources.importing.systemd import read_timer
from everytick.sources.importing.wall_rule import DAYS, HOURS, MINUTES, MONTHS, WEEKDAYS, WallRule, numbers
from everytick.sources.job_files import read_jobs
from everytick.sources.yaml_reader import read_yaml
from everytick.sources.yaml_writer import written_file
from tests.oracle.strategies import expressions

BEGIN = datetime(2026, 1, 30, 22, tzinfo=UTC)
END = BEGIN + timedelta(days=33)

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXT, inside, max_size=3),
    max_leaves=8,
)


def some(span: tuple[int, int]) -> st.SearchStrategy[frozenset[int] | None]:
    return st.none() | st.frozensets(st.integers(*span), min_size=1, max_size=6)


def together(texts: list[str]) -> Schedule:
    return any_of(*map(schedule, texts))


# ------------------------------------------------------------------------------------------------------------- writing


def is_plain(found: Any) -> bool:
    """Whether a file of jobs may hold it: no control characters, and no number that is finer than a float."""
    if isinstance(found, dict):
        return all(is_plain(key) and is_plain(part) for key, part in found.items())
    if isinstance(found, list):
        return all(map(is_plain, found))
    return not isinstance(found, str) or all(
        each in "\t\n" or not (ord(each) < 0x20 or 0x7F <= ord(each) <= 0x9F) for each in found
    )


@given(st.dictionaries(TEXT, VALUES, max_size=4).filter(is_plain), st.lists(TEXT, max_size=2))
@example({"a\u2028b": "\ufeffc\u2029 \xa0", "no": "0o17", "1e3": ".inf"}, ["\u2028 x: 1"])
def test_what_is_written_reads_back_equal(parts: dict[str, Any], notes: list[str]) -> None:
    text = written_file({"job": parts}, defaults=parts, head=notes, notes={"job": notes})

    document = read_yaml(text.encode(), "f")

    assert document.mistakes == ()
    assert document.root is not None
    assert document.root.data == {
        "version": 1,
        **({"defaults": parts} if parts else {}),
        "jobs": {"job": parts or None},
    }


# --------------------------------------------------------------------------------------------------------------- times


@given(st.frozensets(st.integers(0, 59), min_size=1))
def test_a_field_names_exactly_its_numbers(found: frozenset[int]) -> None:
    instants = schedule(f"{numbers(found, MINUTES)} 5 1 2 *").instants(BEGIN, END)

    assert {each.minute for each in instants} == found


@given(some(MINUTES), some(HOURS), some(DAYS), some(MONTHS), some(WEEKDAYS))
def test_a_rule_names_the_times_that_match_in_every_field(
    minute: frozenset[int] | None,
    hour: frozenset[int] | None,
    day: frozenset[int] | None,
    month: frozenset[int] | None,
    weekday: frozenset[int] | None,
) -> None:
    rule = WallRule(minute=minute, hour=hour, day=day, month=month, weekday=weekday)

    found = together(rule.texts()).instants(BEGIN, END)

    days = [each for each in (BEGIN.date() + timedelta(n) for n in range(35)) if _matches(each, day, month, weekday)]
    expected = [
        datetime(each.year, each.month, each.day, h, m, tzinfo=UTC)
        for each in days
        for h in sorted(hour or range(24))
        for m in sorted(minute or range(60))
    ]
    assert list(found) == [each for each in expected if BEGIN < each <= END]


def _matches(
    each: date, day: frozenset[int] | None, month: frozenset[int] | None, weekday: frozenset[int] | None
) -> bool:
    return (
        (day is None or each.day in day)
        and (month is None or each.month in month)
        and (weekday is None or each.isoweekday() % 7 in weekday)
    )


@given(
    st.frozensets(st.integers(1, 31), max_size=3),
    st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 5)), max_size=3),
    some(WEEKDAYS),
)
def test_days_from_the_end_and_by_their_place_are_those_of_the_calendar(
    from_end: frozenset[int], nth: frozenset[tuple[int, int]], weekday: frozenset[int] | None
) -> None:
    rule = WallRule(
        minute=frozenset({0}), hour=frozenset({6}), from_end=from_end, nth=nth, weekday=weekday if from_end else None
    )
    try:
        texts = rule.texts()
    except Unsayable:
        reject()

    found = {
        each.date()
        for each in together(texts).instants(datetime(2026, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC))
    }

    every = [date(2026, 1, 1) + timedelta(n) for n in range(3 * 366 - 2)]
    expected = {each for each in every if _has_place(each, from_end, nth, rule.weekday)}
    assert found == expected or not (from_end or nth)


def _has_place(
    each: date, from_end: frozenset[int], nth: frozenset[tuple[int, int]], weekday: frozenset[int] | None
) -> bool:
    following = date(each.year + each.month // 12, each.month % 12 + 1, 1)
    left, day = (following - each).days, each.isoweekday() % 7
    by_end = left in from_end and (weekday is None or day in weekday)
    return by_end or (day, (each.day + 6) // 7) in nth or (left <= 7 and (day, 0) in nth)


@given(expressions("vixie"))
def test_a_line_of_a_crontab_is_a_job_with_that_schedule(expression: str) -> None:
    found = read_crontab(f"{expression} /bin/true".encode(), "c", timezone="Europe/Berlin")

    read = read_jobs(found.text().encode(), "f")
    for job in read.jobs:
        assert job.job.schedule == schedule(f"{expression}; tz=Europe/Berlin")
    assert bool(read.jobs) != any("not imported" in each.why for each in found.left)


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]) | st.sampled_from("%\\%%'\""), min_size=1))
def test_every_command_of_a_crontab_comes_out_as_a_valid_file(command: str) -> None:
    found = read_crontab(f"@daily {command}".encode(), "c", timezone="UTC")

    assert read_jobs(found.text().encode(), "f").mistakes == ()
    assert len(found.jobs) + len(found.left) >= 1


# --------------------------------------------------------------------------------------------------------- any file


def _timer(raw: bytes) -> Findings:
    return read_timer(raw, "f", service=lambda _: ("s", raw))


PIECES = st.sampled_from(
    [
        b"[Timer]\n", b"[Service]\n", b"OnCalendar=daily\n", b"OnUnitActiveSec=5\n", b"ExecStart=a\n", b"Mon *-*~07/1 ",
        b"* * * * * a\n", b"@daily b\n", b"CRON_TZ=UTC\n", b"X=1\n", b"%", b"\\", b'"', b"'", b"{{ job }}", b"$(A)",
        b"beat_schedule = {", b"'x': {'task': 'a.b', 'schedule': crontab(minute='*/5')}", b"}", b"(", b"[",
        b'{"jobs": [', b'{"id": "a", "func": "a:b", "trigger": {"type": "CronTrigger", "fields": {"hour": "5"}}}',
        b"]}", b"kind: CronJob\n", b"metadata: {name: x}\n", b"spec: {schedule: '* * * * *', jobTemplate: ", b"---\n",
        b"\n", b" ",
        b"items:\n- ", b": ", b"\x00", b"\xff", b"\x1b[31m", b"\xe2\x80\xa8",
        b"NaN", b"1e999", b"9" * 5000, b"-1", b"null", b'"schedule": ', b"'schedule': ", b'"seconds": ',
    ]
)  # fmt: skip


@pytest.mark.parametrize("read", [read_crontab, _timer, read_beat, read_listing, read_manifest])
@given(raw=st.lists(PIECES | st.binary(max_size=4), max_size=12).map(b"".join))
def test_no_file_whatever_stands_in_it_does_more_than_be_refused(read: Any, raw: bytes) -> None:
    try:
        found: Findings = read(raw, "f") if read is not _timer else read(raw)
    except UnreadableSource as refused:
        said, found = [str(refused)], Findings("f", {})
    else:
        said = [str(each) for each in found.left]

    assert read_jobs(found.text().encode(), "f").mistakes == ()
    assert all(map(str.isprintable, said))
