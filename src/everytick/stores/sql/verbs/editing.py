"""apply: changes of jobs, all in one transaction or none.

The order of locks is that of every verb: rows of `job` first, where a rename writes, then where each job stands, by
rising key. Texts of needs come before both, since two transactions may write one text at the same moment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import takewhile

from everytick.domain.changes import Edit, Put, Remove, Rename, Tell, in_order, refuse_unexpected
from everytick.domain.facts import Trigger, request_of
from everytick.domain.job import Job
from everytick.domain.needs import RETIRED
from everytick.domain.policies import UpdateKind
from everytick.domain.snapshots import ASKED_NOW, Edition, JobSnapshot
from everytick.domain.upcoming import editions_to_come, in_force, trial_of
from everytick.domain.updates import asked_edition, is_asked, numbered
from everytick.errors import DuplicateDefinition, NotFound
from everytick.stores.base import REMEMBERED, Stored
from everytick.stores.definitions import write_definition
from everytick.stores.sql.commands import Ask, Forget, Found, KeyTaken, Rows, Verb, Versions, look, many
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row
from everytick.stores.sql.verbs.coming_into_force import go_by_version
from everytick.stores.sql.verbs.creating import band_row, create_all, version_arguments
from everytick.stores.sql.verbs.depending import depend, names_needed
from everytick.stores.sql.verbs.facts import ask, write_fact
from everytick.stores.sql.verbs.locked_job import foretell, held_job, revise, version_of, wake
from everytick.stores.sql.verbs.promises import edit_promises
from everytick.stores.storing_rules import (
    forgettable,
    has_room,
    is_lasting,
    name_taken,
    refuse_edit,
    under_id,
    updated_by,
)


def apply(q: ColdQueries, changes: Sequence[Edit], by: str) -> Verb[list[Stored]]:
    """Make every change. Return the results in their order."""
    if names_needed(changes):
        yield q.hold_dependencies()
    yield q.know_needs(texts=_needs(changes))
    known = yield from _hold_names(q, changes)
    now: datetime = yield Ask.NOW
    stored = yield from _rename_held(q, changes, known, now, by)
    stored |= yield from _put_held(q, changes, known, now, by)
    yield from depend(q, changes, stored, now)
    made = {changes[place].name: result for place, result in stored.items()}
    for place, change in in_order(changes):
        if isinstance(change, (Tell, Remove)):
            stored[place] = yield from _tell_or_remove(q, change, known, made.get(change.name), now, by)
    yield from foretell(q, _moved(changes, stored))
    return [stored[place] for place in range(len(changes))]


def _hold_names(q: ColdQueries, changes: Sequence[Edit]) -> Verb[dict[str, Row]]:
    """Rename jobs, lock their rows, and return the jobs by their new names."""
    renamed = {change.name: change.to for change in changes if isinstance(change, Rename)}
    for name, to in renamed.items():
        yield from _rename(q, name, to)
    yield from _make_room_for_names(q, [change.name for change in changes if isinstance(change, Put)])
    # The jobs that others depend on are locked too: they are marked as needed.
    names = sorted({renamed.get(change.name, change.name) for change in changes} | names_needed(changes))
    # A lock_names that has waited does not see what the lock's last holder wrote. So the jobs are read after it.
    yield q.lock_names(names=names)
    found: Rows = yield q.named_jobs(names=names)
    known = {row["name"]: row for row in found}
    now: datetime = yield Ask.NOW
    there = {name: _asked_version(row, now) for name, row in known.items() if row["removed_at"] is None}
    refuse_unexpected(changes, there | {name: there.get(to, 0) for name, to in renamed.items()})
    return known


def _asked_version(row: Row, now: datetime) -> int:
    """Return the version that was asked for last: the newest, or that of a window which is still open."""
    version: int = row["version"]
    follows: int | None = row["follows"]
    return version if follows is None or row["window_through"] <= now else follows


def _is_stored(row: Row, change: Put, now: datetime) -> Verb[bool]:
    """Whether the definition equals the one that was asked for last."""
    follows: int | None = row["follows"]
    if row["rollout"] is not None and is_lasting(change):
        return False
    if follows is None:
        return bool(row["definition"] == write_definition(change.job))
    found: Found = yield Versions(tuple((row["job_key"], number) for number in {follows, follows + 1, row["version"]}))
    editions = [version.edition for version in found.read.values()]
    named = change.policy is not None
    return len(editions) > 1 and is_asked(editions, change.job, now, is_lasting=is_lasting(change), is_named=named)


def _rename(q: ColdQueries, name: str, to: str) -> Verb[None]:
    found: Rows = yield q.job_in_service(name=name)
    if not found:
        raise NotFound("job", name)
    try:
        renamed: Rows = yield q.rename_job(job_key=found[0]["job_key"], name=to)
    except KeyTaken:
        renamed = ()
    if not renamed:
        raise DuplicateDefinition(name_taken(to))


def _make_room_for_names(q: ColdQueries, names: Sequence[str]) -> Verb[None]:
    """Rename a job that was removed long ago, so that a new job can have its name. Its history stays."""
    now: datetime = yield Ask.NOW
    for old in (yield q.forgotten_jobs(names=names, forgotten_at=now - REMEMBERED)):
        yield q.rename_job(job_key=old["job_key"], name=f"{old['name']} (removed {old['removed_at']})")


def _rename_held(
    q: ColdQueries, changes: Sequence[Edit], known: dict[str, Row], now: datetime, by: str
) -> Verb[dict[int, Stored]]:
    """Give each renamed job a version with its new name."""
    stored: dict[int, Stored] = {}
    for place, change in enumerate(changes):
        if isinstance(change, Rename):
            row = known[change.to]
            if row["removed_at"] is not None:
                raise NotFound("job", change.name)
            job = (yield from version_of(row["job_key"], _asked_version(row, now))).job
            stored[place] = yield from _edit(q, row, None, replace(job, name=change.to), now, by)
    if stored:
        renamed = [change.to for change in changes if isinstance(change, Rename)]
        found: Rows = yield q.named_jobs(names=renamed)
        known |= {row["name"]: row for row in found}
    return stored


def _put_held(
    q: ColdQueries, changes: Sequence[Edit], known: Mapping[str, Row], now: datetime, by: str
) -> Verb[dict[int, Stored]]:
    puts = [(place, change) for place, change in enumerate(changes) if isinstance(change, Put)]
    stored: dict[int, Stored] = {}
    for place, change in puts:
        row = known.get(change.name)
        if row is not None:
            is_same = row["removed_at"] is None and (yield from _is_stored(row, change, now))
            same = Stored(row["job_id"], _asked_version(row, now), changed=False)
            stored[place] = same if is_same else (yield from _edit(q, row, change, change.job, now, by))
    new = [(place, change.job) for place, change in puts if change.name not in known]
    ids = yield from create_all(q, [job for _, job in new], now, by)
    return stored | {place: Stored(ids[job.name], 1, changed=True) for place, job in new}


def _tell_or_remove(
    q: ColdQueries,
    change: Tell | Remove,
    known: Mapping[str, Row],
    made: Stored | None,
    now: datetime,
    by: str,
) -> Verb[Stored]:
    """Make the change to a job that is locked, or that this transaction created or brought back."""
    row, changed = known.get(change.name), True
    if made is not None:
        id_, version = made.job_id, made.version
        row = yield from held_job(q, id_)
    elif row is not None and row["removed_at"] is None:
        id_, version = row["job_id"], _asked_version(row, now)
    else:
        raise NotFound("job", change.name)
    match change:
        case Tell(fact=Trigger() as asked):
            changed = (yield from ask(q, id_, request_of(asked, ASKED_NOW))).receipt.changed
        case Tell():
            changed = yield from write_fact(q, row["job_key"], change.fact, now)
            if changed:
                yield from revise(q, row["job_key"], now)
        case Remove():
            yield from remove(q, row["job_key"], change.retire_after, now, by)
    return Stored(id_, version, changed)


def remove(q: ColdQueries, job_key: int, retire_after: timedelta, now: datetime, by: str) -> Verb[None]:
    """Take a locked job out of service."""
    yield q.remove_job(job_key=job_key, removed_at=now, removed_by=by)
    yield q.retire_job(job_key=job_key, retire_at=now + retire_after, needs=RETIRED)
    yield q.recheck_promises(job_key=job_key, now=now)
    yield from wake(q, job_key, now)


def _edit(q: ColdQueries, row: Row, change: Put | None, job: Job, now: datetime, by: str) -> Verb[Stored]:
    """Write the versions of an edit. Occurrences without a start take one that is in force now; others keep theirs."""
    job_key, newest, oldest = row["job_key"], row["version"], row["oldest_version"]
    waiting = tuple((job_key, version) for version in range(oldest, newest + 1))
    found: Found = yield Versions(waiting)
    readable = [found.read[key].edition for key in takewhile(found.read.__contains__, waiting)]
    is_readable = len(readable) == len(waiting)
    job = under_id(job, row["job_id"])
    editions: tuple[Edition, ...] = (Edition(job, now),)
    if is_readable and _may_wait(readable, change, job, now):
        seen: Mapping[str, JobSnapshot] = yield look([row["job_id"]])
        editions = updated_by(seen[row["job_id"]], change, job, now)
    if not has_room(len(waiting), job, len(editions)):
        oldest += forgettable(readable, now)
    refuse_edit(row["name"], newest - oldest + 1, job, len(editions))
    yield q.unpark(job_key=job_key)
    if not is_readable:
        # No plan can use an unreadable version: the new one applies to all unplanned instants.
        oldest = newest + 1
    made = numbered(editions, newest, by)
    for edition in made:
        yield Forget(job_key, edition.job.version)
    yield many(q.add_version, [version_arguments(job_key, edition, edition.job.version, now) for edition in made])
    yield q.add_bands(bands=[band_row(job_key, edition.job, edition.job.version) for edition in made])
    yield from _edit_rows(q, job_key, made, readable if is_readable else (), oldest, now)
    yield from wake(q, job_key, now)
    return Stored(row["job_id"], asked_edition(made, now).job.version, changed=True)


def _may_wait(readable: Sequence[Edition], change: Put | None, job: Job, now: datetime) -> bool:
    """Whether a version of this edit may come into force later than now."""
    policy = job.settings.update_policy if change is None or change.policy is None else change.policy
    if policy.kind is not UpdateKind.IMMEDIATE or trial_of(readable) is not None:
        return True
    return bool(editions_to_come(readable, now))


def _edit_rows(
    q: ColdQueries, job_key: int, made: Sequence[Edition], known: Sequence[Edition], oldest: int, now: datetime
) -> Verb[None]:
    """Update the job's row and, to a version that is in force now, its unclaimed occurrences.

    `known` are the versions before it, or none if one cannot be read. A later one than that in force may have been in
    force before a clock was set back: what it has left is taken away too.
    """
    before = in_force(known, now) if known else None
    job, newest = made[0].job, made[-1].job.version
    if made[0].in_force_after != now:
        yield q.add_coming(job_key=job_key, job_id=job.id, version=newest, oldest_version=oldest)
        yield q.recheck_promises(job_key=job_key, now=now)
        return
    narrowed_at = now if before is not None and before.settings.recovery != job.settings.recovery else None
    yield q.edit_state(job_key=job_key, version=newest, oldest_version=oldest, needs=job.needs, narrowed_at=narrowed_at)
    yield from go_by_version(q, job_key, job, job.version)
    if job.settings.horizon is None:
        yield q.purge_coming(job_key=job_key)
    depends_on = job.settings.depends_on
    if depends_on and (before is None or before.settings.depends_on != depends_on):
        yield q.put_back_in_line(job_key=job_key, now=now)
    yield from edit_promises(q, job_key, known, job, now)
    if not job.enabled:
        yield q.put_all_back_in_line(job_key=job_key, now=now)
    elif not all(edition.job.enabled for edition in known) or not known:
        yield q.let_waits_go(job_key=job_key, now=now)


def _needs(changes: Sequence[Edit]) -> list[str]:
    """Return the texts of needs that jobs have after these changes; a rename and a fact leave them as they are."""
    texts = {change.job.needs for change in changes if isinstance(change, Put)}
    return sorted(texts | {RETIRED for change in changes if isinstance(change, Remove)})


def _moved(changes: Sequence[Edit], stored: Mapping[int, Stored]) -> list[str]:
    """Return the jobs whose next run may differ now. A new job has its first one already, unless it is paused."""
    found = {
        result.job_id: None
        for place, result in stored.items()
        if result.changed and not _moves_no_instant(changes[place], result)
    }
    return list(found)


def _moves_no_instant(change: Edit, stored: Stored) -> bool:
    if isinstance(change, Tell):
        return isinstance(change.fact, Trigger)
    return isinstance(change, Put) and stored.version == 1
