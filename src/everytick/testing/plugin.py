"""The pytest plugin: a clock and a store for tests of jobs. It imports nothing of everytick until a test asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from everytick.stores.memory import MemoryStore
    from everytick.testing.clock import ManualClock


@pytest.fixture
def everytick_clock() -> ManualClock:
    """A clock that stands at midnight on 1 January 2026, UTC, until the test moves it."""
    from everytick.testing.clock import ManualClock

    return ManualClock()


@pytest.fixture
def everytick_store(everytick_clock: ManualClock) -> MemoryStore:
    """An empty store in memory, on the test's clock; it needs no opening."""
    from everytick.stores.memory import MemoryStore

    return MemoryStore(everytick_clock)
