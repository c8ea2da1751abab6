"""Each policy: what may be written, what it becomes, what is refused."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from everytick.domain import policies
from everytick.domain.ids import occurrence_id
from everytick.domain.policies import (
    Failure,
    FirstSight,
    LateOverlap,
    Mode,
    OnCreate,
    OnOrphan,
    OnStoreOutage,
    Overlap,
    Recovery,
    Retention,
    Strategy,
    UpdateKind,
    UpdatePolicy,
    backfill_from,
    bounded_window,
)
from everytick.domain.policy_checks import as_data, choice, length, names, switch, whole
from everytick.domain.rollouts import Rollout
from everytick.errors import InvalidDuration, InvalidInstant, InvalidName, InvalidPolicies

SINCE = datetime(2024, 1, 31, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Overlap, "skip queue queue_latest allow cancel_running"),
        (LateOverlap, "queue skip allow"),
        (Mode, "sequential parallel graph"),
        (Failure, "fail_fast continue retry_on_failure"),
        (Strategy, "execute_last execute_all mark_as_missed bounded_window compressed"),
        (FirstSight, "next if_matching_now immediately backfill_from"),
        (UpdateKind, "immediate graceful windowed rollout"),
        (OnOrphan, "fail restart resume"),
        (OnStoreOutage, "wait fire_local"),
    ],
)
def test_every_choice_has_the_words_of_the_contract_with_the_default_first(kind: Any, words: str) -> None:
    """S0-016…020, C-06, C-08, C-10…C-12, C-28."""
    assert [str(member) for member in kind] == words.split()
    assert [choice("x", kind, word) for word in words.split()] == list(kind)
    assert choice("x", kind, next(iter(kind))) is next(iter(kind))


def test_an_unknown_word_is_refused_with_all_that_are_known() -> None:
    """S0-017 asks for sequential instead of an unknown mode; a refusal at birth leaves no unknown mode to run."""
    with pytest.raises(InvalidPolicies, match=r"mode 'paralel' is not known \(did you mean 'parallel'\?\)") as refusal:
        choice("mode", Mode, "paralel")
    assert refusal.value.alternatives == ('mode="sequential"', 'mode="parallel"', 'mode="graph"')
    assert refusal.value.job == ""
    with pytest.raises(InvalidPolicies, match="mode 'None' is not known; instead"):
        choice("mode", Mode, None)


def test_late_instants_may_wait_be_skipped_or_run_at_once() -> None:
    """C-12."""
    assert [policies.late_overlap(word) for word in ("queue", "skip", "allow")] == list(LateOverlap)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("cancel_running", "would let a late instant cancel the one before it"),
        (Overlap.QUEUE_LATEST, "would drop late instants that recovery has just kept"),
    ],
)
def test_late_instants_never_cancel_or_supersede(word: object, reason: str) -> None:
    """Refused pair: `cancel_running` as late_overlap, with both alternatives named."""
    with pytest.raises(InvalidPolicies, match=reason) as refusal:
        policies.late_overlap(word)
    assert refusal.value.alternatives == (
        'late_overlap="queue", to run them one after another',
        'recovery="execute_last", to run one',
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("execute_all", Recovery(Strategy.EXECUTE_ALL)),
        (Recovery("compressed"), Recovery(Strategy.COMPRESSED)),
        ({"strategy": "bounded_window", "max_duration": "6h"}, bounded_window(max_duration=timedelta(hours=6))),
        ({"strategy": "bounded_window", "max_occurrences": 24}, bounded_window(24)),
        ({"strategy": "bounded_window"}, bounded_window()),
        ({"strategy": "mark_as_missed"}, Recovery("mark_as_missed")),
    ],
)
def test_recovery_is_a_word_or_a_mapping_with_bounds(written: object, expected: Recovery) -> None:
    """S0-019, S0-077, S0-095: a window without bounds keeps all."""
    assert policies.recovery(written) == expected
    assert policies.recovery(as_data(expected)) == expected


def test_the_default_recovery_runs_the_last_late_instant() -> None:
    """S0-097, C-06."""
    assert Recovery().strategy is Strategy.EXECUTE_LAST


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (
            {"strategy": "bounded_window", "max_occurrences": 0},
            "max_occurrences '0' must be from 1 to .*; instead: recovery=\"mark_as_missed\"",
        ),
        ({"strategy": "bounded_window", "max_duration": "0s"}, "max_duration '0s' must be longer than zero"),
        ({"strategy": "execute_all", "max_occurrences": 3}, "takes max_occurrences only with bounded_window"),
        ({"strategy": "execute_last", "max_duration": "1h"}, "takes max_duration only with bounded_window"),
        ({"max_duration": "1h"}, "recovery says no strategy"),
        ({"strategy": "bounded_window", "duration": "1h"}, "recovery 'duration' is not a key it has"),
        ("catchup", "recovery 'catchup' is not known"),
        (None, "recovery 'None' is not known"),
    ],
)
def test_recovery_that_keeps_nothing_or_bounds_nothing_is_refused(written: object, reason: str) -> None:
    """Refused pair: `bounded_window` with a bound of zero."""
    with pytest.raises(InvalidPolicies, match=reason):
        policies.recovery(written)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("next", OnCreate()),
        ("if_matching_now", OnCreate(FirstSight.IF_MATCHING_NOW)),
        ("immediately", OnCreate(FirstSight.IMMEDIATELY)),
        ({"backfill_from": "2024-01-31T10:00:00+01:00"}, backfill_from(SINCE)),
        (backfill_from(SINCE), OnCreate(FirstSight.BACKFILL_FROM, SINCE)),
    ],
)
def test_a_new_job_begins_after_now_or_where_it_is_told(written: object, expected: OnCreate) -> None:
    """C-08."""
    assert policies.on_create(written) == expected
    assert policies.on_create(as_data(expected)) == expected


@pytest.mark.parametrize(
    ("begin", "reason"),
    [
        (lambda: policies.on_create("backfill_from"), "on_create 'backfill_from' needs the instant to begin at"),
        (lambda: OnCreate("next", SINCE), "on_create 'next' takes no instant"),
        (lambda: policies.on_create({"from": SINCE}), "on_create 'from' is not a key it has: backfill_from"),
        (lambda: policies.on_create({}), "on_create says no backfill_from"),
        (lambda: policies.on_create("now"), "on_create 'now' is not known"),
    ],
)
def test_a_beginning_that_says_too_little_or_too_much_is_refused(begin: Callable[[], object], reason: str) -> None:
    """C-08: the instant belongs to backfill_from alone."""
    with pytest.raises(InvalidPolicies, match=reason):
        begin()


def test_a_backfill_from_a_naive_time_is_refused() -> None:
    """It names no moment."""
    with pytest.raises(InvalidInstant):
        backfill_from("2024-01-31T10:00:00")


@pytest.mark.parametrize(
    ("text", "kind", "occurrences", "length"),
    [
        ("immediate", "immediate", None, None),
        ("graceful", "graceful", 1, None),
        ("graceful 3", "graceful", 3, None),
        ("graceful 48h", "graceful", None, timedelta(days=2)),
        ("windowed", "windowed", None, timedelta(days=30)),
        ("windowed 5", "windowed", 5, None),
        ("windowed 36h", "windowed", None, timedelta(hours=36)),
    ],
)
def test_an_update_policy_is_one_text_that_reads_back_equal(
    text: str, kind: str, occurrences: int | None, length: timedelta | None
) -> None:
    """S0-020, S0-117 to S0-119: a word, and so many occurrences or so long where it takes a bound."""
    found = policies.update_policy(text)
    assert (found.kind, found.occurrences, found.duration) == (kind, occurrences, length)
    assert str(found) == found.as_data() == text
    assert policies.update_policy(found) is found


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("later", "update_policy 'later' is not known"),
        ("immediate 3", "takes no bound"),
        ("graceful 0", "must be from 1 to 1,000"),
        ("windowed 1001", "must be from 1 to 1,000"),
        (3, "must be text"),
        ({"change": "windowed"}, "must be text"),
    ],
)
def test_an_update_policy_that_makes_no_sense_is_refused(given: object, reason: str) -> None:
    """With what to write instead."""
    with pytest.raises(InvalidPolicies, match=reason):
        policies.update_policy(given)


def test_an_update_policy_takes_one_bound() -> None:
    """So many occurrences or so long, not both; and a length is one of time."""
    with pytest.raises(InvalidPolicies, match="not both"):
        UpdatePolicy("windowed", occurrences=3, duration="1d")
    with pytest.raises(InvalidDuration):
        policies.update_policy("windowed soon")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({}, Retention(timedelta(days=30), timedelta(days=90), 20)),
        ({"success": "7d", "failure": None}, Retention("7d", None)),
        ({"success": None, "keep_last": 0}, Retention(None, keep_last=0)),
        (Retention("1h"), Retention(timedelta(hours=1))),
    ],
)
def test_history_is_kept_by_age_with_a_last_few_in_any_case(written: object, expected: Retention) -> None:
    """On by default: 30 days, 90 for what failed, never fewer than 20."""
    assert policies.retention(written) == expected
    assert policies.retention(as_data(expected)) == expected


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("30d", "retention '30d' must say what is kept"),
        ({"keep_last": -1}, "retention keep_last '-1' must be from 0"),
        ({"days": 3}, "retention 'days' is not a key it has"),
    ],
)
def test_retention_that_says_not_what_is_refused(written: object, reason: str) -> None:
    """An age alone could mean either."""
    with pytest.raises(InvalidPolicies, match=reason):
        policies.retention(written)


@pytest.mark.parametrize(
    ("given", "name"),
    [("UTC", "UTC"), (UTC, "UTC"), (ZoneInfo("Europe/Berlin"), "Europe/Berlin"), ("Asia/Tokyo", "Asia/Tokyo")],
)
def test_a_zone_is_kept_by_name(given: object, name: str) -> None:
    """C-04."""
    assert policies.timezone(given) == name


def test_a_zone_must_have_a_name() -> None:
    """C-04: None is not the host's zone."""
    with pytest.raises(InvalidName, match="timezone name 'None'"):
        policies.timezone(None)


