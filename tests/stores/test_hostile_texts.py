"""Texts that are attacks on SQL, in every column that holds a text of people or of tasks (S13)."""

from dataclasses import replace
from typing import Any

import pytest

from everytick.domain.facts import Pause, PutBrake, Trigger
from everytick.domain.lookups import LimitsAndBrakes
from everytick.domain.notes import Log, Note, Progress
from everytick.domain.outcome import Failed, Succeeded
from everytick.domain.payload import payload
from everytick.stores.base import Commit, HistoryFilter, Nodes
from tests.stores.acting import AnyStore, began, claim_one, ended, job, plan_once, put
from tests.stores.clock import ManualClock
from tests.stores.test_access import HOSTILE
from tests.stores.test_nodes import FACTS


@pytest.mark.parametrize("text", HOSTILE)
async def test_a_life_of_hostile_texts_reads_back_as_it_was(store: AnyStore, clock: ManualClock, text: str) -> None:
    """S13: names, tags, queues, tasks, reasons, keys, payloads, results, errors, progress, logs, nodes and brakes."""
    policies: dict[str, Any] = {"tags": [text], "queue": text, "description": text, "payload": {text: text}}
    stored = await put(store, job(text, tasks=(text,), retry={"max": 1, "interval": "10m"}, **policies), by=text)
    await store.beat(text, [], replace(FACTS, host=text, application=text, broken_files=((text, text),)))
    await store.request(stored.job_id, Trigger(text, payload({text: [text]}), None, text, text))
    await plan_once(store)
    claim = await claim_one(store, node=text)
    step = began(claim, clock.time)
    await store.note([(claim, Note(text, 1, clock.time, Progress(1, 2, text), Log(text, text)))])
    clock.move(seconds=1)
    failed = ended(claim, step, clock.time, Failed(text))
    assert await store.commit_steps([(claim, failed)]) == [Commit.COMMITTED]
    clock.move(minutes=11)
    claim = await claim_one(store, node=text)
    good = ended(claim, began(claim, clock.time), clock.time, Succeeded(payload({text: text})))
    assert await store.commit_steps([(claim, good)]) == [Commit.COMMITTED]
    await store.request(stored.job_id, Pause(reason=text, by=text))
    await store.request(f"tag:{text}", PutBrake(reason=text, by=text))

    whole = await store.whole(claim.occurrence.id)
    own, (_, first), (_, second) = whole.occurrence, *whole.attempts
    assert own.reason is not None
    assert own.reason.endswith(text)
    assert (own.payload, [run.task for run in whole.runs]) == ({text: [text]}, [text])
    assert (first.error, first.node, first.progress, first.log) == (text, text, Progress(1, 2, text), Log(text, text))
    assert (second.error, whole.results) == (None, {text: {text: text}})
    [record] = await store.list()
    assert (record.job.name, record.job.settings.tags, record.job.settings.queue) == (text, (text,), text)
    assert record.pause is not None
    assert (record.pause.reason, record.pause.by) == (text, text)
    [node] = await store.ask(Nodes())
    assert node.facts is not None
    assert (node.id, node.facts.host, node.facts.broken_files) == (text, text, ((text, text),))
    [reach] = (await store.ask(LimitsAndBrakes())).reaches
    assert (reach.reach.name, [brake.reason for brake in reach.reach.brakes]) == (f"tag:{text}", [text])
    found = (await store.history(HistoryFilter(job_id=stored.job_id, limit=10))).occurrences
    assert [each.id for each in found] == [claim.occurrence.id]
