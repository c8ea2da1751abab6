"""What the store in Redis has alone: copies that follow a log, commits that lose a race, and a server that forgets."""

import asyncio
import os
import signal
from typing import Any

import pytest
from redis.exceptions import OutOfMemoryError

from everytick.domain import ids
from everytick.domain.facts import Trigger
from everytick.domain.lookups import ParkedJobs
from everytick.errors import InvalidSchedule, SchemaMismatch, StoreBroken, StoreGone, StoreUnavailable
from everytick.stores.addresses import migration_of
from everytick.stores.base import Commit, Nodes
from everytick.stores.redis.connections import RedisAddress, RedisConnections
from everytick.stores.redis.log import FORMAT, KEPT_ENTRIES
from everytick.stores.redis.store import RedisStore
from tests.servers.launch import Server
from tests.stores.acting import (
    began,
    ended,
    everything,
    job,
    occurrences,
    plan_once,
    put,
    put_all,
    remove,
    rename,
    run_one,
    statuses,
)
from tests.stores.clock import ManualClock
from tests.stores.redis.kit import another, contents, erase, opened_redis


async def test_records_stand_in_a_tree_and_one_read_gives_a_subtree(redis: Server, clock: ManualClock) -> None:
    """S0-054: a key per job and per occurrence, whose fields continue the path to tasks, runs and attempts."""
    async with opened_redis(redis, clock) as store:
        job_id = (await put(store, job())).job_id
        await plan_once(store)
        clock.move(hours=1)
        await plan_once(store)
        claim = await run_one(store)
        key, client = store._connections.address.key, store._connections.client
        id_, task_id = claim.occurrence.id, ids.task_id(job_id, "main")
        run = f"task/{task_id}/run"
        assert f"task/{task_id}" in await client.hgetall(key(f"job/{job_id}"))
        subtree = await client.hgetall(key(f"job/{job_id}/occurrence/{id_}"))
        assert {run, f"{run}/attempt/{ids.attempt_id(ids.run_id(id_, task_id), 1)}"} < subtree.keys()
        names = [name async for name in client.scan_iter(match=f"*{store._connections.address.prefix}*/job/{job_id}*")]
        assert {key(f"job/{job_id}"), key(f"job/{job_id}/occurrence/{id_}")} <= {*names}


async def test_of_two_claims_at_once_each_gets_what_the_other_does_not(redis: Server, clock: ManualClock) -> None:
    """S0-053: a commit is written only if nothing was written since its copy was read."""
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        await put_all(store, [job(f"job-{number}") for number in range(40)])
        await plan_once(store)
        clock.move(hours=1)
        await plan_once(store)
        scopes = [await everything(store, "node-1"), await everything(other, "node-2")]
        found: list[str] = []
        while True:
            both = await asyncio.gather(store.claim(scopes[0], 3), other.claim(scopes[1], 3))
            claims = [claim.occurrence.id for claims in both for claim in claims]
            if not claims:
                break
            found += claims
        assert (len(found), len({*found})) == (40, 40)


