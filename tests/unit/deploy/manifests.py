"""The files in deploy/, read: every container with what surrounds it."""

from typing import Any, NamedTuple

import yaml

from tests.tidy.tree import ROOT

DEPLOY = ROOT / "deploy"
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "docker/compose.yaml").read_text())


class Pod(NamedTuple):
    """The pods of one workload."""

    kind: str
    name: str
    workload: dict[str, Any]
    spec: dict[str, Any]


def documents() -> list[dict[str, Any]]:
    """Return every manifest of Kubernetes."""
    return [document for path in KUBERNETES for document in yaml.safe_load_all(path.read_text())]


def pods() -> list[Pod]:
    """Return the pods of every workload."""
    return [
        Pod(each["kind"], each["metadata"]["name"], each, each["spec"]["template"]["spec"])
        for each in documents()
        if each["kind"] in ("Deployment", "StatefulSet")
    ]


def commands() -> list[list[str]]:
    """Return the commands of everytick in all files."""
    found = [pod.spec["containers"][0].get("command", [""]) for pod in pods()]
    found += [service["command"] for service in COMPOSE["services"].values() if "command" in service]
    for unit in sorted((DEPLOY / "systemd").glob("*.service")):
        [line] = [line for line in unit.read_text().splitlines() if line.startswith("ExecStart=")]
        found.append(["everytick", *line.split()[1:]])
    return [command for command in found if command[0] == "everytick"]
