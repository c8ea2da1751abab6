"""Operations: each writes its fact with the user's name, and those that destroy need a yes."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from getpass import getuser
from pathlib import Path

import pytest

from everytick import Everytick, every
from everytick.testing import drain
from tests.stores.acting import everything
from tests.unit.cli.conftest import Cli, ran

FUTURE = "2035-03-26T02:30[Europe/Berlin]"


def shown(cli: Cli, job: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(cli("show", job, "--json").out)
    return found


def settle(app: Everytick) -> None:
    async def run() -> None:
        await drain(app)
        await app.close()

    asyncio.run(run())


def test_trigger_writes_the_id_of_what_will_run(cli: Cli, shop: Everytick) -> None:
    done = cli("trigger", "nightly", "--payload", '{"pages": 3}', "--reason", "by hand")
    settle(shop)

    assert done.code == 0
    found = json.loads(cli("show", done.out.strip(), "--json").out)
    assert (found["status"], found["cause"], found["job"]) == ("completed", "trigger", "nightly")


def test_the_same_key_asks_for_the_same_occurrence_and_another_payload_is_a_conflict(cli: Cli, shop: Everytick) -> None:
    first = cli("trigger", "nightly", "--key", "order-7", "--payload", '{"pages": 3}')
    again = cli("trigger", "nightly", "--key", "order-7", "--payload", '{"pages": 3}')
    other = cli("trigger", "nightly", "--key", "order-7", "--payload", '{"pages": 4}')

    assert first.out == again.out
    assert other.code == 5


def test_a_payload_may_come_from_a_file(cli: Cli, shop: Everytick, tmp_path: Path) -> None:
    (tmp_path / "payload.json").write_text('{"pages": 2}')

    assert cli("trigger", "nightly", "--payload", f"@{tmp_path}/payload.json").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["trigger", "nightly", "--payload", "{pages: 3}"], 2, "--payload is not JSON"),
        (["trigger", "nightly", "--payload", "@gone.json"], 2, "cannot be read: No such file"),
        (["trigger", "nightly", "--overlap", "quue"], 2, "did you mean 'queue'"),
        (["trigger", "nightly", "--timeout", "3s"], 2, "--timeout is about --wait"),
        (["trigger", "nightly", "--wait", "--timeout", "3"], 2, "3"),
        (["trigger", "nihgtly"], 3, "did you mean 'nightly'"),
        (["skip", "nightly", "2035-03-26T03:30Z"], 2, "is not named by the schedule"),
        (["skip", "nightly", "2020-03-26T01:30Z"], 2, "must be later than the store's time"),
        (["reschedule", "nightly", "tomorrow"], 2, "write it like 2026-07-01T09:00"),
        (["cancel", "occ_" + "0" * 32, "--yes"], 3, "there is no occurrence"),
        (["replay", "--job-occurrence", "occ_" + "0" * 32], 2, "--reason"),
        (["replay", "--job-occurrence", "occ_" + "0" * 32, "--reason", "x"], 3, "there is no occurrence"),
        (["rename", "nightly", "broken", "--detach"], 5, "broken"),
        (["rename", "nightly", "a\x1bb"], 2, "control character"),
        (
            ["backfill", "plan", "broken", "--after", "2026-02-01", "--through", "2026-01-01"],
            2,
            "it begins at 2026-02-01 and ends before, at 2026-01-01",
        ),
        (["remove", "nightly"], 2, "pass --yes"),
        (
            ["backfill", "plan", "broken", "--through", "2026-01-02"],
            2,
            "say where it begins: give --from T, or --after T",
        ),
        (["backfill", "approve", "00000000"], 3, "no backfill has an id that begins with"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(
    cli: Cli, shop: Everytick, arguments: list[str], code: int, said: str
) -> None:
    done = cli(*arguments)

    assert done.code == code, done.err
    assert said in done.err
    assert done.err.startswith("everytick: ")
    assert done.out == ""


def test_pause_and_resume_are_stored_with_the_users_name(cli: Cli, shop: Everytick) -> None:
    cli("pause", "nightly", "--until", "2035-12-24T18:00", "--reason", "holidays", "--missed", "catch_up")

    pause = shown(cli, "nightly")["pause"]
    assert isinstance(pause, dict)
    assert (pause["until"], pause["reason"], pause["missed"]) == ("2035-12-24T18:00:00Z", "holidays", "catch_up")
    assert pause["by"] == getuser()
    assert [row[1] for row in cli("list", "-k", "nightly").rows] == ["paused"]
    [paused] = [row[1] for row in cli("show", "nightly").rows if row[0] == "paused"]
    assert paused.endswith(f"until 2035-12-24T18:00:00+00:00 by {getuser()}: holidays")

    assert "goes on" in cli("resume", "nightly").err
    assert "was not paused" in cli("resume", "nightly").err
    assert shown(cli, "nightly")["pause"] is None


def test_a_disabled_job_takes_no_requests_until_it_is_enabled(cli: Cli, shop: Everytick) -> None:
    assert "is disabled" in cli("disable", "nightly").err
    assert "was disabled already" in cli("disable", "nightly").err
    assert cli("trigger", "nightly").code == 5
    assert "is enabled" in cli("enable", "nightly").err
    assert cli("trigger", "nightly").code == 0


def test_single_instants_are_skipped_moved_and_rescheduled(cli: Cli, shop: Everytick) -> None:
    assert cli("skip", "nightly", FUTURE, "--reason", "nobody there").code == 0
    assert cli("move", "both", "2035-01-01T00:00:00Z", "2035-01-02 05:00").code == 0
    assert cli("reschedule", "broken", "2034-01-01T00:00", "--utc").code == 0

    skipped = json.loads(cli("explain", "nightly", "--at", FUTURE, "--json").out)
    moved = json.loads(cli("explain", "both", "--at", "2035-01-01T00:00:00Z", "--json").out)
    assert skipped["verdict"] == "skipped by hand"
    assert (moved["verdict"], moved["moved_to"]) == ("moved by hand", "2035-01-02T05:00:00Z")
    assert shown(cli, "broken")["next_run"] == "2034-01-01T00:00:00Z"


def test_a_replay_does_again_what_an_ended_occurrence_did(cli: Cli, shop: Everytick) -> None:
    """S0-103: `replay --job-occurrence ID --reason TEXT`."""
    [original] = ran(shop, "nightly")

    done = cli("replay", "--job-occurrence", original, "--reason", "the disk was full")
    settle(shop)

    found = json.loads(cli("show", done.out.strip(), "--json").out)
    assert done.code == 0
    assert (found["status"], found["cause"], found["replay_of"]) == ("completed", "replay", original)
    assert "the disk was full" in found["reason"]
    for given, missing in (
        (["--job-occurrence", original], "'--reason'"),
        (["--reason", "again"], "name one occurrence"),
    ):
        refused = cli("replay", *given)
        assert (refused.code, missing in refused.err) == (2, True)


def test_a_replay_from_one_task_on_runs_no_task_before_it(cli: Cli, shop: Everytick) -> None:
    """S0-103: `--from-task`."""
    [original] = ran(shop, "both")

    done = cli("replay", "--job-occurrence", original, "--reason", "again", "--from-task", "second")
    settle(shop)

    found = json.loads(cli("show", done.out.strip(), "--json").out)
    assert (found["status"], found["replay_of"]) == ("completed", original)
    assert [attempt["task"] for attempt in found["attempts"]] == ["second"]
    unknown = cli("replay", "--job-occurrence", original, "--reason", "again", "--from-task", "third")
    assert (unknown.code, "third" in unknown.err) == (3, True)


def test_what_has_not_ended_cannot_be_replayed(cli: Cli, shop: Everytick) -> None:
    """S0-103."""
    id_ = cli("trigger", "nightly").out.strip()

    async def planned() -> None:
        # As a plan does, and no node runs it.
        from everytick.deciding.plan import plan

        store = await shop._opened()
        now = await store.now()
        async with store.due(await everything(store), 10) as batch:
            await store.commit_plans(batch, [plan(each, now) for each in batch.snapshots])
        await shop.close()

    asyncio.run(planned())
    done = cli("replay", "--job-occurrence", id_, "--reason", "again")

    assert done.code == 5
    assert "replay it once it has ended" in done.err


def test_a_backfill_is_planned_shown_approved_and_listed(cli: Cli, shop: Everytick) -> None:
    """A23, B5: counted first, kept under an id that may be shortened, and nothing runs before it is approved."""
    yesterday = (datetime.now(UTC) - timedelta(days=1)).replace(minute=0, second=0, microsecond=0)
    after, through = (f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in (yesterday, yesterday + timedelta(hours=3)))
    span = ["broken", "--after", after, "--through", through, "--overlap", "allow", "--rate", "600"]

    counted = cli("backfill", "plan", *span, "--dry-run")
    planned = cli("backfill", "plan", *span, "--reason", "lost")
    settle(shop)

    assert counted.out == "3\n"
    assert "3 instants of 'broken' have no occurrence, from " in planned.err
    assert "at most 600 start in a minute" in planned.err
    id_ = planned.out.strip()
    assert f"nothing runs yet: everytick backfill approve {id_}" in planned.err
    assert cli("history", "broken", "--cause", "backfill").rows == []
    short = id_.removeprefix("backfill_")[:8]
    assert "it runs now" in cli("backfill", "approve", short).err
    settle(shop)
    assert len(cli("history", "broken", "--cause", "backfill").rows) == 3
    shown = json.loads(cli("backfill", "show", short, "--json").out)
    assert (shown["id"], shown["failed"], shown["left"], shown["status"]) == (id_, 3, 0, "completed")
    assert "lost" in cli("backfill", "show", short).out
    assert [row[0] for row in cli("backfills", "broken").rows] == [id_]
    assert cli("backfill", "cancel", short, "--yes").code == 5
    assert "has its occurrence already" in cli("backfill", "plan", *span, "--yes").err


def test_backfills_fit_a_narrow_terminal_and_begin_where_they_were_said_to(
    cli: Cli, shop: Everytick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--from 2026-01-01` stood there as after Dec 31 23:59:59, and each count on a line of its own."""
    cli("backfill", "plan", "broken", "--from", "2026-01-01", "--through", "2026-01-01T04:00")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    for module in ("backfills", "ids", "output", "times"):
        monkeypatch.setattr(f"everytick.cli.{module}.is_terminal", lambda *stream: True)

    heading, row, *below = cli("backfills").out.splitlines()

    assert heading.split()[:4] == ["id", "job", "status", "from"]
    assert "Jan  1 00:00:00" in row
    assert " ".join(" ".join([row, *below]).split()).endswith("0 done, 0 failed, 0 running, 5 left; 60 a minute")
    assert len(below) <= 2, below


