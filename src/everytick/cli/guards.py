"""Guarded changes: what waits for a second person, and the changes of code that a start could not confirm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everytick.answers.fleet import proposal_data
from everytick.cli.asking import ask, look, who
from everytick.cli.common_options import VerbCommand
from everytick.cli.output import say, show_json, show_table
from everytick.cli.times import Times
from everytick.cli.verb_options import agreed, reading, sure

if TYPE_CHECKING:
    from datetime import datetime

    from everytick.app import Everytick
    from everytick.domain.changes import Change
    from everytick.domain.proposals import Proposal


@click.command(
    "proposals",
    cls=VerbCommand,
    help="List the changes that wait for a second person.\n\nOne person has asked for each, and another must "
    "approve it: everytick approve ID.",
)
@reading
def proposals_verb(as_json: bool, utc: bool) -> None:
    """List the changes that wait for a second person."""

    async def asked(app: Everytick) -> tuple[list[Proposal], datetime]:
        return await app.proposals(), await app.now()

    found, now = look(asked)
    if as_json:
        show_json([proposal_data(proposal, now) for proposal in found])
        return
    times = Times(utc)
    headings = ("proposal", "what", "jobs", "by", times.heading("until"))
    rows = [
        (
            proposal.id,
            f"{proposal.what}{_expired(proposal, now)}",
            ", ".join(proposal.jobs),
            proposal.by,
            proposal.expires_at,
        )
        for proposal in found
    ]
    show_table(headings, rows, times)
    if not rows:
        say("nothing waits for a second person")


def _expired(proposal: Proposal, now: datetime) -> str:
    return " (expired)" if proposal.expires_at <= now else ""


@click.command(
    "approve",
    cls=VerbCommand,
    help="Carry out what another person has proposed.\n\nAll of it is one transaction; it is refused if a job that it "
    "changes was edited since. Example: everytick approve 3f2a1b2c",
)
@click.argument("proposal")
def approve_verb(proposal: str) -> None:
    """Carry out what another person has proposed."""
    done = ask(lambda app: app.approve(proposal, by=who()))
    say(f"done: {done.what}, proposed by {done.by}")


@click.command("reject", cls=VerbCommand, help="Drop a proposal; who has made it may do so too.")
@click.argument("proposal")
def reject_verb(proposal: str) -> None:
    """Drop a proposal."""
    dropped = ask(lambda app: app.reject(proposal, by=who()))
    say(f"dropped: {dropped.what}, proposed by {dropped.by}")


@click.command(
    "sync",
    cls=VerbCommand,
    help="Store what the application's code defines, as its next start would.\n\nA start leaves changed definitions of "
    "protected jobs as they are: this stores them, once confirmed. Example: everytick sync -a shop:tick --yes",
)
@sure
def sync_verb(yes: bool) -> None:
    """Store what the application's code defines."""

    def work(confirmed: bool) -> list[Change]:
        return ask(lambda app: app.sync(confirmed=confirmed, by=who()), make=True)

    changes = [change for change in agreed(work, yes) if change.kind != "unchanged"]
    show_table(
        ("change", "job", "what"), [(change.kind, change.name, ", ".join(change.parts)) for change in changes], Times()
    )
    say(f"{len(changes):,} change{'' if len(changes) == 1 else 's'}")
