"""Settings from four places: built-in, a file, the environment, options. A later place wins; values have an origin.

An unknown key is refused: a misspelt one that silently does nothing is found at three in
the morning. Limits of the values are checked by the node.
"""

import os
import re
import stat
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from everytick.domain.durations import duration, format_duration
from everytick.domain.names import did_you_mean
from everytick.domain.needs import ENGINES
from everytick.errors import InvalidDuration, InvalidSetting

PREFIX = "EVERYTICK_"
OWN_FILE, PROJECT_FILE = "everytick.toml", "pyproject.toml"

# What Kubernetes sets in every container beside a service that is called everytick.
_OF_KUBERNETES = r"SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?"


class SettingPlace(IntEnum):
    """Where a setting came from; a later place wins."""

    BUILT_IN = 0
    FILE = 1
    ENVIRONMENT = 2
    OPTION = 3


class Setting(NamedTuple):
    """A value, the place it came from, and the name of the file, variable or option. `file` is the file it stood in."""

    value: Any
    place: SettingPlace
    origin: str
    file: Path | None = None


class Known(NamedTuple):
    """One known setting: how it is read, its built-in value, and what it is for."""

    read: Callable[[object], Any]
    built_in: Any
    about: str
    is_secret: bool = False


# --------------------------------------------------------------------------------------------------------- readers


def _text(given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValueError("must be a text")
    return given.strip()


def _whole(given: object) -> int:
    if isinstance(given, str) and re.fullmatch(r"[0-9]{1,9}", given.strip(), re.ASCII):
        return int(given)
    if isinstance(given, bool) or not isinstance(given, int):
        raise ValueError("must be a whole number")
    return given


def _share(given: object) -> float:
    try:
        share = float(given) if isinstance(given, (str, int, float)) and not isinstance(given, bool) else 0.0
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ValueError("must be a share above 0 and up to 1, like 0.25")
    return share


def _length(given: object) -> timedelta:
    try:
        return duration(given)
    except InvalidDuration as error:
        raise ValueError(f"is no length of time: {error.reason}") from None


def _names(given: object) -> tuple[str, ...]:
    """A list of names; in the environment, one text with commas."""
    items = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) and item for item in items):
        raise ValueError('must be a list of names, like ["default", "mail"]; in a variable or option: default,mail')
    return tuple(items)


def _some_of(*known: str) -> Callable[[object], tuple[str, ...]]:
    def read(given: object) -> tuple[str, ...]:
        items = _names(given)
        if unknown := [item for item in items if item not in known]:
            raise ValueError(f"must be some of {', '.join(known)}{did_you_mean(unknown[0], known)}")
        return items

    return read


def _switch(given: object) -> bool:
    words = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}
    is_set = given if isinstance(given, bool) else words.get(str(given).strip().lower())
    if is_set is None:
        raise ValueError("must be true or false; in a variable or option: on or off")
    return is_set


def _one_of(*known: str) -> Callable[[object], str]:
    def read(given: object) -> str:
        word = given.lower() if isinstance(given, str) else given
        if word not in known:
            hint = did_you_mean(given, known) if isinstance(given, str) else ""
            raise ValueError(f"must be one of {', '.join(known)}{hint}")
        return str(word)

    return read