async def test_plans_of_one_snapshot_are_committed_once(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        await put(store, job())
        await plan_once(store)
        clock.move(hours=1)
        answers = await asyncio.gather(*(plan_once(each) for each in (store, other, store, other)))
        assert sorted(str(answer) for some in answers for answer in some).count(str(Commit.COMMITTED)) >= 1
        assert await statuses(store) == await statuses(other) == ["pending"]


async def test_a_commit_whose_answer_is_lost_is_known_from_the_log(redis: Server, clock: ManualClock) -> None:
    """F-04: nothing is known about what was asked; the next look tells, and a repeat finds its own effect."""
    async with opened_redis(redis, clock) as store:
        job_id = (await put(store, job())).job_id
        call = store._connections.call

        async def lose_the_answer(name: str, keys: Any, arguments: Any) -> Any:
            await call(name, keys, arguments)
            if name == "commit":
                raise StoreUnavailable("Redis", "the connection was cut")
            return await call(name, keys, arguments)

        store._connections.call = lose_the_answer  # type: ignore[method-assign]
        with pytest.raises(StoreUnavailable):
            await store.request(job_id, Trigger("once"))
        store._connections.call = call  # type: ignore[method-assign]
        assert not (await store.request(job_id, Trigger("once"))).changed
        await plan_once(store)
        assert len(await occurrences(store)) == 1


async def test_a_verb_that_is_broken_off_leaves_the_copy_as_the_server_has_it(
    redis: Server, clock: ManualClock
) -> None:
    async with opened_redis(redis, clock) as store:
        job_id = (await put(store, job())).job_id
        before, call = contents(store), store._connections.call

        async def refuse(name: str, keys: Any, arguments: Any) -> Any:
            if name == "commit":
                raise StoreUnavailable("Redis", "it is away")
            return await call(name, keys, arguments)

        store._connections.call = refuse  # type: ignore[method-assign]
        with pytest.raises(StoreUnavailable):
            await store.request(job_id, Trigger("never"))
        store._connections.call = call  # type: ignore[method-assign]
        assert contents(store) == before


async def test_a_copy_that_is_far_behind_is_read_anew(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        await put(store, job())
        for _ in range(2 * KEPT_ENTRIES):
            await store.beat("node-1", [])
        await store._connections.client.xtrim(store._connections.address.key("log"), maxlen=3)
        assert [node.beats for node in await other.ask(Nodes())] == [2 * KEPT_ENTRIES]
        await plan_once(other)
        await store.now()
        assert contents(store) == contents(other)


async def test_a_batch_stays_open_while_the_copy_is_read_anew(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        await put(store, job())
        scope = await everything(store)
        async with store.due(scope, 10) as batch:
            for _ in range(5):
                await other.beat("node-2", [])
            await store._connections.client.xtrim(store._connections.address.key("log"), maxlen=1)
            async with store.due(scope, 10) as second:
                assert (len(batch.snapshots), len(second.snapshots)) == (1, 0)


async def test_a_server_that_forgot_everything_is_gone_for_those_who_knew_it(redis: Server, clock: ManualClock) -> None:
    """F-14: nothing is written into an empty server; a new start makes a new store."""
    async with opened_redis(redis, clock) as store:
        job_id = (await put(store, job())).job_id
        await erase(store)
        with pytest.raises(StoreGone, match="no store of this name any more"):
            await store.request(job_id, Trigger("k"))
        with pytest.raises(StoreGone, match="no store of this name any more"):
            await store.check_writable()
        assert [
            key async for key in store._connections.client.scan_iter(f"*{store._connections.address.prefix}*")
        ] == []
        async with another(store, clock) as fresh:
            assert await fresh.list() == []
            with pytest.raises(StoreGone, match="another store stands in its place"):
                await store.list()
            await store.close()


async def test_rows_of_another_format_are_refused(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store:
        await store._connections.client.hset(store._connections.address.key("head"), "format", "99")
        with pytest.raises(SchemaMismatch, match="format 99"):
            async with another(store, clock):
                pass
        assert await migration_of(store.address) == 99
        await store._connections.client.hset(store._connections.address.key("head"), "format", str(FORMAT))


async def test_a_write_of_another_process_rings_the_bell(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        job_id = (await put(store, job())).job_id
        await store.bell(0)
        # The first hint says that the channel is heard now.
        assert await store.bell(20)
        waiting = asyncio.create_task(store.bell(20))
        await other.request(job_id, Trigger("k"))
        assert await waiting


async def test_ends_of_a_claim_that_another_copy_took_over_are_stale(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        await put(store, job())
        await plan_once(store)
        clock.move(hours=1)
        await plan_once(store)
        [claim] = await store.claim(await everything(store), 10)
        [node] = await other.ask(Nodes())
        assert len(await other.orphans("node-2", 10, {node.id: node.beats})) == 1
        step = ended(claim, began(claim, clock.time), clock.time)
        assert await store.commit_steps([(claim, step)]) == [Commit.STALE]


async def test_a_batch_stays_open_when_a_commit_finds_the_copy_far_behind(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        job_id = (await put(store, job())).job_id
        scope = await everything(store)
        sync = store._log.sync

        async def sync_before_others_write() -> Any:
            answer = await sync()
            for _ in range(5):
                await other.beat("node-2", [])
            await store._connections.client.xtrim(store._connections.address.key("log"), maxlen=1)
            store._log.sync = sync  # type: ignore[method-assign]
            return answer

        async with store.due(scope, 10) as batch:
            store._log.sync = sync_before_others_write  # type: ignore[method-assign]
            await store.request(job_id, Trigger("k"))
            async with store.due(scope, 10) as second:
                assert (len(batch.snapshots), len(second.snapshots)) == (1, 0)


async def test_a_wrong_password_is_told_and_not_waited_for(redis: Server) -> None:
    store = RedisStore(redis.address.replace("redis://", "redis://nobody:wrong@"))
    with pytest.raises(StoreBroken, match="password") as told:
        await store.open()
    await store.close()
    assert "wrong@" not in str(told.value)


async def test_a_store_is_opened_again_on_another_loop(redis: Server, clock: ManualClock) -> None:
    async with opened_redis(redis, clock) as store:
        await put(store, job())

        async def look() -> int:
            await store.open()
            found = len(await store.list())
            await store.close()
            return found

        await store.close()
        assert await asyncio.to_thread(asyncio.run, look()) == 1
        await store.open()
        assert len(await store.list()) == 1


async def test_an_address_may_name_another_prefix_and_valkey(redis: Server) -> None:
    store = RedisStore(redis.address.replace("redis://", "valkey://") + "?prefix=shop")
    assert (store.address.schema, store._connections.address.key("jobs")) == ("shop", "{shop}/jobs")
    assert store.address.url == redis.address


async def test_a_copy_that_knows_more_than_the_server_is_read_anew(
    redis: Server, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """F-12: a restart may lose the last second, and its numbers are given to other entries then. The log says so."""
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        await put(store, job("kept"))
        await other.now()
        key, client = store._connections.address.key, store._connections.client
        saved = {name: await client.dump(name) async for name in client.scan_iter(match=r"\{" + key("*")[1:])}
        await put(store, job("lost"))
        lost = await store.list()
        await erase(store)
        for name, rows in saved.items():
            await client.restore(name, 0, rows)
        await put(other, job("instead"))
        assert [each.job.name for each in lost] == ["kept", "lost"]
        assert [each.job.name for each in await store.list()] == ["instead", "kept"]
        assert "has lost changes that it had confirmed" in caplog.text
        await put(store, job("then"))
        await other.now()
        assert contents(store) == contents(other)


async def test_a_server_that_knows_less_is_told_from_one_whose_log_is_short(
    redis: Server, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        await put(store, job("kept"))
        for _ in range(3):
            await other.beat("node-2", [])
        log = store._connections.address.key("log")
        await store._connections.client.xtrim(log, maxlen=1)
        await store.now()
        assert caplog.text == ""
        await store._connections.client.hset(store._connections.address.key("head"), "last", "1-1")
        await store._connections.client.delete(log)
        await store.now()
        assert caplog.text.count("has lost changes that it had confirmed") == 1


async def test_a_copy_that_is_read_while_jobs_are_made_has_them(redis: Server, clock: ManualClock) -> None:
    """The log brings what was made after the jobs were read, also a job whose occurrence was read already."""
    async with opened_redis(redis, clock) as store:
        other = RedisStore(f"{store._connections.address.url}?prefix={store._connections.address.prefix}", clock=clock)
        read = other._log.tables

        async def read_before_others_write(names: Any) -> Any:
            found = await read(names)
            await put(store, job(on_create="immediately"))
            await plan_once(store)
            return found

        other._log.tables = read_before_others_write  # type: ignore[method-assign]
        await other.open()
        assert contents(other) == contents(store)
        assert await statuses(other) == ["pending"]
        await other.close()


async def test_a_copy_that_is_read_while_a_job_is_purged_is_without_it(redis: Server, clock: ManualClock) -> None:
    """The log brings a change of a job that no longer is there."""
    async with opened_redis(redis, clock) as store:
        job_id = (await put(store, job())).job_id
        other = RedisStore(f"{store._connections.address.url}?prefix={store._connections.address.prefix}", clock=clock)
        read = other._ended.rows

        async def read_after_others_purge(paths: Any) -> Any:
            other._ended.rows = read  # type: ignore[method-assign]
            await remove(store, job_id)
            while not await store.purge(job_id):
                pass
            return await read(paths)

        other._ended.rows = read_after_others_purge  # type: ignore[method-assign]
        await other.open()
        assert await other.list(removed=True) == []
        await other.close()


async def test_a_job_that_a_process_cannot_read_is_changed_by_others(
    redis: Server, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plans and new names of it are no harm to the process that knows nothing of its schedule."""
    async with opened_redis(redis, clock) as store:
        job_id = (await put(store, job("strange"))).job_id

        def refuse(*_: Any, **__: Any) -> Any:
            raise InvalidSchedule("moon: full", "kind", "is unknown to this process")

        with monkeypatch.context() as patch:
            patch.setattr("everytick.stores.redis.rows.read_definition", refuse)
            async with another(store, clock) as other:
                await rename(store, job_id, "stranger")
                await plan_once(store)
                assert await other.list() == []
                assert list(await other.ask(ParkedJobs())) == ["stranger"]


@pytest.mark.parametrize("lost", ["head", "jobs", "job"])
async def test_a_store_that_lost_keys_is_refused_with_what_to_do(redis: Server, clock: ManualClock, lost: str) -> None:
    """Eviction deletes any key: a new process says so, and writes nothing."""
    async with opened_redis(redis, clock) as store:
        job_id = (await put(store, job(on_create="immediately"))).job_id
        await plan_once(store)
        path = f"job/{job_id}" if lost == "job" else lost
        await store._connections.client.delete(store._connections.address.key(path))
        before = await keys_of(store)
        with pytest.raises(StoreBroken, match=r"keys of it were deleted.*set maxmemory-policy noeviction"):
            async with another(store, clock):
                pass
        assert await keys_of(store) == before
        await store.close()


async def keys_of(store: RedisStore) -> list[str]:
    address = store._connections.address
    return sorted([name async for name in store._connections.client.scan_iter(match=r"\{" + address.key("*")[1:])])


async def test_a_start_warns_of_a_server_that_deletes_keys(
    redis: Server, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened_redis(redis, clock) as store:
        client = store._connections.client
        await client.config_set("maxmemory-policy", "allkeys-lru")
        try:
            async with another(store, clock):
                assert caplog.text == ""
            await client.config_set("maxmemory", "1gb")
            async with another(store, clock):
                assert "set maxmemory-policy noeviction" in caplog.text
        finally:
            await client.config_set("maxmemory", "0")
            await client.config_set("maxmemory-policy", "noeviction")


async def test_a_refusal_says_why_the_server_takes_no_writes(redis: Server, clock: ManualClock) -> None:
    """Older servers put the place in the script before it."""
    async with opened_redis(redis, clock) as store:
        client = store._connections.client
        await client.config_set("maxmemory", "1")
        try:
            with pytest.raises(StoreUnavailable, match="it takes no writes now: OOM"):
                await put(store, job())
        finally:
            await client.config_set("maxmemory", "0")


def test_a_full_memory_is_told_alike_by_redis_7() -> None:
    """From Redis 7 on the answer begins with OOM, and the driver makes a class of that word."""
    connections = RedisConnections(RedisAddress("redis://localhost"))
    with (
        pytest.raises(StoreUnavailable, match="it takes no writes now: OOM command not allowed"),
        connections.failures(),
    ):
        raise OutOfMemoryError("command not allowed when used memory > 'maxmemory'. script: 1, on @user_script:33.")


async def test_a_copy_that_is_read_anew_makes_no_store(redis: Server, clock: ManualClock) -> None:
    """F-14: the server forgets everything between two steps of reading."""
    async with opened_redis(redis, clock) as store:
        await put(store, job())
        await erase(store)
        with pytest.raises(StoreGone, match="no store of this name any more"):
            await store._load()
        assert not await store._connections.client.exists(store._connections.address.key("head"))
        await store.close()


async def test_a_cancellation_is_never_swallowed(redis: Server, clock: ManualClock) -> None:
    """A node that stops cancels its loops, and would wait for one that goes on. Each comes at another await."""
    async with opened_redis(redis, clock) as store:

        async def forever() -> None:
            while True:
                await store.beat("node-1", [])

        for turns in range(60):
            beating = asyncio.create_task(forever())
            for _ in range(turns):
                await asyncio.sleep(0)
            beating.cancel()
            done, _ = await asyncio.wait([beating], timeout=60)
            assert done, f"a cancellation after {turns} turns of the loop was swallowed"


async def test_a_server_that_stands_still_is_away(redis: Server, clock: ManualClock, monkeypatch: Any) -> None:
    monkeypatch.setattr("everytick.stores.redis.connections._ANSWER_SECONDS", 0.2)
    async with opened_redis(redis, clock) as store:
        await put(store, job())
        assert redis.pid is not None
        os.kill(redis.pid, signal.SIGSTOP)
        try:
            with pytest.raises(StoreUnavailable):
                await store.beat("node-1", [])
        finally:
            os.kill(redis.pid, signal.SIGCONT)
        monkeypatch.undo()
        await store.beat("node-1", [])
        assert 1 <= (await store.ask(Nodes()))[0].beats <= 2
