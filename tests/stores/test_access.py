"""`store.access`: users, tokens, sessions, and deeds that are written with their change."""

from datetime import timedelta
from typing import Any

import pytest

from everytick.domain.changes import Put, Remove, Rename
from everytick.domain.deeds import DeedFilter
from everytick.domain.facts import Cancel, Pause, PutBrake, Resume, Trigger
from everytick.domain.people import (
    AddFirstUser,
    AddToken,
    BeginSession,
    CameBy,
    Doer,
    EndSession,
    FailSignIn,
    Grant,
    PutUser,
    RemoveUser,
    RevokeToken,
    Role,
    SeeSession,
    SessionKind,
    SetPassword,
    SignInFailures,
    Token,
    User,
    UseToken,
    WebSession,
)
from everytick.errors import Conflict, NotFound, VersionConflict
from tests.stores.acting import AnyStore, job, put
from tests.stores.clock import ManualClock

ANA = Doer("ana", CameBy.SESSION, "10.0.0.7")
BEN = Doer("ben", CameBy.TOKEN, "10.0.0.8")


async def told(store: AnyStore, **asked: Any) -> list[str]:
    return [str(deed) for deed in (await store.access.deeds(DeedFilter(**asked))).deeds]


async def test_a_deed_is_written_with_its_change_and_only_then(store: AnyStore, clock: ManualClock) -> None:
    """S17: who, what, to which, why, when, from where; what changes nothing leaves no deed."""
    access = store.access
    await access.apply([Put(job("etl"))], "ana", ANA)
    await access.apply([Put(job("etl"))], "ana", ANA)
    id_ = (await store.list())[0].job.id
    clock.move(seconds=1)
    await access.request(id_, Pause(reason="upgrade", by="ana"), ANA)
    await access.request(id_, Resume(by="ben"), BEN)
    await access.request(id_, Resume(by="ben"), BEN)
    asked = await access.request(id_, Trigger("k", reason="now", by="ben"), BEN)
    again = await access.request(id_, Trigger("k", reason="now", by="ben"), BEN)
    await access.request(asked.id, Cancel("too early"), BEN)
    await access.request("tag:crm", PutBrake(reason="down", by="ana"), ANA)
    with pytest.raises(VersionConflict):
        await access.apply([Put(job("etl", "5 * * * *"), expected=7)], "ana", ANA)
    await store.request(id_, Pause(by="code:shop"))

    assert not again.changed
    assert await told(store) == [
        "ana put a brake on tag:crm: down",
        f"ben canceled occurrence {asked.id} of job etl: too early",
        "ben triggered job etl: now",
        "ben resumed job etl",
        "ana paused job etl: upgrade",
        "ana created job etl",
    ]
    paused = (await access.deeds(DeedFilter(before=3, limit=1))).deeds[0]
    assert (paused.at, paused.doer, paused.job_id, paused.reason) == (clock.time, ANA, id_, "upgrade")


async def test_deeds_are_asked_for_by_person_job_and_page(store: AnyStore, clock: ManualClock) -> None:
    """S17: newest first, and the number of the last one leads to the next page."""
    access = store.access
    one, other = (await put(store, job("one"))).job_id, (await put(store, job("other"))).job_id
    for number in range(3):
        await access.request(one, Trigger(f"a{number}", by="ana"), ANA)
        await access.request(other, Trigger(f"b{number}", by="ben"), BEN)
    await access.request(one, Pause(by="ben"), BEN)

    assert await told(store, job_id=one, by="ben") == ["ben paused job one"]
    assert len(await told(store, job_id=one)) == 4
    assert len(await told(store, by="ana")) == 3
    first = await access.deeds(DeedFilter(limit=5))
    second = await access.deeds(DeedFilter(limit=5, before=first.before))
    numbers = [deed.number for deed in (*first.deeds, *second.deeds)]
    assert numbers == sorted(numbers, reverse=True)
    assert (len(numbers), second.before) == (7, None)


async def test_edits_renames_removals_and_purges_are_deeds(store: AnyStore, clock: ManualClock) -> None:
    """S17: the name is the one that the job had then, and its id stays."""
    access = store.access
    await access.apply([Put(job("old"))], "ana", ANA)
    await access.apply([Put(job("old", "5 * * * *"))], "ana", ANA)
    await access.apply([Rename("old", "new")], "ana", ANA)
    await access.apply([Remove("new")], "ana", ANA)
    [record] = await store.list(removed=True)
    while not await access.purge(record.job.id, 100, ANA):
        pass

    assert await told(store, job_id=record.job.id) == [
        "ana purged job new and all of its history",
        "ana removed job new",
        "ana renamed job old to new",
        "ana edited job old to version 2",
        "ana created job old",
    ]


