"""Texts that are attacks, in a real browser: every page shows them, and none becomes an element, a link or a script.

Names, tags, owners, queues, tasks, reasons, errors, payloads, people, nodes, files and saved views. The tests in
tests/unit/web/test_security_texts.py read the markup; here a browser runs it, with script.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from everytick import Everytick, Rollout, every
from everytick.domain.nodes import NodeFacts
from everytick.domain.people import CameBy, Doer
from everytick.errors import NeedsApproval
from tests.acceptance.web.browsing import Reader, served

ATTACKS = (
    '"><img src=x onerror=alert(1)>',
    "' onfocus='alert(2)' autofocus='",
    "</title></textarea></script><svg onload=alert(3)>",
    "<iframe srcdoc='<script>alert(4)</script>'>",
)
ADDRESS = "javascript:alert(5)"
"""An attack only where a whole text becomes an address."""

KINDS = (
    "job",
    "tag",
    "owner",
    "queue",
    "task",
    "description",
    "payload",
    "error",
    "reason",
    "by",
    "node",
    "host",
    "file",
    "yaml",
)
PAGES = ("", "?w=3d", "timeline", "jobs", "history", "agenda", "agenda/table", "files", "nodes", "year", "audit", "do")
OF_JOB = ("", "?as=table", "/do", "/do/trigger", "/do/edit", "/do/remove", "/versions", "/coverage")
INJECTED = """() => {
  const found = [], bad = "img, iframe, object, embed, base, math, animate, style, script:not([src^='/static/'])";
  for (const e of document.querySelectorAll(bad)) found.push(e.outerHTML.slice(0, 100));
  for (const e of document.querySelectorAll("*")) for (const { name, value } of e.attributes) {
    const isAddress = ["href", "src", "action", "formaction", "data", "xlink:href"].includes(name);
    if (/^on|^style$|^srcdoc$|^autofocus$/.test(name) || (isAddress && !/^([#?]|[/](?![/])|$)/.test(value)))
      found.push(`${e.localName} ${name}=${value}`);
  }
  return found;
}"""
"""What a page has that no page of ours has."""


def named(kind: str, attack: str) -> str:
    """Return the attack as a text of this kind, so that a page tells which texts it shows."""
    return f"{kind}{attack}"


def _job_file(attack: str) -> str:
    """Return a file with an unknown key, a schedule and a value that cannot be read, all of them attacks."""
    text = named("yaml", attack).replace("'", "''")
    return f"version: 1\njobs:\n  '{text}':\n    schedule: '{text}'\n    overlap: '{text}'\n    '{text}': 1\n"


def _folder(folder: Path, attack: str) -> Path:
    """Make a folder of broken files with hostile names. A name of a file holds no slash."""
    jobs = folder / "jobs"
    jobs.mkdir()
    (jobs / f"{named('file', attack).replace('/', '')}.yaml").write_text(_job_file(attack))
    (jobs / "not-yaml.yaml").write_text(f"version: [1\n{attack}")
    return jobs


def _facts(attack: str) -> NodeFacts:
    said, host = (attack, attack), named("host", attack)
    now = datetime.now(UTC)
    return NodeFacts(
        attack, attack, attack, host, 1, 4, (attack,), now, attack, broken_files=(said,), stale_jobs=(said,)
    )


def _define(tick: Everytick, attack: str) -> None:
    """Define a job whose every text is this attack, and which fails with it."""

    def fail(said: str = "") -> None:
        raise ValueError(named("error", attack))

    job = tick.define(
        named("job", attack), every("1h"), tags=[named("tag", attack)], owner=named("owner", attack),
        description=named("description", attack), payload={"said": named("payload", attack)},
    )  # fmt: skip
    job.task(name=named("task", attack))(fail)
    waiting = tick.define(
        named("waiting", attack), every("1h"), queue=named("queue", attack), owner=named("owner", attack),
        protected="two_people",
    )  # fmt: skip
    waiting.task(fail)


async def _happened(tick: Everytick, attack: str) -> list[str]:
    """Let people do what leaves texts; the pages of what came of it."""
    job, waiting, reason, by = (named(kind, attack) for kind in ("job", "waiting", "reason", "by"))
    failed = await tick.trigger(job, reason=reason, by=by)
    await failed.wait("60s")
    await tick.trigger(waiting, reason=reason, by=by)
    year = datetime.now(UTC) - timedelta(days=300)
    backfill = await tick.backfill(
        job, year, year + timedelta(days=9), as_of="now", approve=False, confirmed=True, reason=reason, by=by
    )
    await tick.update(job, every("2h"), policy=Rollout(0.5), detach=True, by=by)
    await tick.pause(waiting, reason=reason, by=by)
    with tick.acting_as(Doer(by, CameBy.COMMAND)), pytest.raises(NeedsApproval):
        await tick.remove(waiting, confirmed=True)
    [proposal] = [each for each in await tick.proposals() if waiting in each.jobs]
    await tick.set_limit(f"queue:{named('queue', attack)}", most=3, reason=reason, by=by)
    await tick.brake(f"tag:{named('tag', attack)}", reason=reason, by=by)
    await (await tick._opened()).beat(named("node", attack), (), _facts(attack))
    return [
        f"occurrences/{failed.id}", f"occurrences/{failed.id}/do/replay", f"backfills/{backfill.id}/do/approve",
        f"proposals/{proposal.id}/do/approve",
    ]  # fmt: skip


def _of_job(attack: str) -> list[str]:
    job = quote(named("job", attack), safe="")
    lists = [f"{page}?job={job}" for page in ("history", "year", "audit")]
    typed = [f"jobs?q={job}", f"lab?schedule={job}", f"history?error={job}", f"views?page=jobs&query=q%3D{job}"]
    return [*(f"jobs/{job}{page}" for page in OF_JOB), *lists, *typed]


@asynccontextmanager
async def hostile(folder: Path, attack: str) -> AsyncIterator[tuple[str, list[str]]]:
    """Serve an application in which every text is the attack; its address and the paths of its pages."""
    tick = Everytick("memory://", name=attack, poll="100ms", jobs=_folder(folder, attack), log_folder=folder / "logs")
    _define(tick, attack)
    tick.job(every("1h"), name=ADDRESS, tags=[ADDRESS], owner=ADDRESS)(lambda: None)
    async with tick:
        paths = [*PAGES, f"jobs/{quote(ADDRESS, safe='')}", *await _happened(tick, attack), *_of_job(attack)]
        async with served(tick) as url:
            yield url, paths


@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_text_becomes_more_than_text(tmp_path: Path, reader: Reader, attack: str) -> None:
    """S5: no dialog, no error on the console, no request to another host, no element and no link of theirs."""
    found: dict[str, Any] = {}
    shown = ""
    async with hostile(tmp_path, attack) as (url, paths):
        page = await reader.open(url)
        for path in paths:
            is_no_schedule = path.startswith("lab?")
            await reader.follow(page, url + path, expect_status=400 if is_no_schedule else 200)
            shown += str(await page.locator("main").text_content())
            if injected := await page.evaluate(INJECTED):
                found[path] = injected
        await reader.leave()

    assert found == {}
    assert [kind for kind in KINDS if _bare(named(kind, attack)) not in _bare(shown)] == [], "no page shows it"


def _bare(text: str) -> str:
    """Return the text as all pages show it: some begin it in capitals or as JSON, and names of files have no slash."""
    return text.lower().translate(str.maketrans("", "", '\\"/'))


@pytest.mark.parametrize("attack", [*ATTACKS, ADDRESS])
async def test_no_name_of_a_saved_view_becomes_more_than_text(reader: Reader, attack: str) -> None:
    """What is typed comes back: in the cookie, on the list of views and on the page that has them."""
    tick = Everytick("memory://", name="shop")
    async with served(tick) as url:
        page = await reader.open(f"{url}views?page=jobs&query={quote(f'q={attack}')}")
        await page.fill("main [name=name]", attack)
        await reader.press(page, "Save this view")
        found = await page.evaluate(INJECTED)
        shown = await page.locator("main").inner_text()
        await reader.follow(page, f"{url}views?page=jobs")
        found += await page.evaluate(INJECTED)
        await reader.leave()
    await tick.close()

    assert found == []
    assert attack[:40] in shown
