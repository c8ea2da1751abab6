"""Drafts: what one definition changes in the store, the same for code and for files."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from everytick import Change, Everytick, every
from everytick.domain.changes import Put, Remove, Tell
from everytick.domain.facts import Resume
from everytick.domain.job import Job
from everytick.sources.drafting import done, draft, edited, edits_of, removal
from everytick.stores.base import JobRecord, Stored
from everytick.stores.memory import MemoryStore
from tests.stores.clock import ManualClock


def job(name: str = "a", schedule: str = "1h", tick: Everytick | None = None, **policies: Any) -> Job:
    defined = (tick or Everytick("memory://", name="shop")).define(name, every(schedule), **policies)
    defined.command("work", "true")
    return defined.job


def test_a_definition_is_added_changed_or_unchanged() -> None:
    """S0-059."""
    known = replace(job(grace="5m"), version=3)

    assert draft(job(), None).change == Change("a", "added", None)
    assert draft(job(grace="5m"), known).change == Change("a", "unchanged", 3)
    assert draft(job(overlap="queue", schedule="2h"), known).change == Change(
        "a", "changed", None, ("schedule", "grace", "overlap")
    )


def test_the_edits_expect_what_the_draft_has_seen() -> None:
    """So that a job which is edited meanwhile is drafted again."""
    known, other = replace(job(), version=3), replace(job("b"), version=7)
    drafts = [draft(job(priority=1), known), draft(job("c"), None), removal(other)]

    assert edits_of(drafts) == [Put(job(priority=1), 3), Put(job("c"), 0), Remove("b", expected=7)]
    assert edits_of(drafts, unreadable={"c"}, removes=False) == [Put(job(priority=1), 3), Put(job("c"), None)]
    assert edits_of([draft(job(), known)]) == []


def test_the_changes_that_were_stored_know_their_versions() -> None:
    known = replace(job(), version=3)
    drafts = [draft(job(priority=1), known), draft(job("b"), None), draft(job("c"), replace(job("c"), version=5))]
    stored = [Stored("id-a", 4, changed=True), Stored("id-b", 1, changed=True)]

    assert [each.version for each in done(drafts, edits_of(drafts), stored)] == [4, 1, 5]


def test_a_fact_about_the_schedule_is_a_change_without_a_new_version() -> None:
    known = replace(job(), version=3)
    drafted = draft(job(), known, Resume("file"))

    assert drafted.change == Change("a", "changed", 3, ("resumed",))
    assert edits_of([drafted]) == [Tell("a", Resume("file"), 3)]


@pytest.mark.parametrize("is_enabled", [False, True])
def test_what_an_operation_switched_stays_unless_the_definition_says_it(is_enabled: bool) -> None:
    """C-21: the newest word counts; a definition that says nothing has none."""
    switched = edited(job(), None, {"enabled": is_enabled})

    assert draft(job(), switched).change.kind == "unchanged"
    assert draft(job(enabled=not is_enabled), switched).change.parts == ("enabled",)


def test_a_job_that_only_its_defaults_disabled_runs_again_without_them() -> None:
    """No operation has switched it off."""
    before = job(tick=Everytick("memory://", name="shop", defaults={"enabled": False}))
    drafted = draft(job(), before)

    assert drafted.job is not None
    assert drafted.job.enabled


async def test_code_replaces_definitions_that_cannot_be_read_however_many(clock: ManualClock) -> None:
    """A store that was written by a newer everytick lists none of them; each tells itself by a conflict."""

    class Unreadable(MemoryStore):
        async def list(
            self, *, removed: bool = False, after: str = "", limit: int | None = None
        ) -> Sequence[JobRecord]:
            return []

    store = Unreadable(clock)
    names = "abcdefgh"
    await store.apply([Put(job(name)) for name in names], "code:shop")
    tick = Everytick(store, name="shop")
    for name in names:
        job(name, tick=tick, priority=1)

    changes = await tick.apply(tick.definitions)

    assert [(each.name, each.version) for each in changes] == [(name, 2) for name in names]
