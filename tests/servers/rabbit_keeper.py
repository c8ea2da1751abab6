"""Runs one RabbitMQ that a test may kill and start again, for as long as standard input stays open.

    python -m tests.servers.rabbit_keeper

It reads a word per line, `start`, `kill` or `stop`, and answers each with one line of JSON. What the broker has been
told to keep is kept in its folder between two starts. When the pipe closes, in whatever way, neither a process nor the
folder is left. The broker has everything for itself: its name, its ports, its cookie, and its own epmd, the daemon in
which Erlang nodes look each other up; a broker that finds none would start one for the whole machine.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from contextlib import closing, suppress
from pathlib import Path

from tests.servers.keeper import DidNotStart, free_port
from tests.servers.rabbit_packages import MissingRabbit, Programs, found_rabbit

READY = "Server startup complete"
READY_WITHIN = 100
STOPPED_WITHIN = 30
"""Seconds. A start takes four seconds of a processor, and many tests may share one."""

# One scheduler thread that does not spin, and nothing that listens to other machines.
ERLANG_ARGUMENTS = "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"


class Broker:
    """One broker with its folder and its epmd."""

    def __init__(self, folder: Path, programs: Programs) -> None:
        self._folder, self._programs = folder, programs
        self._port, self._distribution_port, self._epmd_port = free_port(), free_port(), free_port()
        self.address = f"amqp://guest:guest@127.0.0.1:{self._port}//"
        self._process: subprocess.Popen[str] | None = None
        self._epmd: subprocess.Popen[bytes] | None = None
        self._variables = self._prepared()

    def _prepared(self) -> dict[str, str]:
        """Write the settings of the broker; return its variables."""
        folder = self._folder
        (folder / "bin").mkdir()
        (folder / "plugins").write_text("[].\n")
        (folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.default = 127.0.0.1:{self._port}\ndisk_free_limit.absolute = 1MB\n"
        )
        if self._programs.erlang:
            self._write_erl(folder / "bin" / "erl", self._programs.erlang)
        return {
            "PATH": os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", os.defpath)]),
            "HOME": str(folder),  # the cookie stands there
            "LC_ALL": "C.UTF-8",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_NODENAME": f"everytick-{self._port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "no-such-file"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_MNESIA_BASE": str(folder / "data"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ERLANG_ARGUMENTS,
        }

    def _write_erl(self, script: Path, erlang: Path) -> None:
        """Write the script that starts Erlang: Debian's own names the folder of an installed one."""
        [programs] = erlang.glob("erts-*/bin")
        variables = f"ROOTDIR='{erlang}' BINDIR='{programs}' EMU=beam PROGNAME=erl"
        script.write_text(f'#!/bin/sh\nexport {variables}\nexec "$BINDIR/erlexec" "$@"\n')
        script.chmod(0o755)
        (script.parent / "epmd").symlink_to(programs / "epmd")

    def start(self) -> None:
        """Start it with what it has kept, and return once it takes connections."""
        if self._epmd is None:
            self._epmd = self._started_epmd()
        self._process = subprocess.Popen(
            [str(self._programs.server)],
            cwd=self._folder,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        _wait_for(READY, self._process)

    def _started_epmd(self) -> "subprocess.Popen[bytes]":
        program = shutil.which("epmd", path=self._variables["PATH"])
        if program is None:
            raise DidNotStart("Erlang's epmd is not on the PATH")
        words = [program, "-address", "127.0.0.1", "-port", str(self._epmd_port)]
        epmd = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pause = threading.Event()
        for _ in range(READY_WITHIN * 20):
            with suppress(OSError), closing(socket.create_connection(("127.0.0.1", self._epmd_port), 1)):
                return epmd
            pause.wait(0.05)
        epmd.kill()
        raise DidNotStart("Erlang's epmd does not answer")

    def stop(self) -> None:
        """End it in order: it writes what it keeps."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(STOPPED_WITHIN)
            self.kill()

    def kill(self) -> None:
        """End it without a word. Its helpers have groups of their own, and end when it has."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(STOPPED_WITHIN)
            self._process = None

    def end(self) -> None:
        """Leave no process."""
        self.kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait()


def _wait_for(word: str, process: "subprocess.Popen[str]") -> None:
    """Read the log until the word comes, and go on reading it: a full pipe would stop the broker."""
    log: deque[str] = deque(maxlen=30)
    has_come, is_over = threading.Event(), threading.Event()

    def read() -> None:
        for line in process.stdout or ():
            log.append(line)
            if word in line:
                has_come.set()
                is_over.set()
        is_over.set()

    threading.Thread(target=read, daemon=True).start()
    is_over.wait(READY_WITHIN)
    if not has_come.is_set():
        raise DidNotStart("".join(log) or f"nothing within {READY_WITHIN} s")


def main() -> int:
    """Obey until standard input ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as an exception it passes through the clean-up
    folder = Path(tempfile.mkdtemp(prefix="everytick-rabbit-"))
    broker = None
    try:
        broker = Broker(folder, found_rabbit())
        for line in sys.stdin:
            _obey(broker, line.strip())
    except (DidNotStart, MissingRabbit, OSError) as error:
        print(json.dumps({"error": f"RabbitMQ: {error}"}), flush=True)
        return 1
    finally:
        if broker is not None:
            broker.end()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _obey(broker: Broker, word: str) -> None:
    {"start": broker.start, "kill": broker.kill, "stop": broker.stop}[word]()
    print(json.dumps({"address": broker.address}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
