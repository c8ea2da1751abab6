"""Who is told by on_failure and on_recovery: written in Python and in files alike, and refused at the door."""

import json
import re
from typing import Any

import pytest

from everytick import EnvironmentValue, Everytick, InvalidPolicies, InvalidSetting, command, email, http, ping, webhook
from everytick.domain.notices import Notify
from everytick.errors import InvalidName
from everytick.node.settings import NodeSettings, node_settings
from everytick.runners.mail import mail_server
from everytick.runners.receivers import checked_receivers, read_receiver

HOOK = "https://example.org/hook"


@pytest.mark.parametrize(
    ("made", "table"),
    [
        (webhook(HOOK), {"webhook": {"url": HOOK}}),
        (webhook(HOOK, secret_env="S", timeout="5s"), {"webhook": {"url": HOOK, "secret_env": "S", "timeout": "5s"}}),
        (email("ops@example.org"), {"email": {"to": "ops@example.org"}}),
        (
            email(["a@b.org", "c@d.org"], sender="e@f.org"),
            {"email": {"to": ["a@b.org", "c@d.org"], "sender": "e@f.org"}},
        ),
        (ping(HOOK), {"ping": HOOK}),
        (ping("http://example.org/x", allow_http=True), {"ping": {"url": "http://example.org/x", "allow_http": True}}),
        (command(["a", "{{ job }}"], env={"B": "c"}), {"command": ["a", "{{ job }}"], "env": {"B": "c"}}),
        (command("a | b", cwd="/"), {"command": "a | b", "cwd": "/"}),
        (http(HOOK), {"http": {"url": HOOK, "method": "POST"}}),
        (
            http(HOOK, headers={"X": EnvironmentValue("TOKEN")}),
            {"http": {"url": HOOK, "method": "POST", "headers": {"X": {"env": "TOKEN"}}}},
        ),
    ],
)
def test_python_and_tables_say_the_same(made: Notify, table: dict[str, Any]) -> None:
    assert made == checked_receivers("on_failure", table)
    assert made.as_data() == table


def test_several_receivers_are_a_list_and_each_counts_once() -> None:
    both = checked_receivers("on_failure", [webhook(HOOK), {"ping": HOOK}, webhook(HOOK)])

    assert both.as_data() == [{"webhook": {"url": HOOK}}, {"ping": HOOK}]


def test_a_request_without_a_method_posts() -> None:
    assert read_receiver({"http": HOOK}) == read_receiver({"http": {"url": HOOK, "method": "POST"}})


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({}, "must have one of command, http, webhook, email, ping"),
        ([], "names no receiver"),
        ("ops@example.org", "names no receiver"),
        ({"webhook": {"url": HOOK}, "ping": HOOK}, "must have one of"),
        ({"webhook": {"url": HOOK}, "env": {}}, "has no 'env'"),
        ({"webhook": HOOK}, "must be a table"),
        ({"webhook": {}}, "says no url"),
        ({"webhook": {"url": HOOK, "secret": "whsec_x"}}, "is not a key it has"),
        ({"webhook": {"url": "http://example.org/hook"}}, "is http:"),
        ({"ping": "http://example.net/x"}, "is http:"),
        ({"ping": "ftp://example.org/x"}, "neither http: nor https:"),
        ({"webhook": {"url": "https://a:b@example.org/"}}, "carries a name or password"),
        ({"webhook": {"url": HOOK, "timeout": "0s"}}, "no time to answer in"),
        ({"webhook": {"url": HOOK, "timeout": "soon"}}, "timeout"),
        ({"webhook": {"url": HOOK, "allow_http": "yes"}}, "must be true or false"),
        ({"email": {"to": []}}, "names no address"),
        ({"email": {"to": "ops"}}, "is not one"),
        ({"email": {"to": "a@b.org\nBcc: c@d.org"}}, "control character"),
        ({"email": {"to": "a@b.org", "sender": "Ops <a@b.org>"}}, "is not one"),
        ({"command": []}, "list of arguments"),
        ({"command": ["{{ secret }}"]}, "is not a template value"),
        ({"http": {"url": HOOK, "method": "SEND"}}, "is not a method"),
        ({"call": "a:b"}, "has no 'call'"),
        ({"webhook": {"url": object()}}, "is not JSON"),
    ],
)
def test_what_cannot_be_told_is_refused_at_the_door(written: object, said: str) -> None:
    """A18: with the key, the reason and what to write instead, in Python and in files."""
    with pytest.raises(InvalidPolicies, match=re.escape(said)) as refused:
        checked_receivers("on_failure", written)
    assert "on_failure" in str(refused.value)


