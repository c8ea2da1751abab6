"""The text of what one commit writes: rows read back as they were, whatever stands in them."""

from everytick.domain.outcome import Failed
from everytick.stores.redis.entries import Changes, changes_in, entry_of, member_lines
from tests.servers.launch import Server
from tests.stores.acting import job, plan_once, put, run_one
from tests.stores.clock import ManualClock
from tests.stores.redis.kit import another, opened_redis


def test_an_entry_reads_back_as_the_changes_it_was_made_of() -> None:
    """Every copy does what the writer did: fields that are set, deleted, and hashes that are gone."""
    changes: Changes = {
        "job/a": {"state": '{"name":"a"}', "task/1": None, "tally": "{}"},
        "job/b": None,
        "nodes": {'"node\\t1"': "[1]", '"node\\n2"': None},
        "deeds": {str(number): str(number) for number in range(5_000)},
    }
    assert changes_in(entry_of(changes)) == changes
    assert changes_in("") == {}
    assert all(line.count("\t") <= 1_001 for line in entry_of(changes).split("\n"))


def test_members_of_one_set_are_one_command() -> None:
    lines = member_lines([("SREM", "open", "a"), ("ZADD", "ids", "0", "a"), ("SREM", "open", "b")])
    assert lines.split("\n") == ["SREM\topen\ta\tb", "ZADD\tids\t0\ta"]


async def test_errors_of_many_lines_and_tabs_are_what_they_were_in_another_copy(
    redis: Server, clock: ManualClock
) -> None:
    """Nothing that a task says can be taken for the end of a line of the log."""
    said = 'one\ttwo\nthree\r\n"four" \x00 \u2028 \ud83d'
    async with opened_redis(redis, clock) as store, another(store, clock) as other:
        await put(store, job())
        clock.move(hours=1)
        await plan_once(store)
        claim = await run_one(store, Failed(said), "node\t1")
        [(_, attempt)] = (await other.whole(claim.occurrence.id)).attempts
        assert (attempt.error, attempt.node) == (said, "node\t1")


async def test_a_commit_of_more_words_than_lua_passes_at_once_is_written(redis: Server, clock: ManualClock) -> None:
    """Lua has room for 8,000 words of one command."""
    async with opened_redis(redis, clock) as store:
        changes: Changes = {"sizes": {str(number): "1" for number in range(5_000)}}
        members = [("ZADD", "weights", "0", str(number)) for number in range(5_000)]
        assert (await store._log.commit(entry_of(changes), member_lines(members), rings=False)).written
        client, key = store._connections.client, store._connections.address.key
        assert [await client.hlen(key("sizes")), await client.zcard(key("weights"))] == [5_000, 5_000]
