"""Timers and services, one rule at a time."""

from datetime import timedelta

import pytest

from everytick.sources.importing.findings import Findings, UnreadableSource, Unsayable
from everytick.sources.importing.systemd import read_timer
from everytick.sources.importing.systemd_calendar import calendar_texts, time_span
from everytick.sources.importing.systemd_command import Words, commands_of, words_of


def imported(timer: str, service: str = "ExecStart=/bin/true") -> Findings:
    unit = ("x.service", f"[Service]\n{service}".encode())
    return read_timer(f"[Timer]\n{timer}".encode(), "x.timer", service=lambda _: unit, timezone="UTC")


def parts(timer: str, service: str = "ExecStart=/bin/true") -> dict[str, object]:
    found = imported(timer, service)
    assert found.jobs, [str(each) for each in found.left]
    return dict(found.jobs[0].parts)


def why(timer: str, service: str = "ExecStart=/bin/true") -> str:
    found = imported(timer, service)
    assert not found.jobs
    return found.left[-1].why


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90", timedelta(seconds=90)),
        ("1h 30min", timedelta(hours=1, minutes=30)),
        ("1.5h", timedelta(minutes=90)),
        ("2w3d", timedelta(days=17)),
        ("5min 20s 3ms", timedelta(minutes=5, seconds=20, milliseconds=3)),
        ("1month", timedelta(seconds=2629800)),
    ],
)
def test_time_spans_are_as_long_as_systemd_says(text: str, length: timedelta) -> None:
    assert time_span(text) == length


@pytest.mark.parametrize("text", ["", "1 fortnight", "-5", "h"])
def test_what_is_no_time_span_is_refused(text: str) -> None:
    with pytest.raises(Unsayable):
        time_span(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "*", "Fri..Mon 10:00", "*-*-5..1", "*-*-* 24:00", "00/00:10", "*-*~03..01", "10:00 Europe/Nowhere", "@0",
        "*-*-* */2:00", "10:20:30.5", "1..5", "9" * 5000 + ":00", "Mon *-*-01 10:00:30",
    ],
)  # fmt: skip
def test_what_systemd_refuses_or_we_cannot_say_is_refused(text: str) -> None:
    with pytest.raises(Unsayable):
        calendar_texts(text)


def test_persistence_is_recovery() -> None:
    assert parts("OnCalendar=daily\nPersistent=yes")["recovery"] == "execute_last"
    assert "recovery" not in parts("OnCalendar=daily")


def test_a_random_delay_is_jitter_and_a_fixed_one_is_spread() -> None:
    assert parts("OnCalendar=daily\nRandomizedDelaySec=90")["jitter"] == "1m30s"
    assert parts("OnCalendar=daily\nRandomizedDelaySec=90\nFixedRandomDelay=true")["spread"] == "1m30s"


def test_an_empty_line_takes_back_those_before_it() -> None:
    assert (
        parts("OnCalendar=daily\nOnCalendar=\nOnCalendar=hourly UTC")["schedule"] == "0 * * * *; dst_gap=skip; tz=UTC"
    )


def test_a_timer_of_times_we_cannot_say_is_left() -> None:
    assert why("OnBootSec=5min") == "not imported: none of its times can be said here"


def test_several_commands_are_tasks_in_their_order() -> None:
    tasks = parts("OnCalendar=daily", "Type=oneshot\nExecStart=a\nExecStart=b\nExecStartPre=c\nExecStartPost=d")[
        "tasks"
    ]

    assert [(each["name"], each["command"]) for each in tasks] == [  # type: ignore[attr-defined]
        ("pre-1", ["c"]), ("start-2", ["a"]), ("start-3", ["b"]), ("post-4", ["d"]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/bin/a b  c", ["/bin/a", "b", "c"]),
        ("""a "b c" 'd "e"' f\\ """, None),
        ("""a "b c" 'd "e"' --x="y z\"""", ["a", "b c", 'd "e"', "--x=y z"]),
        (r"a \x41\t\s\"\\", ["a", 'A\t "\\']),
        ("a '' b", ["a", "", "b"]),
        ("a 'b", None),
        (r"a \q", None),
    ],
)
def test_words_are_split_as_systemd_does(line: str, words: list[str] | None) -> None:
    if words is None:
        with pytest.raises(Unsayable):
            words_of(line)
    else:
        assert words_of(line) == words


def test_variables_and_specifiers_are_filled_in_where_the_unit_knows_them() -> None:
    words = Words("app@eu", {"ARGS": "-a -b", "X": "1 2"})

    [command] = commands_of("/bin/app $ARGS ${X} a$X %p %i $$HOME 5%%", words)

    assert command.words == ("/bin/app", "-a", "-b", "1 2", "a$X", "app", "eu", "$HOME", "5%")


def test_a_bare_semicolon_stands_between_two_commands() -> None:
    commands = list(commands_of(r"a b ; c \; d", Words("x", {})))

    assert [each.words for each in commands] == [("a", "b"), ("c", ";", "d")]


@pytest.mark.parametrize(
    ("service", "reason"),
    [
        ("ExecStart=/bin/a $NOBODY", "$NOBODY is not in the unit"),
        ("EnvironmentFile=/etc/x\nEnvironment=A=1\nExecStart=/bin/a ${A}", "$A is not in the unit"),
        ("ExecStart=/bin/a %h", "%h in '%h' is filled in by systemd"),
        ("ExecStart=@/bin/a b", "another name for itself"),
        ("ExecStart=/bin/a '{{ job }}'", "would be filled in here"),
        ("WorkingDirectory=~\nExecStart=/bin/a", "is not a plain folder"),
        ("User=me", "has no ExecStart"),
    ],
)
def test_a_command_that_cannot_be_known_leaves_the_job(service: str, reason: str) -> None:
    assert reason in why("OnCalendar=daily", service)


def test_an_instance_is_made_of_its_template_and_a_template_alone_is_left() -> None:
    units = {"dump@.service": ("dump@.service", b"[Service]\nExecStart=/bin/dump %i %n\n")}
    timer = b"[Unit]\nDescription=Dump of %i\n[Timer]\nOnCalendar=daily\n"

    found = read_timer(timer, "dump@main.timer", service=units.get, timezone="UTC")
    [job] = found.jobs
    assert dict(job.parts)["command"] == ["/bin/dump", "main", "dump@main.service"]
    assert dict(job.parts)["description"] == "Dump of main"
    found = read_timer(timer, "dump@.timer", service=units.get, timezone="UTC")
    assert "systemctl cat dump@INSTANCE.timer" in found.left[0].why


def test_a_service_is_no_timer() -> None:
    with pytest.raises(UnreadableSource, match=r"x\.service:1: there is no \[Timer\]"):
        read_timer(b"[Service]\nExecStart=a", "x.service", service=lambda _: None)


def test_a_line_that_systemd_does_not_know_is_listed_and_the_others_are_read() -> None:
    timer = b"[Timer]\nhello\nOnCalendar=daily UTC\n"
    found = read_timer(timer, "x.timer", service=lambda _: ("x.service", b"stray=1\n[Service]\nExecStart=a\n"))

    assert [job.name for job in found.jobs] == ["x"]
    assert [(each.file, each.line, each.what) for each in found.left] == [
        ("x.timer", 2, "hello"),
        ("x.service", 1, "stray"),
    ]
    assert all("no line of a unit" in each.why for each in found.left)