def test_a_secret_in_the_place_of_a_name_is_not_repeated() -> None:
    with pytest.raises(InvalidPolicies) as refused:
        webhook(HOOK, secret_env="whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")
    assert "C2FV" not in str(refused.value)


def test_a_function_is_referred_to_the_hook_that_calls_it() -> None:
    tick = Everytick("memory://", name="shop")
    with pytest.raises(InvalidPolicies, match=r"is a function.*on_complete"):
        tick.define("nightly", "0 3 * * *", on_failure=print)  # type: ignore[arg-type]


def test_defaults_cascade_and_none_takes_them_back() -> None:
    tick = Everytick("memory://", name="shop", defaults={"on_failure": {"webhook": {"url": HOOK}}})

    usual, own, silent = (
        tick.define(name, "0 3 * * *", **policies).job
        for name, policies in (("a", {}), ("b", {"on_failure": ping(HOOK)}), ("c", {"on_failure": None}))
    )

    assert usual.settings.on_failure == webhook(HOOK)
    assert own.settings.on_failure == ping(HOOK)
    assert (usual.owes_reports, own.owes_reports, silent.owes_reports) == (True, True, False)
    assert usual.settings.on_recovery is None


@pytest.mark.parametrize("kind", ["on_failure", "on_recovery"])
def test_names_of_jobs_that_send_notices_are_kept_for_them(kind: str) -> None:
    tick = Everytick("memory://", name="shop")
    with pytest.raises(InvalidName, match="kept for the notices of job 'nightly'"):
        tick.define(f"nightly.{kind}", "0 3 * * *")
    with pytest.raises(InvalidName, match="at most 200"):
        tick.define("x" * 195, "0 3 * * *", **{kind: ping(HOOK)})  # type: ignore[arg-type]


# ----------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("address", "scheme", "port", "user"),
    [
        ("smtp://mail.example.org", "smtp", 587, None),
        ("smtps://user:p%40ss@mail.example.org", "smtps", 465, "user"),
        ("smtp+plain://localhost:2525", "smtp+plain", 2525, None),
    ],
)
def test_a_mail_server_is_named_by_its_address(address: str, scheme: str, port: int, user: str | None) -> None:
    found = mail_server(address)

    assert (found.scheme, found.port, found.user) == (scheme, port, user)
    assert found.password in (None, "p@ss")
    assert "p@ss" not in repr(found)


@pytest.mark.parametrize("address", ["mail.example.org", "https://example.org", "smtp://", "smtp://h:x", 7])
def test_what_is_no_mail_server_is_refused_without_being_shown(address: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"setting smtp=… must be") as refused:
        node_settings(smtp=address)
    assert "example" not in str(refused.value).partition("must be")[0]


def test_settings_of_e_mail_belong_together() -> None:
    with pytest.raises(InvalidSetting, match="set smtp too"):
        node_settings(smtp_sender="a@b.org")
    with pytest.raises(InvalidSetting, match="smtp_sender"):
        node_settings(smtp="smtp://localhost", smtp_sender="nobody")
    assert "geheim" not in repr(node_settings(smtp="smtp://a:geheim@localhost"))
    assert NodeSettings().smtp is None


async def test_a_node_whose_jobs_send_e_mail_does_not_start_without_a_server() -> None:
    """A18: said at the start, not at the first failure."""
    tick = Everytick("memory://", name="shop")

    @tick.job("0 3 * * *", on_recovery=[ping(HOOK), email("ops@example.org")])
    def nightly() -> None: ...

    with pytest.raises(InvalidSetting, match=r"job 'nightly' sends e-mail.*EVERYTICK_SMTP"):
        await tick.start()


def test_the_schema_of_a_receiver_is_json() -> None:
    from everytick.domain.notices import NOTIFY

    assert json.dumps(NOTIFY.schema)
