"""Schedules in plain English."""

import pytest

from everytick import schedule

WORDS = {
    "* * * * *": "every minute, UTC",
    "*/5 * * * *": "every 5 minutes, UTC",
    "*/1 * * * *": "every minute, UTC",
    "*/7 * * * *": "every 7 minutes, counted from each full hour, UTC",
    "*/40 * * * *": "every 40 minutes, counted from each full hour, UTC",
    "0 */5 * * *": "every 5 hours, counted from midnight, UTC",
    "10 */5 * * *": "at minute 10 of every hour, in every 5th hour, counted from midnight, UTC",
    "quartz: */7 * * * * ?": "every 7 seconds, counted from each full minute, UTC",
    "0 * * * *": "every hour, UTC",
    "@hourly": "every hour, UTC",
    "@daily": "at 00:00, UTC",
    "0 */2 * * *": "every 2 hours, UTC",
    "30 * * * *": "at minute 30 of every hour, UTC",
    "5-20/5 * * * *": "at minute 5 through 20, every 5th of them of every hour, UTC",
    "30 2 * * 1-5; tz=Europe/Berlin": "at 02:30 on Monday through Friday, Europe/Berlin time",
    "0 9,17 * * *": "at 09:00 and 17:00, UTC",
    "0,30 9,12,15 * * *": "at 09:00, 09:30, 12:00, 12:30, 15:00 and 15:30, UTC",
    "*/5 9-17 * * mon-fri": "every 5 minutes, between 09:00 and 17:59 on Monday through Friday, UTC",
    "10 */3 * * *": "at minute 10 of every hour, in every 3rd hour, UTC",
    "* 4,6 * * *": "every minute, in hour 4 and 6, UTC",
    "0 0 1,15 * 1": "at 00:00 on day 1 and 15 of the month or on Monday, UTC",
    "0 0 1,15 * 1; day_match=and": "at 00:00 on day 1 and 15 of the month if it is also on Monday, UTC",
    "0 0 */2 * 1": "at 00:00 on every 2nd day of the month if it is also on Monday, UTC",
    "0 0 * * 0,7": "at 00:00 on Sunday and Sunday, UTC",
    "0 0 29 2 *": "at 00:00 on day 29 of the month in February, UTC",
    "0 0 1 jan,JUL *": "at 00:00 on day 1 of the month in January and July, UTC",
    "0 0 1 */3 *": "at 00:00 on day 1 of the month in every 3rd of the months, UTC",
    "H 3 * * *": "at a minute after 03:00 that the job's id chooses, UTC",
    "H(0-29)/10 * * * *": "at minute one chosen by the job from 0 to 29 and every 10th after it of every hour, UTC",
    "quartz: 0 0 12 L * ?": "at 12:00 on the last day of the month, UTC",
    "quartz: 0 0 12 LW * ?": "at 12:00 on the last weekday of the month, UTC",
    "quartz: 0 0 12 L-3 * ?": "at 12:00 on the day 3 before the last of the month, UTC",
    "quartz: 0 0 12 1,15W * ?": "at 12:00 on day 1 of the month and the weekday nearest day 15 of the month, UTC",
    "quartz: 0 30 9 ? * FRI#2": "at 09:30 on the second Friday of the month, UTC",
    "quartz: 0 30 9 ? * 6L": "at 09:30 on the last Friday of the month, UTC",
    "quartz: 0 30 9 ? * L": "at 09:30 on Saturday, UTC",
    "quartz: 0 30 9 ? * 1": "at 09:30 on Sunday, UTC",
    "quartz: 15 30 9 ? * * 2030-2032": "at 09:30:15 in 2030 through 2032, UTC",
    "quartz: * * * * * ?": "every second, UTC",
    "quartz: */10 * * * * ?": "every 10 seconds, UTC",
    "quartz: 5,35 * * * * ?": "at second 5 and 35, every minute, UTC",
    "quartz: 0 0/15 8 * * ?": "at minute 0 and every 15th after it of every hour, in hour 8, UTC",
    "every 90s": "every 1 minute 30 seconds",
    "every 1h": "every hour",
    "every: 1d; tz=Asia/Tokyo": "every day, Asia/Tokyo time",
    "every: P1M; start=2024-01-31T09:00:00Z": "every month, from 2024-01-31 09:00:00Z, UTC",
    "R1/2024-01-31T09:00:00Z/PT1H": "every hour from 2024-01-31 09:00:00Z, 1 time in all",
    "R5/2024-01-31T09:00:00[Europe/Berlin]/P1M": (
        "every month from 2024-01-31 09:00:00, 5 times in all, Europe/Berlin time"
    ),
    "once: 2026-07-01T09:00:00Z": "once, at 2026-07-01 09:00:00Z",
    "once: 2026-07-01T09:00:00; tz=Asia/Tokyo": "once, at 2026-07-01 09:00:00, Asia/Tokyo time",
    "after: 10m": "10 minutes after the last occurrence ended",
    "(@daily) | (every 1h)": "at 00:00, UTC; or every hour",
    "@daily; start=2026-01-01Z; end=2027-01-01Z": (
        "at 00:00, UTC, from 2026-01-01 00:00:00Z, until 2027-01-01 00:00:00Z"
    ),
    "@daily; spread=15m": "at 00:00, UTC, spread over 15 minutes",
    "@daily; spread=15m; offset=4m": "at 00:00, UTC, spread over 15 minutes, 4 minutes later",
}


@pytest.mark.parametrize(("text", "words"), WORDS.items())
def test_a_schedule_is_said_in_words(text: str, words: str) -> None:
    assert schedule(text).describe() == words
