"""What follows from the declarations of the policies says what they say."""

from everytick.domain.config import POLICIES, Level
from everytick.sources.yaml_models import JobModel, TaskModel
from tests.tidy.generated import OPTIONS_PAGE, files


def test_what_follows_from_the_policies_is_up_to_date() -> None:
    """If this fails: python3 dev.py docs writes it anew."""
    assert [path.name for path, text in files().items() if path.read_text(encoding="utf-8") != text] == []


def test_the_page_of_options_names_every_key_of_a_job() -> None:
    """A7: in Python and in files."""
    page = OPTIONS_PAGE.read_text(encoding="utf-8")
    known = {*POLICIES, *JobModel.model_fields, *TaskModel.model_fields}

    assert [key for key in sorted(known) if f"| `{key}` |" not in page] == []


def test_every_policy_says_one_sentence_and_who_may_set_it() -> None:
    for name, policy in POLICIES.items():
        assert policy.sentence.endswith("."), name
        assert Level.JOB in policy.levels, name
