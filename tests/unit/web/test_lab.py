"""The schedule lab: what an expression means, without a store and without signing in."""

import re
import time
from datetime import UTC, datetime

import httpx2
import pytest

from everytick import Everytick
from everytick.errors import EverytickError
from everytick.schedules.timezones import zone
from everytick.web.dialects import elsewhere, systemd_text
from everytick.web.examining import Examined, examine, read_expression
from tests.unit.web.conftest import client_of

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
BERLIN = zone("Europe/Berlin")
_XSS = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def _examined(text: str, dialect: str = "cron", **options: str) -> Examined:
    return examine(read_expression(text, dialect=dialect, zone=BERLIN.name, **options), NOW, BERLIN)


def test_a_cron_expression_is_said_field_by_field() -> None:
    found = _examined("30 2 * * 1-5")
    assert found.words == "at 02:30 on Monday through Friday, Europe/Berlin time"
    assert [(part.text, part.name, part.said) for part in found.parts] == [
        ("30", "minute", "30"),
        ("2", "hour", "02"),
        ("*", "day of month", "every day"),
        ("*", "month", "every month"),
        ("1-5", "weekday", "Monday through Friday"),
    ]
    assert found.following[0] == datetime(2026, 11, 17, 1, 30, tzinfo=UTC)
    assert found.former[0] == datetime(2026, 11, 16, 1, 30, tzinfo=UTC)
    assert (found.a_year, found.is_estimate) == (261, False)
    assert [sum(row) for row in found.week] == [1, 1, 1, 1, 1, 0, 0]


def test_clock_changes_show_what_runs_and_what_does_not() -> None:
    gap, fold = _examined("30 2 * * *").changes
    assert (gap.is_fold, [mark.runs for mark in gap.marks]) == (False, [True])
    assert gap.said.startswith("02:30 does not exist: it runs once")
    assert (fold.is_fold, [mark.runs for mark in fold.marks]) == (True, [True, False])
    assert [mark.runs for mark in _examined("30 2 * * *", fold="both").changes[1].marks] == [True, True]
    assert [mark.runs for mark in _examined("30 2 * * *", fold="second").changes[1].marks] == [False, True]
    assert _examined("30 2 * * *", gap="skip").changes[0].marks == ()
    assert _examined("30 2 * * 1-5").change_note == "this schedule is not touched"


@pytest.mark.parametrize(
    ("text", "dialect", "there", "written"),
    [
        ("30 2 * * 1-5", "cron", "quartz", "0 30 2 ? * MON-FRI"),
        ("0 0 * * fri-7", "cron", "quartz", "0 0 0 ? * FRI,SAT,SUN"),
        ("*/15 9-17 * * *", "cron", "posix", "0,15,30,45 9,10,11,12,13,14,15,16,17 * * *"),
        ("0 30 2 ? * MON-FRI", "quartz", "cron", "30 2 * * 1,2,3,4,5"),
        ("30 2 * * 1-5", "cron", "systemd", "Mon..Fri *-*-* 02:30:00 Europe/Berlin"),
        ("*/15 9-17 1,15 * *", "cron", "systemd", "*-*-01,15 09..17:00/15:00 Europe/Berlin"),
        ("0 0 13 * 5", "cron", "systemd", ""),
        ("0 0 12 L * ?", "quartz", "cron", ""),
    ],
)
def test_other_dialects_get_the_same_or_say_that_there_is_no_way(
    text: str, dialect: str, there: str, written: str
) -> None:
    assert {each.dialect: each.text for each in _examined(text, dialect).dialects}[there] == written


def test_what_another_dialect_would_do_differently_is_said() -> None:
    said = {each.dialect: each.said for each in _examined("30 2 * * *").dialects}
    assert said["posix"] == "the same days; a time that the clock skips is left out and one that comes twice runs twice"
    assert said["quartz"].startswith("refused: must have 6 or 7 fields")


@pytest.mark.parametrize(
    ("text", "words", "count"),
    [
        ("every 90m", "every 1 hour 30 minutes", 7),
        ("R5/2027-01-31T09:00:00/P1M", "every month from 2027-01-31", 5),
        ("once: 2027-07-01T09:00:00", "once, at 2027-07-01", 1),
        ("H 3 * * *", "at a minute after 03:00", 7),
        ("0 2 * * *; spread=15m", "spread over 15 minutes", 7),
        ("(0 9 * * *) | (0 17 * * 5)", "at 09:00", 7),
        ("after: 10m", "10 minutes after the last occurrence ended", 0),
        ("on request", "only when it is asked for", 0),
        ("0 0 30 2 *", "at 00:00 on day 30 of the month in February", 0),
    ],
)
def test_every_kind_of_schedule_is_explained(text: str, words: str, count: int) -> None:
    found = _examined(text)
    assert words in found.words
    assert len(found.following) == count
    assert found.parts


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("0 0 30 2 *", "cron"),
        ("0 0 0 ? 2 2#5", "quartz"),
        ("0 0 0 31 2,4,6,9,11 ?", "quartz"),
        ("* * * * * ?", "quartz"),
        ("every 1us", "cron"),
        ("|".join(f"({minute} {hour} * * *)" for minute in range(6) for hour in range(5)), "cron"),
    ],
)
def test_no_text_costs_more_than_a_second(text: str, dialect: str) -> None:
    begun = time.process_time()
    _examined(text, dialect)
    assert time.process_time() - begun < 1


@pytest.mark.parametrize("text", ["", "  ", "*/5", "x" * 501, _XSS, "every", "0 0 * * *; tz=Nowhere/Land", "\x00" * 9])
def test_what_is_no_schedule_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(EverytickError):
        read_expression(text)


def test_a_date_that_is_either_has_no_line_of_systemd() -> None:
    from everytick.schedules.cron_fields import read

    assert systemd_text(read("0 0 13 * 5", "vixie", "or")) is None
    assert systemd_text(read("0 0 13 * 5", "vixie", "and")) == "Fri *-*-13 00:00:00"
    rule = read_expression("0 9 * * *", zone="UTC")
    assert len(elsewhere(rule, NOW)) == 3  # type: ignore[arg-type]


async def test_the_page_answers_without_a_store_and_escapes_what_was_typed(tmp_path: object) -> None:
    tick = Everytick("postgresql://nobody@127.0.0.1:1/none", name="shop")
    async with client_of(tick, "/cron") as client:
        page = await client.get("/lab", params={"schedule": "30 2 * * 1-5", "tz": "Europe/Berlin"})
        assert page.status_code == 200
        assert "<h1>At 02:30 on Monday through Friday, Europe/Berlin time.</h1>" in page.text
        assert "@tick.job(&#34;cron: 30 2 * * 1-5; tz=Europe/Berlin&#34;)" in page.text
        assert len(page.content) < 60_000
        assert not re.search(r'(?:href|action|src)="/(?!cron/)', page.text)
        assert " style=" not in page.text

        for field in ("schedule", "tz", "dialect", "fold", "gap"):
            asked = {"schedule": "0 9 * * *", field: _XSS}
            answer = await client.get("/lab", params=asked)
            assert answer.status_code == (400 if field in ("schedule", "tz") else 200), field
            _holds_no_script(answer)
        assert "That is no schedule yet." in (await client.get("/lab", params={"schedule": "61 * * * *"})).text


def _holds_no_script(answer: httpx2.Response) -> None:
    assert "<script>alert" not in answer.text
    assert "<img" not in answer.text
