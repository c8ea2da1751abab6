"""The copy of the store that each process works on: the verbs of the store in memory, and what they have changed.

A verb runs on the copy as it would in memory. `changes` then compares the rows that it touched with their images, the
values that Redis has of them, and gives the fields to write. If Redis takes them, `keep` makes them the new images; if
another process was faster, `undo` puts the rows back as they were, and the verb runs again on what is new.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any, TypeVar

from everytick.errors import EverytickError
from everytick.stores.memory.bell import Bell
from everytick.stores.memory.rows import UnreadableJob
from everytick.stores.memory.store import MemoryStore
from everytick.stores.open_batches import OpenBatches
from everytick.stores.redis.entries import Changes, Member
from everytick.stores.redis.rows import (
    JobImage,
    OccurrenceImage,
    changed_job,
    changed_occurrence,
    has_ended,
    is_whole_job,
    job_changes,
    job_image,
    name_in,
    occurrence_changes,
    occurrence_image,
    occurrence_members,
)
from everytick.stores.redis.tables import WatchedTables
from everytick.stores.redis.watched import KeptList, KeptTable, Starts

V = TypeVar("V")

JOB, OCCURRENCE = "job/", "/occurrence/"

_EARLIEST = datetime.min.replace(tzinfo=UTC)

WARM = 1
"""How many ended occurrences of each job the copy holds at least."""


class Replica:
    """The rows of a store in memory, its verbs, and what the last one has changed.

    `_changed_jobs` and `_changed_occurrences` are the rows that the last verb changed, each as its image becomes if
    Redis takes the changes. `_looked_at` are the jobs that the verb may have read or changed.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        tokens: Callable[[], int],
        open_batches: OpenBatches[str],
        held_at_most: int,
    ) -> None:
        self._tables, self._bell, self._clock = WatchedTables(), Bell(), clock
        # A copy that is read anew goes on with the batches that are open.
        self.verbs = MemoryStore(clock, tokens=tokens, tables=self._tables, bell=self._bell, open_batches=open_batches)
        self._held_at_most = held_at_most
        self._warmed: set[str] = set()
        self._job_images: dict[str, JobImage] = {}
        self._occurrence_images: dict[str, OccurrenceImage] = {}
        self._changed_jobs: dict[str, JobImage | None] = {}
        self._changed_occurrences: dict[str, OccurrenceImage | None] = {}
        self._looked_at: set[str] = set()
        self.left_out: set[str] = set()
        """The paths of rows that were left out: of a job that is not whole, and of occurrences without their job."""
        self._kept: dict[str, KeptTable[Any, Any]] = {
            table.key: table
            for table in (
                KeptTable("nodes", self._tables, "nodes"),
                KeptTable("name-sets", self._tables, "name_sets"),
                KeptTable("reaches", self._tables, "reaches"),
                KeptTable("starts", self._tables, "starts", Starts),
                KeptTable("forgotten", self._tables, "forgotten"),
                KeptTable("needs", self._tables, "needs"),
                KeptTable("users", self._tables, "users"),
                KeptTable("tokens", self._tables, "tokens"),
                KeptTable("sessions", self._tables, "sessions"),
                KeptTable("failures", self._tables, "failures"),
            )
        }
        lists = KeptList("limit-changes", self._tables.limit_changes), KeptList("deeds", self._tables.deeds)
        self._lists = {table.key: table for table in lists}
        self._kept_numbers = self._drawn()

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the small tables, each a hash."""
        return (*self._kept, *self._lists, "numbers")

    @property
    def has_rung(self) -> bool:
        """Whether a verb has rung the bell since `begin`."""
        return self._bell.has_rung

    @property
    def unreadable(self) -> dict[str, UnreadableJob]:
        """The jobs whose definition this process cannot read, by id."""
        return self._tables.unreadable

    def _drawn(self) -> dict[str, str | None]:
        return {"handles": str(self._tables.new_handles.last), "places": str(self._tables.new_places.last)}

    # ---------------------------------------------------------------------------------------------- what has changed

    def begin(self) -> None:
        """Forget what earlier verbs have touched."""
        self._bell.forget()
        self._tables.forget()
        for table in self._kept.values():
            table.forget()

    def changes(self) -> Changes:
        """Return what the verb has changed since `begin`, by key."""
        jobs, occurrences = self._tables.candidates()
        self._looked_at = jobs
        self._changed_jobs, self._changed_occurrences = {}, {}
        changes: Changes = {}
        for id_ in sorted(jobs):
            self._add_job(changes, id_)
        for id_ in sorted(occurrences):
            self._add_occurrence(changes, id_)
        tables: list[KeptTable[Any, Any] | KeptList] = [*self._kept.values(), *self._lists.values()]
        for table in tables:
            if changed := table.changes():
                changes[table.key] = changed
        if (drawn := self._drawn()) != self._kept_numbers:
            changes["numbers"] = drawn
        return changes

    def _add_job(self, changes: Changes, id_: str) -> None:
        row, before = self._tables.jobs.peek(id_), self._job_images.get(id_)
        after = None if row is None else job_image(row)
        if before == after:
            return
        self._changed_jobs[id_] = after
        changes[JOB + id_] = None if after is None else job_changes(id_, before, after)

    def _add_occurrence(self, changes: Changes, id_: str) -> None:
        row, before = self._tables.occurrences.peek(id_), self._occurrence_images.get(id_)
        after = None if row is None else occurrence_image(row, is_ready=self._tables.is_ready(row))
        if before == after:
            return
        self._changed_occurrences[id_] = after
        known = before if after is None else after
        assert known is not None, "a row that neither was nor is there has not changed"
        key = f"{JOB}{known.job_id}{OCCURRENCE}{id_}"
        changes[key] = None if after is None else occurrence_changes(id_, before, after)

    def members(self) -> Iterator[Member]:
        """Give what the changes add to, and take from, the sets by which rows are found."""
        for job_id, job in self._changed_jobs.items():
            if (job is None) != (job_id not in self._job_images):
                yield "SREM" if job is None else "SADD", "jobs", job_id
        for id_, after in self._changed_occurrences.items():
            yield from occurrence_members(id_, self._occurrence_images.get(id_), after)

    def is_apart_from(self, entries: Iterable[Changes], changes: Changes) -> bool:
        """Whether the entries of others leave the rows alone that the last verb changed, and the jobs it looked at."""
        paths = {*chain.from_iterable(entries)}
        jobs = {path.removeprefix(JOB).partition(OCCURRENCE)[0] for path in paths}
        return paths.isdisjoint(changes) and jobs.isdisjoint(self._looked_at)

    def keep(self, changes: Changes) -> None:
        """Take the changes of the last verb for what Redis has."""
        _put_all(self._job_images, self._changed_jobs)
        _put_all(self._occurrence_images, self._changed_occurrences)
        changed = self._changed_occurrences.values()
        self._warmed.update(image.job_id for image in changed if image is not None and has_ended(image))
        # What was absent may exist now.
        self._tables.occurrences.absent.clear()
        for key, fields in changes.items():
            table = self._kept.get(key) or self._lists.get(key)
            if table is not None and fields is not None:
                table.keep(fields)
        self._kept_numbers = self._drawn()

    def undo(self, changes: Changes) -> None:
        """Put back what the last verb has changed: Redis did not take it."""
        self._set(
            {id_: (now, self._job_images.get(id_)) for id_, now in self._changed_jobs.items()},
            {id_: (now, self._occurrence_images.get(id_)) for id_, now in self._changed_occurrences.items()},
        )
        # What the verb had deleted exists again.
        self._tables.occurrences.absent -= self._occurrence_images.keys() & self._changed_occurrences.keys()
        for key, fields in changes.items():
            if key in self._kept and fields is not None:
                self._kept[key].put_back(fields)
        for table in self._lists.values():
            table.undo()
        self._tables.new_handles.last, self._tables.new_places.last = map(int, map(str, self._kept_numbers.values()))
        self.begin()

    # ------------------------------------------------------------------------------------------ what others have done

    def take(self, changes: Changes) -> None:
        """Do what another process has written. An entry names all fields of what is new, else those that changed."""
        jobs: dict[str, JobImage | None] = {}
        occurrences: dict[str, OccurrenceImage | None] = {}
        for key, fields in changes.items():
            if key.startswith(JOB):
                self._read(key, fields, jobs, occurrences)
            elif fields is not None:
                self._apply_table(key, fields)
        self._set(
            {id_: (self._job_images.get(id_), image) for id_, image in jobs.items()},
            {id_: (self._occurrence_images.get(id_), image) for id_, image in occurrences.items()},
        )
        _put_all(self._job_images, jobs)
        _put_all(self._occurrence_images, occurrences)
        self._warmed.update(image.job_id for image in occurrences.values() if image is not None)
        self._tables.occurrences.absent.clear()
        self.begin()

    # ------------------------------------------------------------------------------------------- what has ended

    def hold(self, rows: Changes) -> None:
        """Hold rows that a verb has asked for, or will ask for."""
        absent = set(self._tables.occurrences.absent)
        self.take({path: fields for path, fields in rows.items() if _id_in(path) not in self._occurrence_images})
        self._tables.occurrences.absent = absent

    def leave_cold(self, job_id: str, warm_from: datetime | None) -> None:
        """Note that older occurrences of a job than this were not read. None means all were read."""
        history = self._tables.history_of(job_id)
        if history is not None and warm_from is not None:
            history.warm_from, self._tables.occurrences.is_whole = warm_from, False

    def warm(self, job_id: str, down_to: datetime | None) -> None:
        """Note that all occurrences of a job from this instant on are held. None means all."""
        history = self._tables.history_of(job_id)
        if history is not None and history.warm_from is not None and (down_to is None or down_to < history.warm_from):
            history.warm_from = down_to

    @contextmanager
    def patchy(self) -> Iterator[None]:
        """Let a verb walk over histories as far as they are held."""
        histories = [self._tables.history_of(id_) for id_ in list(self._tables.jobs)]
        for history in histories:
            if history is not None:
                history.is_patchy = True
        try:
            yield
        finally:
            for history in histories:
                if history is not None:
                    history.is_patchy = False

    def note_absent(self, ids: Iterable[str]) -> None:
        """Note that the server has no occurrences of these ids, until something is written."""
        self._tables.occurrences.absent.update(ids)

    def unknown(self, ids: Iterable[str]) -> list[str]:
        """Return the ids whose existence the copy does not know."""
        held = self._tables.occurrences
        return [] if held.is_whole else [id_ for id_ in ids if held.peek(id_) is None and id_ not in held.absent]

    def filled_with(self, id_: str) -> list[str]:
        """Return all occurrences of the backfill that made this one: who asks for one asks for them all."""
        jobs = (row for row in dict.values(self._tables.jobs) if row.backfills)
        filled = (backfill.filled for row in jobs for backfill in row.backfills.values() if id_ in backfill.filled)
        return list(next(filled, ()))

    def cold_jobs(self, ids: Iterable[str] | None, down_to: datetime) -> list[tuple[str, datetime]]:
        """Return the jobs whose history the copy lacks from this instant on, and since when it holds each."""
        cold = []
        for id_ in list(self._tables.jobs) if ids is None else ids:
            history = self._tables.history_of(id_)
            if history is not None and history.warm_from is not None and history.warm_from > down_to:
                cold.append((id_, history.warm_from))
        return cold

    def prunable(self) -> list[tuple[str, datetime]]:
        """Return the jobs of which the copy does not hold all, and before when their occurrences may be forgotten."""
        old, now = [], self._clock()
        for id_, _ in self.cold_jobs(None, _EARLIEST):
            keep = self._tables.jobs[id_].retention
            ages = [age for age in (keep.success, keep.failure) if age]
            if ages:
                old.append((id_, now - min(ages)))
        return old

    def warm_from(self, job_id: str) -> datetime | None:
        """Return from when on the copy holds all occurrences of a job. None means all."""
        history = self._tables.history_of(job_id)
        return None if history is None else history.warm_from

    def cool(self) -> None:
        """Drop what has ended and is not among the newest of its job."""
        warmed, self._warmed = self._warmed, set()
        most = max(WARM, self._held_at_most // max(len(self._tables.jobs), 1)) if warmed else 0
        for job_id in warmed:
            for id_ in self._tables.cool(job_id, most):
                del self._occurrence_images[id_]

    def _read(
        self,
        key: str,
        fields: Mapping[str, str | None] | None,
        jobs: "dict[str, JobImage | None]",
        occurrences: "dict[str, OccurrenceImage | None]",
    ) -> None:
        job_id, _, id_ = key.removeprefix(JOB).partition(OCCURRENCE)
        if id_:
            known = self._occurrence_images.get(id_)
            # What is not held, and not written whole, has ended long ago.
            if job_id not in self.unreadable and (fields is None or known is not None or "made" in fields):
                if fields is not None and job_id not in jobs and job_id not in self._job_images:
                    # While a copy is read, others make jobs: the log brings them, with their occurrences.
                    self.left_out.add(key)
                    return
                occurrences[id_] = None if fields is None else changed_occurrence(known, fields)
        elif fields is None:
            jobs[job_id] = None
            self.unreadable.pop(job_id, None)
        elif (image := self._readable(job_id, fields)) is not None:
            jobs[job_id] = image

    def _readable(self, job_id: str, fields: Mapping[str, str | None]) -> JobImage | None:
        """Return the image of a job, None if this process cannot read its definition: then others plan and run it."""
        before = self._job_images.get(job_id)
        if before is None and not is_whole_job(fields):
            self._hear_of(job_id, fields)
            return None
        try:
            return changed_job(job_id, before, fields)
        except EverytickError as error:
            name = name_in(fields["state"]) if "state" in fields else ""
            self.unreadable[job_id] = UnreadableJob(name, str(error))
            return None

    def _hear_of(self, job_id: str, fields: Mapping[str, str | None]) -> None:
        """Note a change of a job that is not held: it cannot be read, or was deleted before the copy was read."""
        known, state = self.unreadable.get(job_id), fields.get("state")
        if known is None:
            self.left_out.add(JOB + job_id)
        elif state is not None:
            self.unreadable[job_id] = replace(known, name=name_in(state))

    def lacks(self, path: str) -> bool:
        """Whether the row of this path, or that of its job, is not held and cannot be read either."""
        job_id = path.removeprefix(JOB).partition(OCCURRENCE)[0]
        return job_id not in self._job_images and job_id not in self.unreadable

    def _apply_table(self, key: str, fields: Mapping[str, str | None]) -> None:
        if key in self._kept:
            self._kept[key].keep(fields)
            self._kept[key].put_back(fields)
        elif key in self._lists:
            self._lists[key].add(fields)
        elif key == "numbers":
            self._tables.new_handles.last, self._tables.new_places.last = (
                int(fields[name] or 0) for name in ("handles", "places")
            )
            self._kept_numbers = self._drawn()

    def _set(
        self,
        jobs: "Mapping[str, tuple[JobImage | None, JobImage | None]]",
        occurrences: "Mapping[str, tuple[OccurrenceImage | None, OccurrenceImage | None]]",
    ) -> None:
        """Make rows what images say. Each pair is the image of the row as it is now, and of what it becomes."""
        for id_, (now, image) in jobs.items():
            if image is not None:
                self._tables.set_job(id_, now, image)
        for id_, (is_, becomes) in occurrences.items():
            self._tables.set_occurrence(id_, is_, becomes)
        for id_, (now, image) in jobs.items():
            if image is None:
                self._tables.set_job(id_, now, None)


def _id_in(path: str) -> str:
    return path.removeprefix(JOB).partition(OCCURRENCE)[2]


def _put_all(images: dict[str, V], changed: "Mapping[str, V | None]") -> None:
    for id_, image in changed.items():
        if image is None:
            images.pop(id_, None)
        else:
            images[id_] = image
