"""The shapes of requests. Unknown keys are refused."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from everytick.web.api.shapes import (
    Confirm,
    GivenFlag,
    GivenLength,
    GivenMoment,
    GivenName,
    GivenText,
    Json,
    Missed,
    Overlap,
    Rate,
    Shape,
)

Key = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="The same key again asks for the same occurrence. The header Idempotency-Key says the same.",
        examples=["order-1042"],
    ),
]
UpdatePolicy = Annotated[
    str, Field(max_length=100, description="When the new version comes into force.", examples=["graceful"])
]
Plan = Annotated[
    str,
    Field(max_length=100, description="The hash of a preview: exactly that is stored, or nothing.", examples=["1-2"]),
]
Policies = Annotated[
    dict[str, Any], Field(description="Policies by name, as in job files.", examples=[{"priority": 5}])
]
Expected = Annotated[int, Field(ge=1, description="The same as If-Match.", examples=[3])]


class NothingBody(Shape):
    """An empty object: the operation has no arguments."""


class ReasonBody(Shape):
    """Why."""

    reason: GivenText = ""


class TriggerBody(Shape):
    """Ask for an occurrence, now or later."""

    payload: Json = None
    at: GivenMoment | None = None
    after: GivenLength | None = None
    key: Key | None = None
    overlap: Overlap | None = None
    reason: GivenText = ""


class ReplayBody(Shape):
    """Do again what an ended occurrence did."""

    reason: GivenText = ""
    from_task: GivenName | None = None
    key: Key | None = None
    overlap: Overlap | None = None


class PauseBody(Shape):
    """Hold a schedule."""

    until: GivenMoment | None = None
    reason: GivenText = ""
    missed: Missed = "skip"


class ResumeBody(Shape):
    """End a pause."""

    missed: Missed | None = None
    confirm: Confirm = False


class ConfirmedBody(Shape):
    """Carry out what is guarded."""

    confirm: Confirm = False


class AtBody(Shape):
    """A time."""

    at: GivenMoment


class SkipBody(AtBody):
    """Skip one single future instant, or take back what was said of it."""

    reason: GivenText = ""


class MoveBody(SkipBody):
    """Let one single future instant run at another time."""

    to: GivenMoment


class AmendBody(SkipBody):
    """Let one single future instant run with a payload or policies of its own."""

    payload: Json = None
    policies: Policies = Field(default_factory=dict)


class AddBody(SkipBody):
    """Add one single run."""

    payload: Json = None
    overlap: Overlap | None = None


class RenameBody(Shape):
    """Give a job another name."""

    to: GivenName
    expected_version: Expected | None = None
    detach: GivenFlag = False
    confirm: Confirm = False


class UpdateBody(Shape):
    """Change the schedule or single policies of a job. What is not named stays."""

    schedule: Annotated[str, Field(max_length=5_000, examples=["0 6 * * *"])] | None = None
    policies: Policies = Field(default_factory=dict)
    unset: list[Annotated[str, Field(max_length=100, examples=["priority"])]] = Field(
        default_factory=list, max_length=100, description="Policies that are taken back."
    )
    policy: UpdatePolicy | None = None
    expected_version: Expected | None = None
    plan: Plan | None = None
    detach: Annotated[
        bool, Field(description="Also if code or a file defines it: it is then the API's own.", examples=[False])
    ] = False
    confirm: Confirm = False
    dry_run: Annotated[bool, Field(description="Change nothing, and answer with a preview.", examples=[False])] = False


class RollbackBody(Shape):
    """Make an old version the newest one again."""

    version: Annotated[int, Field(ge=1, examples=[3])]
    policy: UpdatePolicy | None = None
    expected_version: Expected | None = None
    detach: GivenFlag = False
    confirm: Confirm = False


class EndRolloutBody(Shape):
    """End the trial of a version."""

    keep: Annotated[bool, Field(description="Whether the version on trial comes into force.", examples=[False])]
    confirm: Confirm = False


Definition = Annotated[
    dict[str, Any],
    Field(
        description="A job as in a job file: schedule, call or tasks, policies.",
        examples=[{"schedule": "30 2 * * *", "call": "shop.jobs:tidy", "retry": {"max": 3, "interval": "30s"}}],
    ),
]


class NewJobBody(Shape):
    """A new job. Its targets are functions that the service knows, or calls that it allows."""

    name: GivenName
    definition: Definition
    confirm: Confirm = False


class DocumentBody(Shape):
    """A document of jobs: an object as in a job file, or its YAML text."""

    document: Annotated[
        dict[str, Any] | None,
        Field(examples=[{"version": 1, "jobs": {"tidy": {"schedule": "@daily", "call": "shop.jobs:tidy"}}}]),
    ] = None
    text: Annotated[str | None, Field(max_length=1_000_000, description="YAML.", examples=[None])] = None

    @model_validator(mode="after")
    def _only_one(self) -> "DocumentBody":
        if sum(form is not None for form in self._forms()) != 1:
            raise ValueError("give a document or its text, and only one of them")
        return self

    def _forms(self) -> tuple[object, ...]:
        """Return the forms in which jobs may be given."""
        return self.document, self.text


FileName = Annotated[str, Field(min_length=1, max_length=1_000, examples=["jobs/nightly.yaml"])]
FileText = Annotated[str, Field(max_length=1_000_000, examples=["version: 1\njobs: {}\n"])]
Files = Annotated[dict[FileName, FileText], Field(max_length=10_000)]


class ApplyBody(DocumentBody):
    """Store a document of jobs, or several job files at once: all of it or nothing."""

    files: Annotated[Files | None, Field(description="Texts of job files, by their names.", examples=[None])] = None
    beside: Annotated[
        Files, Field(description="Texts of files that these name under `use` and `ics`, by their names.", examples=[{}])
    ] = Field(default_factory=dict)
    owner: Annotated[
        str, Field(max_length=200, description="Whose jobs they are; `prune` is about these.", examples=["api"])
    ] = "api"
    prune: Annotated[
        bool, Field(description="Remove jobs of this owner that the document does not name.", examples=[False])
    ] = False
    dry_run: Annotated[bool, Field(description="Change nothing.", examples=[True])] = False
    policy: UpdatePolicy | None = None
    plan: Plan | None = None
    confirm: Confirm = False

    def _forms(self) -> tuple[object, ...]:
        return self.document, self.text, self.files


class PlanBackfillBody(Shape):
    """Let past instants in `(after, through]` run after all."""

    after: GivenMoment
    through: GivenMoment
    again: GivenFlag = False
    overlap: Literal["queue", "allow"] | None = None
    as_of: Literal["then", "now"] = "then"
    rate: Annotated[int, Field(ge=1, le=6_000, description="So many start in a minute.", examples=[60])] = 60
    newest_first: GivenFlag = False
    key: Key | None = None
    dry_run: GivenFlag = False
    approve: Annotated[bool, Field(description="Let it run at once.", examples=[True])] = True
    confirm: Confirm = False
    reason: GivenText = ""


class SetLimitBody(Shape):
    """At most so many at once, or so many starts in a time."""

    most: Annotated[int, Field(ge=1, le=1_000_000, examples=[5])] | None = None
    rate: Rate | None = None
    burst: Annotated[bool, Field(description="Let the starts of a rate come at once.", examples=[False])] = False
    reason: GivenText = ""


class BrakeBody(Shape):
    """Let nothing start. With `begins` and `ends` it is a freeze window that comes again."""

    since: GivenMoment | None = None
    until: GivenMoment | None = None
    begins: Annotated[str | None, Field(max_length=500, examples=[None], description="The schedule of beginnings.")] = (
        None
    )
    ends: Annotated[str | None, Field(max_length=500, examples=[None], description="The schedule of ends.")] = None
    timezone: Annotated[str, Field(max_length=100, examples=["UTC"])] = "UTC"
    reason: GivenText = ""


class ReleaseBody(Shape):
    """End a brake."""

    rate: Rate | None = None
    at_once: GivenFlag = False
    reason: GivenText = ""