NODE_KEYS = {
    "slots": Known(_whole, 50, "how many occurrences run at once"),
    "late_share": Known(_share, 0.25, "the share of slots for late occurrences and backfills"),
    "threads": Known(_whole, 32, "how many threads run plain functions"),
    "processes": Known(_whole, 32, "how many processes run what must be killable"),
    "queues": Known(_names, ("default",), "which queues a node works on"),
    "grace_period": Known(_length, timedelta(seconds=30), "how long a stop waits for what runs"),
    "heartbeat": Known(_length, timedelta(seconds=5), "heartbeat interval of a node"),
    "node_timeout": Known(_length, timedelta(seconds=20), "how long without a heartbeat before a node counts as dead"),
    "reaper_interval": Known(_length, timedelta(seconds=5), "how often dead nodes are looked for"),
    "poll": Known(_length, timedelta(seconds=5), "how long a node sleeps at most"),
    "plan_limit": Known(_whole, 100, "how many occurrences one plan creates at most"),
    "log_folder": Known(_text, None, "where the output of tasks is kept"),
    "allow_calls": Known(_names, (), "packages from which stored jobs may call functions"),
    "allow_addresses": Known(_names, (), "private addresses that http tasks may reach"),
    "hook_timeout": Known(_length, timedelta(minutes=5), "how long one call of a hook may take"),
    "smtp": Known(_text, None, "the server that takes e-mail, as smtp://user:password@host", is_secret=True),
    "smtp_sender": Known(_text, None, "who e-mail is from, where its receiver says nothing else"),
    "metrics_job_limit": Known(_whole, 200, "how many jobs are told apart in metrics"),
    "dead_man_url": Known(_text, None, "the address that is told every minute that the fleet lives", is_secret=True),
    "next_store": Known(_text, None, "the address to which the store may be moved while nodes run", is_secret=True),
    "celery": Known(_text, None, "the Celery application, as module:object, or its broker's address", is_secret=True),
    "celery_results": Known(_text, None, "where Celery keeps results, if not in its broker", is_secret=True),
    "dask": Known(_text, None, "the address of the scheduler of a Dask cluster"),
    "ray": Known(_text, None, "the address of a Ray cluster, as ray://host:10001, or host:6379 on one of its machines"),
    "engine_slots": Known(_whole, 1000, "how many occurrences wait for engines without a slot"),
    "timezone_data": Known(_one_of("system", "package"), "system", "whose zone tables are used"),
}
KEYS = {
    "app": Known(_text, None, "the application, as module:object"),
    "store": Known(_text, None, "the address of a store, to read and operate without an application", is_secret=True),
    "url": Known(_text, None, "the address of a service, to read and operate through it"),
    "token": Known(_text, None, "the token with which the service knows who asks", is_secret=True),
    "jobs": Known(_text, None, "a folder of job files, which `run` watches"),
    "jobs_owner": Known(_text, "file", "whose jobs the folder holds: what other owners have is left alone"),
    "confirm_above": Known(_whole, 1000, "how many runs one operation may create without a confirmation"),
    **NODE_KEYS,
    "api_targets": Known(
        _some_of("command", "http", *ENGINES), (), "what jobs over HTTP may do beside calls: command, http, celery, …"
    ),
    "web": Known(_switch, True, "whether `run` serves the dashboard and the API beside the node"),
    "web_address": Known(_text, "127.0.0.1", "the address on which the dashboard and the API listen"),
    "web_port": Known(_whole, 8484, "the port on which they listen; 0 is any free one"),
    "web_prefix": Known(_text, None, "the path under which a reverse proxy serves them, such as /everytick"),
    "web_auth": Known(_one_of("auto", "users"), "auto", "auto: people sign in once there is a user; users: always"),
    "web_hosts": Known(_names, (), "names of the service beside those of this host, while it has no users"),
    "web_proxies": Known(_names, (), "addresses or networks of reverse proxies whose headers are believed"),
    "web_proxy_header": Known(_text, None, "the header in which such a proxy names the person that it has signed in"),
    "web_proxy_role": Known(_one_of("viewer", "operator", "admin"), None, "what a person may who is no user here"),
    "web_oidc_issuer": Known(_text, None, "the address of a provider of OpenID Connect"),
    "web_oidc_client_id": Known(_text, None, "the name of this service at the provider"),
    "web_oidc_client_secret": Known(_text, None, "its secret there", is_secret=True),
    "web_oidc_claim": Known(_text, "email", "which claim of the provider is the full name of a user here"),
    "web_oidc_trust_email": Known(_switch, False, "whether an address counts whose token does not call it verified"),
    "log_level": Known(_one_of("debug", "info", "warning", "error"), "info", "from which level on `run` writes lines"),
    "log_format": Known(_one_of("text", "json"), "text", "how `run` writes its lines"),
}

