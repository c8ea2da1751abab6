"""Job files that name an engine: what they mean, and what is refused where."""

import pytest

from everytick.sources.job_files import read_jobs

FILE = "version: 1\njobs:\n  a: {}\n"


def _read(job: str) -> tuple[list[str], list[str]]:
    """Return the targets, and the mistakes, of a file with this job."""
    found = read_jobs(FILE.replace("{}", job).encode(), "jobs.yaml", owner="file")
    return [task.target for each in found.jobs for task in each.job.tasks], [str(each) for each in found.mistakes]


def test_a_job_names_its_engine_and_target() -> None:
    """Runner: celery, target: tasks.send_report."""
    job = "{schedule: '@daily', runner: celery, target: tasks.send_report, options: {queue: reports, priority: 3}}"
    written = '{"target": "tasks.send_report", "options": {"queue": "reports", "priority": 3}}'
    assert _read(job) == ([written], [])
    tasks = "{schedule: '@daily', tasks: [{name: t, runner: dask, target: 'shop.tasks:send'}]}"
    assert _read(tasks) == (['{"target": "shop.tasks:send"}'], [])
    job = "{schedule: '@daily', runner: ray, target: 'shop.tasks:send', options: {num_cpus: 0.5}}"
    assert _read(job) == (['{"target": "shop.tasks:send", "options": {"num_cpus": 0.5}}'], [])


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("{schedule: '@daily', target: tasks.send}", "which only an engine can call"),
        ("{schedule: '@daily', runner: celery, command: ls}", "which carries out what a target names"),
        ("{schedule: '@daily', runner: celery, target: 'a b'}", "is no name that an engine could know"),
        ("{schedule: '@daily', runner: celery, target: a, options: {queu: b}}", "did you mean 'queue'"),
        ("{schedule: '@daily', runner: celery, target: a, options: {priority: high}}", "is not a whole number"),
        ("{schedule: '@daily', runner: ray, target: 'a:b', options: {num_cpus: all}}", "is not a number"),
        ("{schedule: '@daily', call: 'a:b', options: {queue: b}}", "options belong to a target, and this is a call"),
        ("{schedule: '@daily', runner: celery, target: a, call: 'a:b'}", "has call and target: give one of them"),
    ],
)
def test_a_mistake_is_told_before_anything_is_stored(job: str, words: str) -> None:
    targets, mistakes = _read(job)
    assert targets == []
    assert any(words in mistake for mistake in mistakes), mistakes
