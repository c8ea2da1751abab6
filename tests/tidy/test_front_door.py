"""What a newcomer meets first keeps its promises."""

import re

from tests.tidy.tree import ROOT

KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_readme_shows_both_commands_on_its_first_screen() -> None:
    first_screen = (ROOT / "README.md").read_text().splitlines()[:25]

    for command in ("python3 dev.py run", "python3 dev.py test"):
        assert any(command in line for line in first_screen)


def test_ci_runs_the_commands_that_people_run_and_no_others() -> None:
    script = (ROOT / ".ci/run").read_text()

    assert re.findall(r"python3? \S+ \S+", script) == ["python3 dev.py check", "python3 dev.py test"]
    assert (ROOT / ".ci/run").stat().st_mode & 0o111


def test_the_changelog_has_a_place_for_what_is_not_released() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", heading) for heading in headings[1:])


def test_the_changelog_sorts_changes_by_what_they_mean_to_users() -> None:
    kinds = re.findall(r"^### (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert kinds
    assert set(kinds) <= KINDS
