"""limits, limit, brake and release: what holds is shown, with who and why; each mistake is told."""

import json
from getpass import getuser

import pytest

from everytick import Everytick
from tests.unit.cli.conftest import Cli, ran


def test_a_limit_is_set_shown_and_removed(cli: Cli, shop: Everytick) -> None:
    """S1-040."""
    assert cli("limits").err.strip() == "there is no limit and no brake"
    assert cli("limit", "set", "tag:night", "--most", "5", "--rate", "60/1m", "--reason", "fragile").code == 0
    [found] = json.loads(cli("limits", "--json").out)["reaches"]
    assert (found["reach"], found["most"], found["rate"], found["running"]) == ("tag:night", 5, "60/1m", 0)
    assert (found["set_by"], found["reason"]) == (getuser(), "fragile")
    assert cli("limits").rows[0][:5] == ["tag:night", "5 at once, 60/1m", "0", "0", "open"]

    assert cli("limit", "remove", "tag:night").code == 0
    assert "had no limit" in cli("limit", "remove", "tag:night").err
    changes = json.loads(cli("limits", "--json").out)["changes"]
    assert [(each["what"], each["by"]) for each in changes] == [
        ("limit removed", getuser()),
        ("limit 5 at once, 60/1m", getuser()),
    ]


def test_a_brake_stands_above_lists_until_it_is_released(cli: Cli, shop: Everytick) -> None:
    """Each list says that nothing starts, since when, by whom and why."""
    assert cli("brake", "--tag", "night", "--reason", "the CRM is down").code == 0
    for verb in ("list", "next"):
        assert f"by {getuser()}: the CRM is down; 0 wait" in cli(verb).err
    assert "brake of tag night (the CRM is down)" in cli("show", "nightly").out
    assert json.loads(cli("show", "nightly", "--json").out)["waits"] == "brake of tag night (the CRM is down)"
    assert json.loads(cli("show", "broken", "--json").out)["waits"] is None
    assert "braked since" in cli("limits").out

    assert cli("release", "tag:night", "--at-once").code == 0
    assert "had no brake" in cli("release", "--tag", "night").err
    assert "braked" not in cli("list").err


def test_the_master_brake_holds_what_is_asked_for(cli: Cli, shop: Everytick) -> None:
    cli("brake", "--reason", "the database moves")
    [id_] = ran(shop, "nightly")
    assert json.loads(cli("show", id_, "--json").out)["status"] == "pending"
    cli("release", "--at-once")
    ran(shop)
    assert json.loads(cli("show", id_, "--json").out)["status"] == "completed"


def test_a_freeze_window_is_told_before_it_begins(cli: Cli, shop: Everytick) -> None:
    cli("brake", "all", "--from", "2035-12-24T00:00", "--until", "2035-12-27T00:00", "--reason", "holidays", "--utc")
    assert "brake will hold from 2035-12-24" in cli("limits", "--utc").out
    assert "braked" not in cli("list").err
    assert cli("release").code == 0
    assert cli("limits").err.strip() == "there is no limit and no brake"


def test_a_freeze_window_that_comes_again_is_told_with_the_runs_that_it_holds(cli: Cli, shop: Everytick) -> None:
    """Every day but its last minute is frozen, so that the next run is."""
    window = ("--begins", "0 0 * * *", "--ends", "59 23 * * *")
    assert cli("brake", "tag:night", *window, "--tz", "Europe/Berlin", "--reason", "no changes").code == 0
    [found] = json.loads(cli("limits", "--json").out)["reaches"]
    [brake] = found["brakes"]
    assert brake["begins"].startswith("cron: 0 0 * * *")
    runs = cli("next", "nightly").rows
    assert all("braked until" in row[2] and "no changes" in row[2] for row in runs), runs
    at = runs[0][0].replace(" ", "T")
    assert "it waits for the end of a brake (no changes) until" in cli("explain", "nightly", "--at", at).out
    for given in (window[:2], (*window, "--until", "2099-01-01T00:00")):
        assert cli("brake", "tag:night", *given, "--reason", "no").code != 0


def test_an_instant_amended_to_another_queue_is_held_by_the_brakes_of_that_queue(cli: Cli, shop: Everytick) -> None:
    """S1-040: `next` and `explain` name what will hold the run itself, not what holds the other runs of its job."""
    first, second = (row[0].replace(" ", "T") for row in cli("next", "nightly", "-n", "2").rows)
    assert cli("amend", "nightly", first, "--set", "queue=slow").code == 0
    for queue, reason in (("slow", "slow days"), ("default", "holidays")):
        given = ("brake", f"queue:{queue}", "--from", "2000-01-01T00:00", "--until", "2099-01-01T00:00")
        assert cli(*given, "--reason", reason).code == 0
        notes = [row[2] for row in cli("next", "nightly", "-n", "2").rows]
        told = [cli("explain", "nightly", "--at", at).out for at in (first, second)]
        held = [queue == "slow", queue == "default"]
        assert [reason in note for note in notes] == held, notes
        assert [reason in text for text in told] == held, told
        assert cli("release", f"queue:{queue}").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["limit", "set", "crm", "--most", "5"], "write all, queue:NAME, tag:NAME or job:NAME"),
        (["limit", "set", "tag:crm"], "neither a number nor a rate"),
        (["limit", "set", "tag:crm", "--most", "0"], "to let none start there is the brake"),
        (["limit", "set", "tag:crm", "--rate", "60"], "like 60/1m"),
        (["limit", "set", "tag:crm", "--most", "1", "--burst"], "--burst is about --rate"),
        (["brake", "--tag", "a", "--queue", "b", "--reason", "x"], "give one of them"),
        (["brake", "--tag", "a"], "--reason"),
        (["brake", "--reason", "x", "--until", "2020-01-01T00:00Z"], "not after the beginning"),
        (["release", "--rate", "1/1m", "--at-once"], "give one of them"),
    ],
)
def test_each_mistake_is_told(cli: Cli, shop: Everytick, arguments: list[str], said: str) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert said in done.err
