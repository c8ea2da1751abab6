"""A folder with an application in it, as a user of the command has it."""

from pathlib import Path

import pytest

APPLICATION = '''
import time
from everytick import Context, Everytick, cron, every

tick = Everytick("sqlite:///jobs.db", name="shop")


@tick.job(cron("30 2 * * *", tz="Europe/Berlin"), tags=["night"])
def nightly(ctx: Context, pages: int = 2) -> str:
    """Count pages, slowly enough to be watched."""
    for done in range(pages):
        ctx.progress(done, pages, note="pages")
        time.sleep(0.1)
    print("all pages done")
    return "done"


@tick.job(cron("0 0 1 1 *"))
def broken() -> None:
    print("about to \\x1b[31mfail")
    raise ValueError("no \\x1b]0;good\\x07 reason")


@tick.job(every("1s"), on_create="immediately")
def pulse() -> None:
    print("pulse")
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APPLICATION)
    return tmp_path
