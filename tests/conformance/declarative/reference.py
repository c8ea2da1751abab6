"""The specification as plain code: one dictionary for a store, one loop that polls, nothing clever.

It is not for use: it forgets everything with its process. It is here because a suite that
only ever met one implementation does not know what it takes for granted.
"""

import asyncio
import inspect
import logging
import os
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from everytick.testing.virtual import VirtualLoop
from tests.conformance.declarative import cron_model
from tests.conformance.declarative.adapter import NOON, Adapter, Forwarding, Scheduler, Story, T, TaskState, Told, World
from tests.conformance.declarative.documents import FIELDS, INVALID
from tests.conformance.declarative.host import host_in

_log = logging.getLogger("reference")
LONGEST = timedelta(days=365_000)
TIMES = ("lastAttemptAt", "lastSuccessAt", "lastFailureAt", "pendingRetryUntil")
HORIZON = timedelta(days=366 * 28)
"""After so long the calendar repeats itself: what did not occur by then never will."""


class ReferenceError_(Exception):
    """Something of the taxonomy; the details are given by name."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


def _errors() -> dict[str, type[ReferenceError_]]:
    made: dict[str, type[ReferenceError_]] = {}
    bases = {
        "CronExpressionInvalidError": "InvalidCronExpressionError",
        "TaskMissingFieldError": "TaskTryDeserializeError",
        "TaskInvalidTypeError": "TaskTryDeserializeError",
        "TaskInvalidValueError": "TaskTryDeserializeError",
        "TaskInvalidStructureError": "TaskTryDeserializeError",
    }
    for name in (*bases.values(), *bases, *_PLAIN):
        made.setdefault(name, type(name, (made.get(bases.get(name, ""), ReferenceError_),), {}))
    return made


_PLAIN = """RegistrationsNotArrayError RegistrationShapeError InvalidRegistrationError ScheduleDuplicateTaskError
SchedulerAlreadyActiveError NegativeRetryDelayError FieldParseError CronCalculationError UnexpectedError""".split()
ERRORS = _errors()


# ----------------------------------------------------------------------------------------------------------- validation


def validated(registrations: Any, now: datetime) -> dict[str, tuple[str, Any, timedelta]]:
    """Return the registrations by name, or raise what is wrong with the first bad one."""
    if not isinstance(registrations, list | tuple):
        raise ERRORS["RegistrationsNotArrayError"]("Registrations must be an array")
    found: dict[str, tuple[str, Any, timedelta]] = {}
    for index, each in enumerate(registrations):
        name, cron, callback, delay = _shaped(index, each)
        if not name:
            raise _invalid("name", name, "must not be empty")
        if name in found:
            raise ERRORS["ScheduleDuplicateTaskError"](f'Task with name "{name}" is already scheduled', taskName=name)
        _check_cron(cron, now)
        if _needs_arguments(callback):
            raise _invalid("callback", callback, "must not need arguments")
        found[name] = (cron, callback, _checked_delay(delay))
    return found


def _shaped(index: int, each: Any) -> tuple[str, str, Any, Any]:
    is_shaped = isinstance(each, list | tuple) and len(each) == 4
    if not is_shaped or not (
        isinstance(each[0], str)
        and isinstance(each[1], str)
        and _is_async(each[2])
        and isinstance(each[3], timedelta | str)
    ):
        message = "Invalid registration shape: expected [string, string, function, Duration]"
        raise ERRORS["RegistrationShapeError"](message, registrationIndex=index, received=each)
    name, cron, callback, delay = each
    return name, cron, callback, delay


def _is_async(callback: Any) -> bool:
    call = getattr(type(callback), "__call__", None)  # noqa: B004, it is its kind that matters
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(call)


def _needs_arguments(callback: Any) -> bool:
    return any(
        parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        for parameter in inspect.signature(callback).parameters.values()
    )


def _invalid(field: str, value: object, reason: str) -> Exception:
    return ERRORS["InvalidRegistrationError"](f"{field} {reason}", field=field, value=value, reason=reason)


def _checked_delay(delay: Any) -> timedelta:
    if isinstance(delay, str):
        if not delay.removesuffix("s").isdigit():
            raise _invalid("retryDelay", delay, "is no duration")
        delay = timedelta(seconds=int(delay.removesuffix("s")))
    assert isinstance(delay, timedelta)
    if delay < timedelta(0):
        raise ERRORS["NegativeRetryDelayError"](
            "Retry delay must be non-negative", retryDelayMs=delay / timedelta(milliseconds=1)
        )
    return delay


def _check_cron(cron: str, now: datetime) -> None:
    try:
        cron_model.read(cron)
    except cron_model.Refused as refused:
        field = refused.field or "expression"
        reason = "is not in the language"
        error = ERRORS["CronExpressionInvalidError"](
            f'Invalid cron expression "{cron}": {field} field {reason}', expression=cron, field=field, reason=reason
        )
        raise error from _field_error(cron, refused.field)
    if not _ever_occurs(cron):
        cause = ValueError("it has no occurrence")
        message = f"Failed to calculate next occurrence: {cause}"
        raise ERRORS["CronCalculationError"](message, expression=cron, currentTime=now.isoformat(), cause=cause)


def _field_error(cron: str, field: str | None) -> Exception | None:
    names = [name for name, _, _ in cron_model.FIELDS]
    if field is None:
        return None
    value = re.split(r"[ \t]+", cron.strip(" \t"))[names.index(field)]
    return ERRORS["FieldParseError"](f"{field}: {value}", fieldValue=value, fieldName=field)


def _ever_occurs(cron: str) -> bool:
    expression, day = cron_model.read(cron), datetime(2024, 1, 1, tzinfo=UTC)
    days = (day + timedelta(days=each) for each in range(HORIZON.days))
    return any(each.month in expression.months and expression.names_date(each) for each in days)


# ---------------------------------------------------------------------------------------------------------------- store


class Kept(dict[str, dict[str, Any]]):
    """What is persisted: for each task its document, its timestamps, who runs it and what is decided."""

    broken = range(0)
    asked = 0

    def __init__(self) -> None:
        super().__init__()
        self.instances: list[Reference] = []
        """Those that live, in the order in which they began."""

    def ask(self) -> None:
        """Answer one request, or refuse it."""
        self.asked += 1
        if self.asked in self.broken:
            raise OSError("the store does not answer")


def read_document(name: str, document: Any) -> None:
    """Raise what is wrong with a document."""
    if not isinstance(document, dict):
        raise ERRORS["TaskInvalidStructureError"]("a state is an object", value=document)
    for field, expected in FIELDS.items():
        if field not in document:
            raise ERRORS["TaskMissingFieldError"](f"Missing required field: {field}", field=field)
        value, actual = document[field], _kind(document[field])
        if actual != expected:
            message = f"Invalid type for field '{field}': expected {expected}, got {actual}"
            raise ERRORS["TaskInvalidTypeError"](
                message, field=field, value=value, expectedType=expected, actualType=actual
            )
        if not _is_value(name, field, value):
            reason = "is not allowed"
            message = f"Invalid value for field '{field}': {reason}"
            raise ERRORS["TaskInvalidValueError"](message, field=field, value=value, reason=reason)


def _kind(value: object) -> str:
    kinds = {bool: "boolean", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _is_value(name: str, field: str, value: Any) -> bool:
    if field == "cronExpression":
        try:
            cron_model.read(value)
        except cron_model.Refused:
            return False
        return True
    wanted = {"version": value == 1, "name": value == name, "schedulerIdentifier": bool(value)}
    return bool(wanted.get(field, field != "retryDelayMs" or value >= 0))


# ------------------------------------------------------------------------------------------------------------ scheduler


class Reference:
    """A scheduler to the letter."""

    def __init__(self, kept: Kept, now: Callable[[], datetime], tell: Callable[[Told], None]) -> None:
        self._kept, self._now, self._tell_listener = kept, now, tell
        self._state, self._polling = "Uninitialized", "Inactive"
        self._identifier: str | None = None
        self._tasks: dict[str, tuple[str, Any, timedelta]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._starting: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._loop: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._is_dead = self._is_behind = False

    @property
    def state(self) -> str:
        return self._state

    @property
    def polling(self) -> str:
        return self._polling

    @property
    def identifier(self) -> str | None:
        return self._identifier

    def _tell(self, name: str, task: str | None = None) -> None:
        if self._is_dead:
            return
        try:
            self._tell_listener(Told(name, task, self._now()))
        except Exception:  # noqa: BLE001, it is not our code
            _log.exception("a listener failed")

    def initialize(self, registrations: Any) -> Awaitable[None]:
        if self._state in ("Initializing", "Running", "Stopping"):
            word = "initializing" if self._state == "Initializing" else "running"
            message = f"Cannot initialize scheduler: scheduler is already {word}"
            raise ERRORS["SchedulerAlreadyActiveError"](message, currentState=word)
        self._state = "Initializing"
        self._tell("SchedulerInitializationStarted")
        try:
            self._tasks = validated(registrations, self._now())
        except ReferenceError_:
            self._fail()
            raise
        self._ending = None
        self._starting = asyncio.ensure_future(self._start())
        return asyncio.shield(self._starting)

    def _fail(self) -> None:
        self._state = "Uninitialized"
        self._tell("SchedulerInitializationFailed")

    async def _start(self) -> None:
        try:
            self._override()
        except ReferenceError_:
            self._fail()
            raise
        except Exception as error:
            self._fail()
            raise ERRORS["UnexpectedError"](f"initialize failed: {error}", cause=error) from error
        self._kept.instances.append(self)
        if self._tasks:
            self._polling = "Active"
            self._tell("PollingStarted")
            self._loop = asyncio.ensure_future(self._poll_for_ever())
        self._state = "Running"
        self._tell("SchedulerInitializationCompleted")

    def _override(self) -> None:
        """Classify every task and write all of it together, or nothing."""
        self._kept.ask()
        now, identifier = self._now(), self._identifier or f"{uuid4()}"
        self._is_behind = False
        written: dict[str, dict[str, Any]] = {}
        for name, (cron, _, delay) in self._tasks.items():
            document = {
                "version": 1,
                "name": name,
                "cronExpression": cron,
                "retryDelayMs": delay / timedelta(milliseconds=1),
                "schedulerIdentifier": identifier,
            }
            written[name] = self._classified(name, document, now)
        self._kept.ask()
        self._kept.update(written)
        self._identifier = identifier

    def _classified(self, name: str, document: dict[str, Any], now: datetime) -> dict[str, Any]:
        known = self._kept.get(name)
        if known is None:
            minute = now.replace(second=0, microsecond=0) - cron_model.MINUTE
            return {"document": document, "runs": None, "owes": False, "decided": minute, **dict.fromkeys(TIMES)}
        read_document(name, known["document"])
        minute = now.replace(second=0, microsecond=0)
        decided, cron, old = known["decided"], document["cronExpression"], known["document"]["cronExpression"]
        missed = self._occurrences(old, decided, now)
        if cron != old:
            ran = known["lastAttemptAt"] is not None and known["lastAttemptAt"] >= minute
            missed = [each for each in missed if each < minute]
            missed += [] if ran else self._occurrences(cron, minute - cron_model.MINUTE, now)
        if known["lastAttemptAt"] is None:
            missed = [each for each in missed if each >= minute]
        runs = known["runs"] if known["runs"] in self._living() else None
        is_orphan = known["runs"] != runs
        owes = known["owes"] or bool(missed) or is_orphan
        pending = None if is_orphan else known["pendingRetryUntil"]
        fresh = {"document": document, "runs": runs, "owes": owes, "decided": now, "pendingRetryUntil": pending}
        return {**known, **fresh}

    def _living(self) -> set[str | None]:
        return {each.identifier for each in self._kept.instances}

    def _occurrences(self, cron: str, after: datetime, through: datetime) -> list[datetime]:
        return cron_model.occurrences(cron, os.environ["TZ"], max(after, through - timedelta(days=2)), through)

    # ---------------------------------------------------------------------------------------------------------- polling

    async def _poll_for_ever(self) -> None:
        while True:
            self._wake.clear()
            try:
                self._kept.ask()
                self._look_at_others()
                for name in self._tasks if not self._is_behind else ():
                    self._evaluate(name)
            except OSError:
                await self._until(self._now() + timedelta(seconds=1))
                continue
            await self._until(self._next_moment())

    def _next_moment(self) -> datetime:
        now = self._now()
        boundary: datetime = now.replace(second=0, microsecond=0) + cron_model.MINUTE
        waits = [self._kept[name]["pendingRetryUntil"] for name in self._tasks if name not in self._running]
        coming: list[datetime] = [each for each in waits if each is not None and each > now]
        return min([boundary, *coming])

    async def _until(self, moment: datetime) -> None:
        timer = asyncio.get_running_loop().call_later((moment - self._now()).total_seconds(), self._wake.set)
        await self._wake.wait()
        timer.cancel()

    def _look_at_others(self) -> None:
        """Rest behind a newer instance; bring the tasks in again when it is gone, or when one died that ran them."""
        if self._kept.instances[-1] is not self:
            self._is_behind = True
            return
        left = any(self._kept[name]["runs"] not in {None, *self._living()} for name in self._tasks)
        if self._is_behind or left:
            self._override()

    def _evaluate(self, name: str) -> None:
        kept, now = self._kept[name], self._now()
        missed = self._occurrences(self._tasks[name][0], kept["decided"], now)
        if missed:
            kept["decided"], kept["owes"] = now, True
        if kept["runs"] is not None:
            return
        if kept["owes"]:
            if kept["pendingRetryUntil"] is not None:
                self._tell("TaskRetryPreempted", name)
            self._complain(name, missed, now)
            self._begin(name, "TaskRunStarted")
        elif kept["pendingRetryUntil"] is not None and now >= kept["pendingRetryUntil"]:
            self._begin(name, "TaskRetryStarted")

    def _complain(self, name: str, missed: list[datetime], now: datetime) -> None:
        if missed and now - missed[-1] > cron_model.MINUTE:
            _log.warning("task %s starts late, by %s", name, now - missed[-1])

    def _begin(self, name: str, event: str) -> None:
        kept = self._kept[name]
        kept.update(lastAttemptAt=self._now(), pendingRetryUntil=None, owes=False, runs=self._identifier)
        self._tell(event, name)
        self._running[name] = asyncio.ensure_future(self._run(name))

    async def _run(self, name: str) -> None:
        _, callback, delay = self._tasks[name]
        try:
            await callback()
            failed = False
        except BaseException:  # noqa: BLE001, whatever it raises is its failure
            failed = True
        if self._is_dead:
            return
        kept, now = self._kept[name], self._now()
        if failed:
            kept.update(lastFailureAt=now, pendingRetryUntil=now + min(delay, LONGEST), runs=None)
        else:
            kept.update(lastSuccessAt=now, runs=None)
        self._tell("TaskRunFailed" if failed else "TaskRunCompleted", name)
        del self._running[name]
        for each in self._kept.instances:
            each._wake.set()

    # ------------------------------------------------------------------------------------------------------------- stop

    async def stop(self) -> None:
        if self._state == "Initializing" and self._starting is not None:
            await asyncio.wait([self._starting])
        if self._state not in ("Running", "Stopping"):
            return
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        self._state = "Stopping"
        self._tell("SchedulerStopRequested")
        if self._loop is not None:
            self._polling = "Stopping"
            self._tell("PollingStopRequested")
            self._loop.cancel()
            await asyncio.gather(self._loop, *self._running.values(), return_exceptions=True)
            self._loop, self._polling = None, "Inactive"
            self._tell("PollingStopped")
        self._go()
        self._state = "Stopped"
        self._tell("SchedulerStopped")

    def _go(self) -> None:
        """Leave the others to themselves."""
        if self in self._kept.instances:
            self._kept.instances.remove(self)
        for each in self._kept.instances:
            each._wake.set()

    def _die(self) -> None:
        self._is_dead = True
        self._go()
        if self._loop is not None:
            self._loop.cancel()


# -------------------------------------------------------------------------------------------------------------- adapter


class ReferenceScheduler(Forwarding):
    """One instance of the reference."""

    def __init__(self, kept: Kept, now: Callable[[], datetime], listener: Callable[[Told], None] | None) -> None:
        self.heard = []

        def hear(told: Told) -> None:
            self.heard.append(told)
            if listener is not None:
                listener(told)

        self.own: Reference = Reference(kept, now, hear)

    def crash(self) -> None:
        self.own._die()


class ReferenceWorld(World):
    """One dictionary and a virtual loop."""

    def __init__(self, loop: VirtualLoop, begin: datetime) -> None:
        self._loop, self._begin, self._kept = loop, begin, Kept()

    def now(self) -> datetime:
        return self._begin + timedelta(microseconds=round(self._loop.time() * 1e6))

    async def pass_by(self, seconds: float) -> None:
        over: asyncio.Future[None] = self._loop.create_future()
        self._loop.call_later(seconds, over.set_result, None)
        await over

    def suspend(self, seconds: float) -> None:
        self._loop.jump(seconds)

    def scheduler(self, *, listener: Callable[[Told], None] | None = None) -> Scheduler:
        return ReferenceScheduler(self._kept, self.now, listener)

    async def task_states(self) -> Mapping[str, TaskState]:
        return {name: {"state": _state(kept), **{key: kept[key] for key in TIMES}} for name, kept in self._kept.items()}

    async def document(self, task: str) -> Any:
        return self._kept[task]["document"]

    async def write_document(self, task: str, document: Any) -> None:
        self._kept[task]["document"] = document

    def break_store(self, after: int, times: int = 1_000_000) -> None:
        first = self._kept.asked + after + 1
        self._kept.broken = range(first, first + times)

    def mend_store(self) -> bool:
        has_refused = len(self._kept.broken) > 0 and self._kept.asked >= self._kept.broken[0]
        self._kept.broken = range(0)
        return has_refused


def _state(kept: Mapping[str, Any]) -> str:
    if kept["runs"] is not None:
        return "Running"
    return "AwaitingRun" if kept["pendingRetryUntil"] is None else "AwaitingRetry"


class ReferenceAdapter(Adapter):
    """The reference under the suite."""

    def play(self, story: Story[T], *, begin: datetime = NOON, zone: str = "UTC") -> T:
        loop = VirtualLoop()

        def main() -> Coroutine[Any, Any, T]:
            return story(ReferenceWorld(loop, begin))

        with host_in(zone), asyncio.Runner(loop_factory=lambda: loop) as runner:
            return runner.run(main())

    def occurrences(self, cron: str, zone: str, after: datetime, through: datetime) -> list[datetime]:
        return cron_model.occurrences(cron, zone, after, through)

    def error(self, name: str) -> type[Exception]:
        return ERRORS[name]

    def details(self, error: BaseException) -> Mapping[str, Any]:
        assert isinstance(error, ReferenceError_)
        return error.details

    def invalid_documents(self) -> list[tuple[str, Callable[[Any], Any], Mapping[str, Any]]]:
        return [*INVALID]
