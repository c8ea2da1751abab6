"""What deploy/ holds is valid by its own validators, and as safe as the pages say."""

import configparser
import json
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
from click.testing import CliRunner

from everytick.cli.main import everytick
from everytick.domain.durations import duration
from tests.tidy.tree import ROOT
from tests.unit.deploy.manifests import COMPOSE, DEPLOY, KUBERNETES, Pod, commands, documents, pods

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SERVICES = COMPOSE["services"]
ROOM = 15
"""Seconds beyond the grace period, in which the ends of what ran are written."""


@pytest.mark.parametrize("version", ["1.30", "1.37"])
@pytest.mark.parametrize("document", documents(), ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_manifests_are_valid_for_kubernetes(document: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(document, version, strict=True)


def test_an_invalid_manifest_is_found() -> None:
    document = documents()[0]
    document["spec"]["replica"] = 2
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, "1.37", strict=True)


@pytest.mark.parametrize("pod", pods(), ids=lambda pod: pod.name)
def test_pods_run_as_nobody_special_on_a_root_that_they_cannot_write(pod: Pod) -> None:
    assert pod.spec["automountServiceAccountToken"] is False
    assert pod.spec["securityContext"]["runAsNonRoot"] is True
    assert pod.spec["securityContext"]["runAsUser"] > 0
    assert pod.spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod.spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
        assert "memory" in container["resources"]["limits"]
        assert re.fullmatch(r"[\w./-]+:(?!latest$)[\w.-]+", container["image"])
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        claimed = {claim["metadata"]["name"] for claim in pod.workload["spec"].get("volumeClaimTemplates", ())}
        assert mounted == claimed | {volume["name"] for volume in pod.spec.get("volumes", ())}


@pytest.mark.parametrize("pod", pods(), ids=lambda pod: pod.name)
def test_selectors_find_their_own_pods_only(pod: Pod) -> None:
    labels = pod.workload["spec"]["template"]["metadata"]["labels"]
    assert pod.workload["spec"]["selector"]["matchLabels"] == labels
    others = [each.workload["spec"]["template"]["metadata"]["labels"] for each in pods() if each.name != pod.name]
    assert labels not in others


def test_services_lead_to_a_port_of_one_workload() -> None:
    for document in documents():
        if document["kind"] != "Service":
            continue
        [pod] = [
            each
            for each in pods()
            if document["spec"]["selector"].items() <= each.workload["spec"]["template"]["metadata"]["labels"].items()
        ]
        ports = {port["name"] for port in pod.spec["containers"][0]["ports"]}
        assert {port["targetPort"] for port in document["spec"]["ports"]} <= ports


@pytest.mark.parametrize("name", ["everytick-node", "everytick-service"])
def test_what_serves_is_probed_and_replaced_without_a_gap(name: str) -> None:
    [pod] = [each for each in pods() if each.name == name]
    [container] = pod.spec["containers"]
    for probe, path in (("startupProbe", "/startupz"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "http"}
    assert pod.workload["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}


def test_pods_of_nodes_have_time_to_stop() -> None:
    [pod] = [each for each in pods() if each.name == "everytick-node"]
    [grace] = [each["value"] for each in pod.spec["containers"][0]["env"] if each["name"] == "EVERYTICK_GRACE_PERIOD"]
    assert pod.spec["terminationGracePeriodSeconds"] >= duration(grace).total_seconds() + ROOM
    assert pod.workload["spec"]["replicas"] == 2


def test_no_manifest_holds_a_secret() -> None:
    texts = [path.read_text() for path in (*KUBERNETES, *UNITS, DEPLOY / "docker/compose.yaml")]
    assert [each["kind"] for each in documents() if each["kind"] == "Secret"] == []
    # An address with a password in it; the comment of the compose file writes one into a file by a variable.
    assert [found for text in texts for found in re.findall(r"://\w+:(?!%s@)[^@\s/]+@", text)] == []
    assert not [text for text in texts if re.search(r"PASSWORD[\"']?[:=] *[\"']?\w", text)]


# ------------------------------------------------------------------------------------------------------------- compose


def compose_schema() -> dict[str, Any]:
    found = files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text("utf-8")
    read: dict[str, Any] = json.loads(found)
    return read


def test_the_compose_file_is_valid() -> None:
    jsonschema.validate(COMPOSE, compose_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"services": {"node": {"imge": "x"}}}, compose_schema())


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "postgres"])
def test_containers_of_the_compose_file_are_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert int(service["user"].partition(":")[0]) > 0
    assert "mem_limit" in service


