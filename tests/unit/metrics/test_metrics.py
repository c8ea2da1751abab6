"""Metrics: the names that others rely on, exact numbers, and an answer that does not grow with the number of jobs."""

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from everytick.domain.config import Level, overrides
from everytick.domain.durations import duration
from everytick.domain.facts import Amend
from everytick.domain.occurrence import Cause
from everytick.metrics.catalogue import METRICS
from everytick.metrics.of_node import write_node
from everytick.metrics.of_store import read_store, write_store
from everytick.metrics.text import Series
from everytick.node.meter import DELAYS, OTHER
from everytick.node.node import Node
from everytick.schedules.interval import every
from tests.stores.acting import plan_once
from tests.unit.metrics.reading import Read, read
from tests.unit.node.worlds import NOON, World, living, pause

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/observability.md"
SILENCE = timedelta(seconds=20)


async def well() -> int:
    return 1


async def boom() -> None:
    raise ValueError("boom")


async def slow() -> None:
    await pause("10m")


async def scraped(world: World, node: Node) -> Read:
    """Return what a scrape of this node says."""
    series, meter = Series(), node.listeners.meter
    write_node(series, meter)
    write_store(series, await read_store(world.store), meter, SILENCE)
    return read(series.text())


# ------------------------------------------------------------------------------------------------- names and numbers


def test_the_names_of_the_contracts_are_there_with_their_labels() -> None:
    """S0-105, S0-106, S0-107, S3-028: exactly these."""
    wanted = {
        "scheduler_jobs_running_total": ("gauge", ()),
        "scheduler_jobs_in_queue_total": ("gauge", ()),
        "scheduler_jobs_paused_total": ("gauge", ()),
        "scheduler_job_execution_duration_seconds": ("histogram", ("job",)),
        "scheduler_task_execution_duration_seconds": ("histogram", ("job", "task")),
        "scheduler_task_attempts_total": ("counter", ("job", "task", "status")),
        "scheduler_job_occurrences_total": ("counter", ("job", "status")),
        "scheduler_recovery_runs_total": ("counter", ("job", "strategy")),
        "scheduler_runs_total": ("counter", ("schedule_id", "status")),
        "scheduler_run_duration_seconds": ("histogram", ("schedule_id",)),
        "scheduler_last_run_timestamp": ("gauge", ("schedule_id",)),
        "scheduler_next_run_timestamp": ("gauge", ("schedule_id",)),
        "scheduler_lock_failures_total": ("counter", ("schedule_id",)),
    }
    assert {name: (METRICS[name].kind, METRICS[name].labels) for name in wanted} == wanted


def test_the_native_names_are_there_with_their_labels() -> None:
    """Rules and dashboards of users rely on them as on those of the contracts."""
    wanted = {
        "everytick_occurrences_total": ("counter", ("job", "status", "cause")),
        "everytick_attempts_total": ("counter", ("job", "outcome")),
        "everytick_occurrence_duration_seconds": ("histogram", ("job",)),
        "everytick_schedule_delay_seconds": ("histogram", ("job",)),
        "everytick_instants_skipped_total": ("counter", ("job", "reason")),
        "everytick_occurrences_in_progress": ("gauge", ("job",)),
        "everytick_queue_depth": ("gauge", ("queue",)),
        "everytick_job_last_success_timestamp_seconds": ("gauge", ("job",)),
        "everytick_job_next_run_timestamp_seconds": ("gauge", ("job",)),
        "everytick_job_paused": ("gauge", ("job",)),
        "everytick_store_operation_duration_seconds": ("histogram", ("operation",)),
        "everytick_node_heartbeat_timestamp_seconds": ("gauge", ("node",)),
        "everytick_definition_errors": ("gauge", ("file",)),
    }
    assert {name: (METRICS[name].kind, METRICS[name].labels) for name in wanted} == wanted
    assert METRICS["everytick_build_info"].kind == "gauge"


