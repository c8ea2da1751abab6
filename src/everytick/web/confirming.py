"""The confirm page of a deed: its question, what will happen, its form, one verb. A form that is sent is carried out.

What is wrong is told beside its field and on top, and what was typed is kept. What is guarded is asked again with its
cost. What has changed meanwhile is shown from both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.responses import RedirectResponse, Response

from everytick import errors
from everytick.domain.values import value
from everytick.web import words
from everytick.web.deeds.deed import AskedField, DeedAnswers, Doing, Done, PageDeed, Prospect
from everytick.web.deeds.payloads import PayloadForm, payload_form
from everytick.web.fields import FieldKind, FormField
from everytick.web.flash import set_flashes
from everytick.web.forms import FormMistake, moment, read_fields, typed_defaults
from everytick.web.framing import Flash
from everytick.web.pictures.trail import localized
from everytick.web.problems import status_of
from everytick.web.rendering import page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import Request

    from everytick.errors import EverytickError

_REFUSALS = (errors.DefinitionError, errors.Conflict, errors.JobDisabled, errors.NotFound, errors.TooManyEditions)
"""What a deed may be refused with on its own page. Everything else is a problem of the whole request."""

OWN = ""
"""The names of a deed's own inputs have no prefix."""


@value
class GuardAsked:
    """What a guarded deed costs and why it is asked again. `is_for_two`: another person must approve it."""

    reasons: tuple[str, ...]
    cost: str
    is_for_two: bool


@value
class BothSides:
    """What others changed since the page was made, and what this form would change."""

    theirs: tuple[str, ...]
    yours: tuple[str, ...]