def test_a_backfill_is_paused_resumed_and_canceled(cli: Cli, shop: Everytick) -> None:
    """B5: each says what it did, and doing it twice changes nothing."""
    id_ = cli(
        "backfill", "plan", "broken", "--from", "2026-01-01T00:00Z", "--through", "2026-01-02T00:00Z", "--yes"
    ).out
    for verb, first, again in (
        ("pause", "it is paused", "it was paused before"),
        ("resume", "it goes on", "it was not paused"),
    ):
        assert first in cli("backfill", verb, id_.strip()).err
        assert again in cli("backfill", verb, id_.strip()).err
    assert "pass --yes" in cli("backfill", "cancel", id_.strip()).err
    assert "it is canceled" in cli("backfill", "cancel", id_.strip(), "--yes").err
    assert json.loads(cli("backfills", "--json").out)[0]["status"] == "canceled"


def test_cancel_says_what_it_found(cli: Cli, shop: Everytick) -> None:
    [ended] = ran(shop, "nightly")

    assert "it had ended before: completed" in cli("cancel", ended, "--yes").err


def test_rename_and_remove_change_what_is_stored(cli: Cli, shop: Everytick) -> None:
    assert cli("rename", "nightly", "every-night", "--detach").code == 0
    assert cli("remove", "broken", "--yes").code == 0

    assert [row[0] for row in cli("list").rows] == ["both", "every-night"]


