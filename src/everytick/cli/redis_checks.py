"""What `everytick doctor` says of a server of Redis: which of its settings could lose data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.cli.doctor import Check
from everytick.errors import StoreBroken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everytick.stores.redis.server_facts import ServerFacts
    from everytick.stores.redis.store import RedisStore


async def redis_checks(store: RedisStore) -> list[Check]:
    """Look at the server. One that refuses to tell its settings is a warning: it may lose data."""
    try:
        return list(server_checks(await store.server()))
    except StoreBroken as error:
        text = f"the server does not tell what it keeps: {error.reason}; allow INFO, or look yourself"
        return [Check("redis", False, text, is_warning=True)]


def server_checks(facts: ServerFacts) -> Iterator[Check]:
    """Give the checks of what a server has said."""
    from everytick.stores.redis.server_facts import OLDEST

    needed = ".".join(map(str, OLDEST))
    if facts.version < OLDEST:
        yield Check("redis", False, f"{facts.name} is older than {needed}, the oldest that is tested: update it")
    else:
        yield Check("redis", True, facts.name)
    yield _persistence(facts)
    yield from _eviction(facts)
    if facts.is_replica:
        yield Check("redis replicas", False, "this server is a replica and takes no writes: name the primary")
    elif facts.replicas and not facts.waits_for_replicas:
        text = "a failover loses what the replica has not received: set min-replicas-to-write 1, or know that it can"
        yield Check("redis replicas", False, text, is_warning=True)


def _persistence(facts: ServerFacts) -> Check:
    if not facts.appends:
        text = "appendonly is off: a restart loses all since the last snapshot, or everything; set appendonly yes"
        return Check("redis persistence", False, text)
    if not facts.can_append:
        text = "the server cannot write its append-only file: look at its log, and at the room on its disk"
        return Check("redis persistence", False, text)
    return Check("redis persistence", True, "appendonly is on: a restart loses a second at most")


def _eviction(facts: ServerFacts) -> Iterator[Check]:
    if facts.policy == "noeviction":
        yield Check("redis eviction", True, "noeviction: a server without memory refuses writes, and deletes nothing")
    else:
        text = (
            f"maxmemory-policy is {facts.policy}: a server that reaches maxmemory deletes keys; set "
            "maxmemory-policy noeviction"
        )
        # Without a limit nothing is deleted yet.
        yield Check("redis eviction", False, text, is_warning=not facts.memory_limit)
