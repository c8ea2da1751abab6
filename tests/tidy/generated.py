"""Files and parts of pages that follow from the declarations of the policies (`Settings` in domain/config.py).

Started by name (`python -m tests.tidy.generated`) it writes them anew; a test compares them.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from everytick.domain.config import POLICIES, Level, Policy, Settings
from everytick.domain.policy_checks import as_data
from everytick.domain.policy_readers import DURATION
from everytick.sources.yaml_models import JobModel, TaskModel, json_schema
from everytick.sources.yaml_writer import flow
from tests.tidy.tree import ROOT

KEYWORDS = ROOT / "src/everytick/domain/keywords.py"
SCHEMA = ROOT / "src/everytick/sources/job_file.schema.json"
POLICIES_PAGE = ROOT / "docs/policies.md"
OPTIONS_PAGE = ROOT / "docs/options.md"

PART = re.compile(r"(?P<begin><!-- (?P<name>\w+): written by dev\.py docs -->\n).*?(?P<end><!-- end -->)", re.DOTALL)
QUOTED_LENGTH = re.compile(r'"(\d+)([a-z])"')
LEVELS = {Level.APPLICATION: "application", Level.JOB: "job", Level.TASK: "task"}


def files() -> dict[Path, str]:
    """Return every file that follows from the policies, and what it should say."""
    return {
        KEYWORDS: keywords(),
        SCHEMA: json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n",
        POLICIES_PAGE: with_parts(POLICIES_PAGE),
        OPTIONS_PAGE: with_parts(OPTIONS_PAGE),
    }


def with_parts(page: Path) -> str:
    """Return the page with its generated parts anew."""
    return PART.sub(
        lambda found: found["begin"] + "\n".join(PARTS[found["name"]]()) + "\n" + found["end"],
        page.read_text(encoding="utf-8"),
    )


# ------------------------------------------------------------------------------------------------------------ keywords

KEYWORDS_HEAD = '''\
"""The policies as keyword arguments, for type checkers and editors: what may be written, not what it becomes.

Written by `python3 dev.py docs` from `Settings` in domain/config.py: edit that, not this.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any, Literal, TypeAlias, TypedDict

from everytick.domain.config import Unset
from everytick.domain.dependencies import Dependency
from everytick.domain.notices import Notify
from everytick.domain.policies import OnCreate, Recovery, Retention, UpdatePolicy
from everytick.domain.retry import Retry
from everytick.domain.rollouts import Rollout
from everytick.domain.schedule import Schedule

