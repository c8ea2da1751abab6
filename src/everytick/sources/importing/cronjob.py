"""Kubernetes CronJobs, from manifests: several documents, lists, and whatever else stands among them.

A CronJob makes pods, and here the command itself is run on the node: what belongs to the pod is
listed. Its schedule is read as the controller does: see `cronjob_schedule.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from everytick.domain.durations import format_duration
from everytick.errors import shown
from everytick.sources.importing.cronjob_schedule import read_schedule
from everytick.sources.importing.findings import (
    Findings,
    UnreadableSource,
    Unsayable,
    decoded,
    refuse_template,
    seconds_of,
)
from everytick.sources.yaml_reader import YamlNode, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from everytick.sources.yaml_reader import PathStep

DEFAULTS: Mapping[str, object] = {"overlap": "allow", "recovery": "execute_last", "task_timeout": None}
"""The controller's policies: runs may overlap, the latest missed one runs, and nothing is stopped."""

_OVERLAPS = {"Allow": "allow", "Forbid": "skip", "Replace": "cancel_running"}
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_BACKOFF_LIMIT = 6
"""The default of backoffLimit."""

_POD = "pods are not made here: the command runs on the node as it is"
_SPEC = ("jobTemplate", "spec")
_TEMPLATE = (*_SPEC, "template", "spec")
# Keys that a cluster adds to every manifest: no person wrote them.
_BOOKKEEPING = (
    "creationTimestamp", "generation", "imagePullPolicy", "managedFields", "resourceVersion", "selfLink", "status",
    "uid",
)  # fmt: skip
_USUAL: Mapping[str, object] = {
    "completionMode": "NonIndexed",
    "dnsPolicy": "ClusterFirst",
    "failedJobsHistoryLimit": 1,
    "manualSelector": False,
    "podReplacementPolicy": "TerminatingOrFailed",
    "schedulerName": "default-scheduler",
    "successfulJobsHistoryLimit": 3,
    "suspend": False,
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_LEFT = {
    "successfulJobsHistoryLimit": "history is kept by age: write retention",
    "failedJobsHistoryLimit": "history is kept by age: write retention",
    "ttlSecondsAfterFinished": "history is kept by age: write retention",
    "labels": "write tags for what you look for by",
    "annotations": "write a description",
    "namespace": "jobs of all namespaces stand in one store",
}


def read_manifest(raw: bytes, file: str, *, timezone: str | None = None, taken: set[str] | None = None) -> Findings:
    """Return the CronJobs of a manifest; other kinds are listed as left."""
    defaults = dict(DEFAULTS) if timezone is None else {"timezone": timezone, **DEFAULTS}
    findings = Findings(file, defaults, taken)
    for root in _documents(decoded(raw, file), file):
        for path in _resources(root.data):
            _read(root, path, findings, timezone)
    findings.left.sort(key=lambda left_out: left_out.line)
    return findings


def _documents(text: str, file: str) -> Iterator[YamlNode]:
    """Give the documents, each read with its place in the whole."""
    begun, lines = 0, list[str]()
    for number, line in enumerate([*text.replace("\r\n", "\n").split("\n"), "---"]):
        if re.match(r"(---|\.\.\.)(\s|$)", line):
            if any(line.strip() and not line.lstrip().startswith("#") for line in lines):
                yield _document("\n" * begun + "\n".join(lines), file)
            begun, lines = number, [line[3:]]
        else:
            lines.append(line)


def _document(text: str, file: str) -> YamlNode:
    document = read_yaml(text.encode(), file)
    if document.root is None or document.mistakes:
        first = document.mistakes[0]
        hint = "; render templates first, as helm template does" if "{{" in text else ""
        raise UnreadableSource(file, first.line, f"{first.message}{hint}")
    return document.root


def _resources(data: object) -> Iterator[tuple[PathStep, ...]]:
    """Give the paths of the resources of a document: itself, or the items of a list."""
    if isinstance(data, dict) and isinstance(items := data.get("items"), list):
        yield from (("items", position) for position in range(len(items)))
    else:
        yield ()


def _read(root: YamlNode, path: tuple[PathStep, ...], found: Findings, timezone: str | None) -> None:
    data = _inside(root.data, path)
    line = root.place_of(path).line
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind != "CronJob":
        found.leave(line, f"a {shown(kind) if kind else 'document without a kind'}", "not imported: it is no CronJob")
        return
    _CronJob(root, path, found, timezone).read()


def _inside(data: Any, path: tuple[PathStep, ...]) -> Any:
    for step in path:
        if isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        elif isinstance(data, dict):
            data = data.get(step)
        else:
            return None
    return data


class _CronJob:
    """Converts one CronJob. Keys that it has read are not listed as left out."""

    def __init__(self, root: YamlNode, path: tuple[PathStep, ...], found: Findings, timezone: str | None) -> None:
        self._root, self._path, self._found, self._timezone = root, path, found, timezone
        self._looked_at: set[tuple[PathStep, ...]] = set()
        self._left: list[tuple[tuple[PathStep, ...], str, str]] = []

    def read(self) -> None:
        name = self._get("metadata", "name")
        line = self._line(("metadata", "name"))
        self._get("apiVersion"), self._get("kind")
        named = name if isinstance(name, str) else "cronjob"
        try:
            parts = {"schedule": self._schedule(), **self._policies(), **self._work()}
        except Unsayable as reason:
            self._found.leave(line, f"CronJob '{named}'", f"not imported: {reason}")
            return
        if self._found.add(named, parts, line, notes=[f"{shown(self._found.file, 200)}:{line}"]):
            for path, what, why in self._left:
                self._found.leave(self._line(path), f"{what} of '{named}'", why)
            self._list_rest((), named)

    # ----------------------------------------------------------------------------------------------------- when

    def _schedule(self) -> str:
        written = self._get("spec", "schedule")
        if not isinstance(written, str):
            raise Unsayable("it has no schedule")
        schedule = read_schedule(written, self._get("spec", "timeZone"), self._timezone)
        if not schedule.has_zone and self._timezone is None:
            why = "the controller means its own zone, which no manifest says, and here it is UTC: give --timezone"
            self._left.append((("spec", "schedule"), "the time zone", why))
        self._left += [(("spec", "schedule"), what, why) for what, why in schedule.left]
        return schedule.text

    def _policies(self) -> dict[str, object]:
        parts: dict[str, object] = {}
        policy = self._get("spec", "concurrencyPolicy")
        if policy is not None and policy not in _OVERLAPS:
            raise Unsayable(f"there is no concurrencyPolicy '{shown(policy)}'")
        if policy in ("Forbid", "Replace"):
            parts["overlap"] = _OVERLAPS[policy]
        if policy == "Forbid":
            why = "a run that it left out may start once the one before has ended; here only queue_latest does so"
            self._left.append((("spec", "concurrencyPolicy"), "concurrencyPolicy Forbid", why))
        if (deadline := self._seconds("spec", "startingDeadlineSeconds")) is not None:
            parts["recovery"] = {"strategy": "bounded_window", "max_duration": deadline, "max_occurrences": 1}
        if self._get("spec", "suspend") is True:
            parts["suspended"] = True
        if (limit := self._seconds("spec", *_SPEC, "activeDeadlineSeconds")) is not None:
            parts["execution_timeout"] = limit
        return {**parts, **self._retry()}

    def _retry(self) -> dict[str, object]:
        """Return the retries of the controller: six unless set, with waits that double."""
        limit = self._get("spec", *_SPEC, "backoffLimit")
        times = _BACKOFF_LIMIT if limit is None else limit
        if not isinstance(times, int) or isinstance(times, bool) or times < 0:
            raise Unsayable(f"backoffLimit '{shown(limit)}' is no number")
        longest = "5m" if self._get("spec", *_TEMPLATE, "restartPolicy") == "OnFailure" else "6m"
        return {"retry": {"max": times, "interval": "10s", "factor": 2, "max_interval": longest}} if times else {}

    def _seconds(self, *path: PathStep) -> str | None:
        given = self._get(*path)
        if given is None:
            return None
        length = seconds_of(given) if isinstance(given, int) else None
        if length is None:
            raise Unsayable(f"{path[-1]} '{shown(given)}' is no number of seconds")
        return format_duration(length)

    # ---------------------------------------------------------------------------------------------------- what

    def _work(self) -> dict[str, object]:
        for key in ("parallelism", "completions"):
            if self._get("spec", *_SPEC, key) not in (None, 1):
                raise Unsayable(f"{key} asks for several pods at once")
        first = self._containers("initContainers")
        containers = self._containers("containers")
        if len(containers) != 1:
            raise Unsayable(f"it has {len(containers)} containers, and a job runs one command after another")
        if not first:
            return self._container(containers[0])
        return {
            "tasks": [
                {"name": self._task_name(container), **self._container(container)}
                for container in (*first, *containers)
            ]
        }

    def _containers(self, key: str) -> list[tuple[PathStep, ...]]:
        given = self._get("spec", *_TEMPLATE, key)
        return [("spec", *_TEMPLATE, key, number) for number in range(len(given) if isinstance(given, list) else 0)]

    def _task_name(self, path: tuple[PathStep, ...]) -> str:
        return str(self._get(*path, "name") or path[-1])

    def _container(self, path: tuple[PathStep, ...]) -> dict[str, object]:
        self._get(*path, "name")
        image = self._get(*path, "image")
        self._left.append(
            ((*path, "image"), f"the image {shown(image)}", "the command runs on the node, with what is there")
        )
        command, args = self._get(*path, "command") or [], self._get(*path, "args") or []
        if not command:
            raise Unsayable("its command is the image's own, which the manifest does not say: write command")
        environment, unknown = self._environment(path)
        words = [_referred(argument, environment, unknown) for argument in (*command, *args)]
        refuse_template([*words, *environment.values()])
        folder = self._get(*path, "workingDir")
        beside = {"env": environment or None, "cwd": folder}
        return {"command": words, **{key: given for key, given in beside.items() if given is not None}}

    def _environment(self, path: tuple[PathStep, ...]) -> tuple[dict[str, str], AbstractSet[str] | None]:
        """Return the variables with values in the manifest, and the names of the others; None if those are unknown."""
        found: dict[str, str] = {}
        unknown: set[str] | None = set() if _inside(self._data, (*path, "envFrom")) is None else None
        given = self._get(*path, "env") or []
        for number, variable in enumerate(given if isinstance(given, list) else []):
            named = variable.get("name") if isinstance(variable, dict) else variable
            if isinstance(variable, dict) and isinstance(named, str) and "valueFrom" not in variable:
                found[named] = _referred(str(variable.get("value") or ""), found, unknown)
            else:
                if unknown is not None:
                    unknown.add(str(named))
                why = "its value is not in the manifest: set it for the node, or write it under env"
                self._left.append(((*path, "env", number), f"the variable {shown(named)}", why))
        return found, unknown

    # ------------------------------------------------------------------------------------------- looking and listing

    @property
    def _data(self) -> Any:
        return _inside(self._root.data, self._path)

    def _get(self, *path: PathStep) -> Any:
        self._looked_at.add(path)
        return _inside(self._data, path)

    def _line(self, path: tuple[PathStep, ...]) -> int:
        return self._root.place_of((*self._path, *path), key=True).line

    def _is_usual(self, path: tuple[PathStep, ...]) -> bool:
        """Whether the value is empty, or a default that a cluster adds."""
        key, said = str(path[-1]), _inside(self._data, path)
        return key in _BOOKKEEPING or said in (None, {}, []) or (key in _USUAL and said == _USUAL[key])

    def _list_rest(self, path: tuple[PathStep, ...], named: str) -> None:
        """List every key that was not read. Keys inside such a key are not listed."""
        data = _inside(self._data, path)
        steps: list[PathStep] = list(data) if isinstance(data, dict) else list(range(len(data)))
        for step in steps:
            inner = (*path, step)
            if inner in self._looked_at and inner[-1] not in ("containers", "initContainers"):
                continue
            if any(seen[: len(inner)] == inner for seen in self._looked_at):
                self._list_rest(inner, named)
            elif not self._is_usual(inner):
                why = _LEFT.get(str(step), _POD)
                self._found.leave(self._line(inner), f"{'.'.join(map(str, inner))} of '{named}'", why)


def _referred(given: object, environment: Mapping[str, str], unknown: AbstractSet[str] | None) -> str:
    """Return a word with its `$(NAME)` filled in. An unknown one stays as it is, as in a pod.

    `unknown` are the variables whose values are elsewhere; None says that any may be one of them.
    """
    if not isinstance(given, str):
        raise Unsayable(f"'{shown(given)}' in its command is no text: quote it")

    def fill(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        if found[1] not in environment and (unknown is None or found[1] in unknown):
            raise Unsayable(f"the value of $({shown(found[1])}) is not in the manifest")
        return environment.get(found[1], found[0])

    return _REFERENCE.sub(fill, given)
