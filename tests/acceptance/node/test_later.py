"""A9: runs asked for later and jobs made at run time, over the death of the nodes that would have run them."""

import asyncio
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

from everytick import Everytick, Occurrence
from tests.acceptance.node.fleet import WITHIN, Fleet, Node
from tests.acceptance.node.records import all_records

PAGE = Path(__file__).parents[3] / "docs/runtime-jobs.md"
FILE = re.compile(r"^```py\n# (?P<path>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LATER = timedelta(seconds=4)


def test_a_run_asked_for_later_outlives_the_node_and_runs_once(address: str, fleet: Fleet) -> None:
    """A9: the node is killed before the time has come, and another one starts."""
    first = fleet.start("asked", address)
    fleet.hear("ended short completed", by=first)
    asked = _ask(address)
    first.kill()
    second = fleet.start("asked", address)
    fleet.wait_until(lambda: [each.status for each in _triggered(address)] == ["completed"], "it has run once")
    second.tell_to_stop()
    assert second.ended() == 0

    [made] = _triggered(address)
    assert (made.id, made.status) == (asked, "completed")
    assert made.started_at is not None
    assert made.started_at >= made.scheduled_for


def _ask(address: str) -> str:
    async def asking() -> str:
        tick = Everytick(address, name="asking")
        try:
            handle = await tick.trigger("short", after=LATER)
            assert [run.id for run in await tick.upcoming("short", 1)] == [handle.id]
            return handle.id
        finally:
            await tick.close()

    return asyncio.run(asking())


def _triggered(address: str) -> list[Occurrence]:
    return [whole.occurrence for whole in all_records(address) if whole.occurrence.cause == "trigger"]


def test_the_example_of_the_page_survives_a_restart(fleet: Fleet, tmp_path: Path) -> None:
    """A9: the run that was asked for comes once, and the job that no code defines any more goes on."""
    for found in FILE.finditer(PAGE.read_text()):
        (tmp_path / found["path"]).write_text(found["text"])
    asked = subprocess.run(
        [sys.executable, "ask.py"], cwd=tmp_path, capture_output=True, text=True, timeout=WITHIN, check=False
    )
    assert (asked.stdout, asked.returncode) == ("asked for\n", 0), asked.stderr
    address = f"sqlite:///{tmp_path / 'shop.db'}"

    _until_completed(fleet, address, {"remind": 1, "send_report": 1})
    _until_completed(fleet, address, {"remind": 1, "send_report": 1 + _completed(address)["send_report"]})
    assert _completed(address)["remind"] == 1


def _until_completed(fleet: Fleet, address: str, least: dict[str, int]) -> None:
    """Start a node in the folder of the store, and kill it once each task has so many runs that ended well."""
    folder = Path(address.removeprefix("sqlite:///")).parent
    node: Node = fleet.run([sys.executable, "-m", "everytick", "run", "-a", "shop"], cwd=folder)

    def is_done() -> bool:
        done = _completed(address)
        return all(done.get(task, 0) >= number for task, number in least.items())

    fleet.wait_until(is_done, f"{least} completed; {node.complaints()}")
    node.kill()


def _completed(address: str) -> dict[str, int]:
    """Return how many runs of each task have ended well."""
    done: dict[str, int] = {}
    for whole in all_records(address):
        if whole.occurrence.status == "completed":
            for run in whole.runs:
                done[run.task] = done.get(run.task, 0) + 1
    return done