def test_a_node_counts_runs_attempts_and_lengths() -> None:
    """S0-105, S0-106, S0-107, S3-028: after three good runs, one that failed twice, a skip and a pause."""

    async def story(world: World) -> None:
        await world.define("good", well, every("1m", start=NOON), recovery="execute_all")
        flaky = await world.define("flaky", boom, retry={"max": 1, "interval": "1s"})
        node = world.node()
        await node.start()
        await pause("2m30s")
        await world.ended(await world.trigger(flaky))
        found = await scraped(world, node)
        await node.stop()

        good = found.of("everytick_occurrences_total", job="good", status="completed", cause=Cause.SCHEDULE)
        assert good >= 2
        assert found.of("scheduler_job_occurrences_total", job="good", status="completed") == good
        assert found.of("scheduler_runs_total", schedule_id="good", status="completed") == good
        assert found.of("scheduler_task_attempts_total", job="flaky", task="a", status="failure") == 2
        assert found.of("everytick_attempts_total", job="flaky", outcome="failed") == 2
        assert found.of("scheduler_job_occurrences_total", job="flaky", status="failed") == 1
        assert found.of("scheduler_job_execution_duration_seconds_count", job="good") == good
        assert found.of("scheduler_task_execution_duration_seconds_count", job="good", task="a") == good
        assert found.of("everytick_schedule_delay_seconds_bucket", job="good", le="+Inf") == good
        last = found.of("scheduler_last_run_timestamp", schedule_id="good")
        assert found.of("scheduler_next_run_timestamp", schedule_id="good") == last + 60
        assert found.of("everytick_job_last_success_timestamp_seconds", job="good") >= last
        assert found.of("everytick_nodes_alive") == 1
        assert found.of("scheduler_lock_failures_total", schedule_id="good") == 0

    living(story)


def test_the_waits_of_claims_skipped_instants_and_errors_are_told() -> None:
    """S1-027: claim latency, skipped schedules, error rate. Duplicates are counted in unit/node/test_outage.py."""

    async def story(world: World) -> None:
        await world.define("good", well, every("1m", start=NOON), recovery="mark_as_missed", grace="1s")
        bad = await world.define("bad", boom)
        await pause("3m30s")
        node = world.node()
        await node.start()
        await pause("1m")
        await world.ended(await world.trigger(bad))
        found = await scraped(world, node)
        await node.stop()

        assert found.of("everytick_claim_delay_seconds_count") == 2
        assert found.of("everytick_claim_delay_seconds_bucket", le="+Inf") == 2
        assert found.of("everytick_instants_skipped_total", job="good", reason="missed") == 3
        ends = {
            status: found.all("scheduler_job_occurrences_total", status=status) for status in ("completed", "failed")
        }
        assert [sum(each.values()) for each in ends.values()] == [1, 1]
        assert "everytick_duplicate_runs_total" in METRICS

    living(story)


def test_a_long_job_a_retry_loop_and_a_wait_for_a_slot_are_told_apart() -> None:
    """S0-108: three jobs that have not ended look alike, and each series shows which is which."""

    async def story(world: World) -> None:
        await world.define("long", slow, task_timeout="1h")
        await world.define("loop", boom, retry={"max": 5, "interval": "5m"})
        await world.define("waits", well, queue="other")
        node = world.node(queues=("default",))
        await node.start()
        jobs = {job.name: job for job in [record.job for record in await world.store.list()]}
        for name in ("long", "loop"):
            await world.trigger(jobs[name])
        await pause("7m")
        planner = world.node(queues=("other",), slots=1)
        blocked = await world.define("blocks", slow, queue="other", task_timeout="1h")
        await planner.start()
        await world.trigger(blocked)
        await pause("1s")
        await world.trigger(jobs["waits"])
        await pause("1m")
        found = await scraped(world, node)
        await planner.stop()
        await node.stop()

        def standing(job: str) -> tuple[float, float, float]:
            names = ("in_progress", "awaiting_retry", "waiting")
            running, retrying, waiting = (found.of(f"everytick_occurrences_{name}", job=job) for name in names)
            return running, retrying, waiting

        assert standing("long") == (1, 0, 0)
        assert standing("loop") == (0, 1, 0)
        assert standing("waits") == (0, 0, 1)
        assert found.of("everytick_attempts_total", job="loop", outcome="failed") == 2
        assert found.all("everytick_attempts_total", job="long") == {}
        assert found.of("scheduler_jobs_running_total") == 2
        assert found.of("scheduler_jobs_in_queue_total") == 1
        assert found.of("everytick_queue_depth", queue="other") == 1
        assert found.of("everytick_queue_depth", queue="default") == 0
        assert 50 <= found.of("everytick_queue_oldest_wait_seconds", queue="other") <= 70

    living(story)


