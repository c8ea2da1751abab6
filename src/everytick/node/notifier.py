"""The notifier: asks for the notices that follow from a reported end, at least once each and never twice."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from everytick.deciding.notices import NEWS, Notice, event_of, notice_job, notices_of, past_cause
from everytick.domain.changes import Put
from everytick.domain.config import Overrides
from everytick.domain.facts import Trigger
from everytick.domain.ids import job_id
from everytick.domain.job import Job, same_definition
from everytick.domain.notices import OWNER
from everytick.domain.occurrence import Occurrence, TaskRun
from everytick.domain.steps import OccurrenceEnd
from everytick.errors import JobDisabled, NotFound, OccurrenceExists
from everytick.stores.base import HistoryFilter
from everytick.stores.protocols import HistoryStore, JobStore

_log = logging.getLogger("everytick.notices")

_AROUND = 50
"""How many ends are read to find the one before and the one after a reported end.

History is read by instants and judged by ends. The two orders differ by as many places as the job has occurrences at
once, which are hardly ever fifty.
"""


class Notifier:
    """Decides by the history whether an end is worth a notice, and asks for a run of the job that sends it."""

    def __init__(self, jobs: JobStore, past: HistoryStore) -> None:
        self._jobs, self._past = jobs, past

    async def tell(self, ended: OccurrenceEnd) -> None:
        """Ask for the notices that follow from this end. Asking again for the same ones changes nothing."""
        if ended.status not in NEWS:
            return
        for notice in notices_of(ended.id, await self._around(ended)):
            await self._ask(ended.job_id, notice)

    async def _around(self, ended: OccurrenceEnd) -> list[Occurrence]:
        """Return the ends of the job by which this one is judged: the newest, and those of the instants before it."""
        about = HistoryFilter(job_id=ended.job_id, statuses=tuple(NEWS), limit=_AROUND)
        before = replace(about, through=ended.header.scheduled_for)
        found = list((await self._past.history(about)).occurrences)
        if len(found) == _AROUND and ended.id not in {each.id for each in found[: _AROUND // 2]}:
            found += (await self._past.history(before)).occurrences
        cause = next((past_cause(each) for each in found if each.id == ended.id), None)
        if cause is not None:
            for page in (replace(about, cause=cause), replace(before, cause=cause)):
                found += (await self._past.history(page)).occurrences
        return found

    async def _ask(self, subject: str, notice: Notice) -> None:
        record = (await self._jobs.get([subject])).get(subject)
        # The newest definition says who is told: a corrected address counts at once.
        job = None if record is None else record.job
        sender = None if job is None else notice_job(job, notice.kind)
        if job is None or sender is None:
            return
        end = notice.occurrence
        reason = f"job '{job.name}': occurrence {end.id} {end.status}"
        # Without a call's number: the same key never asks for a second notice, also after a failure of the first.
        fact = Trigger(end.id, event_of(job, notice, await self._runs(end.id)), reason=reason, by=OWNER)
        try:
            asked = await self._jobs.request(await self._stored(sender), fact)
        except JobDisabled:
            _log.info("job '%s' is disabled: no notice of occurrence %s is sent", sender.name, end.id)
        except OccurrenceExists:
            # It was asked for under the name that the job had before.
            return
        else:
            if asked.changed:
                _log.info("%s: notice %s will be sent by job '%s'", reason, asked.id, sender.name)

    async def _runs(self, occurrence_id: str) -> Sequence[TaskRun]:
        try:
            return (await self._past.whole(occurrence_id)).runs
        except NotFound:
            # Purged meanwhile: what the history page said of it is told.
            return ()

    async def _stored(self, sender: Job) -> str:
        """Return the id of the job that sends it, which is stored first if it is new or changed."""
        id_ = job_id(sender.name)
        record = (await self._jobs.get([id_])).get(id_)
        if record is not None and record.removed_at is None and record.job.name == sender.name:
            sender = _as_enabled(sender, record.job)
            if same_definition(sender, record.job):
                return id_
        [stored] = await self._jobs.apply([Put(sender)], OWNER)
        return stored.job_id


def _as_enabled(sender: Job, stored: Job) -> Job:
    """Return the definition as enabled or disabled as people have set it."""
    enabled = stored.overrides.get("enabled")
    if not isinstance(enabled, bool):
        return sender
    items = tuple(sorted((*sender.overrides.items, ("enabled", enabled))))
    kept = Overrides(sender.overrides.level, items)
    return replace(sender, overrides=kept, settings=sender.settings.overridden_by(kept))
