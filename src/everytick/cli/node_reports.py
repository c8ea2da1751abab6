"""What living nodes report: job files they cannot read, and jobs that no node can run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everytick.cli.output import say
from everytick.errors import shown

if TYPE_CHECKING:
    from everytick.answers.values import NodeReports


def tell_broken(broken: NodeReports) -> None:
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
