"""Crontabs: five fields or a macro, the command, and the lines that set variables for those below them.

As Debian's cron and cronie read them. `CRON_TZ` and `RANDOM_DELAY` are cronie's.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from everytick.errors import EverytickError, shown
from everytick.schedules.codec import schedule
from everytick.sources.importing.findings import Findings, UnreadableSource, Unsayable, decoded, refuse_template

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

DEFAULTS: Mapping[str, object] = {"overlap": "allow", "recovery": "mark_as_missed", "task_timeout": None}
"""Cron's policies: it starts each job on time, and overlaps and failures do not matter to it."""

_SETTING = re.compile(r"""\s*(?P<quote>["']?)(?P<name>[A-Za-z_][^\s="']*)(?P=quote)\s*=\s*(?P<value>.*?)\s*""")
_ENTRY = re.compile(r"(?P<when>@\S+|(?:\S+\s+){4}\S+)\s+(?P<rest>.+)")
_USER = re.compile(r"(?P<user>\S+)\s+(?P<command>.+)")
_SHELL = "/bin/sh"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=\S*")
_USERS = ("root", "nobody", "www-data")
_PLAIN_USER = re.compile(r"[a-z_][a-z0-9_-]*")
_HEADING = re.compile(r"\b(?:dow|day|weekday|wday)\b.*\buser(?:-?name)?\s+(?:command|cmd)\b", re.IGNORECASE)
_ANACRON = "is an anacrontab, whose lines begin with a number of days and of minutes: write them as crontab, @daily …"
# Words before the program that a command runs.
_INTERPRETER = re.compile(r"(?:^|/)(?:python|php|perl|ruby|node|bash|sh|zsh)[0-9.]*$")
_LEADING = frozenset(
    ("!", "(", "{", "command", "do", "else", "eval", "exec", "if", "ionice", "nice", "nohup", "then", "until", "while")
)
_PASSED = frozenset(("[", "[[", ".", "cd", "done", "exit", "export", "fi", "set", "sleep", "source", "test", "umask"))

_NOT_OURS = {
    "MAILTO": "output is not mailed: on_failure: {{email: {{to: {}}}}} under defaults mails once per outage",
    "MAILFROM": "no mail is sent",
    "LOGNAME": "commands run as the user of the node, whom cron would not let change either",
    "USER": "commands run as the user of the node",
    "CONTENT_TYPE": "no mail is sent",
    "CONTENT_TRANSFER_ENCODING": "no mail is sent",
}
_ALIKE = {
    "@reboot": "there is no schedule that begins with a start of the machine: let systemd start it",
    "@every_minute": "write * * * * *",
    "@every_second": "write every 1s",
}


def read_crontab(
    raw: bytes, file: str, *, system: bool = False, timezone: str | None = None, taken: set[str] | None = None
) -> Findings:
    """Return the jobs of a crontab. `system`: each command has a user before it, as in /etc/crontab."""
    defaults = dict(DEFAULTS) if timezone is None else {"timezone": timezone, **DEFAULTS}
    return _Crontab(decoded(raw, file), Findings(file, defaults, taken), system, timezone is not None).read()