def test_the_longest_wait_is_that_of_the_oldest_however_many_wait() -> None:
    """S0-108: 1,920 wait, and what waits longest is not among the newest 1,000 of them."""

    async def story(world: World) -> None:
        for name in ("one", "two"):
            policies: dict[str, Any] = {"queue": "other", "overlap": "allow", "recovery": "execute_all"}
            await world.define(name, well, every("1m", start=NOON), **policies)
        await pause("16h")
        while await plan_once(world.store):
            pass
        found = await scraped(world, world.node())
        assert found.of("everytick_queue_oldest_wait_seconds", queue="other") == 16 * 3600 - 60
        assert found.of("everytick_queue_depth", queue="other") == 1_002
        assert found.of("scheduler_jobs_in_queue_total") == 1_920

    living(story)


def test_queues_beyond_two_hundred_share_one_label() -> None:
    """A queue that a node serves has its own, and so has one that a job names before any that an amendment names."""

    async def story(world: World) -> None:
        amended = await world.define("amended", well, every("1h", start=NOON))
        elsewhere = overrides(Level.OCCURRENCE, {"queue": "a-queue"})
        await world.store.request(amended.id, Amend(NOON + timedelta(hours=1), elsewhere))
        await pause("1h")
        for number in range(205):
            await world.trigger(await world.define(f"job-{number:03}", well, queue=f"queue-{number:03}"))
        while await plan_once(world.store):
            pass
        node = world.node(queues=("zoo",))
        await node.start()
        await pause("1m")
        found = await scraped(world, node)
        await node.stop()

        depths = {labels["queue"] for labels in found.labels("everytick_queue_depth")}
        assert len(depths) == 201
        assert {"zoo", "default", "queue-000", OTHER} < depths
        assert "a-queue" not in depths
        assert found.of("everytick_queue_depth", queue="queue-197") == 1
        assert found.of("everytick_queue_depth", queue=OTHER) == 8
        assert found.of("everytick_queue_oldest_wait_seconds", queue=OTHER) == 60

    living(story)


def test_jobs_beyond_the_limit_share_one_label() -> None:
    async def story(world: World) -> None:
        for number in range(30):
            await world.define(f"job-{number:02}", well, every("1m", start=NOON))
        node = world.node()
        node.listeners.meter.limit = 5
        await node.start()
        await pause("2m30s")
        found = await scraped(world, node)
        await node.stop()
        for name in ("everytick_occurrences_total", "everytick_job_paused", "everytick_occurrences_in_progress"):
            jobs = {labels["job"] for labels in found.labels(name)}
            assert len(jobs) == 6, name
            assert OTHER == "_other"
            assert OTHER in jobs

    living(story)


# ----------------------------------------------------------------------------------------------------- the format


def test_labels_are_escaped_and_bounded_and_every_metric_has_its_help_once() -> None:
    series = Series()
    nasty = 'a"b\\c\nd' + "x" * 500
    series.add("everytick_job_paused", 1, nasty)
    series.add("everytick_job_paused", 0, "plain")
    text = series.text()
    assert text.count("# HELP everytick_job_paused ") == text.count("# TYPE everytick_job_paused gauge") == 1
    assert text.count("\n") == 4
    [labels] = [each for each in read(text).labels("everytick_job_paused") if each["job"] != "plain"]
    assert labels["job"] == nasty[:200]


def test_a_label_too_many_or_an_unknown_name_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="zip"):
        Series().add("everytick_job_paused", 1, "a", "b")
    with pytest.raises(KeyError):
        Series().add("everytick_unheard_of", 1)


# ----------------------------------------------------------------------------------------- what we ship beside it


