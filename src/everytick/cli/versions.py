"""Versions of jobs: change one, list them, compare two of them, go back to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from everytick.answers.jobs import version_data
from everytick.answers.runs_to_come import diff_data, runs_data
from everytick.cli.asking import ask, look, who
from everytick.cli.common_options import VerbCommand
from everytick.cli.completing import job_argument
from everytick.cli.output import say, show_json, show_pairs, show_table, show_text, write
from everytick.cli.times import Times
from everytick.cli.verb_options import agreed, confirm, reading, sure
from everytick.errors import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from everytick.answers.values import JobVersion, Preview, RolloutStatus
    from everytick.app import Everytick
    from everytick.app.previews import Revision

F = TypeVar("F", bound="Callable[..., Any]")

RUNS = ("added", "removed", "kept")


def update_policy_option(function: F) -> F:
    """Add the option that says when new versions come into force."""
    said = (
        "When new versions come into force: immediate, graceful, 'graceful 3', 'windowed 30d', 'rollout 10% after 20'; "
        "else as each job says."
    )
    return click.option("--policy", metavar="POLICY", help=said)(function)


def plan_option(function: F) -> F:
    """Add the option that names what was shown before."""
    said = "Store exactly what was shown under this hash, or nothing because something has moved."
    return click.option("--plan", metavar="HASH", help=said)(function)


def _detaching(function: F) -> F:
    said = "Also if code or a file defines it: it is then the API's own."
    return click.option("--detach", is_flag=True, help=said)(function)


# ---------------------------------------------------------------------------------------------------------- one change


@click.command(
    "update",
    cls=VerbCommand,
    help="Change the schedule or single policies of a job; a new version of it.\n\n"
    "Writes the version. Examples: everytick update nightly --schedule '0 6 * * *' --policy graceful; "
    "everytick update nightly --set priority=5 --dry-run",
)
@job_argument("job")
@click.option("--schedule", metavar="TEXT", help="The new schedule, like '0 6 * * *' or 'every 10m'.")
@click.option("--set", "given", metavar="POLICY=VALUE", multiple=True, help="A policy; the value is JSON or text.")
@click.option("--unset", metavar="POLICY", multiple=True, help="Take a policy back.")
@update_policy_option
@click.option("--expected-version", type=int, metavar="N", help="Refuse it if the job is at another version.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@plan_option
@_detaching
@sure
@reading
def update_verb(
    job: str,
    schedule: str | None,
    given: tuple[str, ...],
    unset: tuple[str, ...],
    policy: str | None,
    expected_version: int | None,
    dry_run: bool,
    plan: str | None,
    detach: bool,
    yes: bool,
    as_json: bool,
    utc: bool,
) -> None:
    """Change the schedule or single policies of a job."""
    policies = _policies(job, given, unset)
    if schedule is None and not policies:
        raise click.UsageError("nothing is to be changed: give --schedule, --set or --unset")
    options: dict[str, Any] = {"policy": policy, "detach": detach, **policies}
    if dry_run:
        preview = look(lambda app: app.preview_update(job, schedule, **options))
        show_preview(preview, as_json, Times(utc))
        say("nothing was changed: this was a dry run; to store exactly this, repeat it with --plan " + preview.hash)
        return
    options |= {"expected_version": expected_version, "plan": plan, "by": who()}
    edit = agreed(lambda confirmed: ask(lambda app: app.update(job, schedule, confirmed=confirmed, **options)), yes)
    say(f"'{shown(job)}' is at version {edit}")
    write(str(edit))


def _policies(job: str, given: tuple[str, ...], unset: tuple[str, ...]) -> dict[str, Any]:
    """Return the policies that were set and taken back."""
    from everytick.app.text_reading import policy_pair
    from everytick.domain.config import UNSET, Level, policy_arguments

    found: dict[str, Any] = dict.fromkeys(unset, UNSET)
    for text in given:
        pair = policy_pair(text)
        if pair is None:
            raise click.UsageError(f"--set {shown(text)} is no pair: write it like --set priority=5")
        found[pair[0]] = pair[1]
    return policy_arguments(Level.JOB, found, job)


def show_preview(preview: Preview, as_json: bool, times: Times) -> None:
    """Write what an edit would change, and which runs to come."""
    if as_json:
        show_json(
            [
                {
                    "job": change.name,
                    "parts": change.parts,
                    "plan": preview.hash,
                    **runs_data(preview.runs.get(change.name)),
                }
                for change in preview.changes
            ]
        )
        return
    rows = [
        (change.name, ", ".join(change.parts), words(preview.runs.get(change.name), times))
        for change in preview.changes
    ]
    show_table(("job", "what", "runs to come"), rows, times)
    for change in preview.changes:
        if (found := preview.runs.get(change.name)) is not None:
            _show_runs(found, times)


# -------------------------------------------------------------------------------------------------------- many versions


@click.command(
    "versions",
    cls=VerbCommand,
    help="List the versions of a job: who wrote each, when, and what it changed.\n\n"
    "The newest first, with those that are still to come. Example: everytick versions nightly",
)
@job_argument("job")
@click.option("--limit", "n", default=20, type=click.IntRange(1), help="How many; by default 20.")
@reading
def versions_verb(job: str, n: int, as_json: bool, utc: bool) -> None:
    """List the versions of a job."""
    times, found = Times(utc), look(lambda app: app.versions(job, n))
    if as_json:
        show_json([version_data(version) for version in found])
        return
    rows = [
        (
            f"v{version.version}",
            version.edited_at,
            version.by,
            _standing(version, times),
            "; ".join(map(str, version.changes)),
        )
        for version in found
    ]
    show_table(("version", times.heading("written"), "by", "in force", "changed"), rows, times)


def _standing(version: JobVersion, times: Times) -> str:
    """Say from when on a version is in force, and why."""
    after = "" if version.follows is None else f", after v{version.follows}"
    if version.is_on_trial and version.rollout is not None:
        return f"tried by {version.rollout.stage}"
    if version.is_in_force:
        return f"now{after}"
    if version.is_coming and version.in_force_after is not None:
        return f"after {times.shown(version.in_force_after)}{after}"
    return ""


def show_two(job: str, old: int, new: int, as_json: bool, utc: bool) -> None:
    """Write what differs between two versions of a job."""
    times, found = Times(utc), look(lambda app: app.compare(job, old, new))
    if as_json:
        show_json(diff_data(found))
        return
    rows = [(change.part, change.old, change.new) for change in found.changes]
    show_table(("what", f"v{old}", f"v{new}"), rows, times)
    _show_runs(found.runs, times)
    if not found.changes:
        say(f"v{old} and v{new} say the same")


@click.command(
    "rollback",
    cls=VerbCommand,
    help="Make an old version of a job the newest one again, as a new version equal to it.\n\n"
    "Writes the new version. Example: everytick rollback nightly v3",
)
@job_argument("job")
@click.argument("version")
@update_policy_option
@click.option("--expected-version", type=int, metavar="N", help="Refuse it if the job is at another version.")
@_detaching
@sure
def rollback_verb(
    job: str, version: str, policy: str | None, expected_version: int | None, detach: bool, yes: bool
) -> None:
    """Make an old version the newest one again."""
    number = version_number(version)

    async def asked(app: Everytick) -> Any:
        record = await app.job(job)
        return await app.compare(job, record.job.version, number)

    found = look(asked)
    if found.changes:
        told = "; ".join(map(str, found.changes))
        confirm(f"roll '{shown(job)}' back to v{number}, which changes {shown(told, 300)}?", yes)
    options: dict[str, Any] = {"policy": policy, "expected_version": expected_version, "detach": detach, "by": who()}
    made = agreed(lambda confirmed: ask(lambda app: app.rollback(job, number, confirmed=confirmed, **options)), yes)
    say(f"'{shown(job)}' is at version {made}" + ("" if found.changes else ", which says the same"))
    write(str(made))


@click.command(
    "rollout",
    cls=VerbCommand,
    help="Show the version of a job that is on trial, or end its rollout by hand.\n\n"
    "A rollout begins with an update: everytick update nightly --set priority=5 --policy 'rollout 10% after 20'. "
    "With --keep or --back it writes the version that is in force then.",
)
@job_argument("job")
@click.option("--keep", is_flag=True, help="Let the version on trial be in force now.")
@click.option("--back", is_flag=True, help="Let what is in force stay.")
@sure
@reading
def rollout_verb(job: str, keep: bool, back: bool, yes: bool, as_json: bool, utc: bool) -> None:
    """Show the rollout of a job, or end it."""
    if keep and back:
        raise click.UsageError("give --keep or --back, not both")
    found = look(lambda app: app.rollout(job))
    if keep or back:
        confirm(f"end the rollout of '{shown(job)}'" + ("" if found is None else f" ({found})") + "?", yes)
        ended = agreed(
            lambda confirmed: ask(lambda app: app.end_rollout(job, keep=keep, confirmed=confirmed, by=who())), yes
        )
        say(f"'{shown(job)}' is at version {ended}")
        write(str(ended))
        return
    if as_json:
        show_json(None if found is None else _rollout_data(found))
    elif found is None:
        say(f"no version of '{shown(job)}' is on trial")
    else:
        show_text(str(found))
        pairs = (("stages", str(found.rollout)), ("since", found.since), ("in force", f"version {found.in_force}"))
        show_pairs(pairs, Times(utc))


def _rollout_data(found: RolloutStatus) -> dict[str, Any]:
    counts = {"well": found.well, "failed": found.failed, "created": found.created}
    told = {"job": found.name, "version": found.version, "in_force": found.in_force, "rollout": str(found.rollout)}
    return told | {"stage": found.rollout.stage, "since": found.since} | counts


def version_number(text: str) -> int:
    """Return the number of a version that is written like v3 or 3."""
    digits = text.removeprefix("v")
    if not (digits.isascii() and digits.isdigit()):
        raise click.UsageError(f"{shown(text)} is no version: write it like v3")
    return int(digits)


def is_version(text: str) -> bool:
    """Whether this is the number of a version, like v3."""
    digits = text.removeprefix("v")
    return digits.isascii() and digits.isdigit()


# ---------------------------------------------------------------------------------------------------- the runs to come


def words(runs: Revision | None, times: Times) -> str:
    """How many runs to come are added, removed and kept, up to when that was looked at, and what comes later."""
    if runs is None:
        return ""
    parts = [f"{len(some)} {what}" for what, some in zip(RUNS, parts_of(runs), strict=True) if some]
    if runs.moved:
        parts.append(f"{len(runs.moved)} of them moved")
    until = "" if runs.through is None else f" until {times.shown(runs.through)}"
    told = [", ".join(parts) + until if runs.added or runs.removed else "as before"]
    told += [f"tasks {what}: {', '.join(names)}" for what, names in _tasks(runs) if names]
    told += [f"comes into force after {times.shown(at)}" for at in runs.moments[:1]]
    told += [f"then what was in force before, after {times.shown(at)}" for at in runs.moments[1:]]
    told += [] if runs.rollout is None else [f"tried first: {runs.rollout}"]
    return "; ".join(told)


def _tasks(runs: Revision) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "added", runs.tasks_added
    yield "removed", runs.tasks_removed
    yield "changed", runs.tasks_changed


def parts_of(runs: Revision) -> tuple[Sequence[datetime], ...]:
    """Return the runs that are added, removed and kept."""
    return runs.added, runs.removed, runs.kept


def _show_runs(runs: Revision, times: Times) -> None:
    """Write the runs that are moved, removed and added, by their time."""
    left, reached = {old for old, _ in runs.moved}, {new for _, new in runs.moved}
    rows: list[tuple[datetime, tuple[object, ...]]] = [(old, ("moved", old, new)) for old, new in runs.moved]
    rows += [(old, ("removed", old, None)) for old in runs.removed if old not in left]
    rows += [(new, ("added", None, new)) for new in runs.added if new not in reached]
    if rows:
        shown_rows = [row for _, row in sorted(rows, key=lambda row: row[0])[:_SHOWN]]
        show_table(("runs to come", times.heading("before"), times.heading("after")), shown_rows, times)
    if len(rows) > _SHOWN:
        say(f"and {len(rows) - _SHOWN:,} more")


_SHOWN = 20
"""Most changed runs of one job that are written."""
