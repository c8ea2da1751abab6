"""`show` tells a job or an occurrence, and writes nothing raw from the store."""

import asyncio
import json

from everytick import Everytick
from everytick.testing import drain
from tests.unit.cli.conftest import Cli, ran


def test_show_tells_schedule_tasks_and_who_set_each_policy(cli: Cli, shop: Everytick) -> None:
    pairs = [(row[0], row[1]) for row in cli("show", "nightly").rows]

    assert ("in words", "at 02:30, Europe/Berlin time") in pairs
    assert ("description", "counts pages") in pairs
    assert ("policies", "tags = ['night'] (set by the job)") in pairs
    assert len([name for name, _ in pairs if name == "next runs"]) == 5
    assert ("tasks", "second after first") in [(row[0], row[1]) for row in cli("show", "both").rows]


def test_show_as_json_holds_all_of_it(cli: Cli, shop: Everytick) -> None:
    shown = json.loads(cli("show", "both", "--json").out)

    assert [task["name"] for task in shown["tasks"]] == ["first", "second"]
    assert shown["tasks"][1]["after"] == ["first"]
    assert shown["pause"] is None
    assert len(shown["next_runs"]) == 5


def test_a_job_that_is_not_there_is_answered_with_the_nearest_name(cli: Cli, shop: Everytick) -> None:
    done = cli("show", "nihgtly")

    assert done.code == 3
    assert "there is no job 'nihgtly' (did you mean 'nightly'?)" in done.err


def test_an_occurrence_is_shown_with_its_attempts_and_nothing_raw(cli: Cli, shop: Everytick) -> None:
    [id_] = ran(shop, "broken")

    plain, as_json = cli("show", id_), cli("show", id_, "--json")

    assert plain.rows[-1][:3] == ["broken", "1", "failed"]
    assert "no \\x1b[31mgood" in plain.rows[-1][6]
    assert "\x1b" in json.loads(as_json.out)["attempts"][0]["error"]
    assert "\x1b" not in plain.out + as_json.out


def test_an_occurrence_that_is_not_there_is_not_found(cli: Cli, shop: Everytick) -> None:
    done = cli("show", "occ_" + "0" * 32)

    assert done.code == 3
    assert "everytick history lists what there is" in done.err


def test_an_occurrence_is_shown_with_its_payload_and_its_result(cli: Cli, shop: Everytick) -> None:
    """A8: as JSON in one line, and as data with --json."""
    cli("trigger", "nightly", "--payload", '{"pages": 7}')
    asyncio.run(drained(shop))
    [row] = cli("history", "nightly").rows

    rows = dict(each[:2] for each in cli("show", row[5]).rows)
    assert (rows["payload"], rows["result"]) == ('{"pages": 7}', "7")
    data = json.loads(cli("show", row[5], "--json").out)
    assert (data["payload"], data["result"], data["results"]) == ({"pages": 7}, 7, {"nightly": 7})


def test_an_instant_that_did_not_run_is_shown_by_the_id_of_the_history(cli: Cli, address: str) -> None:
    """A10: `history JOB` lists its id, so `show` knows it, though the store holds no row for it."""
    app = Everytick(address, name="late")
    since = {"backfill_from": "2026-01-01T00:00:00Z"}
    app.job("0 0 1 * *", name="monthly", recovery="execute_last", on_create=since)(int)
    asyncio.run(synced_and_drained(app))

    skipped = [row for row in cli("history", "monthly").rows if row[2] == "skipped"]

    assert len(skipped) > 1
    for row in skipped[:2]:
        done = cli("show", row[5][4:12], "--json")
        assert (done.code, done.err) == (0, "")
        shown = json.loads(done.out)
        assert (shown["id"], shown["status"], shown["attempts"]) == (row[5], "skipped", [])
        assert shown["reason"] == "not last"


async def synced_and_drained(app: Everytick) -> None:
    await app.sync()
    await drained(app)


async def drained(app: Everytick) -> None:
    await drain(app)
    await app.close()