class Confirming:
    """One confirm page: the fields, what was typed into them, and what will happen."""

    def __init__(self, request: Request, deed: PageDeed, doing: Doing) -> None:
        self.request, self.deed, self.doing = request, deed, doing
        self.fields: Sequence[AskedField] = ()
        self.payload = PayloadForm()
        self.mistakes: list[FormMistake] = []
        self.values: dict[str, Any] = {}
        self.given: dict[str, Any] = {}
        self.prospect = Prospect()
        self.guard: GuardAsked | None = None
        self.sides: BothSides | None = None
        self.version = ""
        """The version that the form is sent for again, after others have edited the job."""

    async def look(self, *, is_sent: bool) -> None:
        """Read the form and find out what will happen. Before it is sent, what was left empty is no mistake."""
        self.fields = await self.deed.fields(self.doing)
        if self.deed.has_payload:
            self.payload = payload_form(self.doing.tick, self.doing.job.job)
        viewer_zone, typed = self.doing.viewer.info, self.doing.typed
        own = read_fields([asked_field.field for asked_field in self.fields], typed, viewer_zone, OWN)
        taken = read_fields(self.payload.fields, typed, self.payload.zone)
        self.values, self.given = own.payload, taken.payload
        found = [*own.mistakes, *taken.mistakes]
        self.mistakes = [mistake for mistake in found if is_sent or typed.get(mistake.name)]
        try:
            self.prospect = await self.deed.foresee(self.doing, self.values)
        except _REFUSALS as error:
            self.refuse(error, is_sent=is_sent)

    def refuse(self, error: EverytickError, *, is_sent: bool = True) -> None:
        """Tell an error beside the field whose value it names, else on top."""
        told = getattr(error, "text", getattr(error, "given", getattr(error, "name", None)))
        name = next((name for name, given in self.values.items() if told is not None and given == told), "")
        if isinstance(error, errors.InvalidPolicies) and "policies" in self.values:
            name = name or "policies"
        text = localized(str(error), self.doing.viewer)
        if not any(mistake.name == name and name for mistake in self.mistakes):
            self.mistakes.append(FormMistake(name, text))
        if not is_sent and not name:
            self.prospect = Prospect(refusal=words.sentence(text))

    async def submit(self) -> Response:
        """Carry the deed out and go to the page behind it, or show the confirm page again with what is missing."""
        typed = self.doing.typed
        if typed.get("look") or self.mistakes or self.prospect.refusal:
            is_wrong = bool(self.mistakes) and not typed.get("look")
            return await self.page(status=422 if is_wrong else 200)
        said = DeedAnswers(
            self.values,
            self.payload.merged(self.given),
            typed.get("key", "")[:64],
            typed.get("confirmed") == "1",
            typed,
        )
        try:
            done = await self._done(said)
        except errors.NeedsConfirmation as needed:
            self.guard = GuardAsked(needed.reasons, needed.cost, needed.is_for_two)
            return await self.page(status=409)
        except _REFUSALS as error:
            return await self._refused(error)
        return self._go_on(done)

    async def _done(self, said: DeedAnswers) -> Done:
        submissions = self.request.app.state.submissions

        async def carried_out() -> Done:
            try:
                return await self.deed.do(self.doing, said)
            except errors.NeedsApproval as proposed:
                return _proposed(self.doing, proposed)

        try:
            done: Done = await submissions.once(self.doing.who.name, said.key, carried_out)
        finally:
            self.request.app.state.known_jobs.forget()
        return done

    async def _refused(self, error: EverytickError) -> Response:
        if isinstance(error, errors.VersionConflict):
            self.sides, self.version = BothSides(error.theirs, error.yours), str(error.found)
            error = errors.VersionConflict(error.job, error.expected, error.found)
        elif isinstance(error, errors.PlanMoved):
            self.sides = BothSides(error.moved, ())
        self.refuse(error)
        return await self.page(status=status_of(error))

    def _go_on(self, done: Done) -> Response:
        answer = RedirectResponse(done.to or self._then() or self.doing.back, 303)
        set_flashes(self.request, answer, [Flash(done.text, done.tone, done.mark, done.undo, done.name)])
        return answer

    def _then(self) -> str:
        """Return the page of ours that the form names as the next one."""
        path = self.doing.typed.get("then", "")
        is_ours = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
        return self.doing.link("") + path if is_ours else ""

    # ------------------------------------------------------------------------------------------------------- the page

    async def page(self, *, status: int = 200) -> Response:
        """Return the confirm page."""
        deed, doing = self.deed, self.doing
        subject = doing.title or doing.subject or ("" if doing.record is None else doing.name)
        values: dict[str, Any] = {
            "deed": deed,
            "question": deed.question.format(subject),
            "button": deed.button.format(subject),
            "crumbs": doing.crumbs,
            "back": doing.back,
            "asked": self.fields,
            "payload": self.payload,
            "typed": self._shown(),
            "mistakes": {mistake.name: mistake.text for mistake in self.mistakes if mistake.name},
            "listed_mistakes": [(mistake, self._label(mistake.name)) for mistake in self.mistakes],
            "prospect": self.prospect,
            "hidden": self._hidden(),
            "guard": self.guard,
            "sides": self.sides,
            "kinds": FieldKind,
        }
        return await page(self.request, "confirm.html", status=status, viewer=doing.viewer, **values)

    def _hidden(self) -> dict[str, str]:
        own = dict(self.prospect.hidden or {})
        own |= {"expected": self.version} if self.version else {}
        then = self.doing.typed.get("then", "")
        return {**own, **({"then": then} if then else {})}

    def _shown(self) -> dict[str, str]:
        """Return what stands in the inputs: what was typed, else the defaults."""
        own = [asked_field.field for asked_field in self.fields]
        found = {**typed_defaults(own, OWN), **typed_defaults(self.payload.fields)}
        is_sent = self.request.method == "POST"
        for field, name, zone in self._inputs():
            if name in self.doing.typed:
                found[name] = self.doing.typed[name]
            elif is_sent and field.kind is FieldKind.SWITCH:
                found[name] = ""
            if field.kind is FieldKind.SWITCH:
                found[name] = "true" if found.get(name, "") not in ("", "false") else ""
            if field.kind is FieldKind.MOMENT and found.get(name):
                found[name] = _on_clock(found[name], zone)
        return found

    def _inputs(self) -> list[tuple[FormField, str, Any]]:
        own = [(asked_field.field, asked_field.field.name, self.doing.viewer.info) for asked_field in self.fields]
        return [*own, *((field, name, self.payload.zone) for field, name in self.payload.inputs())]

    def _label(self, name: str) -> str:
        labels = {asked_field.field.name: asked_field.label for asked_field in self.fields}
        return labels.get(name) or name.removeprefix("p.")


def _on_clock(text: str, zone: Any) -> str:
    """Return a moment as a native field shows it, on the clock of the zone; a text that is none stays."""
    try:
        found = moment(text, zone).astimezone(zone)
    except ValueError:
        return text
    return found.replace(tzinfo=None).isoformat(timespec="seconds" if found.second else "minutes")


def _proposed(doing: Doing, proposed: errors.NeedsApproval) -> Done:
    """Return what the next page tells of a deed that waits for another person."""
    until = doing.viewer.when(proposed.expires_at)
    text = f"Proposed as {proposed.proposal}: {proposed.what}. Another person must approve it before {until}."
    return Done(text, proposed.proposal, tone="look", mark="queued")
