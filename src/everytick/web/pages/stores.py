"""The front page of several stores, and what programs ask of all of them: health and metrics, by the store's name."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response

from everytick.access.people import Person, Role
from everytick.domain.statuses import OccurrenceStatus
from everytick.domain.values import value
from everytick.errors import EverytickError
from everytick.metrics.text import MEDIA_TYPE, Series
from everytick.web import words
from everytick.web.asgi import Service
from everytick.web.asking import needs
from everytick.web.framing import frame_of, viewer_of
from everytick.web.health import check_line
from everytick.web.mounting import StoreMount, mounted
from everytick.web.needs_a_look import headline, looks
from everytick.web.now_board import FleetState
from everytick.web.paths import path_of
from everytick.web.problems import Problem
from everytick.web.rendering import page

router = APIRouter(include_in_schema=False)

_ANSWER_SECONDS = 3.0
"""How long one store may take. The others are not held up by it, and the page says that it is away."""

_REFRESH_SECONDS = 30
STORE_UP = "everytick_store_up"
_S = OccurrenceStatus
_WAITING = frozenset({_S.PENDING, _S.QUEUED, _S.AWAITING_RETRY})


@value(frozen=True)
class StoreCard:
    """What the front page says of one store. Without `is_seen`, counts are unknown.

    `away` is why it does not answer, for those who may read it. `broken` are promises that are broken now, `needs` is
    how many lines its page Now has under "needs a look".
    """

    name: str
    root: str
    is_away: bool = False
    away: str = ""
    is_seen: bool = False
    said: str = ""
    running: int = 0
    waiting: int = 0
    failed: int = 0
    broken: int = 0
    nodes: int = 0
    needs: int = 0


@router.get("/", dependencies=[needs(None)])
async def front(request: Request) -> HTMLResponse:
    """Show every store by its name: whether it answers, what runs, waits and failed, and what needs a look."""
    cards = await asyncio.gather(*(_card(request, name) for name in _services(request)))
    frame = replace(frame_of(request, path_of(request.scope)), pages=(), foot=())
    return await page(
        request, "stores.html", viewer=viewer_of(request), frame=frame, cards=cards, said=_said(cards),
        refresh=_REFRESH_SECONDS,
    )  # fmt: skip


@router.get("/livez", dependencies=[needs(None)])
async def livez() -> PlainTextResponse:
    """Say that this process answers."""
    return PlainTextResponse("ok\n")


@router.get("/readyz", dependencies=[needs(None)])
@router.get("/startupz", dependencies=[needs(None)])
async def readyz(request: Request) -> PlainTextResponse:
    """Say whether any store can be worked with; with `?verbose`, each check of each store is a line.

    One store that is away does not take the others out of service: `/NAME/readyz` tells of one store alone.
    """
    services = _services(request)
    found = dict(zip(services, await asyncio.gather(*map(_checked, services.values())), strict=True))
    is_ready = any(all(why is None for why in checks.values()) for checks in found.values())
    shown = []
    if "verbose" in request.query_params:
        readers = await asyncio.gather(*(_may_see(request, name) for name in found))
        for (name, checks), may_read in zip(found.items(), readers, strict=True):
            shown += [check_line(f"{name} {check}", why, may_read=may_read) for check, why in checks.items()]
    return PlainTextResponse("\n".join([*shown, "ok" if is_ready else "failed", ""]), 200 if is_ready else 503)


@router.get("/metrics", dependencies=[needs(None)])
async def metrics(request: Request) -> Response:
    """Return which stores answer, and the metrics of those that the caller may see. Every series names its store."""
    names = _services(request)
    texts = await asyncio.gather(*(_metrics(request, name) for name in names))
    return Response("\n".join([*labelled(dict(zip(names, texts, strict=True))), ""]), media_type=MEDIA_TYPE)


async def _metrics(request: Request, name: str) -> str:
    """Return the metrics of a store; to a caller who may not see them, only whether it answers."""
    service = _services(request)[name]
    if await _may_see(request, name):
        return str(await service.app.state.tick.metrics())
    series = Series()
    series.add(STORE_UP, 0 if await _away(service) else 1)
    return series.text()


# --------------------------------------------------------------------------------------------------- what is known


async def _card(request: Request, name: str) -> StoreCard:
    """Return what this person may know of a store. Every person may know whether it answers."""
    service, mount = _services(request)[name], _mount(request, name)
    card = StoreCard(name, mount.root)
    # At once: who asks is not known sooner than the store is found silent.
    away, may_see = await asyncio.gather(_away(service), _may_see(request, name))
    if away:
        # Why may name hosts and databases.
        return replace(card, is_away=True, away=away if may_see else "")
    if not may_see:
        return card
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            return _counted(card, await service.app.state.board.fleet())
    except (EverytickError, TimeoutError) as error:
        return replace(card, is_away=True, away=str(error) or "it has not answered in time")


def _counted(card: StoreCard, fleet: FleetState) -> StoreCard:
    found = looks(fleet)
    return replace(
        card,
        is_seen=True,
        said=headline(fleet, found) if fleet.records else "No job yet.",
        running=sum(run.status is _S.RUNNING for run in fleet.active),
        waiting=sum(run.status in _WAITING for run in fleet.active),
        failed=sum(step.failed for step in fleet.steps),
        broken=len(fleet.breaches),
        nodes=len(fleet.living),
        needs=len(found),
    )


async def _away(service: Service) -> str:
    """Return why a store does not answer; nothing if it does."""
    return await service.app.state.readiness.store() or ""


async def _checked(service: Service) -> dict[str, str | None]:
    ready = service.app.state.readiness
    return {"store": await ready.store(), "tables": await ready.tables(), "clock": await ready.clock()}


async def _may_see(request: Request, name: str) -> bool:
    """Whether the store's own service would show its pages to this person."""
    state = _services(request)[name].app.state
    asked = Request(mounted({**request.scope, "app": _services(request)[name].app}, _mount(request, name)))
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            who: Person = await state.identify(asked)
            return who.may(Role.VIEWER)
    except (Problem, EverytickError, TimeoutError):
        return False


