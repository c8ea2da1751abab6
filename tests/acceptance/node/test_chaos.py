"""Nodes that are killed, frozen and stopped at random, and a checker that knows nothing of how they work."""

import random
import signal
from collections import defaultdict
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from everytick.stores.base import Whole
from tests.acceptance.node.conftest import ON_REDIS_TOO
from tests.acceptance.node.fleet import Fleet, Node
from tests.acceptance.node.records import all_records

BLOWS = 50
FROZEN_FOR = 4.0
"""Seconds: a node is taken for dead after two."""
LAST_LINES = 16


class Line(NamedTuple):
    """What a task wrote while it ran."""

    job: str
    instant: int
    attempt: int
    fence: int
    process: int


@pytest.mark.slow
@pytest.mark.timeout(900)
@ON_REDIS_TOO
def test_fifty_blows_lose_nothing_and_repeat_nothing(address: str, fleet: Fleet, tmp_path: Path) -> None:
    """S0-070, S0-072: one occurrence per instant, none lost, no holes, no zombie's word in a record."""
    file, seed = tmp_path / "lines", random.randrange(10**6)
    dice = random.Random(seed)
    size = 2 if address.startswith("sqlite") else 3
    alive = [fleet.start("chaos", address, file) for _ in range(size)]
    for _ in range(BLOWS):
        for _ in range(dice.randrange(1, 4)):
            fleet.hear("ran ", within=90)
        struck = alive.pop(dice.randrange(len(alive)))
        strike(fleet, struck, dice)
        alive.append(struck if struck.process.poll() is None else fleet.start("chaos", address, file))
    for _ in range(LAST_LINES):
        fleet.hear("ran ", within=90)
    for node in alive:
        node.tell_to_stop()
    assert [node.ended() for node in alive] == [0] * size, f"seed {seed}"

    check(file, all_records(address), f"seed {seed}")


def strike(fleet: Fleet, node: Node, dice: random.Random) -> None:
    """Kill the node, freeze it for longer than it may be silent, or tell it to stop."""
    blow = dice.choice(["kill", "kill", "freeze", "stop"])
    if blow == "kill":
        node.kill()
    elif blow == "stop":
        node.tell_to_stop()
        # One that has only just been started knows nothing of signals yet.
        assert node.ended() in (0, -signal.SIGTERM), node.complaints()
    else:
        node.process.send_signal(signal.SIGSTOP)
        # One that is frozen in the middle of a write keeps a file from all others: there may be nothing to hear.
        fleet.hear_for(FROZEN_FOR)
        node.process.send_signal(signal.SIGCONT)


def check(file: Path, records: list[Whole], said: str) -> None:
    """Judge what was written and recorded."""
    lines = [Line(job, *map(int, rest)) for job, *rest in (line.split() for line in file.read_text().splitlines())]
    by_job: dict[str, list[Whole]] = defaultdict(list)
    for whole in records:
        by_job[whole.occurrence.job_id].append(whole)
    assert len(by_job) == 2, said
    for wholes in by_job.values():
        instants = sorted(int(whole.occurrence.scheduled_for.timestamp()) for whole in wholes)
        assert {later - earlier for earlier, later in pairwise(instants)} == {1}, said
        assert [w.occurrence.error for w in wholes if w.occurrence.status == "failed_stale"] == [], said
        for whole in wholes:
            numbers = [attempt.number for _, attempt in whole.attempts]
            assert numbers == list(range(1, len(numbers) + 1)), said
    recorded = {
        (int(whole.occurrence.scheduled_for.timestamp()), task, attempt.number): str(attempt.status)
        for whole in records
        for task, attempt in whole.attempts
    }
    lines.sort(key=lambda line: (line.job, line.instant))
    for (job, instant), of_one in groupby(lines, key=lambda line: (line.job, line.instant)):
        newest = 0
        for line in of_one:
            if line.fence < newest:
                assert recorded[instant, job, line.attempt] == "lost", f"{said}: {line} came after fence {newest}"
            newest = max(newest, line.fence)
    ended = {(int(w.occurrence.scheduled_for.timestamp()), task) for w in records for task, _ in w.attempts}
    assert {(line.instant, line.job) for line in lines} <= ended, said
    for whole in records:
        if whole.occurrence.status == "completed":
            successes = [attempt for _, attempt in whole.attempts if attempt.status == "success"]
            assert len(successes) == 1, said
