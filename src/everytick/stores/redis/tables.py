"""The tables of a copy: they remember which rows a verb has touched, and put rows back as their images say."""

from collections.abc import Iterable
from datetime import datetime
from typing import Unpack

from everytick.domain.snapshots import Request
from everytick.domain.statuses import ENDED, OccurrenceStatus
from everytick.stores.memory.rows import IndexEntry, JobRow, OccurrenceRow
from everytick.stores.memory.tables import AT_ONCE, OccurrenceChanges, Tables
from everytick.stores.redis.ended_rows import ColdHistory, HeldOccurrences
from everytick.stores.redis.rows import (
    JobImage,
    OccurrenceImage,
    is_same_but_tally,
    job_state,
    new_job,
    new_occurrence,
    set_job,
    set_occurrence,
    set_tally,
)
from everytick.stores.redis.watched import Numbers, Watched


class WatchedTables(Tables):
    """Tables that remember which jobs and occurrences a verb has touched."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: Watched[str, JobRow] = Watched()
        self.names: Watched[str, JobRow] = Watched()
        self.occurrences: HeldOccurrences = HeldOccurrences()
        self.handles: Watched[int, OccurrenceRow] = Watched()
        self.forgotten: Watched[tuple[datetime, str, OccurrenceStatus], int] = Watched()
        self.needs: Watched[str, None] = Watched()
        self.new_places: Numbers = Numbers()
        self.new_handles: Numbers = Numbers()
        self.touched_jobs: set[str] = set()
        self.touched_occurrences: set[str] = set()
        self.owned_anew: set[str] = set()

    def candidates(self) -> tuple[set[str], set[str]]:
        """Return the ids of the jobs and of the occurrences that may have changed, and forget them.

        Who looks at an occurrence may go on to its job. A claim changes nothing but the occurrence.
        """
        rows = [self.handles.peek(handle) for handle in self.handles.touched]
        occurrences = self.touched_occurrences | self.occurrences.touched | {row.id for row in rows if row is not None}
        touched = (self.occurrences.peek(id_) for id_ in occurrences)
        named = (self.names.peek(name) for name in self.names.touched)
        jobs = self.touched_jobs | self.jobs.touched | {row.job.id for row in touched if row is not None}
        jobs |= {row.id for row in named if row is not None}
        occurrences |= self.owned_anew
        self.forget()
        return jobs, occurrences

    def forget(self) -> None:
        """Forget what was touched."""
        self.touched_jobs, self.touched_occurrences, self.owned_anew = set(), set(), set()
        for table in (self.jobs, self.names, self.occurrences, self.handles):
            table.touched = set()

    def add_job(self, row: JobRow) -> None:
        """Add the job."""
        self.touched_jobs.add(row.id)
        row.history = ColdHistory(row.id)
        super().add_job(row)

    def depend(self, row: JobRow, needs_jobs: dict[str, str]) -> None:
        """Let the job depend on these jobs."""
        self.touched_jobs.add(row.id)
        super().depend(row, needs_jobs)

    def wake(self, row: JobRow, at: datetime | None) -> None:
        """Set the job's `wake_at`."""
        self.touched_jobs.add(row.id)
        super().wake(row, at)

    def add(self, row: OccurrenceRow) -> None:
        """Add the occurrence."""
        self.touched_occurrences.add(row.id)
        super().add(row)

    def change(self, row: OccurrenceRow, **changes: Unpack[OccurrenceChanges]) -> None:
        """Change these columns of the occurrence."""
        self.touched_occurrences.add(row.id)
        super().change(row, **changes)

    def touch(self, row: OccurrenceRow) -> None:
        """Note that a verb has changed the row itself."""
        self.touched_occurrences.add(row.id)

    def own(self, row: OccurrenceRow, node: str, token: int, now: datetime) -> None:
        """Make the node the owner."""
        self.owned_anew.add(row.id)
        super().own(row, node, token, now)

    def end(
        self,
        row: OccurrenceRow,
        status: OccurrenceStatus,
        at: datetime,
        error: str | None,
        now: datetime,
        *,
        report_due: bool,
    ) -> None:
        """End the occurrence."""
        self.touched_occurrences.add(row.id)
        super().end(row, status, at, error, now, report_due=report_due)

    def remove(self, row: OccurrenceRow) -> None:
        """Delete the occurrence."""
        self.touched_occurrences.add(row.id)
        self.touched_jobs.add(row.job.id)
        super().remove(row)
        # Another one may take its place in the same verb, which must not ask the server for the one that is gone.
        self.occurrences.absent.add(row.id)

    def release_early(self, needs: Iterable[str]) -> None:
        """Move early occurrences to the ready ones."""
        texts = list(needs)
        for text in texts:
            if text in self.early:
                self.touched_occurrences.update(row.id for row in self.early[text].through(self.time))
        super().release_early(texts)

    # ------------------------------------------------------------------------------------------- rows from images

    def set_job(self, id_: str, before: JobImage | None, image: JobImage | None) -> None:
        """Make the job's row what the image says, None: there is no such job. `before` is what the row is now."""
        row = self.jobs.peek(id_)
        if row is not None and before is not None and image is not None and is_same_but_tally(before, image):
            set_tally(row, image)
            return
        if row is not None:
            self._take_out(row)
        if image is None:
            return
        if row is None:
            row = new_job(id_, image)
            row.history = ColdHistory(id_)
        state = job_state(image)
        set_job(row, image)
        row.name, row.needs, row.wake_at = state["name"], state["needs"], None
        self.jobs[id_] = self.names[row.name] = row
        self.needs.setdefault(row.needs)
        for number, request in image.requests:
            self._put_request(row, number, request)
        super().depend(row, dict(image.needs_jobs))
        super().wake(row, state["wake_at"])
        self.promise(row)
        self._follow_service(row)

    def _follow_service(self, job: JobRow) -> None:
        """Let the retries that wait be claimable or not, as the job is enabled or disabled now."""
        for row in job.busy:
            if row.is_unclaimed != (row.claim_entry is not None):
                early = (self.early[row.needs], (row.ready_at, row.id, row)) if row.is_unclaimed else None
                self._reindex(row, row.line, early, row.report_entry)

    def _take_out(self, row: JobRow) -> None:
        super().wake(row, None)
        for cause, key in list(row.requests):
            self.answer(row, cause, key)
        super().depend(row, {})
        self.promising.pop(row.id, None)
        del self.jobs[row.id]
        if self.names.peek(row.name) is row:
            del self.names[row.name]

    def _put_request(self, row: JobRow, number: int, request: Request) -> None:
        key = request.cause, request.key
        row.requests[key] = request
        row.places[key] = place = (request.due_at or AT_ONCE, number, request)
        row.asked.add(place)
        self.open_requests[request.occurrence_id(row.id)][key] = row

    def set_occurrence(self, id_: str, before: OccurrenceImage | None, image: OccurrenceImage | None) -> None:
        """Make the row what the image says, None: there is no such occurrence. `before` is what the row is now."""
        row = self.occurrences.peek(id_)
        if row is not None and before is not None and image is not None and before.made == image.made:
            owner = row.owner
            set_occurrence(row, before, image)
            self._reindex(row, self._line(row), self._claim_place(row, image), self._report_entry(row))
            self._change_owner(row, owner)
            return
        if row is not None:
            self._detach(row)
        if image is not None:
            self._attach(new_occurrence(id_, self.jobs[image.job_id], image), image)

    def _detach(self, row: OccurrenceRow) -> None:
        """Take the row out of every index."""
        self._reindex(row, None, None, None)
        if row.owner is not None:
            self.owned[row.owner].pop(row.handle, None)
        row.job.history.remove((row.creation.scheduled_for, row.id, row))
        del self.occurrences[row.id]
        self.handles.pop(row.handle, None)

    def _attach(self, row: OccurrenceRow, image: OccurrenceImage) -> None:
        """Put the row into the indexes that its columns name."""
        self.occurrences[row.id] = self.handles[row.handle] = row
        self.needs.setdefault(row.needs)
        row.job.history.add((row.creation.scheduled_for, row.id, row))
        self._reindex(row, self._line(row), self._claim_place(row, image), self._report_entry(row))
        self._change_owner(row, None)

    def _claim_place(self, row: OccurrenceRow, image: OccurrenceImage) -> IndexEntry | None:
        """Return its place among the ready or the early occurrences, as the process had it that wrote the image."""
        if not row.is_unclaimed:
            return None
        if image.is_ready:
            return self.ready[row.needs], (-row.priority, row.line_at, row.id, row)
        return self.early[row.needs], (row.ready_at, row.id, row)

    # --------------------------------------------------------------------------------------------- what has ended

    def history_of(self, id_: str) -> ColdHistory | None:
        """Return the history of a job, None if there is no such job."""
        row = self.jobs.peek(id_)
        if row is None:
            return None
        assert isinstance(row.history, ColdHistory), "every job of a copy has such a history"
        return row.history

    def cool(self, id_: str, most: int) -> list[str]:
        """Drop ended occurrences of the job but for the newest `most`. Return their ids."""
        history = self.history_of(id_)
        if history is None or history.held <= 2 * most:
            return []
        ended = [row for row in history.rows if row.status in ENDED]
        if len(ended) <= most:
            return []
        floor = ended[most - 1].creation.scheduled_for
        old = [row for row in ended[most:] if row.creation.scheduled_for < floor]
        dropped = [row for row in old if not row.report_due]
        for row in dropped:
            self._detach(row)
        if old and (history.warm_from is None or history.warm_from < floor):
            history.warm_from, self.occurrences.is_whole = floor, False
        return [row.id for row in dropped]

    def is_ready(self, row: OccurrenceRow) -> bool:
        """Whether the row stands among the ready ones."""
        return row.claim_entry is not None and row.claim_entry[0] is not self.early.get(row.needs)
