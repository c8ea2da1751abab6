"""The registry: every schedule of a beat, checked when it is registered (S3-004 to S3-008)."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, overload

from everytick.beat.definition import Priority, Schedule
from everytick.beat.problems import DuplicateSchedule, InvalidRegistration, InvalidTimezone, RegistrationFailed
from everytick.domain.job import Job, define_job
from everytick.domain.names import LONGEST_NAME, did_you_mean
from everytick.domain.payload import Payload, payload
from everytick.domain.values import value
from everytick.errors import DefinitionError, InvalidSchedule, NotFound, shown
from everytick.schedules.cron import cron
from everytick.schedules.timezones import utc, zone_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

DISABLED = "disabled"
"""What stands for the rule of a schedule that is not enabled."""

_NOT_IN_AN_ID = re.compile("[^A-Za-z0-9_-]")
_POLICIES: Mapping[str, object] = {"recovery": "execute_last", "overlap": "allow"}
"""Several missed times give one run (S3-012). Whether the run before is over is for the workers to know."""


@value
class RegisteredSchedule:
    """A schedule that was checked: with the job of which `plan` decides the times, and its payload as text.

    `definition` differs when another rule says the times.
    """

    schedule: Schedule
    job: Job
    payload: Payload | None
    priority: Priority
    definition: str


class Registry:
    """Schedules by their ids, in the order of their registration. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: dict[str, RegisteredSchedule] = {}

    @overload
    def register(self, schedule: Schedule, /) -> Schedule: ...

    @overload
    def register(self, id: str, schedule: Schedule, /) -> Schedule: ...

    def register(self, first: str | Schedule, second: Schedule | None = None, /) -> Schedule:
        """Add a schedule, whose id may stand before it, and return it as it is kept.

        Raise InvalidRegistration if it is mistaken, and DuplicateSchedule if its id is taken.
        """
        entry = _checked(_named(first, second))
        with self._lock:
            if entry.schedule.id in self._entries:
                raise DuplicateSchedule(entry.schedule.id)
            self._entries[entry.schedule.id] = entry
        return entry.schedule

    @overload
    def must_register(self, schedule: Schedule, /) -> Schedule: ...

    @overload
    def must_register(self, id: str, schedule: Schedule, /) -> Schedule: ...

    def must_register(self, first: str | Schedule, second: Schedule | None = None, /) -> Schedule:
        """Add a schedule without which the program shall not run: raise RegistrationFailed, which ends it."""
        try:
            return self.register(_named(first, second))
        except DefinitionError as error:
            raise RegistrationFailed(error) from error

    def get(self, id: str) -> Schedule | None:
        """Return the schedule of this id, or None."""
        entry = self.entry(id)
        return None if entry is None else entry.schedule

    def next_run(self, schedule: Schedule | str, after: datetime) -> datetime | None:
        """Return the first time of a schedule later than `after`, as an instant in UTC; None if there is none.

        The schedule need not be registered. Raise InvalidTimezone if its zone is not known here.
        """
        if isinstance(schedule, str):
            entry = self.entry(schedule)
            if entry is None:
                raise NotFound("schedule", schedule)
            job = entry.job
        else:
            job = job_of(_normal(schedule))
        return job.bound(None).next_after(utc(after))

    def entry(self, id: str) -> RegisteredSchedule | None:
        """Return what the beat needs of a schedule, or None where the id is not known."""
        with self._lock:
            return self._entries.get(id)

    def list(self) -> Sequence[Schedule]:
        """Return all schedules, disabled ones too. What is registered later does not change the answer."""
        with self._lock:
            return tuple(entry.schedule for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


def _checked(schedule: Schedule) -> RegisteredSchedule:
    normal = _normal(schedule)
    try:
        job = job_of(normal)
    except InvalidTimezone as error:
        raise InvalidRegistration(str(error)) from error
    definition = str(job.schedule) if normal.enabled else DISABLED
    return RegisteredSchedule(normal, job, _payload(normal.payload), _priority(normal.priority), definition)


def job_of(schedule: Schedule) -> Job:
    """Return a schedule as the core's definition of a job, which `plan` can decide about."""
    try:
        zone = zone_of(schedule.timezone)
    except InvalidSchedule as error:
        raise InvalidTimezone(schedule.timezone, f"it {error.reason}") from error
    try:
        policies = {**_POLICIES, "enabled": schedule.enabled}
        return define_job(schedule.id, cron(schedule.cron, tz=zone), policies=policies)
    except DefinitionError as error:
        raise InvalidRegistration(str(error)) from error


def _named(first: object, second: object) -> Schedule:
    """Return the schedule under the id that stands before it, if one does."""
    if second is None:
        if not isinstance(first, Schedule):
            raise InvalidRegistration(f"expected a Schedule, got {shown(first)}")
        return first
    if not isinstance(second, Schedule) or not isinstance(first, str):
        raise InvalidRegistration('expected an ID and a Schedule, like register("cleanup", Schedule(...))')
    if second.id not in ("", first):
        raise InvalidRegistration(f"ID is given twice and differs: {shown(first)} and {shown(second.id)}")
    return replace(second, id=first)


def _normal(schedule: Schedule) -> Schedule:
    """Return the schedule as it is kept, or raise what is the matter with it."""
    _check_id(schedule.id)
    job, zone = _text("Job", schedule.job), _text("Timezone", schedule.timezone)
    if not job.strip():
        raise InvalidRegistration("Job must not be empty: give the name by which workers know it")
    if zone.startswith("posix:"):
        raise InvalidRegistration(f"Timezone must be a name like Europe/Berlin, got {shown(zone)}")
    if schedule.enabled not in (True, False):
        raise InvalidRegistration(f"Enabled must be True or False, got {shown(schedule.enabled)}")
    _text("Description", schedule.description)
    return replace(schedule, timezone=zone or "UTC", priority=_priority(schedule.priority))


def _text(what: str, given: object) -> str:
    if not isinstance(given, str):
        raise InvalidRegistration(f"{what} must be text, got {shown(given)}")
    return given


def _check_id(id: object) -> None:
    if not isinstance(id, str) or not id:
        raise InvalidRegistration("ID must not be empty: give letters, digits, underscores and hyphens")
    if len(id) > LONGEST_NAME:
        raise InvalidRegistration(f"ID has {len(id):,} characters: at most {LONGEST_NAME} are allowed")
    if (wrong := _NOT_IN_AN_ID.search(id)) is not None:
        reason = (
            f"has {shown(wrong[0])!r} at position {wrong.start() + 1}: use letters, digits, underscores and hyphens"
        )
        raise InvalidRegistration(f"ID '{shown(id)}' {reason}")


def _priority(given: object) -> Priority:
    try:
        return Priority(str(given))
    except ValueError:
        known = ", ".join(Priority)
        raise InvalidRegistration(
            f"Priority must be {known}, got {shown(given)}{did_you_mean(str(given), Priority)}"
        ) from None


def _payload(given: object) -> Payload | None:
    try:
        if isinstance(given, bytes):
            given = json.loads(given)
        return None if given is None else payload(given)
    except DefinitionError as error:
        raise InvalidRegistration(str(error)) from error
    except ValueError as error:
        raise InvalidRegistration(f"Payload must be JSON: {shown(str(error))}") from error
