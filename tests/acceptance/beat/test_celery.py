"""A Celery application runs unchanged under our beat: each time is sent once, by however many beats."""

import json
import signal
from datetime import UTC, datetime, timedelta

from tests.acceptance.beat.conftest import Shop, stopped

SECOND = timedelta(seconds=1)


def instants(runs: list[dict[str, str]]) -> list[datetime]:
    return [datetime.fromisoformat(run["scheduled_at"]) for run in runs]


def test_two_beats_send_every_time_once(shop: Shop) -> None:
    """S3-020: each task carries what it was sent for; and each time is sent by one of the beats."""
    shop.worker()
    beats = [shop.beat(), shop.beat()]
    runs = [shop.run() for _ in range(6)]
    assert [stopped(beat) for beat in beats] == [0, 0]

    sent = sorted(instants(runs))
    assert sent == [sent[0] + number * SECOND for number in range(6)], "one after another, none twice"
    assert len({run["id"] for run in runs}) == 6
    assert {(run["schedule_id"], run["trigger_type"], run["weight"], run["unit"]) for run in runs} == {
        ("pulse", "cron", 16, "kg")
    }


def test_a_beat_that_is_killed_leaves_the_others_to_send(shop: Shop) -> None:
    shop.worker()
    first, second = shop.beat(), shop.beat()
    before = [shop.run() for _ in range(2)]
    first.send_signal(signal.SIGKILL)
    first.wait()
    after = [shop.run() for _ in range(4)]
    assert stopped(second) == 0

    sent = instants(before + after)
    assert len(set(sent)) == len(sent), "none twice"


def test_what_was_missed_is_sent_once_and_what_is_paused_is_not_sent(shop: Shop) -> None:
    """S3-012, S3-031: several missed times give one run. Pauses and history are those of any job."""
    shop.worker()
    beat = shop.beat()
    last = instants([shop.run()])[0]
    assert stopped(beat) == 0
    shop.told.delete("runs")
    shop.everytick("pause", "nightly", "--reason", "closed")
    restarted_at = datetime.now(UTC)

    shop.beat()
    runs = [shop.run() for _ in range(3)]

    assert min(instants(runs)) > last
    assert len([instant for instant in instants(runs) if instant < restarted_at]) <= 1, "the last of them, if any"
    history = json.loads(shop.everytick("history", "pulse", "--json"))
    assert all(entry["status"] in ("completed", "running", "skipped", "missed", "queued") for entry in history)
    listed = {job["name"]: job for job in json.loads(shop.everytick("list", "--json"))}
    assert set(listed) == {"nightly", "pulse"}
    assert "sunset" in shop.log(2).read_text()
    assert "there is no schedule that follows the sun" in shop.log(2).read_text()


def test_a_store_that_cannot_be_used_is_told_in_one_line(shop: Shop) -> None:
    shop.store = "nonsense://"
    shop._variables["EVERYTICK_STORE"] = shop.store

    beat = shop.beat()

    assert beat.wait(60) == 1
    said = shop.log(0).read_text()
    assert "everytick: setting store=nonsense:// names no store that is known" in said
    assert "Traceback" not in said