_PATHS = ("jobs", "log_folder")

OTHER_WORDS = {"max_concurrent_jobs": "slots"}
"""Other names of keys."""

_OF_DEFINITIONS = ("timezone", "name", "retention", "defaults")
"""Arguments of `Everytick` that are no settings, since they would make other jobs of the same code: see decision 13."""

SettingsByName = dict[str, Setting]

# --------------------------------------------------------------------------------------------------------- gathering


def gather(
    options: Mapping[str, tuple[str, object]],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    file: Path | None = None,
) -> SettingsByName:
    """Return every setting with its origin. `options` has the name of the option and its value, by key.

    Without `file` it is `everytick.toml` or the table `[tool.everytick]` of `pyproject.toml`
    in the folder, which is the current one unless given.
    """
    settings = {name: Setting(key.built_in, SettingPlace.BUILT_IN, "built-in") for name, key in KEYS.items()}
    settings |= from_file(Path.cwd() if folder is None else folder, file)
    settings |= from_environment(os.environ if environment is None else environment)
    for name, (option, given) in options.items():
        settings[name] = _read(name, given, SettingPlace.OPTION, option)
    return settings


def from_file(folder: Path, file: Path | None = None) -> SettingsByName:
    """Return the settings of the file, none without a file. Two files in one folder are refused."""
    if file is not None:
        table = _parsed(file)
        return _from_table(table.get("tool", {}).get("everytick", {}) if file.name == PROJECT_FILE else table, file)
    own, project = folder / OWN_FILE, folder / PROJECT_FILE
    in_project = _project_table(project)
    if own.is_file():
        if in_project is not None:
            raise InvalidSetting(
                "config", own.name, f"stands beside [tool.everytick] in {PROJECT_FILE}: keep one of the two"
            )
        return _from_table(_parsed(own), own)
    return {} if in_project is None else _from_table(in_project, project)


def from_environment(environment: Mapping[str, str]) -> SettingsByName:
    """Return the settings of the variables `EVERYTICK_…`. `EVERYTICK_…_FILE` names a file with the value."""
    settings: SettingsByName = {}
    for variable, given in sorted(environment.items()):
        if not variable.startswith(PREFIX) or _is_foreign(variable.removeprefix(PREFIX)):
            continue
        name, by_file = _key_of(variable.removeprefix(PREFIX).lower())
        if name not in KEYS:
            if name in _OF_DEFINITIONS:
                raise InvalidSetting(variable, given, f"in the environment {_elsewhere(name)}")
            near = did_you_mean(variable, (PREFIX + key.upper() for key in KEYS))
            raise InvalidSetting(variable, given, f"in the environment is not known{near}: correct it, or unset it")
        if name in settings:
            raise InvalidSetting(variable, given, f"says what {settings[name].origin} says too: keep one of the two")
        said = _contents(variable, given) if by_file else given
        setting = _read(name, said, SettingPlace.ENVIRONMENT, variable)
        settings[name] = setting._replace(file=Path(given)) if by_file else setting
    return settings


def _key_of(text: str) -> tuple[str, bool]:
    """Return the key that a variable sets, and whether the variable names a file with the value."""
    if text in KEYS or text in OTHER_WORDS:
        return OTHER_WORDS.get(text, text), False
    name = text.removesuffix("_file")
    return OTHER_WORDS.get(name, name), name != text


def _elsewhere(name: str) -> str:
    under_defaults = {"name": "", "defaults": ", or under defaults: in a job file"}
    files = under_defaults.get(name, f", or in a job file under defaults: as {name}:")
    return f"is no setting of a node, since it is part of what jobs are: write it in Everytick({name}=…){files}"


