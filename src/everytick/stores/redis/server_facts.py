"""What a server says of itself: whether it keeps its data. From INFO, since managed servers forbid CONFIG."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from everytick.domain.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping

OLDEST = (6, 2)
"""The oldest version of Redis that everytick is tested with. Every Valkey is newer."""


@value
class ServerFacts:
    """A server's version, and what decides whether data can be lost."""

    name: str
    version: tuple[int, ...]
    appends: bool
    can_append: bool
    policy: str
    memory_limit: int
    replicas: int
    waits_for_replicas: bool
    is_replica: bool


def server_facts(told: Mapping[str, object]) -> ServerFacts:
    """Return what an answer to INFO says."""

    def number(field: str) -> int:
        return int(str(told.get(field) or 0))

    valkey, redis = told.get("valkey_version"), str(told.get("redis_version", ""))
    return ServerFacts(
        name=f"Valkey {valkey}" if valkey else f"Redis {redis}",
        # Valkey names the version of Redis that it can stand in for.
        version=tuple(map(int, re.findall(r"\d+", redis)[:2])),
        appends=number("aof_enabled") == 1,
        can_append=told.get("aof_last_write_status", "ok") == "ok",
        policy=str(told.get("maxmemory_policy", "noeviction")),
        memory_limit=number("maxmemory"),
        replicas=number("connected_slaves"),
        waits_for_replicas="min_slaves_good_slaves" in told,
        is_replica=told.get("role") == "slave",
    )
