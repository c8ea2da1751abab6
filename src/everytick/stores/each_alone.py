"""Write items together, or one by one if the store refuses that: a refused item does not hold up the others."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

from everytick.errors import Contended, StoreUnavailable
from everytick.stores.base import CommitAnswer, CommitAway, CommitFailed

_log = logging.getLogger("everytick.store")

T = TypeVar("T")

Writes: TypeAlias = Callable[[Sequence[T]], Awaitable[Sequence[CommitAnswer]]]
"""Writes these items together, or none of them."""

Postpones: TypeAlias = Callable[[T, str], Awaitable[CommitAnswer]]
"""Lets a refused item be tried again later, by a statement that contains no value of the item."""


async def _only_answer(item: object, reason: str) -> CommitAnswer:
    return CommitFailed(reason)


async def _assume_writable() -> None:
    """Do nothing: the caller has no way to check the store."""


class _NotPostponed(Exception):
    """An item was refused, and could not be postponed either."""


async def each_alone(
    items: Sequence[T],
    write: Writes[T],
    what: str,
    postpone: Postpones[T] = _only_answer,
    check_writable: Callable[[], Awaitable[None]] = _assume_writable,
) -> Sequence[CommitAnswer]:
    """Write the items together or, if the store refuses that, one by one. Return an answer for each.

    An item that is refused alone too is postponed. The answer is `CommitAway` if another session locks the item, or
    if it cannot be postponed though the store is writable. An error about the store and not about an item is raised
    after all items were tried.
    """
    try:
        return await write(items)
    except Contended:
        pass
    except StoreUnavailable:
        raise
    except Exception:  # noqa: BLE001, any error of a driver, and an assertion about one item
        if len(items) > 1:
            _log.warning("%d %s could not be written together: each is written alone", len(items), what, exc_info=True)
    answers: list[CommitAnswer] = []
    is_in_doubt = False
    for item in items:
        try:
            answers.append(await _alone(item, write, what, postpone))
        except _NotPostponed as error:
            is_in_doubt = True
            answers.append(CommitAway(str(error)))
    if is_in_doubt:
        await check_writable()
    return answers


async def _alone(item: T, write: Writes[T], what: str, postpone: Postpones[T]) -> CommitAnswer:
    try:
        [answer] = await write([item])
    except Contended as error:
        return CommitAway(str(error))
    except StoreUnavailable:
        raise
    except Exception as error:  # noqa: BLE001, any error of a driver about this item
        _log.warning("the store refuses one of the %s: the others are written without it", what, exc_info=True)
        return await _postpone(item, error, postpone)
    return answer


async def _postpone(item: T, refusal: Exception, postpone: Postpones[T]) -> CommitAnswer:
    # One line, for a table or a log. The item may be refused because of half a surrogate pair: escape it in the reason.
    line = " ".join(str(refusal).split()) or type(refusal).__name__
    reason = line.encode("utf-8", "backslashreplace").decode()
    try:
        return await postpone(item, reason)
    except Contended as error:
        return CommitAway(str(error))
    except StoreUnavailable:
        raise
    except Exception as error:
        raise _NotPostponed(reason) from error