def test_a_description_is_text_of_bounded_length() -> None:
    """For people."""
    assert policies.description("Nightly.\nAsk Ana.") == "Nightly.\nAsk Ana."
    with pytest.raises(InvalidPolicies, match="description '5' must be text"):
        policies.description(5)
    with pytest.raises(InvalidPolicies, match="has 10,001 characters"):
        policies.description("x" * 10_001)
    assert len(policies.description("x" * 10_000)) == 10_000


def test_names_are_a_set_written_in_alphabetical_order() -> None:
    """A single text is one name, not its letters."""
    assert names("tags", "nightly") == ("nightly",)
    assert names("tags", {"b", "a"}) == ("a", "b")
    assert names("tags", iter(["b", "a", "b"])) == ("a", "b")
    for wrong in (5, None, b"ab", {"a": 1}):
        with pytest.raises(InvalidPolicies, match=r"tags .* must be a name or a list of names"):
            names("tags", wrong)
    with pytest.raises(InvalidName, match="tags name ''"):
        names("tags", [""])


def test_numbers_switches_and_lengths_take_nothing_that_merely_looks_like_one() -> None:
    """`True` is not 1, "yes" is not True."""
    assert whole("priority", -5, -10) == -5
    assert switch("enabled", False) is False
    assert length("grace", "90s", timedelta(seconds=1)) == timedelta(seconds=90)
    with pytest.raises(InvalidPolicies, match=r"priority '1\.0' must be a whole number from 0 to 2,147,483,647"):
        whole("priority", 1.0)
    with pytest.raises(InvalidPolicies, match="enabled 'yes' must be true or false"):
        switch("enabled", "yes")
    with pytest.raises(InvalidPolicies, match="grace '1s' must be at least 2s; instead: more"):
        length("grace", "1s", timedelta(seconds=2), "more")


