"""Every test here runs real servers and kernels, in a folder of its own."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.frameworks.project import Project
from tests.acceptance.node.fleet import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(tmp_path) as made:
        yield made


@pytest.fixture
def project(tmp_path: Path, fleet: Fleet) -> Project:
    """An empty folder for a program, and what to start in it."""
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder, fleet, sys.executable)