Duration: TypeAlias = timedelta | str
'''


def keywords() -> str:
    """Return the text of the module of keywords."""
    task = {name: policy for name, policy in POLICIES.items() if Level.TASK in policy.levels}
    job = {name: policy for name, policy in POLICIES.items() if name not in task}
    single = {name: policy for name, policy in POLICIES.items() if Level.OCCURRENCE in policy.levels}
    lines = [
        *aliases(),
        "",
        "",
        "class TaskPolicies(TypedDict, total=False):",
        '    """What one task may set."""',
        *(line for name, policy in task.items() for line in keyword(name, policy)),
        "",
        "",
        "class JobPolicies(TaskPolicies, total=False):",
        '    """What one job may set."""',
        *(line for name, policy in job.items() for line in keyword(name, policy)),
        "",
        "",
        "class OccurrencePolicies(TypedDict, total=False):",
        '    """What one single occurrence may have of its own."""',
        *(line for name, policy in single.items() for line in keyword(name, policy)),
    ]
    return KEYWORDS_HEAD + "\n".join(lines) + "\n"


def aliases() -> Iterator[str]:
    """Give a type alias for every set of words."""
    for policy in POLICIES.values():
        if policy.reader.choices is not None:
            words = ", ".join(f'"{word}"' for word in _enum(policy.reader.schema))
            yield f"{policy.reader.choices.__name__}Word: TypeAlias = Literal[{words}]"


def keyword(name: str, policy: Policy) -> list[str]:
    """Return the lines of one keyword."""
    parts = [policy.reader.types]
    if policy.reader.types != "Any":
        parts += ["Unset", "None"] if policy.reader.is_optional else ["Unset"]
    return ["", f"    {name}: {' | '.join(parts)}", f'    """{policy.sentence}"""']


def _enum(schema: Mapping[str, Any]) -> list[str]:
    found: list[str] = schema["enum"] if "enum" in schema else schema["anyOf"][0]["enum"]
    return found


# --------------------------------------------------------------------------------------------------------------- pages


def policy_rows() -> Iterator[str]:
    """Give the table of all policies: default, levels, sentence."""
    yield "| policy | Default | Set for | What it says |"
    yield "|---|---|---|---|"
    for name, policy in POLICIES.items():
        levels = ", ".join(word for level, word in LEVELS.items() if level in policy.levels)
        yield f"| `{name}` | {default(name)} | {levels} | {policy.sentence} |"


def option_rows() -> Iterator[str]:
    """Give the table of all policies as options of a job, in Python and in files."""
    yield "| Option | Values | Python also takes | Default | What it says |"
    yield "|---|---|---|---|---|"
    for name, policy in POLICIES.items():
        python = f"`{policy.reader.python}`" if policy.reader.python else ""
        yield f"| `{name}` | {values(policy.reader.schema, name)} | {python} | {default(name)} | {policy.sentence} |"


def table_rows() -> Iterator[str]:
    """Give, for each policy that may be a table, the keys of that table."""
    for name, policy in POLICIES.items():
        for schema in (policy.reader.schema, *policy.reader.schema.get("anyOf", ())):
            if "properties" in schema:
                yield from (f"### `{name}`", "", "| Key | Values | Needed | What it says |", "|---|---|---|---|")
                needed = schema.get("required", ())
                for key, part in schema["properties"].items():
                    yield f"| `{key}` | {values(part)} | {'yes' if key in needed else ''} | {part['description']} |"
                yield ""


def work_rows() -> Iterator[str]:
    """Give the keys of a job and of a task in a file that are no policies."""
    yield "| Key | Of | Values | What it says |"
    yield "|---|---|---|---|"
    job, task = ({**_properties(model)} for model in (JobModel, TaskModel))
    for name, schema in {**job, **task}.items():
        if name not in POLICIES:
            whose = " and ".join(word for word, keys in (("job", job), ("task", task)) if name in keys)
            yield f"| `{name}` | {whose} | {values(schema)} | {schema['description']} |"


def _properties(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = json_schema()["$defs"][model.__name__]["properties"]
    return found


def default(name: str) -> str:
    """Return the default as a file would say it."""
    usual = as_data(getattr(Settings(), name))
    return "none" if usual in (None, [], "") else f"`{QUOTED_LENGTH.sub(_bare, flow(usual))}`"


def _bare(length: re.Match[str]) -> str:
    """A duration as people write it in a file: bare, and in days if it has whole ones."""
    hours, unit = int(length[1]), length[2]
    return f"{hours // 24}d" if unit == "h" and hours % 24 == 0 else f"{hours}{unit}"


def values(schema: Mapping[str, Any], name: str = "") -> str:
    """Say in words and examples what may be written, as files write it."""
    if "anyOf" in schema:
        return "; or ".join(dict.fromkeys(values(part, name) for part in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if schema.get("pattern") == DURATION["pattern"]:
        return "a duration such as `30s` or `1h30m`"
    return _plain(schema, name)


def _plain(schema: Mapping[str, Any], name: str) -> str:
    example = f": `{schema['examples'][0]}`" if "examples" in schema else ""
    match schema.get("type"):
        case "null":
            return "`null`"
        case "boolean":
            return "`true`, `false`"
        case "integer" | "number" as kind:
            return ("a whole number" if kind == "integer" else "a number") + _bounds(schema)
        case "string":
            return "text" + example
        case "array":
            return "a list" if "items" not in schema else f"a list of {_plural(schema['items'])}"
        case "object":
            return f"[a table](#{name})" if name and "properties" in schema else "a table"
    return "anything JSON can say"


def _plural(schema: Mapping[str, Any]) -> str:
    return "texts" if schema.get("type") == "string" else "tables"


def _bounds(schema: Mapping[str, Any]) -> str:
    if "exclusiveMinimum" in schema:
        return f" greater than {schema['exclusiveMinimum']}"
    most = f" to {schema['maximum']:,}" if "maximum" in schema else ""
    return f" from {schema['minimum']:,}{most}"


PARTS: Mapping[str, Callable[[], Iterable[str]]] = {
    "policies": policy_rows,
    "options": option_rows,
    "tables": table_rows,
    "work": work_rows,
}

if __name__ == "__main__":
    for path, text in files().items():
        path.write_text(text, encoding="utf-8")