def _is_foreign(rest: str) -> bool:
    """Tell whether the variable is no setting: it belongs to the attempt that runs this process, or to Kubernetes."""
    if re.fullmatch(_OF_KUBERNETES, rest):
        return True
    if rest.lower() in KEYS or rest.lower() in OTHER_WORDS:
        return False
    # Imported only if a variable is no key: inside a task, or by mistake.
    from everytick.runners.targets import TEMPLATE_NAMES

    return rest == "CONFIG" or rest.lower() in TEMPLATE_NAMES


def _contents(variable: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidSetting(variable, path, f"names a file that cannot be read: {reason}") from None


def _project_table(project: Path) -> dict[str, Any] | None:
    """Return the table `[tool.everytick]`, or None. A project file that does not contain the name is not parsed."""
    try:
        text = project.read_bytes()
    except OSError:
        return None
    if b"everytick" not in text:
        return None
    table: dict[str, Any] | None = _parsed(project).get("tool", {}).get("everytick")
    return table


def _parsed(file: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSetting("config", str(file), f"cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSetting("config", str(file), f"is not TOML: {error}") from None


def _from_table(table: Mapping[str, Any], file: Path) -> SettingsByName:
    where = file.name if file.name != PROJECT_FILE else f"{file.name} [tool.everytick]"
    settings: SettingsByName = {}
    for word, given in table.items():
        name = OTHER_WORDS.get(word, word)
        if name in _OF_DEFINITIONS:
            raise InvalidSetting(name, given, f"in {where} {_elsewhere(name)}")
        if name not in KEYS:
            near = did_you_mean(name, KEYS)
            raise InvalidSetting(name, given, f"in {where} is not known{near}; there are: {', '.join(KEYS)}")
        if name in settings:
            raise InvalidSetting(word, given, f"in {where} says what another word for {name} says too: keep one")
        setting = _read(name, given, SettingPlace.FILE, where)._replace(file=file)
        if name in _PATHS:
            # Relative to the file that names it, not to the current folder.
            setting = setting._replace(value=str(file.parent / setting.value))
        settings[name] = setting
    return settings


def _read(name: str, given: object, place: SettingPlace, origin: str) -> Setting:
    key = KEYS[name]
    try:
        return Setting(key.read(given), place, origin)
    except ValueError as error:
        said = "…" if key.is_secret else given
        raise InvalidSetting(name, said, f"in {origin} {error}") from None


# ---------------------------------------------------------------------------------------------------- secrets in files


def open_secrets(settings: SettingsByName) -> list[str]:
    """Return a sentence for each file with a secret that every user of this host can read."""
    named: dict[Path, list[str]] = {}
    for name, setting in settings.items():
        if setting.file is not None and _holds_secret(name, setting.value) and _is_open(setting.file):
            named.setdefault(setting.file, []).append(name)
    return [
        f"{file} holds a secret ({', '.join(names)}), and every user of this host can read it: chmod o-r {file}"
        for file, names in named.items()
    ]


def _holds_secret(name: str, value: object) -> bool:
    return KEYS[name].is_secret and shown_value(name, value) != str(value)


def _is_open(file: Path) -> bool:
    try:
        return os.name == "posix" and bool(file.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


# ----------------------------------------------------------------------------------------------------------- showing


def shown_value(name: str, value: object) -> str:
    """Return a value for people and for files; an address without its password."""
    if value is None:
        return ""
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if not KEYS[name].is_secret:
        return str(value)
    return without_password(str(value)) if "://" in str(value) else "…"


def without_password(address: str) -> str:
    """Return the address with … in the place of its password."""
    scheme, separator, rest = address.partition("://")
    secret, at, host = rest.rpartition("@")
    user, colon, _ = secret.partition(":")
    plain = f"{scheme}://{user}:…@{host}" if separator and at and colon else address
    return re.sub(r"(?i)([?&](?:password|sslpassword|passfile)=)[^&]*", r"\1…", plain)
