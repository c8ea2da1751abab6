"""What a program says to the person who started it."""

import logging
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from everytick import Everytick, every
from everytick.app.console_lines import greeting, tell, waiting_for
from everytick.stores.addresses import store_of

NOW = datetime(2026, 11, 16, 10, tzinfo=UTC)


def test_a_start_names_the_store_the_jobs_and_the_first_run() -> None:
    """A19."""
    tick = Everytick("memory://", name="shop")
    tick.job("0 12 * * *", name="noon")(print)
    tick.job(every("1h"), name="hourly")(print)
    jobs = [definition.job for definition in tick.definitions]

    said = greeting(jobs, None, store_of("sqlite:///jobs.db").address, NOW)
    folder = greeting([], "jobs", store_of("memory://").address, NOW)

    assert said == ("running 2 jobs on jobs.db; the first run is hourly at 2026-11-16 11:00:00 UTC; Ctrl-C stops it")
    assert folder == "running the jobs in jobs on a store in memory; Ctrl-C stops it"


def test_the_password_of_a_store_is_not_said() -> None:
    said = greeting([], None, store_of("postgresql://ada:secret@host/db").address, NOW)

    assert "secret" not in said


def test_a_stop_names_what_it_waits_for() -> None:
    """A19: otherwise up to 30 s of nothing follow a Ctrl-C."""
    many = Counter({f"job-{number}": 1 for number in range(7)})

    assert waiting_for(Counter(), timedelta(seconds=30)) == ""
    assert waiting_for(Counter({"b": 2, "a": 1}), timedelta(seconds=30)) == "; waiting up to 30s for a, b (2 runs)"
    assert waiting_for(Counter({"a": 1}), None) == "; waiting for a"
    assert waiting_for(many, None).endswith("job-4 and 2 other jobs")


def test_a_line_reaches_standard_error_where_logging_is_not_configured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A19: here the handlers of the test are out of reach, as if there were none."""
    monkeypatch.setattr(logging.getLogger("everytick"), "propagate", False)

    tell("stopping")

    assert capsys.readouterr().err == "everytick: stopping\n"


def test_a_line_goes_to_the_log_where_that_takes_it(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And to a terminal where the log takes only warnings."""
    with caplog.at_level("INFO", logger="everytick"):
        tell("stopping")
    with caplog.at_level("WARNING", logger="everytick"):
        tell("in a pipe")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
        tell("at a terminal")

    assert [record.getMessage() for record in caplog.records] == ["stopping"]
    assert capsys.readouterr().err == "everytick: at a terminal\n"


async def test_an_application_without_jobs_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """A19: with a hint if its module was imported twice, as `python app.py` does whose jobs import app."""
    lonely, empty, full = Everytick("memory://", name="lonely"), *(Everytick("memory://", name="app") for _ in range(2))
    full.job(every("1h"))(print)

    for app in (lonely, empty, full):
        async with app:
            pass

    said = [record.getMessage() for record in caplog.records if "defines no jobs" in record.getMessage()]
    assert said[0] == "application 'lonely' defines no jobs: is every module that defines jobs imported?"
    assert said[1].startswith(
        "application 'app' defines no jobs: its module was imported twice, and the other one has 1"
    )
    assert len(said) == 2