def expressions() -> Iterator[tuple[str, str]]:
    """Give every query of the alert rules and of the Grafana dashboard, with where it stands."""
    for rule in _alerts():
        yield rule["alert"], rule["expr"]
    board = json.loads((ROOT / "deploy/grafana/everytick.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]


def series_names() -> frozenset[str]:
    """Return the names that a query may use: those of histograms have three endings."""
    endings = ("_bucket", "_sum", "_count")
    names = {name for name, metric in METRICS.items() if metric.kind != "histogram"}
    names |= {name + ending for name, metric in METRICS.items() if metric.kind == "histogram" for ending in endings}
    return frozenset(names)


def test_every_metric_in_rules_and_dashboard_is_one_that_is_written() -> None:
    known = series_names()
    for where, expression in expressions():
        named = set(re.findall(r"\b(?:everytick|scheduler)_[a-z_]+", expression))
        assert named, where
        assert named <= known, where


def test_every_label_in_rules_and_dashboard_is_one_that_the_metric_has() -> None:
    for where, expression in expressions():
        for name, chosen in re.findall(r"\b((?:everytick|scheduler)_[a-z_]+)\{([^}]*)\}", expression):
            metric = METRICS[re.sub(r"_(bucket|sum|count)$", "", name) if name not in METRICS else name]
            labels = set(re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)", chosen))
            assert labels <= {*metric.labels, "le", "instance"}, where


def test_a_bucket_in_rules_and_dashboard_is_found_as_each_prometheus_keeps_it() -> None:
    """The bound that is written as 60 is kept as 60 by Prometheus 2 and as 60.0 by Prometheus 3."""
    chosen = [(where, each) for where, text in expressions() for each in re.findall(r"\ble(=~?)\"([^\"]*)\"", text)]
    assert chosen
    for where, (is_like, bound) in chosen:
        assert is_like == "=~", where
        written = [
            str(int(each.total_seconds())) for each in DELAYS if re.fullmatch(bound, f"{each.total_seconds():g}")
        ]
        assert len(written) == 1, where
        assert re.fullmatch(bound, f"{written[0]}.0"), where


def test_a_counter_that_was_just_born_counts_in_full() -> None:
    """Its first event is no increase for Prometheus. The store is asked all the time: what counts that is there.

    A whole stretch of time before the window is looked at: scrapes may have failed at any one moment of it.
    """
    for where, expression in expressions():
        text = " ".join(expression.split())
        for reading, series, window in re.findall(r"\b(rate|increase)\((\w+(?:\{[^}]*\})?)\[(\w+)\]\)", text):
            if not series.startswith("everytick_store_operation"):
                per_second = f" / {int(duration(window).total_seconds())}" if reading == "rate" else ""
                before = f"count_over_time({series}[{'1h' if per_second else window}] offset {window})"
                born = f"({series} unless {before}){per_second} or {reading}({series}[{window}])"
                assert born in text, where


def test_no_rule_waits_for_an_absent_counter_to_be_0() -> None:
    """A job that has only failed has no series of what completed, and nothing equals nothing."""
    counters = {name for name, metric in METRICS.items() if metric.kind == "counter" and name.startswith("everytick")}
    for where, expression in expressions():
        assert not (counters & set(re.findall(r"\w+", expression)) and re.search(r"(==|<=?)", expression)), where


def test_the_scrape_on_the_page_leaves_the_label_job_to_everytick() -> None:
    """Without `honor_labels` Prometheus renames it `exported_job`, and every rule by job sees one job."""
    [config] = re.findall(r"```yaml\n(scrape_configs:.*?)```", PAGE.read_text(), re.DOTALL)
    [scrape] = yaml.safe_load(config)["scrape_configs"]
    assert scrape["honor_labels"] is True


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    """The cases need Prometheus' promtool, which no test has: here they have to speak of the rules that there are."""
    rules = {rule["alert"]: rule for rule in _alerts()}
    cases = yaml.safe_load((ROOT / "deploy/prometheus/alerts.test.yml").read_text())
    fired = set()
    for case in (case for test in cases["tests"] for case in test["alert_rule_test"]):
        for alert in case["exp_alerts"]:
            fired.add(case["alertname"])
            rule = rules[case["alertname"]]
            assert alert["exp_annotations"]["description"] == rule["annotations"]["description"]
            assert alert["exp_labels"]["severity"] == rule["labels"]["severity"]
    assert fired == set(rules)


def _alerts() -> list[dict[str, Any]]:
    rules = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yml").read_text())
    return [rule for group in rules["groups"] for rule in group["rules"]]


def test_rules_judge_each_of_several_stores_by_itself() -> None:
    """Behind one address each series has the label `store`: nodes of one store hid that another has none."""
    for rule in _alerts():
        kept = re.findall(r"\b(?:max|min|sum)\b *(?:by \(([^)]*)\))?", rule["expr"])
        # One aggregation of all stores is left: whether anything at all is known of the store that does not answer.
        assert [labels for labels in kept if "store" not in labels.split(", ")] in ([], [""]), rule["alert"]


def test_every_alert_says_what_it_means_and_what_to_do() -> None:
    alerts = _alerts()
    assert {"EverytickLate", "EverytickFailing", "EverytickNoNodeAlive", "EverytickPromiseBroken"} <= {
        rule["alert"] for rule in alerts
    }
    for rule in alerts:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert _is_balanced(rule["expr"])


def _is_balanced(expression: str) -> bool:
    pairs, open_ = {")": "(", "}": "{", "]": "["}, []
    for character in re.sub(r'"[^"]*"', "", expression):
        if character in pairs.values():
            open_.append(character)
        elif character in pairs and (not open_ or open_.pop() != pairs[character]):
            return False
    return not open_
