"""Commands as real processes."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from everytick.domain.outcome import Failed
from everytick.domain.trace_ids import traceparent
from everytick.runners.command import CommandBody
from everytick.runners.context import Halt
from everytick.runners.guard import Guard
from everytick.runners.outcomes import NOTHING
from everytick.runners.scratch import Scratch
from everytick.runners.targets import CommandTarget
from tests.acceptance.runners.test_process import alive, gone
from tests.unit.runners.attempts import (
    NOON,
    Remembering,
    attempt,
    begun,
    carried_out,
    error_of,
    job_of,
    open_files,
    stopped,
)

LONG = timedelta(seconds=60)
NONE = timedelta(0)

TELL = """
import json, os, sys
told = {key: os.environ[key] for key in os.environ if key.startswith("EVERYTICK_") or key in ("OWN", "TRACEPARENT")}
alone = os.getsid(0) == os.getpid()
print(json.dumps({"env": told, "arguments": sys.argv[1:], "folder": os.getcwd(), "session": alone}))
"""


class Kit:
    """What commands need of a node."""

    def __init__(self, root: Path) -> None:
        self.guard, self.scratch = Guard(), Scratch(root)

    def body(
        self,
        command: str | tuple[str, ...],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        grace: timedelta = LONG,
    ) -> CommandBody:
        target = CommandTarget(command, tuple((env or {}).items()), cwd)
        return CommandBody(target, self.scratch, self.guard, grace)


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    made = Kit(tmp_path / "scratch")
    yield made
    made.guard.close()
    made.scratch.close()


async def test_a_command_is_told_about_its_occurrence_by_its_environment(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVERYTICK_WEB")  # the tests have it for the nodes that they start
    services = Remembering()
    context = attempt(job_of(payload={"é": 1}), services=services)
    arguments = (sys.executable, "-c", TELL, "{{ job }}-{{attempt}}", "{{ scratch }}/x; rm -rf $HOME", "{{ payload }}")

    outcome = await carried_out(kit.body(arguments, env={"OWN": "mine"}, cwd=str(tmp_path)), context)

    assert outcome is NOTHING
    told = json.loads(services.written)
    scratch = str(tmp_path / "scratch" / context.occurrence_id)
    assert told["env"] == {
        "EVERYTICK_JOB": "etl",
        "EVERYTICK_TASK": "first",
        "EVERYTICK_OCCURRENCE_ID": context.occurrence_id,
        "EVERYTICK_RUN_ID": context.run_id,
        "EVERYTICK_ATTEMPT_ID": context.attempt_id,
        "EVERYTICK_ATTEMPT": "2",
        "EVERYTICK_FENCE": "3",
        "EVERYTICK_SCHEDULED_FOR": NOON.isoformat(),
        "EVERYTICK_COVERS_AFTER": "",
        "EVERYTICK_COVERS_THROUGH": NOON.isoformat(),
        "EVERYTICK_PAYLOAD": '{"é": 1}',
        "EVERYTICK_SCRATCH": scratch,
        "OWN": "mine",
        "TRACEPARENT": traceparent(context.occurrence_id, context.attempt_id),
    }
    assert told["arguments"] == ["etl-2", f"{scratch}/x; rm -rf $HOME", '{"é": 1}']
    assert told["folder"] == str(tmp_path)
    assert told["session"]


async def test_the_trace_of_the_occurrence_is_handed_on_and_not_that_of_the_node(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = Remembering()
    monkeypatch.setenv("TRACEPARENT", "00-abc-def-01")
    context = attempt(services=services)

    await carried_out(kit.body('echo "$TRACEPARENT"'), context)

    assert services.written.decode().strip() == traceparent(context.occurrence_id, context.attempt_id)


async def test_text_goes_through_a_shell_and_a_list_does_not(kit: Kit) -> None:
    shell, plain = Remembering(), Remembering()

    await carried_out(kit.body('echo "$EVERYTICK_JOB" | tr a-z A-Z; echo oops >&2'), attempt(services=shell))
    await carried_out(kit.body(("echo", "$EVERYTICK_JOB | tr a-z A-Z")), attempt(services=plain))

    assert shell.written == b"ETL\noops\n"
    assert plain.written == b"$EVERYTICK_JOB | tr a-z A-Z\n"


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("echo one; echo two; exit 3", "exit code 3\none\ntwo"),
        ("exit 4", "exit code 4"),
        ("printf 'a\\033[2Jb'; exit 1", "exit code 1\na\\x1b[2Jb"),
        ("kill -9 $$", "killed by SIGKILL"),
        ("seq 100; exit 1", "exit code 1\n" + "\n".join(map(str, range(81, 101)))),
    ],
)
async def test_the_exit_code_is_the_outcome_and_the_error_ends_with_the_last_lines(
    kit: Kit, command: str, error: str
) -> None:
    assert await carried_out(kit.body(command)) == Failed(error)


@pytest.mark.parametrize(
    ("command", "cwd", "says"),
    [
        (("no-such-program-here",), None, "'no-such-program-here' could not be started: "),
        (("/etc/passwd",), None, "'/etc/passwd' could not be started: "),
        (("true",), "/no/such/folder", "could not be started in '/no/such/folder': "),
    ],
)
async def test_a_program_that_cannot_be_started_is_a_failure_that_says_why(
    kit: Kit, command: tuple[str, ...], cwd: str | None, says: str
) -> None:
    before = open_files()

    assert says in error_of(await carried_out(kit.body(command, cwd=cwd)))
    assert open_files() <= before


async def test_a_payload_that_no_environment_can_hold_is_a_failure_that_says_so(kit: Kit) -> None:
    """I3"""
    context = attempt(job_of(payload={"x": "y" * 140_000}))

    outcome = await carried_out(kit.body("true"), context)

    assert isinstance(outcome, Failed)
    assert outcome.give_up
    assert "does not fit into an environment variable" in outcome.error


async def test_a_timeout_ends_a_command_with_everything_it_started(kit: Kit) -> None:
    """S0-066, H5: TERM is not listened to, KILL is."""
    services = Remembering()
    context = attempt(services=services)
    stubborn = "trap '' TERM; sh -c \"trap '' TERM; echo $$; echo \\$\\$; echo ready; sleep 1000\" & wait"
    running = begun(kit.body(stubborn, grace=NONE), context)
    await services.heard(b"ready\n")
    pids = [int(line) for line in services.written.split()[:2]]
    assert [alive(pid) for pid in pids] == [True, True]

    assert await stopped(running, context, Halt.TIMEOUT) is None

    for pid in pids:
        await gone_by_number(pid)


async def test_a_stop_that_names_a_shorter_timeout_kills_the_command_after_that(kit: Kit) -> None:
    """S0-109, S0-110: not after the grace period that the node was made with."""
    services = Remembering()
    context = attempt(services=services)
    running = begun(kit.body("trap '' TERM; echo ready; sleep 1000", grace=timedelta(hours=1)), context)
    await services.heard(b"ready\n")
    context._grace_seconds = 0.0
    async with asyncio.timeout(60):
        assert await stopped(running, context, Halt.SHUTDOWN) is None


async def gone_by_number(pid: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    await gone(handle)


async def test_the_end_of_a_command_is_learned_also_where_the_kernel_does_not_tell(
    kit: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def untold(pid: int) -> int:
        raise OSError("no such thing here")

    monkeypatch.setattr(os, "pidfd_open", untold)
    services = Remembering()
    context = attempt(services=services)

    assert await carried_out(kit.body("exit 3")) == Failed("exit code 3")
    running = begun(kit.body("echo ready; sleep 1000"), context)
    await services.heard(b"ready\n")
    assert await stopped(running, context, Halt.CANCEL) is None


async def test_commands_leave_no_file_open_behind_them(kit: Kit) -> None:
    """T12"""
    await carried_out(kit.body("true"))
    before = open_files()

    for _ in range(5):
        await carried_out(kit.body("true"))
        context = attempt()
        running = begun(kit.body("sleep 1000", grace=NONE), context)
        await asyncio.sleep(0)
        await stopped(running, context, Halt.CANCEL)

    assert open_files() <= before


async def test_a_canceled_command_may_clean_up_within_the_grace_period(kit: Kit) -> None:
    services = Remembering()
    context = attempt(services=services)
    polite = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    running = begun(kit.body(polite), context)
    await services.heard(b"ready\n")

    assert await stopped(running, context, Halt.CANCEL) is None

    assert services.written.endswith(b"cleaned\n")


async def test_something_left_in_the_background_does_not_hold_up_the_outcome(kit: Kit) -> None:
    services = Remembering()

    assert await carried_out(kit.body("echo $$; sleep 1000 & echo $!"), attempt(services=services)) is NOTHING

    _, behind = map(int, services.written.split())
    assert alive(behind)
    os.kill(behind, signal.SIGKILL)


async def test_output_can_be_read_while_the_command_runs(kit: Kit, tmp_path: Path) -> None:
    services, pipe = Remembering(), tmp_path / "pipe"
    os.mkfifo(pipe)
    running = begun(kit.body(f"echo first; read line < {pipe}; echo $line"), attempt(services=services))
    await services.heard(b"first\n")
    await asyncio.to_thread(pipe.write_text, "second\n")

    assert await running is NOTHING
    assert services.written == b"first\nsecond\n"


async def test_a_flood_of_output_is_taken_in_and_the_error_stays_small(kit: Kit) -> None:
    """F-18"""
    taken = 0

    class Counting(Remembering):
        def output(self, context: object, data: bytes) -> None:
            nonlocal taken
            taken += len(data)

    flood = "head -c 50000000 /dev/zero; exit 1"
    outcome = await carried_out(kit.body(flood), attempt(services=Counting()))

    assert taken == 50_000_000
    assert len(error_of(outcome)) < 65_536


async def test_tasks_of_an_occurrence_share_a_folder_that_goes_with_it(kit: Kit, tmp_path: Path) -> None:
    job, services = job_of("a:b", "a:c"), Remembering()
    await carried_out(kit.body('echo secret > "$EVERYTICK_SCRATCH/file"'), attempt(job, 0))
    await carried_out(kit.body('cat "$EVERYTICK_SCRATCH/file"'), attempt(job, 1, services=services))
    folder = tmp_path / "scratch" / attempt(job).occurrence_id

    assert services.written == b"secret\n"
    assert folder.stat().st_mode & 0o777 == 0o700
    kit.scratch.forget(attempt(job).occurrence_id)
    kit.scratch.forget(attempt(job).occurrence_id)
    await asyncio.to_thread(removed)
    assert not folder.exists()


def removed() -> None:
    import threading

    for each in threading.enumerate():
        if each.name == "everytick scratch":
            each.join()


async def test_without_a_scratch_folder_temporary_files_are_used_and_removed() -> None:
    scratch = Scratch()
    made = scratch.folder("one")

    assert scratch.folder("one") == made
    assert made.parent.name.startswith("everytick-")
    scratch.close()
    assert not made.parent.exists()


async def test_the_guard_kills_what_a_killed_node_leaves_behind(tmp_path: Path) -> None:
    """H5: no other process is left to do it."""
    script = tmp_path / "node.py"
    script.write_text(
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from datetime import timedelta\n"
        "from everytick.runners.command import CommandBody\n"
        "from everytick.runners.guard import Guard\n"
        "from everytick.runners.scratch import Scratch\n"
        "from everytick.runners.targets import CommandTarget\n"
        "from tests.unit.runners.attempts import Remembering, attempt\n"
        "class Printing(Remembering):\n"
        "    def output(self, context, data): print(data.decode(), end='', flush=True)\n"
        "async def main():\n"
        "    target = CommandTarget(\"trap '' TERM HUP; sleep 1000 & echo $$ $!; wait\")\n"
        "    body = CommandBody(target, Scratch(Path(sys.argv[1])), Guard(), timedelta(0))\n"
        "    await body.run(attempt(services=Printing()))\n"
        "asyncio.run(main())\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((os.getcwd(), *sys.path))}
    node = await asyncio.create_subprocess_exec(
        sys.executable, str(script), str(tmp_path / "s"), env=env, stdout=asyncio.subprocess.PIPE
    )
    assert node.stdout is not None
    handles = [os.pidfd_open(int(pid)) for pid in (await node.stdout.readline()).split()]
    assert len(handles) == 2

    node.kill()
    await node.wait()

    for handle in handles:
        await gone(handle)


async def test_a_guard_that_was_killed_is_replaced_and_told_everything_again(kit: Kit) -> None:
    services = Remembering()
    context = attempt(services=services)
    running = begun(kit.body("echo ready; sleep 1000"), context)
    await services.heard(b"ready\n")
    first = kit.guard._process
    assert first is not None
    first.kill()
    first.wait()

    assert await carried_out(kit.body("true")) is NOTHING

    assert kit.guard._process is not None
    assert kit.guard._process.pid != first.pid
    kit.guard.close()  # it kills what it watches, and it was told of the first command again
    assert "killed by SIGKILL" in error_of(await running)
