"""A queue whose workers are Celery's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from everytick.errors import InvalidPayload, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everytick.beat.queues import EnqueuedJob


class CeleryQueue:
    """Sends each job as a Celery task: its name is the task's, its payload the keyword arguments, its id the task's id.

    The metadata stand in the headers. `routes` has the options of `send_task` for each priority, such as
    `{"high": {"queue": "urgent"}}`: what a number means as a priority depends on the broker.

    Celery takes a task with the same id twice. A beat that is killed between sending and recording sends it again.
    """

    def __init__(self, app: Any, routes: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._app = app
        self._routes = {str(priority): dict(options) for priority, options in (routes or {}).items()}

    async def enqueue(self, job: EnqueuedJob) -> None:
        """Send the task; return once the broker has it."""
        arguments = job.payload
        if arguments is not None and not isinstance(arguments, dict):
            raise InvalidPayload(
                "payload", f"must be an object of keyword arguments for Celery, got {shown(arguments)}"
            )
        options: dict[str, Any] = {
            **self._routes.get(job.priority, {}),
            "task_id": job.id,
            "headers": job.metadata,
        }
        # Celery blocks. One try: the beat repeats what fails at its next tick, and says so meanwhile.
        await asyncio.to_thread(self._app.send_task, job.name, kwargs=arguments, retry=False, **options)
