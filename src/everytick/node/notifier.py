"""The notifier: asks for the notices that follow from a reported end, at least once each and never twice."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from everytick.deciding.notices import (
    NEWS,
    Notice,
    breach_event,
    breach_key,
    event_of,
    notice_job,
    notices_of,
    past_cause,
    rollout_event,
)
from everytick.domain.changes import Edit, Put, Tell
from everytick.domain.config import Overrides
from everytick.domain.facts import Trigger
from everytick.domain.ids import job_id
from everytick.domain.job import Job, same_definition
from everytick.domain.notices import OWNER, NoticeKind
from everytick.domain.occurrence import Occurrence, TaskRun
from everytick.domain.promises import OwedBreach
from everytick.domain.rollouts import RolloutVerdict, Way
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
        tells_success = ended.header.rules.tells_success
        for notice in notices_of(ended.id, await self._around(ended), tells_success=tells_success):
            await self._ask(ended.job_id, notice)

    async def _around(self, ended: OccurrenceEnd) -> list[Occurrence]:
        """Return the ends of the job by which this one is judged: the newest, and those of the instants before it."""
        about = HistoryFilter(job_id=ended.job_id, statuses=tuple(NEWS), limit=_AROUND)
        before = replace(about, through=ended.header.scheduled_for)
        ends = list((await self._past.history(about)).occurrences)
        if len(ends) == _AROUND and ended.id not in {end.id for end in ends[: _AROUND // 2]}:
            ends += (await self._past.history(before)).occurrences
        cause = next((past_cause(end) for end in ends if end.id == ended.id), None)
        if cause is not None:
            for page in (replace(about, cause=cause), replace(before, cause=cause)):
                ends += (await self._past.history(page)).occurrences
        return ends

    async def tell_breach(self, owed: OwedBreach, met: Collection[str], queue: str) -> None:
        """Ask for the notices of a breach and of its end. Asking again for the same ones changes nothing.

        `met` are the needs that this node meets. If this node does not meet the job's needs, no node has met them for
        long. Then a node of this queue sends the notice.
        """
        job = await self._newest(owed.job_id)
        if job is None:
            return
        for is_wanted, kind in (
            (owed.is_begin_owed, NoticeKind.ON_BREACH),
            (owed.is_end_owed, NoticeKind.ON_RECOVERY),
        ):
            sender = notice_job(job, kind, None if job.needs in met else queue) if is_wanted else None
            if sender is not None:
                is_over = kind is NoticeKind.ON_RECOVERY
                reason = f"job '{job.name}': {owed.breach.kind} {'kept again' if is_over else 'broken'}"
                event = breach_event(job, owed.breach, is_over=is_over)
                await self._request(
                    sender, Trigger(breach_key(owed.breach, is_over=is_over), event, None, reason, OWNER)
                )

    async def of_rollout(self, job: Job, trial: Job, verdict: RolloutVerdict, now: datetime) -> list[Edit]:
        """Return the changes that ask for the notice of a rollout which is over, to be made with the edit that ends it.

        So the notice is sent whatever becomes of this node. The key names the moment at which the version was stored:
        a job that is purged and made anew counts its versions from 1.
        """
        sender = notice_job(job, NoticeKind.ON_RECOVERY if verdict.way is Way.ON else NoticeKind.ON_BREACH)
        if sender is None:
            return []
        what = "was rolled back" if verdict.way is Way.BACK else "is in force"
        reason = f"job '{job.name}': version {verdict.version} {what}"
        sender = await self._as_set(sender)
        if not sender.enabled:
            _log.info("%s: no notice is sent, since job '%s' is disabled", reason, sender.name)
            return []
        key, event = f"rollout {verdict.version} {trial.updated_at}", rollout_event(job, verdict, now)
        return [Put(sender), Tell(sender.name, Trigger(key, event, None, reason, OWNER))]

    async def _newest(self, subject: str) -> Job | None:
        """Return the newest definition, which says who is told: a corrected address counts at once."""
        record = (await self._jobs.get([subject])).get(subject)
        return None if record is None else record.job

    async def _ask(self, subject: str, notice: Notice) -> None:
        job = await self._newest(subject)
        sender = None if job is None else notice_job(job, notice.kind)
        if job is None or sender is None:
            return
        end = notice.occurrence
        reason = f"job '{job.name}': occurrence {end.id} {end.status}"
        # Without a call's number: the same key never asks for a second notice, also after a failure of the first.
        fact = Trigger(end.id, event_of(job, notice, await self._runs(end.id)), reason=reason, by=OWNER)
        await self._request(sender, fact)

    async def _request(self, sender: Job, fact: Trigger) -> None:
        try:
            receipt = await self._jobs.request(await self._stored(sender), fact)
        except JobDisabled:
            _log.info("%s: no notice is sent, since job '%s' is disabled", fact.reason, sender.name)
        except OccurrenceExists:
            # It was asked for under the name that the job had before.
            return
        else:
            if receipt.changed:
                _log.info("%s: notice %s will be sent by job '%s'", fact.reason, receipt.id, sender.name)

    async def _runs(self, occurrence_id: str) -> Sequence[TaskRun]:
        try:
            return (await self._past.whole(occurrence_id)).runs
        except NotFound:
            # Purged meanwhile: what the history page said of it is told.
            return ()

    async def _stored(self, sender: Job) -> str:
        """Return the id of the job that sends it, which is stored first if it is new or changed."""
        known = await self._known(sender)
        if known is not None:
            sender = _as_enabled(sender, known)
            if same_definition(sender, known):
                return known.id
        [stored] = await self._jobs.apply([Put(sender)], OWNER)
        return stored.job_id

    async def _as_set(self, sender: Job) -> Job:
        known = await self._known(sender)
        return sender if known is None else _as_enabled(sender, known)

    async def _known(self, sender: Job) -> Job | None:
        """Return the job that sends it as it is stored, if it is in service."""
        id_ = job_id(sender.name)
        record = (await self._jobs.get([id_])).get(id_)
        is_known = record is not None and record.removed_at is None and record.job.name == sender.name
        return record.job if is_known and record is not None else None


def _as_enabled(sender: Job, stored: Job) -> Job:
    """Return the definition as enabled or disabled as people have set it."""
    enabled = stored.overrides.get("enabled")
    if not isinstance(enabled, bool):
        return sender
    items = tuple(sorted((*sender.overrides.items, ("enabled", enabled))))
    overrides = Overrides(sender.overrides.level, items)
    return replace(sender, overrides=overrides, settings=sender.settings.overridden_by(overrides))
