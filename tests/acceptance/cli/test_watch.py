"""`everytick watch` in a process of its own: a fleet that stops is told, by exit code, by a command and by its list."""

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from everytick import Everytick, cron
from everytick.node import node as nodes


async def test_a_fleet_that_stops_is_told_in_a_second_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B3: silence is an alarm, with the promises at risk."""
    told = tmp_path / "event.json"
    options = ("--silence", "2s", "--once", "--command", f"cat > {told}")
    watch = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "everytick", "watch", "http://127.0.0.1:0/ping", *options),
        stderr=asyncio.subprocess.PIPE,
    )
    assert watch.stderr is not None
    [port] = re.findall(r"port (\d+)", (await watch.stderr.readline()).decode())
    monkeypatch.setattr(nodes, "PING_SECONDS", 0.3)
    tick = Everytick("memory://", name="shop", dead_man_url=f"http://127.0.0.1:{port}/ping")
    tick.job(cron("* * * * *"), name="ledger", success_within="30m")(lambda: None)
    await tick.start()
    heard = (await watch.stderr.readline()).decode()
    await tick.stop()
    await tick.close()
    said = (await watch.stderr.read()).decode()
    assert await watch.wait() == 1
    assert "the fleet is heard: 1 nodes live" in heard
    assert "the fleet is silent, last heard at" in said
    event = json.loads(told.read_text())
    assert event["type"] == "io.everytick.fleet.silent.v1"
    assert [each["job"] for each in event["data"]["coming"]] == ["ledger"]
