"""What living nodes report: job files they cannot read, and jobs that no node can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from everytick.cli.output import say
from everytick.cli.session import store_of_app
from everytick.errors import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everytick.app import Everytick
    from everytick.stores.base import JobRecord


class Broken(NamedTuple):
    """The job files that living nodes cannot read, with their mistakes, and the same by the jobs of these files.

    `unknown` are the jobs that no living node knows how to run, with the reason. `parked` are those
    of which nothing is planned: some node cannot read their definition, or the store refuses their plan.
    `living` is how many nodes live.
    """

    files: dict[str, str]
    of_job: dict[str, str]
    unknown: dict[str, str]
    parked: dict[str, str]
    living: int


async def told_by_nodes(app: Everytick, records: Sequence[JobRecord]) -> Broken:
    """Return the broken files and unknown jobs that living nodes report, and the jobs that the store has parked.

    What a silent node said may be mended since, and is left out.
    """
    from everytick.domain.nodes import unknown_targets, unmet_needs

    store = await store_of_app(app)
    now = await store.now()
    alive = [node for node in await app.nodes() if node.is_alive(now, app.settings.node_timeout)]
    found = Broken({}, {}, {}, {**await store.parked()}, len(alive))
    told = [node.facts for node in alive if node.facts is not None]
    for facts in told:
        found.files.update(facts.broken_files)
        known = dict(facts.broken_files)
        found.of_job.update((job, known.get(file, f"{file}: broken")) for job, file in facts.stale_jobs)
    jobs = [record.job for record in records]
    if len(told) == len(alive):
        # A node that has not told its facts yet may well run it.
        found.unknown.update(unmet_needs(jobs, told, now))
    found.unknown.update(unknown_targets(jobs, told))
    return found


def tell_broken(broken: Broken) -> None:
    """Say which files are broken, which jobs go on as they were, which are parked, and which no node can run."""
    for job, reason in broken.parked.items():
        say(f"nothing of {shown(job)} is planned: {shown(reason, 300)}", mark="red")
    for reason in sorted(set(broken.unknown.values())):
        names = sorted(job for job, why in broken.unknown.items() if why == reason)
        say(f"no living node can run {shown(', '.join(names), 300)}: {shown(reason, 300)}", mark="red")
    for file, wrong in sorted(broken.files.items()):
        kept = sorted(job for job, reason in broken.of_job.items() if reason == wrong)
        after = f"; as they were before: {shown(', '.join(kept), 300)}" if kept else ""
        say(f"broken file {file}{after}\n  " + wrong.replace("\n", "\n  "), mark="red")
