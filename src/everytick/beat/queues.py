"""What a beat hands to a queue, and what a queue must be able to do."""

from __future__ import annotations

import json
from collections.abc import Sequence  # noqa: TC003, the protocols below are read at run time
from datetime import datetime  # noqa: TC003, part of a public value
from typing import Protocol, runtime_checkable

from everytick.beat.definition import Priority  # noqa: TC001, part of a public value
from everytick.beat.records import rfc3339
from everytick.domain.payload import Payload  # noqa: TC001, part of a public value
from everytick.domain.values import value

TRIGGER_TYPE = "cron"


@value(frozen=True)
class EnqueuedJob:
    """A job that is due. Equal schedule and time give equal ids, on every beat, for ever.

    `name` is the job that workers know, `schedule_id` and `scheduled_at` say what it is due for, and `enqueued_at` when
    a beat handed it over.
    """

    id: str
    name: str
    content: Payload | None
    priority: Priority
    schedule_id: str
    scheduled_at: datetime
    enqueued_at: datetime

    @property
    def payload(self) -> object:
        """A fresh copy of the schedule's payload."""
        return None if self.content is None else self.content.read()

    @property
    def metadata(self) -> dict[str, str]:
        """What every job carries (S3-020)."""
        return {
            "schedule_id": self.schedule_id,
            "scheduled_at": rfc3339(self.scheduled_at),
            "trigger_type": TRIGGER_TYPE,
        }

    def as_json(self) -> str:
        """Return the job as one JSON object: id, name, payload, priority, metadata, enqueued_at."""
        head = {"id": self.id, "name": self.name, "priority": self.priority, "metadata": self.metadata}
        begun = json.dumps({**head, "enqueued_at": rfc3339(self.enqueued_at)}, ensure_ascii=False)
        # The payload is JSON text already.
        return f'{begun[:-1]}, "payload": {"null" if self.content is None else self.content.text}}}'


@runtime_checkable
class JobQueue(Protocol):
    """A queue that a beat feeds."""

    async def enqueue(self, job: EnqueuedJob, /) -> object:
        """Put the job into the queue, and return when it is safe there; an exception means that it may not be.

        After a crash, an error or a pause of a beat the same job may come again, with the same id. A queue that
        leaves out what it has seen makes of "at least once" a "once".
        """
        ...


@runtime_checkable
class BatchQueue(JobQueue, Protocol):
    """A queue that takes many jobs at once."""

    async def enqueue_batch(self, jobs: Sequence[EnqueuedJob], /) -> Sequence[BaseException | None]:
        """Put the jobs into the queue; return for each None, or why it may not be there."""
        ...
