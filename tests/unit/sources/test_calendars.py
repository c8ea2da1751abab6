"""Calendars in files: named dates that the schedules of the same file exclude."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from everytick.sources.job_files import JobFile, read_jobs
from everytick.stores.addresses import AnyStore
from tests.unit.sources.writing import JobFolder, sync_folder

EVENTS = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
UID:1
DTSTART;VALUE=DATE:{day}
SUMMARY:closed
END:VEVENT
END:VCALENDAR
"""


def read(
    calendars: str, schedule: str = "(cron: 0 9 24,25 12 *) - closed; roll=next", file: str = "jobs.yaml"
) -> JobFile:
    text = f'version: 1\ncalendars: {calendars}\njobs:\n  a: {{schedule: "{schedule}", command: "true"}}\n'
    return read_jobs(text.encode(), file)


def mistakes(calendars: str, schedule: str = "(cron: 0 9 * * *) - closed") -> list[str]:
    return [f"{each.line}:{each.column} {each.message}" for each in read(calendars, schedule).mistakes]


def runs(file: JobFile, count: int = 2) -> list[str]:
    assert file.mistakes == ()
    at, found = datetime(2026, 12, 1, tzinfo=UTC), []
    for _ in range(count):
        following = file.jobs[0].job.schedule.next_after(at)
        assert following is not None
        at = following
        found.append(f"{at:%d %H:%M}")
    return found


def test_a_schedule_leaves_out_the_dates_and_weekdays_of_a_calendar() -> None:
    """The 24th is closed and rolls to the 25th, which is open itself: one run; 2027 begins with the 24th's roll."""
    assert runs(read("{closed: {dates: [2026-12-24], weekdays: [sat, sun]}}"), 1) == ["25 09:00"]
    assert runs(read("{closed: {dates: [2026-12-24]}}", "(cron: 0 9 24 12 *) - closed; roll=previous"), 1) == [
        "23 09:00"
    ]


def test_holidays_of_a_country_are_resolved_when_the_file_is_read() -> None:
    file = read("{closed: {country: DE, since: 2026-01-01}}", "(cron: 0 9 24,25,28 12 *) - closed")

    assert runs(file) == ["24 09:00", "28 09:00"]


def test_stop_and_restart_schedules_and_lists_may_exclude_too() -> None:
    text = """version: 1
calendars: {closed: {weekdays: [sat, sun]}}
jobs:
  a:
    schedule: ["(cron: 0 9 * * *) - closed", "0 12 * * *"]
    stop_schedule: "(cron: 0 18 * * *) - closed"
    command: "true"
"""
    [a] = read_jobs(text.encode(), "jobs.yaml").jobs

    assert str(a.job.schedule) == "((cron: 0 9 * * *; tz=UTC) - closed) | (cron: 0 12 * * *; tz=UTC)"
    assert str(a.job.settings.stop_schedule) == "(cron: 0 18 * * *; tz=UTC) - closed"


def test_events_of_a_file_beside_it_count_and_so_do_its_changes(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "jobs")
    (folder.path / "closed.ics").write_text(EVENTS.format(day="20261224"))
    text = """version: 1
calendars: {closed: {ics: closed.ics, since: 2026-01-01}}
jobs: {a: {schedule: "(cron: 0 9 24,25 12 *) - closed", command: "true"}}
"""
    folder.text("a.yaml", text)
    assert folder.load() == [("added", "a")]
    december = datetime(2026, 12, 1, tzinfo=UTC)
    assert f"{folder.folder.jobs['a'].job.schedule.next_after(december):%d}" == "25"
    os.utime(folder.path / "a.yaml", (1_000_000_000, 1_000_000_000))
    assert folder.load() == []

    (folder.path / "closed.ics").write_text(EVENTS.format(day="20261225"))

    assert folder.load() == [("updated", "a")]
    assert f"{folder.folder.jobs['a'].job.schedule.next_after(december):%d}" == "24"
    (folder.path / "closed.ics").unlink()
    assert folder.load() == []
    assert "there is no such file beside this one" in str(folder.mistakes)


async def test_a_store_keeps_the_dates_beside_the_schedule(store: AnyStore, folder: JobFolder) -> None:
    """Two nodes with different editions of the holidays agree; a calendar that changes is a new version."""
    text = """version: 1
calendars: {{closed: {{dates: [{day}]}}}}
jobs: {{a: {{schedule: "(cron: 0 9 24,25 12 *) - closed", command: "true"}}}}
"""
    folder.text("a.yaml", text.format(day="2026-12-24"))
    await sync_folder(store, folder.folder)
    [record] = await store.list()
    assert record.job.schedule == folder.folder.jobs["a"].job.schedule
    assert (await sync_folder(store, folder.again())).changes[0].kind == "unchanged"

    folder.text("a.yaml", text.format(day="2026-12-25"))

    [change] = (await sync_folder(store, folder.folder)).changes
    assert (change.kind, change.parts) == ("changed", ("calendar closed",))


@pytest.mark.parametrize(
    ("calendars", "said"),
    [
        ("[]", ["2:12 calendars must be a table of names", "4:17 schedule: '(cron: 0 9 * * *) - closed'"]),
        ("{closed: 3}", ["2:21 calendar 'closed' must be a table of dates, weekdays, half_days, country, region"]),
        ("{closed: {half_days: 3}}", ["2:33 half_days must be a list like [2026-12-24], or a table"]),
        ("{closed: {half_days: [24.12.]}}", ["2:33 Invalid"]),
        ('{closed: {half_days: {2026-12-24: "25:00"}}}', ["2:33 Invalid"]),
        ("{closed: {date: [x]}}", ["2:28 calendar 'closed': unknown key 'date' (did you mean 'dates'?)"]),
        ("{closed: {dates: 2026-12-24}}", ["2:29 dates must be a list, like [2026-12-24]"]),
        (
            "{closed: {dates: [24.12.], weekdays: [caturday]}}",
            ["2:29 Invalid", "2:49 Invalid"],
        ),
        ("{closed: {country: DE}}", ["2:21 Invalid"]),
        ("{closed: {country: XX, since: 2026-01-01}}", ["2:21 Invalid"]),
        ("{closed: {since: soon}}", ["2:29 since 'soon' must be a date like 2026-01-01"]),
        ("{closed: {country: 3}}", ["2:31 country '3' must be a text"]),
        ("{closed: {ics: gone.ics}}", ["2:27 ics 'gone.ics': there is no such file beside this one"]),
        ("{'clo sed': {}, closed: {}}", ["2:24 Invalid"]),
    ],
)
def test_every_mistake_in_a_calendar_is_told_at_its_place(calendars: str, said: list[str]) -> None:
    found = mistakes(calendars)

    assert len(found) == len(said)
    for one, begins in zip(found, said, strict=True):
        assert one.startswith(begins.removesuffix("Invalid")), one


def test_an_undefined_calendar_is_a_mistake_in_the_schedule() -> None:
    [said] = mistakes("{open: {}}")

    assert "closed must be given beside the text; given are open" in said