async def test_users_are_added_changed_and_removed(store: AnyStore, clock: ManualClock) -> None:
    access = store.access
    await access.change(PutUser("ana", Role.ADMIN), ANA)
    await access.change(SetPassword("ana", "hash"), ANA)
    assert await access.change(PutUser("ben", Role.VIEWER, (Grant("crm", Role.OPERATOR),)), ANA)
    assert not await access.change(PutUser("ben", Role.VIEWER, (Grant("crm", Role.OPERATOR),)), ANA)
    await access.change(PutUser("ben", Role.OPERATOR), ANA)

    ana, ben = await access.users()
    assert ana == User("ana", Role.ADMIN, (), "hash", clock.time, "ana")
    assert ben == User("ben", Role.OPERATOR, (), None, clock.time, "ana")
    assert list(await access.users(["ben", "eve"])) == [ben]
    for refused in (RemoveUser("ana"), PutUser("ana", Role.VIEWER)):
        with pytest.raises(Conflict, match="last admin"):
            await access.change(refused, ANA)
    for unknown in (RemoveUser("eve"), SetPassword("eve", "x")):
        with pytest.raises(NotFound):
            await access.change(unknown, ANA)
    await access.change(RemoveUser("ben"), ANA)
    assert list(await access.users()) == [ana]
    assert await told(store) == [
        "ana removed user ben",
        "ana changed user ben to operator",
        "ana added user ben as viewer with crm:operator",
        "ana set the password of user ana",
        "ana added user ana as admin",
    ]


async def test_tokens_are_listed_used_revoked_and_end_with_their_owner(store: AnyStore, clock: ManualClock) -> None:
    """S6: the store has the hash; a living name is taken, and a revoked one is free."""
    access = store.access
    await access.change(PutUser("ana", Role.ADMIN), ANA)
    await access.change(PutUser("ben", Role.VIEWER), ANA)
    ends = clock.time + timedelta(days=1)
    await access.change(AddToken(Token("1", "ci", "h1", Role.OPERATOR, owner="ben", expires_at=ends)), BEN)
    with pytest.raises(Conflict, match="token ci"):
        await access.change(AddToken(Token("2", "ci", "h2", Role.VIEWER)), ANA)
    assert await access.change(RevokeToken("1"), ANA)
    assert not await access.change(RevokeToken("1"), ANA)
    clock.move(seconds=1)
    await access.change(AddToken(Token("2", "ci", "h2", Role.VIEWER, owner="ben")), BEN)
    await access.change(AddToken(Token("3", "free", "h3", Role.ADMIN)), ANA)
    await access.change(UseToken("2"))

    newest, *_ = tokens = await access.tokens()
    assert [token.id for token in tokens] == ["2", "3", "1"]
    assert (newest.owner_role, newest.used_at, newest.added_by) == (Role.VIEWER, clock.time, "ben")
    assert tokens[2].revoked_at == clock.time - timedelta(seconds=1)
    assert [token.is_live(clock.time) for token in tokens] == [True, True, False]
    await access.change(RemoveUser("ben"), ANA)
    [left] = await access.tokens(["2", "9"])
    assert (left.revoked_at, left.owner_role) == (clock.time, None)


async def test_a_session_lasts_until_its_end_and_knows_its_user_as_they_are(
    store: AnyStore, clock: ManualClock
) -> None:
    access = store.access
    await access.change(PutUser("ana", Role.ADMIN), ANA)
    await access.change(PutUser("ben", Role.VIEWER), ANA)
    [ben] = await access.users(["ben"])
    ends = clock.time + timedelta(hours=1)
    for hash_ in ("s1", "s2", "s3"):
        session = WebSession(hash_, SessionKind.COOKIE, ben, clock.time, ends, clock.time, "10.0.0.8")
        await access.change(BeginSession(session), BEN)
    await access.change(PutUser("ben", Role.OPERATOR), ANA)
    clock.move(minutes=30)
    await access.change(SeeSession("s1", ends + timedelta(hours=1)))

    seen = await access.session("s1")
    assert seen is not None
    assert (seen.user and seen.user.role, seen.seen_at) == (Role.OPERATOR, clock.time)
    clock.move(minutes=40)
    assert await access.session("s2") is None
    assert await access.session("s1") is not None
    assert await access.change(EndSession("s1"), BEN)
    assert await access.session("s1") is None
    assert "ben signed out" in await told(store)
    again = WebSession("s4", SessionKind.COOKIE, ben, clock.time, clock.time + timedelta(hours=1), clock.time)
    await access.change(BeginSession(again), BEN)
    await access.change(SetPassword("ben", "new"), ANA)
    assert await access.session("s4") is None


