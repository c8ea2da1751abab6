"""What the doctor says of a server, from what it says of itself."""

from typing import Any

import pytest

from everytick.cli.redis_checks import redis_checks, server_checks
from everytick.stores.redis.server_facts import server_facts
from everytick.stores.redis.store import RedisStore
from tests.servers.launch import Server

SAFE: dict[str, Any] = {
    "redis_version": "7.2.4", "role": "master", "connected_slaves": 0, "aof_enabled": 1,
    "aof_last_write_status": "ok", "maxmemory": 0, "maxmemory_policy": "noeviction",
}  # fmt: skip


def results(**told: Any) -> dict[str, str]:
    return {check.name: f"{check.result}: {check.text}" for check in server_checks(server_facts({**SAFE, **told}))}


def test_a_safe_server_has_no_finding() -> None:
    assert {text.partition(":")[0] for text in results().values()} == {"ok"}


@pytest.mark.parametrize(
    ("told", "name", "said"),
    [
        ({"redis_version": "5.0.14"}, "redis", "finding: Redis 5.0.14 is older than 6.2"),
        ({"redis_version": "6.2.14"}, "redis", "ok: Redis 6.2.14"),
        ({"redis_version": "7.2.4", "valkey_version": "8.0.1"}, "redis", "ok: Valkey 8.0.1"),
        ({"aof_enabled": 0}, "redis persistence", "finding: appendonly is off"),
        ({"aof_last_write_status": "err"}, "redis persistence", "finding: the server cannot write"),
        ({"maxmemory_policy": "allkeys-lru"}, "redis eviction", "warning: maxmemory-policy is allkeys-lru"),
        ({"maxmemory_policy": "allkeys-lru", "maxmemory": 10}, "redis eviction", "finding: maxmemory-policy is"),
        ({"connected_slaves": 1}, "redis replicas", "warning: a failover loses"),
        ({"role": "slave"}, "redis replicas", "finding: this server is a replica"),
    ],
)
def test_each_danger_is_told_with_what_to_do(told: dict[str, Any], name: str, said: str) -> None:
    assert results(**told)[name].startswith(said)


def test_a_server_that_waits_for_a_replica_is_well() -> None:
    assert "redis replicas" not in results(connected_slaves=1, min_slaves_good_slaves=1)


async def test_a_real_server_is_looked_at(redis: Server) -> None:
    store = RedisStore(redis.address)
    try:
        found = {check.name: check.result for check in await redis_checks(store)}
    finally:
        await store.close()
    assert found == {"redis": "ok", "redis persistence": "finding", "redis eviction": "ok"}


async def test_a_server_that_forbids_the_question_is_a_warning(redis: Server) -> None:
    store = RedisStore(redis.address)
    try:
        client = store._connections.client
        await client.execute_command("ACL", "SETUSER", "shy", "on", ">secret", "~*", "+@all", "-info")
        shy = RedisStore(redis.address.replace("redis://", "redis://shy:secret@"))
        try:
            [check] = await redis_checks(shy)
        finally:
            await shy.close()
            await client.execute_command("ACL", "DELUSER", "shy")
    finally:
        await store.close()
    assert (check.result, "allow INFO" in check.text) == ("warning", True)