def test_remove_with_purge_asks_and_leaves_nothing(cli: Cli, shop: Everytick) -> None:
    """S0-133."""
    [id_] = ran(shop, "nightly")

    refused = cli("remove", "nightly", "--purge")
    done = cli("remove", "nightly", "--purge", "--yes")

    assert (refused.code, "forget all of 'nightly'" in refused.err, "--yes" in refused.err) == (2, True, True)
    assert done.code == 0
    assert "with all that belonged to it" in done.err
    assert cli("show", id_).code == 3
    assert cli("remove", "nightly", "--purge", "--yes").code == 3


def test_what_no_node_has_planned_is_shown_and_canceled(cli: Cli, shop: Everytick) -> None:
    id_ = cli("trigger", "nightly", "--reason", "by mistake").out.strip()
    assert "asked for, not planned yet" in json.loads(cli("show", id_, "--json").out)["reason"]
    assert cli("show", id_).code == 0
    assert cli("cancel", id_, "--yes").code == 0
    settle(shop)
    assert json.loads(cli("show", id_, "--json").out)["status"] == "canceled"


def test_a_backfill_names_the_past_by_the_definition_asked_for(cli: Cli, shop: Everytick) -> None:
    """Planning.md, Ids: that of its time, or the newest."""
    span = ["--after", "2026-03-01T00:00Z", "--through", "2026-03-02T00:00Z", "--dry-run"]
    before = cli("backfill", "plan", "nightly", *span)
    asyncio.run(_edited(shop))
    assert cli("backfill", "plan", "nightly", *span).out == before.out
    assert cli("backfill", "plan", "nightly", *span, "--as-of", "now").out.strip() == "24"


