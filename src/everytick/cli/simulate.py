"""`simulate`: the coming days on virtual time: collisions, late and skipped runs, and the load."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from everytick.cli.applications import address_of_app, refuse_remote
from everytick.cli.asking import ask, store_of_app
from everytick.cli.common_options import VerbCommand, state
from everytick.cli.exits import Refused
from everytick.cli.output import is_terminal, say, show_json, show_pairs, show_table, write
from everytick.cli.times import Times
from everytick.cli.verb_options import reading
from everytick.errors import EverytickError, shown
from everytick.exits import Exit
from everytick.schedules.clock_changes import change_words, clock_changes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everytick.app import Everytick
    from everytick.simulate.forecast import Forecast, HourLoad
    from everytick.simulate.record import JobTally
    from everytick.stores.addresses import AnyStore
    from everytick.stores.memory import MemoryStore

_MOST_DAYS = 3660
_COLLISIONS_SHOWN = 10
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_SHADES = " .:-=+*#%@"


@click.command(
    "simulate",
    cls=VerbCommand,
    help="Run the coming days on virtual time: collisions, lateness, load.\n\n"
    "Says what becomes of every job, which instants jobs share, what is late, what changes of the clock do, and how "
    "busy each hour of the week gets, with the lengths that runs had so far or that are given. Nothing is run and "
    "nothing is stored. Of files of jobs it needs no store.\n\n"
    "Examples: everytick simulate --days 30 --duration nightly=45m; everytick simulate jobs/ --slots 4",
)
@click.argument("paths", metavar="[PATH]…", nargs=-1, type=click.Path(path_type=Path))
@click.option("--days", default=30, show_default=True, type=click.IntRange(1, _MOST_DAYS), help="How many days.")
@click.option("--outage", "outages", multiple=True, metavar="FROM..THROUGH", help="No node is there; may be repeated.")
@click.option(
    "--duration", "durations", multiple=True, metavar="JOB=TIME", help="How long a job takes; may be repeated."
)
@click.option(
    "--durations",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Lines of JOB=TIME; # begins a comment.",
)
@click.option("--slots", type=click.IntRange(1, 100_000), help="How many run at once; as the node's unless given.")
@reading
def simulate_verb(
    paths: Sequence[Path],
    days: int,
    outages: Sequence[str],
    durations: Sequence[str],
    file: Path | None,
    slots: int | None,
    as_json: bool,
    utc: bool,
) -> None:
    """Run the coming days on virtual time."""
    times = Times(utc)
    given = {**({} if file is None else _from_file(file)), **dict(_duration(text, "--duration") for text in durations)}
    planned = sorted(_outage(outage, times) for outage in outages)

    def question(usual: int, late_share: float) -> _Question:
        return _Question(timedelta(days=days), slots or usual, given, planned, late_share)

    if paths:
        import asyncio

        known = state().settings
        asked = question(int(known["slots"].value), float(known["late_share"].value))
        forecast = asyncio.run(_on_files(paths, asked))
    else:
        refuse_remote()
        forecast = ask(lambda app: _on_store(app, question(app.settings.slots, app.settings.late_share)))
    if not forecast.jobs:
        raise Refused("there is no job to simulate: name files of jobs, or a store that holds some", Exit.NOT_FOUND)
    _refuse_strangers(given, forecast)
    if as_json:
        show_json(_data(forecast, times))
    else:
        _show(forecast, times)


# ------------------------------------------------------------------------------------------------------ what is asked


@dataclass(frozen=True)
class _Question:
    """The options of one forecast."""

    length: timedelta
    slots: int
    given: Mapping[str, timedelta]
    outages: Sequence[tuple[datetime, datetime]]
    late_share: float

    async def answered(self, store: AnyStore) -> Forecast:
        """Return the forecast. Raise if an outage lies outside of it."""
        from everytick.cli.progress import ProgressDisplay
        from everytick.simulate.forecast import foresee

        now = await store.now()
        end = now + self.length
        for down, up in self.outages:
            if not now <= down < up <= end:
                text = f"the outage from {down.isoformat()} must end after it begins, and lie in the days to come"
                raise Refused(f"{text}, which go through {end.isoformat(timespec='seconds')}")
        with ProgressDisplay("simulating days", self.length.days) as progress:

            def tell(virtual: datetime) -> None:
                progress.done = (virtual - now).days

            return await foresee(
                store,
                self.length,
                slots=self.slots,
                given=self.given,
                outages=self.outages,
                tell=tell,
                late_share=self.late_share,
            )


async def _on_store(app: Everytick, question: _Question) -> Forecast:
    """Return the jobs of the store, or those that the application would store if the store is empty."""
    from everytick.stores.addresses import migration_of

    address = address_of_app(app)
    is_absent = address.file is not None and not address.file.exists()
    # Opening a store would make its tables.
    is_empty = is_absent or (not address.is_in_memory and not await migration_of(address))
    store = None if is_empty else await store_of_app(app)
    if app.definitions and (store is None or not await store.list()):
        from everytick.domain.changes import Put

        fresh = _empty_store()
        await fresh.apply([Put(definition.job) for definition in app.definitions])
        return await question.answered(fresh)
    return await question.answered(store or _empty_store())


async def _on_files(paths: Sequence[Path], question: _Question) -> Forecast:
    return await question.answered(await _store_of(paths))


async def _store_of(paths: Sequence[Path]) -> MemoryStore:
    from everytick.sources.files import read_all
    from everytick.sources.syncing import sync_jobs

    files = read_all(paths)
    mistakes = [mistake for file in files for mistake in file.mistakes]
    for mistake in mistakes:
        say(str(mistake), mark="red")
    if mistakes:
        raise Refused("files with mistakes cannot be simulated: correct them first", Exit.INVALID_FILE)
    store = _empty_store()
    await sync_jobs(store, {job.job.name: job for file in files for job in file.jobs})
    return store


def _empty_store() -> MemoryStore:
    """Return an empty store in memory, at the present time."""
    from everytick.stores.memory import MemoryStore

    now = datetime.now(UTC)
    return MemoryStore(lambda: now)


def _duration(text: str, where: str) -> tuple[str, timedelta]:
    from everytick.domain.durations import duration

    name, equals, given = (part.strip() for part in text.rpartition("="))
    if not equals or not name:
        raise Refused(f"{where}: '{shown(text)}' must be JOB=TIME, like nightly=45m")
    try:
        return name, duration(given)
    except EverytickError as error:
        raise Refused(f"{where}: {error}") from error


def _from_file(path: Path) -> dict[str, timedelta]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise Refused(f"there is no file {shown(str(path))}: correct its name", Exit.NOT_FOUND) from None
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{shown(str(path))} cannot be read: {shown(str(error))}", Exit.INVALID_FILE) from None
    written = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    try:
        return dict(_duration(line, f"{path}:{number}") for number, line in written if line and line[0] != "#")
    except Refused as error:
        raise Refused(str(error), Exit.INVALID_FILE) from None


def _outage(text: str, times: Times) -> tuple[datetime, datetime]:
    begin, dots, end = text.partition("..")
    if not dots or not begin or not end:
        raise Refused(f"--outage: '{shown(text)}' must be FROM..THROUGH, like 2026-07-01T09:00..2026-07-01T12:00")
    return times.read(begin), times.read(end)


def _refuse_strangers(given: Mapping[str, timedelta], found: Forecast) -> None:
    from everytick.domain.names import did_you_mean

    known = [job.name for job in found.jobs]
    for name in given:
        if name not in known:
            text = f"a length was given for '{shown(name)}', and there is no such job"
            raise Refused(text + (did_you_mean(name, known) or ": everytick list names them all"), Exit.NOT_FOUND)


# ------------------------------------------------------------------------------------------------------ what is shown


def _nights(found: Forecast) -> list[tuple[datetime, str, str]]:
    """Return the clock changes in the forecast, with their jobs and effects."""
    every = [
        (change.instant, job.name, change_words(change))
        for job in found.jobs
        for change in clock_changes(job.schedule, found.start, found.through)
    ]
    return sorted(every)


def _show(found: Forecast, times: Times) -> None:
    _section("Jobs")
    show_table(
        ["job", "runs", "takes", "late", "latest by", "overlap", "not run", "stopped", "timed out"],
        [_row(tally) for tally in found.tallies],
        times,
    )
    _show_whole(found, times)
    if groups := found.habits(_COLLISIONS_SHOWN):
        _section("Instants that jobs share")
        rows = [(len(group), number, first, ", ".join(group)) for group, number, first in groups]
        show_table(["jobs", "times", times.heading("first"), "which"], rows, times)
    if late := sorted((tally for tally in found.tallies if tally.late), key=lambda tally: tally.worst, reverse=True):
        _section("Late")
        delays = [(tally.name, tally.late, tally.lateness / tally.late, tally.worst, tally.worst_at) for tally in late]
        show_table(["job", "late", "on average", "at most", times.heading("when")], delays, times)
    if nights := _nights(found):
        _section("When the clocks change")
        show_table([times.heading("at"), "job", "what"], nights, times)
    _section(f"Starts per hour ({times.zone})")
    _show_map(found.load(times.info))
    for what in found.left_out:
        say(f"not simulated: {shown(what, 300)}")
    if found.unknown:
        named = shown(", ".join(found.unknown), 300)
        say(f"it is not known how long these take, so they took no time: {named}; give --duration JOB=TIME")


def _section(title: str) -> None:
    if is_terminal():
        write("")
    write(f"# {title}")


def _row(tally: JobTally) -> tuple[object, ...]:
    return (
        tally.name,
        tally.runs,
        tally.length,
        tally.late,
        tally.worst or None,
        tally.overlaps,
        tally.others,
        tally.canceled,
        tally.timed_out,
    )


def _show_whole(found: Forecast, times: Times) -> None:
    _section("All together")
    record = found.record
    pairs: list[tuple[str, object]] = [
        ("from", found.start),
        ("through", found.through),
        ("runs", sum(tally.runs for tally in found.tallies)),
        ("most at once", f"{record.peak} of {found.slots} slots"),
        ("then", record.peak_at),
    ]
    if record.longest_line:
        pairs += [("waited for a slot, at most", record.longest_line), ("when", record.longest_line_at)]
    show_pairs(pairs, times)


def _show_map(load: Sequence[HourLoad]) -> None:
    """A row for each day of the week: numbers in a pipe, shades on a terminal."""
    most = max((hour.starts for hour in load), default=0)
    rows = [load[day * 24 : day * 24 + 24] for day in range(7)]
    if not is_terminal():
        for day, hours in zip(_WEEKDAYS, rows, strict=True):
            click.echo("\t".join([day, *(f"{hour.starts:.2f}" for hour in hours)]))
        return
    write("     " + "".join(f"{hour:<3}" for hour in range(24)))
    for day, hours in zip(_WEEKDAYS, rows, strict=True):
        write(f"{day}  " + "".join(_shade(hour.starts, most) * 2 + " " for hour in hours))
    write(f"most: {f'{most:,.1f}'.removesuffix('.0')} {'start' if most == 1 else 'starts'} in an hour")


def _shade(starts: float, most: float) -> str:
    if not starts or not most:
        return _SHADES[0]
    return _SHADES[max(1, min(len(_SHADES) - 1, round(starts / most * (len(_SHADES) - 1))))]


def _data(found: Forecast, times: Times) -> dict[str, Any]:
    record = found.record
    return {
        "from": found.start,
        "through": found.through,
        "slots": found.slots,
        "most_at_once": record.peak,
        "most_at_once_at": record.peak_at,
        "longest_line": record.longest_line,
        "longest_line_at": record.longest_line_at,
        "jobs": [_job_data(tally, found) for tally in found.tallies],
        "collisions": [{"at": collision.at, "jobs": collision.jobs} for collision in found.collisions(100)],
        "clock_changes": [{"at": at, "job": job, "what": what} for at, job, what in _nights(found)],
        "left_out": found.left_out,
        "zone": times.zone,
        "load": [
            {"weekday": _WEEKDAYS[hour.weekday], "hour": hour.hour, "starts": hour.starts, "running": hour.running}
            for hour in found.load(times.info)
        ],
    }


def _job_data(tally: JobTally, found: Forecast) -> dict[str, Any]:
    [origin] = [found.lengths[job.id].origin for job in found.jobs if job.name == tally.name]
    return {
        "job": tally.name,
        "runs": tally.runs,
        "length": tally.length,
        "length_from": origin,
        "late": tally.late,
        "lateness": tally.lateness,
        "latest_by": tally.worst,
        "latest_at": tally.worst_at,
        "skipped_overlaps": tally.overlaps,
        "not_run": [{"status": status, "why": why, "count": n} for (status, why), n in sorted(tally.not_run.items())],
        "canceled": tally.canceled,
        "timed_out": tally.timed_out,
    }
