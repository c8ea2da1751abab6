"""doctor: each finding is seen where it is, and only there."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from everytick import Everytick
from everytick.cli import doctor
from everytick.cli.doctor import (
    agreement_checks,
    clock_check,
    file_checks,
    folder_checks,
    sqlite_check,
    zone_data_check,
)
from everytick.domain.nodes import NodeFacts
from everytick.schedules.timezones import zone
from everytick.stores.base import NodeRecord
from everytick.stores.memory import MemoryStore
from tests.stores.acting import everything
from tests.unit.cli.conftest import Cli, ran


@pytest.mark.parametrize(
    ("version", "is_well"),
    [("3.37.0", False), ("3.40.1", False), ("3.51.2", False), ("3.51.3", True), ("3.54.1", True), ("4.0.0", True)],
)
def test_the_versions_with_the_wal_reset_fault_are_known(version: str, is_well: bool) -> None:
    assert sqlite_check(f"sqlite3, SQLite {version}").is_well is is_well


@pytest.mark.parametrize(("offset", "is_well"), [(0, True), (0.5, True), (-5, False), (5, False), (90_000, False)])
def test_a_clock_that_is_off_by_more_than_a_second_is_a_finding(offset: float, is_well: bool) -> None:
    store = MemoryStore(lambda: datetime.now(UTC) - timedelta(seconds=offset))

    found = asyncio.run(clock_check(store))

    assert found.is_well is is_well
    assert ("ahead of" if offset > 0 else "") in found.text


def test_old_zone_tables_are_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_packaged_version", lambda: "9999z")
    old = zone_data_check()
    monkeypatch.setattr(doctor, "_packaged_version", lambda: "1999a")

    assert not old.is_well
    assert "older than 9999z" in old.text
    assert zone_data_check().is_well


def test_a_store_that_others_can_read_is_a_finding(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    file.touch(0o600)
    [well] = file_checks(file)
    file.chmod(0o644)
    [found] = file_checks(file)

    assert well.is_well
    assert not found.is_well
    assert f"chmod 600 {file}" in found.text


def test_a_file_of_settings_with_a_secret_that_others_can_read_is_a_finding(
    plain: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S16 of the security checks; every user may read a file without a secret."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor, "_store_checks", list)
    file, other = tmp_path / "everytick.toml", tmp_path / "token"
    file.write_text('store = "postgresql://ann:hidden@db/shop"\nslots = 3\n')
    other.write_text("another-secret")
    monkeypatch.setenv("EVERYTICK_TOKEN_FILE", str(other))
    for each in (file, other):
        each.chmod(0o644)
    found = plain("doctor", "--json")
    for each in (file, other):
        each.chmod(0o640)
    well = plain("doctor", "--json")
    file.write_text('store = "sqlite:///shop.db"\n')
    file.chmod(0o644)
    no_secret = plain("doctor", "--json")

    said = [each["text"] for each in json.loads(found.out) if each["check"] == "settings"]
    assert said == [
        f"{file} holds a secret (store), and every user of this host can read it: chmod o-r {file}",
        f"{other} holds a secret (token), and every user of this host can read it: chmod o-r {other}",
    ]
    assert found.code == 1
    assert "hidden" not in found.out + found.err
    for done in (well, no_secret):
        assert "settings" not in [each["check"] for each in json.loads(done.out)]


def test_a_log_folder_that_everybody_may_write_to_is_a_finding(tmp_path: Path) -> None:
    [to_come] = folder_checks(tmp_path / "logs/deep")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs").chmod(0o777)
    [found] = folder_checks(tmp_path / "logs")

    assert to_come.is_well
    assert not found.is_well
    assert list(folder_checks(None)) == []


def test_what_was_seen_is_told_and_the_exit_code_says_whether_all_is_well(cli: Cli, shop: Everytick) -> None:
    done = cli("doctor", "--json")

    checks = {each["check"]: each for each in json.loads(done.out)}
    assert {"zone data", "store", "clock", "sqlite", "store rights", "log folder", "nodes", "parked jobs"} == set(
        checks
    )
    assert checks["store"]["ok"]
    assert not checks["nodes"]["ok"]
    assert "no node is alive" in checks["nodes"]["text"]
    assert done.code == 1
    assert [row[0] for row in cli("doctor").rows] == list(checks)


@pytest.mark.parametrize(("is_warning", "codes"), [(True, (0, 1)), (False, (1, 1))])
def test_a_warning_is_told_from_a_finding_by_the_exit_code(
    plain: Cli, monkeypatch: pytest.MonkeyPatch, is_warning: bool, codes: tuple[int, int]
) -> None:
    """B13: a host with nothing to mend ends with 0; --strict makes a warning count."""
    check = doctor.Check("zone data", False, "old", is_warning=is_warning)
    monkeypatch.setattr(doctor, "zone_data_check", lambda: check)
    monkeypatch.setattr(doctor, "_store_checks", list)

    done = plain("doctor")

    assert done.rows == [["zone data", "warning" if is_warning else "finding", "old"]]
    assert (done.code, plain("doctor", "--strict").code) == codes


def test_an_old_sqlite_and_old_zone_tables_are_warnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """B13: most hosts have both, and nothing has to be done today."""
    monkeypatch.setattr(doctor, "_packaged_version", lambda: "9999z")

    assert zone_data_check().result == "warning"
    assert sqlite_check("sqlite3, SQLite 3.40.1").result == "warning"


def test_a_silent_node_that_holds_something_is_a_finding(cli: Cli, shop: Everytick, address: str) -> None:
    async def hold() -> None:
        await shop.trigger("nightly")
        store = await shop._opened()
        from everytick.deciding.plan import plan

        now = await store.now()
        async with store.due(await everything(store), 10) as batch:
            await store.commit_plans(batch, [plan(each, now) for each in batch.snapshots])
        await store.beat("host-1", [])
        [claim] = await store.claim(await everything(store, "host-1"), 1)
        assert claim.occurrence.owner == "host-1"
        while await store.now() - now < timedelta(milliseconds=100):
            await store.bell(0.02)
        await shop.close()

    asyncio.run(hold())
    (Path.cwd() / "everytick.toml").write_text('heartbeat = "10ms"\nnode_timeout = "30ms"\npoll = "10ms"\n')
    held = next(each for each in json.loads(cli("doctor", "--json").out) if each["check"] == "nodes")

    assert not held["ok"]
    assert "host-1 (1)" in held["text"]


def test_a_store_that_does_not_answer_is_a_finding_and_the_rest_is_told(plain: Cli) -> None:
    done = plain("doctor", "--store", "postgresql://nobody@127.0.0.1:1/none", "--json")

    checks = {each["check"]: each["ok"] for each in json.loads(done.out)}
    assert done.code == 1
    assert checks["store"] is False
    assert "zone data" in checks


def test_nodes_that_disagree_are_findings() -> None:
    facts = NodeFacts("1.0", "3.11.4", "2025a (system)", "one", 1, 50, ("default",), datetime(2026, 1, 1, tzinfo=UTC))
    moved = timedelta(seconds=-3)
    other = replace(facts, version="1.1", zone_data="2025b (package)", host="two", clock_offset=moved)
    broken = replace(facts, broken_files=(("jobs/a.yaml", "line 3 is no YAML"),))

    def found(*told: NodeFacts | None) -> list[str]:
        nodes = [NodeRecord(f"n{place}", facts.started_at, 0, each) for place, each in enumerate(told)]
        checks = list(agreement_checks(nodes))
        assert not any(each.is_well for each in checks)
        return [each.text for each in checks]

    assert found(facts, facts, None) == []
    versions, tables, clock = found(facts, other)
    assert "1.0 on n0, 1.1 on n1" in versions
    assert "2025a (system) on n0, 2025b (package) on n1" in tables
    assert "two (n1) is 3.0 s behind" in clock
    assert found(broken) == [
        "n0 cannot read jobs/a.yaml and goes on with what it said before: line 3 is no YAML",
    ]


def test_runs_that_the_zone_tables_of_this_host_move_are_a_warning(cli: Cli, shop: Everytick) -> None:
    """B8: by which tables the store was written is seen in what it says runs next."""
    ran(shop, "both")
    berlin = zone("Europe/Berlin")
    try:
        berlin.take(ZoneInfo("Europe/Kyiv"))
        checks = json.loads(cli("doctor", "--json").out)
    finally:
        berlin.take(ZoneInfo("Europe/Berlin"))
    [found] = [check for check in checks if check["check"] == "zone tables"]
    assert found["result"] == "warning"
    assert "runs to come of 'nightly': " in found["text"]
    assert not [check for check in json.loads(cli("doctor", "--json").out) if check["check"] == "zone tables"]
