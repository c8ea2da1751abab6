"""The example in deploy/ runs as its manifests say: commands of the pods, secrets from files, probes that answer."""

import asyncio
import http.client
import socket
import sys
from pathlib import Path

import pytest

from tests.acceptance.node.conftest import new_database
from tests.acceptance.node.fleet import Fleet
from tests.servers.launch import Server
from tests.tidy.tree import ROOT
from tests.unit.deploy.manifests import pods

APP = ROOT / "deploy/docker/app"


def command_of(pod: str) -> list[str]:
    [found] = [each.spec["containers"][0]["command"] for each in pods() if each.name == pod]
    return [sys.executable, "-m", *found]


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def probed(port: int, path: str) -> int | None:
    """Return the status that a kubelet would get, which names the pod by its own address; None if no server listens."""
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        asked.request("GET", path, headers={"Host": f"10.42.0.17:{port}"})
        return asked.getresponse().status
    except OSError:
        return None
    finally:
        asked.close()


@pytest.mark.parametrize("pod", ["everytick-node", "everytick-service"])
def test_the_pods_of_the_example_start_and_answer_their_probes(
    pod: str, postgres: Server, fleet: Fleet, tmp_path: Path
) -> None:
    secret, port = tmp_path / "store", free_port()
    secret.write_text(asyncio.run(new_database(postgres)) + "\n")
    environment = {
        "EVERYTICK_STORE_FILE": str(secret),
        "EVERYTICK_WEB": "on",
        "EVERYTICK_WEB_PORT": str(port),
        "EVERYTICK_LOG_FOLDER": str(tmp_path / "logs"),
    }
    started = fleet.run(command_of(pod), cwd=APP, environment=environment)
    for path in ("/startupz", "/livez", "/readyz"):
        fleet.wait_until(lambda path=path: probed(port, path) == 200, f"{path} is well")  # type: ignore[misc]
    assert probed(port, "/api/jobs") == 401, "people sign in"
    started.tell_to_stop()
    assert started.ended() == 0, started.complaints()


def test_the_celery_application_of_the_example_can_be_loaded(fleet: Fleet, tmp_path: Path) -> None:
    secret = tmp_path / "store"
    secret.write_text(f"sqlite:///{tmp_path / 'store.db'}")
    environment = {"EVERYTICK_STORE_FILE": str(secret), "CELERY_BROKER_URL": "memory://"}
    told = fleet.run([sys.executable, "-m", "celery", "--app", "worker", "report"], cwd=APP, environment=environment)
    fleet.hear(lambda line: "add-every-minute" in line)
    assert told.ended() == 0, told.complaints()
