"""A host whose clock was an hour ahead and is set right, with real processes on a file."""

from pathlib import Path

from tests.acceptance.cli.terminal import everytick
from tests.acceptance.node.fleet import Fleet


def test_a_host_clock_that_was_ahead_and_is_set_right_holds_up_only_what_was_decided(
    tmp_path: Path, fleet: Fleet
) -> None:
    """L4, C-45, S1-030: a running node follows the clock back; take-over and retries go on at once.

    A job that was decided ahead is silent. The doctor names it with the command that lets it go on.
    """
    address, step = f"sqlite:///{tmp_path / 'store.db'}", tmp_path / "step"
    _set(step, 3600)
    wrong = fleet.start("host_clock", address, step)
    for said in ("held 1", "retried in vain 1", "ran "):
        fleet.hear_also(said, by=wrong)
    _set(step, 0)
    fleet.hear_error("this host's clock was set back by", by=wrong)
    wrong.kill()

    right = fleet.start("host_clock", address, step)
    fleet.hear_also("held 2", by=right)
    fleet.hear_also("retried well ", by=right)
    asked = everytick(tmp_path, "doctor", "--store", address)
    assert asked.returncode == 1
    assert "decided ahead" in asked.stdout
    assert "`everytick db rewind seconds` sets it right" in asked.stdout
    assert not [line for node, line in fleet.lines if node == right.name and line.startswith("ran ")]

    rewound = everytick(tmp_path, "db", "rewind", "--yes", "--store", address)
    assert rewound.returncode == 0
    assert "seconds" in rewound.stdout.split()
    fleet.hear("ran ", by=right)
    right.tell_to_stop()
    assert right.ended() == 0
    ran = [line for line in fleet.heard() if line.startswith("ran ")]
    assert len(set(ran)) == len(ran)


def _set(step: Path, seconds: float) -> None:
    """Let the host's clock be ahead by so much; a reader sees the old or the new value."""
    new = step.with_suffix(".new")
    new.write_text(str(seconds))
    new.replace(step)