def _services(request: Request) -> Mapping[str, Service]:
    services: Mapping[str, Service] = request.app.state.services
    return services


def _mount(request: Request, name: str) -> StoreMount:
    return StoreMount(name, str(request.scope.get("root_path", "")), tuple(_services(request)))


# ---------------------------------------------------------------------------------------------------------- words


def _said(cards: Iterable[StoreCard]) -> str:
    """Return the heading: which stores do not answer, else how many need a look."""
    known = list(cards)
    away = [card.name for card in known if card.is_away]
    if away:
        stores, do = ("store", "does") if len(away) == 1 else ("stores", "do")
        return f"The {stores} {words.listed(away, 3)} {do} not answer."
    bad = sum(bool(card.needs) for card in known)
    if bad:
        return words.sentence(f"{words.spelled(bad, 'store')} of {len(known)} {'needs' if bad == 1 else 'need'} a look")
    is_seen = all(card.is_seen for card in known)
    if len(known) == 1:
        return "The store is well." if is_seen else "The store answers."
    many = "both stores" if len(known) == 2 else f"all {words.spelled(len(known), 'store')}"
    return words.sentence(f"{many} {'are well' if is_seen else 'answer'}")


def labelled(texts: Mapping[str, str]) -> Iterator[str]:
    """Give the lines of several texts of metrics as one: each metric once with its help, each series with its store."""
    heads: dict[str, list[str]] = {}
    series: dict[str, list[str]] = {}
    for store, text in texts.items():
        metric = ""
        for line in text.splitlines():
            if line.startswith("# HELP "):
                metric = line.split(" ", 3)[2]
                heads.setdefault(metric, []).clear()
            if line.startswith("#"):
                heads[metric].append(line)
            elif line:
                series.setdefault(metric, []).append(_with_store(line, store))
    for metric, head in heads.items():
        yield from (*head, *series.get(metric, ()))


def _with_store(line: str, store: str) -> str:
    name, brace, rest = line.partition("{")
    if brace:
        return f'{name}{{store="{store}",{rest}'
    name, _, number = line.partition(" ")
    return f'{name}{{store="{store}"}} {number}'
