"""Everything everytick raises on purpose: one tree, in the order of who meets the errors.

    EverytickError
    ├── DefinitionError (also a ValueError)   the text or value does not describe what it should
    │   ├── InvalidSchedule                   text, field, reason
    │   │   └── InvalidCronExpressionError
    │   │       └── CronExpressionInvalidError
    │   ├── FieldParseError                   one cron field; the cause of the above
    │   ├── InvalidDuration                   text, reason
    │   ├── InvalidInstant                    text, reason
    │   ├── InvalidName                       what, name, reason
    │   ├── InvalidPolicies                   job, reason, alternatives
    │   ├── InvalidPayload                    what, reason
    │   ├── InvalidSetting                    setting, given, reason
    │   ├── InvalidLimit                      given, reason
    │   └── DuplicateDefinition               one name twice in one application
    ├── UnboundSchedule                       the schedule needs to know its job before it can answer
    ├── DeclarativeError                      of the declarative scheduler: details, as its specification names them
    │   ├── CronCalculationError              no next or previous instant; raised by `declarative` only
    │   └── InvalidCronExpressionError, FieldParseError (above), and those in `everytick.declarative.errors`
    ├── NotFound                              no job or occurrence of this name or id
    ├── Conflict                              the record has changed since the caller read it
    │   ├── VersionConflict                   the definition was edited meanwhile
    │   ├── PlanMoved                         the preview is out of date: something else would be stored
    │   ├── NotOwned                          other owners define jobs of these names
    │   └── OccurrenceExists                  the same request key with another payload
    ├── JobDisabled                           a disabled job takes no requests
    ├── NeedsConfirmation                     the operation is guarded, and was not confirmed
    ├── NeedsApproval                         the operation is proposed, and another person must approve it
    ├── NotAllowed (also a PermissionError)   a service does not know who asks, or the person may not
    ├── TooManyEditions                       edits come faster than they are decided
    ├── MissingExtra                          an optional package is not installed
    ├── AlreadyRunning                        the application was started twice
    ├── RecoveryFailed (also a RuntimeError)  the first look at the store after a start went wrong
    ├── StoreUnavailable                      the store does not answer; the loops try again
    │   ├── Contended                         another session was in the way; the same call may succeed now
    │   ├── StoreBroken                       it answers with errors that do not pass by themselves
    │   ├── StoreArriving                     another store is being moved into it, and has not arrived
    │   └── StoreGone                         another file, or none, is in its place; the node stops
    │       └── StoreMoved                    all that it held is in another store now; nothing is written here
    ├── MoveRefused                           a store cannot be moved like this; says what to do
    ├── SchemaMismatch                        the store's tables are not those this code knows
    ├── Fenced                                the occurrence was given to another node meanwhile
    └── TransactionsUnsupported               the store has no transactions a task could share

A lost race, a skip or a failed attempt is an answer, not an exception. What a task raises
to steer itself (`TryAgain`, `GiveUp`) is not under `EverytickError`, so that a broad
`except` in user code does not swallow it. `DefinitionWarning` is a warning: the definition
is stored, but may not do what its author expects.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import ClassVar

_SHOWN = 120
"""Characters of a text in a message, where the message says nothing else."""


def shown(text: object, limit: int = _SHOWN) -> str:
    """Return the text as it may stand in a message: shortened, without control characters.

    Input may come from a file or the network; a raw escape sequence in it would
    reach the terminal of the reader.
    """
    raw = text if isinstance(text, str) else _said(text)
    cut = raw if len(raw) <= limit else raw[: limit - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)


def _said(given: object) -> str:
    if isinstance(given, datetime):
        return given.isoformat()
    try:
        return repr(given)
    except ValueError:  # a number of thousands of digits
        return f"a very long {type(given).__name__}"


class EverytickError(Exception):
    """The root: catches everything that everytick raises on purpose."""

    code: ClassVar[str] = "everytick_error"


class DefinitionError(EverytickError, ValueError):
    """What was given does not describe a job, schedule, duration or instant."""

    code = "definition_error"


class DeclarativeError(EverytickError):
    """An error of the declarative scheduler's specification, which lays down its name, its message and `details`.

    What reads a cron expression stands there too, so those errors are of this kind wherever
    they are raised.
    """

    code = "declarative_error"

    @property
    def details(self) -> Mapping[str, object]:
        """What the specification says is told with the error, as data."""
        return {}


# Met by the author of a definition: a schedule, a job, a policy, a setting.


class InvalidSchedule(DefinitionError):
    """The text does not describe a schedule."""

    code = "invalid_schedule"

    def __init__(self, text: object, field: str, reason: str) -> None:
        self.text, self.field, self.reason = text, field, reason
        super().__init__(self._message())

    def _message(self) -> str:
        return f"'{shown(self.text)}': {self.field} {self.reason}"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text, self.field, self.reason)

    @property
    def details(self) -> Mapping[str, object]:
        """What was read and why it was refused, as data."""
        return {"text": self.text, "field": self.field, "reason": self.reason}


class InvalidCronExpressionError(InvalidSchedule, DeclarativeError):
    """The text is not a cron expression of its dialect."""

    code = "invalid_cron_expression"

    def _message(self) -> str:
        return f'Invalid cron expression "{shown(self.text)}": {self.field} field {self.reason}'

    @property
    def details(self) -> Mapping[str, object]:
        """What was read and why it was refused, as data."""
        return {"expression": self.text, "field": self.field, "reason": self.reason}


class CronExpressionInvalidError(InvalidCronExpressionError):
    """The same error under its second name, so that both can be caught."""


class FieldParseError(DefinitionError, DeclarativeError):
    """One field of a cron expression could not be read; the cause of `InvalidCronExpressionError`."""

    code = "field_parse_error"

    def __init__(self, field_name: str, field_value: str, reason: str) -> None:
        super().__init__(f'{field_name} field "{shown(field_value)}" {reason}')
        self.field_name, self.field_value, self.reason = field_name, field_value, reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.field_name, self.field_value, self.reason)

    @property
    def details(self) -> Mapping[str, object]:
        """The field and its text, as data."""
        return {"fieldValue": self.field_value, "fieldName": self.field_name}


class _Unreadable(DefinitionError):
    """A single text or value that could not be read."""

    def __init__(self, text: object, reason: str) -> None:
        super().__init__(f"'{shown(text)}': {reason}")
        self.text, self.reason = text, reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text, self.reason)


class InvalidDuration(_Unreadable):
    """The value is not a length of time."""

    code = "invalid_duration"


class InvalidInstant(_Unreadable):
    """The value does not name one moment."""

    code = "invalid_instant"


class InvalidName(DefinitionError):
    """The name cannot be carried by a job or task."""

    code = "invalid_name"

    def __init__(self, what: str, name: object, reason: str) -> None:
        super().__init__(f"{what} name '{shown(name)}': {reason}")
        self.what, self.name, self.reason = what, name, reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.name, self.reason)


class InvalidPolicies(DefinitionError):
    """A policy makes no sense, or two contradict each other; `alternatives` says what to write instead.

    `job` is empty where a policy was refused before it was known which job it is for.
    """

    code = "invalid_policies"

    def __init__(self, job: str, reason: str, alternatives: tuple[str, ...] = ()) -> None:
        instead = f"; instead: {', or '.join(alternatives)}" if alternatives else ""
        where = f"job '{shown(job)}': " if job else ""
        super().__init__(f"{where}{reason}{instead}")
        self.job, self.reason, self.alternatives = job, reason, alternatives

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.job, self.reason, self.alternatives)


class InvalidPayload(DefinitionError):
    """A payload or result is not JSON, or larger than the bound."""

    code = "invalid_payload"

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} {reason}")
        self.what, self.reason = what, reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.reason)


class InvalidSetting(DefinitionError):
    """A setting of the node is not what it should be, or does not go with another."""

    code = "invalid_setting"

    def __init__(self, setting: str, given: object, reason: str) -> None:
        super().__init__(f"setting {setting}={shown(given)} {reason}")
        self.setting, self.given, self.reason = setting, given, reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.setting, self.given, self.reason)


class InvalidLimit(DefinitionError):
    """A reach, a number, a rate or a time of a limit or brake is not what it should be."""

    code = "invalid_limit"

    def __init__(self, given: object, reason: str) -> None:
        super().__init__(f"'{shown(given)}' {reason}")
        self.given, self.reason = given, reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.given, self.reason)


class DefinitionWarning(UserWarning):
    """The definition is accepted, but may not do what its author expects."""


class DuplicateDefinition(DefinitionError):
    """One name stands twice in one application."""

    code = "duplicate_definition"


class UnboundSchedule(EverytickError):
    """The schedule depends on its job and was asked before it knew one."""

    code = "unbound_schedule"

    def __init__(self, text: str, needs: str) -> None:
        super().__init__(f"'{shown(text)}' has no instants of its own: {needs}")
        self.text, self.needs = text, needs

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text, self.needs)


class CronCalculationError(DeclarativeError):
    """A cron expression has no next or previous instant. Elsewhere than in `declarative`, None says so."""

    code = "cron_calculation_error"

    def __init__(self, expression: str, current_time: datetime, cause: object) -> None:
        super().__init__(f"Failed to calculate next occurrence: {cause}")
        self.expression, self.current_time, self.cause = expression, current_time, cause

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.expression, self.current_time, self.cause)

    @property
    def details(self) -> Mapping[str, object]:
        """The expression, the time asked about and the cause, as data."""
        return {"expression": self.expression, "currentTime": self.current_time.isoformat(), "cause": self.cause}


# Met by the caller of an operation or a question.


class NotFound(EverytickError):
    """There is no job or occurrence of this name or id."""

    code = "not_found"

    def __init__(self, what: str, name: str) -> None:
        super().__init__(f"there is no {what} '{shown(name)}'")
        self.what, self.name = what, name

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.name)


class Conflict(EverytickError):
    """What the caller saw is no longer so; look again and decide anew."""

    code = "conflict"


class VersionConflict(Conflict):
    """The definition was edited since the caller read it: nothing was changed.

    `theirs` is what others changed since the version that was expected, `yours` what this edit would have.
    """

    code = "version_conflict"

    def __init__(
        self, job: str, expected: int, found: int, theirs: tuple[str, ...] = (), yours: tuple[str, ...] = ()
    ) -> None:
        said = f"job '{shown(job)}' is at version {found}, not {expected}: read it again and repeat the edit"
        sides = (("changed since", theirs), ("your edit", yours))
        told = [f"{side}: {shown('; '.join(parts), 1000)}" for side, parts in sides if parts]
        super().__init__("; ".join([said, *told]))
        self.job, self.expected, self.found, self.theirs, self.yours = job, expected, found, theirs, yours

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.job, self.expected, self.found, self.theirs, self.yours)


class PlanMoved(Conflict):
    """What would be stored is no longer what the plan has shown: nothing was changed. `found` is its hash now."""

    code = "plan_moved"

    def __init__(self, plan: str, found: str, moved: tuple[str, ...] = ()) -> None:
        said = "; ".join(moved) or "the definitions or the options are others than then, or a run has come meanwhile"
        super().__init__(f"plan {shown(plan)} no longer holds: {shown(said, 2000)}: look at the plan again")
        self.plan, self.found, self.moved = plan, found, moved

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.plan, self.found, self.moved)


class NotOwned(Conflict):
    """Jobs of these names belong to other owners: nothing was stored. `refusals` has a sentence for each."""

    code = "owned_by_another"

    def __init__(self, refusals: tuple[str, ...]) -> None:
        super().__init__("; ".join(refusals))
        self.refusals = refusals

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.refusals,)


class OccurrenceExists(Conflict):
    """The same key was used before with another payload."""

    code = "occurrence_exists"

    def __init__(self, id: str) -> None:
        super().__init__(f"occurrence already exists: {id}")
        self.id = id

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.id,)


class JobDisabled(EverytickError):
    """A disabled job takes no requests; enable it first."""

    code = "job_disabled"

    def __init__(self, job: str) -> None:
        super().__init__(f"job '{shown(job)}' is disabled and takes no requests: enable it first")
        self.job = job

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.job,)


class NeedsConfirmation(EverytickError):
    """The operation touches a protected job or creates many runs: nothing is done before it is confirmed."""

    code = "needs_confirmation"

    def __init__(
        self, what: str, reasons: Sequence[str], cost: str, jobs: Sequence[str] = (), is_for_two: bool = False
    ) -> None:
        self.what, self.reasons, self.cost = what, tuple(reasons), cost
        self.jobs, self.is_for_two = tuple(jobs), is_for_two
        then = " proposes it, and another person must approve it" if is_for_two else " carries it out"
        super().__init__(f"{what} ({cost}) needs a confirmation: {'; '.join(reasons)}; confirmed=True or --yes{then}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.reasons, self.cost, self.jobs, self.is_for_two)


class NeedsApproval(EverytickError):
    """The operation was proposed. It is carried out once another person approves it."""

    code = "needs_approval"

    def __init__(self, what: str, proposal: str, by: str, expires_at: datetime, verb: str = "approve") -> None:
        self.what, self.proposal, self.by, self.expires_at, self.verb = what, proposal, by, expires_at, verb
        super().__init__(
            f"{what} is proposed as {proposal} by {shown(by)}, and nothing is done yet: another person carries it out "
            f"with everytick {verb} {proposal} before {expires_at.isoformat(timespec='minutes')}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.proposal, self.by, self.expires_at, self.verb)


class NotAllowed(EverytickError, PermissionError):
    """A service does not know who asks, or this person may not do what was asked."""

    code = "not_allowed"


class TooManyEditions(EverytickError):
    """More edits wait to be decided than a snapshot may hold; nothing was changed."""

    code = "too_many_editions"

    def __init__(self, job: str, most: int) -> None:
        super().__init__(
            f"job '{shown(job)}' has {most} edits that no node has looked at yet: try again in a moment; "
            "if it is paused and its instants are to be caught up, end that pause first"
        )
        self.job, self.most = job, most

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.job, self.most)


# Met by the operator who starts a program on a store.


class MissingExtra(EverytickError):
    """An optional package is needed and not installed."""

    code = "missing_extra"

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs an optional package; install it with: pip install 'everytick[{extra}]' "
            f"(in a checkout: pip install '.[{extra}]')"
        )
        self.what, self.extra = what, extra

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.what, self.extra)


class AlreadyRunning(EverytickError):
    """The application was started twice in one process."""

    code = "already_running"


class RecoveryFailed(EverytickError, RuntimeError):
    """The first look at the store after a start went wrong, for another reason than a store that is away."""

    code = "recovery_failed"


class StoreUnavailable(EverytickError):
    """The store does not answer; nothing is known about what was asked of it, so ask again."""

    code = "store_unavailable"

    def __init__(self, store: str, reason: str) -> None:
        self.store, self.reason = store, reason
        super().__init__(self._message())

    def _message(self) -> str:
        return f"{shown(self.store)} does not answer: {shown(self.reason)}; try again once it does"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.store, self.reason)


class Contended(StoreUnavailable):
    """Another session was in the way: nothing was written, and the same call may well succeed now."""

    code = "contended"


class StoreBroken(StoreUnavailable):
    """The store answers with errors that do not pass by themselves: a table is missing, the file is damaged."""

    code = "store_broken"

    def __init__(self, store: str, reason: str, advice: str | None = None) -> None:
        self.advice = advice
        super().__init__(store, reason)

    def _message(self) -> str:
        if self.advice is not None:
            return f"{shown(self.store)} cannot be used: {shown(self.reason)}: {shown(self.advice, 300)}"
        return f"{shown(self.store)} answers with errors: {shown(self.reason)}; this does not pass by itself: mend it"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.store, self.reason, self.advice)


class StoreGone(StoreUnavailable):
    """The store that was opened is no longer the one at its address: what is written is lost, so the node stops."""

    code = "store_gone"

    def _message(self) -> str:
        return (
            f"{shown(self.store)} is gone: {shown(self.reason)}; nothing more is written: put the right one in its "
            "place and start this node again"
        )


class StoreMoved(StoreGone):
    """Everything that the store held is in another one now, and it refuses every write."""

    code = "store_moved"

    def __init__(self, store: str, where: str, move_id: str) -> None:
        self.where, self.move_id = where, move_id
        super().__init__(store, f"it has moved to {where}")

    def _message(self) -> str:
        return (
            f"{shown(self.store)} has moved to {shown(self.where)}: nothing more is written here; name the new address "
            "as the store and start again, or as next_store, which nodes follow by themselves"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.store, self.where, self.move_id)


class StoreArriving(StoreUnavailable):
    """Another store is being moved into this one. It is used once that has ended; nodes wait for it."""

    code = "store_arriving"

    def __init__(self, store: str, source: str, move_id: str) -> None:
        self.source, self.move_id = source, move_id
        super().__init__(store, f"{source} is being moved into it")

    def _message(self) -> str:
        return (
            f"{shown(self.store)} is not in use yet: {shown(self.source)} is being moved into it; nodes begin once "
            "everytick db move has ended"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.store, self.source, self.move_id)


class MoveRefused(EverytickError):
    """A store cannot be moved like this. What was not begun has changed nothing; the old store stays in use."""

    code = "move_refused"


class SchemaMismatch(EverytickError):
    """The tables in the store are not those that this version of everytick works with; nothing was changed."""

    code = "schema_mismatch"

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"{shown(store)}: {shown(reason, 300)}")
        self.store, self.reason = store, reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.store, self.reason)


# Met by the author of a task, inside it.


class Fenced(EverytickError):
    """The occurrence is no longer this node's: what the task wrote in its transaction was taken back."""

    code = "fenced"

    def __init__(self, occurrence_id: str) -> None:
        self.occurrence_id = occurrence_id
        super().__init__(
            f"occurrence {shown(occurrence_id)} was given to another node meanwhile: nothing of this transaction was "
            "written; end the task, the other node goes on"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.occurrence_id,)


class TransactionsUnsupported(EverytickError):
    """The store has no transactions that a task could share."""

    code = "transactions_unsupported"

    def __init__(self, store: str) -> None:
        self.store = store
        super().__init__(
            f"this needs a store with transactions, and {shown(store)} has none: use sqlite:/// or postgresql://"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.store,)


# Raised by a task to steer itself. Not under EverytickError, see above.


class TryAgain(Exception):
    """This attempt has failed and wants another after its own wait, which counts against `Retry.max`."""

    def __init__(self, after: str | timedelta, reason: str = "") -> None:
        self.after = after
        self.reason = reason
        super().__init__(reason or f"try again after {after}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.after, self.reason)


class GiveUp(Exception):
    """This run has failed for good, whatever retries are left."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason or "given up")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason,)