async def _edited(app: Everytick) -> None:
    await app.update("nightly", schedule=every("1h"), detach=True)
    await app.close()


def test_a_removed_job_that_was_renamed_is_found_by_both_names(cli: Cli, shop: Everytick) -> None:
    """F15."""
    cli("trigger", "nightly")
    settle(shop)
    assert cli("rename", "nightly", "daily", "--detach").code == 0
    assert cli("remove", "daily", "--yes").code == 0
    for name in ("daily", "nightly"):
        assert "completed" in cli("history", name).out
        assert cli("explain", name, "--at", "2026-01-01T00:00Z").code == 0


def test_single_runs_are_amended_added_and_undone(cli: Cli, shop: Everytick) -> None:
    """B20: with a mark, who and why in `next`; undo says what it took back."""
    assert (
        cli("amend", "nightly", FUTURE, "--payload", '{"pages": 3}', "--set", "priority=5", "--reason", "x").code == 0
    )
    added = cli("add", "nightly", "2035-03-26T03:00:00Z", "--payload", '{"pages": 2}').out.strip()
    listed = json.loads(cli("next", "nightly", "--until", "2035-03-27", "-n", "10000", "--json").out)
    marked = [(each["at"], each["mark"], each["asked_for"]) for each in listed if each["mark"] or each["asked_for"]]
    assert marked == [("2035-03-26T00:30:00Z", "amended", None), ("2035-03-26T03:00:00Z", None, added)]
    assert cli("skip", "nightly", FUTURE).code == 0
    notes = [row[2] for row in cli("next", "nightly", "--until", "2035-03-27", "-n", "10000").rows]
    assert sum(note.startswith("skipped by ") for note in notes) == 1
    assert "the skip and the amend is undone" in cli("undo", "nightly", FUTURE).err
    assert "the add is undone" in cli("undo", "nightly", "2035-03-26T03:00:00Z").err
    assert "nothing to undo" in cli("undo", "nightly", FUTURE).err
    assert cli("amend", "nightly", FUTURE, "--set", "priority").code == 2
    assert "there is no policy 'by'" in cli("amend", "nightly", FUTURE, "--set", "by=root").err


def test_resume_says_what_becomes_of_what_was_held(cli: Cli, shop: Everytick) -> None:
    """A11."""
    assert cli("pause", "nightly", "--missed", "last").code == 0
    assert "last" in str(shown(cli, "nightly")["pause"])
    assert cli("resume", "nightly", "--missed", "everything").code == 2
    assert "goes on" in cli("resume", "nightly", "--missed", "catch_up").err
