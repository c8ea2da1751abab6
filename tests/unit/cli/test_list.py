"""`list`: tab-separated in a pipe, JSON when asked."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from everytick import Everytick
from everytick.cli.jobs import with_status
from everytick.domain.nodes import NodeFacts
from everytick.stores.addresses import store_of
from tests.unit.cli.conftest import Cli, park, ran


def test_list_gives_a_line_per_job(cli: Cli, shop: Everytick) -> None:
    done = cli("list")

    assert done.code == 0
    assert [row[:3] for row in done.rows] == [
        ["both", "enabled", "cron: 0 0 1 1 *; tz=UTC"],
        ["broken", "enabled", "every: 1h; start=2026-01-01T00:00:00Z"],
        ["nightly", "enabled", "cron: 30 2 * * *; tz=Europe/Berlin"],
    ]


def test_list_can_be_narrowed_by_name_tag_and_failure(cli: Cli, shop: Everytick) -> None:
    ran(shop, "broken", "nightly")

    assert [row[0] for row in cli("list", "-k", "BRO").rows] == ["broken"]
    assert [row[0] for row in cli("list", "--tag", "night").rows] == ["nightly"]
    assert [row[0] for row in cli("list", "--failed").rows] == ["broken"]


def test_a_job_that_ended_well_before_and_fails_now_is_among_the_failed(cli: Cli, address: str) -> None:
    app, outcomes = Everytick(address, name="moods"), [ValueError("bad"), None]

    @app.job("0 0 1 1 *")
    def moody() -> None:
        if outcome := outcomes.pop():
            raise outcome

    ran(app, "moody")
    well = cli("list", "--failed").rows
    ran(app, "moody")

    assert well == []
    assert [row[0] for row in cli("list", "--failed").rows] == ["moody"]


def test_list_as_json_has_times_in_utc(cli: Cli, shop: Everytick) -> None:
    [nightly] = json.loads(cli("list", "-k", "nightly", "--json").out)

    assert nightly["name"] == "nightly"
    assert nightly["schedule_type"] == "cron"
    assert nightly["schedule_words"] == "at 02:30, Europe/Berlin time"
    assert nightly["next_run"].endswith(":30:00Z")
    assert nightly["tags"] == ["night"]
    assert nightly["is_enabled"] is True


def test_a_job_that_is_removed_while_they_are_listed_is_left_out(shop: Everytick) -> None:
    async def listed() -> list[str]:
        records = await shop.jobs()
        await shop.remove("nightly")
        found = await with_status(shop, records)
        await shop.close()
        return [record.job.name for record, _ in found]

    assert asyncio.run(listed()) == ["both", "broken"]


def test_a_job_whose_plan_the_store_refuses_is_shown_as_parked(cli: Cli, shop: Everytick) -> None:
    """C-46: list, show, doctor and explain say why nothing of it is planned."""
    park(shop, "broken")

    done = cli("list", "-k", "broken")
    assert [row[:2] for row in done.rows] == [["broken", "parked"]]
    assert "nothing of broken is planned: the store refuses its plan" in done.err
    assert "the store refuses its plan" in dict(cli("show", "broken").rows)["not planned"]
    [listed] = json.loads(cli("list", "-k", "broken", "--json").out)
    assert json.loads(cli("show", "broken", "--json").out)["parked_reason"] == listed["parked_reason"] != ""
    checks = {each["check"]: each for each in json.loads(cli("doctor", "--json").out)}
    assert not checks["parked jobs"]["ok"]
    assert checks["parked jobs"]["text"] == f"nothing of 'broken' is planned: {listed['parked_reason']}"
    told = cli("explain", "broken", "--at", listed["next_run"]).out
    assert f"nothing of the job is planned now: {listed['parked_reason']}" in told


def test_list_of_nothing_says_so_beside_an_empty_answer(cli: Cli, shop: Everytick) -> None:
    done = cli("list", "-k", "nothing")

    assert (done.code, done.out) == (0, "")
    assert "no job answers to that" in done.err


def test_a_broken_file_is_shown_with_the_jobs_that_go_on(cli: Cli, shop: Everytick, address: str) -> None:
    """Another process than the node sees it; what a silent node said is not shown."""
    wrong = "jobs/n.yaml:3:1: no \x1b[31mgood\njobs/n.yaml:4:1: nor this"
    facts = NodeFacts("1.0", "3.11.4", "2025b (system)", "h", 7, 50, ("a",), datetime(2026, 1, 1, tzinfo=UTC))
    told = replace(
        facts,
        broken_files=(("jobs/n.yaml", wrong), ("jobs/o.yaml", "jobs/o.yaml:1:1: the file is empty")),
        stale_jobs=(("nightly", "jobs/n.yaml"),),
    )

    async def register(facts: NodeFacts) -> None:
        store = store_of(address)
        await store.open()
        await store.beat("host-1", [], facts)
        await store.close()

    assert {row[6] for row in cli("list").rows} == {""}
    asyncio.run(register(told))
    listed, as_json = cli("list"), cli("list", "--json")
    assert {row[0]: row[6] for row in listed.rows} == {
        "both": "",
        "broken": "",
        "nightly": "jobs/n.yaml:3:1: no \\x1b[31mgood",
    }
    assert listed.err == as_json.err
    assert listed.err.splitlines() == [
        "broken file jobs/n.yaml; as they were before: nightly",
        "  jobs/n.yaml:3:1: no \\x1b[31mgood",
        "  jobs/n.yaml:4:1: nor this",
        "broken file jobs/o.yaml",
        "  jobs/o.yaml:1:1: the file is empty",
    ]
    assert {each["name"]: each["definition_error"] for each in json.loads(as_json.out)} == {
        "both": None,
        "broken": None,
        "nightly": wrong,
    }
    assert ["broken file", "jobs/n.yaml:4:1: nor this"] in cli("show", "nightly").rows
    assert json.loads(cli("show", "nightly", "--json").out)["definition_error"] == wrong

    asyncio.run(register(facts))
    assert cli("list").err == ""


def test_what_a_silent_node_said_of_its_files_is_not_shown(cli: Cli, shop: Everytick, address: str) -> None:
    facts = NodeFacts("1.0", "3.11.4", "2025b (system)", "h", 7, 50, ("a",), datetime(2026, 1, 1, tzinfo=UTC))

    async def fall_silent() -> None:
        store = store_of(address)
        await store.open()
        await store.beat("host-1", [], replace(facts, broken_files=(("jobs/n.yaml", "bad"),)))
        begun = await store.now()
        while await store.now() - begun < timedelta(milliseconds=100):
            await store.bell(0.02)
        await store.close()

    asyncio.run(fall_silent())
    (Path.cwd() / "everytick.toml").write_text('heartbeat = "10ms"\nnode_timeout = "30ms"\npoll = "10ms"\n')

    assert cli("list").err == "no node is running: everytick run starts one\n"


def test_a_job_that_no_living_node_can_run_says_so_as_its_status(cli: Cli, shop: Everytick, address: str) -> None:
    """C-21, C-41: a node that meets its needs and has not said so may well run it; the others do not count."""
    facts = NodeFacts("1.0", "3.11.4", "2025b (system)", "h", 7, 50, ("default",), datetime(2026, 1, 1, tzinfo=UTC))
    nightly = next(each.job for each in shop.definitions if each.name == "nightly")
    id_ = nightly.id
    reasons = ((id_, "task 'x': there is no \x1bmodule"), ("job_gone", "whatever"))
    ignorant = replace(facts, unknown_targets=reasons, met=("", nightly.needs))

    async def register(**nodes: NodeFacts) -> None:
        store = store_of(address)
        await store.open()
        for node, facts in nodes.items():
            await store.beat(node, [], facts)
        await store.close()

    asyncio.run(register(one=ignorant, other=replace(facts, application="other", met=("", "code:other"))))
    listed = cli("list")
    assert {row[0]: row[1] for row in listed.rows}["nightly"] == "no node can run it"
    assert listed.err.splitlines() == ["no living node can run nightly: task 'x': there is no \\x1bmodule"]
    [told] = [each for each in json.loads(cli("list", "--json").out) if each["name"] == "nightly"]
    assert (told["status"], told["unknown_target"]) == ("no node can run it", "task 'x': there is no \x1bmodule")
    assert ["status", "no node can run it"] in cli("show", "nightly").rows
    assert ["no node can run it", "task 'x': there is no \\x1bmodule"] in cli("show", "nightly").rows
    found = [row for row in cli("doctor").rows if row[0] == "targets"]
    assert found == [["targets", "finding", "no living node can run 'nightly': task 'x': there is no \\x1bmodule"]]

    asyncio.run(register(two=replace(facts, met=("", nightly.needs))))
    assert {row[1] for row in cli("list").rows} == {"enabled"}
    assert not [row for row in cli("doctor").rows if row[0] == "targets"]
