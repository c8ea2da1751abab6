"""What a task prints and logs belongs to its attempt: in coroutines as in threads, and on a terminal by job."""
# ruff: noqa: T201 - tasks print

import asyncio
import io
import logging
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from everytick.domain.outcome import Succeeded
from everytick.runners import capture
from everytick.runners.capture import CapturedStream, JobLabels
from everytick.runners.context import enter, leave
from everytick.runners.function import FunctionBody
from tests.unit.runners.attempts import Remembering, attempt, carried_out

mylib = logging.getLogger("mylib")


@pytest.fixture(autouse=True)
def _captured() -> Iterator[None]:
    capture.streams.enter()
    yield
    capture.streams.leave()


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


async def test_prints_of_coroutines_are_kept_with_their_own_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    """A11: also while they take turns on one loop, and in the tasks and threads that they begin."""
    capture.streams.renew()  # pytest has put its own there since
    turn = asyncio.Barrier(2)

    async def prints(x: int) -> None:
        print(f"first {x}")
        await turn.wait()
        print(f"second {x}")
        await asyncio.create_task(asyncio.to_thread(print, f"third {x}"))

    services = [Remembering(), Remembering()]
    body = FunctionBody(prints)
    attempts = [attempt(services=each, payload_given={"x": number}) for number, each in enumerate(services)]
    await asyncio.gather(*(carried_out(body, each) for each in attempts))
    print("the node's own")

    for number, each in enumerate(services):
        assert each.written.decode() == f"first {number}\nsecond {number}\nthird {number}\n"
    assert "the node's own\n" in capsys.readouterr().out


async def test_every_record_that_a_task_makes_is_kept_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A11: with its level and logger; what a handler prints of it on a captured stream is not kept a second time."""
    capture.streams.renew()
    handler = logging.StreamHandler(sys.stderr)
    assert isinstance(handler.stream, CapturedStream)
    mylib.addHandler(handler)

    async def logs() -> None:
        mylib.warning("page %d", 3)
        mylib.info("below the level of the logger, so never made")

    services = Remembering()
    try:
        await carried_out(FunctionBody(logs), attempt(services=services))
        mylib.warning("outside")
    finally:
        mylib.removeHandler(handler)

    [line] = services.written.decode().splitlines()
    assert line.endswith(" WARNING mylib page 3")
    assert "page 3\n" in capsys.readouterr().err


async def test_a_record_that_a_task_copies_from_elsewhere_is_not_its_own() -> None:
    """`logging.makeLogRecord` makes a record without a name, and fills it afterwards with what a socket has brought."""

    async def copies() -> str:
        return logging.makeLogRecord({"name": "far away", "msg": "said"}).getMessage()

    services = Remembering()
    outcome = await carried_out(FunctionBody(copies), attempt(services=services))
    assert isinstance(outcome, Succeeded)
    assert services.written == b""


async def test_arguments_that_do_not_fit_their_message_do_not_fail_the_task() -> None:
    """A11: the application's handlers complain of it, as they do outside of tasks."""

    async def logs() -> str:
        with suppress(TypeError):  # pytest's own handler raises it
            mylib.warning("%d does not fit", "this")
        return "went on"

    services = Remembering()
    outcome = await carried_out(FunctionBody(logs), attempt(services=services))
    assert isinstance(outcome, Succeeded)
    assert b"does not fit" not in services.written


async def test_a_record_says_which_job_it_comes_from(caplog: pytest.LogCaptureFixture) -> None:
    """A11: `%(everytick)s` in a format of the application's own."""

    async def logs() -> None:
        mylib.warning("page 3", extra={"job": "my own field"})

    await carried_out(FunctionBody(logs), attempt())
    mylib.warning("outside")

    own = logging.Formatter("%(everytick)s %(message)s", defaults={"everytick": "-"})
    told = [own.format(each) for each in caplog.records]
    assert told == ["etl page 3", "- outside"]


def test_on_a_terminal_each_line_begins_with_its_job() -> None:
    """A11: also where two jobs print at once; the node's own lines stay as they are."""
    screen = Screen()
    stream = CapturedStream(screen, JobLabels())
    one, other = attempt(), attempt()

    def says(context: object, text: str) -> None:
        enter(context)  # type: ignore[arg-type]
        stream.write(text)
        leave()

    says(one, "a line\nanother\n")
    says(one, "begun ")
    says(one, "and ended")
    says(other, "between")
    says(one, "\n")
    says(other, "\n")
    stream.write("the node's own\n")

    assert screen.getvalue().splitlines() == [
        "etl | a line",
        "etl | another",
        "etl | begun and ended",
        "etl | between",
        "the node's own",
    ]


def test_both_streams_of_a_terminal_share_its_lines() -> None:
    """A11: what one job prints and another one logs stand on lines of their own."""
    screen, labels = Screen(), JobLabels()
    out, err = CapturedStream(screen, labels), CapturedStream(screen, labels)
    one, other = attempt(), attempt()
    for context, stream, text in ((one, out, "printed"), (other, err, "logged\n"), (one, out, "\n")):
        enter(context)
        stream.write(text)
        leave()
    assert screen.getvalue().splitlines() == ["etl | printed", "etl | logged"]


def test_the_process_gets_its_own_factory_back() -> None:
    inside = logging.getLogRecordFactory()
    capture.streams.leave()
    outside = logging.getLogRecordFactory()
    capture.streams.enter()
    assert isinstance(inside, capture.RecordFactory)
    assert outside is inside.make
