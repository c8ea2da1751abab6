"""The store in memory: for tests, for scripts that may forget, and to read what every verb means."""

from everytick.stores.memory.store import MemoryStore

__all__ = ["MemoryStore"]
