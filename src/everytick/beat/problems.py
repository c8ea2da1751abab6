"""What the registry of a beat raises, in the words of its contract (S3-007, S3-008)."""

from everytick.errors import DefinitionError, DuplicateDefinition, shown


class InvalidRegistration(DefinitionError):
    """The registry refuses the schedule; the cause says what to write instead."""

    code = "invalid_registration"

    def __init__(self, cause: str) -> None:
        super().__init__(f"invalid schedule: {cause}")
        self.cause = cause

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.cause,)


class InvalidTimezone(DefinitionError):
    """The name is none of a time zone that is known here."""

    code = "invalid_timezone"

    def __init__(self, timezone: str, cause: str) -> None:
        super().__init__(f"invalid timezone {shown(timezone)}: {cause}")
        self.timezone, self.cause = timezone, cause

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.timezone, self.cause)


class DuplicateSchedule(DuplicateDefinition):
    """The registry holds a schedule of this id already."""

    def __init__(self, id: str) -> None:
        super().__init__(f"schedule with ID {shown(id)} already exists")
        self.id = id

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.id,)


class RegistrationFailed(SystemExit):
    """A program that must have its schedules cannot start. Left alone, it ends with this sentence and status 1."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"failed to register schedule: {cause}")
