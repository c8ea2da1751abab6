"""`everytick doctor`: what could go wrong on this host with this store, before it does."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple, cast

import click

from everytick.cli.applications import how_to_run
from everytick.cli.asking import look, store_of_app
from everytick.cli.common_options import VerbCommand, state
from everytick.cli.exits import Refused
from everytick.cli.output import length, show_json, show_table
from everytick.cli.times import Times
from everytick.cli.verb_options import reading
from everytick.domain.lookups import ParkedJobs
from everytick.errors import SchemaMismatch, StoreUnavailable, shown
from everytick.exits import Exit
from everytick.stores.base import Nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from everytick.app import Everytick
    from everytick.config.settings import SettingsByName
    from everytick.domain.promises import BreachRecord
    from everytick.domain.snapshots import JobSnapshot
    from everytick.stores.addresses import AnyStore
    from everytick.stores.base import JobRecord, NodeRecord
    from everytick.stores.redis.store import RedisStore

MOST_OFFSET = timedelta(seconds=1)


class Check(NamedTuple):
    """One check: whether it is well, and a text that says what was seen or what to do.

    What is not well is a finding, and the exit code says so. `is_warning` makes it a warning: it harms only under
    further conditions, and nothing has to be done today.
    """

    name: str
    is_well: bool
    text: str
    is_warning: bool = False

    @property
    def result(self) -> str:
        """Return the result in one word."""
        if self.is_well:
            return "ok"
        return "warning" if self.is_warning else "finding"


@click.command(
    "doctor",
    cls=VerbCommand,
    help="Look for what could go wrong: store, clock, zone data, rights, nodes, promises.\n\n"
    "Exit code 1 on a finding. A warning alone ends with 0: nothing has to be done about it today.",
)
@click.option("--strict", is_flag=True, help="End with 1 on a warning too.")
@reading
def doctor_verb(strict: bool, as_json: bool, utc: bool) -> int:
    """Look for what could go wrong."""
    checks = [zone_data_check(), *settings_checks(state().settings), *_store_checks()]
    if as_json:
        show_json(
            [{"check": check.name, "ok": check.is_well, "result": check.result, "text": check.text} for check in checks]
        )
    else:
        rows = [(check.name, check.result, check.text) for check in checks]
        show_table(["check", "result", "what was seen"], rows, Times(utc))
    results = {check.result for check in checks}
    return Exit.FAILED if "finding" in results or (strict and "warning" in results) else Exit.DONE


def zone_data_check() -> Check:
    """Say whether the zone tables in use are as new as those that came with everytick."""
    from everytick.schedules.timezones import zone_data

    found, packaged = zone_data(), _packaged_version()
    text = f"zone tables {found.version} of this {found.source}"
    if found.source == "system" and found.version < packaged:
        text += f" are older than {packaged}: zones whose rules changed since then have the old ones"
        return Check("zone data", False, f"{text}; update the system's tzdata package", is_warning=True)
    return Check("zone data", True, text)


def settings_checks(settings: SettingsByName) -> Iterator[Check]:
    """Give the files of settings that hold a secret which others can read."""
    from everytick.config.settings import open_secrets

    for sentence in open_secrets(settings):
        yield Check("settings", False, sentence)


def _packaged_version() -> str:
    import tzdata  # type: ignore[import-untyped,unused-ignore]

    return str(getattr(tzdata, "IANA_VERSION", ""))


def _store_checks() -> list[Check]:
    try:
        return look(_look)
    except Refused as error:
        if error.code is not Exit.NOT_FOUND:
            raise
        return [Check("store", False, str(error), is_warning=True)]
    except (StoreUnavailable, SchemaMismatch) as error:
        return [Check("store", False, str(error))]


async def _look(app: Everytick) -> list[Check]:
    from everytick.cli.stores import log_folder, newest_schema, place_of

    begun = datetime.now(UTC)
    store = await store_of_app(app)
    place = place_of(store.address)
    opened = length(datetime.now(UTC) - begun)
    found = [Check("store", True, f"{place.where} answers at schema {newest_schema(place.kind)}, opened in {opened}")]
    found.append(await clock_check(store))
    if place.file is not None:
        found += [sqlite_check(str(getattr(store, "library", ""))), *file_checks(place.file)]
    if place.kind == "redis":
        from everytick.cli.redis_checks import redis_checks

        found += await redis_checks(cast("RedisStore", store))
    found += folder_checks(log_folder(app, store))
    found += jobs_checks(app.jobs_folder)
    found += await _node_checks(app, store)
    found += await _parked_checks(store)
    records, now = await store.list(), await store.now()
    found += ahead_checks(records, now)
    dependent = [record.job.id for record in records if record.job.settings.depends_on]
    found += dependency_checks((await store.look(dependent)).values() if dependent else ())
    found += promise_checks(records, now)
    found += breach_checks(await app.breaches(is_open=True))
    found += await _zone_checks(store)
    return found


def promise_checks(records: Sequence[JobRecord], now: datetime) -> Iterator[Check]:
    """Give the promises that their schedule or another policy contradicts."""
    from everytick.app.outlook import doubtful_promises

    for name, doubt in doubtful_promises(records, now):
        yield Check("promises", False, f"'{shown(name)}': {doubt}", is_warning=True)


def breach_checks(breaches: Sequence[BreachRecord]) -> Iterator[Check]:
    """Give the promises that are broken now."""
    for breach in breaches:
        yield Check("promises", False, f"'{shown(breach.job)}': {shown(str(breach.breach), 500)}")


def dependency_checks(snapshots: Iterable[JobSnapshot]) -> Iterator[Check]:
    """Give the jobs that wait for others of which nothing comes."""
    for snapshot in snapshots:
        for upstream in snapshot.dependence.upstreams if snapshot.dependence is not None else ():
            if upstream.state:
                name, needed = shown(snapshot.editions[-1].job.name), shown(upstream.name)
                text = f"'{name}' depends on '{needed}', which is {upstream.state}: what waits for it is skipped"
                is_gone = upstream.state in ("removed", "deleted")
                yield Check("dependencies", False, text, is_warning=not is_gone)


def ahead_checks(records: Sequence[JobRecord], now: datetime) -> Iterator[Check]:
    """Give the jobs that were decided ahead while a clock was wrong."""
    from everytick.domain.texts import JOB_AHEAD
    from everytick.stores.base import FARTHEST_AHEAD

    for record in records:
        if record.watermark > now + FARTHEST_AHEAD:
            text = JOB_AHEAD.format(name=shown(record.job.name), watermark=record.watermark.isoformat())
            yield Check("decided ahead", False, text)


async def clock_check(store: AnyStore) -> Check:
    """Say how far this host's clock is from the store's."""
    before = datetime.now(UTC)
    told = await store.now()
    after = datetime.now(UTC)
    offset = before + (after - before) / 2 - told
    text = f"this host's clock is {length(abs(offset))} {'ahead of' if offset > timedelta(0) else 'behind'} the store's"
    if abs(offset) > MOST_OFFSET:
        return Check("clock", False, f"{text}: nothing fires at a wrong time by that, but logs will; synchronise it")
    return Check("clock", True, text)


def sqlite_check(library: str) -> Check:
    """Say whether this SQLite has the fault by which a checkpoint that races a commit can damage the file."""
    from everytick.stores.sqlite.opening import has_reset_fault

    if has_reset_fault(library.rpartition(" ")[2]):
        text = (
            f"{library} has the WAL-reset fault, fixed in 3.51.3: everytick's own checkpoints avoid it, those of "
            "another program on the same file may damage it; keep others away, or add ?driver=apsw to the address"
        )
        return Check("sqlite", False, text, is_warning=True)
    return Check("sqlite", True, f"{library} is without the WAL-reset fault")


def file_checks(file: Path) -> Iterator[Check]:
    """Give the checks of the rights of the store's file and folder."""
    if not os.access(file, os.R_OK | os.W_OK) or not os.access(file.parent, os.W_OK | os.X_OK):
        yield Check("store rights", False, f"{file} and its folder must be writable by this user")
    elif file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Check("store rights", False, f"{file} is open to others, and payloads may hold secrets: chmod 600 {file}")
    else:
        yield Check("store rights", True, f"{file} is this user's alone")


