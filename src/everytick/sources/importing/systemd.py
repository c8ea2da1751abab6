"""Timers of systemd, with the services that they start.

What a timer says becomes the schedule, what its service says becomes the command. Every other
line of both units is listed, but for `[Install]`, which only says when the timer is switched on.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from everytick.domain.durations import format_duration
from everytick.domain.values import value
from everytick.errors import shown
from everytick.sources.importing.findings import Findings, UnreadableSource, Unsayable, decoded, refuse_template
from everytick.sources.importing.systemd_calendar import calendar_texts, time_span
from everytick.sources.importing.systemd_command import Words, commands_of, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

DEFAULTS: Mapping[str, object] = {"overlap": "skip", "recovery": "mark_as_missed", "task_timeout": None}
"""A timer's policies: an active unit is not started again, and missed times do not run."""

ServiceFile: TypeAlias = tuple[str, bytes]
"""A file and its text."""

_YES = frozenset(("1", "yes", "y", "true", "t", "on"))
_COUNTED = {
    "OnActiveSec": "there is no schedule that begins when the timer is switched on",
    "OnBootSec": "there is no schedule that begins with a start of the machine",
    "OnStartupSec": "there is no schedule that begins with a start of systemd",
}
_TIMER_LEFT = {
    "AccuracySec": "nothing is put off to save energy: every instant is exact",
    "OnClockChange": "a change of the clock starts nothing",
    "OnTimezoneChange": "a change of the time zone starts nothing",
    "WakeSystem": "nothing wakes a machine that sleeps",
    "RemainAfterElapse": "a schedule that is over stays listed",
}
_SERVICE_LEFT = {
    "User": "commands run as the user of the node",
    "Group": "commands run as the user of the node",
    "EnvironmentFile": "its variables are not in the unit: write them under env, or read them in a script",
    "Restart": "write a retry policy: retry: {max: 3, interval: 30s}",
    "RestartSec": "write a retry policy: retry: {max: 3, interval: 30s}",
}
_ITS_ZONE = "systemd means its machine's zone, which the unit does not say, and here it is UTC: give --timezone"
_TEMPLATE = "it is a template: write an instance of it into a file, with systemctl cat {name}INSTANCE.timer"
_NO_LINE = "\0"
_NOT_A_LINE = "it is no line of a unit, key=value below a [Section], and systemd passes it over too"
_OF_SYSTEMD = "systemd does this for its units, and everytick does not do it for commands"


@value
class Directive:
    """One line of a unit."""

    section: str
    key: str
    given: str
    line: int


@value
class Unit:
    """A unit: its file, its name, and its lines in order."""

    file: str
    name: str
    settings: tuple[Directive, ...]

    def all(self, section: str, key: str) -> list[Directive]:
        """Return the lines of a key. An empty one cancels those before it."""
        directives: list[Directive] = []
        for setting in self.settings:
            if setting.section == section and setting.key == key and setting.given != _NO_LINE:
                directives = [*directives, setting] if setting.given else []
        return directives

    def last(self, section: str, key: str) -> Directive | None:
        """Return the line that counts."""
        directives = self.all(section, key)
        return directives[-1] if directives else None


def read_timer(
    raw: bytes,
    file: str,
    *,
    service: Callable[[str], ServiceFile | None],
    timezone: str | None = None,
    taken: set[str] | None = None,
) -> Findings:
    """Return the job of a timer; `service` finds the file and text of the unit of a name."""
    defaults = dict(DEFAULTS) if timezone is None else {"timezone": timezone, **DEFAULTS}
    findings = Findings(file, defaults, taken)
    timer = read_unit(raw, file)
    if not any(setting.section == "Timer" for setting in timer.settings):
        raise UnreadableSource(file, 1, "there is no [Timer] in it: name the timer, not its service")
    _Timer(timer, findings, service, timezone is not None).read()
    findings.left.sort(key=lambda left_out: (left_out.file != file, left_out.line))
    return findings


def read_unit(raw: bytes, file: str) -> Unit:
    """Return the lines of a unit."""
    name = re.split(r"[/\\]", file)[-1]
    return Unit(file, name, tuple(_settings(decoded(raw, file), file)))


