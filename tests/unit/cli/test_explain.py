"""`explain`: what a schedule means, and why an instant ran or did not."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from everytick import Everytick, every
from everytick.stores.sqlite.store import SqliteStore
from everytick.testing import ManualClock
from tests.unit.cli.conftest import Cli, ran


def test_a_schedule_is_explained_without_a_store(plain: Cli) -> None:
    done = plain("explain", "30 2 * * 1-5", "--tz", "Europe/Berlin")

    assert done.code == 0
    assert done.out.startswith("at 02:30 on Monday through Friday, Europe/Berlin time\n")
    pairs = [row for row in done.rows if len(row) == 2]
    assert len([name for name, _ in pairs if name == "next"]) == 5
    assert len([name for name, _ in pairs if name == "previous"]) == 2


def test_clock_changes_are_told(plain: Cli) -> None:
    explained = json.loads(plain("explain", "30 2 * * *", "--tz", "Europe/Berlin", "--json").out)

    assert {change["what"] for change in explained["clock_changes"]} == {"moved", "silenced"}
    assert explained["words"] == "at 02:30, Europe/Berlin time"


def test_clock_changes_are_found_inside_combined_schedules(plain: Cli) -> None:
    text = "(cron: 30 2 * * *; tz=Europe/Berlin) | (cron: 0 9 * * *; tz=UTC)"

    explained = json.loads(plain("explain", text, "--json").out)

    assert {change["what"] for change in explained["clock_changes"]} == {"moved", "silenced"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("after: 5m", "it depends on when the last occurrence ends"),
        ("once: 2020-01-01T00:00:00Z", "never again"),
        ("0 0 30 2 *", "next\tnever\n"),
        ("every 10s", "every 10 seconds"),
    ],
)
def test_schedules_of_every_kind_are_explained(plain: Cli, text: str, said: str) -> None:
    done = plain("explain", text)

    assert done.code == 0
    assert said in done.out


def test_a_schedule_that_needs_a_job_is_explained_by_example(plain: Cli) -> None:
    done = plain("explain", "H 2 * * *")

    assert done.code == 0
    assert "a job called 'example'" in done.err


def test_an_expression_that_does_not_parse_is_wrong_usage(plain: Cli) -> None:
    done = plain("explain", "61 * * * *")

    assert (done.code, done.out) == (2, "")
    assert 'Invalid cron expression "61 * * * *": minute field must be 0 to 59, got 61' in done.err


def test_a_job_is_explained_by_its_last_decisions_and_its_next_run(cli: Cli, shop: Everytick) -> None:
    """A17: in words, in one zone, without an instant."""
    [id_] = ran(shop, "broken")

    done = cli("explain", "broken", "--tz", "Europe/Berlin")

    assert done.code == 0
    past, *_, coming = done.rows
    assert past[1] == "ran"
    assert past[2].startswith(f"it ran as {id_}, from 20")
    assert "failed (ValueError: no" in past[2]
    assert "+00:00" not in done.out
    assert coming[1] == "will run"
    assert json.loads(cli("explain", "broken", "--json").out)[0]["verdict"] == "ran"


def test_what_is_neither_a_schedule_nor_a_job_is_not_found(cli: Cli, plain: Cli, shop: Everytick) -> None:
    """A17."""
    nothing, job, schedule = plain("explain", "hello"), cli("explain", "nihgtly"), cli("explain", "61 * * * *")

    assert (nothing.code, job.code, schedule.code) == (2, 3, 2)
    assert "to ask about a job, name its store: give -a" in nothing.err
    assert "there is no job 'nihgtly' (did you mean 'nightly'?)" in job.err
    assert "minute field must be 0 to 59, got 61" in schedule.err


def test_an_instant_of_a_job_is_explained(cli: Cli, shop: Everytick) -> None:
    ran(shop, "nightly")

    past = cli("explain", "nightly", "--at", "2026-01-01T01:30:00Z")
    never = json.loads(cli("explain", "nightly", "--at", "2035-03-26 03:00", "--json").out)
    coming = json.loads(cli("explain", "nightly", "--at", "2035-03-26T02:30[Europe/Berlin]", "--json").out)

    assert past.out.startswith("before the job was known: ")
    assert never["verdict"] == "not named by the schedule"
    assert coming["verdict"] == "will run"


def test_an_instant_that_a_pause_held_is_told_once_and_in_the_past(plain: Cli, tmp_path: Path) -> None:
    """The history has it before a plan has written it down."""
    asyncio.run(_paused_for_an_hour(tmp_path / "shop.db"))

    rows = plain("--store", f"sqlite:///{tmp_path / 'shop.db'}", "explain", "hourly").rows

    told = [row for row in rows if row[1] == "paused"]
    assert len(told) == 1, rows
    assert told[0][2].startswith("the job was paused by ann since 20")


async def _paused_for_an_hour(file: Path) -> None:
    """Three hours ago the job was paused over one of its instants; no node has run since."""
    clock = ManualClock(datetime.now(UTC).replace(minute=30, second=0, microsecond=0) - timedelta(hours=3))
    store = SqliteStore(file, clock=clock)
    await store.open()
    app = Everytick(store, name="shop")
    app.job(every("1h"), name="hourly")(_nothing)
    await app.sync()
    await app.pause("hourly", by="ann")
    clock.advance("1h")
    await app.resume("hourly", by="ann")
    await app.close()
    await store.close()


def _nothing() -> None: ...