def folder_checks(folder: Path | None) -> Iterator[Check]:
    """Give the check of the rights of the log folder."""
    if folder is None:
        return
    existing = folder
    while not existing.exists():
        existing = existing.parent
    if not os.access(existing, os.W_OK | os.X_OK):
        yield Check("log folder", False, f"{existing} is not writable by this user: the output of tasks is not kept")
    elif existing == folder and folder.stat().st_mode & stat.S_IWOTH:
        yield Check("log folder", False, f"{folder} is writable by everybody: chmod o-w {folder}")
    else:
        yield Check("log folder", True, f"{folder} {'is writable' if existing == folder else 'can be made'}")


def jobs_checks(folder: Path | None) -> Iterator[Check]:
    """Give the mistakes in the folder of job files, and those of its rights."""
    from everytick.app.console_lines import counted
    from everytick.sources.files import read_all

    if folder is None:
        return
    if not folder.is_dir():
        yield Check("job files", False, f"{folder} is no folder: make it, or name another one")
        return
    files = read_all([folder])
    mistakes = [mistake for file in files for mistake in file.mistakes]
    for mistake in mistakes:
        yield Check("job files", False, str(mistake))
    if not mistakes:
        jobs = sum(len(file.jobs) for file in files)
        yield Check(
            "job files", True, f"{folder} holds {counted(jobs, 'job')} in {counted(len(files), 'file')}: no mistakes"
        )


