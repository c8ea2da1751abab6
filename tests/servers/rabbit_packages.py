"""Where a RabbitMQ for the tests can come from; `python -m tests.servers.rabbit_packages` brings one.

In this order: the program that a variable names, the system's own, Debian's packages unpacked into `.venv/rabbitmq`.
They are unpacked and not installed: an installed package would start a broker on the machine's own port. That needs
no rights of an administrator either. Finding none is an error of the tests of RabbitMQ, never a skip.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.servers.browsers import ending

RABBITMQ_VARIABLE = "EVERYTICK_TEST_RABBITMQ"
UNPACKED = Path(__file__).resolve().parents[2] / ".venv" / "rabbitmq"
DEBIAN = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""What Debian's wrapper on the PATH calls. The wrapper itself insists on an account and folders of its own."""

PACKAGES = (
    "rabbitmq-server",
    *(
        f"erlang-{part}"
        for part in (
            "asn1 base crypto eldap ftp inets mnesia os-mon parsetools public-key runtime-tools snmp ssl syntax-tools "
            "tftp tools xmerl"
        ).split()
    ),
)
"""The server and all of Erlang that Debian's package of it asks for: 34 MB."""


@dataclass(frozen=True)
class Programs:
    """A broker's start script. `erlang` is the root of an Erlang that was unpacked, None for the system's own."""

    server: Path
    erlang: Path | None = None


class MissingRabbit(Exception):
    """No broker was named, the system has none, and none was unpacked."""

    def __init__(self) -> None:
        super().__init__(
            f"the tests of RabbitMQ need its server and found none: name the program rabbitmq-server in "
            f"{RABBITMQ_VARIABLE}, install it so that it is on the PATH, or run `python3 dev.py test`, which unpacks "
            "Debian's packages where apt-get can download them"
        )


def found_rabbit(
    variables: Mapping[str, str] = os.environ,
    path: str | None = None,
    unpacked: Path = UNPACKED,
    debian: Path = DEBIAN,
) -> Programs:
    """Return the broker that tests start, or say how to get one; `path` stands in for the PATH."""
    if named := variables.get(RABBITMQ_VARIABLE):
        return Programs(Path(named))
    if debian.exists():
        return Programs(debian)
    if on_path := shutil.which("rabbitmq-server", path=path):
        return Programs(Path(on_path).resolve())
    server, erlang = unpacked / "usr/lib/rabbitmq/bin/rabbitmq-server", unpacked / "usr/lib/erlang"
    if not server.exists():
        raise MissingRabbit
    return Programs(server, erlang)


def has_rabbit() -> bool:
    """Tell whether a broker is there."""
    try:
        found_rabbit()
    except MissingRabbit:
        return False
    return True


def bring_rabbit(
    steps: Sequence[Sequence[str]], unpack: Callable[[], str], is_there: Callable[[], bool] = has_rabbit
) -> str:
    """Get a broker if there is none; return an empty text, or what was tried and how each step ended."""
    if is_there():
        return ""
    told = []
    for step in steps:
        if not (said := unpack()):
            return ""
        told.append(said)
        told.append(f"{' '.join(step)}: {ending(step)}")
    said = unpack()
    return "\n".join([str(MissingRabbit()), *told, said]) if said else ""


def unpack_packages(target: Path = UNPACKED) -> str:
    """Download Debian's packages and unpack them; return an empty text, or why that was not possible."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if apt is None or dpkg is None:
        return "apt-get and dpkg-deb are not there"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        if (failed := _called([apt, "download", *PACKAGES], folder)) is not None:
            return failed
        for package in sorted(Path(folder).glob("*.deb")):
            if (failed := _called([dpkg, "--extract", str(package), "root"], folder)) is not None:
                return failed
        shutil.rmtree(target, ignore_errors=True)
        # In one go: a broker that is half unpacked would count as one.
        (Path(folder) / "root").rename(target)
    return ""


def _called(command: Sequence[str], folder: str) -> str | None:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
    return f"{' '.join(command)}: exit code {done.returncode}: {last}"


def ways_to_packages() -> list[list[str]]:
    """Return what may help when the packages cannot be downloaded: root can read the lists of packages anew."""
    apt = shutil.which("apt-get")
    return [[apt, "update"]] if apt and os.geteuid() == 0 else []


if __name__ == "__main__":
    sys.exit(bring_rabbit(ways_to_packages(), unpack_packages) or 0)
