"""How an attempt ended. A runner answers with one of these; what follows from it is for `deciding` to say."""

from datetime import timedelta
from typing import TypeAlias

from everytick.domain.payload import Payload
from everytick.domain.texts import SILENT, TASK_TIMEOUT
from everytick.domain.values import value


@value
class Succeeded:
    """The task returned; its result is none where it returned nothing."""

    result: Payload | None = None


@value
class Failed:
    """The task raised.

    `error_types` names the exception's class and its bases as `Retry.on` does. `GiveUp`
    sets `give_up`; `TryAgain(after)` sets `try_again_after`, its own wait.
    """

    error: str
    error_types: tuple[str, ...] = ()
    give_up: bool = False
    try_again_after: timedelta | None = None


@value
class TimedOut:
    """The attempt ran longer than its task_timeout and was ended."""

    error: str = TASK_TIMEOUT


@value
class Canceled:
    """The attempt was told to stop, and did."""

    reason: str = "canceled"


@value
class Lost:
    """It is not known how it ended: its node fell silent.

    As an outcome this is about one attempt, as an event about all that an owner had open.
    """

    error: str = SILENT


Outcome: TypeAlias = Succeeded | Failed | TimedOut | Canceled | Lost


def error_types(error: BaseException) -> tuple[str, ...]:
    """Return the names of the error's class and its bases, nearest first, written as `Retry.on` writes them."""
    return names_of(type(error))


def names_of(error_class: type[BaseException]) -> tuple[str, ...]:
    """Return the names of the class and its bases, nearest first."""
    kinds = (kind for kind in error_class.__mro__ if issubclass(kind, BaseException))
    return tuple(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