async def _node_checks(app: Everytick, store: AnyStore) -> list[Check]:
    """Give the checks of nodes: those that own occurrences must live. A silent node that owns nothing is harmless."""
    now, nodes = await store.now(), await store.ask(Nodes())
    alive = [node for node in nodes if node.is_alive(now, app.settings.node_timeout)]
    holding = [node for node in nodes if node not in alive and node.holds]
    if holding:
        names = ", ".join(f"{node.id} ({node.holds})" for node in holding)
        after = "another node takes over" if alive else "no living node can take over: start one"
        return [Check("nodes", False, f"silent, and holding occurrences: {names}; {after}")]
    records = await store.list()
    if not alive and any(record.job.enabled for record in records):
        return [Check("nodes", False, f"there are enabled jobs and no node is alive: {how_to_run()} starts one")]
    well = Check("nodes", True, f"{len(alive)} alive")
    return [well, *agreement_checks(alive), *target_checks(alive, records, now)]


def target_checks(alive: Sequence[NodeRecord], records: Sequence[JobRecord], now: datetime) -> Iterator[Check]:
    """Give the jobs that no living node can run, with what it would need."""
    from everytick.domain.nodes import unknown_targets, unmet_needs

    facts, jobs = [node.facts for node in alive if node.facts is not None], [record.job for record in records]
    unmet = unmet_needs(jobs, facts, now) if len(facts) == len(alive) else {}
    for name, reason in {**unmet, **unknown_targets(jobs, facts)}.items():
        yield Check("targets", False, f"no living node can run '{shown(name)}': {reason}")


def agreement_checks(alive: Sequence[NodeRecord]) -> Iterator[Check]:
    """Give the facts in which living nodes disagree, and the files that they cannot read."""
    told = [(node.id, node.facts) for node in alive if node.facts is not None]
    for what, values, harm in (
        ("everytick", {id_: facts.version for id_, facts in told}, "finish the deployment"),
        ("zone tables", {id_: facts.zone_data for id_, facts in told}, "they may place an instant differently"),
    ):
        if len(set(values.values())) > 1:
            text = ", ".join(f"{value} on {id_}" for id_, value in values.items())
            yield Check("node agreement", False, f"nodes have different {what}: {text}; {harm}")
    for id_, facts in told:
        if abs(facts.clock_offset) > MOST_OFFSET:
            seconds = facts.clock_offset.total_seconds()
            way = "ahead of" if seconds > 0 else "behind"
            text = f"the clock of {facts.host} ({id_}) is {abs(seconds):.1f} s {way} the store's: synchronise it"
            yield Check("node agreement", False, text)
        for file, reason in facts.broken_files:
            yield Check("job files", False, f"{id_} cannot read {file} and goes on with what it said before: {reason}")


async def _zone_checks(store: AnyStore) -> list[Check]:
    """Give the jobs of which runs to come move by the zone tables of this host."""
    from everytick.node.zone_watch import moved_runs

    how = "a node that starts with these tables follows them at once; until then the old time counts"
    return [
        Check("zone tables", False, f"runs to come of '{shown(move.job)}': {move}; {how}", is_warning=True)
        for move in await moved_runs(store)
    ]


async def _parked_checks(store: AnyStore) -> list[Check]:
    """Whether some node cannot read a definition, or the store refuses a plan."""
    parked = await store.ask(ParkedJobs())
    found = [
        Check("parked jobs", False, f"nothing of '{shown(name)}' is planned: {why}") for name, why in parked.items()
    ]
    return found or [Check("parked jobs", True, "none: every definition can be read and every plan is written")]