def _settings(text: str, file: str) -> Iterator[Directive]:
    section, held, begun = "", "", 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        stripped = line.strip(" \t")
        if not held and (not stripped or stripped[0] in "#;"):
            continue
        if held and stripped[:1] in ("#", ";"):
            continue
        begun = begun if held else number
        if stripped.endswith("\\"):
            held += stripped[:-1] + " "
            continue
        whole, held = (held + stripped).strip(), ""
        if whole.startswith("[") and whole.endswith("]"):
            section = whole[1:-1]
            continue
        key, equals, given = whole.partition("=")
        # systemd warns about an invalid line and goes on: it is only listed here too.
        yield Directive(section, key.strip(), given.strip() if equals else _NO_LINE, begun)


class _Timer:
    """One timer and its service."""

    def __init__(
        self, timer: Unit, found: Findings, service: Callable[[str], ServiceFile | None], has_zone: bool
    ) -> None:
        self._timer, self._found, self._service, self._has_zone = timer, found, service, has_zone
        self._taken_lines: set[tuple[str, int]] = set()
        self._without_zone: list[Directive] = []
        self._named = timer.name.removesuffix(".timer")

    def read(self) -> None:
        timer, findings = self._timer, self._found
        line = next(setting.line for setting in timer.settings if setting.section == "Timer")
        try:
            if self._named.endswith("@"):
                raise Unsayable(_TEMPLATE.format(name=shown(self._named)))
            schedules = self._schedules()
            if not schedules:
                raise Unsayable("none of its times can be said here")
            service = self._found_service()
            parts: dict[str, object] = {
                "schedule": schedules[0] if len(schedules) == 1 else schedules,
                **self._policies(),
                **self._work(service),
            }
        except Unsayable as reason:
            findings.leave(line, self._timer.name, f"not imported: {reason}")
            return
        notes = [f"{shown(timer.file, 200)} and {shown(service.name, 200)}"]
        if findings.add(self._named, parts, line, notes=notes):
            for directive in self._without_zone:
                findings.leave(directive.line, f"the time zone of OnCalendar={directive.given}", _ITS_ZONE)
            self._list_rest(timer, "Timer", _TIMER_LEFT)
            self._list_rest(service, "Service", _SERVICE_LEFT)

    # ------------------------------------------------------------------------------------------------- the timer

    def _schedules(self) -> list[str]:
        texts: list[str] = []
        for directive in self._take_all(self._timer, "Timer", "OnCalendar"):
            texts += self._calendar(directive)
        for directive in self._take_all(self._timer, "Timer", "OnUnitActiveSec"):
            texts.append(f"every {format_duration(time_span(directive.given))}")
            why = (
                "systemd counts from the last start of the unit, and here it is from 1970 on: same period, other phase"
            )
            self._found.leave(directive.line, f"{directive.key}={directive.given}", why)
        for directive in self._take_all(self._timer, "Timer", "OnUnitInactiveSec"):
            texts.append(f"after: {format_duration(time_span(directive.given))}")
        for key, why in _COUNTED.items():
            for directive in self._take_all(self._timer, "Timer", key):
                self._found.leave(directive.line, f"{key}={directive.given}", why)
        return texts

    def _calendar(self, directive: Directive) -> list[str]:
        try:
            texts = calendar_texts(directive.given)
        except Unsayable as reason:
            self._found.leave(directive.line, f"OnCalendar={directive.given}", f"not imported: {reason}")
            return []
        if not self._has_zone and not any("; tz=" in text for text in texts):
            self._without_zone.append(directive)
        return texts

    def _policies(self) -> dict[str, object]:
        parts: dict[str, object] = {}
        if (described := self._take(self._timer, "Unit", "Description")) is not None:
            parts["description"] = self._described(described.given)
        persistent = self._take(self._timer, "Timer", "Persistent")
        if persistent is not None and persistent.given.lower() in _YES:
            parts["recovery"] = "execute_last"
        delay = self._take(self._timer, "Timer", "RandomizedDelaySec")
        fixed = self._take(self._timer, "Timer", "FixedRandomDelay")
        if delay is not None and (length := time_span(delay.given)):
            is_fixed = fixed is not None and fixed.given.lower() in _YES
            parts["spread" if is_fixed else "jitter"] = format_duration(length)
        return parts

    def _described(self, given: str) -> str:
        """Return the description with the specifiers that can be filled in."""
        try:
            return Words(self._named, {}, "timer").specified(given)
        except Unsayable:
            return given

    def _found_service(self) -> Unit:
        named = self._take(self._timer, "Timer", "Unit")
        name = f"{self._named}.service" if named is None else named.given
        # An instance has its template's file, unless it has one of its own.
        template = re.sub(r"@.*\.service$", "@.service", name)
        text = self._service(name) or (self._service(template) if template != name else None)
        if text is None:
            raise Unsayable(f"its service {shown(name)} is not beside it: put it there, or give --service FILE")
        return replace(read_unit(text[1], text[0]), name=name)

    # ----------------------------------------------------------------------------------------------- the service

    def _work(self, service: Unit) -> dict[str, object]:
        """Return the commands of the service, and where they run."""
        words = Words(service.name.removesuffix(".service"), self._environment(service))
        words.has_more = any(service.all("Service", key) for key in ("EnvironmentFile", "PassEnvironment"))
        commands = [
            (directive, command)
            for key in ("ExecStartPre", "ExecStart", "ExecStartPost")
            for directive in self._take_all(service, "Service", key)
            for command in commands_of(directive.given, words)
        ]
        if not any(directive.key == "ExecStart" for directive, _ in commands):
            raise Unsayable(f"{shown(service.name)} has no ExecStart")
        for directive, command in commands:
            for sign, why in command.left:
                self._found.leave(directive.line, f"the {sign} of {directive.key}", why, file=service.file)
        beside = self._beside(service, words)
        refuse_template([word for _, command in commands for word in command.words])
        policies = self._limits(service)
        if len(commands) == 1:
            return {**policies, "command": list(commands[0][1].words), **beside}
        tasks = [
            {"name": f"{_plain(directive.key)}-{number}", "command": list(command.words), **beside}
            for number, (directive, command) in enumerate(commands, 1)
        ]
        return {**policies, "tasks": tasks}

    def _environment(self, service: Unit) -> dict[str, str]:
        found: dict[str, str] = {}
        bare = Words(service.name.removesuffix(".service"), {})
        for directive in self._take_all(service, "Service", "Environment"):
            for word in words_of(directive.given):
                name, _, given = bare.specified(word).partition("=")
                found[name] = given
        return found

    def _beside(self, service: Unit, words: Words) -> dict[str, object]:
        parts: dict[str, object] = {}
        if words.environment:
            refuse_template(words.environment.values())
            parts["env"] = dict(words.environment)
        folder = self._take(service, "Service", "WorkingDirectory")
        if folder is not None:
            given = words.specified(folder.given)
            if not given.startswith("/"):
                raise Unsayable(f"WorkingDirectory={shown(folder.given)} is not a plain folder")
            parts["cwd"] = given
        return parts

    def _limits(self, service: Unit) -> dict[str, object]:
        kind = self._take(service, "Service", "Type")
        is_oneshot = kind is not None and kind.given == "oneshot"
        if kind is not None and kind.given not in ("oneshot", "simple", "exec"):
            why = "an occurrence ends when its command does"
            self._found.leave(kind.line, f"Type={kind.given}", why, file=service.file)
        keys = ("TimeoutStartSec", "TimeoutSec") if is_oneshot else ("RuntimeMaxSec",)
        for key in keys:
            limit = self._take(service, "Service", key)
            if limit is not None and limit.given != "infinity" and (length := time_span(limit.given)):
                return {"execution_timeout": format_duration(length)}
        return {}

    # --------------------------------------------------------------------------------------------- what is left

    def _take(self, unit: Unit, section: str, key: str) -> Directive | None:
        taken = self._take_all(unit, section, key)
        return taken[-1] if taken else None

    def _take_all(self, unit: Unit, section: str, key: str) -> list[Directive]:
        directives = unit.all(section, key)
        self._taken_lines.update((unit.file, setting.line) for setting in unit.settings if setting.key == key)
        return directives

    def _list_rest(self, unit: Unit, main: str, known: Mapping[str, str]) -> None:
        for setting in unit.settings:
            if (unit.file, setting.line) in self._taken_lines or setting.section == "Install" or not setting.given:
                continue
            if unit is not self._timer and (setting.section, setting.key) == ("Unit", "Description"):
                continue
            if not setting.section or setting.given == _NO_LINE:
                self._found.leave(setting.line, setting.key, _NOT_A_LINE, file=unit.file)
                continue
            if (setting.key, setting.given) == ("Restart", "no"):
                continue
            why = known.get(setting.key) if setting.section == main else None
            self._found.leave(setting.line, f"{setting.key}={setting.given}", why or _OF_SYSTEMD, file=unit.file)


def _plain(key: str) -> str:
    return {"ExecStartPre": "pre", "ExecStart": "start", "ExecStartPost": "post"}[key]
