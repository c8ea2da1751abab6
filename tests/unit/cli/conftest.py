"""A store with a past, and the command called in this process on it."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from everytick import Context, Everytick, cron, every
from everytick.cli.main import called
from everytick.deciding.plan import plan
from everytick.stores.base import CommitFailed
from everytick.testing import drain
from tests.stores.acting import everything


@dataclass(frozen=True)
class Said:
    """What a call came to."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


Cli = Callable[..., Said]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, at_noon: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, none of our variables, noon and UTC."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("EVERYTICK_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'shop.db'}"


@pytest.fixture
def shop(address: str) -> Everytick:
    """An application whose jobs are in the store; nothing has run yet."""
    app = Everytick(address, name="shop")

    @app.job(cron("30 2 * * *", tz="Europe/Berlin"), tags=["night"], description="counts pages")
    def nightly(ctx: Context, pages: int = 1) -> int:
        ctx.progress(1, pages)
        return pages

    @app.job(every("1h", start="2026-01-01T00:00:00Z"))
    def broken() -> None:
        raise ValueError("no \x1b[31mgood")

    both = app.define("both", cron("0 0 1 1 *"))

    @both.task
    def first() -> None: ...

    @both.task(after=["first"])
    def second() -> None: ...

    asyncio.run(stored(app))
    return app


async def stored(app: Everytick) -> None:
    await app.sync()
    await app.close()


def ran(app: Everytick, *names: str) -> list[str]:
    """Trigger these jobs and run them to their ends; return the ids of what ran, in order."""

    async def run() -> list[str]:
        ids = [(await app.trigger(name)).id for name in names]
        await drain(app)
        await app.close()
        return ids

    return asyncio.run(run())


@pytest.fixture
def plain(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Call the command as it stands."""

    def call(*arguments: str) -> Said:
        capsys.readouterr()
        code = called(arguments)
        return Said(int(code), *capsys.readouterr())

    return call


@pytest.fixture
def cli(plain: Cli, address: str) -> Cli:
    """Call the command on the store."""
    return lambda *arguments: plain("--store", address, *arguments)


def park(app: Everytick, name: str) -> None:
    """Let the store refuse a plan of this job, which is due since it was stored."""

    async def refuse() -> None:
        store = await app._opened()
        async with store.due(await everything(store), 10) as batch:
            plans = [plan(each, batch.now) for each in batch.snapshots if each.editions[-1].job.name == name]
            spoilt = [replace(each, watermark=each.watermark - timedelta(days=1)) for each in plans]
            done = await store.commit_plans(batch, spoilt)
        assert [type(answer) for answer in done.answers] == [CommitFailed]
        await app.close()

    asyncio.run(refuse())
