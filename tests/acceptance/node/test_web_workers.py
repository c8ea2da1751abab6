"""A web application with several worker processes: every occurrence runs once, in any of them."""

import signal
import sys
from collections import Counter
from itertools import pairwise

import pytest

from tests.acceptance.node.fleet import Fleet
from tests.servers.keeper import free_port

WORKERS = 4
INSTANTS = 4
STARTED_WITHIN = 90.0
"""Four processes import a web framework at the same time, which takes long on a busy machine."""


def test_each_occurrence_runs_once_under_four_web_workers(
    address: str, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every worker has a node of its own by `lifespan`, and the store lets one of them run each instant."""
    monkeypatch.setenv("STORE", address)
    web = "tests.acceptance.node.programs.web:app"
    options = ["--workers", str(WORKERS), "--port", str(free_port()), "--log-level", "warning"]
    server = fleet.run([sys.executable, "-m", "uvicorn", web, *options])
    instants: set[str] = set()
    while len(instants) < INSTANTS:
        instants.add(fleet.hear("ran ", within=STARTED_WITHIN).split()[2])

    server.tell_to_stop(signal.SIGTERM)
    server.ended()

    ran = Counter(line.split()[2] for line in fleet.heard() if line.startswith("ran "))
    assert set(ran.values()) == {1}
    assert {int(later) - int(earlier) for earlier, later in pairwise(sorted(ran))} == {1}
