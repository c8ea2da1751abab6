"""The same verbs on Redis, as a newcomer types them."""

import json
from itertools import count
from os import getpid
from pathlib import Path

import pytest
import redis as driver

from tests.acceptance.cli.terminal import everytick
from tests.servers.launch import Server

_numbers = count(1)

APPLICATION = """
from everytick import Everytick, every

tick = Everytick({address!r}, name="far")


@tick.job(every("P1Y"), on_create="immediately")
def yearly() -> None:
    print("on the day")
"""


@pytest.fixture
def address(redis: Server) -> str:
    return f"{redis.address}?prefix=cli-{getpid()}-{next(_numbers)}"


def keys_of(redis: Server, address: str) -> list[str]:
    with driver.Redis.from_url(redis.address, decode_responses=True) as client:
        return [key for key in client.scan_iter(count=1000) if key.startswith(f"{{{address.rpartition('=')[2]}}}/")]


def test_a_store_in_redis_is_run_read_operated_and_examined(tmp_path: Path, address: str) -> None:
    (tmp_path / "far.py").write_text(APPLICATION.format(address=address))

    ran = everytick(tmp_path, "run", "--once", "-a", "far", XDG_STATE_HOME=str(tmp_path))
    jobs = everytick(tmp_path, "list", "--store", address)
    history = json.loads(everytick(tmp_path, "history", "--json", EVERYTICK_STORE=address).stdout)
    asked = everytick(tmp_path, "trigger", "yearly", "--store", address.replace("redis://", "valkey://"))
    status = json.loads(everytick(tmp_path, "db", "status", "--json", "--store", address).stdout)
    checks = json.loads(everytick(tmp_path, "doctor", "--json", "--store", address).stdout)
    backup = everytick(tmp_path, "db", "backup", "copy", "--store", address)

    assert ran.returncode == 0, ran.stderr
    assert [row[:2] for row in jobs.rows] == [["yearly", "enabled"]]
    assert [(each["job"], each["status"]) for each in history] == [("yearly", "completed")]
    assert asked.returncode == 0, asked.stderr
    assert (status["kind"], status["jobs"], status["active_occurrences"]) == ("redis", 1, 0)
    found = {each["check"]: each for each in checks}
    assert found["redis"]["ok"]
    assert "set appendonly yes" in found["redis persistence"]["text"]
    assert (backup.returncode, "redis-cli --rdb" in backup.stderr) == (2, True)


def test_a_look_at_a_server_without_a_store_makes_none(tmp_path: Path, redis: Server, address: str) -> None:
    """A15: a question changes nothing, and says what makes a store."""
    looks = [everytick(tmp_path, *verb, "--store", address) for verb in (["list"], ["doctor"], ["db", "status"])]
    assert keys_of(redis, address) == []
    assert [look.returncode for look in looks] == [3, 0, 1], [look.stderr for look in looks]
    for said in (looks[0].stderr, looks[1].stdout):
        assert "has no store of everytick yet: everytick run makes one, and so does everytick db migrate" in said
    assert "there is no store of everytick yet" in looks[2].stderr


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("127.0.0.1:1/0", 69, "Redis at 127.0.0.1:1/0, keys {everytick}/* does not answer"),
        ("127.0.0.1:many/0", 2, "127.0.0.1:many must end with the number of a port"),
        ("127.0.0.1:1/first", 2, "first must be the number of a database"),
        ("127.0.0.1:1/0?prefx=shop", 2, "?prefx=shop is no option of this store; there are prefix, "),
        ("127.0.0.1:1/0?prefix=a/b", 2, "?prefix=a/b must be letters"),
    ],
)
def test_an_address_that_leads_nowhere_is_said_without_its_password(
    tmp_path: Path, end: str, code: int, said: str
) -> None:
    done = everytick(tmp_path, "list", "--store", f"redis://ada:s3cret@{end}")
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert "s3cret" not in done.stderr
    assert "should not have happened" not in done.stderr


def test_a_password_that_is_wrong_or_missing_is_said(tmp_path: Path, redis: Server) -> None:
    place = redis.address.removeprefix("redis://")
    with driver.Redis.from_url(redis.address) as client:
        client.execute_command("ACL", "SETUSER", "ada", "on", ">right", "-@all", "+ping", "+hello")
    try:
        wrong = everytick(tmp_path, "list", "--store", f"redis://ada:wrong@{place}")
        little = everytick(tmp_path, "list", "--store", f"redis://ada:right@{place}")
    finally:
        with driver.Redis.from_url(redis.address) as client:
            client.execute_command("ACL", "DELUSER", "ada")
    for done in (wrong, little):
        assert done.returncode == 69
        assert "cannot be used: " in done.stderr
        assert "give the address a user and password that may" in done.stderr
        assert "right@" not in done.stderr
        assert "wrong" not in done.stderr
