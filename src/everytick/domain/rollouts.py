"""Rollouts: a new version is tried before it is in force, as a dry run or by a share of the occurrences.

A version on trial has no moment of its own: it is never in force. What its occurrences came to decides whether
the next stage follows, the version comes into force, or what was in force before it stays.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum

from everytick.domain.policy_checks import fill, refused, whole
from everytick.domain.values import value

NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""The moment of a version on trial. It stays clear of the last day of the calendar, which some zones cannot show."""

USUAL_AFTER = 10
"""How many occurrences of a stage end before the next stage follows, where a rollout names no number."""

MOST_STAGES = 8
"""Most shares of one rollout. Each is a version that waits for a plan, and a job may have sixteen of these."""

MOST_COUNTED = 1000
"""Most occurrences that one stage may wait for. They are counted anew by each plan."""

_WAYS = (
    'update_policy="rollout 10%", to try it with a tenth of the occurrences',
    'update_policy="rollout dry 5 10% 50% after 20 failures 1", in stages, with a rule for going on and back',
    "Rollout(share=0.1, after=20, max_failures=1)",
)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,2})?)%")
_COUNTED = ("dry", "after", "failures")


@value(frozen=True)
class Rollout:
    """How a new version is tried: the stages that are left, and what its outcomes decide.

    The first stage is a dry run of `dry_run` occurrences, if that is not 0: they run as before, and each says
    what the new version would have done. Then come the `shares`, one after the other: so much of the occurrences
    runs the new version. A stage is over when `after` of them have ended. After the last one the version comes into
    force. More than `max_failures` failures in a stage roll it back.
    """

    shares: tuple[float, ...]
    after: int
    max_failures: int
    dry_run: int

    def __init__(
        self,
        share: float | Sequence[float] = (),
        after: int = USUAL_AFTER,
        max_failures: int = 0,
        dry_run: int = 0,
    ) -> None:
        shares = tuple(share) if isinstance(share, Sequence) else (share,)
        dry = whole("rollout dry_run", dry_run, 0, MOST_COUNTED)
        if not shares and not dry:
            raise refused("rollout", share, "needs a share of the occurrences, or a dry run", *_WAYS)
        _refuse_shares(shares)
        fill(
            self,
            shares=tuple(round(share, 4) for share in shares),
            after=whole("rollout after", after, 1, MOST_COUNTED),
            max_failures=whole("rollout max_failures", max_failures, 0, MOST_COUNTED),
            dry_run=dry,
        )

    def __str__(self) -> str:
        parts = [f"dry {self.dry_run}"] if self.dry_run else []
        parts += [percent(share) for share in self.shares]
        parts += [f"after {self.after}"] if self.shares else []
        return " ".join([*parts, f"failures {self.max_failures}"] if self.max_failures else parts)

    @property
    def stage(self) -> str:
        """The stage it is in, in words."""
        if self.dry_run:
            return f"a dry run of {self.dry_run}"
        return f"{percent(self.shares[0])} of the occurrences"

    @property
    def rest(self) -> "Rollout | None":
        """The stages after this one; None where the version comes into force next."""
        if self.dry_run:
            return _with_shares(self, self.shares) if self.shares else None
        return _with_shares(self, self.shares[1:]) if len(self.shares) > 1 else None

    def takes(self, occurrence_id: str) -> bool:
        """Whether this occurrence runs the new version: a function of its id, so that every node agrees.

        What a small share takes, a larger one takes too. The digits are not those that spread jitter.
        """
        return not self.dry_run and int(occurrence_id[4:12], 16) / 2**32 < self.shares[0]


def _with_shares(rollout: Rollout, shares: tuple[float, ...]) -> Rollout:
    """Return the rollout without a dry run and with these shares."""
    return Rollout(shares, rollout.after, rollout.max_failures)


def percent(share: float) -> str:
    """Return a share as people write it."""
    return f"{share * 100:.2f}".rstrip("0").rstrip(".") + "%"


def _refuse_shares(shares: tuple[object, ...]) -> None:
    if len(shares) > MOST_STAGES:
        raise refused("rollout", shares, f"has {len(shares)} shares, and at most {MOST_STAGES} are allowed", *_WAYS)
    before = 0.0
    for share in shares:
        if isinstance(share, bool) or not isinstance(share, (int, float)) or not before < share <= 1:
            reason = "takes shares above 0 and up to 1 (100%), each larger than the one before it"
            raise refused("rollout", share, reason, *_WAYS)
        before = share


def rollout(given: str) -> Rollout:
    """Read `"10%"`, `"10% 50% after 20 failures 1"`, `"dry 5 10%"`; commas between the parts are allowed."""
    shares: list[float] = []
    counts: dict[str, int] = {}
    words = iter(given.replace(",", " ").split())
    for word in words:
        if (match := _PERCENT.fullmatch(word)) is not None:
            shares.append(float(match[1]) / 100)
        elif word in _COUNTED and word not in counts:
            counts[word] = _number(word, next(words, ""))
        else:
            raise refused("rollout", given, f"has '{word}', which is no share like 10% and none of {_COUNTED}", *_WAYS)
    return Rollout(tuple(shares), counts.get("after", USUAL_AFTER), counts.get("failures", 0), counts.get("dry", 0))


def _number(word: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise refused("rollout", f"{word} {text}".strip(), "needs a whole number", *_WAYS)
    return int(text)


# ------------------------------------------------------------------------------------------------------ what is decided


@value
class TrialCounts:
    """What became of the occurrences of a stage: how many ended well, how many failed, and how many were created.

    Only those that are scheduled after the stage began count. `created` counts them under every version.
    """

    well: int = 0
    failed: int = 0
    created: int = 0


class Way(StrEnum):
    """Where a rollout goes."""

    ON = "on"
    BACK = "back"


@value
class RolloutVerdict:
    """What the outcomes of a stage have decided about the version on trial, and why, for people."""

    way: Way
    version: int
    said: str
