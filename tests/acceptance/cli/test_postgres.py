"""The same verbs on PostgreSQL: what is read and operated is the store's, whatever it is."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from tests.acceptance.cli.terminal import WITHIN, environment, everytick
from tests.acceptance.node.conftest import new_database
from tests.servers.launch import Server

APPLICATION = """
from everytick import Everytick, every

tick = Everytick({address!r}, name="far")


@tick.job(every("P1Y"), on_create="immediately")
def yearly() -> None:
    print("on the day")
"""


@pytest.fixture
def address(postgres: Server) -> str:
    return asyncio.run(new_database(postgres))


def test_a_store_on_a_server_is_run_read_operated_and_examined(tmp_path: Path, address: str) -> None:
    (tmp_path / "far.py").write_text(APPLICATION.format(address=address))

    ran = everytick(tmp_path, "run", "--once", "-a", "far", XDG_STATE_HOME=str(tmp_path))
    jobs = everytick(tmp_path, "list", "--store", address)
    history = json.loads(everytick(tmp_path, "history", "--json", EVERYTICK_STORE=address).stdout)
    paused = everytick(tmp_path, "pause", "yearly", "--store", address)
    status = json.loads(everytick(tmp_path, "db", "status", "--json", "--store", address).stdout)
    checks = json.loads(everytick(tmp_path, "doctor", "--json", "--store", address).stdout)
    backup = everytick(tmp_path, "db", "backup", "copy", "--store", address)
    output = everytick(tmp_path, "logs", "yearly", "--store", address, XDG_STATE_HOME=str(tmp_path))

    assert ran.returncode == 0, ran.stderr
    assert [row[:2] for row in jobs.rows] == [["yearly", "enabled"]]
    assert [(each["job"], each["status"]) for each in history] == [("yearly", "completed")]
    assert paused.returncode == 0
    assert (status["kind"], status["jobs"]) == ("postgres", 1)
    assert {each["check"]: each["ok"] for each in checks}["clock"] is True
    assert backup.returncode == 2
    assert "pg_dump" in backup.stderr
    assert output.stdout == "on the day\n"


def test_a_look_at_a_database_without_tables_makes_none(tmp_path: Path, address: str) -> None:
    """A15: a laptop that looks at the wrong database leaves it as it is; an operation says what makes the tables."""
    (tmp_path / "far.py").write_text(APPLICATION.format(address=address))

    looks = [
        everytick(tmp_path, "list", "--store", address),
        everytick(tmp_path, "history", "-a", "far"),
        everytick(tmp_path, "doctor", "--store", address),
        everytick(tmp_path, "next", "-a", "far"),
        everytick(tmp_path, "simulate", "-a", "far", "--days", "1"),
    ]
    tables = asyncio.run(fetched(address, "select count(*) from pg_tables where schemaname = 'everytick'"))

    assert tables == 0
    assert [look.returncode for look in looks] == [3, 3, 0, 0, 0], [look.stderr for look in looks]
    assert (
        "has no tables of everytick yet: everytick run makes them, and so does everytick db migrate" in looks[0].stderr
    )
    assert "everytick run -a far makes them" in looks[1].stderr
    assert [row[1] for row in looks[3].rows] == ["yearly"]


async def fetched(address: str, question: str) -> object:
    db = await asyncpg.connect(address)
    try:
        return await db.fetchval(question)
    finally:
        await db.close()


def test_a_server_that_does_not_answer_is_said_so_without_its_password(tmp_path: Path) -> None:
    done = everytick(tmp_path, "list", "--store", "postgresql://ada:s3cret@127.0.0.1:1/none")

    assert done.returncode == 69
    assert "PostgreSQL at 127.0.0.1:1/none does not answer" in done.stderr
    assert "s3cret" not in done.stderr


def test_a_database_that_is_not_there_is_said_with_what_to_type(tmp_path: Path, postgres: Server) -> None:
    """A5."""
    done = everytick(tmp_path, "list", "--store", f"{postgres.address.rpartition('/')[0]}/not_made_yet")

    assert done.returncode == 69
    assert 'database "not_made_yet" does not exist: create it with `createdb not_made_yet`' in done.stderr
    assert "should not have happened" not in done.stderr


def test_rights_that_are_missing_are_said_and_those_that_are_named_suffice(tmp_path: Path, address: str) -> None:
    """A5: the same in Python as at the command line, in one sentence and without a traceback."""
    database = address.rpartition("/")[2]
    asyncio.run(_execute(address, f"drop role if exists ada_{database}", f"create role ada_{database} login"))
    parts = urlsplit(address)
    hers = urlunsplit(parts._replace(netloc=f"ada_{database}@{parts.netloc.rpartition('@')[2]}"))
    (tmp_path / "far.py").write_text(
        APPLICATION.format(address=hers) + "\nif __name__ == '__main__':\n    tick.run()\n"
    )
    python = [sys.executable, "far.py"]

    refused = everytick(tmp_path, "db", "migrate", "--store", hers)
    script = subprocess.run(python, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=WITHIN)
    asyncio.run(_execute(address, f"grant create on database {database} to ada_{database}"))
    allowed = everytick(tmp_path, "db", "migrate", "--store", hers)

    assert refused.returncode == script.returncode == 69
    for said in (refused.stderr, script.stderr):
        assert f"grant create on database {database} to this user" in said
        assert "Traceback" not in said
    assert allowed.returncode == 0, allowed.stderr


async def _execute(address: str, *statements: str) -> None:
    db = await asyncpg.connect(address)
    try:
        for statement in statements:
            await db.execute(statement)
    finally:
        await db.close()
