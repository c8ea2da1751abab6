"""CronJobs, one rule at a time."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from everytick.schedules.codec import schedule
from everytick.sources.importing.cronjob import read_manifest
from everytick.sources.importing.findings import Findings, UnreadableSource
from tests.unit.sources.importing.kept import sample

CONTAINER = {"name": "c", "image": "busybox", "command": ["date"]}


def manifest(container: object = None, pod: object = None, job: object = None, **spec: object) -> dict[str, Any]:
    containers = {"containers": [container or CONTAINER], "restartPolicy": "Never"}
    template = {"template": {"spec": {**containers, **(pod or {})}}, **(job or {})}  # type: ignore[dict-item]
    whole = {"schedule": "0 1 * * *", "timeZone": "UTC", "jobTemplate": {"spec": template}, **spec}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "x"}, "spec": whole}


def imported(**parts: object) -> Findings:
    return read_manifest(json.dumps(manifest(**parts)).encode(), "m.yaml")


def parts(**given: object) -> dict[str, Any]:
    found = imported(**given)
    assert found.jobs, [str(each) for each in found.left]
    return dict(found.jobs[0].parts)


def why(**given: object) -> str:
    found = imported(**given)
    assert not found.jobs
    return found.left[-1].why


@pytest.mark.parametrize(
    ("written", "schedule"),
    [
        ("*/5 * * * *", "*/5 * * * *; tz=UTC"),
        ("5/15 ? * * *", "5-59/15 * * * *; tz=UTC"),
        ("0 0 */2 * mon", "0 0 1-31/2 * mon; tz=UTC"),
        ("0 0 1 * */2", "0 0 1 * 0-6/2; tz=UTC"),
        ("@hourly", "0 * * * *; tz=UTC"),
        ("*/60 */24 * * *", "0 0 * * *; tz=UTC"),
        ("0 0 */1 * mon", "0 0 * * mon; tz=UTC"),
        ("@every 400ms", "every 1s"),
        ("@every 1h30m", "every 1h30m"),
        ("TZ=Asia/Tokyo 0 1 * * *", "0 1 * * *; tz=Asia/Tokyo; dst_gap=skip; dst_fold=both"),
    ],
)
def test_schedules_are_read_as_the_controller_does(written: str, schedule: str) -> None:
    assert parts(schedule=written)["schedule"] == schedule


ANSWERS = json.loads(sample("cronjob_instants.json"))
"""What robfig's cron 3.0.1, the library of the controller, answers: `ParseStandard` of the schedule with the zone
before it, as the controller does it, and `Next` from the base on, six times; or that it refuses the schedule."""


def instants(found: Findings, base: str, count: int) -> list[datetime]:
    rule = schedule(str(dict(found.jobs[0].parts)["schedule"]))
    begin = datetime.fromisoformat(base)
    return list(rule.instants(begin, begin + timedelta(days=365 * 30), count))


def schedule_and_zone(case: Any) -> str:
    return f"{case['schedule']} {case['zone']} {case['base']}"


@pytest.mark.parametrize("case", [case for case in ANSWERS if case.get("refused")], ids=schedule_and_zone)
def test_a_schedule_that_the_controller_refuses_is_not_imported(case: Any) -> None:
    assert not imported(schedule=case["schedule"], timeZone=case["zone"]).jobs


@pytest.mark.parametrize("case", [case for case in ANSWERS if not case.get("refused")], ids=schedule_and_zone)
def test_a_schedule_names_the_instants_that_the_controller_names_or_the_difference_is_listed(case: Any) -> None:
    found = imported(schedule=case["schedule"], timeZone=case["zone"])

    expected = [datetime.fromisoformat(each) for each in case["instants"]]
    if instants(found, case["base"], len(expected)) != expected:
        assert [each.what for each in found.left if "the phase of" in each.what or "clocks change" in each.what]


MIDNIGHTS = ("Africa/Cairo", "America/Havana", "Asia/Beirut", "Australia/Lord_Howe")


def test_only_periods_and_skipped_midnights_differ_from_the_controller() -> None:
    """Periods without a phase, a zone that moves by half an hour, and midnights that the clock skips."""
    differing = [
        case for case in ANSWERS
        if "instants" in case
        and instants(imported(schedule=case["schedule"], timeZone=case["zone"]), case["base"], len(case["instants"]))
        != [datetime.fromisoformat(each) for each in case["instants"]]
    ]  # fmt: skip

    assert all(case["schedule"].startswith("@every") or case["zone"] in MIDNIGHTS for case in differing)
    assert len(differing) < len(ANSWERS) / 8


@pytest.mark.parametrize(
    ("zone", "when", "listed"),
    [
        ("Europe/Berlin", "30 2 * * 0", False),
        ("Asia/Beirut", "0 6 * * 0", True),
        ("Asia/Beirut", "0 6 * * *", False),
        ("Australia/Lord_Howe", "0 12 * * *", True),
        ("Asia/Kolkata", "0 6 * * 0", False),
    ],
)
def test_where_the_controller_loses_runs_when_the_clocks_change_is_listed(zone: str, when: str, listed: bool) -> None:
    for found in (
        imported(schedule=when, timeZone=zone),
        read_manifest(json.dumps(manifest(schedule=when, timeZone=None)).encode(), "m.yaml", timezone=zone),
    ):
        assert any("clocks change" in each.what for each in found.left) is listed


@pytest.mark.parametrize(
    ("policy", "overlap"), [("Allow", None), ("Forbid", "skip"), ("Replace", "cancel_running"), (None, None)]
)
def test_the_concurrency_policy_is_overlap(policy: str | None, overlap: str | None) -> None:
    assert parts(concurrencyPolicy=policy).get("overlap") == overlap


def test_deadlines_are_a_window_and_a_timeout() -> None:
    found = parts(startingDeadlineSeconds=90, job={"activeDeadlineSeconds": 600})

    assert found["recovery"] == {"strategy": "bounded_window", "max_duration": "1m30s", "max_occurrences": 1}
    assert found["execution_timeout"] == "10m"


def test_the_backoff_is_a_retry_and_six_unless_said() -> None:
    assert parts()["retry"]["max"] == 6
    assert parts(job={"backoffLimit": 2}, pod={"restartPolicy": "OnFailure"})["retry"] == {
        "max": 2, "interval": "10s", "factor": 2, "max_interval": "5m",
    }  # fmt: skip
    assert "retry" not in parts(job={"backoffLimit": 0})


def test_a_suspended_one_is_suspended() -> None:
    assert parts(suspend=True)["suspended"] is True
    assert "suspended" not in parts(suspend=False)


def test_command_and_arguments_become_one_list_with_their_variables() -> None:
    container = {**CONTAINER, "command": ["sh", "-c"], "args": ["echo $(A) $(B) $$(A)"], "env": [
        {"name": "A", "value": "1"}, {"name": "C", "value": "$(A)$(A)"},
    ], "workingDir": "/srv"}  # fmt: skip

    found = parts(container=container)

    assert found["command"] == ["sh", "-c", "echo 1 $(B) $(A)"]
    assert (found["env"], found["cwd"]) == ({"A": "1", "C": "11"}, "/srv")


def test_containers_that_come_first_are_tasks() -> None:
    found = parts(pod={"initContainers": [{"name": "prepare", "image": "i", "command": ["a"]}]})

    assert [each["name"] for each in found["tasks"]] == ["prepare", "c"]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"container": {"name": "c", "image": "i", "args": ["x"]}}, "the image's own"),
        ({"container": {**CONTAINER, "command": ["$(A)"], "envFrom": [{}]}}, "$(A) is not in the manifest"),
        ({"container": {**CONTAINER, "command": [1]}}, "is no text: quote it"),
        ({"pod": {"containers": [CONTAINER, CONTAINER]}}, "2 containers"),
        ({"job": {"parallelism": 3}}, "several pods at once"),
        ({"job": {"backoffLimit": "2"}}, "is no number"),
        ({"schedule": "0 0 * *"}, "has not five fields"),
        ({"schedule": "0 0 * * fri-mon"}, "run backwards"),
        ({"schedule": "@reboot"}, "no macro '@reboot'"),
        ({"schedule": 5}, "has no schedule"),
        ({"timeZone": "Europe/Nowhere"}, "Europe/Nowhere"),
        ({"concurrencyPolicy": "Never"}, "no concurrencyPolicy 'Never'"),
        ({"startingDeadlineSeconds": 0}, "no number of seconds"),
    ],
)
def test_what_cannot_be_known_or_said_leaves_the_job(given: dict[str, object], reason: str) -> None:
    assert reason in why(**given)


def test_every_key_that_is_not_carried_over_is_listed_with_its_line() -> None:
    container = {**CONTAINER, "resources": {"limits": {"cpu": 1}}}
    found = imported(container=container, pod={"volumes": [{"name": "v"}]}, job={"ttlSecondsAfterFinished": 5})

    assert sorted(each.what.split(" of ")[0].rpartition(".")[2] for each in found.left) == [
        "resources", "the image busybox", "ttlSecondsAfterFinished", "volumes",
    ]  # fmt: skip


def test_what_a_cluster_adds_by_itself_is_not_listed() -> None:
    whole = manifest(
        container={**CONTAINER, "imagePullPolicy": "Always", "terminationMessagePath": "/dev/termination-log"},
        pod={"dnsPolicy": "ClusterFirst", "securityContext": {}, "terminationGracePeriodSeconds": 30},
        successfulJobsHistoryLimit=3,
        suspend=False,
    )
    whole["metadata"] |= {"uid": "1-2", "resourceVersion": "77", "creationTimestamp": "2026-01-01T00:00:00Z"}
    whole["status"] = {"lastScheduleTime": "2026-11-15T00:00:00Z"}

    found = read_manifest(json.dumps(whole).encode(), "m.yaml")

    assert [each.what for each in found.left] == ["the image busybox of 'x'"]


def test_documents_and_lists_are_read_and_other_kinds_listed() -> None:
    one, other = json.dumps(manifest()), json.dumps({"kind": "List", "items": [manifest(), {"kind": "Secret"}]})
    found = read_manifest(f"# first\n{one}\n---\n# nothing\n---\n{other}\n".encode(), "m.yaml")

    assert [(job.name, job.line) for job in found.jobs] == [("x", 2), ("x-2", 6)]
    assert "a Secret" in [each.what for each in found.left]


def test_a_template_that_was_not_rendered_is_refused_with_a_way_out() -> None:
    with pytest.raises(UnreadableSource, match="render templates first"):
        read_manifest(b"kind: CronJob\n---\nkind: CronJob\nname: {{ .Release.Name }}\n", "m.yaml")


def test_a_mistake_is_told_with_its_line_in_the_whole_file() -> None:
    with pytest.raises(UnreadableSource, match=r"m\.yaml:5: "):
        read_manifest(b"kind: A\n---\nkind: B\nx: 1\nx: 2\n", "m.yaml")
