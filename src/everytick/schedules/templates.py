"""The templates that everytick has itself: schedules that most people need, by name."""

from functools import cache

from everytick.domain.templates import Template
from everytick.schedules.codec import schedule

BUILT_IN = "built in"

_SCHEDULES = (
    ("Hourly", "@hourly", "Every hour on the hour"),
    ("Daily Midnight", "0 0 * * *", "Every day at midnight"),
    ("Daily 9 AM", "0 9 * * *", "Every day at 9 AM"),
    ("Weekdays 9 AM", "0 9 * * 1-5", "Monday through Friday at 9 AM"),
    ("Weekly Monday 8 AM", "0 8 * * 1", "Every Monday at 8 AM"),
    ("Monthly Midnight", "0 0 1 * *", "The first day of every month at midnight"),
)


@cache
def built_in() -> tuple[Template, ...]:
    """Return the built-in templates. Their times are those of the job's zone."""
    return tuple(Template(name, description, schedule(spec), place=BUILT_IN) for name, spec, description in _SCHEDULES)
