"""A real Ray cluster of one machine: `with ray_cluster(variables) as cluster`. It listens on loopback only."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.servers.keeper import free_port
from tests.servers.launch import ServerFailed

LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""With the first, Ray takes 127.0.0.1 for what it is, in the cluster and in its clients. Else: the host's address."""

READY = "will now block forever"
STOPPED_WITHIN = 60


class Cluster:
    """One head node with two processors; `inside` is for a process on this machine, `outside` for any other."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self._folder, self._variables = folder, {**os.environ, **variables, **LOOPBACK, "PYTHONUNBUFFERED": "1"}
        self._port, self._client_port = free_port(), free_port()
        self.inside, self.outside = f"127.0.0.1:{self._port}", f"ray://127.0.0.1:{self._client_port}"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and return once it takes work."""
        words = (
            *("start", "--head", "--block", "--node-ip-address", "127.0.0.1", "--port", str(self._port)),
            *("--ray-client-server-port", str(self._client_port), "--num-cpus", "2", "--temp-dir", str(self._folder)),
            *("--object-store-memory", "80000000", "--include-dashboard", "false", "--disable-usage-stats"),
        )
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", *words],
            env=self._variables,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        said = []
        for line in self._process.stdout or ():
            said.append(line)
            if READY in line:
                return
        raise ServerFailed(f"Ray did not start (python3 dev.py test -m slow installs it):\n{''.join(said)}")

    def workers(self, name: str) -> list[int]:
        """Return the processes of this cluster that carry out what has this name."""
        assert self._process, "the cluster runs"
        group, found = str(self._process.pid), []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                parent = _stat(folder)[1]
                if _stat(Path("/proc") / parent)[2] == group and _called(folder) == f"ray::{name}":
                    found.append(int(folder.name))
        return found

    def kill(self) -> None:
        """End the head node without a word; its workers end when they notice."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(STOPPED_WITHIN)
            if self._process.stdout:
                self._process.stdout.close()
            self._process = None


def _stat(process: Path) -> list[str]:
    """Return what the kernel tells of a process, from its state on: state, parent, group."""
    return (process / "stat").read_text().rpartition(")")[2].split()


def _called(process: Path) -> str:
    return (process / "cmdline").read_text().partition("\0")[0].strip()


@contextmanager
def ray_cluster(variables: Mapping[str, str]) -> Iterator[Cluster]:
    """Give a fresh cluster; afterwards neither its processes nor its folder are left."""
    # Not in pytest's folder: Ray puts sockets there, and their paths must be short.
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    made = Cluster(folder, variables)
    try:
        made.start()
        yield made
    finally:
        made.kill()
        shutil.rmtree(folder, ignore_errors=True)
