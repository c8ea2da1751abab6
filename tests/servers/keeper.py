"""Runs one server for as long as its own standard input stays open.

    python -m tests.servers.keeper '<an Installation as JSON>'

The keeper is a process of its own, so that there is one way to stop: when the process that started it
closes the pipe, or dies in whatever way, the server is stopped and its folder removed. It says
on standard output, as one line of JSON, where the server listens or why it does not.
"""

import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.servers.installations import Installation

READY = "ready to accept connections"
ANY_PORT, LOWEST_PORT = 0, 20_000
OUTGOING_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
READY_WITHIN = 60
STOPPED_WITHIN = 60
"""Seconds. A server that is killed leaves processes behind for a moment, which write into its folder."""

PORTS_TRIED = 5


class DidNotStart(Exception):
    """The server ended or fell silent before it was ready."""


def main(text: str) -> int:
    """Serve until standard input ends; afterwards neither the process nor its folder is left."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as an exception it passes through the clean-up
    given = json.loads(text)
    installation = Installation(**{**given, "root": Path(given["root"]), "parts": tuple(given["parts"])})
    try:
        with folder() as scratch, served(installation, scratch) as (address, pid):
            print(json.dumps({"address": address, "pid": pid, "folder": str(scratch)}), flush=True)
            sys.stdin.read()
    except (DidNotStart, OSError) as error:
        print(json.dumps({"error": f"{installation.kind} from {installation.root}: {error}"}), flush=True)
        return 1
    return 0


# ----------------------------------------------------------------------------------------------- account and folder


def account() -> pwd.struct_passwd | None:
    """Return whom the server must run as: PostgreSQL refuses root, so root hands over to `nobody`."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def open_to_all(path: Path) -> bool:
    """Say whether every account may pass through all folders down to this one."""
    return all(step.stat().st_mode & 0o001 for step in (path, *path.parents))


@contextmanager
def folder() -> Iterator[Path]:
    """Give an empty folder that belongs to the server's account; it is gone afterwards."""
    owner = account()
    base = Path(tempfile.gettempdir()).resolve()
    if owner and not open_to_all(base):
        base = Path("/tmp")
    made = Path(tempfile.mkdtemp(prefix="everytick-server-", dir=base))
    try:
        if owner:
            os.chown(made, owner.pw_uid, owner.pw_gid)
        yield made
    finally:
        shutil.rmtree(made)


def programs(installation: Installation, scratch: Path) -> Path:
    """Return the folder of the server's programs, copied first if its account could not reach them."""
    root = installation.root
    if installation.parts and account() and not open_to_all(root.resolve()):
        root = scratch / "programs"
        for part in installation.parts:
            if (installation.root / part).exists():  # the libraries' folder exists on Linux only
                shutil.copytree(installation.root / part, root / part, symlinks=True)
    return root / installation.programs


# ---------------------------------------------------------------------------------------------------------- serving


@contextmanager
def served(installation: Installation, scratch: Path) -> Iterator[tuple[str, int]]:
    """Give the address and process id of a fresh server; it has stopped afterwards."""
    command = {"postgres": postgres_command, "redis": redis_command}[installation.kind]
    start = command(programs(installation, scratch), scratch)
    process, port = started(start, scratch)
    try:
        yield ADDRESSES[installation.kind].format(port=port), process.pid
    finally:
        stop(process)


ADDRESSES = {
    "postgres": "postgresql://everytick@127.0.0.1:{port}/postgres",
    "redis": "redis://127.0.0.1:{port}/0",
}


def postgres_command(binaries: Path, scratch: Path) -> list[str]:
    """Make an empty cluster and return the command that serves it; nothing in it outlives a power cut."""
    data = scratch / "data"
    made = popen(
        [
            *(binaries / "initdb", "--pgdata", data, "--username", "everytick", "--auth", "trust"),
            *("--no-sync", "--encoding", "UTF8", "--locale", "C"),
        ],
        scratch,
    )
    said, _ = made.communicate()
    if made.returncode:
        raise DidNotStart(f"initdb failed:\n{said}")
    settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200")
    careless = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
    options = [part for setting in (*settings, *careless) for part in ("-c", setting)]
    return [str(binaries / "postgres"), "-D", str(data), *options, "-p"]


def redis_command(binaries: Path, scratch: Path) -> list[str]:
    """Return the command that serves an empty Redis which saves nothing."""
    keeps_nothing = ["--save", "", "--appendonly", "no", "--dir", str(scratch)]
    return [str(binaries / "redis-server"), "--bind", "127.0.0.1", *keeps_nothing, "--port"]


def started(command: Sequence[str], scratch: Path) -> "tuple[subprocess.Popen[str], int]":
    """Return a server that accepts connections, and its port, which is the command's last argument.

    A port that was free a moment ago may be taken by the time the server binds it, hence the tries.
    """
    said = ""
    for _ in range(PORTS_TRIED):
        port = free_port()
        process = popen([*command, str(port)], scratch)
        try:
            wait_until_ready(process)
        except DidNotStart as error:
            stop(process)
            said = str(error)
        else:
            return process, port
    raise DidNotStart(f"not ready after {PORTS_TRIED} tries; the last one said:\n{said}")


def popen(command: Sequence[object], scratch: Path) -> "subprocess.Popen[str]":
    """Start a program as the server's account, with none of our settings but the ones it needs."""
    owner = account()
    return subprocess.Popen(
        [str(part) for part in command],
        cwd=scratch,
        env={"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        user=owner.pw_uid if owner else None,
        group=owner.pw_gid if owner else None,
        extra_groups=[] if owner else None,
    )


def wait_until_ready(process: "subprocess.Popen[str]") -> None:
    """Read the server's log until it says that it is ready, and go on reading it: a full pipe would stop it."""
    log: deque[str] = deque(maxlen=30)
    ready, settled = threading.Event(), threading.Event()

    def read() -> None:
        for line in process.stdout or ():
            log.append(line)
            if READY in line.lower():
                ready.set()
                settled.set()
        settled.set()

    threading.Thread(target=read, daemon=True).start()
    settled.wait(READY_WITHIN)
    if not ready.is_set():
        raise DidNotStart("".join(log) or f"nothing within {READY_WITHIN} s")


def stop(process: "subprocess.Popen[str]") -> None:
    """The server has ended: asked first (both take SIGINT as: now, but in order), then forced."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOPPED_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """Return a loopback port on which no server listens at this moment, and that no outgoing connection is given.

    The system takes the near end of a connection from a range of its own. A server in that range would lose its port
    to some connection while it is stopped, and a client that tries to reach it could connect to itself.
    """
    ports = range(LOWEST_PORT, lowest_outgoing_port())
    for port in (*random.sample(ports, len(ports)), ANY_PORT):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            free: int = probe.getsockname()[1]
            return free
    raise DidNotStart("no port is free")


def lowest_outgoing_port() -> int:
    """Return the first port that the system gives to outgoing connections."""
    try:
        return int(OUTGOING_PORTS.read_text().split()[0])
    except OSError:  # not Linux
        return 49_152


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
