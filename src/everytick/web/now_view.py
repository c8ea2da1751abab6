"""What one reader of the page Now sees: what was asked for, and everything that the page is made of."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated

from fastapi import Depends, Query

from everytick import __version__
from everytick.app.text_reading import moment_of
from everytick.domain.values import value
from everytick.web.job_standing import candidates
from everytick.web.needs_a_look import LookLine, foremost, looks
from everytick.web.now_board import Board, FleetState, Sight
from everytick.web.pictures.axis import Axis, axis_around, axis_to
from everytick.web.pictures.timeline import LaneCandidate, chosen, most_lanes

WINDOWS = {
    "10m": timedelta(minutes=10),
    "1h": timedelta(hours=1),
    "4h": timedelta(hours=4),
    "15h": timedelta(hours=15),
    "3d": timedelta(days=3),
}
ANSWER_SECONDS = 8.0
"""How long the store may take before the page shows what was known last."""

_MOST_PINS = 24
_USUAL, _FAR = "15h", "3d"
_YOUNG = (("10m", timedelta(minutes=6)), ("1h", timedelta(minutes=45)), ("4h", timedelta(hours=3)))
"""A fleet that is younger is shown in a shorter window: its first minutes would be a dot in fifteen hours."""

_FARTHEST = timedelta(days=3_653)
"""How far from now a picture may end. The calendar has an end, and no plan reaches that far."""


@value(frozen=True)
class NowAsked:
    """What the reader asked for. All of it stands in the address, so that a link shows the same to others."""

    w: str = ""
    to: datetime | None = None
    open: str = ""
    pins: tuple[str, ...] = ()

    def query(self, **other: object) -> dict[str, object]:
        """Return the values for an address, some of them replaced; empty ones are left out."""
        known = {"w": self.w, "to": self.to, "open": self.open, "k": list(self.pins), **other}
        given = {
            key: parameter.isoformat() if isinstance(parameter, datetime) else parameter
            for key, parameter in known.items()
        }
        return {key: parameter or None for key, parameter in given.items()}


async def _read(
    w: Annotated[str, Query(max_length=10)] = "",
    to: Annotated[str, Query(max_length=40)] = "",
    open: Annotated[str, Query(max_length=200)] = "",
    k: Annotated[Sequence[str], Query(max_length=_MOST_PINS)] = (),
) -> NowAsked:
    return NowAsked(w if w in WINDOWS else "", moment_of(to) if to else None, open, tuple(k))


AskedFor = Annotated[NowAsked, Depends(_read)]
"""What the address of a request asks for."""


@value(frozen=True)
class View:
    """Everything that one reader's page is made of."""

    asked: NowAsked
    fleet: FleetState
    axis: Axis
    job_ids: tuple[str, ...]
    sight: Sight
    looks: tuple[LookLine, ...]

    @property
    def stamp(self) -> str:
        """What the page shows, as one short text: the same until something changes, or now moves by a pixel."""
        fleet, sight = self.fleet, self.sight
        parts = (
            __version__,
            self.asked,
            self.job_ids,
            fleet.now.timestamp() // self.axis.pixel.total_seconds(),
            len(fleet.records),
            fleet.revisions,
            [(run.id, run.status) for run in fleet.recent.runs[:500]],
            [(node.id, node.holds, node in fleet.living) for node in fleet.nodes],
            [(kind.fingerprint, kind.count) for kind in fleet.failures],
            [(run.id, run.status) for runs in sight.runs.values() for run in runs],
            [(look.subject, look.fact) for look in self.looks],
        )
        return sha256(repr(parts).encode()).hexdigest()[:20]


async def view_of(board: Board, asked: NowAsked) -> View:
    """Ask the store for what this reader sees. Raise what the store raises, or TimeoutError."""
    async with asyncio.timeout(ANSWER_SECONDS):
        fleet, first = await board.fleet(), asked
        asked = asked if asked.w else NowAsked(usual_window(fleet), asked.to, asked.open, asked.pins)
        axis = axis_of(asked, fleet.now)
        found = looks(fleet)
        ids = _lanes(fleet, axis, asked, found)
        sight = await board.sight(fleet, axis, ids)
    view = View(asked, fleet, axis, tuple(ids), sight, tuple(found))
    board.remember(view, first, asked)
    return view


def usual_window(fleet: FleetState) -> str:
    """Return the window that a reader sees first."""
    age = fleet.now - (fleet.born or fleet.now)
    return next((w for w, most in _YOUNG if age < most), _USUAL)


def axis_of(asked: NowAsked, now: datetime) -> Axis:
    """Return the axis of what was asked for, at most ten years from now."""
    length = WINDOWS[asked.w]
    if asked.to is None:
        return axis_around(now, length)
    return axis_to(min(max(asked.to, now - _FARTHEST), now + _FARTHEST), length, now)


def _lanes(fleet: FleetState, axis: Axis, asked: NowAsked, found: Sequence[LookLine]) -> list[str]:
    """Return the ids of the jobs that have a lane, within the band that is open."""
    shown = fleet
    if asked.open:
        inside = {id_: record for id_, record in fleet.records.items() if fleet.bands[id_] == asked.open}
        shown = replace(fleet, records=inside)
    most = most_lanes(len(fleet.records))
    # Days of many jobs are bands only: a run is less than a pixel there.
    if asked.w == _FAR and len(shown.records) > most:
        return []
    known = candidates(shown, axis, foremost(found, most), asked.pins)
    if len(shown.records) > most:
        # One more than there is room for, so that quiet ones do not count as all of them.
        return chosen([*known, *_fillers(most)], most)
    return chosen(known, most)


def _fillers(count: int) -> list[LaneCandidate]:
    """Return quiet candidates that stand for all that were left out; none of them gets a lane."""
    return [LaneCandidate(f"\x00{number}") for number in range(count + 1)]
