"""What a task's target means on a node."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from everytick.domain.job import Job, Task
from everytick.domain.outcome import Succeeded
from everytick.domain.payload import payload
from everytick.errors import InvalidPolicies
from everytick.runners.catalogue import Catalogue
from everytick.runners.command import CommandBody
from everytick.runners.function import FunctionBody, LoopBody
from everytick.runners.http import HttpBody
from everytick.runners.places import place_of
from everytick.runners.process import ProcessBody
from everytick.runners.targets import call_target, command_target, http_target
from everytick.runners.thread import ThreadBody
from tests.unit.runners.attempts import attempt, carried_out, job_of


def plain() -> str:
    return "plain"


async def coroutine() -> str:
    return "coroutine"


@pytest.fixture
def close() -> Iterator[list[Catalogue]]:
    made: list[Catalogue] = []
    yield made
    for each in made:
        each.close()


def kinds(catalogue: Catalogue, job: Job) -> list[type]:
    bodies = catalogue.bodies(job)
    assert bodies is not None, catalogue.why(job)
    assert catalogue.why(job) == ""
    return [type(body) for body in bodies]


def test_an_applications_own_functions_are_found_by_job_and_task(close: list[Catalogue]) -> None:
    job = job_of("gone:elsewhere", "gone:too")
    catalogue = Catalogue({job.id: {"first": plain, "second": coroutine}})
    close.append(catalogue)

    assert kinds(catalogue, job) == [ThreadBody, FunctionBody]
    assert catalogue.bodies(job) is catalogue.bodies(job)


def test_an_own_function_is_also_found_by_its_place(close: list[Catalogue]) -> None:
    job = job_of(place_of(plain), name="renamed")
    catalogue = Catalogue({"another": {"a": plain, "b": plain, "c": coroutine}})
    close.append(catalogue)

    assert kinds(catalogue, job) == [ThreadBody]
    assert "no function 'os:system'" in catalogue.why(job_of("os:system", name="x"))
    assert catalogue.bodies(job_of("os:system", name="x")) is None


def test_of_two_functions_of_one_place_neither_is_meant() -> None:
    def made() -> Any:
        return lambda: None

    one, other = made(), made()
    catalogue = Catalogue({"a": {"a": one, "b": other}})

    assert "several functions" in catalogue.why(job_of(place_of(one)))


@pytest.mark.parametrize(
    ("function", "runner", "kind"),
    [
        (plain, None, ThreadBody),
        (plain, "thread", ThreadBody),
        (plain, "process", ProcessBody),
        (plain, "function", LoopBody),
        (coroutine, None, FunctionBody),
        (coroutine, "function", FunctionBody),
        (coroutine, "process", ProcessBody),
    ],
)
def test_the_runner_is_the_tasks_choice(function: Any, runner: str | None, kind: type, close: list[Catalogue]) -> None:
    job = job_of(place_of(function), runner=runner)
    catalogue = Catalogue({job.id: {"first": function}})
    close.append(catalogue)

    assert kinds(catalogue, job) == [kind]


def test_a_choice_that_cannot_be_is_a_reason() -> None:
    def local() -> None: ...

    job = job_of("a:b", runner="thread")
    assert 'leave out runner="thread"' in Catalogue({job.id: {"first": coroutine}}).why(job)
    job = job_of("a:b", runner="process")
    assert "top of a module" in Catalogue({job.id: {"first": local}}).why(job)
    job = job_of("a:b", runner="treadmill")
    why = Catalogue({job.id: {"first": plain}}).why(job)
    assert why == "task 'first': there is no runner 'treadmill' for it here: known are function, thread, process"


def test_commands_need_no_function(tmp_path: Path) -> None:
    job = job_of(command_target(["true"]), command_target("true"))

    assert kinds(Catalogue({}), job) == [CommandBody, CommandBody]


def test_requests_need_an_extra_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of(http_target("https://example.org/"))
    assert kinds(Catalogue({}), job) == [HttpBody]

    monkeypatch.setitem(sys.modules, "httpx2", None)

    assert "pip install 'everytick[http]'" in Catalogue({}).why(job)


async def test_the_folder_of_an_occurrence_goes_when_the_node_forgets_it(tmp_path: Path) -> None:
    job = job_of(command_target('touch "$EVERYTICK_SCRATCH/file"'))
    catalogue = Catalogue({}, scratch=tmp_path)
    bodies = catalogue.bodies(job)
    assert bodies is not None
    assert await carried_out(bodies[0], attempt(job)) == Succeeded()
    folder = tmp_path / attempt(job).occurrence_id
    assert [each.name for each in folder.iterdir()] == ["file"]

    catalogue.forget(attempt(job).occurrence_id)
    catalogue.close()

    await asyncio.to_thread(scratch_is_removed)
    assert not folder.exists()


def scratch_is_removed() -> None:
    for each in threading.enumerate():
        if each.name == "everytick scratch":
            each.join()


def test_a_function_may_be_called_by_its_place_only_from_packages_that_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, close: list[Catalogue]
) -> None:
    """S10"""
    package = tmp_path / "everytick_allowed"
    package.mkdir()
    (package / "__init__.py").write_text("from os import system\nimport os\n")
    (package / "jobs.py").write_text("class Kind:\n    @staticmethod\n    def method(): return 5\nnumber = 5\n")
    (package / "broken.py").write_text("raise SystemExit('side effect')")
    monkeypatch.syspath_prepend(tmp_path)
    catalogue = Catalogue({}, allow_calls=["everytick_allowed"])
    close.append(catalogue)

    def why(path: str) -> str:
        return catalogue.why(job_of(call_target(path)))

    assert kinds(catalogue, job_of(call_target("everytick_allowed.jobs:Kind.method"))) == [ThreadBody]
    assert 'not allowed here: add "os" to allow_calls in everytick.toml' in why("os:system")
    assert "not allowed" in why("everytick_allowed_not:x")
    assert "not allowed" in why("builtins:eval")
    assert "only borrowed there: it belongs to 'posix'" in why("everytick_allowed:system")
    assert "only borrowed there" in why("everytick_allowed:os.system")
    assert "is not a function" in why("everytick_allowed.jobs:number")
    assert "could not be imported: AttributeError" in why("everytick_allowed.jobs:missing")
    assert "could not be imported: SystemExit: side effect" in why("everytick_allowed.broken:x")
    assert "could not be imported: ModuleNotFoundError" in why("everytick_allowed.missing:x")
    assert "shutil" not in why("shutil:rmtree") or "not allowed" in why("shutil:rmtree")


def test_a_target_that_cannot_be_read_is_a_reason_and_not_an_error() -> None:
    """I1: the job stays; another node may know better."""
    catalogue = Catalogue({})

    assert "is not JSON" in catalogue.why(job_of("{"))
    assert "names none of" in catalogue.why(job_of('{"pickle": "gASV"}'))
    assert catalogue.bodies(job_of("{")) is None


def test_a_function_that_could_not_be_imported_once_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, close: list[Catalogue]
) -> None:
    """I6"""
    monkeypatch.syspath_prepend(tmp_path)
    catalogue = Catalogue({}, allow_calls=["everytick_late"])
    close.append(catalogue)
    job = job_of(call_target("everytick_late:task"))
    assert catalogue.bodies(job) is None

    (tmp_path / "everytick_late.py").write_text("def task(): return 1")

    import importlib

    importlib.invalidate_caches()
    assert kinds(catalogue, job) == [ThreadBody]


def test_a_runner_of_another_package_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    class Elsewhere:
        wants_previous = False

        def __init__(self, task: Task, function: object) -> None:
            seen.append((task.name, function))

        async def run(self, context: object) -> Succeeded:
            return Succeeded(payload("elsewhere"))

    monkeypatch.setattr(sys.modules[__name__], "Elsewhere", Elsewhere, raising=False)
    point = metadata.EntryPoint("elsewhere", f"{__name__}:Elsewhere", "everytick.runners")
    broken = metadata.EntryPoint("broken", f"{__name__}:Missing", "everytick.runners")
    monkeypatch.setattr(metadata, "entry_points", lambda group: metadata.EntryPoints([point, broken]))
    job = job_of(command_target("true"), runner="elsewhere")

    assert kinds(Catalogue({job.id: {"first": plain}}), job) == [Elsewhere]
    assert kinds(Catalogue({}), job) == [Elsewhere]
    assert seen[0] == ("first", plain)
    assert ("first", None) in seen
    assert "could not be loaded" in Catalogue({}).why(job_of(command_target("true"), runner="broken"))
    assert "known are function, thread, process, broken, elsewhere" in Catalogue({}).why(
        job_of(command_target("true"), runner="thread")
    )


async def test_closing_twice_is_harmless_and_ends_what_was_kept_ready() -> None:
    job = job_of("a:b")
    catalogue = Catalogue({job.id: {"first": plain}})
    bodies = catalogue.bodies(job)
    assert bodies is not None
    assert await carried_out(bodies[0], attempt(job)) == Succeeded(payload("plain"))
    catalogue.forget("nothing")

    catalogue.close()
    catalogue.close()

    assert (catalogue.stuck, catalogue.abandoned) == (0, 0)
    await asyncio.sleep(0)


def test_an_allowed_address_that_is_none_is_refused_at_the_start() -> None:
    with pytest.raises(InvalidPolicies, match="is not a network"):
        Catalogue({}, allow_addresses=["intranet"])


def test_only_so_many_jobs_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everytick.runners.catalogue._REMEMBERED", 3)
    catalogue = Catalogue({})
    for number in range(10):
        catalogue.bodies(job_of(command_target("true"), name=f"job {number}"))

    assert len(catalogue._known) == 3
