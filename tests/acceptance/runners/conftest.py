"""Streams that only the test uses."""

import pytest

from everytick.runners import capture


@pytest.fixture(autouse=True)
def own_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the streams be put back after the test's own users: nodes that died in other tests never gave them back."""
    monkeypatch.setattr(capture, "streams", capture.Installation())
