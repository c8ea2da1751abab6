"""What a part of a node is made with in a test of this part alone."""

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from time import monotonic as host_monotonic
from typing import Any

from everytick.domain.job import Job
from everytick.node.alarms import Alarms
from everytick.node.clock import NodeClock, Offset
from everytick.node.events import Listeners
from everytick.node.health import Health
from everytick.node.hooks import HookTable
from everytick.node.inbox import Inbox
from everytick.node.logs import Logs
from everytick.node.reporter import Reporter
from everytick.node.scope import Scope
from everytick.node.settings import node_settings
from everytick.node.tools import Tools
from everytick.runners.base import Body
from everytick.stores.memory.store import MemoryStore


def inbox(hear: Callable[[Any], None] = lambda event: None) -> Inbox:
    """Return an inbox that passes every event on, of whatever kind it is."""
    return Inbox(defaultdict(lambda: hear))


def tools(monotonic: Callable[[], float] = host_monotonic) -> Tools:
    """Return what the parts of an engine use, for a part that is made alone."""
    settings, health = node_settings(), Health(inbox(), monotonic, 60, 60)
    store, scope = MemoryStore(lambda: datetime.now(UTC)), Scope("node-1", "", settings, EveryJob())
    reporter = Reporter(store, store, store, scope, HookTable(), health, 60)
    return Tools(
        settings,
        EveryJob(),
        NodeClock(monotonic),
        Offset(),
        Alarms(monotonic),
        Listeners(),
        health,
        reporter,
        Logs(None, "node-1"),
        inbox(),
    )


class EveryJob:
    """A repertoire that has a body for every job, and runs none."""

    def bodies(self, job: Job) -> tuple[Body, ...]:
        return ()

    def why(self, job: Job) -> str:
        raise AssertionError("every job can run")

    def forget(self, occurrence_id: str) -> None:
        return

    def close(self) -> None:
        return
