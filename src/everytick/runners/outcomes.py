"""Outcomes: what a task returned or raised, said so that a store can keep it.

Nothing a task does to its own exceptions can make these functions raise: whatever comes
out of user code is an Outcome, bounded, and text that every store takes.
"""

import traceback
from collections.abc import Iterator
from datetime import timedelta
from types import TracebackType

from everytick.domain.durations import duration
from everytick.domain.outcome import Failed, Outcome, Succeeded, error_types
from everytick.domain.payload import payload
from everytick.domain.redaction import redacted
from everytick.errors import GiveUp, InvalidDuration, InvalidPayload, TryAgain

ERROR_LIMIT = 64 * 1024
"""Bytes of UTF-8 that the error of one attempt may have."""

NOTHING = Succeeded()
"""The outcome of a task that returned None: one shared value."""

_OURS = "everytick.runners."


def succeeded(result: object) -> Outcome:
    """Return the success with this result. A result that no store can keep makes it a failure.

    Trying again would do the same work for the same result, so that failure is final.
    """
    if result is None:
        return NOTHING
    try:
        return Succeeded(payload(result, "the result"))
    except InvalidPayload as error:
        return Failed(bounded(f"the task did its work, but {error}"), error_types(error), give_up=True)
    except BaseException as error:  # noqa: BLE001 - a result may be an object with methods of its own
        return failed(error)


def failed(error: BaseException) -> Failed:
    """Return the failure of this exception, with its traceback from the user's first frame on."""
    try:
        text, kinds = _told(error), error_types(error)
    except BaseException as unspeakable:  # noqa: BLE001 - an exception may raise when it is looked at
        text = f"{type(error).__name__}, which cannot be shown: showing it raised {type(unspeakable).__name__}"
        kinds = ()
    if isinstance(error, GiveUp):
        return Failed(text, kinds, give_up=True)
    if isinstance(error, TryAgain):
        return _try_again(error, text, kinds)
    return Failed(text, kinds)


def _try_again(error: TryAgain, text: str, kinds: tuple[str, ...]) -> Failed:
    try:
        after = duration(error.after)
        if after < timedelta(0):
            raise InvalidDuration(error.after, "lies in the past")
    except InvalidDuration as wrong:
        return Failed(
            bounded(f"{text}\nTryAgain(after=…) was not understood, so the retry policy decides: {wrong}"), kinds
        )
    return Failed(text, kinds, try_again_after=after)


def _told(error: BaseException) -> str:
    """Return the traceback, or only the reason if the task raised GiveUp or TryAgain."""
    if isinstance(error, GiveUp | TryAgain) and error.__cause__ is None and error.__context__ is None:
        return bounded(str(error))
    lines = traceback.format_exception(type(error), error, _without_ours(error.__traceback__))
    return bounded("".join(lines).rstrip("\n"))


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Return the traceback without everytick's own frames at its beginning."""
    first = traceback
    while first is not None and str(first.tb_frame.f_globals.get("__name__", "")).startswith(_OURS):
        first = first.tb_next
    return first or traceback


def bounded(text: str, limit: int = ERROR_LIMIT) -> str:
    """Return the text as every store takes it: valid UTF-8 without NUL; beyond the limit its middle is left out.

    The beginning says where it happened and the end what, so both stay. What looks like a secret is hidden.
    """
    raw = redacted(text).replace("\x00", "\\x00").encode("utf-8", "backslashreplace")
    if len(raw) <= limit:
        return raw.decode()
    gap = f"\n… {len(raw) - limit:,} bytes left out …\n"
    room = limit - len(gap.encode()) - 8
    head, tail = raw[: room // 2], raw[len(raw) - room // 2 :]
    return head.decode(errors="ignore") + gap + tail.decode(errors="ignore")


def last_lines(data: bytes, most: int = 20) -> str:
    """Return the last lines of some output as text."""
    return "\n".join(_printable(line) for line in data.decode("utf-8", "backslashreplace").splitlines()[-most:])


def _printable(line: str) -> str:
    return "".join(_escaped(line))


def _escaped(line: str) -> Iterator[str]:
    """Return the text without escape sequences: they must not reach the terminal of the error's reader."""
    return (c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode("ascii") for c in line)
