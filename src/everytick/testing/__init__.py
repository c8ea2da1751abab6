"""The test kit: jobs of an application run in tests, on a clock that the test moves.

`simulate` runs hours or years of an application in a moment; `drain` runs what is due now.
Both answer with a Chronicle, which can be asked what ran, what did not, and why. The names
are resolved when they are first asked for: the pytest plugin costs a test run nothing.
"""

TYPE_CHECKING = False  # as in everytick itself

if TYPE_CHECKING:
    from everytick.stores.memory import MemoryStore
    from everytick.testing.chronicle import Chronicle, Entry, chronicle_of
    from everytick.testing.clock import ManualClock
    from everytick.testing.running import drain, on_store, simulate

_HOMES = {
    "stores.memory": ("MemoryStore",),
    "testing.clock": ("ManualClock",),
    "testing.chronicle": ("Chronicle", "Entry", "chronicle_of"),
    "testing.running": ("drain", "on_store", "simulate"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["Chronicle", "Entry", "ManualClock", "MemoryStore", "chronicle_of", "drain", "on_store", "simulate"]


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'everytick.testing' has no attribute {name!r}")
    from importlib import import_module

    attribute = globals()[name] = getattr(import_module(f"everytick.{home}"), name)
    return attribute


def __dir__() -> list[str]:
    return list(__all__)