@pytest.mark.parametrize(
    ("text", "rollout"),
    [
        ("rollout 10% after 10", Rollout(0.1)),
        ("rollout 10% 50% 100% after 20 failures 1", Rollout((0.1, 0.5, 1), 20, 1)),
        ("rollout dry 5 33.33% after 10", Rollout(1 / 3, dry_run=5)),
        ("rollout dry 5", Rollout(dry_run=5)),
    ],
)
def test_a_rollout_is_one_text_that_reads_back_equal(text: str, rollout: Rollout) -> None:
    policy = policies.update_policy(text)
    assert (policy, str(policy), policy.rollout) == (policies.update_policy(rollout), text, rollout)
    assert policies.update_policy(str(policy)) == policy


@pytest.mark.parametrize(
    "given",
    ["rollout", "rollout 0%", "rollout 101%", "rollout 50% 10%", "rollout 10", "rollout after 3", "rollout 10% after",
     "rollout 10% after 3 after 4", "rollout 10% often", "rollout 1% 2% 3% 4% 5% 6% 7% 8% 9%"],
)  # fmt: skip
def test_a_rollout_that_makes_no_sense_is_refused_with_what_to_write(given: str) -> None:
    with pytest.raises(InvalidPolicies, match="rollout 10%"):
        policies.update_policy(given)


def test_a_share_is_a_function_of_the_id_and_a_larger_one_takes_what_a_smaller_one_took() -> None:
    ids = [occurrence_id("job_1", datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=n)) for n in range(4000)]
    tenth, half = ({id_ for id_ in ids if Rollout(share).takes(id_)} for share in (0.1, 0.5))
    assert tenth < half
    assert 320 < len(tenth) < 480
    assert 1880 < len(half) < 2120
    assert not any(Rollout(0.5, dry_run=1).takes(id_) for id_ in ids)