async def test_open_sessions_are_listed_the_last_used_first(store: AnyStore, clock: ManualClock) -> None:
    """Neither links nor what has ended are among them."""
    access = store.access
    await access.change(PutUser("ana", Role.ADMIN), ANA)
    await access.change(PutUser("ben", Role.VIEWER), ANA)
    now, end = clock.time, clock.time + timedelta(hours=1)
    for hash_, user, until in (("a", "ana", end), ("b", "ben", end), ("c", "ben", now + timedelta(minutes=1))):
        session = WebSession(hash_, SessionKind.COOKIE, User(user, Role.VIEWER), now, until, now, "10.0.0.9")
        await access.change(BeginSession(session))
    await access.change(BeginSession(WebSession("link", SessionKind.LINK, None, now, end, now)))
    clock.move(minutes=2)
    await access.change(SeeSession("b", end))

    found = await access.sessions()
    assert [(each.hash, each.user.name if each.user else "", each.address) for each in found] == [
        ("b", "ben", "10.0.0.9"),
        ("a", "ana", "10.0.0.9"),
    ]
    assert found[1].user is not None
    assert found[1].user.role is Role.ADMIN, "as they are now"


async def test_the_first_link_makes_one_admin_once(store: AnyStore, clock: ManualClock) -> None:
    access = store.access
    ends = clock.time + timedelta(hours=1)
    for hash_ in ("l1", "l2"):
        link = WebSession(hash_, SessionKind.LINK, None, clock.time, ends, clock.time)
        await access.change(BeginSession(link))
    assert (await access.session("l1")) is not None

    assert not await access.change(AddFirstUser("eve", "hash", "wrong"), BEN)
    assert await access.change(AddFirstUser("ana", "hash", "l1"), ANA)
    assert not await access.change(AddFirstUser("eve", "hash", "l1"), BEN)
    assert not await access.change(AddFirstUser("eve", "hash", "l2"), BEN)
    assert [user.name for user in await access.users()] == ["ana"]
    assert await told(store) == ["ana added user ana as admin, by the link of the first start"]


async def test_failures_count_for_any_name_until_a_success_or_an_hour(store: AnyStore, clock: ManualClock) -> None:
    """S6: a name without a user counts like one with a user."""
    access = store.access
    await access.change(PutUser("ana", Role.ADMIN), ANA)
    for name in ("ana", "ana", "nobody", "x" * 5000):
        await access.change(FailSignIn(name))

    assert await access.failures("ana") == SignInFailures(2, clock.time)
    assert await access.failures("nobody") == SignInFailures(1, clock.time)
    assert await access.failures("x" * 5000) == SignInFailures(1, clock.time)
    [ana] = await access.users()
    ends = clock.time + timedelta(hours=1)
    await access.change(BeginSession(WebSession("s", SessionKind.COOKIE, ana, clock.time, ends, clock.time)), ANA)
    assert await access.failures("ana") == SignInFailures()
    clock.move(minutes=61)
    await access.change(FailSignIn("ana"))
    assert await access.failures("nobody") == SignInFailures()


HOSTILE = [
    "'; drop table deed; --",
    '" or 1=1 --',
    "%s %(a)s $1 :name ?",
    "\\'; select pg_sleep(9); --",
    "é𝄞{schema}",
    "null",
]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_texts_are_stored_and_found_as_they_are(store: AnyStore, text: str) -> None:
    """S13: every value is a parameter; none is a part of a statement."""
    access, doer = store.access, Doer(text, CameBy.SESSION, text)
    await access.change(PutUser("root", Role.ADMIN), ANA)
    await access.change(PutUser(text, Role.VIEWER, (Grant(text, Role.OPERATOR),)), doer)
    await access.change(AddToken(Token(text, text, text, Role.VIEWER, (Grant(text, Role.OPERATOR),), text)), doer)
    await access.change(FailSignIn(text))
    await access.apply([Put(job(text))], text, doer)
    id_ = next(record.job.id for record in await store.list() if record.job.name == text)
    await access.request(id_, Pause(reason=text, by=text), doer)

    [user], [token] = await access.users([text]), await access.tokens([text])
    assert (user.name, user.grants, token.name, token.owner) == (text, (Grant(text, Role.OPERATOR),), text, text)
    assert (await access.failures(text)).count == 1
    assert await access.session(text) is None
    deeds = (await access.deeds(DeedFilter(by=text, job_id=id_))).deeds
    assert [(deed.subject, deed.reason, deed.doer) for deed in deeds] == [
        (f"job {text}", text, doer),
        (f"job {text}", "", doer),
    ]
