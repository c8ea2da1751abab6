"""Together, then each alone: one item that a store refuses keeps no other from being written."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

from everytick.errors import Contended, StoreUnavailable
from everytick.stores.base import CommitAnswer, CommitAway, CommitFailed

_log = logging.getLogger("everytick.store")

T = TypeVar("T")

Writes: TypeAlias = Callable[[Sequence[T]], Awaitable[Sequence[CommitAnswer]]]
"""Writes these items together, or none of them."""

SetsAside: TypeAlias = Callable[[T, str], Awaitable[CommitAnswer]]
"""Lets a refused item be tried again later, by a statement that carries nothing of it."""


async def _leave(item: object, reason: str) -> CommitAnswer:
    return CommitFailed(reason)


async def _assume_writable() -> None:
    """Return: nothing is known to be wrong with the store."""


class _NotAside(Exception):
    """An item was refused, and could not be set aside either."""


async def each_alone(
    items: Sequence[T],
    write: Writes[T],
    what: str,
    set_aside: SetsAside[T] = _leave,
    check_writable: Callable[[], Awaitable[None]] = _assume_writable,
) -> Sequence[CommitAnswer]:
    """Write the items together; if the store refuses that, each alone. Return what became of each.

    An item that is refused alone too is set aside. One that another session is in the way of, or
    that cannot be set aside though the store can be written, is `CommitAway`. What is about the
    store and not about an item is raised, after all items were tried.
    """
    try:
        return await write(items)
    except Contended:
        pass
    except StoreUnavailable:
        raise
    except Exception:  # noqa: BLE001, whatever a driver raises, and an assertion about one item
        if len(items) > 1:
            _log.warning("%d %s could not be written together: each is written alone", len(items), what, exc_info=True)
    answers: list[CommitAnswer] = []
    is_in_doubt = False
    for item in items:
        try:
            answers.append(await _alone(item, write, what, set_aside))
        except _NotAside as error:
            is_in_doubt = True
            answers.append(CommitAway(str(error)))
    if is_in_doubt:
        await check_writable()
    return answers


async def _alone(item: T, write: Writes[T], what: str, set_aside: SetsAside[T]) -> CommitAnswer:
    try:
        [answer] = await write([item])
    except Contended as error:
        return CommitAway(str(error))
    except StoreUnavailable:
        raise
    except Exception as error:  # noqa: BLE001, whatever a driver raises about this item
        _log.warning("the store refuses one of the %s: the others are written without it", what, exc_info=True)
        return await _set_aside(item, error, set_aside)
    return answer


async def _set_aside(item: T, refusal: Exception, set_aside: SetsAside[T]) -> CommitAnswer:
    # One line, for a table or a log. Some stores hold no half of a surrogate pair, which the item may be refused for.
    line = " ".join(str(refusal).split()) or type(refusal).__name__
    reason = line.encode("utf-8", "backslashreplace").decode()
    try:
        return await set_aside(item, reason)
    except Contended as error:
        return CommitAway(str(error))
    except StoreUnavailable:
        raise
    except Exception as error:
        raise _NotAside(reason) from error
