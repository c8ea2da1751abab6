"""The runner ray without a cluster; the slow group has one."""

import sys

import pytest

from everytick import Everytick, InvalidSetting, MissingExtra, on_request
from everytick.runners.engine_losses import UNKNOWN_SECONDS, Losses
from everytick.runners.engines import EngineUnreachable, Work
from everytick.runners.ray import RayEngine


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Python find no package ray, also where the slow tests have installed it."""
    monkeypatch.setitem(sys.modules, "ray", None)


def application(address: str | None) -> Everytick:
    tick = Everytick("memory://", name="shop", ray=address, allow_calls=["shop"])
    tick.define("train", on_request(), runner="ray").target("shop.models:train")
    return tick


@pytest.mark.usefixtures("no_ray")
async def test_without_the_package_the_application_says_what_to_install() -> None:
    """An engine is an extra, and the error names the command to type."""
    with pytest.raises(MissingExtra, match=r"pip install 'everytick\[ray\]'"):
        await application("ray://localhost:10001").start()
    with pytest.raises(MissingExtra, match=r"the runner ray needs an optional package"):
        RayEngine("ray://localhost:10001")


async def test_without_the_address_the_application_says_what_to_set() -> None:
    with pytest.raises(InvalidSetting, match="EVERYTICK_RAY"):
        await application(None).start()


def test_a_job_of_ray_needs_the_runner_and_the_package_of_its_function() -> None:
    [definition] = application("ray://localhost:10001").definitions
    assert definition.job.labels.splitlines() == ["call:shop", "runner:ray"]


def test_a_link_that_ends_leaves_the_engine_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray may end the process that holds the connection; what it wrote last is the reason, and nothing was sent."""
    monkeypatch.setattr("everytick.runners.ray.find_spec", lambda _: True)
    monkeypatch.setattr("everytick.runners.ray._PROGRAM", "raise SystemExit('the head node is gone')")
    engine = RayEngine("127.0.0.1:6379")
    with pytest.raises(EngineUnreachable, match="the head node is gone"):
        engine.reach()
    [refused] = engine.submit([Work("attempt_1", "shop:send", (), {}, {}, {}, None)])
    assert isinstance(refused, EngineUnreachable)
    engine.close()


def test_what_an_engine_does_not_know_is_lost_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be on its way; known again in between, it is counted from the beginning."""
    now = [100.0]
    monkeypatch.setattr("everytick.runners.engine_losses.time.monotonic", lambda: now[0])
    losses = Losses("nobody knows it")
    both = ["one", "two"]
    assert losses.among(both, both) == {}
    now[0] += UNKNOWN_SECONDS - 1
    assert losses.among(both, ["two"]) == {}
    now[0] += 2
    assert list(losses.among(both, both)) == ["two"]


def test_attempts_that_are_asked_about_at_other_times_do_not_make_one_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each attempt is asked about in its own rhythm: a question about others says nothing about this one."""
    now = [100.0]
    monkeypatch.setattr("everytick.runners.engine_losses.time.monotonic", lambda: now[0])
    losses = Losses("nobody knows it")
    for _ in range(int(UNKNOWN_SECONDS) + 1):
        assert losses.among(["one"], ["one"]) == {}
        assert losses.among(["two"], []) == {}
        now[0] += 1
    assert list(losses.among(["one"], ["one"])) == ["one"]


def test_an_attempt_that_is_no_longer_asked_about_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("everytick.runners.engine_losses.time.monotonic", lambda: now[0])
    losses = Losses("nobody knows it")
    assert losses.among(["one"], ["one"]) == {}
    now[0] += UNKNOWN_SECONDS + 1
    assert losses.among(["two"], []) == {}
    assert losses.among(["one"], ["one"]) == {}
