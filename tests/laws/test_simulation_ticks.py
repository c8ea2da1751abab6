"""What the simulation does without asking `plan` is what `plan` would have said."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from everytick.deciding.plan import plan
from everytick.domain.decisions import Why
from everytick.domain.ids import occurrence_id
from everytick.domain.job import Job, define_job, define_task
from everytick.domain.snapshots import Edition, JobSnapshot
from everytick.domain.statuses import OccurrenceStatus
from everytick.schedules.codec import schedule
from everytick.simulate.record import SimulationRecord
from everytick.simulate.simulated_job import SimulatedJob
from everytick.simulate.world import World

START = datetime(2026, 10, 24, 9, 13, tzinfo=UTC)
THROUGH = START + timedelta(hours=20)

RULES = st.sampled_from(
    ["*/5 * * * *", "30 * * * *; tz=Europe/Berlin", "every 7m", "every 90s", "H/15 * * * *", "after: 11m",
     "30 2 * * *; tz=Europe/Berlin", "(9-59/10 * * * *) | (every 25m)", "once: 2026-10-24T12:00:00Z"]
)  # fmt: skip
JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "rule": RULES,
            "length": st.sampled_from([0, 1, 60, 97.5, 300, 1649.5]).map(lambda seconds: timedelta(seconds=seconds)),
            "overlap": st.sampled_from(["skip", "queue", "queue_latest", "allow", "cancel_running"]),
            "recovery": st.sampled_from(["execute_last", "execute_all", "mark_as_missed"]),
            "grace": st.sampled_from(["1s", "60s", "10m"]),
            "jitter": st.sampled_from([None, None, "2m"]),
            "skip_if_successful": st.booleans(),
        }
    ),
    min_size=1,
    max_size=5,
)


class Asking(World):
    """Asks the plan whenever it is not asked."""

    ticks = 0

    def _tick(self, simulated: SimulatedJob, now: datetime) -> None:
        made = plan(simulated.snapshot(now), now)
        [creation] = made.creations
        assert (creation.id, creation.scheduled_for) == (occurrence_id(simulated.job.id, now), now)
        assert (creation.status, creation.why) == (OccurrenceStatus.PENDING, Why.ON_TIME)
        assert creation.ready_at == creation.line_at == now
        assert not any((made.spans, made.endings, made.releases, made.cancels, made.awaits_ends))

        super()._tick(simulated, now)

        assert simulated.watermark == made.watermark
        assert simulated.wake_at == (made.wake_at if made.wake_at is not None and made.wake_at <= THROUGH else None)
        self.ticks += 1


def job_of(number: int, parts: dict[str, Any]) -> Job:
    policies = {key: parts[key] for key in ("overlap", "recovery", "grace", "jitter", "skip_if_successful")}
    task = define_task("t", "t", target='{"command": ["true"]}')
    return define_job(f"job-{number}", schedule(parts["rule"]), policies=policies, tasks=[task])


def simulated_job_of(number: int, parts: dict[str, Any]) -> SimulatedJob:
    job = job_of(number, parts)
    return SimulatedJob(JobSnapshot(job.id, 0, 0, START, (Edition(job),)), parts["length"])


@settings(max_examples=30)
@given(JOBS, st.sampled_from([1, 2, 20]), st.booleans())
def test_a_tick_is_what_the_plan_would_have_said(jobs: list[dict[str, Any]], slots: int, has_outage: bool) -> None:
    outages = [(START + timedelta(hours=3, seconds=7), START + timedelta(hours=5, seconds=3))] if has_outage else []
    simulated_jobs = [simulated_job_of(number, parts) for number, parts in enumerate(jobs)]

    Asking(simulated_jobs, START, SimulationRecord(), slots=slots, outages=outages).run(THROUGH)


def test_nearly_all_runs_of_a_plain_job_are_ticks() -> None:
    parts = {"rule": "*/5 * * * *", "length": timedelta(seconds=40), "overlap": "skip", "recovery": "execute_last",
             "grace": "60s", "jitter": None, "skip_if_successful": False}  # fmt: skip
    simulated = simulated_job_of(0, parts)
    world = Asking([simulated], START, SimulationRecord(), slots=5)

    world.run(THROUGH)

    assert (simulated.tally.runs, world.ticks) == (20 * 12, 20 * 12)