def test_what_the_compose_file_names_is_there() -> None:
    for service in SERVICES.values():
        assert set(service.get("secrets", ())) <= COMPOSE["secrets"].keys()
        assert {volume.partition(":")[0] for volume in service.get("volumes", ())} <= COMPOSE["volumes"].keys()
        assert set(service.get("depends_on", ())) <= SERVICES.keys()
    for name in ("node-1", "node-2"):
        grace = duration(SERVICES[name]["environment"]["EVERYTICK_GRACE_PERIOD"]).total_seconds()
        assert duration(SERVICES[name]["stop_grace_period"]).total_seconds() >= grace + ROOM


def test_the_service_is_published_on_this_host_only() -> None:
    assert [service["ports"] for service in SERVICES.values() if "ports" in service] == [["127.0.0.1:8484:8484"]]


# -------------------------------------------------------------------------------------------------------------- Docker


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"^#.*\n", "", (DEPLOY / "docker/Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in text.splitlines() if line.strip()]


def test_the_image_has_a_version_and_no_root() -> None:
    bases = [what for word, what in instructions() if word == "FROM"]
    assert all(re.match(r"\S+:[\w.-]+( AS \w+)?$", base) and ":latest" not in base for base in bases)
    users = [place for place, (word, _) in enumerate(instructions()) if word == "USER"]
    assert instructions()[users[-1]][1] == "10001:10001"
    assert not [what for word, what in instructions()[users[-1] :] if word in ("RUN", "COPY", "ADD")]
    assert "ADD" not in {word for word, _ in instructions()}


def test_the_image_is_made_of_what_is_there() -> None:
    for word, what in instructions():
        if word == "COPY" and not what.startswith("--from"):
            *sources, _ = what.split()
            assert [source for source in sources if not (ROOT / source).exists()] == []
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [installed] = [re.search(r"\.\[([\w,]+)\]", what) for word, what in instructions() if "pip install" in what]
    assert installed is not None
    assert set(installed[1].split(",")) <= extras.keys()


def test_the_image_starts_a_process_that_hears_signals() -> None:
    """A shell as the first process would keep SIGTERM from the node."""
    [command] = [what for word, what in instructions() if word == "CMD"]
    assert json.loads(command)[0] == "everytick"


# ------------------------------------------------------------------------------------------------------------- systemd


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_are_confined_and_have_time_to_stop(unit: Path) -> None:
    read = configparser.RawConfigParser(strict=False)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read_string(unit.read_text())
    service = read["Service"]
    assert service["NoNewPrivileges"] == "true"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    assert service["User"] == "everytick"
    assert service["RestartPreventExitStatus"] == "69"
    if found := re.search(r"^Environment=EVERYTICK_GRACE_PERIOD=(\S+)$", unit.read_text(), re.MULTILINE):
        assert duration(service["TimeoutStopSec"]).total_seconds() >= duration(found[1]).total_seconds() + ROOM


def test_systemd_reads_the_units(tmp_path: Path) -> None:
    """Where systemd is installed it judges; elsewhere it is at least known that every line is a setting."""
    for unit in UNITS:
        lines = [line for line in unit.read_text().splitlines() if line and not line.startswith("#")]
        assert all(re.fullmatch(r"\[\w+\]|[A-Z]\w+=.*", line) for line in lines)
        text = unit.read_text().replace("/opt/everytick/.venv/bin/everytick", sys.executable)
        (tmp_path / unit.name.replace("@.", "@1.")).write_text(text)
    if (judge := shutil.which("systemd-analyze")) is not None:
        units = [str(path) for path in tmp_path.iterdir()]
        judged = subprocess.run([judge, "verify", "--man=no", *units], capture_output=True, text=True, timeout=60)
        said = [line for line in judged.stderr.splitlines() if "everytick" in line]
        assert said == []


# ------------------------------------------------------------------------------------------------------------ commands


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_commands_are_those_of_this_everytick(command: list[str]) -> None:
    result = CliRunner().invoke(everytick, [*command[1:], "--help"])
    assert result.exit_code == 0, result.output
