"""How often a failed attempt is tried again. When exactly is worked out in `deciding`."""

import builtins
from collections.abc import Iterable, Mapping
from datetime import timedelta

from everytick.domain.durations import format_duration
from everytick.domain.names import did_you_mean
from everytick.domain.policy_checks import LARGEST, fill, keys, length, number, refused, switch, whole
from everytick.domain.policy_readers import (
    DURATION,
    NAMES,
    SWITCH,
    PolicyReader,
    Schema,
    count,
    described,
    or_none,
    or_null,
    own,
    table,
)
from everytick.domain.values import value

ANY_FAILURE = ("failed", "timeout")

_KEYS: dict[str, Schema] = {
    "max": described(or_null(count(0).schema), "How many retries follow the first attempt; null is no limit."),
    "interval": described(DURATION, "How long to wait before the first retry."),
    "factor": {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "Each wait is this many times the wait before it.",
    },
    "max_interval": described(or_null(DURATION), "The longest wait between two attempts; null is no limit."),
    "jitter": {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": "By how much of itself a wait may be stretched, at random.",
    },
    "on": described(NAMES, "What is retried: failed, timeout, or exception classes by their names."),
    "superseded_by_next": described(SWITCH, "Whether retries are given up when the job's next instant comes."),
}
_RETRIED = ('on=("failed", "timeout")', "on=(ConnectionError, TimeoutError)")
_NEVER_RETRIED = {
    "success": "is not a failure",
    "canceled": "is not retried: a person or a program asked it to stop",
    "lost": "follows on_orphan, not retry",
}


@value(frozen=True)
class Retry:
    """How often a failed attempt is tried again, and after which waits.

    `max` does not count the first attempt: 3 means up to four attempts; None means without
    limit. The wait before retry k is `interval × factor^(k−1)`, at most `max_interval`,
    stretched by up to `jitter` (0 to 1) of itself. `on` names what is retried: `failed`
    (every exception), `timeout`, or exception classes. `superseded_by_next` gives up the
    retries when the job's next instant comes.
    """

    max: int | None
    interval: timedelta
    factor: float
    max_interval: timedelta | None
    jitter: float
    on: tuple[str, ...]
    superseded_by_next: bool

    def __init__(
        self,
        max: int | None,
        interval: timedelta | str,
        factor: float = 1.0,
        max_interval: timedelta | str | None = None,
        jitter: float = 0.0,
        on: object = ANY_FAILURE,
        superseded_by_next: bool = False,
    ) -> None:
        wait = length("retry interval", interval, timedelta(0))
        longest = None if max_interval is None else length("retry max_interval", max_interval, timedelta(0))
        if longest is not None and longest < wait:
            raise refused("retry max_interval", max_interval, f"is shorter than the interval {format_duration(wait)}")
        fill(
            self,
            max=None if max is None else whole("retry max", max, 0, LARGEST, "max=None, for no limit"),
            interval=wait,
            factor=_factor(factor),
            max_interval=longest,
            jitter=number("retry jitter", jitter, 0, 1),
            on=_retried(on),
            superseded_by_next=switch("retry superseded_by_next", superseded_by_next),
        )

    def as_data(self) -> object:
        """Return the mapping with everything that differs from what is usual."""
        data: dict[str, object] = {"max": self.max, "interval": format_duration(self.interval)}
        if self.factor != 1.0:
            data["factor"] = self.factor
        if self.max_interval is not None:
            data["max_interval"] = format_duration(self.max_interval)
        if self.jitter:
            data["jitter"] = self.jitter
        if self.on != ANY_FAILURE:
            data["on"] = list(self.on)
        if self.superseded_by_next:
            data["superseded_by_next"] = True
        return data


def retry(given: object) -> Retry | None:
    """Read `Retry(3, "30s")` or `{"max": 3, "interval": "30s"}`; None means no retries."""
    if given is None or isinstance(given, Retry):
        return given
    if isinstance(given, Mapping):
        return Retry(**keys("retry", given, tuple(_KEYS), ("max", "interval")))
    raise refused("retry", given, "says no interval", 'retry=Retry(3, "30s")', 'retry={"max": 3, "interval": "30s"}')


def _factor(given: object) -> float:
    factor = number("retry factor", given, 0)
    if not factor:
        raise refused("retry factor", given, "would make every further wait zero", "factor=1.0, for equal waits")
    return factor


def _retried(given: object) -> tuple[str, ...]:
    items = (given,) if isinstance(given, (str, type)) else given
    if not isinstance(items, Iterable):
        raise refused("retry on", given, "must name exception classes or outcomes", *_RETRIED)
    names = tuple(sorted({_retried_name(item) for item in items}))
    if not names:
        raise refused("retry on", given, "is empty, so that nothing would be retried", *_RETRIED, "no retry at all")
    return names


def _retried_name(given: object) -> str:
    """Name a class by module and name: the definition is data, and the class may live on another node only."""
    if isinstance(given, type) and issubclass(given, BaseException):
        return f"{given.__module__}.{given.__qualname__}"
    if not isinstance(given, str):
        raise refused("retry on", given, "is neither an exception class nor an outcome", *_RETRIED)
    if given in ANY_FAILURE or _is_path(given):
        return given
    if given in _NEVER_RETRIED:
        raise refused("retry on", given, _NEVER_RETRIED[given], *_RETRIED)
    known = [name for name, thing in vars(builtins).items() if isinstance(thing, type)]
    known = [name for name in known if issubclass(getattr(builtins, name), BaseException)]
    if given in known:
        return f"builtins.{given}"
    near = did_you_mean(given, [*known, *ANY_FAILURE])
    raise refused("retry on", given, f"is no built-in exception; write others as package.module.Class{near}")


def _is_path(text: str) -> bool:
    parts = text.split(".")
    return len(parts) > 1 and all(part.isidentifier() or part == "<locals>" for part in parts)


RETRY = or_none(
    PolicyReader(
        own(retry),
        table(("max", "interval"), **_KEYS),
        "Retry | Mapping[str, Any]",
        python='Retry(3, "30s", factor=2)',
        base={"max": 1, "interval": "0s"},
    )
)
RETRY_ON_FAILURE = Retry(3, timedelta(seconds=30))
"""What `failure="retry_on_failure"` brings where no retry policy is set."""
