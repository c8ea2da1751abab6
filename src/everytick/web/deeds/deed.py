"""What a deed is: its question, its form, what will happen, how it is done. The deeds themselves stand beside this."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from everytick.domain.config import UNSET
from everytick.domain.values import value
from everytick.web.fields import FieldKind, FormField
from everytick.web.paths import link

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from everytick.access.people import Person, Role
    from everytick.app import Everytick
    from everytick.stores.base import JobRecord
    from everytick.web.pictures.trail import TrailStep
    from everytick.web.words import Viewer

LONGEST_TEXT = 500
"""Most characters of a reason, a key or a name."""


@value(frozen=True)
class AskedField:
    """One question of a deed's own form. `words` are what its choices mean. `as_list` is a list that opens."""

    field: FormField
    label: str
    note: str = ""
    words: tuple[tuple[str, str], ...] = ()
    placeholder: str = ""
    as_list: bool = False

    def said(self, choice: object) -> str:
        """Return what stands beside a choice."""
        return dict(self.words).get(str(choice), str(choice))


@value(frozen=True)
class Crumb:
    """A place on the way to the page; the last one has no address."""

    label: str
    href: str = ""


@value(frozen=True)
class Prospect:
    """What will happen, as a trail. With `refusal` the deed cannot be done now, and the page has no button for it.

    `items` are the first of many that it is about, `total` says of how many. `hidden` goes with the form.
    """

    steps: Sequence[TrailStep] = ()
    sub: str = ""
    refusal: str = ""
    items: Sequence[str] = ()
    total: int = 0
    noun: str = "job"
    hidden: Mapping[str, str] | None = None


@value(frozen=True)
class DeedAnswers:
    """What a person said in the form. `values` has each field of the deed that was given, `key` is that of the form."""

    values: Mapping[str, Any]
    payload: Mapping[str, Any]
    key: str = ""
    is_confirmed: bool = False
    hidden: Mapping[str, str] | None = None

    def text(self, name: str) -> str:
        """Return a text, empty if it was left."""
        return str(self.values.get(name) or "")


@value(frozen=True)
class Done:
    """What was done, as a sentence; `name` stands out in it. `to` is the page to go to, `undo` the deed that undoes."""

    text: str
    name: str = ""
    to: str = ""
    undo: str = ""
    tone: str = "done"
    mark: str = "completed"


class Doing:
    """One request for a deed: by whom, about what, on which application."""

    def __init__(self, tick: Everytick, who: Person, viewer: Viewer, root: str, typed: Mapping[str, str]) -> None:
        self.tick, self.who, self.viewer, self.typed = tick, who, viewer, typed
        self.link = partial(link, root)
        self.record: JobRecord | None = None
        self.subject = self.title = ""
        """The id of the occurrence, backfill or proposal that the deed is about, and what its question calls it."""
        self.crumbs: tuple[Crumb, ...] = ()
        self.found: Any = None
        """What the kind of address has looked up: an occurrence, a backfill, a proposal or the jobs of a filter."""

    @property
    def job(self) -> JobRecord:
        """The job that the deed is about."""
        assert self.record is not None, "the route has looked it up"
        return self.record

    @property
    def name(self) -> str:
        """The name of the job."""
        return self.job.job.name

    @property
    def back(self) -> str:
        """The address of the page that the reader came from."""
        return next(crumb.href for crumb in reversed(self.crumbs) if crumb.href)

    def deed(self, name: str, **query: object) -> str:
        """Return the address of another deed on the same job."""
        return self.link("/jobs/{}/do/{}", self.name, name, **query)


Fields: TypeAlias = "Callable[[Doing], Awaitable[Sequence[AskedField]]]"
Foresee: TypeAlias = "Callable[[Doing, Mapping[str, Any]], Awaitable[Prospect]]"
Do: TypeAlias = "Callable[[Doing, DeedAnswers], Awaitable[Done]]"


async def no_fields(_: Doing) -> Sequence[AskedField]:
    """Ask for nothing."""
    return ()


@value(frozen=True)
class PageDeed:
    """One deed. `question` and `button` have a place for the subject's name.

    With `has_payload` the form also asks for what the job's functions take. `is_danger` paints the button red.
    `previews` says that the form changes what will happen: the page offers to look again.
    """

    name: str
    label: str
    question: str
    button: str
    role: Role
    foresee: Foresee
    do: Do
    fields: Fields = no_fields
    has_payload: bool = False
    is_danger: bool = False
    previews: bool = False


# --------------------------------------------------------------------------------------------------- fields of our own


def text_field(
    name: str, label: str, note: str = "", *, is_required: bool = False, placeholder: str = "", default: str = ""
) -> AskedField:
    """Return a question for a line of text."""
    field = FormField(name, FieldKind.TEXT, is_required=is_required, default=default or UNSET)
    return AskedField(field, label, note, placeholder=placeholder)


def lines_field(name: str, label: str, note: str = "") -> AskedField:
    """Return a question for several texts, a line each."""
    return AskedField(FormField(name, FieldKind.LINES), label, note)


def reason_field(note: str = "kept with the deed and in the audit") -> AskedField:
    """Return the question for the reason."""
    return text_field("reason", "Reason", note, placeholder="why?")


def moment_field(doing: Doing, name: str, label: str, note: str = "", *, is_required: bool = False) -> AskedField:
    """Return a question for a moment on the viewer's clock."""
    said = ", ".join(filter(None, (f"in {doing.viewer.zone}", "required" if is_required else "", note)))
    return AskedField(FormField(name, FieldKind.MOMENT, is_required=is_required), label, said)


def number_field(
    name: str, label: str, note: str = "", *, least: int = 1, most: int = 1_000_000, default: int | None = None
) -> AskedField:
    """Return a question for a whole number."""
    given = UNSET if default is None else default
    return AskedField(FormField(name, FieldKind.WHOLE, least=least, most=most, default=given), label, note)


def tick_field(name: str, label: str, note: str = "", *, default: bool = False) -> AskedField:
    """Return a question for yes or no."""
    return AskedField(FormField(name, FieldKind.SWITCH, default=default or UNSET), label, note)


def choice_field(
    name: str,
    label: str,
    words: Sequence[tuple[str, str]],
    note: str = "",
    *,
    default: str | None = None,
    is_required: bool = False,
    as_list: bool = False,
) -> AskedField:
    """Return a question for one of several words, each with what it means."""
    field = FormField(
        name,
        FieldKind.CHOICE,
        is_required=is_required,
        default=UNSET if default is None else default,
        choices=tuple(word for word, _ in words),
    )
    return AskedField(field, label, note, tuple(words), as_list=as_list)


def stamp(moment: datetime) -> str:
    """Return a moment as the value of a choice or a query: exact, in UTC."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
