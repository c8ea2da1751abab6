"""The samples beside this file: what other schedulers keep, in the style of real ones."""

from pathlib import Path

from everytick.sources.importing.apscheduler import read_listing
from everytick.sources.importing.celery_beat import read_beat
from everytick.sources.importing.cronjob import read_manifest
from everytick.sources.importing.crontab import read_crontab
from everytick.sources.importing.findings import Findings
from everytick.sources.importing.systemd import ServiceFile, read_timer

FOLDER = Path(__file__).parent / "samples"


def sample(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


def service(name: str) -> ServiceFile | None:
    path = FOLDER / "units" / name
    return (name, path.read_bytes()) if path.exists() else None


def timer(name: str) -> Findings:
    return read_timer(sample(f"units/{name}"), name, service=service)


def found_in(name: str) -> Findings:
    """What the reader of its kind finds in a sample."""
    match name:
        case "crontab":
            return read_crontab(sample(name), name)
        case "system-crontab":
            return read_crontab(sample(name), name, system=True, timezone="America/New_York")
        case "celeryconfig.py.txt" | "beat.json":
            return read_beat(sample(name), name)
        case "apscheduler.json":
            return read_listing(sample(name), name)
        case "cronjobs.yaml":
            return read_manifest(sample(name), name)
    return timer(name)


NAMES = (
    "crontab", "system-crontab", "celeryconfig.py.txt", "beat.json", "apscheduler.json", "cronjobs.yaml",
    *sorted(path.name for path in (FOLDER / "units").glob("*.timer")),
)  # fmt: skip