class _Crontab:
    """One crontab, read line by line."""

    def __init__(self, text: str, found: Findings, system: bool, has_zone: bool) -> None:
        self._text, self._found, self._system, self._has_zone = text, found, system, has_zone
        self._zone: str | None = None
        self._delay: str | None = None
        self._environment: dict[str, str] = {}
        self._shell = _SHELL
        self._comments: list[str] = []
        self._first_words: list[str] = []
        self._has_heading = False

    def read(self) -> Findings:
        # Not splitlines: a form feed is no line end here.
        for number, line in enumerate(self._text.replace("\r\n", "\n").split("\n"), 1):
            self._line(number, line.strip(" \t"))
        if self._found.jobs and self._zone is None and not self._has_zone:
            why = "cron means its machine's zone, which the file does not say, and here it is UTC: give --timezone"
            self._found.leave(1, "the time zone", why)
        self._hint_at_users()
        self._found.left.sort(key=lambda left_out: left_out.line)
        return self._found

    def _line(self, number: int, line: str) -> None:
        if not line:
            self._comments.clear()
        elif line.startswith("#"):
            self._comments.append(line.lstrip("# "))
            self._has_heading = self._has_heading or _HEADING.search(line) is not None
        elif (setting := _SETTING.fullmatch(line)) is not None:
            self._comments.clear()
            self._set(number, setting["name"], _unquoted(setting["value"]))
        else:
            self._entry(number, line)
            self._comments.clear()

    def _set(self, number: int, name: str, given: str) -> None:
        if name == "START_HOURS_RANGE":
            raise UnreadableSource(self._found.file, number, _ANACRON)
        if name == "CRON_TZ":
            self._zone = given or None
        elif name == "SHELL":
            self._shell = self._environment["SHELL"] = given or _SHELL
        elif name == "RANDOM_DELAY":
            self._delay = f"{int(given)}m" if re.fullmatch(r"[0-9]{1,6}", given) and int(given) else None
            why = (
                "it is not a number of minutes" if self._delay is None else "cron draws it once, and here each run does"
            )
            self._found.leave(number, f"RANDOM_DELAY={given}", why)
        elif name in _NOT_OURS:
            # An empty MAILTO wants no mail, and everytick sends none.
            if given or name != "MAILTO":
                self._found.leave(number, name, _NOT_OURS[name].format(given))
        elif not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            self._found.leave(number, name, "it cannot be the name of an environment variable")
        else:
            self._environment[name] = given

    def _entry(self, number: int, line: str) -> None:
        entry = line
        if line.startswith("-") and not line.startswith("- "):
            entry = line[1:]
            self._found.leave(number, "the - before the minute", "every occurrence is recorded here")
        fields = _ENTRY.fullmatch(entry)
        if fields is None:
            why = "not imported: this is neither a variable nor five fields, or a macro, and a command"
            self._found.leave(number, shown(line, 80), why)
            return
        when, command = re.sub(r"\s+", " ", fields["when"]), fields["rest"]
        if self._system:
            user = _USER.fullmatch(command)
            if user is None:
                self._found.leave(number, shown(line, 80), "not imported: after the user there is no command")
                return
            command = user["command"]
        else:
            self._first_words.append(command.split(None, 1)[0])
        if self._job(number, when, command) and self._system:
            assert user is not None, "a line of a system's crontab has a user, or was left"
            self._found.leave(number, f"the user {user['user']}", "commands run as the user of the node")

    def _job(self, number: int, when: str, command: str) -> bool:
        what = shown(f"{when} {command}", 80)
        try:
            parts = {"schedule": _schedule(when), **self._policies(), **self._command(command)}
        except Unsayable as reason:
            self._found.leave(number, what, f"not imported: {reason}")
            return False
        notes = [*self._comments, f"{shown(self._found.file, 200)}:{number}"]
        return self._found.add(_name(command), parts, number, notes=notes, what=what)

    def _policies(self) -> dict[str, object]:
        parts = {"timezone": self._zone, "jitter": self._delay}
        return {key: given for key, given in parts.items() if given is not None}

    def _command(self, written: str) -> dict[str, object]:
        """Return the command without cron's escapes. The text after a bare % is its standard input."""
        command, given = _split(written)
        refuse_template([command, *([] if given is None else [given]), *self._environment.values()])
        if given is not None:
            run: object = f"printf '%s' {shlex.quote(given)} | {shlex.join([self._shell, '-c', command])}"
        else:
            run = command if self._shell in (_SHELL, "sh") else [self._shell, "-c", command]
        home = self._environment.get("HOME")
        more: dict[str, object] = {"env": dict(self._environment)} if self._environment else {}
        return {"command": run, **more, **({} if home is None else {"cwd": home})}

    def _hint_at_users(self) -> None:
        """Warn if every command begins with the same plain word: it is probably a user."""
        word = self._first_words[0] if len(set(self._first_words)) == 1 else ""
        is_of_system = self._has_heading or self._found.file.startswith("/etc/cron")
        if word in _USERS or (_PLAIN_USER.fullmatch(word) and is_of_system):
            self._found.leave(1, word, "every command begins with it: if it is a user, import again with --system")


def _schedule(when: str) -> str:
    lower = when.lower()
    if lower in _ALIKE:
        raise Unsayable(_ALIKE[lower])
    if "~" in when:
        raise Unsayable(f"'{shown(when)}' asks for a random time: write H(a-b) for one that follows from the job's id")
    text = lower if when.startswith("@") else when
    try:
        schedule(text)
    except EverytickError as error:
        raise Unsayable(str(error)) from None
    return text


def _split(written: str) -> tuple[str, str | None]:
    r"""Split a command at its first bare %: `\%` is a %, and in what follows each bare % ends a line."""
    command, rest = "", iter(written)
    for letter in rest:
        if letter == "%":
            return command, "".join(_lines(rest))
        if letter == "\\":
            following = next(rest, "")
            letter = following if following == "%" else letter + following
        command += letter
    return command, None


def _lines(rest: Iterator[str]) -> Iterator[str]:
    """Return the standard input of the command. Its last line always has a line end."""
    escaped, last = False, "\n"
    for letter in rest:
        sent = letter
        if escaped and letter != "%":
            yield "\\"
        elif not escaped and letter == "%":
            sent = "\n"
        escaped = sent == "\\"
        if not escaped:
            last = sent
            yield sent
    if escaped:
        last = "\\"
        yield "\\"
    if last != "\n":
        yield "\n"


def _unquoted(given: str) -> str:
    """The value without the quotes around it, if they match."""
    return given[1:-1] if len(given) > 1 and given[0] == given[-1] and given[0] in "\"'" else given


def _script_of(words: list[str]) -> list[str]:
    """Return the words from the script on that an interpreter runs; none if it runs none, as with `-c`."""
    if not words or _INTERPRETER.search(words[0]) is None:
        return []
    after = words[1:]
    while after and after[0].startswith("-") and after[0] not in ("-c", "-e", "-m"):
        after = after[1:]
    if after[:1] == ["-m"]:
        after = after[1:]
    return after if after and re.match(r"[\w./~$\"']", after[0]) else []


def _name(command: str) -> str:
    """A name after the first program or script that a command runs, without its folder and ending."""
    for part in re.split(r"&&|\|\||[;|&\n]", command):
        words = [word.lstrip("(") for word in part.split() if not _ASSIGNMENT.fullmatch(word)]
        while words and (words[0] in _LEADING or words[0].startswith("-") or words[0].isdigit()):
            words.pop(0)
        words = _script_of(words) or words
        if words and words[0] not in _PASSED:
            base = words[0].strip("\"'").rstrip("/").rsplit("/", 1)[-1]
            name = re.sub(r"[^A-Za-z0-9_-]+", "-", re.sub(r"\.(sh|py|pl|rb|php)$", "", base)).strip("-")
            if name:
                return name
    return "job"
