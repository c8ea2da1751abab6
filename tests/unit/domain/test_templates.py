"""Templates: found by name however it is spelt, and combined so that a later one counts more."""

from typing import Any

import pytest
from hypothesis import given, reject, settings

from everytick.domain.config import UNSET, Level, overrides
from everytick.domain.job import define_job
from everytick.domain.templates import Template, by_key, combine, find_templates, template_names
from everytick.errors import InvalidName, InvalidPolicies
from everytick.schedules.codec import schedule
from everytick.schedules.interval import every
from everytick.schedules.templates import built_in
from tests.unit.domain.test_config import written

NIGHTLY = Template("nightly", "", schedule("0 3 * * *"), overrides(Level.TEMPLATE, {"retry": None, "priority": 1}))
URGENT = Template("urgent", "", None, overrides(Level.TEMPLATE, {"priority": 9}))


def test_the_built_in_templates_are_there_by_name_with_a_description() -> None:
    """S1-039: Hourly, Daily Midnight, Daily 9 AM, Weekly Monday 8 AM."""
    known = {template.name: (str(template.schedule), template.description) for template in built_in()}

    assert known["Hourly"] == ("cron: @hourly", "Every hour on the hour")
    assert known["Daily Midnight"] == ("cron: 0 0 * * *", "Every day at midnight")
    assert known["Daily 9 AM"] == ("cron: 0 9 * * *", "Every day at 9 AM")
    assert known["Weekly Monday 8 AM"] == ("cron: 0 8 * * 1", "Every Monday at 8 AM")


@pytest.mark.parametrize("name", ["Daily 9 AM", "daily-9-am", "DAILY_9  am"])
def test_case_blanks_and_hyphens_of_a_name_do_not_matter(name: str) -> None:
    [found] = find_templates("a", [name], by_key(built_in()))

    assert found.name == "Daily 9 AM"


def test_a_later_template_counts_more_and_each_part_knows_its_template() -> None:
    found = combine([NIGHTLY, URGENT])

    assert found.schedule == NIGHTLY.schedule
    assert found.origin.overrides.get("priority") == 9
    assert found.origin.parts == (("priority", "urgent"), ("retry", "nightly"), ("schedule", "nightly"))
    assert found.origin.without("schedule", "retry").parts == (("priority", "urgent"),)
    assert "retry" not in found.origin.without("retry").overrides


def test_an_unknown_template_is_refused_with_the_nearest_name_or_all_names() -> None:
    known = by_key([NIGHTLY, URGENT])

    with pytest.raises(InvalidPolicies, match=r"job 'a': there is no template 'nightli' \(did you mean 'nightly'\?\)"):
        find_templates("a", ["nightli"], known)
    with pytest.raises(InvalidPolicies) as error:
        find_templates("a", ["x"], known)
    assert error.value.alternatives == ("nightly", "urgent")


@pytest.mark.parametrize("given", [[], 3, {"nightly": 1}, ["a", "A"], [f"t{n}" for n in range(11)]])
def test_what_names_no_templates_is_refused(given: object) -> None:
    with pytest.raises(InvalidPolicies, match="template"):
        template_names(given)


def test_a_template_has_a_name_like_a_job() -> None:
    with pytest.raises(InvalidName):
        template_names(["nightly", ""])


TEMPLATED = written(Level.TEMPLATE).map(
    lambda said: {key: value for key, value in said.items() if key != "description"}
)


@settings(max_examples=50, deadline=None)
@given(TEMPLATED, TEMPLATED, written(Level.JOB))
def test_a_job_from_templates_is_the_job_that_says_all_of_it_itself(
    first: dict[str, Any], second: dict[str, Any], own: dict[str, Any]
) -> None:
    """But for who says it: each value comes from the last that says it."""
    levels = [{key: value for key, value in said.items() if value is not UNSET} for said in (first, second, own)]
    templates = [
        Template(f"t{place}", "", None, overrides(Level.TEMPLATE, said)) for place, said in enumerate(levels[:2])
    ]
    origin = combine(templates).origin.without(*levels[2])
    try:
        alone = define_job("a", every("1h"), policies={**levels[0], **levels[1], **levels[2]})
    except InvalidPolicies:
        reject()
    taken = define_job("a", every("1h"), policies=levels[2], templates=origin)

    assert [each.value for each in taken.settings.effective().values()] == [
        each.value for each in alone.settings.effective().values()
    ]
    assert {part for part, _ in origin.parts} == {
        key for key, each in taken.settings.effective().items() if each.origin is Level.TEMPLATE
    }
    assert taken.schedule == alone.schedule
